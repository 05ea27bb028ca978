"""Scenarios on stage: what they say happens, and the same seed says it the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from godwit.sim.scenario import Between, load
from godwit.sim.stage import Stage, drawn

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "scenarios"


def staged(name: str, seed: int = 1, until_s: float | None = None, *, watched: bool = False) -> Stage:
    loaded = load(EXAMPLES / f"{name}.toml")
    stage = Stage(loaded, seed, watched=watched)
    stage.run(until_s or loaded.scenario.duration_s)
    return stage


@pytest.mark.feature("mft-pubsub F20")
def test_a_partition_splits_the_tree_and_a_merge_delivers_what_waited() -> None:
    stage = Stage(load(EXAMPLES / "partition.toml"), 1)
    stage.run(30.0)
    parted = stage.summary()
    assert parted.delivered < parted.routed
    assert parted.queued > 0
    stage.run(60.0)
    merged = stage.summary()
    assert merged.queued == 0
    assert merged.delivered == merged.routed
    assert merged.replayed > 0
    assert stage.trace.counts["cut"] == stage.trace.counts["heal"] == 1


def test_a_crashed_broker_is_gone_until_it_restarts() -> None:
    stage = Stage(load(EXAMPLES / "walking.toml"), 2)
    stage.run(50.0)
    assert "b3" not in stage.brokers()
    stage.run(61.0)
    assert "b3" in stage.brokers()
    assert stage.world.nodes["b3"].disk == {"boots": 61}


@pytest.mark.parametrize(("name", "until_s"), [("partition", 40.0), ("walking", 45.0), ("c8", 15.0), ("c8-aodv", 15.0)])
def test_seed_and_scenario_decide_the_digest_watched_or_not(name: str, until_s: float) -> None:
    first, again = staged(name, 3, until_s).summary(), staged(name, 3, until_s, watched=True).summary()
    assert first == again
    assert first.published > 10
    assert first.delivered > 0
    assert staged(name, 4, until_s).summary().digest != first.digest


@pytest.mark.feature("mft-pubsub F33")
def test_the_digest_does_not_depend_on_how_python_hashes_today() -> None:
    program = "from tests.sim.test_stage import staged; print(staged('walking', 3, 60.0).trace.digest)"
    root = Path(__file__).resolve().parents[2]
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
        ).stdout.strip()
        for hash_seed in ("1", "77")
    }
    assert printed == {staged("walking", 3, 60.0).trace.digest}


def test_a_run_in_pieces_is_the_same_run() -> None:
    whole, pieces = staged("c8", 5, 12.0), Stage(load(EXAMPLES / "c8.toml"), 5)
    for tenth in range(121):
        pieces.run(tenth / 10)
    assert whole.summary() == pieces.summary()


def test_the_summary_counts_pairs_by_the_filters_of_the_subscribers() -> None:
    stage = staged("partition", 1, 20.0)
    summary = stage.summary()
    matched = {(row[3], row[4]) for row in stage.trace.of("matched")}
    assert summary.matched == 4 * len(matched)
    assert summary.delivered <= summary.routed <= summary.matched
    assert sum(summary.sent.values()) >= summary.received
    assert "Heartbeat" in summary.sent


def test_values_are_drawn_as_the_scenario_says() -> None:
    dice = Random(1)
    assert drawn("fixed", dice, ["s1"]) == "fixed"
    assert drawn("to {subscriber}", dice, ["s1"]) == "to s1"
    assert {drawn((1, True), dice, []) for _ in range(20)} == {1}
    whole = [drawn(Between(low=1, high=3), dice, []) for _ in range(50)]
    assert set(whole) == {1, 2, 3}
    assert all(isinstance(drawn(Between(low=0, high=0.5), dice, []), float) for _ in range(5))


def test_every_medium_and_mobility_can_be_staged(tmp_path: Path) -> None:
    (tmp_path / "walk.csv").write_text("node,time_s,x_m,y_m\ns1,0,10,10\ns1,20,20,20\n")
    for medium in ('kind = "disc"\nrange_m = 30', 'kind = "cc2420"\nmtu_b = 133', 'kind = "two-ray"'):
        for kind in ("waypoint", "walk", "mass"):
            loaded = load(_written(tmp_path, medium, kind))
            stage = Stage(loaded, 1)
            stage.run(10.0)
            assert stage.summary().delivered > 0


def _written(folder: Path, medium: str, kind: str) -> Path:
    path = folder / "scenario.toml"
    path.write_text(f"""
title = "small"
duration_s = 20
area = {{ width_m = 30, height_m = 30 }}
[medium]
{medium}
[[brokers]]
count = 2
mobility = {{ kind = "{kind}", speed_mps = [1, 1] }}
[[subscribers]]
names = ["s1"]
mobility = {{ kind = "replay", file = "walk.csv" }}
[[publishers]]
count = 1
places = [[15, 15]]
from_s = 3
event = {{ n = {{ low = 1, high = 9 }} }}
[[faults]]
at_s = 5
do = "skew"
node = "b0"
rate = 1.01
""")
    return path


def test_links_can_be_lossy_from_the_start_and_from_a_fault_on(tmp_path: Path) -> None:
    path = tmp_path / "lossy.toml"
    text = (EXAMPLES / "partition.toml").read_text()
    path.write_text(
        text.replace('kind = "wired"', 'kind = "wired"\nduplication = 0.2')
        + '\n[[faults]]\nat_s = 1\ndo = "lose"\nlink = ["p1", "b4"]\nloss = 1.0\n'
    )
    stage = Stage(load(path), 1)
    stage.run(19.0)
    assert stage.trace.counts["lossy"] == 1
    assert {row[3] for row in stage.trace.of("delivered")} == {"p2"}
