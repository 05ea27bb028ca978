"""Events of OpenLineage: what they say of a run, to a file and to a server, and that no job depends on them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit.pipeline import lineage
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.lineage import Flow, dataset
from godwit.pipeline.progress import Summary

REQUIRED = {"eventTime", "producer", "schemaURL", "run", "job"}


def flow(tmp_path: Path) -> Flow:
    return Flow(
        job="mobility", inputs=("s3a://fleet/positions", str(tmp_path / "sites.csv")), out=str(tmp_path / "out")
    )


def test_a_run_is_told_by_its_start_and_its_end_with_the_tables_that_it_left(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/out/visits")
    target = tmp_path / "events.jsonl"
    with lineage.told(str(target), flow(tmp_path)) as done:
        done(spark, Summary(job="mobility", rows_out={"visits": 3}))
    begun, ended = map(json.loads, target.read_text().splitlines())
    assert (begun["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert begun["run"]["runId"] == ended["run"]["runId"]
    assert begun.keys() & ended.keys() >= REQUIRED
    assert ended["inputs"] == [
        {"namespace": "s3://fleet", "name": "positions"},
        {"namespace": "file", "name": str(tmp_path / "sites.csv")},
    ]
    [visits] = ended["outputs"]
    assert (visits["namespace"], visits["name"]) == ("file", f"{tmp_path}/out/visits")
    assert visits["facets"]["schema"]["fields"] == [{"name": "id", "type": "bigint"}]
    assert visits["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert all(facet.keys() >= {"_producer", "_schemaURL"} for facet in visits["facets"].values())


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    target = tmp_path / "events.jsonl"
    with pytest.raises(PipelineError), lineage.told(str(target), flow(tmp_path)):
        raise PipelineError("there is no column 'lat'")
    failed = json.loads(target.read_text().splitlines()[-1])
    assert failed["eventType"] == "FAIL"
    assert failed["run"]["facets"]["errorMessage"]["message"] == "there is no column 'lat'"


@contextmanager
def server() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    heard = list[tuple[str, Any]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", heard
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


def test_a_server_hears_the_events_and_one_that_is_gone_spoils_no_job(spark: SparkSession, tmp_path: Path) -> None:
    with server() as (url, heard), lineage.told(url, flow(tmp_path)) as done:
        done(spark, Summary(job="mobility"))
    assert [(path, event["eventType"]) for path, event in heard] == [
        ("/api/v1/lineage", "START"),
        ("/api/v1/lineage", "COMPLETE"),
    ]
    summary = Summary(job="mobility")
    with lineage.told(url, flow(tmp_path)) as done:
        done(spark, summary)
    assert "was not told of this run" in summary.notes[0]


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("kafka://127.0.0.1:9092/fleet", {"namespace": "kafka://127.0.0.1:9092", "name": "fleet"}),
        ("iceberg:lake.fleet.events", {"namespace": "iceberg", "name": "lake.fleet.events"}),
        ("delta:/lake/events", {"namespace": "file", "name": "/lake/events"}),
        ("file:///data/events", {"namespace": "file", "name": "/data/events"}),
        ("godwit://north:9884", {"namespace": "godwit://north:9884", "name": "/"}),
    ],
)
def test_datasets_have_the_names_that_others_give_them(address: str, named: dict[str, str]) -> None:
    assert dataset(address) == named
