"""Pages of documentation, and the examples in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def page(name: str) -> str:
    return (ROOT / name).read_text()


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(text: str) -> None:
    """Run the Python examples one after the other, as a reader would type them."""
    names: dict[str, object] = {}
    for example in blocks(text, "python"):
        exec(compile(example, "example", "exec"), names)
