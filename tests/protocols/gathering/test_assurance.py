"""A client that was told that its subscription is in place loses nothing when the broker that had it fails."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.gathering.worlds import MORTAL, chart, holders, install, world

from godwit.protocols.gathering.areas import Disc, walk
from godwit.protocols.gathering.assurance import complete
from godwit.protocols.gathering.phone import Phone
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.messages import Hop
from godwit.sim.ring.gathering import Gathering

ASSURED = msgspec.structs.replace(MORTAL, assured=True, replicate_s=1000.0)
"""Copies by the clock come too late for these tests: only what is copied at once helps."""


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(0, 10_000), st.floats(0.5, 40.0), st.booleans())
def test_the_cells_that_a_walk_ends_in_are_complete_and_without_one_of_them_they_are_not(
    brokers: int, seed: int, radius: float, exact: bool
) -> None:
    dice = Random(seed)
    cells = [site.cell for site in chart(brokers, seed).sites]
    area = Disc((dice.uniform(0, 100), dice.uniform(0, 100)), radius)
    wanted = [cell for cell in cells if walk(cell, area, 0, exact=exact).stays]
    assert complete(area, wanted, exact=exact)
    assert complete(area, cells, exact=exact)
    missing = dice.choice(wanted)
    assert not complete(area, [cell for cell in wanted if cell is not missing], exact=exact)


def test_an_answer_from_before_a_split_counts_for_both_halves() -> None:
    sites = chart(8, 3).sites
    area = Disc((50.0, 50.0), 80.0)
    cells = [site.cell for site in sites]
    whole = [cell for cell in cells if not cell.prefix.startswith("0")]
    first = msgspec.structs.replace(cells[0], prefix="0", boundaries=cells[0].boundaries[:1])
    assert complete(area, [first, *whole])
    assert complete(area, [first, *cells])


class Town:
    """A phone, a sensor, and brokers that answer."""

    def __init__(self, seed: int, *, brokers: int = 16) -> None:
        self.gathering, self.facts = world(brokers, seed, ASSURED)
        self.dice = Random(seed)
        self.names = sorted(self.gathering.brokers)
        self.phone = self._phone("ada", self.names[seed % brokers])
        self.sensor_at = self.names[(seed + brokers // 2) % brokers]
        self.sensor = self._phone("sensor", self.sensor_at)

    def _phone(self, name: NodeId, at: NodeId) -> Phone:
        phone = self.gathering.phone(name)
        self.gathering.attach(name, at)
        self.gathering.run_for(0.5)
        return phone

    def until_granted(self, sid: str) -> None:
        for _ in range(400):
            if sid in self.phone.granted:
                return
            self.gathering.run_for(0.05)
        raise AssertionError("it is never told")


@pytest.mark.feature("data-gathering F33")
@pytest.mark.parametrize("seed", range(8))
def test_what_was_granted_outlives_the_broker_that_had_it(seed: int) -> None:
    town = Town(seed)
    gathering = town.gathering
    place = (town.dice.uniform(10, 90), town.dice.uniform(10, 90))
    sid = town.phone.subscribe("t", Disc(place, 8.0))
    town.until_granted(sid)
    assert town.phone.granted == {sid: True}
    victim = next(name for name, broker in gathering.brokers.items() if broker.cell.owns_all(place))
    assert victim not in (town.names[seed % 16], town.sensor_at), "the phone or the sensor would lose its own broker"
    gathering.crash(victim)
    gathering.run_for(40.0)
    town.sensor.publish("t", place)
    gathering.run_for(10.0)
    assert len(town.phone.history()) == 1


def test_without_copies_at_once_a_failed_broker_takes_subscriptions_along() -> None:
    lost = 0
    for seed in range(6):
        gathering, _ = world(16, seed, msgspec.structs.replace(ASSURED, assured=False))
        place = (50.0, 50.0)
        owner = next(name for name, broker in gathering.brokers.items() if broker.cell.owns_all(place))
        other = next(name for name in sorted(gathering.brokers) if name != owner)
        install(gathering, other, Disc(place, 1.0))
        gathering.crash(owner)
        gathering.run_for(40.0)
        lost += not holders(gathering) & set(gathering.brokers)
    assert lost > 0


def test_a_cancelled_subscription_does_not_come_back_with_a_stand_in() -> None:
    town = Town(3)
    gathering, place = town.gathering, (40.0, 40.0)
    sid = town.phone.subscribe("t", Disc(place, 5.0))
    town.until_granted(sid)
    town.phone.unsubscribe(sid)
    gathering.run_for(5.0)
    for name, broker in list(gathering.brokers.items()):
        if broker.cell.owns_all(place) and name not in (town.names[3], town.sensor_at):
            gathering.crash(name)
    gathering.run_for(40.0)
    assert holders(gathering, sid) == set()


def test_where_somebody_stays_silent_the_client_is_told_so_after_a_while() -> None:
    town = Town(5)
    gathering = town.gathering
    place = (70.0, 20.0)
    owner = next(name for name, broker in gathering.brokers.items() if broker.cell.owns_all(place))

    def mute(sender: NodeId, to: NodeId, message: Message) -> bool:
        return isinstance(message, Hop) and type(getattr(message.body, "body", None)).__name__ == "Stored"

    gathering.underlay.lose = mute
    sid = town.phone.subscribe("t", Disc(place, 1.0))
    gathering.run_for(ASSURED.assured_s / 2)
    if town.names[5] != owner:
        assert sid not in town.phone.granted
    town.until_granted(sid)
    assert town.phone.granted == {sid: town.names[5] == owner}


def _joined_meanwhile(gathering: Gathering, dice: Random, number: int) -> None:
    place = (dice.uniform(0, 100), dice.uniform(0, 100))
    gathering.join(f"new{number}", place, dice.choice(sorted(gathering.brokers)))


@pytest.mark.feature("data-gathering F8")
@pytest.mark.parametrize("seed", range(4))
def test_cells_that_split_meanwhile_leave_no_subscription_ungranted(seed: int) -> None:
    town = Town(seed, brokers=8)
    sids = []
    for number in range(6):
        _joined_meanwhile(town.gathering, town.dice, number)
        town.gathering.run_for(town.dice.uniform(0.0, 0.4))
        sids.append(town.phone.subscribe("t", Disc((town.dice.uniform(0, 100), 50.0), 30.0)))
        town.gathering.run_for(town.dice.uniform(0.0, 0.4))
    town.gathering.run_for(60.0)
    assert town.phone.granted == dict.fromkeys(sids, True)
    assert all(broker.assurance.unsettled == 0 for broker in town.gathering.brokers.values())
