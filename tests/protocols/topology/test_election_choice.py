"""Sticky, balanced and patient trees against plain first-copy-wins, on the same worlds."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random

import pytest
from tests.protocols.graphs import Electorate, on_air, wired

from godwit.protocols.topology.election import Choice, ElectionOptions, Heartbeat
from godwit.sim.mobility import Still, Waypoint

pytestmark = pytest.mark.feature("mft-pubsub F37")

BROKERS, SIDE_M, RANGE_M = 16, 100.0, 45.0
CHOICES = {
    "first": ElectionOptions(),
    "sticky": ElectionOptions(choice=Choice.STICKY, hold_s=0.05),
    "balanced": ElectionOptions(choice=Choice.BALANCED, hold_s=0.05),
    "patient": ElectionOptions(patience_s=2.5),
}
QUIETER = pytest.mark.parametrize("choice", ["sticky", "balanced", "patient"])


def world(options: ElectionOptions, seed: int, *, moving: bool) -> Electorate:
    dice = Random(seed)
    walk = Waypoint(width_m=SIDE_M, height_m=SIDE_M, speed_mps=(2, 2))
    places = {
        f"b{i:02d}": walk if moving else Still(dice.uniform(0, SIDE_M), dice.uniform(0, SIDE_M)) for i in range(BROKERS)
    }
    return on_air(places, options, range_m=RANGE_M, seed=seed)


@cache
def changes(choice: str, *, moving: bool) -> int:
    """Migrations of all brokers in half a minute, once the tree stands, over three worlds."""
    total = 0
    for seed in range(3):
        electorate = world(CHOICES[choice], seed, moving=moving)
        electorate.run(10)
        before = sum(len(electorate.voter(name).moves) for name in electorate.elections)
        electorate.run(30)
        total += sum(len(electorate.voter(name).moves) for name in electorate.elections) - before
    return total


@QUIETER
def test_where_nobody_moves_hardly_anybody_changes_its_parent(choice: str) -> None:
    assert changes("first", moving=False) > 100
    assert changes(choice, moving=False) == 0


@QUIETER
def test_where_all_move_parents_change_less_than_half_as_often(choice: str) -> None:
    assert changes(choice, moving=True) < changes("first", moving=True) / 2


def families(choice: str, seed: int) -> list[int]:
    """How twelve brokers, each with two ways to the leader, divide between them."""
    names = [f"b{i:02d}" for i in range(3, 15)]
    edges = [("b00", "b01"), ("b00", "b02"), *(("b01", name) for name in names), *(("b02", name) for name in names)]
    electorate = wired(edges, CHOICES[choice], seed)
    electorate.run(10)
    counts = Counter(election.parent for election in electorate.elections.values())
    return sorted((counts["b01"], counts["b02"]))


def test_a_balanced_tree_shares_children_more_evenly_than_the_race_does() -> None:
    largest = {choice: [max(families(choice, seed)) for seed in range(10)] for choice in ("first", "balanced")}
    assert max(largest["balanced"]) <= 8 < max(largest["first"])


def test_a_balanced_parent_is_left_only_for_one_nearer_to_the_leader() -> None:
    electorate = wired([("b0", "b1"), ("b0", "b2")], CHOICES["balanced"])
    electorate.run(5)
    core = electorate.voter("b2")
    core.receive("b0", Heartbeat("b0", 1, 50, 0))
    core.receive("b1", Heartbeat("b0", 1, 50, 1, load=0))
    electorate.run(0.2)
    assert core.election.parent == "b0"
    core.receive("b1", Heartbeat("b0", 1, 60, 2))
    core.receive("b8", Heartbeat("b0", 1, 60, 1, load=5))
    core.receive("b9", Heartbeat("b0", 1, 60, 1, load=1))
    electorate.run(0.2)
    assert core.election.parent == "b9"


def test_patience_keeps_a_parent_whose_copy_was_lost_but_not_one_that_has_gone() -> None:
    electorate = wired([("b0", "b1"), ("b0", "b2"), ("b1", "b3"), ("b2", "b3")], CHOICES["patient"])
    electorate.run(5)
    parent = electorate.elections["b3"].parent
    assert parent is not None
    other = "b2" if parent == "b1" else "b1"
    wire = electorate.world.medium.links  # type: ignore[attr-defined]
    wire[parent]["b3"].loss = 1.0
    electorate.run(2.0)
    assert electorate.elections["b3"].parent == parent
    electorate.run(3.0)
    assert electorate.elections["b3"].parent == other


def test_a_broker_never_follows_a_child_that_is_patient_with_it() -> None:
    electorate = wired([("b0", "b1"), ("b1", "b2")], CHOICES["patient"])
    electorate.run(5)
    b1 = electorate.voter("b1")
    b1.receive("b2", Heartbeat("b0", 1, 99, 1, parent="b1"))
    assert b1.election.parent == "b0"


def test_what_circle_patience_may_close_ends_within_two_rounds() -> None:
    """Three brokers can each keep a parent that has come to hang from them; their next copies tell."""
    longest = 0.0
    for seed in range(3):
        electorate = world(CHOICES["patient"], seed, moving=True)
        began: list[float] = []

        def check(electorate: Electorate = electorate, began: list[float] = began) -> None:
            nonlocal longest
            if not electorate.cycle():
                began.clear()
            else:
                began.append(electorate.world.engine.now)
                longest = max(longest, began[-1] - began[0])

        electorate.watch(40, check)
    assert longest <= 2 * CHOICES["patient"].period_s
