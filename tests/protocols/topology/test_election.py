"""The tree that heartbeats keep (spec mft-pubsub 2.3)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.graphs import Edge, Electorate, connected, distances, on_air, wired

from godwit.protocols.topology.election import Choice, ElectionOptions, Heartbeat
from godwit.sim.faults import Faults
from godwit.sim.mobility import Waypoint
from godwit.sim.wired import Wired

elects = pytest.mark.feature("mft-pubsub F17")
ROUNDS = 6
EVERY_CHOICE = pytest.mark.parametrize(
    "options",
    [
        ElectionOptions(),
        ElectionOptions(choice=Choice.STICKY, hold_s=0.05),
        ElectionOptions(choice=Choice.BALANCED, hold_s=0.05),
    ],
    ids=lambda options: options.choice.value,
)


def links(electorate: Electorate) -> Wired:
    assert isinstance(electorate.world.medium, Wired)
    return electorate.world.medium


@elects
def test_the_reference_picture_becomes_a_tree_under_n1() -> None:
    edges = [("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b3", "b4"), ("b2", "b5"), ("b3", "b5")]
    electorate = wired(edges)
    electorate.run(ROUNDS)
    elections = electorate.elections
    assert {election.leader for election in elections.values()} == {"b1"}
    assert [elections[name].parent for name in ("b1", "b2", "b3")] == [None, "b1", "b1"]
    assert {elections["b4"].parent, elections["b5"].parent} <= {"b2", "b3"}


@elects
@pytest.mark.feature("mft-pubsub F25", "mft-pubsub F4")
@given(connected(), st.integers(0, 1000))
def test_p6_a_connected_graph_ends_with_one_leader_and_a_spanning_tree(edges: list[Edge], seed: int) -> None:
    electorate = wired(edges, seed=seed)
    electorate.run(ROUNDS)
    shortest = distances(edges, "b0")
    elections = electorate.elections
    assert set(electorate.leaders().values()) == {"b0"}
    assert electorate.cycle() == []
    for name, election in elections.items():
        if election.parent is None:
            assert name == "b0"
        else:
            assert name in elections[election.parent].children
            assert election.neighbors == election.children | {election.parent}
            assert election.hops >= shortest[name]


@elects
@given(connected())
def test_without_jitter_the_tree_is_one_of_shortest_ways(edges: list[Edge]) -> None:
    electorate = wired(edges, ElectionOptions(jitter_s=0.0))
    for there in links(electorate).links.values():
        for link in there.values():
            link.latency_s = 0.001
    electorate.run(ROUNDS)
    assert {name: election.hops for name, election in electorate.elections.items()} == distances(edges, "b0")


@elects
@EVERY_CHOICE
@pytest.mark.feature("mft-pubsub F25", "mft-pubsub F37")
@settings(max_examples=25)
@given(edges=connected(), seed=st.integers(0, 1000))
def test_p6_parents_lead_nowhere_in_a_circle_at_any_moment(
    options: ElectionOptions, edges: list[Edge], seed: int
) -> None:
    electorate = wired(edges, options, seed)
    dice = Random(seed)

    def check() -> None:
        assert electorate.cycle() == []

    for _ in range(4):
        a, b = dice.choice(edges)
        (links(electorate).cut if dice.random() < 0.6 else links(electorate).heal)(a, b)
        electorate.watch(2.0, check)


@elects
@EVERY_CHOICE
@settings(max_examples=25)
@given(edges=connected(), seed=st.integers(0, 1000))
def test_nobody_repeats_a_round_twice(options: ElectionOptions, edges: list[Edge], seed: int) -> None:
    electorate = wired(edges, options, seed)
    electorate.run(ROUNDS)
    assert set(electorate.beats.values()) == {1}


@elects
@EVERY_CHOICE
@pytest.mark.feature("mft-pubsub F25", "mft-pubsub F16")
@settings(max_examples=25)
@given(edges=connected(), seed=st.integers(0, 1000))
def test_p7_each_change_of_parent_is_one_migration_and_nothing_else_is(
    options: ElectionOptions, edges: list[Edge], seed: int
) -> None:
    electorate = wired(edges, options, seed)
    dice = Random(seed)
    seen: dict[str, list[str | None]] = {name: [None] for name in electorate.elections}

    def note() -> None:
        for name, election in electorate.elections.items():
            if election.parent != seen[name][-1]:
                seen[name].append(election.parent)

    for _ in range(4):
        a, b = dice.choice(edges)
        (links(electorate).cut if dice.random() < 0.6 else links(electorate).heal)(a, b)
        electorate.watch(4.0, note)
    for name, parents in seen.items():
        assert [new for _, new in electorate.voter(name).moves] == [parent for parent in parents if parent is not None]
        for (old, new), before in zip(electorate.voter(name).moves[1:], electorate.voter(name).moves, strict=False):
            assert old in (before[1], None), f"{name} migrates from {old} to {new} but was last below {before[1]}"


@pytest.mark.feature("mft-pubsub F20")
def test_each_side_of_a_partition_finds_its_own_leader_and_a_merge_leaves_the_better_one() -> None:
    edges = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5")]
    electorate = wired(edges)
    electorate.run(ROUNDS)
    faults = Faults(electorate.world)
    faults.partition(["b1", "b2"], ["b3", "b4", "b5"])
    electorate.run(2 * ROUNDS)
    assert electorate.leaders() == {"b1": "b1", "b2": "b1", "b3": "b3", "b4": "b3", "b5": "b3"}
    before = {name: len(electorate.voter(name).moves) for name in electorate.elections}
    faults.merge(["b1", "b2"], ["b3", "b4", "b5"])
    electorate.run(ROUNDS)
    assert set(electorate.leaders().values()) == {"b1"}
    moved = {name: electorate.voter(name).moves[count:] for name, count in before.items()}
    assert moved == {"b1": [], "b2": [], "b3": [("b2", "b2")], "b4": [], "b5": []}


@pytest.mark.feature("mft-pubsub F20")
def test_the_way_to_the_old_leader_turns_round_when_a_partition_joins() -> None:
    electorate = wired([("b5", "b6"), ("b6", "b7"), ("b7", "b8"), ("b0", "b1"), ("b1", "b8")])
    links(electorate).cut("b1", "b8")
    electorate.run(ROUNDS)
    assert [electorate.elections[name].parent for name in ("b5", "b6", "b7", "b8")] == [None, "b5", "b6", "b7"]
    before = {name: len(electorate.voter(name).moves) for name in electorate.elections}
    links(electorate).heal("b1", "b8")
    electorate.run(ROUNDS)
    moved = {name: electorate.voter(name).moves[count:] for name, count in before.items()}
    assert moved == {
        "b0": [], "b1": [], "b8": [("b7", "b1")], "b7": [("b6", "b8")], "b6": [("b5", "b7")], "b5": [(None, "b6")],
    }  # fmt: skip


@pytest.mark.feature("mft-pubsub F17")
def test_losing_the_leader_sends_nothing_and_forgets_nothing() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3")])
    electorate.run(ROUNDS)
    links(electorate).cut("b1", "b2")
    electorate.run(ROUNDS)
    b2 = electorate.elections["b2"]
    assert (b2.leader, b2.parent, b2.last_parent, b2.neighbors) == ("b2", None, "b1", {"b3"})
    assert [new for _, new in electorate.voter("b2").moves] == ["b1"]


@pytest.mark.feature("mft-pubsub F17")
def test_the_same_parent_after_a_silence_is_a_migration_from_it_to_itself() -> None:
    electorate = wired([("b1", "b2")])
    electorate.run(ROUNDS)
    links(electorate).cut("b1", "b2")
    electorate.run(ROUNDS)
    links(electorate).heal("b1", "b2")
    electorate.run(ROUNDS)
    assert electorate.voter("b2").moves == [(None, "b1"), ("b1", "b1")]


@pytest.mark.feature("mft-pubsub F17")
def test_a_parent_that_became_a_child_is_not_remembered_as_the_last_parent() -> None:
    """Half of H2: else a former leader would list what lies below its child as lying beyond it."""
    electorate = wired([("b1", "b2"), ("b0", "b2")])
    links(electorate).cut("b0", "b2")
    electorate.run(ROUNDS)
    links(electorate).heal("b0", "b2")
    electorate.run(ROUNDS)
    assert electorate.voter("b1").moves == [(None, "b2")]
    links(electorate).cut("b1", "b2")
    electorate.run(ROUNDS)
    links(electorate).heal("b1", "b2")
    electorate.run(ROUNDS)
    assert electorate.voter("b1").moves[1:] == [("b2", "b2")]


@pytest.mark.feature("mft-pubsub F21", "mft-pubsub F17")
def test_a_leader_that_restarts_is_followed_again_under_a_new_incarnation() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3")])
    electorate.run(ROUNDS)
    faults = Faults(electorate.world)
    faults.crash("b1")
    electorate.run(2 * ROUNDS)
    assert electorate.leaders() == {"b2": "b2", "b3": "b2"}
    faults.restart("b1")
    electorate.run(ROUNDS)
    assert set(electorate.leaders().values()) == {"b1"}


@pytest.mark.parametrize("edges", [[("b1", "b2")], [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]])
@pytest.mark.parametrize("also", [(), ("b2",)])
def test_a_leader_that_lost_its_disk_is_followed_again_though_it_counts_from_the_beginning(
    edges: list[Edge], also: tuple[str, ...]
) -> None:
    electorate = wired(edges)
    faults = Faults(electorate.world)
    for _ in range(3):
        electorate.run(ROUNDS)
        faults.restart("b1")
    electorate.run(5 * ROUNDS)
    for name in ("b1", *also):
        faults.restart(name, keep_disk=False)
    electorate.run(2 * ROUNDS)
    assert set(electorate.leaders().values()) == {"b1"}


def test_a_new_link_joins_two_trees_at_once() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3"), ("b3", "b4")])
    links(electorate).cut("b2", "b3")
    electorate.run(2 * ROUNDS)
    assert electorate.leaders() == {"b1": "b1", "b2": "b1", "b3": "b3", "b4": "b3"}
    links(electorate).heal("b2", "b3")
    electorate.elections["b2"].linked("b3")
    electorate.elections["b3"].linked("b2")
    electorate.run(0.1)
    assert set(electorate.leaders().values()) == {"b1"}


def test_a_parent_and_a_child_are_gone_with_their_link() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3")])
    electorate.run(ROUNDS)
    links(electorate).cut("b1", "b2")
    electorate.elections["b1"].unlinked("b2")
    electorate.elections["b2"].unlinked("b1")
    assert electorate.elections["b1"].neighbors == set()
    assert electorate.elections["b2"].neighbors == {"b3"}
    assert electorate.elections["b2"].leader == "b2"
    links(electorate).heal("b1", "b2")
    electorate.run(ROUNDS)
    assert set(electorate.leaders().values()) == {"b1"}
    assert electorate.voter("b2").moves[-1] == ("b1", "b1")


@pytest.mark.feature("mft-pubsub F17")
def test_a_late_copy_of_a_dead_leader_is_rejected() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3")])
    electorate.run(ROUNDS)
    late = next(beat for beat in sorted(electorate.beats, reverse=True) if beat[0] == "b1")
    Faults(electorate.world).crash("b1")
    electorate.run(2 * ROUNDS)
    electorate.voter("b2").receive("b3", Heartbeat(*late[1:], hops=5))
    assert electorate.elections["b2"].leader == "b2"


@pytest.mark.feature("mft-pubsub F21")
def test_a_broker_that_restarts_joins_as_a_stranger() -> None:
    electorate = wired([("b1", "b2"), ("b2", "b3")])
    electorate.run(ROUNDS)
    Faults(electorate.world).crash("b2")
    electorate.run(0.5)
    Faults(electorate.world).restart("b2")
    electorate.run(ROUNDS)
    assert electorate.voter("b2").moves == [(None, "b1")]
    assert electorate.leaders() == {"b1": "b1", "b2": "b1", "b3": "b1"}


@pytest.mark.feature("mft-pubsub F18")
def test_a_silent_child_is_dropped_and_its_return_is_told() -> None:
    electorate = wired([("b1", "b2")])
    electorate.run(ROUNDS)
    links(electorate).links["b2"]["b1"].loss = 1.0
    electorate.run(ROUNDS)
    assert electorate.elections["b1"].neighbors == set()
    assert electorate.elections["b2"].parent == "b1", "the child has noticed nothing"
    links(electorate).links["b2"]["b1"].loss = 0.0
    electorate.run(2)
    assert electorate.elections["b1"].neighbors == {"b2"}
    assert electorate.voter("b1").returned == ["b2"]


@pytest.mark.feature("mft-pubsub F18")
def test_a_child_that_went_elsewhere_and_comes_back_has_not_returned() -> None:
    electorate = wired([("b1", "b2"), ("b1", "b3"), ("b2", "b3")])
    electorate.run(ROUNDS)
    b1 = electorate.voter("b1")
    lost = Heartbeat("b1", 1, 99, 1, parent="b1")
    b1.receive("b4", lost)
    electorate.run(ROUNDS)
    assert "b4" not in b1.election.children
    b1.receive("b4", Heartbeat("b1", 1, 100, 2, parent="b2"))
    b1.receive("b4", Heartbeat("b1", 1, 101, 1, parent="b1"))
    assert b1.returned == []


@pytest.mark.feature("mft-pubsub F18")
def test_a_child_that_names_another_parent_is_none_any_more() -> None:
    electorate = wired([("b1", "b2")])
    electorate.run(ROUNDS)
    b1 = electorate.voter("b1")
    b1.receive("b2", Heartbeat("b1", 1, 99, 2, parent="b9"))
    assert b1.election.neighbors == set()


@pytest.mark.feature("mft-pubsub F18")
def test_a_broker_that_migrates_here_is_a_child_before_its_heartbeat_says_so() -> None:
    electorate = wired([("b1", "b2")])
    electorate.run(ROUNDS)
    election = electorate.elections["b1"]
    election.adopt("b7")
    assert "b7" in election.neighbors
    electorate.run(ROUNDS)
    assert "b7" not in election.neighbors, "it never spoke again"


@pytest.mark.feature("mft-pubsub F17", "mft-pubsub F37")
@pytest.mark.parametrize("choice", [Choice.STICKY, Choice.BALANCED])
def test_a_worse_leader_never_wins_while_a_better_ones_copies_are_held(choice: Choice) -> None:
    electorate = wired([("b1", "b5")], ElectionOptions(choice=choice, hold_s=0.05))
    electorate.run(ROUNDS)
    b5 = electorate.voter("b5")
    b5.receive("b3", Heartbeat("b0", 1, 1, 0))
    b5.receive("b1", Heartbeat("b1", 1, 99, 0))
    electorate.run(0.5)
    assert b5.election.leader == "b0"
    assert b5.election.parent == "b3"


@pytest.mark.parametrize("choice", [Choice.STICKY, Choice.BALANCED])
def test_a_round_whose_link_breaks_while_it_is_held_is_no_way_up_through_a_child(choice: Choice) -> None:
    """Found by `godwit explore`, seed 2486."""
    electorate = wired([("b1", "b5")], ElectionOptions(choice=choice, hold_s=0.05))
    electorate.run(ROUNDS)
    b5 = electorate.voter("b5")
    b5.receive("b3", Heartbeat("b0", 1, 1, 0))
    b5.receive("b7", Heartbeat("b0", 1, 1, 3, "b5"))
    b5.election.unlinked("b3")
    electorate.run(0.5)
    assert b5.election.parent != "b7"


@pytest.mark.feature("mft-pubsub F17")
@EVERY_CHOICE
def test_moving_brokers_keep_a_tree_in_every_fragment(options: ElectionOptions) -> None:
    walk = Waypoint(width_m=120, height_m=120, speed_mps=(4, 8))
    electorate = on_air({f"b{i:02d}": walk for i in range(14)}, options, range_m=40, seed=3)

    def check() -> None:
        assert electorate.cycle() == []

    electorate.watch(40, check)
    assert set(electorate.beats.values()) == {1}
