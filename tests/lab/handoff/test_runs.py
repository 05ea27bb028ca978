from __future__ import annotations

from typing import Any

import pytest

from godwit.lab.handoff.runs import Configuration, Result, run, selectors
from godwit.sim.streams import Streams

SMALL = {"subscribers": 12, "warmup_s": 9, "measure_s": 15.0, "connect_s": 6.0, "disconnect_s": 4.0, "handoff_s": 1.0}


def small(scheme: str, seed: int = 1, **others: object) -> Result:
    return run(Configuration(scheme=scheme, seed=seed, **{**SMALL, **others}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {scheme: small(scheme) for scheme in ("durable", "reactive", "proactive", "ours", "memory")}


@pytest.mark.feature("proactive-handoff F34")
def test_every_measure_is_taken(results: dict[str, Result]) -> None:
    for result in results.values():
        assert result.published > 100
        assert result.handoffs > 5
        assert 0 < result.latency_s < 20
        assert 0 < result.delay_s < 20
        assert result.throughput_per_s == result.unique / 15
        assert set(result.broker_processing_s) == set(result.population) == {f"B{i}" for i in range(1, 7)}
        assert sum(result.population.values()) <= 12
        assert result.latency_deciles_s["1"] <= result.latency_q60_s <= result.latency_deciles_s["9"]
    assert results["reactive"].transfer_share > results["proactive"].transfer_share
    assert results["proactive"].control["Activate"] > 0
    assert sum(results["proactive"].dummies.values()) > 0 == sum(results["durable"].dummies.values())


@pytest.mark.feature("proactive-handoff F24", "proactive-handoff F47")
def test_ours_loses_and_repeats_nothing_where_the_others_do(results: dict[str, Result]) -> None:
    ours = results["ours"]
    assert (ours.lost, ours.received - ours.unique, ours.disordered) == (0, 0, 0)
    assert results["durable"].received > results["durable"].unique


@pytest.mark.feature("proactive-handoff F4")
def test_the_disk_saves_what_a_small_memory_loses() -> None:
    alone, pooled, disk = (small(scheme, queue_mb=0.05) for scheme in ("proactive", "memory", "ours"))
    assert alone.lost > pooled.lost > disk.lost == 0


@pytest.mark.feature("proactive-handoff F14", "proactive-handoff F34")
def test_brokers_that_remember_the_latest_events_send_fewer_copies_and_are_found_asleep_less_often(
    results: dict[str, Result],
) -> None:
    published, ours = results["proactive"], results["ours"]
    assert ours.copies_per_handoff < 0.7 * published.copies_per_handoff
    assert ours.misses <= published.misses


@pytest.mark.feature("proactive-handoff F30")
@pytest.mark.parametrize("scheme", ["home", "prefetch", "announced", "oracle"])
def test_the_other_baselines_run_on_the_same_bed(scheme: str, results: dict[str, Result]) -> None:
    result = small(scheme)
    assert result.handoffs == results["durable"].handoffs
    assert result.unique > 0
    assert result.loss < 0.2
    if scheme == "home":
        assert result.transfer_share > 0.5
    if scheme == "oracle":
        assert result.copies_per_handoff < results["proactive"].copies_per_handoff


@pytest.mark.feature("proactive-handoff F11")
def test_leaving_out_unlikely_neighbors_saves_copies() -> None:
    uneven: dict[str, Any] = {"pattern": "NBR", "skew": 0.6, "strays": 0.05, "sleep_s": 0.1, "measure_s": 40.0}
    everybody, some = small("ours", **uneven), small("ours", mass=0.8, **uneven)
    assert some.copies_per_handoff < 0.9 * everybody.copies_per_handoff
    assert some.lost == 0


@pytest.mark.feature("proactive-handoff F35")
def test_a_run_is_a_function_of_its_configuration(results: dict[str, Result]) -> None:
    assert small("proactive") == results["proactive"]
    assert small("proactive", seed=2) != results["proactive"]


@pytest.mark.feature("proactive-handoff F32")
def test_the_publisher_waits_for_the_slowest_broker_and_sleeps() -> None:
    fast, slow = (small("durable", subscribers=k, measure_s=4.0) for k in (3, 60))
    assert slow.published < fast.published
    assert small("durable", subscribers=3, sleep_s=1.0).published <= 15


@pytest.mark.feature("proactive-handoff F32")
def test_every_subscriber_wants_a_fifth() -> None:
    found = selectors(Streams(1).stream("x"), 500)
    assert {high - low for low, high in found} == {19}
    assert min(low for low, _ in found) == 0
    assert max(high for _, high in found) == 99


@pytest.mark.feature("proactive-handoff F33")
def test_a_slow_channel_slows_the_publisher_and_sends_again_what_is_late() -> None:
    fast, slow = small("durable", moving=False), small("durable", moving=False, bandwidth_mbps=0.03)
    assert slow.published < fast.published / 2
    assert slow.redelivered > fast.redelivered == 0
    assert slow.duplication > 0


@pytest.mark.feature("proactive-handoff F31")
def test_moves_follow_the_pattern() -> None:
    nbr = small("durable", pattern="NBR", subscribers=40, measure_s=40.0, sleep_s=0.5)
    assert nbr.population["B5"] < nbr.population["B3"]
    assert nbr.population["B5"] < nbr.population["B6"]
    assert small("durable", moving=False).handoffs == 0


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="scheme 'x': one of durable"):
        Configuration(scheme="x", seed=1)
    with pytest.raises(ValueError, match="skew 1: must be from 0 to less than 1"):
        Configuration(scheme="durable", seed=1, skew=1.0)
    with pytest.raises(ValueError, match="queue_mb 0: must be more than 0"):
        Configuration(scheme="durable", seed=1, queue_mb=0.0)
