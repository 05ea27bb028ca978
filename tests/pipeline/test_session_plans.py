"""Plans of the jobs: how often the input is read and rows are moved, so that a later change cannot undo it unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.match.jobs import wishes

from godwit.pipeline.audit import figures as audit
from godwit.pipeline.gathering import aggregates as gathering
from godwit.pipeline.gathering.gaps import gaps as gaps_of
from godwit.pipeline.gathering.job import GatheringOptions
from godwit.pipeline.gathering.job import run as gather
from godwit.pipeline.ingest import IngestOptions, ingested
from godwit.pipeline.ingest import run as ingest
from godwit.pipeline.io.counting import Counted
from godwit.pipeline.io.reading import checked, read
from godwit.pipeline.io.row_groups import RowGroups, Share, planned
from godwit.pipeline.match.deliveries import deliveries
from godwit.pipeline.match.job import MatchOptions
from godwit.pipeline.match.job import run as match
from godwit.pipeline.match.subscriptions import Shipper
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.job import MobilityOptions
from godwit.pipeline.mobility.job import run as learn
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


def rows_read(spark: SparkSession, job: Callable[[], object]) -> int:
    """From files, by all stages of whatever a job asks of Spark."""
    context = spark.sparkContext
    assert context._gateway is not None
    assert context._jvm is not None
    nothing = context._gateway.new_array(context._jvm.double, 0), context._jvm.java.util.ArrayList()

    def so_far() -> dict[int, int]:
        context._jsc.sc().listenerBus().waitUntilEmpty()
        stages = context._jsc.sc().statusStore().stageList(None, False, False, *nothing)
        return {one.stageId(): one.inputRecords() for one in map(stages.apply, range(stages.size()))}

    # Spark forgets the oldest of a thousand stages: those of tests before this one are not looked at.
    last = max(so_far(), default=-1)
    job()
    return sum(rows for stage, rows in so_far().items() if stage > last)


class Noted(RowGroups, frozen=True, array_like=True):
    """Row groups that say beside their file that a worker has read them."""

    def read(self, wanted: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
        with Path(f"{self.path}.readings").open("a") as told:
            told.write("".join(f"{number}\n" for number in self.numbers))
        yield from RowGroups.read(self, wanted, rows)


def noted(events: DataFrame, wanted: pa.Schema) -> list[Share] | None:
    shares = planned(events, wanted)
    return shares and [tuple(Noted(groups.path, groups.numbers) for groups in share) for share in shares]


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
    usable = mobility.fixes(found, None).good
    for stays in (
        mobility.visits(mobility.associations(usable, places), Rules()),
        once := mobility.visits_of(usable, places, Rules()),
    ):
        assert (scans(stays), exchanges(stays)) == (1, 1)
    assert executed(once).count("MapInArrow") == 1, "rows go to Python once"


def test_outcomes_are_one_aggregation_without_a_join(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"time_s": [0.0], "node": ["p"], "kind": ["published"], "publisher": ["p"], "sequence": [1]}
    pq.write_table(pa.table(rows), tmp_path / "traces.parquet")
    traces = read(spark, str(tmp_path / "traces.parquet"), TRACES, "traces").good
    became = audit.outcomes(audit.expecting(traces, None))
    assert (scans(became), exchanges(became), plan(became).count("Join")) == (1, 1, 0)
    cuts = audit.figures(became)
    assert (scans(cuts), exchanges(cuts), plan(cuts).count("Join")) == (1, 3, 0)


def test_whole_jobs_read_their_input_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have written is read again, as are sites: a few rows."""
    monkeypatch.setattr("godwit.pipeline.match.deliveries.planned", noted)
    rows, few = 1_000, range(100)
    time_s, number = [10.0 * at for at in range(rows)], list(range(rows))
    events = {"broker": ["b"] * rows, "publisher": ["p"] * rows, "sequence": number, "time_s": time_s}
    pq.write_table(pa.table(events | {"attributes": ["{}"] * rows}), tmp_path / "events.parquet")
    fixes = {"subscriber": ["c"] * rows, "time_s": time_s, "lat": [0.0] * rows, "lon": [0.0] * rows}
    pq.write_table(pa.table(fixes), tmp_path / "fixes.parquet", row_group_size=250)
    pq.write_table(pa.table({"site": ["a"], "lat": [0.0], "lon": [0.0]}), tmp_path / "sites.parquet")
    air = {"sensor": ["a"] * rows, "time_s": time_s, "pm25": [1.0] * rows}
    pq.write_table(pa.table(air), tmp_path / "air.parquet")

    taken = IngestOptions(archives=(str(tmp_path / "events.parquet"),), out=str(tmp_path / "taken"))
    assert rows_read(spark, lambda: ingest(spark, taken)) - rows in few
    learned = MobilityOptions(
        positions=str(tmp_path / "fixes.parquet"), sites=str(tmp_path / "sites.parquet"), out=str(tmp_path / "learned")
    )
    assert rows_read(spark, lambda: learn(spark, learned)) - rows in few
    asked = GatheringOptions(readings=str(tmp_path / "air.parquet"), out=str(tmp_path / "air"), quantities=("pm25",))
    assert rows_read(spark, lambda: gather(spark, asked)) - rows in few
    wanted = MatchOptions(
        events=str(tmp_path / "events.parquet"),
        subscriptions=wishes(tmp_path, late="time_s > 9000"),
        out=str(tmp_path / "matched"),
        select="publisher, sequence, time_s",
        key=("publisher", "sequence"),
    )
    assert rows_read(spark, lambda: match(spark, wanted)) - rows in few
    # As they are filed, workers open the files themselves, and Spark reads nothing of them.
    filed = msgspec.structs.replace(wanted, events=str(tmp_path / "fixes.parquet"), select=None, key=("time_s",))
    assert rows_read(spark, lambda: match(spark, filed)) in few
    assert sorted((tmp_path / "fixes.parquet.readings").read_text().split()) == ["0", "1", "2", "3"]
    assert pq.read_table(tmp_path / "matched" / "deliveries").num_rows == len([at for at in time_s if at > 9000])


def test_a_row_that_is_set_aside_costs_one_more_reading_and_no_third(spark: SparkSession, tmp_path: Path) -> None:
    """Counts come from the pass that writes; what is bad is looked for only where that pass has met some."""
    rows, few = 1_000, range(100)
    time_s = [10.0 * at for at in range(rows - 1)] + [float("nan")]
    events = {"broker": ["b"] * rows, "publisher": ["p"] * rows, "sequence": list(range(rows)), "time_s": time_s}
    pq.write_table(pa.table(events | {"attributes": ["{}"] * rows}), tmp_path / "events.parquet")
    taken = IngestOptions(archives=(str(tmp_path / "events.parquet"),), out=str(tmp_path / "taken"))
    assert rows_read(spark, lambda: ingest(spark, taken)) - 2 * rows in few
