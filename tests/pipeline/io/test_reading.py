"""Datasets of three formats: good records are read, bad ones set aside with the reason, bad files refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io.lines import OBJECT
from godwit.pipeline.io.reading import events, legible, read
from godwit.pipeline.schemas import SITES


def test_csv_and_json_lines_and_parquet_are_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"lon,site,lat\n2.5,x,1\n"))
    (tmp_path / "a.jsonl").write_text('{"site": "x", "lat": 1, "lon": 2.5}\n')
    pq.write_table(pa.table({"site": ["x"], "lat": pa.array([1], pa.int32()), "lon": [2.5]}), tmp_path / "a.parquet")
    for name in ("a.csv.gz", "a.jsonl", "a.parquet"):
        found = read(spark, str(tmp_path / name), SITES, "sites")
        assert [tuple(row) for row in found.good.collect()] == [("x", 1.0, 2.5)], name
        assert found.bad.count() == 0


def test_bad_records_go_to_quarantine_with_file_and_reason(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"site": "x", "lat": 1, "lon": 2}', '{"site": "y", "lat": "north", "lon": 2}']
    lines += ['{"lat": 1, "lon": 2}', "{oh"]
    (tmp_path / "sites.jsonl").write_text("\n".join(lines))
    found = read(spark, str(tmp_path / "sites.jsonl"), SITES, "sites")
    assert [row["site"] for row in found.good.collect()] == ["x"]
    bad = found.bad.collect()
    assert sorted(row["reason"] for row in bad) == [
        "column 'lat': north is no double",
        "column 'site' has no value",
        "the line cannot be read",
    ]
    assert all(row["dataset"] == "sites" and row["file"].endswith("sites.jsonl") for row in bad)
    assert "{oh" in [row["record"] for row in bad]


def test_columns_can_be_made_by_expressions(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("cell,lat,lon\n513,1.0,2.0\n")
    made = "concat('e,', cell DIV 256) AS site, round(lat, 1) AS lat, lon"
    (row,) = read(spark, str(tmp_path / "cells.csv"), SITES, "sites", made).good.collect()
    assert tuple(row) == ("e,2", 1.0, 2.0)


def test_a_missing_column_is_named_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "sites.csv").write_text("site,lat\nx,1\n")
    with pytest.raises(SchemaError, match=r"sites\.csv: there is no column 'lon'; the columns are 'site', 'lat'"):
        read(spark, str(tmp_path / "sites.csv"), SITES, "sites")
    with pytest.raises(SchemaError, match=r"sites\.csv: in --select: .*north"):
        read(spark, str(tmp_path / "sites.csv"), SITES, "sites", "site, north AS lat, 1.0 AS lon")


def test_a_column_of_another_type_is_named_with_its_file(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"site": ["x"], "lat": [[1.0]], "lon": [2.5]}), tmp_path / "a.parquet")
    with pytest.raises(SchemaError, match=r"a\.parquet: column 'lat' is array<double>; it must be double"):
        read(spark, str(tmp_path / "a.parquet"), SITES, "sites")


def test_a_file_without_a_required_column_has_its_rows_set_aside_and_a_damaged_one_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"site": ["x"], "lat": [1.0], "lon": [2.5]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"site": ["y"], "lat": [1.0]}), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no more")
    found = read(spark, str(tmp_path), SITES, "sites")
    assert [row["site"] for row in found.good.collect()] == ["x"]
    bad = {Path(row["file"]).name: row["reason"] for row in found.bad.collect()}
    assert bad["b.parquet"] == "column 'lon' has no value"
    assert bad["c.parquet"].startswith("damaged or no Parquet file")
    with pytest.raises(SchemaError, match=r"no file there can be read: .*c\.parquet: damaged or no Parquet file"):
        read(spark, str(tmp_path / "c.parquet"), SITES, "sites")


def test_what_is_not_there_or_of_no_known_format_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"gone\.csv: there is no such file or folder"):
        read(spark, str(tmp_path / "gone.csv"), SITES, "sites")
    (tmp_path / "sites.xls").touch()
    with pytest.raises(PipelineError, match=r"no file there ends in \.parquet, \.csv"):
        read(spark, str(tmp_path), SITES, "sites")


def test_lines_of_json_are_events_as_they_stand(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"id": 1, "pm25": 160.5}\n{"id": 2, "kind": "bus"}\n')
    found = legible(events(spark, str(tmp_path)))
    assert sorted(row[OBJECT] for row in found.good.collect()) == [
        '{"id": 1, "pm25": 160.5}',
        '{"id": 2, "kind": "bus"}',
    ]
    chosen = legible(events(spark, str(tmp_path), as_columns=True), "id::bigint AS id, kind", "pm25::double > 100")
    assert [(row["id"], row["kind"]) for row in chosen.good.collect()] == [(1, None)]
