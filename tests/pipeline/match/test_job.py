"""The match job on files: in batch, again, and as a stream; test_streaming.py kills the driver of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.match.jobs import delivered, quarantined, wishes

from godwit.filters.text import parse
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.match.job import MatchOptions, run, run_stream
from godwit.pipeline.streaming.queries import Pace

FLIGHTS = Path(__file__).resolve().parents[2] / "data" / "flights.parquet"
FILTERS = {
    "late": "dep_delay > 60",
    "far": "distance > 2000 AND carrier IN ('UA', 'DL')",
    "cancelled": "dep_time IS NULL",
    "boston": "dest = 'BOS' OR dest LIKE 'BU%'",
}
SELECT = "concat_ws('-', carrier, flight, year, month, day, hour, origin) AS id, *"


def written(folder: Path, filters: dict[str, str] = FILTERS) -> str:
    path = folder / "subscriptions.jsonl"
    path.write_text("".join(json.dumps({"id": name, "filter": text}) + "\n" for name, text in filters.items()))
    return str(path)


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    """The flights in files of a hundred."""
    folder = tmp_path / "flights"
    folder.mkdir()
    table = pq.read_table(FLIGHTS)
    for at in range(0, table.num_rows, 100):
        pq.write_table(table.slice(at, 100), folder / f"{at}.parquet")
    return folder


@pytest.fixture(scope="module")
def expected() -> list[tuple[str, str]]:
    rows = pq.read_table(FLIGHTS).drop_columns(["time_hour"]).to_pylist()
    parsed = {name: parse(text) for name, text in FILTERS.items()}
    return sorted((name_of(row), wish) for row in rows for wish, one in parsed.items() if one.matches(present(row)))


def present(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def name_of(row: dict[str, Any]) -> str:
    return "-".join(str(row[name]) for name in ("carrier", "flight", "year", "month", "day", "hour", "origin"))


def found(out: Path) -> list[tuple[str, str]]:
    return sorted((row["id"], row["subscription"]) for row in pq.read_table(out / "deliveries").to_pylist())


def test_a_second_run_gives_the_same_in_the_place_of_the_first(
    spark: SparkSession, tmp_path: Path, expected: list[tuple[str, str]]
) -> None:
    wishes = written(tmp_path, {**FILTERS, "broken": "dest ="})
    options = MatchOptions(events=str(FLIGHTS), subscriptions=wishes, out=str(tmp_path / "out"), select=SELECT)
    for _ in range(2):
        summary = run(spark, options)
        assert found(tmp_path / "out") == expected
    assert (summary.rows_in, summary.rows_out, summary.quarantined) == (500, {"deliveries": len(expected)}, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "subscriptions.jsonl"]


def test_an_event_with_a_number_that_is_none_is_set_aside_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    speeds = [60.0, float("nan"), float("inf")]
    pq.write_table(pa.table({"id": [1, 2, 3], "speed": speeds}), tmp_path / "events.parquet")
    wanted = wishes(tmp_path, quick="speed > 50")
    asked = MatchOptions(events=f"{tmp_path}/events.parquet", subscriptions=wanted, out=str(tmp_path / "out"))
    assert run(spark, asked).quarantined == 2
    assert delivered(tmp_path / "out") == [(1, "quick")]
    assert quarantined(tmp_path / "out") == [
        "column 'speed': Infinity is no finite number",
        "column 'speed': NaN is no finite number",
    ]


def test_a_run_that_fails_leaves_the_older_result(
    spark: SparkSession, tmp_path: Path, expected: list[tuple[str, str]]
) -> None:
    options = MatchOptions(
        events=str(FLIGHTS), subscriptions=written(tmp_path), out=str(tmp_path / "out"), select=SELECT
    )
    run(spark, options)
    with pytest.raises(PipelineError):
        run(spark, MatchOptions(events=str(FLIGHTS), subscriptions=options.subscriptions, out=options.out))
    assert found(tmp_path / "out") == expected


def test_a_stream_finds_what_a_batch_finds_and_goes_on_where_it_stopped(
    spark: SparkSession, tmp_path: Path, flights: Path, expected: list[tuple[str, str]]
) -> None:
    held_back = (flights / "400.parquet").rename(tmp_path / "400.parquet")
    options = MatchOptions(
        events=str(flights),
        subscriptions=written(tmp_path),
        out=str(tmp_path / "out"),
        select=SELECT,
        files_per_batch=2,
    )
    assert run_stream(spark, options, Pace()).rows_in == 400
    held_back.rename(flights / "400.parquet")
    assert run_stream(spark, options, Pace()).rows_in == 100
    assert found(tmp_path / "out") == expected


def test_subscriptions_that_change_count_from_the_next_micro_batch(
    spark: SparkSession, tmp_path: Path, flights: Path
) -> None:
    held_back = (flights / "400.parquet").rename(tmp_path / "400.parquet")
    wishes = written(tmp_path, {"all": "TRUE"})
    options = MatchOptions(events=str(flights), subscriptions=wishes, out=str(tmp_path / "out"), select=SELECT)
    run_stream(spark, options, Pace())
    written(tmp_path, {"everything": "TRUE"})
    held_back.rename(flights / "400.parquet")
    run_stream(spark, options, Pace())
    names = [subscription for _, subscription in found(tmp_path / "out")]
    assert (names.count("all"), names.count("everything")) == (400, 100)


def test_events_may_be_lines_of_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("id,a,b\n1,5,x\n2,15,y\n3,25,x\n")
    (tmp_path / "wishes.jsonl").write_text('{"id": "big", "filter": "a > 10"}\n')
    told = MatchOptions(
        events=str(tmp_path / "events.csv"),
        subscriptions=str(tmp_path / "wishes.jsonl"),
        out=str(tmp_path / "out"),
        schema="a DOUBLE",
    )
    summary = run(spark, told)
    assert (summary.rows_in, summary.rows_out, summary.quarantined) == (3, {"deliveries": 2}, 0)
