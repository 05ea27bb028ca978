"""Networks like those of the published evaluation: connected, of the right size, with delays that follow distance."""

from __future__ import annotations

from random import Random

import pytest

from godwit.lab.relocation.topologies import DELAY_MAX_S, generate
from godwit.protocols.topology.graphs import path

pytestmark = pytest.mark.feature("content-routing F40")


@pytest.mark.parametrize("brokers", [4, 32, 100])
def test_a_topology_is_a_tree_of_all_brokers_within_the_longest_delay(brokers: int) -> None:
    topology = generate(brokers, Random(3))
    assert len(topology.names) == brokers
    assert len(topology.tree) == brokers - 1
    assert set(topology.border) | set(topology.inner) == set(topology.names)
    assert not set(topology.border) & set(topology.inner)
    longest = max(delay for row in topology.direct_s.values() for delay in row.values())
    assert longest == pytest.approx(DELAY_MAX_S)
    for name in topology.names[:10]:
        ways = path(topology.hops, topology.names[0], name)
        assert topology.between(topology.names[0], name) == max(0, len(ways) - 2)


def test_the_same_dice_give_the_same_network() -> None:
    assert generate(20, Random(1)) == generate(20, Random(1))
    assert generate(20, Random(1)).tree != generate(20, Random(2)).tree
