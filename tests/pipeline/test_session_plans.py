"""Plans of the jobs: how often the input is read and rows are moved, so that a later change cannot undo it unseen."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.gathering import aggregates as gathering
from godwit.pipeline.gathering.gaps import gaps as gaps_of
from godwit.pipeline.ingest import ingested
from godwit.pipeline.io.counting import Counted
from godwit.pipeline.io.reading import checked, read
from godwit.pipeline.match.deliveries import deliveries
from godwit.pipeline.match.subscriptions import Shipper
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.schemas import ARCHIVE, POSITIONS, READINGS, SITES, SUBSCRIPTIONS, TRACES


def plan(frame: DataFrame) -> str:
    """Before it runs, and without the parts that adaptive execution only repeats."""
    return str(frame._jdf.queryExecution().sparkPlan().toString())


def executed(frame: DataFrame) -> str:
    text = str(frame._jdf.queryExecution().executedPlan().toString())
    return text.partition("== Initial Plan ==")[0]


def scans(frame: DataFrame) -> int:
    return plan(frame).count("FileScan")


def exchanges(frame: DataFrame) -> int:
    return executed(frame).count("Exchange hashpartitioning") + executed(frame).count("Exchange rangepartitioning")


def archive(spark: SparkSession, tmp_path: Path) -> DataFrame:
    rows = {"broker": ["b"], "publisher": ["p"], "sequence": [1], "time_s": [0.0], "attributes": ["{}"]}
    pq.write_table(pa.table(rows), tmp_path / "events.parquet")
    return read(spark, str(tmp_path / "events.parquet"), ARCHIVE, "archive").good


def test_ingest_reads_once_and_moves_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    once = ingested(archive(spark, tmp_path))
    assert (scans(once), exchanges(once)) == (1, 1)
    assert executed(once).count("Window") == 1


def test_match_reads_once_and_moves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([("all", "TRUE")], SUBSCRIPTIONS)
    wanted = Shipper(spark).ship(checked(rows, SUBSCRIPTIONS, "subscriptions"))
    found = deliveries(archive(spark, tmp_path), wanted, ["publisher", "sequence"], counted=Counted())
    assert (scans(found), exchanges(found)) == (1, 0)


def test_events_of_a_split_set_are_shared_out_by_their_whole_key(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(str(at), "TRUE") for at in range(4)], SUBSCRIPTIONS)
    wanted = Shipper(spark, part_max=2).ship(checked(rows, SUBSCRIPTIONS, "subscriptions"))
    found = deliveries(archive(spark, tmp_path), wanted, ["publisher", "sequence"])
    (moved,) = [line for line in executed(found).splitlines() if "Exchange hashpartitioning" in line]
    assert "key0" in moved
    assert "key1" in moved


def test_all_kinds_of_areas_are_one_scan_and_gaps_need_no_other_exchange(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"sensor": ["a"], "time_s": [0.0]}), tmp_path / "air.parquet")
    found = read(spark, str(tmp_path / "air.parquet"), READINGS, "readings").good.selectExpr("*", "1.0 AS pm25")
    once = gathering.once(found)
    assert (scans(once), exchanges(once)) == (1, 1)
    rows = spark.createDataFrame([("north", "lat > 0"), (gathering.EVERYWHERE, "TRUE")], SUBSCRIPTIONS)
    wanted = Shipper(spark).ship(checked(rows, SUBSCRIPTIONS, "areas"))
    measured = gathering.measures(once, ["pm25"])
    windows = gathering.aggregates(gathering.located(measured, wanted, None), "1 day")
    assert scans(windows) == 1
    gaps = gaps_of(measured, 60.0)
    assert (scans(gaps), exchanges(gaps)) == (1, 1)


def test_mobility_reads_once_and_moves_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"subscriber": ["c"], "time_s": [0.0], "lat": [0.0], "lon": [0.0]}
    pq.write_table(pa.table(rows), tmp_path / "positions.parquet")
    found = read(spark, str(tmp_path / "positions.parquet"), POSITIONS, "positions").good
    places = spark.createDataFrame([("a", 0.0, 0.0)], SITES)
    stays = mobility.visits(mobility.associations(mobility.fixes(found, None).good, places), Rules())
    assert (scans(stays), exchanges(stays)) == (1, 1)


def test_outcomes_are_one_aggregation_without_a_join(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"time_s": [0.0], "node": ["p"], "kind": ["published"], "publisher": ["p"], "sequence": [1]}
    pq.write_table(pa.table(rows), tmp_path / "traces.parquet")
    traces = read(spark, str(tmp_path / "traces.parquet"), TRACES, "traces").good
    became = audit.outcomes(audit.expecting(traces, None))
    assert (scans(became), exchanges(became), plan(became).count("Join")) == (1, 1, 0)
    cuts = audit.figures(became)
    assert (scans(cuts), exchanges(cuts), plan(cuts).count("Join")) == (1, 3, 0)
