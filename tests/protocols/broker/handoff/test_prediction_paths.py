"""Where a session came from: what it remembers of that, and what copies make of it."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.handoff.copies import AWAY_S, Handoff
from godwit.protocols.broker.handoff.prediction import BEFORES_MAX, HABITS, Neighbors, Paths
from godwit.protocols.broker.store import MemoryStore
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, World


def walked(world: World, first: str, *others: str) -> Client:
    """A subscriber that was at each of them."""
    walker = Client(world, "s").connect(first).subscribe("a/#", qos=1)
    for at in others:
        world.run()
        walker.drop()
        world.run()
        walker.connect(at)
    world.run()
    walker.drop()
    world.run()
    return walker


@pytest.mark.parametrize("handoff", ["proactive", "reactive"])
def test_a_session_remembers_the_broker_where_its_client_was_before(handoff: Handoff) -> None:
    world = Even(3, handoff=handoff)
    walked(world, "b1", "b2", "b3", "b1")
    assert {name: site.neighbors.befores for name, site in world.sites.items()} == {
        "b1": [""],
        "b2": ["b1"],
        "b3": ["b2"],
    }
    assert world.sites["b1"].broker.sessions["s"].standing.came_from == "b3"


@pytest.mark.parametrize("handoff", ["proactive", "reactive"])
def test_it_remembers_that_over_a_crash(handoff: Handoff) -> None:
    world = Even(3, handoff=handoff)
    walker = walked(world, "b1", "b2")
    world.sites["b2"].crash()
    world.run()
    world.sites["b2"].start()
    world.run()
    walker.connect("b3")
    world.run()
    assert world.sites["b2"].neighbors.befores == ["b1"]


def test_whoever_could_not_wait_for_its_session_came_from_there_all_the_same() -> None:
    world = Even(3, handoff="reactive", session_wait_s=1.0)
    walker = walked(world, "b1")
    world.sites["b1"].crash()
    walker.connect("b2")
    world.run()
    assert walker.presents[-1] is False
    assert world.sites["b2"].broker.sessions["s"].standing.came_from == "b1"


@pytest.mark.parametrize(("away_s", "before"), [(AWAY_S / 2, "b1"), (AWAY_S * 2, "")])
def test_a_short_absence_leaves_the_way_and_a_long_one_ends_it(away_s: float, before: str) -> None:
    world = Even(3, handoff="proactive")
    walker = walked(world, "b1", "b2")
    world.run(away_s)
    walker.connect("b2")
    world.run()
    walker.drop()
    walker.connect("b3")
    world.run()
    assert world.sites["b2"].neighbors.befores == [before]


def at_once(call: Callable[[], None]) -> None:
    call()


@pytest.mark.feature("proactive-handoff F11")
def test_on_a_ring_of_brokers_copies_go_ahead_of_those_who_walk_round_it() -> None:
    """Half walk one way, half the other. Going by use alone each broker would have to serve both neighbors."""
    world = Even(5, handoff="proactive")
    options = msgspec.structs.replace(HABITS, mass=0.7)
    known = {name: Neighbors(name, MemoryStore({}, at_once), world.clock, options) for name in world.names}
    for name, site in world.sites.items():
        site.broker._moves.copying.neighbors = known[name]
    walkers = [Client(world, f"w{at}").connect(f"b{at}").subscribe("a/#", qos=1) for at in range(1, 5)]
    for hop in range(1, 30):
        for number, walker in enumerate(walkers):
            walker.drop()
            world.run(0.5)
            walker.connect(world.names[(number + (hop if number % 2 else -hop)) % 5])
            world.run(0.5)
    later = [one.accuracy() for one in known.values()]
    assert sum(one.handoffs for one in later) > 100
    for one in known.values():
        for before in (name for name in known if name != one.graph.own and one.paths.alike(name, world.clock())):
            (ahead,) = one.likely(before)
            assert ahead != before
    assert sum(one.hit_rate * one.handoffs for one in later) / sum(one.handoffs for one in later) > 0.8


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.floats(0, 100)), max_size=60),
    st.sampled_from([10.0, 1000.0, inf]),
)
def test_counts_are_those_of_single_moves_each_faded_by_its_age(
    moves: list[tuple[str, str, float]], half_life_s: float
) -> None:
    paths, now_s, told = Paths(half_life_s), 0.0, []
    for before, to, later_s in moves:
        now_s += later_s
        paths.learn(before, to, now_s)
        told.append((before, to, now_s))
    for before in "abcd":
        found = paths.alike(before, now_s)
        for to in "xyz":
            wanted = sum(2 ** ((at_s - now_s) / half_life_s) for b, t, at_s in told if (b, t) == (before, to))
            # What has faded away is dropped, and was next to nothing.
            assert found.get(to, 0.0) == pytest.approx(wanted, abs=0.2)


def test_the_commonest_origins_are_kept_where_there_are_too_many() -> None:
    paths = Paths(inf)
    for at in range(10 * BEFORES_MAX):
        paths.learn("regular", "x", float(at))
        paths.learn(f"stranger {at}", "x", float(at))
    assert len(paths.as_of("x", 0.0)) <= BEFORES_MAX
    assert paths.alike("regular", 0.0) == {"x": 10.0 * BEFORES_MAX}
