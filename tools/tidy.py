"""What holds the house together, as functions from a tree to findings; `tests/test_tidy.py` wants every list empty.

A finding reads `path:line: what is wrong`, so that an editor can jump there.
"""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PACKAGE = "godwit"

ROWS = (
    ("__main__",),
    ("cli", "commands", "console"),
    ("lab", "pipeline", "collection"),
    ("sim", "net", "client"),
    ("protocols",),
    ("tables",),
    ("filters", "events"),
    ("errors",),
)
"""The house from the top floor down; a room may use itself and every floor below."""

BESIDE = {("cli", "commands"), ("cli", "console"), ("commands", "console"), ("client", "net"), ("filters", "events")}
"""The only doors between rooms of one floor, each one way."""

STOREYS = {
    "godwit.protocols.broker": (
        ("broker",),
        ("handoff",),
        ("registry",),
        ("dispatch",),
        ("dealing",),
        ("fabric", "lasting"),
        ("interest",),
        ("session",),
        ("streams", "balance"),
        ("messages",),
        ("api", "publication", "senml", "topics", "store", "steady", "vacant"),
    )
}
"""Packages with floors of their own, from the top down: a room may use itself, its floor and every floor below."""

MODULES_MAX = 15
"""More than so many modules in one package are a drawer, not a room."""

PURE = ("errors", "events", "filters", "tables", "protocols")
"""Rooms that are told the time, given their dice, and leave all input and output to the floors above."""

FORBIDDEN = {
    "clock": (
        *("time", "datetime.date.today"),
        *("datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow"),
    ),
    "dice": ("random", "secrets", "uuid", "numpy.random", "os.urandom"),
    "sockets": ("asyncio", "http", "select", "selectors", "socket", "socketserver", "ssl", "urllib"),
    "files": (
        *("builtins.open", "fileinput", "glob", "gzip", "io.FileIO", "io.open", "mmap", "os", "pathlib", "shutil"),
        *("sqlite3", "subprocess", "tempfile", "zipfile"),
        *("numpy.fromfile", "numpy.genfromtxt", "numpy.lib.format", "numpy.load", "numpy.loadtxt", "numpy.memmap"),
        *("numpy.save", "numpy.savetxt", "numpy.savez", "numpy.savez_compressed"),
        *("pyarrow.OSFile", "pyarrow.csv", "pyarrow.dataset", "pyarrow.feather", "pyarrow.fs", "pyarrow.json"),
        *("pyarrow.memory_map", "pyarrow.parquet"),
    ),
    "logging": ("logging", "sys.stderr", "sys.stdin", "sys.stdout", "syslog", "warnings"),
    "print": ("builtins.breakpoint", "builtins.input", "builtins.print", "pprint", "rich"),
}
"""What a pure room must not touch, by dotted name; whatever lies below such a name is meant too."""

FILE_METHODS = {"read_bytes", "read_text", "tofile", "write_bytes", "write_text"}
"""Input and output on a path that somebody else made."""

TYPES = {"random.Random", "pathlib.PurePath", "pathlib.PurePosixPath"}
"""May be named, as the type of something given, but not called."""


WIDE = ("conformance", "fuzz", "golden", "killing", "properties")
"""Tests that are about everything in their room at once."""

WRITTEN = {"", ".lock", ".md", ".py", ".toml", ".typed"}
"""What is written by hand or locked; any other file is data."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of the tree, walked once however many checks look at it."""
        return list(ast.walk(self.tree))

    @cached_property
    def importing(self) -> list[ast.Import | ast.ImportFrom]:
        return [node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom)]

    def finding(self, line: int, text: str) -> str:
        return f"{self.path}:{line}: {text}"


Modules = Mapping[str, Module]
"""By dotted name."""


def read(base: Path, folder: Path) -> dict[str, Module]:
    """Every module under `folder`, named as it is imported with `base` on the path."""
    modules = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(base).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        about = path.stat()
        modules[name] = _module(name, path, about.st_mtime_ns, about.st_size)
    return modules


@cache
def _module(name: str, path: Path, changed_ns: int, size: int) -> Module:
    """As it is: several checks read the same modules, of which there are two thousand."""
    return Module(name, path, ast.parse(path.read_text(), str(path)))


