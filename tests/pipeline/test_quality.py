"""What a run saw of its data, and conditions under which its result is refused."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.mobility.job import MobilityOptions, run
from godwit.pipeline.quality import Condition, QualityError, Row, _check_measured

ROWS = [
    ("positions", "rows", 1000.0, None),
    ("positions", "quarantined", 2.0, None),
    ("positions", "lateness_s", 7200.0, None),
    ("positions", "nulls", 5.0, "lat"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("quarantined > 0.1%", "positions: quarantined is 0.2%"),
        ("quarantined > 0.2%", None),
        ("nulls(lat) >= 5", "positions: nulls(lat) is 5"),
        ("nulls(lon) >= 0", None),
        ("rows < 2000", "positions: rows is 1000"),
        ("lateness_s > 3600", "positions: lateness_s is 7200"),
        ("lateness_s > 7200", None),
    ],
)
def test_a_condition_says_what_was_found_where_it_holds(text: str, found: str | None) -> None:
    assert Condition.parse(text).holds(ROWS) == found


@pytest.mark.parametrize(
    "text", ["quarantined", "nulls > 3", "rows(lat) > 1", "bad > 1", "rows < many", "lateness > 3"]
)
def test_a_condition_that_is_none_is_told_before_anything_is_read(text: str) -> None:
    with pytest.raises(PipelineError, match=r"right would be as in 'quarantined > 0\.1%'"):
        MobilityOptions(positions="p", out="o", fail_on=(text,))


@pytest.mark.parametrize("text", ["lateness_s > 3600", "most(speed) > 200"])
def test_a_condition_on_what_is_not_measured_is_refused_and_not_taken_for_kept(text: str) -> None:
    with pytest.raises(
        PipelineError, match=r"does not look at the column .*; of it only rows and quarantined are count"
    ):
        _check_measured([Condition.parse(text)], [("events", "rows", 3.0, None), ("events", "quarantined", 0.0, None)])
    seen: list[Row] = [("positions", "nulls", 0.0, "time_s"), ("positions", "nulls", 3.0, "speed")]
    _check_measured([Condition.parse(text)], seen)


def test_a_run_tells_what_it_saw_and_is_refused_with_its_tables_put_aside(spark: SparkSession, tmp_path: Path) -> None:
    rows = "subscriber,time_s,lat,lon\nc,0,0,0\nc,60,1,1\nc,inf,1,1\nc,90,north,1\nc,1970-01-01T00:02:00Z,1,1\n"
    (tmp_path / "positions.csv").write_text(rows)
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
    positions, sites = str(tmp_path / "positions.csv"), str(tmp_path / "sites.csv")
    options = MobilityOptions(positions=positions, sites=sites, out=str(tmp_path / "out"))
    before_s = time.time()
    summary = run(spark, options)
    assert (summary.rows_in, summary.quarantined) == (3, 2)
    seen = {(row["measure"], row["of"]): row["figure"] for row in pq.read_table(tmp_path / "out/quality").to_pylist()}
    assert seen["rows", None] == 5
    assert seen["quarantined", None] == 2
    assert seen["quarantined", "column 'lat' is no double"] == 1
    assert (seen["least", "time_s"], seen["most", "time_s"]) == (0.0, 120.0)
    assert before_s <= seen["lateness_s", None] + 120.0 <= time.time()
    strict = msgspec.structs.replace(options, fail_on=("quarantined > 10%",))
    with pytest.raises(QualityError, match=r"positions: quarantined is 40%; the tables are in .*out\.refused"):
        run(spark, strict)
    assert (tmp_path / "out.refused" / "quarantine").is_dir()
    unseen = msgspec.structs.replace(options, fail_on=("nulls(speed) > 0",))
    with pytest.raises(
        PipelineError, match=r"does not look at the column 'speed'; it looks at lat, lon, subscriber, t"
    ):
        run(spark, unseen)
    assert pq.read_table(tmp_path / "out" / "forecasts").num_rows == 0, "one day only, and a table that can be read"
