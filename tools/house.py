"""The picture of the house, drawn from the imports: `python -m tools.house` writes it into docs/architecture.md.

The page says in words what each room is for; what may be seen in the source is written here, so that it cannot lie:
the floors, the packages of each room, and which room uses which. `tests/test_house.py` wants the page up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tools import tidy

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by tools/house.py: begin -->", "<!-- drawn by tools/house.py: end -->"

Uses = Mapping[str, frozenset[str]]
"""By room the rooms that it imports."""


class PageError(Exception):
    """The page has no place for the picture: the message says what it must contain."""


def main(arguments: Sequence[str]) -> int:
    """With `--check` nothing is written, and the exit status says whether the page is up to date."""
    page = PAGE.read_text()
    drawn = redrawn(page, tidy.read(ROOT / "src", ROOT / "src" / tidy.PACKAGE))
    if "--check" in arguments:
        return int(drawn != page)
    PAGE.write_text(drawn)
    return 0


def redrawn(page: str, modules: tidy.Modules) -> str:
    """The page with the picture as the source is now."""
    return replaced(page, BEGIN, END, picture(modules))


def replaced(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The page with these lines between two marks, each of which it must contain once."""
    if page.count(begin) != 1 or page.count(end) != 1:
        raise PageError(f"the page must contain one line {begin!r} and, below it, one line {end!r}")
    before, _, rest = page.partition(begin)
    told = "\n".join((begin, "", *lines, "", end))
    return f"{before}{told}{rest.partition(end)[2]}"


def picture(modules: tidy.Modules) -> Iterator[str]:
    used = rooms_used(modules)
    yield from flowchart(used, tidy.ROWS, "the whole house")
    yield ""
    yield "| room | packages and modules in it | uses |"
    yield "|---|---|---|"
    for row in tidy.ROWS:
        for room in row:
            if room in used:
                uses = ", ".join(f"`{name}`" for name in sorted(used[room])) or "nothing of ours"
                inside = ", ".join(contents(modules, f"{tidy.PACKAGE}.{room}")) or "one module"
                yield f"| `{room}` | {inside} | {uses} |"
    for package, storeys in tidy.STOREYS.items():
        inner = rooms_used(modules, package)
        yield ""
        yield f"Inside `{package}`:"
        yield ""
        yield from flowchart(inner, storeys, package)


def rooms_used(modules: tidy.Modules, package: str = tidy.PACKAGE) -> Uses:
    """Which room of a package imports which others, wherever the import stands."""
    used: dict[str, set[str]] = {}
    for module in modules.values():
        room = room_in(package, module.name)
        if room:
            found = used.setdefault(room, set())
            names = (room_in(package, name) for _, name in tidy.imports(module, modules))
            found |= {name for name in names if name and name != room}
    return {room: frozenset(names & used.keys()) for room, names in used.items()}


def room_in(package: str, name: str) -> str:
    """The last part of the name of the room that a module is in; empty where it is elsewhere."""
    return tidy.room_in(package, name).rpartition(".")[2]


def contents(modules: tidy.Modules, room: str) -> list[str]:
    """What stands directly in a room: its packages in bold, and where there are none, its modules."""
    inner = sorted({room_in(room, name) for name in modules} - {""})
    packages = [name for name in inner if modules[f"{room}.{name}"].is_package]
    return [f"**{name}**" for name in packages] or [f"`{name}`" for name in inner]


def flowchart(used: Uses, rows: Iterable[Iterable[str]], title: str) -> Iterator[str]:
    """Mermaid: a box for each room, floor by floor, and arrows that are not implied by others."""
    yield "```mermaid"
    yield "flowchart TD"
    yield f"    %% {title}: an arrow from a room to one that it uses; what follows from other arrows is left out"
    for number, row in enumerate(rows):
        here = [room for room in row if room in used]
        if here:
            yield f"    subgraph floor{number}[ ]"
            yield "        direction LR"
            yield from (f"        {room}" for room in here)
            yield "    end"
    for room, others in sorted(reduced(used).items()):
        yield from (f"    {room} --> {other}" for other in sorted(others))
    yield "```"


def reduced(used: Uses) -> Uses:
    """Without the arrows that a longer way implies; those of a ring stay."""
    far = {room: reach(used, room) for room in used}
    return {
        room: frozenset(
            other
            for other in others
            if not any(other in far[one] and room not in far[one] for one in others if one != other)
        )
        for room, others in used.items()
    }


def reach(used: Uses, room: str) -> frozenset[str]:
    seen: set[str] = set()
    left = list(used[room])
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += used.get(name, ())
    return frozenset(seen)


def links(page: str) -> list[str]:
    """Paths of this repository that a page names in backquotes, as `src/godwit/net` or `tools/house.py`."""
    return re.findall(r"`((?:src|tests|tools|docs|benchmarks|examples)/[\w./-]+)`", page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
