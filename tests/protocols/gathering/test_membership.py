"""Brokers that join a running ring: nothing is missed, nothing comes back, everybody agrees who owns what."""

from __future__ import annotations

from random import Random

import pytest
from tests.protocols.gathering.worlds import QUIET, grown, holders, install, owners, publish, stored, touched

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.clients import home_keys
from godwit.protocols.gathering.membership import STAGES, Stage, Step
from godwit.protocols.gathering.messages import Ready, Unsub
from godwit.protocols.host import LocalError
from godwit.protocols.topology.pastry.keys import apart, number_of
from godwit.protocols.topology.pastry.node import PastryNode
from godwit.sim.ring.gathering import Gathering

pytestmark = pytest.mark.feature("data-gathering F8")


def agreed_leaves(gathering: Gathering) -> bool:
    """By brute force: everybody's leaves are the four nearest on either side."""
    numbers = sorted(broker.number for broker in gathering.brokers.values())
    for broker in gathering.brokers.values():
        at = numbers.index(broker.number)
        around = {numbers[(at + step) % len(numbers)] for step in range(-4, 5)} - {broker.number}
        assert isinstance(broker.ring, PastryNode)
        if {known.number for known in broker.ring.leaves.members()} != around:
            return False
    return True


@pytest.mark.parametrize(("brokers", "seed"), [(8, 1), (24, 2), (40, 3), (64, 4)])
@pytest.mark.feature("data-gathering F43")
def test_brokers_that_joined_one_by_one_divide_space_and_know_their_leaves(brokers: int, seed: int) -> None:
    gathering, facts = grown(brokers, seed)
    dice = Random(seed)
    names = sorted(gathering.brokers)
    assert all(broker.is_member for broker in gathering.brokers.values())
    assert agreed_leaves(gathering)
    for number in range(25):
        area = Disc((dice.uniform(0, 100), dice.uniform(0, 100)), dice.uniform(0, 20))
        sid = f"c#{number}"
        install(gathering, dice.choice(names), area, sid)
        copies = stored(facts, sid)
        assert len(copies) == len(set(copies))
        assert touched(gathering, area) <= set(copies)
        facts.clear()
        place = (dice.uniform(0, 100), dice.uniform(0, 100))
        publish(gathering, dice.choice(names), place, number)
        assert facts.nodes("matched") == owners(gathering, place)
        gathering.brokers[dice.choice(names)].dissemination.take(Unsub(sid, area, "c"))
        gathering.run_for(5.0)
        assert holders(gathering, sid) == set()


def test_a_newcomer_takes_the_subscriptions_of_its_half_and_the_owner_keeps_only_its_own() -> None:
    gathering, _ = grown(6, 5)
    dice = Random(5)
    areas = {f"c#{at}": Disc((dice.uniform(0, 100), dice.uniform(0, 100)), 8.0) for at in range(40)}
    for sid, area in areas.items():
        install(gathering, "b0", area, sid)
    gathering.join("new", (31.0, 64.0), "b2")
    gathering.run_for(10.0)
    assert gathering.brokers["new"].is_member
    for sid, area in areas.items():
        assert touched(gathering, area) <= holders(gathering, sid)
    owner = next(
        b for b in gathering.brokers.values() if b.cell.prefix == gathering.brokers["new"].cell.prefix[:-1] + "0"
    )
    box = owner.cell.box()
    assert all(one.area.meets(box) for one in owner.store)


def test_registrations_move_from_every_leaf_whose_keys_the_newcomer_gets() -> None:
    gathering, _ = grown(20, 7)
    for number in range(60):
        gathering.phone(f"p{number}")
        gathering.attach(f"p{number}", sorted(gathering.brokers)[number % 20])
    gathering.run_for(10.0)
    before = {name: {entry.client for entry in broker.care_of} for name, broker in gathering.brokers.items()}
    dice = Random(7)
    for number in range(6):
        gathering.join(f"new{number}", (dice.uniform(0, 100), dice.uniform(0, 100)), "b00")
        gathering.run_for(10.0)
    assert sum(map(len, before.values())) > 60
    for number in range(60):
        client = f"p{number}"
        for key in home_keys(client, QUIET.homes):
            wanted = number_of(key)
            home = min(gathering.brokers.values(), key=lambda broker: (apart(broker.number, wanted), broker.number))
            assert home.care_of.get(client) is not None, (client, home.host.name)


def test_two_newcomers_in_one_cell_are_let_in_one_after_the_other() -> None:
    gathering, _ = grown(3, 9)
    gathering.join("x", (10.0, 10.0), "b0")
    gathering.join("y", (12.0, 80.0), "b1")
    gathering.join("z", (11.0, 11.0), "b2")
    gathering.run_for(60.0)
    assert all(gathering.brokers[name].is_member for name in "xyz")
    for place in [(x, y) for x in range(0, 100, 7) for y in range(0, 100, 7)]:
        assert len(owners(gathering, place)) == 1
    assert agreed_leaves(gathering)


def test_a_newcomer_at_the_place_of_a_broker_is_refused_and_told_why() -> None:
    gathering, facts = grown(3, 9)
    gathering.join("twin", gathering.brokers["b1"].place, "b0")
    gathering.run_for(30.0)
    assert gathering.brokers["twin"].membership.stage is Stage.OUTSIDE
    refusals = [record.note for _, node, record in facts.rows if record.kind == "refused" and node == "twin"]
    assert len(refusals) == 1
    assert "two different places" in refusals[0]


def test_an_owner_forgets_a_newcomer_that_died_on_the_way_and_serves_the_next() -> None:
    gathering, _ = grown(3, 9)
    gathering.join("x", (10.0, 10.0), "b0")
    gathering.run_for(0.15)
    gathering.crash("x")
    gathering.run_for(2 * QUIET.split_s)
    gathering.join("y", (10.0, 12.0), "b0")
    gathering.run_for(30.0)
    assert gathering.brokers["y"].is_member
    assert len(owners(gathering, (10.0, 11.0))) == 1


def test_a_ready_that_comes_too_late_is_refused_and_the_newcomer_starts_again() -> None:
    gathering, _ = grown(3, 9)
    newcomer = gathering.join("x", (10.0, 10.0), "b0")
    gathering.run_for(0.05)
    late = gathering.underlay
    late.lose = lambda sender, to, message: isinstance(getattr(message, "body", None), Ready)
    gathering.run_for(2 * QUIET.split_s)
    late.lose = None
    gathering.run_for(60.0)
    assert newcomer.is_member
    assert len(owners(gathering, (10.0, 11.0))) == 1


@pytest.mark.parametrize("stage", list(Stage))
def test_every_step_that_is_not_in_the_table_changes_nothing(stage: Stage) -> None:
    gathering, _ = grown(1, 1)
    membership = gathering.brokers["b0"].membership
    for step in Step:
        membership.stage = stage
        assert membership._step(step) == (step in STAGES[stage])
        assert membership.stage is STAGES[stage].get(step, stage)


def test_joining_twice_or_through_nobody_is_refused() -> None:
    gathering, _ = grown(2, 1)
    with pytest.raises(LocalError, match="a broker that is member cannot join"):
        gathering.brokers["b0"].join("b1")
    with pytest.raises(LocalError, match="name at least one"):
        gathering.brokers["b0"].join()
