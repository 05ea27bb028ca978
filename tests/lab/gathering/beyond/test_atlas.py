"""The ring as arrays: every walk is the real core's, hop by hop."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from godwit.lab.gathering.beyond.atlas import Atlas, Ints
from godwit.lab.gathering.beyond.scale import HOMES, home_names, multicast_sent
from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.broker import GatheringBroker
from godwit.protocols.gathering.maps import generate, sites_of
from godwit.protocols.gathering.messages import Associate
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.topology.pastry.keys import BITS, key_of
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering

WALKS = 400


class Pair:
    """The same map as real cores and as arrays."""

    def __init__(self, brokers: int, bits: int) -> None:
        self.chart = generate(brokers, Random(brokers), phones=0)
        self.atlas = Atlas(self.chart.sites, bits)
        gathering = self.gathering = Gathering(1, Rules(recheck_s=0.0, ring=RingOptions(bits=bits)))
        gathering.deploy(self.chart.sites)
        self.cores: list[GatheringBroker] = [gathering.brokers[site.name] for site in self.chart.sites]
        self.index = {site.name: at for at, site in enumerate(self.chart.sites)}

    def by_key(self, start: int, key: int) -> list[int]:
        path, at = [], start
        while (way := self.cores[at].ring.next_hop(key_of(key))) is not None:
            at = self.index[way.name]
            path.append(at)
        return path

    def by_place(self, start: int, place: tuple[float, ...]) -> list[int]:
        path, at, level = [], start, 0
        while (cut := self.cores[at].cell.first_not_owned(place, level)) is not None:
            prefix = self.cores[at].cell.sibling_prefix(cut)
            at = self.index[self.cores[at].ring.nodes_with_prefix(prefix)[0].name]
            path.append(at)
            level = cut + 1
        return path


def paths(start: Ints, steps: list[Ints]) -> list[list[int]]:
    """Each walk without the rounds in which it stood still."""
    found: list[list[int]] = [[] for _ in start]
    before = start
    for step in steps:
        for walk in np.flatnonzero(step != before):
            found[walk].append(int(step[walk]))
        before = step
    return found


@pytest.mark.parametrize(("brokers", "bits"), [(10, 1), (60, 2), (300, 4), (1000, 4)])
@pytest.mark.feature("data-gathering F40")
def test_walks_in_arrays_are_the_walks_of_real_cores(brokers: int, bits: int) -> None:
    pair, dice = Pair(brokers, bits), Random(3)
    start = np.array([dice.randrange(brokers) for _ in range(WALKS)])
    keys = [dice.getrandbits(BITS) for _ in start]
    found = paths(start, list(pair.atlas.to_keys(start, np.array([key >> 64 for key in keys], np.uint64))))
    assert found == [pair.by_key(at, key) for at, key in zip(start.tolist(), keys, strict=True)]
    places = [(dice.uniform(0, 100), dice.uniform(0, 100)) for _ in start]
    found = paths(start, list(pair.atlas.to_places(start, np.array(places))))
    assert found == [pair.by_place(at, place) for at, place in zip(start.tolist(), places, strict=True)]


def test_boxes_links_and_touched_cells_are_those_of_the_cores() -> None:
    pair, dice = Pair(200, 4), Random(5)
    centers = np.array([(dice.uniform(0, 100), dice.uniform(0, 100)) for _ in range(50)])
    boxes = [core.cell.box() for core in pair.cores]
    wanted = [sum(Disc((x, y), 3.0).meets(box) for box in boxes) for x, y in centers.tolist()]
    assert pair.atlas.cells_of(centers, 3.0).tolist() == wanted
    assert pair.atlas.links().tolist() == [len(core.ring.nodes_with_prefix("")) for core in pair.cores]


def test_a_name_too_long_for_the_arrays_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 64 bits"):
        Atlas(sites_of((f"b{at}", (2.0**-at, 0.0)) for at in range(70)))


def test_one_registration_at_three_homes_is_sent_as_often_as_by_real_cores() -> None:
    pair = Pair(300, 4)
    gathering = pair.gathering
    start = np.array([at * 7 % 300 for at in range(40)])
    for client, at in enumerate(start.tolist()):
        pair.cores[at].mobility.associate("nobody", Associate(str(client), 1))
    gathering.underlay.attached["nobody"] = None
    gathering.run_for(5.0)
    keys = home_names(0, 40)
    assert keys.shape == (40, HOMES)
    assert multicast_sent(pair.atlas, start, keys) == gathering.underlay.sent["Register"]
