"""What came with a cell stays beside what a broker says, until that knows whose the cell is."""

from __future__ import annotations

from collections.abc import Iterable

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.ring.book import Book
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import BookEntry, Region, Wanted
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.broker.topics import meaning
from godwit.protocols.gathering.areas import meets
from godwit.protocols.gathering.space import WHOLE, cut_between

CUT = cut_between((-90.0, 0.0), (90.0, 0.0))
SPACE = Region(WHOLE, "m", 1)
LOW, HIGH = Region(WHOLE.append(CUT.opposite(), "0"), "m", 2), Region(WHOLE.append(CUT, "1"), "m", 2)
A, B = meaning("a/#"), meaning("b/#")
"""By their hashes `a` is in the upper half, and `b` in the lower."""


def part(region: Region, filters: Iterable[Filter]) -> tuple[Filter, ...]:
    return tuple(one for one in filters if any(meets(region.cell, at) for at in Targets().of_filter(one)))


def book(disk: Disk) -> Book:
    return Book(MemoryStore(disk, lambda call: call()), part, 0.0)


def inherited(disk: Disk) -> Book:
    one = book(disk)
    one.inherit(HIGH, [BookEntry("n", 6, (A, B))])
    return one


def test_of_another_book_counts_what_concerns_the_cell() -> None:
    assert inherited({}).wanted == {"n": (A,)}


def test_who_does_not_know_of_the_cell_takes_nothing_back_by_what_it_says() -> None:
    one = inherited({})
    one.hear("n", 1, Wanted(5, (B,), cells=("0",)), 1.0)
    assert one.wanted == {"n": (B, A)}
    assert one.statement("n") == 5, "what came with the cell was not said to this broker"
    one.hear("n", 1, Wanted(6, None, cells=("0",)), 2.0)
    assert one.wanted == {"n": (B, A)}


def test_who_knows_of_the_cell_has_said_all() -> None:
    one = inherited({})
    one.hear("n", 1, Wanted(7, (B,), cells=("0", "1")), 1.0)
    assert one.wanted == {"n": (B,)}
    one = inherited({})
    one.hear("n", 1, Wanted(7, (B,), cells=("",)), 1.0)
    assert one.wanted == {"n": (B,)}, "it takes more for this broker's than the cell"


def test_who_knows_of_a_part_of_the_cell_has_not_said_all() -> None:
    one = book({})
    one.inherit(SPACE, [BookEntry("n", 6, (A, B))])
    one.hear("n", 1, Wanted(7, (A,), cells=("1",)), 1.0)
    assert set(one.wanted["n"]) == {A, B}


def test_a_crash_takes_nothing_of_it() -> None:
    disk: Disk = {}
    inherited(disk).store.settled(lambda: None)
    assert book(disk).wanted == {"n": (A,)}


def test_of_a_cell_that_is_gone_or_cut_only_what_is_left_is_kept() -> None:
    one = book({})
    one.inherit(SPACE, [BookEntry("n", 6, (A, B))])
    one.review([LOW])
    assert one.wanted == {"n": (B,)}
    one.review([])
    assert one.wanted == {}
