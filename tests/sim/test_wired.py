"""Links: in order whatever the latency, until they break."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.worlds import Word, wired


@pytest.mark.feature("mft-pubsub F1")
@given(st.integers(0, 1000), st.lists(st.floats(0, 0.3), min_size=1, max_size=20), st.booleans())
def test_a_link_keeps_the_order_under_any_latency(seed: int, gaps_s: list[float], narrow: bool) -> None:
    world, links, nodes = wired("ab", seed)
    links.connect("a", "b", lambda dice: dice.expovariate(5.0), bytes_per_s=50.0 if narrow else None)
    time = 0.0
    for number, gap in enumerate(gaps_s):
        time += gap
        world.engine.at(time, partial(world.nodes["a"].send, "b", Word(number)))
    world.run()
    assert nodes["b"].numbers == list(range(len(gaps_s)))


def test_what_is_sent_at_once_queues_for_the_bandwidth() -> None:
    world, links, nodes = wired("ab")
    links.connect("a", "b", 0.5, bytes_per_s=100.0)
    for number in range(3):
        world.nodes["a"].send("b", Word(number, length_b=20))
    world.run()
    assert [time for time, _, _ in nodes["b"].heard] == pytest.approx([0.7, 0.9, 1.1])


def test_a_break_loses_what_is_in_flight_and_a_healed_link_starts_afresh() -> None:
    world, links, nodes = wired("ab")
    links.connect("a", "b", 1.0, bytes_per_s=1.0)
    world.nodes["a"].send("b", Word(1, length_b=100))
    world.run(0.5)
    links.cut("a", "b")
    world.nodes["a"].send("b", Word(2))
    assert links.neighbors("a") == []
    links.heal("a", "b")
    world.nodes["a"].send("b", Word(3, length_b=1))
    world.run()
    assert nodes["b"].heard == [(2.5, "a", 3)]


def test_a_broadcast_reaches_every_neighbor_and_nobody_else() -> None:
    world, links, nodes = wired("abcd")
    links.connect("a", "b")
    links.connect("a", "c")
    links.connect("c", "d")
    links.cut("a", "c")
    world.nodes["a"].broadcast(Word(1))
    world.nodes["c"].broadcast(Word(2))
    world.nodes["a"].send("d", Word(3))
    world.run()
    assert {name: listener.numbers for name, listener in nodes.items()} == {"a": [], "b": [1], "c": [], "d": [2]}
    assert links.sent == {("a", "Word"): 1, ("c", "Word"): 1}
    assert links.sent_b == {"a": 10, "c": 10}
    assert links.received == 2


def test_a_lossy_link_loses_its_share_and_a_stuttering_one_says_things_twice() -> None:
    world, links, nodes = wired("ab")
    links.connect("a", "b")
    links.links["a"]["b"].loss = 0.25
    links.links["b"]["a"].duplication = 0.25
    for number in range(2000):
        world.nodes["a"].send("b", Word(number))
        world.nodes["b"].send("a", Word(number))
    world.run()
    assert 1400 < len(nodes["b"].heard) < 1600
    assert nodes["b"].numbers == sorted(set(nodes["b"].numbers))
    assert 2400 < len(nodes["a"].heard) < 2600
    assert nodes["a"].numbers == sorted(nodes["a"].numbers)
    assert set(nodes["a"].numbers) == set(range(2000))


def test_links_roll_dice_of_their_own() -> None:
    def heard(others: str) -> list[int]:
        world, links, nodes = wired("ab" + others)
        for other in others:
            links.connect("a", other)
            links.links["a"][other].loss = 0.5
        links.connect("a", "b")
        links.links["a"]["b"].loss = 0.5
        for number in range(50):
            world.nodes["a"].broadcast(Word(number))
        world.run()
        return nodes["b"].numbers

    assert heard("") == heard("cde")
