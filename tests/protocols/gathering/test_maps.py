"""Maps from a seed: everything a run needs, the same every time, and complete tables."""

from __future__ import annotations

import math
from random import Random

import msgspec
import pytest

from godwit.protocols.gathering.maps import Map, generate, known_peers
from godwit.protocols.topology.pastry.keys import number_of

pytestmark = pytest.mark.feature("data-gathering F7")


def test_a_seed_decides_brokers_starts_and_publisher_and_a_map_can_be_written_down() -> None:
    chart = generate(24, Random(4))
    assert chart == generate(24, Random(4))
    assert chart != generate(24, Random(5))
    assert (len(chart.sites), len(chart.starts), len(chart.publisher)) == (24, 32, 2)
    assert msgspec.json.decode(msgspec.json.encode(chart), type=Map) == chart


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_every_cell_of_a_complete_table_has_the_nearest_candidate(bits: int) -> None:
    sites = generate(40, Random(bits)).sites
    known = known_peers(sites, bits, 8)
    for site in sites:
        own = format(number_of(site.key), "0128b")
        names = {peer.name for peer in known[site.name]}
        cells: dict[str, list[str]] = {}
        for other in sites:
            theirs = format(number_of(other.key), "0128b")
            if other is not site:
                row = next(at for at in range(128 // bits) if own[: bits * (at + 1)] != theirs[: bits * (at + 1)])
                cells.setdefault(theirs[: bits * (row + 1)], []).append(other.name)
        places = {other.name: other.place for other in sites}
        for candidates in cells.values():
            assert min(candidates, key=lambda name: math.dist(site.place, places[name])) in names
        assert site.name not in names


def test_one_broker_knows_nobody_and_two_know_each_other() -> None:
    assert known_peers(generate(1, Random(1)).sites, 4, 8) == {"b0": []}
    assert {
        name: {p.name for p in peers} for name, peers in known_peers(generate(2, Random(1)).sites, 4, 8).items()
    } == {
        "b0": {"b1"},
        "b1": {"b0"},
    }
