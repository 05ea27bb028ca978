"""What a broker tells the owners of cells: all of it to who is to turn, unless owners are known by their own word."""

from __future__ import annotations

from random import Random

import pytest

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.ring.atlas import Atlas
from godwit.protocols.broker.fabric.ring.statements import Statements
from godwit.protocols.broker.fabric.ring.targets import Targets, of_level
from godwit.protocols.broker.messages import Noted, Region, Wanted
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.broker.topics import meaning
from godwit.protocols.gathering.areas import meets
from godwit.protocols.gathering.space import Cell, cut_between
from godwit.protocols.host import NodeId
from godwit.sim.brokers.site import SimHost
from godwit.sim.engine import Engine

CUT = cut_between((0.0, 0.0), (10.0, 0.0))
LEFT, RIGHT = Cell("0", (CUT.opposite(),)), Cell("1", (CUT,))
NAMES = [f"t{number}" for number in range(40)]
ON_THE_LEFT = next(name for name in NAMES if meets(LEFT, of_level(name)))
ON_THE_RIGHT = next(name for name in NAMES if meets(RIGHT, of_level(name)))


def wanting(*levels: str) -> tuple[Filter, ...]:
    return tuple(meaning(f"{level}/#") for level in levels)


class Told:
    """A broker that believes that `a` has the left half and `b` the right one."""

    def __init__(self, disk: Disk | None = None) -> None:
        self.disk: Disk = {} if disk is None else disk
        self.engine = Engine()
        host = SimHost("me", self.engine, Random(1))
        store = MemoryStore(self.disk, lambda call: host.after(0.001, call))
        self.said: list[tuple[NodeId, Wanted, bool]] = []
        atlas = Atlas(store, "me")
        self.left, self.right = Region(LEFT, "a", 2), Region(RIGHT, "b", 2)
        atlas.put(self.left)
        atlas.put(self.right)
        self.statements = Statements(host, store, atlas, Targets(), self._say, {}, lambda: True)
        self.statements.start()

    def _say(self, to: NodeId, wanted: Wanted, durable: bool) -> None:
        self.said.append((to, wanted, durable))

    def note(self, broker: NodeId, *regions: Region) -> None:
        self.statements.on_noted(broker, Noted(self.statements.stated[broker].statement, regions))

    def last(self, broker: NodeId) -> tuple[Wanted, bool]:
        return [(wanted, durable) for to, wanted, durable in self.said if to == broker][-1]

    def settle(self) -> None:
        self.engine.run(until=self.engine.now + 0.01)


def test_who_is_to_turn_is_told_all_while_it_may_have_more_cells_than_is_known() -> None:
    told = Told()
    statement = told.statements.want(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    assert told.last("a")[0].filters == wanting(ON_THE_LEFT)
    assert told.statements.before_turn("a", statement)
    assert told.last("a")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)
    assert told.statements.before_turn("c", statement)
    assert told.last("c")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)


def test_who_matches_nothing_is_told_nothing_once_owners_have_said_themselves_what_they_have() -> None:
    told = Told()
    statement = told.statements.want(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    told.note("a", told.left)
    told.note("b", told.right)
    said = len(told.said)
    assert told.statements.before_turn("a", statement)
    assert not told.statements.before_turn("c", statement)
    assert len(told.said) == said


def test_an_owner_that_names_another_one_is_not_certain_to_have_its_cell() -> None:
    told = Told()
    statement = told.statements.want(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    told.note("a", told.left)
    told.note("b", Region(RIGHT, "c", 3))
    assert told.statements.before_turn("a", statement)
    assert told.last("a")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)


def test_a_withdrawal_is_not_durable_on_its_way_and_kept_until_it_is_noted() -> None:
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT))
    told.note("a", told.left)
    told.said.clear()
    told.statements.want(())
    assert [(to, wanted.filters, durable) for to, wanted, durable in told.said] == [("a", (), False)]
    assert "a" in told.statements.stated
    assert told.statements.sources(wanting(ON_THE_LEFT)) == set()
    told.note("a", told.left)
    assert "a" not in told.statements.stated
    told.settle()
    assert not any(owner.startswith("stated ") for owner, _ in told.disk["ring"])


