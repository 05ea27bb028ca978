"""A member of the ring that lies: it is not believed, counted and named, and the others keep working."""

from __future__ import annotations

import pytest
from tests.protocols.broker.fabric.ring.test_standins import Case, payloads

from godwit.protocols.broker.messages import Content, Divided, Noted, Owned, Place, Placed, Region
from godwit.protocols.gathering.space import Cell, cut_between
from godwit.protocols.host import NodeId

AHEAD = 10**18


def half(cell: Cell) -> Cell:
    return cell.append(cut_between((0.0, 0.0), (10.0, 10.0)), "1")


def said_of(case: Case, cell: Cell, liar: NodeId) -> Region:
    (region,) = case.ring.fabric(case.matching).regions
    return Region(cell, liar, region.term + 7)


def liar_of(case: Case) -> NodeId:
    """One that has nothing to do with the cell, and holds no replica of its book."""
    return case.ring.others(case.matching, case.here, case.there, *case.holders)[0]


@pytest.mark.parametrize("kind", ["owned", "noted", "divided"])
@pytest.mark.parametrize("part", [False, True])
def test_a_lie_about_a_third_brokers_cell_is_refused_counted_and_named(kind: str, part: bool) -> None:
    case = Case(6)
    ring, run = case.ring, case.ring.cluster.run
    liar = liar_of(case)
    case.publisher.publish("t/x", b"1", 2)
    run(3)
    cell = ring.fabric(case.matching).regions[0].cell
    lie = said_of(case, half(cell) if part else cell, liar)
    kinds: dict[str, Content] = {
        "owned": Owned(0, (lie,)),
        "noted": Noted(1, (lie,)),
        "divided": Divided(0, (lie,)),
    }
    before = {name: ring.fabric(name).counts.refused for name in (case.here, case.there)}
    for name in before:
        ring.fabric(liar).send((name,), kinds[kind])
    run(4)
    for name in before:
        assert ring.fabric(name).counts.refused == before[name] + 1
        assert liar not in {one.owner for one in ring.fabric(name).atlas.regions.values() if one.prefix == lie.prefix}
    case.publisher.publish("t/x", b"2", 2)
    run(3)
    assert payloads(case.subscriber) == [b"1", b"2"]


def test_what_a_newcomer_says_of_its_own_cell_is_believed_once_the_old_owner_has_confirmed_it() -> None:
    case = Case()
    ring = case.ring
    (region,) = ring.fabric(case.matching).regions
    given = Region(half(region.cell), case.here, region.term + 1)
    ring.fabric(case.matching).gave(given)
    ring.fabric(case.matching).atlas.replace(region, (given,))
    ring.fabric(case.here).send((case.there,), Owned(0, (given,)))
    ring.cluster.run(1)
    assert ring.fabric(case.there).atlas.regions.get(given.prefix) == given
    assert ring.fabric(case.there).counts.refused == 0


def test_a_broker_that_does_not_answer_loses_its_cell_to_whoever_says_so() -> None:
    """Else nobody could learn of a stand-in from anybody else."""
    case = Case()
    ring = case.ring
    (region,) = ring.fabric(case.matching).regions
    ring.cluster.crash(case.matching)
    claim = Region(region.cell, case.holders[0], region.term + 1)
    ring.fabric(case.here).send((case.there,), Owned(0, (claim,)))
    ring.cluster.run(5)
    assert ring.fabric(case.there).atlas.regions[region.prefix].owner == case.holders[0]


def test_who_says_that_a_session_is_at_a_third_broker_is_refused_by_that_ones_word() -> None:
    case = Case(6)
    ring, run = case.ring, case.ring.cluster.run
    liar = next(name for name in ring.others(case.here) if name not in ring.fabric(case.here).homes("s"))
    third = ring.others(case.here, liar)[0]
    broker = ring.cluster.sites[case.here].broker
    session = broker.sessions["s"]
    lie = Placed(third, Place("s", session.standing.epoch + 5))
    ring.fabric(liar).send((case.here,), lie)
    run(4)
    assert broker.sessions["s"] is session
    assert broker.counts.refused["untrue"] == 1
    case.publisher.publish("t/x", b"1", 2)
    run(3)
    assert payloads(case.subscriber) == [b"1"]


def test_nobody_can_claim_a_session_for_ever() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    for name in ring.others(case.there):
        ring.fabric(case.there).send((name,), Place("s", AHEAD))
    run(4)
    broker = ring.cluster.sites[case.here].broker
    assert "s" in broker.sessions
    assert broker.counts.refused["untrue"] == 1
    case.publisher.publish("t/x", b"1", 2)
    run(3)
    assert payloads(case.subscriber) == [b"1"]
