"""Positions that come file by file give what they give together, and only new files are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.mobility.job import MobilityOptions, run
from godwit.pipeline.mobility.movement import Rules
from godwit.pipeline.mobility.stream import places_of, run_stream, stream
from godwit.pipeline.streaming.queries import Pace

DATA = Path(__file__).resolve().parents[2] / "data"
SELECT = "cab AS subscriber, t AS time_s, lat_e5 / 1e5 AS lat, lon_e5 / 1e5 AS lon"
LEARNED = ("neighbors", "distributions", "rates", "forecasts", "sites")


def rows(*tables: Path) -> list[str]:
    """As texts, with numbers to the ninth digit: sums of floats depend on their order."""
    found = [row for table in tables for row in pq.read_table(table).to_pylist()]
    return sorted(str({name: _rounded(row[name]) for name in sorted(row) if name != "batch"}) for row in found)


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def asked(positions: Path, out: Path, sites: Path = DATA / "sites.csv") -> MobilityOptions:
    rules = Rules(utc_offset_h=-7, ping_pong_s=300)
    return MobilityOptions(
        positions=str(positions),
        sites=str(sites),
        out=str(out),
        positions_select=SELECT,
        rules=rules,
        files_per_batch=1,
    )


def test_file_by_file_it_is_what_a_run_over_all_files_gives(spark: SparkSession, tmp_path: Path) -> None:
    taxis = pq.read_table(DATA / "taxis.parquet")
    edges = [int(pc.quantile(taxis["t"], q=share)[0].as_py()) for share in (0.0, 0.3, 0.31, 1.0)]
    folder, out, rows_in = tmp_path / "positions", tmp_path / "out", 0
    folder.mkdir()
    for number, (begin, end) in enumerate(zip(edges, [*edges[1:-1], edges[-1] + 1], strict=False)):
        part = taxis.filter(pc.and_(pc.greater_equal(taxis["t"], begin), pc.less(taxis["t"], end)))
        pq.write_table(part, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1e9 + number, 1e9 + number))
        rows_in += part.num_rows
        if number > 0:
            # The first run takes two files, one after the other.
            told = run_stream(spark, asked(folder, out), Pace())
            assert told.rows_in == rows_in, "each file is read once"
            rows_in = 0
    summary = run(spark, asked(folder, tmp_path / "whole"))
    assert rows(out / "visits", out / "learned" / "open_visits") == rows(tmp_path / "whole" / "visits")
    for table in LEARNED:
        assert rows(out / "learned" / table) == rows(tmp_path / "whole" / table), table
    assert told.notes[-3:] == summary.notes[-3:]
    handoffs = pq.read_table(out / "handoffs").num_rows
    assert 0 < handoffs <= summary.rows_out["handoffs"]
    assert pq.read_table(out / "late").num_rows == 0
    assert {len(list(table.iterdir())) for table in (out / "_state").iterdir()} <= {1, 2}, "older states are forgotten"


def test_what_comes_too_late_is_kept_apart_and_other_sites_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder, out = tmp_path / "positions", tmp_path / "out"
    folder.mkdir()
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
    options = asked(folder, out, tmp_path / "sites.csv")

    def put(name: str, *fixes: tuple[str, int, int]) -> None:
        cabs, times, degrees = zip(*fixes, strict=True)
        columns = {"cab": cabs, "t": times, "lat_e5": [at * 100_000 for at in degrees]}
        pq.write_table(pa.table(columns | {"lon_e5": columns["lat_e5"]}), folder / name)

    put("1.parquet", ("c", 0, 0), ("c", 60, 1))
    # What is learned of all is written at the end of a run: here only after the second.
    first = stream(spark, options, places_of(spark, options))
    first.finish()
    first.close()
    put("2.parquet", ("c", 30, 0), ("c", 60, 1), ("c", 120, 1), ("d", 30, 0))
    summary = run_stream(spark, options, Pace())
    assert [(row["subscriber"], row["time_s"]) for row in pq.read_table(out / "late").to_pylist()] == [("c", 30.0)]
    assert summary.notes[-1].startswith("1 fixes came after later ones")
    open_visits = pq.read_table(out / "learned" / "open_visits").to_pylist()
    assert sorted((row["subscriber"], row["site"], row["fixes"]) for row in open_visits) == [
        ("c", "a", 1),
        ("c", "b", 2),
        ("d", "a", 1),
    ]
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,2,2\n")
    with pytest.raises(PipelineError, match="would mix rows that mean two things"):
        run_stream(spark, options, Pace())