def imports(module: Module, known: Collection[str]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything imported, wherever it stands; `from a import b` is b where b is a module."""
    for node in module.importing:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        else:
            origin = origin_of(module, node)
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                yield node.lineno, full if full in known else origin


def origin_of(module: Module, node: ast.ImportFrom) -> str:
    """The dotted name after `from`, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    here = module.name.split(".")
    upwards = node.level - 1 if module.is_package else node.level
    return ".".join([*here[: len(here) - upwards], *filter(None, [node.module])])


def misdirected(modules: Modules) -> list[str]:
    """Imports that lead upwards or sideways, and rooms that stand on no floor."""
    floor = {room: number for number, row in enumerate(ROWS) for room in row}
    found = []
    for module in modules.values():
        room = room_of(module.name)
        if room and room not in floor:
            found.append(module.finding(1, f"'{room}' stands on no floor; give it one in tools/tidy.py"))
            continue
        for line, target in imports(module, modules):
            if room and target.split(".")[0] == PACKAGE and not may_use(floor, room, room_of(target)):
                found.append(module.finding(line, f"'{room}' must not import {target}"))
    return found


def upwards(modules: Modules) -> list[str]:
    """Imports that lead upwards inside a package that has floors of its own; naming a type is no dependence."""
    found = []
    for package, storeys in STOREYS.items():
        floor = {f"{package}.{room}": number for number, row in enumerate(storeys) for room in row}
        for name in inside(modules, [package]) - {package}:
            module, room = modules[name], room_in(package, name)
            if room not in floor:
                found.append(module.finding(1, f"'{room}' stands on no floor of {package}; see tools/tidy.py"))
                continue
            for line, target in imports(module, modules):
                other = room_in(package, target)
                if line not in types_only(module) and other in floor and floor[other] < floor[room]:
                    found.append(module.finding(line, f"'{room}' must not import {target}"))
    return sorted(found)


def types_only(module: Module) -> set[int]:
    """Lines of imports that exist for the type checker alone."""
    blocks = (
        node for node in module.tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {inner.lineno for block in blocks for inner in block.body}


def room_in(package: str, name: str) -> str:
    """`a.b.c.d` is in the room `a.b.c` of the package `a.b`; empty where it is elsewhere."""
    below = name.removeprefix(f"{package}.")
    return f"{package}.{below.partition('.')[0]}" if below != name else ""


def drawers(modules: Modules, most: int = MODULES_MAX) -> list[str]:
    """Packages with more modules of their own than can be looked through at a glance."""
    count = Counter(module.name.rpartition(".")[0] for module in modules.values() if not module.is_package)
    return [
        f"{package}: {number} modules, at most {most}" for package, number in sorted(count.items()) if number > most
    ]


def namesakes(modules: Modules) -> list[str]:
    """Classes of one name in one package: a reader who searches for it finds the wrong one."""
    places: dict[tuple[str, str], list[str]] = {}
    for module in modules.values():
        package = module.name if module.is_package else module.name.rpartition(".")[0]
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault((package, node.name), []).append(module.finding(node.lineno, ""))
    return [
        f"{' and '.join(where.rstrip(': ') for where in found)}: both call a class {name}"
        for (_, name), found in sorted(places.items())
        if len(found) > 1
    ]


def room_of(name: str) -> str:
    """The part of the house a module belongs to; empty for the package itself."""
    return name.partition(".")[2].partition(".")[0]


def may_use(floor: Mapping[str, int], room: str, other: str) -> bool:
    if not other:
        # The public names live in pure rooms: those above may use them, those inside would go round in a circle.
        return room not in PURE
    return room == other or (room, other) in BESIDE or floor[room] < floor.get(other, -1)


def impure(modules: Modules, allowed: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What pure rooms touch and must not, and exceptions that nothing needs any more.

    `allowed` names a module, what it may touch, and why.
    """
    found = []
    unused = {(name, kind) for name, kinds in allowed.items() for kind in kinds}
    for module in modules.values():
        if room_of(module.name) not in PURE:
            continue
        for line, kind, what in sorted(Touches(module).found):
            if kind in allowed.get(module.name, ()):
                unused.discard((module.name, kind))
            else:
                found.append(module.finding(line, f"{kind} in a pure room: {what}"))
    stale = [f"{name} is allowed {kind} and does not use it: drop the exception" for name, kind in sorted(unused)]
    return found + stale


class Touches(ast.NodeVisitor):
    """Collects `(line, kind, dotted name)` of every forbidden thing that a module imports or uses."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.found: set[tuple[int, str, str]] = set()
        self.dotted = {name: f"builtins.{name}" for name in ("breakpoint", "input", "open", "print")}
        self.visit(module.tree)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.name if alias.asname else alias.name.partition(".")[0]
            self.dotted[alias.asname or bound] = bound
            if not any(name.startswith(f"{alias.name}.") for name in TYPES):
                self.note(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            full = f"{origin_of(self.module, node)}.{alias.name}"
            self.dotted[alias.asname or alias.name] = full
            if full not in TYPES:
                self.note(node, full)

    def visit_Call(self, node: ast.Call) -> None:
        full = self.resolved(node.func)
        if full in TYPES:
            self.note(node, full)
        if isinstance(node.func, ast.Attribute) and node.func.attr in FILE_METHODS:
            self.found.add((node.lineno, "files", f".{node.func.attr}()"))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        full = self.resolved(node)
        if full is None:
            self.generic_visit(node)
        elif full not in TYPES:
            self.note(node, full)

    def visit_Name(self, node: ast.Name) -> None:
        full = self.dotted.get(node.id)
        if full and isinstance(node.ctx, ast.Load) and full not in TYPES and "." in full:
            self.note(node, full)

    def resolved(self, node: ast.expr) -> str | None:
        """The dotted name that an expression stands for, through the imports of this module; None where it is none."""
        if isinstance(node, ast.Name):
            return self.dotted.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.resolved(node.value)
            return owner and f"{owner}.{node.attr}"
        return None

    def note(self, node: ast.stmt | ast.expr, full: str) -> None:
        for kind, names in FORBIDDEN.items():
            if any(full == name or full.startswith(f"{name}.") for name in names):
                self.found.add((node.lineno, kind, full))


def orphans(modules: Modules, entries: Collection[str], waiting: Mapping[str, str]) -> list[str]:
    """Modules that nothing reaches from the entries, by import or by a string that is a module's name.

    `waiting` names modules, or whole rooms, that stand ready for something not built yet, and what that is; an entry
    that saves nothing from being an orphan is a finding too.
    """
    lead = ways(modules)
    lost = sorted(set(modules) - reached_by(lead, [*entries, *inside(modules, waiting)]))
    settled = [
        name
        for name in waiting
        if inside(modules, [name]) <= reached_by(lead, [*entries, *inside(modules, set(waiting) - {name})])
    ]
    return [modules[name].finding(1, "nothing reaches this module") for name in lost] + [
        f"{name} does not wait any more: drop it from the list" for name in settled
    ]


def inside(modules: Modules, names: Iterable[str]) -> set[str]:
    """The modules of these names, and everything in those that are rooms."""
    return {module for name in names for module in modules if module == name or module.startswith(f"{name}.")}


def reachable(modules: Modules, entries: Iterable[str]) -> set[str]:
    return reached_by(ways(modules), entries)


def ways(modules: Modules) -> dict[str, set[str]]:
    """By module those that it leads to: what it imports, what it names in a string, and the package that it is in."""
    return {
        name: {
            *(target for _, target in imports(module, modules) if target in modules),
            *(text for text in strings(module) if text in modules),
            name.rpartition(".")[0],
        }
        for name, module in modules.items()
    }


def reached_by(ways: Mapping[str, Collection[str]], entries: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    queue = list(entries)
    while queue:
        name = queue.pop()
        if name in ways and name not in reached:
            reached.add(name)
            queue += ways[name]
    return reached


def strings(module: Module) -> Iterator[str]:
    return (node.value for node in module.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def unmirrored(root: Path) -> list[str]:
    """Test modules that are named after nothing, and helpers beside them that no test uses.

    `tests/tables/forests/test_poset.py` is about `src/godwit/tables/forests/poset.py`, `tests/test_tables.py` about
    the whole room, `tests/tables/forests/test_poset_removal.py` about a side of it, and those that begin with a word
    of `WIDE` about the room they are in. Tools, benchmarks and pages have theirs as well.
    """
    homes = (root / "src" / PACKAGE, root / "src", root / "tools", root)
    tests = read(root, root / "tests")
    used = reachable(tests, [name for name in tests if name.rpartition(".")[2].startswith(("test_", "conftest"))])
    found = []
    for module in tests.values():
        path = module.path.relative_to(root / "tests")
        if path.name.startswith("test_"):
            subject = path.with_name(path.stem.removeprefix("test_"))
            if not any(is_about(home / subject) for home in homes):
                found.append(module.finding(1, f"there is no {subject} for this to test"))
        elif module.name not in used:
            found.append(module.finding(1, "no test uses this module"))
    return found


def is_about(subject: Path) -> bool:
    """Whether there is a module, room or page of this name, or of a name that this one goes on from."""
    words = subject.name.split("_")
    if words[0] in WIDE and is_subject(subject.parent):
        return True
    names = {"_".join(words[:count]) for count in range(1, len(words) + 1)}
    return any(path.stem.lower() in names and is_subject(path) for path in subject.parent.glob("*"))


def is_subject(path: Path) -> bool:
    return path.suffix in (".py", ".md") or (path / "__init__.py").exists()


def tracked(root: Path) -> list[Path]:
    """The files under version control; outside of a repository whatever is not hidden."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if git.returncode == 0:
        return [path for name in git.stdout.split("\0") if name and (path := root / name).is_file()]
    return [path for path in root.rglob("*") if path.is_file() and not is_hidden(path.relative_to(root))]


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def too_large(files: Iterable[Path], *, bytes_max: int, data_bytes_max: int) -> list[str]:
    """Files that do not belong into a repository, singly or, where they are data, together."""
    sizes = {path: path.stat().st_size for path in files}
    data = sum(size for path, size in sizes.items() if path.suffix not in WRITTEN)
    found = [f"{path}: {size} bytes, at most {bytes_max}" for path, size in sizes.items() if size > bytes_max]
    return found + ([f"data files: {data} bytes together, at most {data_bytes_max}"] if data > data_bytes_max else [])


def naming(files: Iterable[Path], words: Collection[str]) -> list[str]:
    """Lines that contain any of the words, in whatever case."""
    found = []
    for path in files:
        for number, line in enumerate(path.read_bytes().lower().splitlines(), 1):
            found += [f"{path}:{number}: names {word}" for word in words if word.encode() in line]
    return found
