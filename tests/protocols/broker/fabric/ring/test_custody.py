"""What has no matching broker waits, in its order, and survives a crash if it is durable."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.fabric.ring.custody import Custody, Kept, Passes, way_of
from godwit.protocols.broker.fabric.ring.targets import Targets, of_level
from godwit.protocols.broker.messages import Pass, Region, Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.gathering.areas import Spot, meets
from godwit.protocols.gathering.space import WHOLE, cut_between


def custody(disk: Disk) -> Custody:
    return Custody(MemoryStore(disk, lambda call: call()), Targets())


def routed(number: int, topic: str, qos: int = 1, hops: int = 0) -> Routed:
    return Routed(Publication("p", number, topic, qos=qos), hops=hops)


def kept(of: Custody) -> list[int]:
    return [sequence_of(one) for one in of]


def sequence_of(one: Kept) -> int:
    assert isinstance(one.content, Routed)
    return one.content.publication.sequence


def test_what_cannot_go_keeps_back_its_own_kind_only() -> None:
    one = custody({})
    for number, topic in enumerate(("a/1", "b/1", "a/2", "b/2")):
        one.add(routed(number, topic), of_level(topic[0]))
    gone: list[int] = []

    def goes(item: Kept) -> bool:
        sequence = sequence_of(item)
        if sequence != 0:
            gone.append(sequence)
        return sequence != 0

    one.release(goes)
    assert gone == [1, 3]
    assert kept(one) == [0, 2]
    assert one.precedes(of_level("a"))
    assert not one.precedes(of_level("b"))


def test_a_crash_leaves_what_is_durable_in_its_order() -> None:
    disk: Disk = {}
    one = custody(disk)
    for number, qos in enumerate((1, 0, 2)):
        one.add(routed(number, "a/x", qos), of_level("a"))
    one.store.settled(lambda: None)
    assert kept(custody(disk)) == [0, 2]


def test_it_knows_what_is_kept_of_a_publisher() -> None:
    one = custody({})
    one.add(routed(0, "a/x"), of_level("a"))
    one.add(Routed(Publication("q", 0, "a/x", qos=1)), of_level("a"))
    one.add(passed(1), way_of(HIGH))
    assert [(said.publisher, said.sequence) for said in one.said_by("p")] == [("p", 0)]


def test_however_much_waits_for_one_target_only_the_oldest_is_asked_for() -> None:
    one = custody({})
    for number in range(1_000):
        one.add(routed(number, "a/x"), of_level("a"))
    asked: list[int] = []

    def stays(item: Kept) -> bool:
        asked.append(sequence_of(item))
        return False

    one.release(stays)
    assert asked == [0]
    assert list(one.targets()) == [of_level("a")]
    assert len(one) == 1_000


def test_where_more_would_wait_than_may_the_oldest_of_its_kind_is_dropped() -> None:
    disk: Disk = {}
    one = Custody(MemoryStore(disk, lambda call: call()), Targets(), bytes_max=500)
    one.add(routed(0, "b/x"), of_level("b"))
    dropped = sum(one.add(routed(number, "a/x"), of_level("a")) for number in range(1, 100))
    one.store.settled(lambda: None)
    assert dropped == 99 - (len(one) - 1) > 50
    assert kept(one) == [0, *range(100 - (len(one) - 1), 100)]
    assert kept(custody(disk)) == kept(one)
    assert one.bytes <= 500
    one.release(lambda item: True)
    assert (one.bytes, len(one)) == (0, 0)


def test_what_waits_in_one_cell_keeps_nothing_back_in_another() -> None:
    one = Custody(MemoryStore({}, lambda call: call()), Targets(), lambda spot: "1" if spot.place[0] > 0 else "0")
    west, east = Spot((-5.0, 0.0)), Spot((5.0, 0.0))
    one.add(routed(0, "a/x"), west)
    assert one.precedes(Spot((-6.0, 0.0)))
    assert not one.precedes(east)


class World:
    """Cells of a line, cut ever further; where `known` is 0 nobody knows any."""

    def __init__(self) -> None:
        self.known = 1

    def cell_of(self, spot: Spot) -> str:
        return bits(spot)[: self.known]


def bits(spot: Spot) -> str:
    return format(int(spot.place[0]), "03b")


spots = st.integers(0, 7).map(lambda at: Spot((float(at), 0.0)))
adding = st.tuples(st.just("add"), st.one_of(spots, st.sampled_from("ab").map(of_level)), st.integers(0, 3))
passing = st.tuples(st.just("pass"), st.just(0), st.just(0))
cutting = st.tuples(st.just("cut"), st.integers(0, 3), st.just(0))
releasing = st.tuples(st.just("release"), st.frozensets(st.sampled_from(["a", "b", "pass", *range(8)])), st.just(0))


@given(st.lists(st.one_of(adding, passing, cutting, releasing), max_size=30))
def test_nothing_overtakes_what_waits_for_its_target_and_nothing_waits_in_vain(steps: list[Any]) -> None:
    """Beside a list of all that waits, which is looked at from the oldest on."""
    world = World()
    one = Custody(MemoryStore({}, lambda call: call()), Targets(), world.cell_of)
    waiting: list[Kept] = []
    for step, what, hops in steps:
        if step == "cut":
            world.known = max(world.known, what) if world.known else what
        elif step == "release":
            waiting = released(one, waiting, what)
        else:
            content = passed(0) if step == "pass" else routed(0, "a/x", hops=hops)
            one.add(content, way_of(HIGH) if step == "pass" else what)
            waiting.append(max(one, key=lambda kept: kept.number))
        assert list(one) == waiting
        assert len(one) == len(waiting)


def released(one: Custody, waiting: list[Kept], is_open: frozenset[object]) -> list[Kept]:
    gone: list[Kept] = []

    def may_go(kept: Kept) -> bool:
        if name_of(kept) in is_open:
            gone.append(kept)
        return name_of(kept) in is_open

    one.release(may_go)
    stay = [kept for kept in waiting if kept not in gone]
    for kept in gone:
        assert not [older for older in stay if older.number < kept.number and keeps_back(older, kept)]
    for kept in stay:
        older = [other for other in stay if other.number < kept.number]
        same_line = [other for other in older if isinstance(kept.target, Spot) and isinstance(other.target, Spot)]
        assert name_of(kept) not in is_open or same_line or any(keeps_back(other, kept) for other in older)
    return stay


def keeps_back(older: Kept, kept: Kept) -> bool:
    """Where that must be. What has a place may also wait for what was in one cell with it."""
    if isinstance(kept.content, Pass):
        return older.content.hops > 0 and (isinstance(older.content, Pass) or meets(HIGH.cell, older.target))
    return not isinstance(older.content, Pass) and older.target == kept.target


def name_of(kept: Kept) -> object:
    if isinstance(kept.content, Pass):
        return "pass"
    return int(kept.target.place[0]) if isinstance(kept.target, Spot) else "ab"[kept.target == of_level("b")]


CUT = cut_between((-90.0, 0.0), (90.0, 0.0))
SPACE, HIGH = Region(WHOLE, "o", 1), Region(WHOLE.append(CUT, "1"), "x", 2)
"""The topics that begin with `a` are in it, and those with `b` are not."""


def passed(ticket: int) -> Pass:
    return Pass("n", ticket, "x", hops=1, region=HIGH)


def test_what_is_passed_waits_behind_all_that_others_sent_for_its_cell() -> None:
    disk: Disk = {}
    one = custody(disk)
    said_here, sent_here = routed(1, "a/x"), routed(3, "a/x", hops=1)
    for content in (routed(0, "b/x", hops=1), said_here, passed(2), sent_here, passed(4)):
        one.add(content, way_of(HIGH) if isinstance(content, Pass) else of_level(content.publication.topic[0]))
    one.store.settled(lambda: None)
    one = custody(disk)
    assert one.has_for_others(HIGH)
    one.release(lambda item: isinstance(item.content, Pass))
    assert [kept.content for kept in one] == [routed(0, "b/x", hops=1), said_here, sent_here, passed(4)]


def test_what_clients_say_here_keeps_nothing_back_that_others_pass() -> None:
    one = custody({})
    one.add(routed(0, "a/x"), of_level("a"))
    assert not one.has_for_others(HIGH)
    one.add(passed(1), way_of(HIGH))
    assert one.has_for_others(HIGH)


def test_what_others_pass_goes_where_that_went_for_which_this_one_waits_itself() -> None:
    one = Passes(MemoryStore({}, lambda call: call()))
    assert one.way(HIGH) == ""
    one.sends(SPACE)
    one.begin(HIGH, 1)
    assert one.way(HIGH) == "o"
    assert one.way(SPACE) == "", "what others sent for the rest of it may have gone elsewhere"


def test_a_cell_that_changes_hands_again_is_passed_the_way_that_publications_went() -> None:
    disk: Disk = {}
    one = Passes(MemoryStore(disk, lambda call: call()))
    assert one.begin(HIGH, 1) == "", "nothing was sent to anybody"
    one.sends(SPACE)
    assert one.begin(HIGH, 1) == "o"
    again = Region(HIGH.cell, "y", 3)
    assert one.begin(again, 2) == "o", "nothing was sent to x"
    one.store.settled(lambda: None)
    one = Passes(MemoryStore(disk, lambda call: call()))
    assert one.closes(again)
    one.end(lambda passing: passing.ticket == 1)
    assert one.closes(again)
    one.end(lambda passing: passing.ticket == 2)
    assert not one.closes(again)


def test_a_part_of_a_cell_waits_for_what_was_sent_to_all_of_it() -> None:
    one = Passes(MemoryStore({}, lambda call: call()))
    one.sends(SPACE)
    one.begin(HIGH, 1)
    cut = cut_between((0.0, -10.0), (0.0, 10.0))
    half = Region(HIGH.cell.append(cut, "1"), "y", 3)
    assert one.closes(half)
    assert one.begin(half, 2) == "o"
    one.end(lambda passing: passing.ticket == 2)
    assert one.closes(half)


def test_what_was_sent_for_a_cell_is_known_when_its_owner_has_less_by_now() -> None:
    one = Passes(MemoryStore({}, lambda call: call()))
    one.sends(SPACE)
    low = Region(WHOLE.append(CUT.opposite(), "0"), "o", 2)
    assert one.begin(low, 1) == "", "it goes the same way"
    one.sends(low)
    assert one.begin(HIGH, 2) == "o", "it was sent to o while that had all"


def test_what_others_have_passed_on_is_told_from_what_came_straight() -> None:
    one = custody({})
    one.add(routed(0, "a/x"), of_level("a"))
    one.add(msgspec.structs.replace(routed(1, "a/x"), hops=1), of_level("a"))
    assert not one.has_passed_on(of_level("a")), "whoever took it sent it here"
    one.add(msgspec.structs.replace(routed(2, "a/x"), hops=2), of_level("a"))
    assert one.has_passed_on(of_level("a"))
    assert not one.has_passed_on(of_level("b"))