@pytest.mark.parametrize("restarts", ["me", "the owner"])
def test_a_withdrawal_that_was_lost_is_said_again(restarts: str) -> None:
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT))
    before = told.statements.stated["a"].statement
    told.note("a", told.left)
    told.statements.want(())
    told.settle()
    if restarts == "me":
        told = Told(told.disk)
    else:
        told.said.clear()
        told.statements.on_noted("a", Noted(before, (told.left,)))
    assert told.last("a")[0].filters == ()


def test_a_statement_that_was_written_and_may_not_have_left_is_made_in_full_after_a_crash() -> None:
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT))
    told.settle()
    again = Told(told.disk)
    assert again.last("a")[0].filters == wanting(ON_THE_LEFT)


def test_nothing_is_withdrawn_from_a_broker_that_calls_a_cell_its_own_while_another_is_believed_to_have_it() -> None:
    """It may have stood in for that one, which is asked at this moment."""
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    told.statements.before_turn("b", told.statements.numbers.last)
    assert told.last("b")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)
    told.note("a", told.left)
    told.note("b", told.right, Region(LEFT, "b", 3))
    told.statements.review()
    assert told.last("b")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)
    told.note("b", told.right)
    assert told.last("b")[0].filters == wanting(ON_THE_RIGHT)


def named() -> Told:
    """It knows `b` as the owner of the right half by that one's own word; `a` is said to be late there."""
    told = Told()
    told.statements.want(wanting(ON_THE_RIGHT))
    told.note("b", told.right)
    told.statements.name(["a"])
    return told


def test_who_may_be_late_is_told_all_before_it_turns_and_is_a_source_from_then_on() -> None:
    told = named()
    statement = told.statements.want(wanting(ON_THE_RIGHT))
    assert told.statements.is_certain(wanting(ON_THE_RIGHT))
    assert told.statements.before_turn("a", statement)
    assert told.last("a")[0].filters == wanting(ON_THE_RIGHT)
    assert "a" in told.statements.sources(wanting(ON_THE_RIGHT))
    assert told.statements.late_of(["a", "b", "c"]) == ("a",)
    told.statements.review()
    assert told.last("a")[0].filters == wanting(ON_THE_RIGHT)


def test_who_may_be_late_is_no_source_any_longer_once_it_has_said_what_it_has() -> None:
    told = named()
    told.statements.before_turn("a", told.statements.numbers.last)
    told.note("a", told.left, Region(RIGHT, "a", 1))
    assert told.statements.late_of(["a"]) == ("a",), "it does not know yet that the right half is another's"
    told.note("a", told.left)
    assert told.statements.late_of(["a"]) == ()
    assert told.last("a")[0].filters == (), "so nothing is wanted of it"


def test_who_may_be_late_is_no_source_any_longer_once_it_has_told_its_book() -> None:
    told = named()
    told.statements.before_turn("a", told.statements.numbers.last)
    told.note("a", told.left, Region(RIGHT, "a", 1))
    told.statements.settled("a")
    assert told.statements.late_of(["a"]) == ()


def test_who_may_be_late_is_still_after_a_crash() -> None:
    told = named()
    told.statements.before_turn("a", told.statements.numbers.last)
    told.settle()
    assert Told(told.disk).statements.late_of(["a"]) == ("a",)


def test_who_may_be_late_in_one_cell_is_told_all_also_where_it_has_another() -> None:
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT))
    told.note("a", told.left)
    told.statements.late("a")
    statement = told.statements.want(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    told.note("b", told.right)
    assert told.statements.is_certain(wanting(ON_THE_LEFT, ON_THE_RIGHT))
    assert told.statements.before_turn("a", statement)
    assert told.last("a")[0].filters == wanting(ON_THE_LEFT, ON_THE_RIGHT)


def test_who_may_be_late_is_asked_at_once_where_it_was_told_something_before() -> None:
    """It may have known for long, and have told all who were in its book then."""
    told = Told()
    told.statements.want(wanting(ON_THE_LEFT))
    told.note("a", told.left)
    before = told.statements.stated["a"].statement
    told.statements.late("a")
    told.statements.on_noted("a", Noted(before, (told.left,)))
    assert told.statements.late_of(["a"]) == ("a",)
    assert told.last("a")[0].statement > before
    told.note("a", told.left)
    assert told.statements.late_of(["a"]) == ()
