"""A world is what its seed makes of it; a node is its core, its timers, its clock and its disk."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.worlds import Beacon, Listener, Word, wired

from godwit.protocols.host import Message, NodeId, Record, RemoteError
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import CC2420, Radio
from godwit.sim.recorder import Trace
from godwit.sim.world import Node, World

ROOT = Path(__file__).resolve().parents[2]


class Noting(Beacon):
    """A beacon that traces what it hears."""

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self.host.trace(Record("heard", peer=sender))


def beaconing(seed: int, nodes: int, seconds: float = 10.0) -> Trace:
    trace = Trace()
    world = World(seed, partial(Radio, profile=CC2420), trace)
    assert isinstance(world.medium, Radio)
    for number in range(nodes):
        walk = Waypoint(width_m=80, height_m=80, speed_mps=(1.0, 10.0))
        world.medium.place(f"n{number}", walk)
        world.add(f"n{number}", Noting)
    world.run(seconds)
    return trace


def digest(seed: int = 5, nodes: int = 12) -> str:
    return beaconing(seed, nodes).digest


@pytest.mark.feature("mft-pubsub F33")
def test_the_same_seed_makes_the_same_trace_and_another_seed_another() -> None:
    assert digest() == digest()
    assert digest() != digest(seed=6)


@pytest.mark.feature("mft-pubsub F33")
def test_the_trace_does_not_depend_on_how_python_hashes_today() -> None:
    program = "from tests.sim.test_world import digest; print(digest())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout.strip()
        for hash_seed in ("1", "77")
    }
    assert printed == {digest()}


def test_a_node_more_shifts_nobody_elses_dice() -> None:
    def positions(nodes: int) -> list[tuple[float, float]]:
        world = World(3, Radio)
        assert isinstance(world.medium, Radio)
        for number in reversed(range(nodes)):
            world.medium.place(f"n{number}", Waypoint(width_m=50, height_m=50, speed_mps=(1.0, 2.0)))
        x, y = world.medium.field.positions(100.0)
        return list(zip(x.tolist(), y.tolist(), strict=True))

    assert positions(5) == positions(9)[4:]
    one, more = (World(3, Radio), World(3, Radio))
    more.add("n0", Beacon)
    assert one.add("n7", Beacon).random.random() == more.add("n7", Beacon).random.random()


def test_a_crash_takes_the_core_and_its_timers_and_leaves_the_disk() -> None:
    world, links, nodes = wired("ab")
    links.connect("a", "b", 0.1)
    fired: list[str] = []
    node = world.nodes["b"]
    node.disk["boots"] = 1
    node.after(2.0, lambda: fired.append("old"))
    world.nodes["a"].send("b", Word(1))
    world.run(0.05)
    node.crash()
    assert not node.alive
    world.nodes["a"].send("b", Word(2))
    world.run(1.0)
    before = nodes["b"]
    node.restart()
    node.after(2.0, lambda: fired.append("new"))
    world.nodes["a"].send("b", Word(3))
    world.run(10.0)
    assert before.heard == []
    assert nodes["b"] is not before
    assert nodes["b"].numbers == [3]
    assert fired == ["new"]
    assert node.disk == {"boots": 1}
    node.restart(keep_disk=False)
    assert node.disk == {}


def test_old_words_do_not_reach_the_next_life_over_a_link() -> None:
    world, links, nodes = wired("ab")
    links.connect("a", "b", 1.0)
    world.nodes["a"].send("b", Word(1))
    world.nodes["b"].send("a", Word(2))
    world.run(0.5)
    world.nodes["b"].restart()
    world.run()
    assert nodes["a"].numbers == nodes["b"].numbers == []


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_skewed_clock_measures_delays_in_its_own_seconds(rate: float, delay_s: float) -> None:
    world, _, _ = wired("a")
    node = world.nodes["a"]
    node.clock_rate = rate
    asked, fired = node.now(), list[float]()
    node.after(delay_s, lambda: fired.append(node.now()))
    world.run()
    assert fired[0] - asked == pytest.approx(delay_s)
    assert world.engine.now == pytest.approx(delay_s / rate)


def test_a_peer_that_breaks_the_protocol_is_noted_and_the_world_goes_on() -> None:
    class Strict(Listener):
        def receive(self, sender: NodeId, message: Message, /) -> None:
            raise RemoteError("what was that?")

    trace = Trace()
    world, links, _ = wired("a")
    world.recorder = trace
    world.add("b", Strict)
    links.connect("a", "b")
    world.nodes["a"].send("b", Word())
    world.run()
    ((_, node, kind, *_, peer, message, _, _, note),) = trace.rows
    assert (node, kind, peer, message, note) == ("b", "refused", "a", "Word", "what was that?")


def test_a_name_is_given_once() -> None:
    world, _, _ = wired("a")
    with pytest.raises(ValueError, match="a node 'a' already"):
        world.add("a", Listener)


def test_a_core_is_given_the_node_as_its_host() -> None:
    seen: list[Node] = []

    def start(node: Node) -> Listener:
        seen.append(node)
        return Listener(node)

    world, _, _ = wired("")
    assert world.add("z", start) is seen[0]
