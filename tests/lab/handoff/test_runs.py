from __future__ import annotations

import pytest

from godwit.lab.handoff.runs import Configuration, Result, run, selectors
from godwit.sim.streams import Streams

SMALL = {"subscribers": 12, "warmup_s": 9, "measure_s": 15.0, "connect_s": 6.0, "disconnect_s": 4.0, "handoff_s": 1.0}


def small(scheme: str, seed: int = 1, **others: object) -> Result:
    return run(Configuration(scheme=scheme, seed=seed, **{**SMALL, **others}))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {scheme: small(scheme) for scheme in ("durable", "reactive", "proactive", "ours")}


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
    assert small("proactive", queue_mb=0.05).lost > 0
    assert small("ours", queue_mb=0.05).lost == 0


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
    with pytest.raises(ValueError, match="queue_mb 0: must be more than 0"):
        Configuration(scheme="durable", seed=1, queue_mb=0.0)
