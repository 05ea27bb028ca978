"""Files of SenML as events of ingest and as readings of gathering."""

from __future__ import annotations

import json
from pathlib import Path

import cbor2
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession

from godwit.pipeline.gathering.job import GatheringOptions
from godwit.pipeline.gathering.job import run as gather
from godwit.pipeline.ingest import IngestOptions
from godwit.pipeline.ingest import run as ingest

PACK = """[
  {"bn":"urn:dev:ow:1:","bt":1.276020076e+09,"n":"temp","u":"Cel","v":20.0},
  {"u":"lat","v":60.0}, {"u":"lon","v":24.3}, {"n":"temp","u":"Cel","t":3600,"v":22.0}]"""


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.senml").write_text(PACK)
    (folder / "b.senmlc").write_bytes(cbor2.dumps([{-2: "urn:dev:ow:2:", -3: 1276020076, 0: "temp", 1: "Cel", 2: 24}]))
    (folder / "c.senml").write_text('[{"n": "temp"}]')


def test_every_pack_is_an_event_with_what_a_broker_would_see_in_it(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "packs")
    summary = ingest(spark, IngestOptions(archives=(str(tmp_path / "packs"),), out=str(tmp_path / "out")))
    assert (summary.rows_out["events"], summary.quarantined) == (2, 1)
    events = sorted(pq.read_table(tmp_path / "out" / "events").to_pylist(), key=lambda row: str(row["publisher"]))
    assert [event["publisher"] for event in events] == ["urn:dev:ow:1:", "urn:dev:ow:2:"]
    assert json.loads(events[0]["attributes"])["temp"] == 22.0
    assert (events[0]["lat"], events[0]["lon"], events[0]["day"]) == (60.0, 24.3, "2010-06-08")
    assert "neither a value" in str(pq.read_table(tmp_path / "out" / "quarantine").to_pylist()[0]["record"])


def test_every_record_is_a_reading(spark: SparkSession, tmp_path: Path) -> None:
    fill(tmp_path / "packs")
    options = GatheringOptions(
        readings=str(tmp_path / "packs"),
        out=str(tmp_path / "out"),
        quantities=("temp",),
        select="base_name AS sensor, time, IF(local_name = 'temp', value, NULL) AS temp",
        window="1 hour",
    )
    gather(spark, options)
    found = pq.read_table(tmp_path / "out" / "aggregates").to_pylist()
    assert sorted((row["sensors"], row["mean"]) for row in found) == [(1, 22.0), (2, 22.0)]
