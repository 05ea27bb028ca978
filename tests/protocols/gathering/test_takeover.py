"""Brokers that fail: their regions are served by the node in charge of their names, and given back."""

from __future__ import annotations

from random import Random

import pytest
from tests.protocols.gathering.worlds import MORTAL, Facts, install, publish, touched, world

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.host import NodeId
from godwit.sim.ring.gathering import Gathering

pytestmark = pytest.mark.feature("data-gathering F33")

SETTLE_S = 40.0


def servers(gathering: Gathering, place: tuple[float, float]) -> list[NodeId]:
    """Whoever serves this place, for itself or for a broker that failed."""
    return [
        name
        for name, broker in gathering.brokers.items()
        if any(cell.owns_all(place) for cell in (broker.cell, *broker.takeover.cells()))
    ]


def probe(gathering: Gathering, facts: Facts, dice: Random, round_: int) -> None:
    """From anywhere to anywhere: one server for each place, and it is the one that matches."""
    names = sorted(gathering.brokers)
    for number in range(12):
        place = (dice.uniform(0, 100), dice.uniform(0, 100))
        serving = servers(gathering, place)
        assert len(serving) == 1, (place, serving)
        facts.clear()
        publish(gathering, dice.choice(names), place, 1000 * round_ + number)
        assert facts.nodes("matched") == serving
        area = Disc(place, 6.0)
        sid = f"c#{round_}.{number}"
        install(gathering, dice.choice(names), area, sid)
        holding = {name for name, broker in gathering.brokers.items() if sid in broker.store}
        wanted = touched(gathering, area) | {
            name
            for name, broker in gathering.brokers.items()
            if any(area.meets(cell.box()) for cell in broker.takeover.cells())
        }
        assert wanted <= holding


@pytest.mark.feature("data-gathering F43")
@pytest.mark.feature("data-gathering F9")
@pytest.mark.parametrize(("brokers", "seed"), [(8, 1), (16, 2), (32, 3), (48, 4)])
def test_after_each_of_three_failures_every_place_is_served_once(brokers: int, seed: int) -> None:
    gathering, facts = world(brokers, seed, MORTAL)
    dice = Random(seed)
    gathering.run_for(SETTLE_S)
    for round_ in range(3):
        gathering.crash(dice.choice(sorted(gathering.brokers)))
        gathering.run_for(SETTLE_S)
        probe(gathering, facts, dice, round_)


def test_a_stand_in_that_fails_too_leaves_its_regions_each_to_their_own() -> None:
    gathering, facts = world(24, 5, MORTAL)
    gathering.run_for(SETTLE_S)
    first = sorted(gathering.brokers)[7]
    key = gathering.brokers[first].key
    gathering.crash(first)
    gathering.run_for(SETTLE_S)
    stand_in = next(name for name, broker in gathering.brokers.items() if key in broker.takeover.regions)
    gathering.run_for(SETTLE_S)
    gathering.crash(stand_in)
    gathering.run_for(SETTLE_S)
    probe(gathering, facts, Random(5), 0)
    heir = next(broker for broker in gathering.brokers.values() if key in broker.takeover.regions)
    assert heir.ring.next_hop(key) is None


def test_subscriptions_of_a_failed_broker_still_match_and_are_given_back() -> None:
    gathering, facts = world(16, 6, MORTAL)
    place = (33.0, 66.0)
    victim = servers(gathering, place)[0]
    phone = gathering.phone("ada")
    far = next(name for name in sorted(gathering.brokers) if name != victim)
    gathering.attach("ada", far)
    gathering.run_for(1.0)
    phone.subscribe("t", Disc(place, 3.0))
    gathering.run_for(SETTLE_S)
    cell, key = gathering.brokers[victim].cell, gathering.brokers[victim].key
    gathering.crash(victim)
    gathering.run_for(SETTLE_S)
    publish(gathering, far, place, 1)
    gathering.run_for(5.0)
    assert len(phone.history()) == 1
    gathering.join("again", (place[0] + 0.5, place[1]), far)
    gathering.run_for(SETTLE_S)
    again = gathering.brokers["again"]
    assert (again.key, again.cell) == (key, cell)
    assert all(key not in broker.takeover.regions for broker in gathering.brokers.values())
    facts.clear()
    publish(gathering, far, place, 2)
    assert facts.nodes("matched") == ["again"]
    gathering.run_for(5.0)
    assert len(phone.history()) == 2


def test_a_broker_that_restarts_takes_its_old_place_again() -> None:
    gathering, facts = world(12, 8, MORTAL)
    gathering.run_for(SETTLE_S)
    victim, other = sorted(gathering.brokers)[4:6]
    place = gathering.brokers[victim].place
    key = gathering.brokers[victim].key
    gathering.crash(victim)
    gathering.run_for(2.0)
    node = gathering.node(victim)
    begin = node.start

    def start(host: object) -> object:
        broker = begin(host)  # type: ignore[arg-type]
        broker.join(other)  # type: ignore[attr-defined]
        return broker

    node.start = start  # type: ignore[assignment]
    node.restart()
    gathering.run_for(3 * SETTLE_S)
    assert gathering.brokers[victim].is_member
    assert gathering.brokers[victim].key == key
    probe(gathering, facts, Random(8), 0)
    assert servers(gathering, (place[0], place[1])) == [victim]


def test_what_waited_for_a_client_of_a_failed_broker_reaches_it_elsewhere() -> None:
    gathering, _ = world(16, 9, MORTAL)
    phone = gathering.phone("ada")
    names = sorted(gathering.brokers)
    home, elsewhere, sensor_at = names[2], names[9], names[13]
    gathering.attach("ada", home)
    gathering.run_for(1.0)
    phone.subscribe("t", Disc((50.0, 50.0), 100.0))
    sensor = gathering.phone("sensor")
    gathering.attach("sensor", sensor_at)
    gathering.run_for(1.0)
    gathering.detach("ada")
    for _ in range(4):
        sensor.publish("t", gathering.brokers[sensor_at].place)
        gathering.run_for(1.0)
    gathering.run_for(SETTLE_S)
    gathering.crash(home)
    gathering.run_for(SETTLE_S)
    gathering.attach("ada", elsewhere)
    gathering.run_for(SETTLE_S)
    assert len(phone.history()) == 4
