"""How far one thing travels through the code: `python -m tools.walk [NAME ...] [--hops | --page]`.

Each walk runs one small thing and records every call of a function of godwit: how many calls, functions and files, and
how often one call is in another file than the call before it. A reader makes the same changes of file. With `--page`
the figures and the files of all walks go into docs/architecture.md; `tests/test_walk.py` wants them there.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from tools.house import PAGE, ROOT, replaced

import godwit
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, Trees, World

BEGIN, END = "<!-- counted by tools/walk.py: begin -->", "<!-- counted by tools/walk.py: end -->"
SOURCE = f"{Path(godwit.__file__).parent}/"
WORLD = ("sim/brokers/", "sim/engine.py", "sim/streams.py", "protocols/broker/store.py", "protocols/broker/steady.py")
"""What stands for the network, the disk and the clock where the broker runs in the simulator: it is not walked."""
MACHINE = "tables/compiled/doors.py"
"""Machine code that numba compiled is entered through it; what was compiled ahead has no such door."""
SYNTHETIC = ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""They stand in the function that is being read anyway."""

Hop = tuple[str, str]
"""A file below src/godwit, and a function in it."""


class Figures(NamedTuple):
    calls: int
    functions: int
    files: int
    changes: int
    """How often one call is in another file than the call before it."""


class Trail:
    """What was called while it was open, in order; and how often a broker wrote which row before the first delivery."""

    def __init__(self, world: tuple[str, ...] = WORLD) -> None:
        self.world = world
        """Files that are not walked through."""
        self.hops: list[Hop] = []
        self.rows: list[str] = []
        """The tables that were written to, until the client gets something."""
        self._delivered = False

    @contextmanager
    def follow(self) -> Iterator[None]:
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_name == "deliver":
            self._delivered = True
        if not code.co_filename.startswith(SOURCE) or code.co_name in SYNTHETIC:
            return
        name = code.co_filename.removeprefix(SOURCE)
        if code.co_name == "put" and name.endswith("broker/store.py") and not self._delivered:
            self.rows.append(frame.f_locals["table"])
        if name != MACHINE and not name.startswith(self.world):
            self.hops.append((name, code.co_qualname))

    def figures(self) -> Figures:
        changes = sum(one[0] != other[0] for one, other in pairwise(self.hops))
        return Figures(len(self.hops), len(set(self.hops)), len(self.files()), changes)

    def files(self) -> list[str]:
        """In the order in which they were first entered."""
        return list(dict.fromkeys(file for file, _ in self.hops))


def publication() -> Trail:
    """QoS 2, from a client of one broker to a client of another, over the tree."""
    world, subscriber, publisher = _pair(Trees)
    trail = Trail()
    with trail.follow():
        publisher.publish("a/x", b"1", qos=2)
        _run_until(world, lambda: bool(subscriber.got))
    return trail


def handoff() -> Trail:
    """A client shows its token at a broker that holds a copy of its session, and gets what waited."""
    world, subscriber, publisher = _pair(Even, handoff="proactive", token=True)
    subscriber.drop()
    world.run()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    trail = Trail()
    with trail.follow():
        subscriber.connect("b3")
        world.run(1)
    assert subscriber.payloads == [b"1"], "the walk of the handoff did not arrive"
    return trail


def match() -> Trail:
    """What a Spark worker does with one event; reading and shipping are Spark's."""
    import pyarrow as pa

    from godwit.filters.text import parse
    from godwit.pipeline.match.deliveries import SEEN, SUBSCRIPTION, UNREADABLE, _Matcher
    from godwit.pipeline.match.parts import Part, Shipped
    from godwit.tables.matching.index import Index

    index = Index()
    index.add(0, parse("speed > 10 AND kind = 'taxi'"))
    part = Part(index, pa.array(["s"]))
    names = ["key", SUBSCRIPTION, SEEN, UNREADABLE]
    matcher = _Matcher((Shipped(_Here(part)),), names, ["speed", "kind"], 256)
    batch = pa.record_batch({"key": [1], "speed": [12.0], "kind": ["taxi"]})
    list(matcher.match_part(0, batch))
    trail = Trail()
    with trail.follow():
        found = list(matcher.match_part(0, batch))
    assert ["s"] in [one for batch in found for one in batch.column(1).to_pylist()], (
        "the walk of the match found nothing"
    )
    return trail


