"""Traces judged, on a few records."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.schemas import TRACES


def traced(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Records of (time, node, kind, publisher, sequence, client, peer)."""
    return spark.createDataFrame([(*row, "", 10, 2, "") for row in rows], TRACES)


def about(time_s: float, kind: str, sequence: int, client: str = "c") -> tuple[Any, ...]:
    node, whom = (client if kind == "delivered" else "p"), ("p" if kind == "published" else client)
    return (float(time_s), node, kind, "p", sequence, whom, "")


def overall(traces: DataFrame) -> Any:
    return audit.figures(judged(traces)).where("cut = 'all'").first()


def judged(traces: DataFrame) -> DataFrame:
    return audit.outcomes(audit.expecting(traces, None))


def test_loss_duplicates_order_and_latency_are_found(spark: SparkSession) -> None:
    frame = traced(
        spark,
        *(about(sequence, kind, sequence) for sequence in range(5) for kind in ("published", "matched")),
        about(1.0, "delivered", 0),
        about(2.5, "delivered", 2),
        about(2.6, "delivered", 1),
        about(3.0, "delivered", 2),
        about(4.0, "dropped", 3),
        about(5.0, "delivered", 0, "stranger"),
    )
    found = overall(frame)
    counts = [found[name] for name in ("expected", "delivered", "lost", "dropped", "duplicates", "unexpected")]
    assert counts == [5, 4, 2, 1, 1, 1]
    assert found["out_of_order"] == 1
    assert found["latency_max_s"] == 5.0


def test_figures_are_cut_by_client_and_by_minute(spark: SparkSession) -> None:
    frame = traced(
        spark, *(about(s, k, int(s)) for s in (1.0, 61.0) for k in ("published", "matched")), about(2.0, "delivered", 1)
    )
    found = audit.figures(judged(frame)).collect()
    cuts = {(row["cut"], row["name"]): (row["expected"], row["lost"]) for row in found}
    assert cuts == {("all", None): (2, 1), ("client", "c"): (2, 1), ("minute", "0"): (1, 0), ("minute", "1"): (1, 1)}


def test_a_relocation_is_over_when_the_next_event_arrives(spark: SparkSession) -> None:
    frame = traced(
        spark,
        (0.0, "c", "attached", None, None, "", "b1"),
        about(1.0, "delivered", 0),
        (10.0, "c", "attached", None, None, "", "b1"),
        (20.0, "c", "attached", None, None, "", "b2"),
        about(21.5, "delivered", 1),
        (30.0, "c", "attached", None, None, "", "b1"),
    )
    found = audit.relocations(frame, judged(frame)).orderBy("time_s").collect()
    assert [(row["previous"], row["broker"], row["latency_s"]) for row in found] == [
        ("b1", "b2", 1.5),
        ("b2", "b1", None),
    ]


def test_what_was_sent_is_counted_by_kind_and_message(spark: SparkSession) -> None:
    (row,) = audit.overhead(traced(spark, about(1.0, "published", 0), about(2.0, "published", 1))).collect()
    assert (row["kind"], row["records"], row["bytes"]) == ("published", 2, 20)


def test_an_event_for_nobody_is_no_loss(spark: SparkSession) -> None:
    assert overall(traced(spark, about(1.0, "published", 0))) is None


@pytest.mark.parametrize("kind", ["matched", "delivered"])
def test_an_event_whose_publication_was_not_traced_has_no_latency(spark: SparkSession, kind: str) -> None:
    assert overall(traced(spark, about(1.0, kind, 0)))["latency_max_s"] is None
