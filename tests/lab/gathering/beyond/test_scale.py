"""Growth in arrays: homes are those of the real cores, and counts add up."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from godwit.lab.gathering.beyond.churn import Churn, survived
from godwit.lab.gathering.beyond.growth import Scaled, drawn, scale_page
from godwit.lab.gathering.beyond.scale import HOMES, grown
from godwit.lab.pages import markdown
from godwit.lab.provenance import Provenance
from godwit.protocols.gathering.clients import home_keys
from godwit.protocols.gathering.maps import generate
from godwit.protocols.topology.pastry.keys import number_of
from godwit.protocols.topology.pastry.peers import preference
from godwit.sim.streams import Streams


@pytest.mark.feature("data-gathering F40")
def test_home_entries_are_those_that_brute_force_finds() -> None:
    found = grown(60, 500)
    numbers = [number_of(site.key) for site in generate(60, Streams(1).stream("map", 60), phones=0).sites]
    homes: Counter[int] = Counter()
    for client in range(500):
        for key in home_keys(str(client), HOMES):
            homes[min(numbers, key=lambda number: preference(number, number_of(key)))] += 1
    assert found.homes_max == max(homes.values())
    assert found.homes_none == pytest.approx(1 - len(homes) / 60)
    assert found.homes_mean == pytest.approx(500 * HOMES / 60)


def test_real_brokers_join_crash_and_hand_over_without_a_loss() -> None:
    found = survived(Churn(brokers=60, joins=8, crashes=2, phones=10, handoffs=40))
    assert (found.joined, found.taken_over, found.owners_wrong) == (8, 2, 0)
    assert found.received == found.wanted > 0
    scaled = Scaled(command="godwit lab gathering --scale", made=Provenance(), sizes=[grown(60, 500)], survived=found)
    text = markdown(scale_page(scaled))
    assert "| notices received | 40 |" in text
    assert drawn([grown(60, 500)]).startswith(b"\x89PNG")


def test_maps_of_one_seed_are_one_map() -> None:
    assert generate(20, Random(1), phones=0) == generate(20, Random(1), phones=0)
