"""How much brokers tell: each strategy against flooding, and what each costs."""

from __future__ import annotations

import pytest

from godwit.lab.relocation.networks import WIRINGS, Network, Wiring, routed, wants
from godwit.protocols.routing.covering.configurations import Configuration
from godwit.protocols.routing.covering.strategies import Strategy
from godwit.tables.merging.aggregate import Mergeable

TREES = range(6)
RESTLESS = 34
"""The one tree of a hundred."""
pytestmark = pytest.mark.feature("content-routing F16")


@pytest.mark.parametrize("strategy", Strategy)
def test_every_strategy_delivers_what_flooding_would(strategy: Strategy) -> None:
    for seed in TREES:
        assert not routed(WIRINGS[f"subscriptions, {strategy}"], seed).bad, seed


@pytest.mark.parametrize(
    ("strategy", "messages"),
    [
        (Strategy.FLOODING, 0),
        (Strategy.SIMPLE, 4),
        (Strategy.IDENTITY, 3),
        (Strategy.COVERING, 2),
        (Strategy.MERGING, 2),
    ],
)
def test_each_tells_as_much_as_it_says(strategy: Strategy, messages: int) -> None:
    """Two brokers; three clients of one want 0-9, 2-3, and 2-3 again; a fourth wants 5-14, which merges."""
    network = Network([("a", "b")], WIRINGS[f"subscriptions, {strategy}"], 1)
    for client, wanted in zip("stuv", [wants(0, 9), wants(2, 3), wants(2, 3), wants(5, 14)], strict=True):
        network.subscribe(client, "a", wanted)
    network.settle()
    assert network.messages == messages
    held = [one for one in network.router("b").wanted.table if "a" in network.router("b").wanted.table.interfaces(one)]
    assert (held == [wants(0, 14)]) is (strategy is Strategy.MERGING)


def test_merged_by_equal_ways_as_published_two_peers_may_answer_each_other_for_ever() -> None:
    """What one tells the other hangs on what it was told, so that mergers of the same meaning chase one another.

    Merged for each neighbor by itself, what is told hangs on other links only: in a tree that ends.
    """
    equal = Configuration(strategy=Strategy.MERGING, mergeable=Mergeable.EQUAL)
    assert not routed(Wiring(configuration=equal), RESTLESS).rested
    assert not routed(WIRINGS["subscriptions, merging"], RESTLESS).bad