def lab() -> Trail:
    """One run of the handoff laboratory, as short as it goes; its engine is part of it."""
    from godwit.lab.handoff.runs import Configuration, run

    times_s = {"warmup_s": 1, "measure_s": 2.0, "connect_s": 2.0, "disconnect_s": 1.0, "handoff_s": 0.5}
    configuration = Configuration(scheme="ours", seed=1, subscribers=2, **times_s)  # type: ignore[arg-type]
    trail = Trail(world=())
    with trail.follow():
        run(configuration)
    return trail


class _Here:
    """A parcel that is here already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def load(self) -> Any:
        return self._value

    def forget(self) -> None:
        pass


WALKS: dict[str, Callable[[], Trail]] = {"publication": publication, "handoff": handoff, "match": match, "lab": lab}


def _pair(kind: type[World], *, token: bool = False, **more: Any) -> tuple[World, Client, Client]:
    """A subscriber at b1 and a publisher at b2 of three brokers that all know each other."""
    world = kind(3, **more)
    world.run(20)
    subscriber = Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    subscriber.keeps_token = token
    publisher = Client(world, "p").connect("b2")
    world.run(20)
    return world, subscriber, publisher


def _run_until(world: World, is_over: Callable[[], bool]) -> None:
    while not is_over():
        world.run(0.001)


def _told(hops: Sequence[Hop]) -> Iterator[str]:
    """One line for each stay in a file."""
    for file, stay in groupby(hops, key=lambda hop: hop[0]):
        yield f"  {file}: {', '.join(function for _, function in stay)}"


def block(trails: dict[str, Trail]) -> Iterator[str]:
    """What docs/architecture.md says of the walks."""
    yield "| walk | what is walked | calls | functions | files | changes of file |"
    yield "|---|---|---|---|---|---|"
    for name, trail in trails.items():
        about = (WALKS[name].__doc__ or "").strip().replace("\n    ", " ")
        yield f"| {name} | {about} | {' | '.join(f'{figure:,}' for figure in trail.figures())} |"
    for name, trail in trails.items():
        yield ""
        yield f"The files of *{name}*, in the order in which they are first entered:"
        yield from (f"`{file}`," for file in trail.files()[:-1])
        yield f"`{trail.files()[-1]}`."


def counted(page: str) -> dict[str, Figures]:
    """The figures that a page shows, by walk."""
    rows = re.findall(rf"^\| ({'|'.join(WALKS)}) \| [^|]* \| (.*) \|$", page, re.MULTILINE)
    return {name: Figures(*(int(one.replace(",", "")) for one in told.split(" | "))) for name, told in rows}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The way of one thing through the code, and how long it is.")
    parser.add_argument("walks", nargs="*", metavar="WALK", help=f"of {', '.join(WALKS)}; all without")
    parser.add_argument("--hops", action="store_true", help="print every hop too")
    parser.add_argument("--page", action="store_true", help=f"write all walks into {PAGE.relative_to(ROOT)}")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.walks if name not in WALKS]
    if unknown:
        parser.error(f"there is no walk {unknown[0]!r}; there are {', '.join(WALKS)}")
    if asked.page and asked.walks:
        parser.error("--page is about all walks: name none")
    trails: dict[str, Trail] = {}
    print(f"{'walk':<12} {'calls':>7} {'functions':>10} {'files':>6} {'changes of file':>16}")
    for name in asked.walks or WALKS:
        trails[name] = trail = WALKS[name]()
        calls, functions, files, changes = trail.figures()
        note = f"   session rows before the first delivery: {trail.rows.count('sessions')}" if name == "handoff" else ""
        print(f"{name:<12} {calls:>7} {functions:>10} {files:>6} {changes:>16}{note}")
        for line in _told(trail.hops) if asked.hops else ():
            print(line)
    if asked.page:
        PAGE.write_text(replaced(PAGE.read_text(), BEGIN, END, block(trails)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
