"""Twelve functions drawn at random, to find out whether a reader can say where they live: `python -m tools.names`.

First without `--where`: for each name and docstring say in which module it should stand, from the names of folders and
files alone. Then with it. The same seed draws the same functions as long as the source does not change.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from tools import tidy
from tools.house import ROOT

COUNT = 12
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Named(NamedTuple):
    module: str
    name: str
    """With its class, where it has one."""
    told: str
    """The first line of its docstring, or of its class's."""


def functions(modules: tidy.Modules) -> Iterator[Named]:
    """All that are public and stand in a module or in a class of one; what Python itself calls is left out."""
    for module in modules.values():
        for node in module.tree.body:
            for owner, function in _in(node):
                if not function.name.startswith("_") and not (owner and owner.name.startswith("_")):
                    name = f"{owner.name}.{function.name}" if owner else function.name
                    told = ast.get_docstring(function) or (owner and ast.get_docstring(owner)) or ""
                    yield Named(module.name, name, told.partition("\n")[0])


def _in(node: ast.stmt) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    if isinstance(node, Function):
        yield None, node
    elif isinstance(node, ast.ClassDef):
        yield from ((node, inner) for inner in node.body if isinstance(inner, Function))


def drawn(modules: tidy.Modules, seed: int, count: int = COUNT) -> list[Named]:
    return Random(seed).sample(sorted(functions(modules)), count)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Where should these functions live?")
    parser.add_argument("--seed", type=int, default=COUNT)
    parser.add_argument("--where", action="store_true", help="say it")
    asked = parser.parse_args(arguments)
    for one in drawn(tidy.read(ROOT / "src", ROOT / "src" / tidy.PACKAGE), asked.seed):
        print(f"{one.name}" + (f"  {one.module}" if asked.where else f"  {one.told}".rstrip()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
