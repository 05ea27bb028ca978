"""A simulated disk keeps whole turns, and fails as disks do."""

from __future__ import annotations

from random import Random

import pytest

from godwit.sim.brokers.disk import SimStore, Wear
from godwit.sim.wired import Wired
from godwit.sim.world import Node, World


class Idle:
    def receive(self, sender: str, message: object, /) -> None: ...


def disk() -> tuple[World, Node, Wear, SimStore]:
    world = World(1, Wired)
    node = world.add("b1", lambda node: Idle())
    wear = Wear(0.01, Random(1))
    return world, node, wear, SimStore(node.disk.setdefault("disk", {}), node, wear)


def rows(node: Node) -> set[str]:
    return {owner for owner, _ in node.disk["disk"].get("meta", {})}


@pytest.mark.parametrize(("after", "left"), [(False, {"a"}), (True, {"a", "b", "c"})])
def test_a_crash_at_a_write_leaves_all_of_a_turn_or_nothing(after: bool, left: set[str]) -> None:
    world, node, wear, store = disk()
    told: list[str] = []
    wear.strike_in, wear.strike_after, wear.on_strike = 2, after, node.crash
    store.put("meta", "a", 0, b"1")
    store.settled(lambda: told.append("a"))
    world.run(1.0)
    store.put("meta", "b", 0, b"1")
    store.put("meta", "c", 0, b"1")
    store.settled(lambda: told.append("b"))
    world.run(2.0)
    assert rows(node) == left
    assert told == ["a"]  # of the second nobody was told, durable or not
    assert not node.alive


def test_a_full_disk_keeps_everybody_waiting_until_there_is_room() -> None:
    world, node, wear, store = disk()
    told: list[float] = []
    wear.full_until_s = 5.0
    store.put("meta", "a", 0, b"1")
    store.settled(lambda: told.append(world.engine.now))
    world.run(4.9)
    assert not told
    assert rows(node) == set()
    world.run(6.0)
    assert told
    assert rows(node) == {"a"}


def test_a_slow_disk_is_slow_for_as_long_as_it_is() -> None:
    world, _, wear, store = disk()
    told: list[float] = []
    wear.slow_s, wear.slow_until_s = 0.5, 1.2
    for _ in range(2):
        begun_s = world.engine.now
        store.put("meta", "a", 0, b"1")
        store.settled(lambda begun_s=begun_s: told.append(world.engine.now - begun_s))  # type: ignore[misc]
        world.run(world.engine.now + 2.0)
    assert told[0] > 1.0 > 0.1 > told[1]


def test_a_witness_is_told_what_is_durable_and_starts_no_write() -> None:
    world, _, wear, store = disk()
    seen: list[str] = []
    store.when_durable(lambda: seen.append("nothing to write"))
    assert seen == ["nothing to write"]
    store.put("meta", "a", 0, b"1")
    store.when_durable(lambda: seen.append("a"))
    assert seen == ["nothing to write"]
    world.run(1.0)
    assert seen == ["nothing to write", "a"]
    assert wear.writes == 1
