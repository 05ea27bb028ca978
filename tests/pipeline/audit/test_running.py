"""Figures that are kept from micro-batch to micro-batch are those of all outcomes together."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.audit.running import COUNTS, RunningFigures
from godwit.pipeline.schemas import OUTCOMES, TRACES


def outcomes(dice: Random) -> list[tuple[Any, ...]]:
    """Of two publishers for three clients: some lost, some twice, some overtaken by later ones."""
    rows = []
    for sequence in range(60):
        for client in ("a", "b", "c"):
            published_s = 10.0 * sequence
            delivered_s = published_s + dice.expovariate(1 / 12) if dice.random() < 0.8 else None
            latency_s = None if delivered_s is None else delivered_s - published_s
            copies, dropped = (0 if delivered_s is None else dice.choice((1, 1, 2))), dice.random() < 0.1
            key = (f"p{sequence % 2}", sequence, client, dice.random() < 0.95, copies)
            rows.append((*key, published_s, delivered_s, latency_s, 1, dropped))
    return rows


def attached(spark: SparkSession, *rows: tuple[float, str, str]) -> DataFrame:
    told = [(time_s, client, "attached", None, None, client, broker, "", 0, 0, "") for time_s, client, broker in rows]
    return spark.createDataFrame(told, TRACES)


def cuts(figures: DataFrame) -> dict[tuple[str, str | None], list[int]]:
    return {(row["cut"], row["name"]): [row[name] for name in COUNTS] for row in figures.collect()}


def test_after_each_micro_batch_the_figures_are_those_of_all_outcomes_so_far(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows, running = outcomes(Random(7)), RunningFigures(str(tmp_path), order_s=1e9)
    places = [(0.0, "a", "b1"), (100.0, "a", "b2"), (150.0, "b", "b1"), (300.0, "a", "b1"), (599.0, "b", "b2")]
    edges, so_far = [0, 45, 130, 180], list[tuple[Any, ...]]()
    moves = [places[:2], places[2:4], places[4:]]
    for number, (begin, end) in enumerate(pairwise(edges)):
        # A later micro-batch may judge what was delivered earlier.
        so_far += rows[begin:end]
        now = spark.createDataFrame(rows[begin:end], OUTCOMES)
        # Spark may repeat one, also the first, which begins with nothing: that changes nothing.
        for _ in range(2 if number < 2 else 1):
            running.add(attached(spark, *moves[number]), now, number - 1, number, 3.0 * end)
    running.forget(spark, 2)
    whole = spark.createDataFrame(so_far, OUTCOMES)
    found, expected = running.figures(spark, 2), audit.figures(whole)
    assert cuts(found) == cuts(expected)
    overall, right = (frame.where("cut = 'all'").first() for frame in (found, expected))
    assert overall is not None
    assert right is not None
    assert overall["out_of_order"] > 0
    assert overall["latency_max_s"] == right["latency_max_s"]
    for mark in ("latency_p50_s", "latency_p95_s", "latency_p99_s"):
        assert overall[mark] == pytest.approx(right[mark], rel=0.03), "a bucket, and the step between two latencies"
    relocated = [
        sorted(
            (row["client"], row["time_s"], row["broker"], row["previous"], row["latency_s"]) for row in one.collect()
        )
        for one in (running.relocations(spark, 2), audit.relocations(attached(spark, *places), whole))
    ]
    assert relocated[0] == relocated[1]
    assert [len(list((tmp_path / "_state" / table).iterdir())) for table in ("counts", "order", "moves")] == [1, 1, 1]


def test_what_is_old_is_remembered_by_one_number_and_still_tells_who_was_overtaken(
    spark: SparkSession, tmp_path: Path
) -> None:
    running, nothing = RunningFigures(str(tmp_path), order_s=0.0), attached(spark)
    for number, sequence in enumerate((5, 9, 7)):
        row = ("p", sequence, "c", True, 1, 0.0, 10.0 * number, 1.0, 1, False)
        running.add(nothing, spark.createDataFrame([row], OUTCOMES), number - 1, number, 10.0 * number + 5)
    kept = spark.read.parquet(f"{tmp_path}/_state/order/batch=2").collect()
    assert [(row["sequence"], row["is_floor"]) for row in kept] == [(9, True)]
    assert cuts(running.figures(spark, 2))[("client", "c")][-1] == 1
