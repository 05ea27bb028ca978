"""What goes wrong goes wrong when told to, and is in the trace."""

from __future__ import annotations

import pytest
from tests.sim.worlds import Listener, Word, on_air, wired

from godwit.sim.faults import Faults
from godwit.sim.mobility import Still
from godwit.sim.radio import CC2420
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import World


def ring(names: str) -> tuple[World, Wired, dict[str, Listener], Faults, Trace]:
    world, links, nodes = wired(names)
    trace = world.recorder = Trace()
    for here, there in zip(names, names[1:] + names[0], strict=True):
        links.connect(here, there)
    return world, links, nodes, Faults(world), trace


def test_a_partition_cuts_every_link_between_sides_and_none_within() -> None:
    _, links, _, faults, trace = ring("abcd")
    faults.partition("ab", "cd")
    assert [links.neighbors(name) for name in "abcd"] == [["b"], ["a"], ["d"], ["c"]]
    faults.merge("ab", "cd")
    assert sorted(links.neighbors("a")) == ["b", "d"]
    assert trace.counts == {"cut": 2, "heal": 2}


def test_three_sides_are_all_apart() -> None:
    _, links, _, faults, _ = ring("abc")
    faults.partition("a", "b", "c")
    assert [links.neighbors(name) for name in "abc"] == [[], [], []]


def test_crash_and_restart_are_noted_with_what_became_of_the_disk() -> None:
    world, _, nodes, faults, trace = ring("abc")
    world.nodes["a"].disk["t"] = 4
    faults.crash("a")
    world.nodes["b"].send("a", Word(1))
    world.run(1.0)
    faults.restart("a", keep_disk=False)
    assert nodes["a"].heard == []
    assert world.nodes["a"].disk == {}
    assert [(row[2], row[10]) for row in trace.rows] == [("crashed", ""), ("restarted", "empty disk")]


def test_a_clock_can_be_made_fast_or_slow_and_jump_but_never_goes_back() -> None:
    world, _, _, faults, trace = ring("abc")
    node = world.nodes["a"]
    world.run(10.0)
    faults.skew("a", rate=2.0, offset_s=5.0)
    assert node.now() == 15.0
    world.run(20.0)
    assert node.now() == 35.0
    faults.skew("a", rate=0.5)
    assert node.now() == 35.0
    world.run(30.0)
    assert node.now() == 40.0
    assert world.nodes["b"].now() == 30.0
    assert trace.counts == {"skewed": 2}
    for bad in ({"rate": 0.0}, {"rate": -1.0}, {"offset_s": -1.0}):
        with pytest.raises(ValueError, match="forwards"):
            faults.skew("a", **bad)


def test_a_link_can_be_made_to_lose_everything_and_to_say_it_twice() -> None:
    world, _, nodes, faults, trace = ring("abc")
    faults.lose("a", "b", loss=1.0)
    faults.lose("b", "c", duplication=1.0)
    world.nodes["a"].send("b", Word(1))
    world.nodes["c"].send("b", Word(2))
    world.run()
    assert nodes["b"].numbers == [2, 2]
    assert trace.counts == {"lossy": 2}
    with pytest.raises(ValueError, match="between 0 and 1"):
        faults.lose("a", "b", loss=1.5)


def test_links_can_only_be_cut_where_there_are_links() -> None:
    world, radio, _ = on_air(CC2420, {"a": (0, 0)})
    radio.field.add("elsewhere", Still(1, 1))
    with pytest.raises(TypeError, match="wired world"):
        Faults(world).partition("a", "b")
