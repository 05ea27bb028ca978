"""Sentences that are too long to be understood at first reading: `python -m tools.english [PATH ...]` lists them.

Looked at are the pages of people (Markdown without code, pictures and link targets) and the docstrings of the source.
A cell of a table, an item of a list and a heading each end a sentence. `tests/test_tidy.py` wants none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORDS_MAX = 40
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md")
WRITTEN_BY_TOOLS = ("docs/results", "docs/earlier")
"""Reports that `godwit lab` wrote, with their figures."""
SOURCES = ("src/**/*.py", "tools/*.py")

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2`*~* *$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^|\n\n)(?:(?: {4,}|\t).*(?:\n|$)+)+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+)(?:(?!\1).)+\1", re.DOTALL)
_BLOCKS = re.compile(r"\n\s*\n|\n\s*(?=[-*+] |\d+\. |#+ |>|\||[^\n]*\S {3,}\S)|\|")
_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+")
_WORD = re.compile(r"\w[\w'’.,-]*")


class Finding(NamedTuple):
    path: Path
    line: int
    words: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.words} words: {self.sentence}"


def sentences(text: str) -> Iterator[str]:
    """Of a page or a docstring; what stands in backquotes counts as one word."""
    bare = _INDENTED.sub("\n\n", _COMMENT.sub("", _FENCE.sub("\n", text)))
    plain = _CODE.sub("code", _LINK.sub(r"\1", bare))
    for block in _BLOCKS.split(plain):
        yield from (" ".join(one.split()) for one in _END.split(block) if one.strip())


def long_sentences(text: str, words_max: int = WORDS_MAX) -> Iterator[tuple[int, str]]:
    for sentence in sentences(text):
        words = len(_WORD.findall(sentence))
        if words > words_max:
            yield words, sentence


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Those of modules, classes and functions, and the texts below attributes, each with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(told))):
                yield node.lineno, told


def findings(root: Path = ROOT) -> Iterator[Finding]:
    for path in _found(root, PAGES):
        text = path.read_text()
        yield from (Finding(path, _line(text, one), words, one) for words, one in long_sentences(text))
    for path in _found(root, SOURCES):
        for line, told in docstrings(path.read_text()):
            yield from (Finding(path, line, words, one) for words, one in long_sentences(told))


def _found(root: Path, patterns: Iterable[str]) -> list[Path]:
    found = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found if not path.relative_to(root).as_posix().startswith(WRITTEN_BY_TOOLS))


def _line(text: str, sentence: str) -> int:
    """Where its first words stand, if they can be found."""
    first = re.search(r"\s+".join(map(re.escape, sentence.split()[:4])), text)
    return 1 + text.count("\n", 0, first.start()) if first else 1


def main(arguments: Sequence[str]) -> int:
    wanted = [Path(one).resolve() for one in arguments]
    found = [one for one in findings() if not wanted or any(one.path.is_relative_to(path) for path in wanted)]
    for one in found:
        print(one)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
