"""What can be seen: the tree, the places, the messages and a broker's tables."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from godwit.sim.scenario import load
from godwit.sim.sight import Sight, frame_of, look, tables_of
from godwit.sim.stage import Stage

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "scenarios"


def seen(name: str, until_s: float, inspected: str | None = None) -> tuple[Stage, Sight]:
    stage = Stage(load(EXAMPLES / f"{name}.toml"), 1, watched=True)
    stage.run(until_s)
    return stage, look(stage, inspected)


@pytest.mark.feature("mft-pubsub F27")
def test_the_tree_the_leader_and_the_messages_are_seen() -> None:
    stage, sight = seen("partition", 10.0)
    nodes = {node.name: node for node in sight.nodes}
    assert [node.name for node in sight.nodes if node.leads] == ["b1"]
    assert {name: nodes[name].up for name in ("b1", "b2", "b4", "s1", "p2")} == {
        "b1": None,
        "b2": "b1",
        "b4": "b2",
        "s1": "b4",
        "p2": "b7",
    }
    assert {"Heartbeat", "Pub", "Ack"} <= {arrival.kind for arrival in sight.arrivals}
    assert [a.time_s for a in sight.arrivals] == sorted(a.time_s for a in sight.arrivals)
    assert look(stage).arrivals == ()


@pytest.mark.feature("mft-pubsub F27")
def test_tables_r_t_and_q_of_a_broker_are_seen() -> None:
    _, sight = seen("partition", 30.0, "b1")
    assert sight.tables is not None
    assert ("kind = 'air' AND pm25 > 100", "b3", "s3") in sight.tables.routes
    assert {subscriber for subscriber, _, _ in sight.tables.known} == {"s1", "s2", "s3", "s4"}
    assert {subscriber for subscriber, waiting in sight.tables.queues if waiting} == {"s1", "s2"}
    assert sight.cuts == (("b1", "b2"),)
    assert sum(node.queued for node in sight.nodes if node.name == "b1") > 0


def test_who_is_down_is_seen_to_be_down_and_has_no_tables() -> None:
    stage, sight = seen("walking", 50.0, "b3")
    (dead,) = [node for node in sight.nodes if not node.alive]
    assert dead.name == "b3"
    assert sight.tables is not None
    assert sight.tables.routes == []
    assert tables_of(stage, "s0").known == []


def test_the_routes_of_aodv_are_seen_too() -> None:
    stage, _ = seen("c8-aodv", 10.0)
    assert tables_of(stage, "p0").routes


def test_everything_lies_within_the_frame() -> None:
    for name in ("walking", "partition"):
        stage, sight = seen(name, 5.0)
        left, top, right, bottom = frame_of(stage, [sight])
        assert all(left <= node.x_m <= right and top <= node.y_m <= bottom for node in sight.nodes)


def test_without_places_the_nodes_of_a_wired_world_stand_in_a_ring(tmp_path: Path) -> None:
    path = tmp_path / "ring.toml"
    path.write_text(
        'title = "ring"\nduration_s = 5\n[medium]\nkind = "wired"\nlinks = [["b1", "b2"]]\n'
        '[[brokers]]\nnames = ["b1", "b2", "b3"]\n'
    )
    sight = look(Stage(load(path), 1))
    assert len({(node.x_m, node.y_m) for node in sight.nodes}) == 3
    assert all(math.dist((50, 50), (node.x_m, node.y_m)) == pytest.approx(45) for node in sight.nodes)
