"""Charts of Helm without Helm: as much of its templates as ours use, and an error for anything else.

Known are `{{ .Values.a.b }}`, `{{ $name }}`, `| quote`, `toYaml X | nindent N`, `if X`, `range $key, $value := X` and
`end`, and `{{-`, which eats the white space before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

PIECE = re.compile(r"\s*\{\{-\s*(.*?)\s*\}\}|\{\{\s*(.*?)\s*\}\}", re.DOTALL)


def documents(chart: Path, values: Mapping[str, Any], release: str, namespace: str) -> list[dict[str, Any]]:
    """What the templates of a chart become."""
    about = yaml.safe_load((chart / "Chart.yaml").read_text())
    scope = {
        "Values": values,
        "Release": {"Name": release, "Namespace": namespace},
        "Chart": {name[:1].upper() + name[1:]: value for name, value in about.items()},
    }
    made = []
    for path in sorted((chart / "templates").glob("*.yaml")):
        made += [one for one in yaml.safe_load_all(rendered(path.read_text(), scope)) if one]
    return made


def rendered(text: str, scope: Mapping[str, Any]) -> str:
    pieces: list[str] = []
    at = 0
    for found in PIECE.finditer(text):
        pieces += [text[at : found.start()], "\0" + (found[1] if found[1] is not None else found[2])]
        at = found.end()
    pieces.append(text[at:])
    out, rest = _block(pieces, 0, scope)
    assert rest == len(pieces), "more ends than beginnings"
    return out


def _block(pieces: list[str], at: int, scope: Mapping[str, Any]) -> tuple[str, int]:
    """Everything up to the end that belongs to this beginning."""
    out = []
    while at < len(pieces):
        piece = pieces[at]
        if not piece.startswith("\0"):
            out.append(piece)
        elif piece == "\0end":
            return "".join(out), at
        elif piece.startswith("\0if "):
            inner, at = _block(pieces, at + 1, scope)
            out.append(inner if _value(piece[4:], scope) else "")
        elif piece.startswith("\0range "):
            names, _, where = piece[7:].partition(" := ")
            key, value = (name.strip() for name in names.split(","))
            inner, end = "", at
            for one, what in sorted(_value(where, scope).items()):
                inner, end = _block(pieces, at + 1, {**scope, key: one, value: what})
                out.append(inner)
            at = end if inner else _block(pieces, at + 1, {**scope, key: "", value: ""})[1]
        else:
            out.append(_shown(piece[1:], scope))
        at += 1
    return "".join(out), at


def _shown(text: str, scope: Mapping[str, Any]) -> str:
    source, *pipes = (part.strip() for part in text.split("|"))
    if source.startswith("toYaml "):
        shown = str(yaml.safe_dump(_value(source[7:], scope))).rstrip()
    else:
        shown = str(_value(source, scope))
    for pipe in pipes:
        if pipe == "quote":
            shown = json.dumps(shown)
        elif pipe.startswith("nindent "):
            shown = "\n" + "\n".join(" " * int(pipe[8:]) + line for line in shown.splitlines())
        else:
            raise ValueError(f"not known here: {pipe!r}")
    return shown


def _value(text: str, scope: Mapping[str, Any]) -> Any:
    if text.startswith("$"):
        return scope[text]
    assert text.startswith("."), f"not known here: {text!r}"
    found: Any = scope
    for name in text[1:].split("."):
        found = found[name]
    return found
