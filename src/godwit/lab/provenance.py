"""Where a row of results comes from: the commit, the code that decides it, and the class of machine.

`code` is a digest of the module that ran and of all of ours that it imports, without comments and docstrings. Two rows
with the same configuration and the same code are the same run; where the code differs they are not, whatever the
version says.
"""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

import godwit
from godwit import __version__

UNKNOWN = "unknown"
SOURCE = Path(godwit.__file__).parent.parent


class Provenance(msgspec.Struct, frozen=True):
    version: str = __version__
    commit: str = UNKNOWN
    """With a + where the tree had changes that were not committed."""
    code: str = UNKNOWN
    machine: str = UNKNOWN

    def __str__(self) -> str:
        return f"godwit {self.version}, commit {self.commit}, code {self.code}, {self.machine}"


@cache
def of(module: str) -> Provenance:
    """Of what this module does, here and now."""
    return Provenance(__version__, commit(), code(module), machine())


@cache
def commit() -> str:
    """The commit of the tree that we run from; unknown where that is no repository."""
    if not (SOURCE.parent / ".git").exists():
        return UNKNOWN
    try:
        found = _git("rev-parse", "--short=12", "HEAD").strip()
        return found + "+" * bool(_git("status", "--porcelain", "--", "src").strip())
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN


def _git(*words: str) -> str:
    command = ["git", "-C", str(SOURCE.parent), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@cache
def machine() -> str:
    """What decides how long a run takes, not which machine it was."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


@cache
def code(module: str) -> str:
    """A digest of a module and of everything of ours that it imports; unknown where there is no source."""
    found = sorted(closure(module))
    if not found:
        return UNKNOWN
    whole = hashlib.sha256()
    for name in found:
        whole.update(f"{name}\n{_bare(name)}\n".encode())
    return whole.hexdigest()[:12]


def closure(module: str) -> set[str]:
    """The names of our modules that this one needs, itself among them; empty where there is no source."""
    found: set[str] = set()
    ahead = [module]
    while ahead:
        name = ahead.pop()
        if name not in found and name != __name__ and _file(name) is not None:
            found.add(name)
            ahead += _imported(name)
    return found


@cache
def _imported(module: str) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.startswith("godwit."))


def _file(module: str) -> Path | None:
    if module.partition(".")[0] != "godwit":
        return _foreign_file(module)
    base = SOURCE.joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _foreign_file(module: str) -> Path | None:
    """Of an experiment that somebody brought along (`godwit pipeline sweep`)."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def _tree(module: str) -> ast.Module:
    path = _file(module)
    return ast.parse(path.read_text(encoding="utf-8") if path is not None else "")


@cache
def _bare(module: str) -> str:
    """The code alone: what a comment or a docstring says changes no result."""
    tree = _tree(module)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
