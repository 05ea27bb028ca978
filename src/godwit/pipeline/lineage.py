"""Where tables come from and go to, told by the events of OpenLineage, for catalogs that draw it.

Events are JSON objects as the specification has them, version 2-0-2: one when a job starts, one when it ends. They go
to a file, a line each, or by HTTP to a server such as Marquez. A server that does not answer spoils no job.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import msgspec
from pyspark.sql import SparkSession

from godwit import __version__
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.progress import Summary

SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = "https://openlineage.io/spec/facets"
PRODUCER = f"urn:godwit:{__version__}"
NAMESPACE, PATH = "godwit", "/api/v1/lineage"
TIMEOUT_S = 5.0

Event = dict[str, Any]


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """What a job reads, and where its tables go."""

    job: str
    inputs: tuple[str, ...]
    out: str


@contextmanager
def told(target: str | None, flow: Flow) -> Iterator[Callable[[SparkSession, Summary], None]]:
    """Tell a start; call what is given with the summary when the job is done. Else it has failed, and that is told."""
    if target is None:
        yield lambda spark, summary: None
        return
    run, done = str(uuid.uuid4()), list[bool]()
    send = _sender(target)
    send(_event("START", run, flow, [], {}))

    def complete(spark: SparkSession, summary: Summary) -> None:
        done.append(True)
        fault = send(_event("COMPLETE", run, flow, _outputs(spark, flow.out, summary), {}))
        if fault is not None:
            summary.notes.append(f"{target}: was not told of this run: {fault}")

    try:
        yield complete
    except BaseException as error:
        if not done:
            send(_event("FAIL", run, flow, [], {"errorMessage": _error(error)}))
        raise


def dataset(address: str) -> dict[str, str]:
    """Namespace and name, by OpenLineage's rules for files, buckets, topics and tables."""
    place = urlsplit(address)
    if place.scheme in ("kafka", "godwit", "godwits", "hdfs", "gs", "s3", "s3a"):
        scheme = "s3" if place.scheme == "s3a" else place.scheme
        return {"namespace": f"{scheme}://{place.netloc}", "name": place.path.lstrip("/") or "/"}
    if place.scheme in ("table", "iceberg", "delta") and not place.path.startswith(("/", ".")):
        return {"namespace": place.scheme, "name": place.path}
    path = place.path if place.scheme in ("file", "table", "iceberg", "delta") else address
    return {"namespace": "file", "name": str(Path(path).absolute())}


def _event(kind: str, run: str, flow: Flow, outputs: Sequence[Event], facets: Mapping[str, Event]) -> Event:
    return {
        "eventType": kind,
        "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "run": {"runId": run, "facets": dict(facets)},
        "job": {"namespace": NAMESPACE, "name": f"pipeline.{flow.job}", "facets": {"jobType": _job_type()}},
        "inputs": [dataset(address) for address in flow.inputs],
        "outputs": list(outputs),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
    }


def _outputs(spark: SparkSession, out: str, summary: Summary) -> list[Event]:
    return [_output(spark, out, table, rows) for table, rows in summary.rows_out.items()]


def _output(spark: SparkSession, out: str, table: str, rows: int) -> Event:
    place = f"{out.rstrip('/')}/{table}"
    try:
        kinds = [(field.name, field.dataType.simpleString()) for field in spark.read.parquet(place).schema]
    except Exception:
        kinds = []
    fields = [{"name": name, "type": kind} for name, kind in kinds]
    statistics = _facet("1-0-2/OutputStatisticsOutputDatasetFacet.json", rowCount=rows)
    return {
        **dataset(place),
        "facets": {"schema": _facet("1-1-1/SchemaDatasetFacet.json", fields=fields)},
        "outputFacets": {"outputStatistics": statistics},
    }


def _job_type() -> Event:
    return _facet("2-0-3/JobTypeJobFacet.json", processingType="BATCH", integration="GODWIT", jobType="JOB")


def _error(error: BaseException) -> Event:
    text = str(error) or type(error).__name__
    return _facet("1-0-1/ErrorMessageRunFacet.json", message=text, programmingLanguage="PYTHON")


def _facet(schema: str, **fields: object) -> Event:
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}/{schema}", **fields}


def _sender(target: str) -> Callable[[Event], str | None]:
    """Sends an event; what it returns says why it could not. Raises `PipelineError` where a file cannot be written."""
    if target.startswith(("http://", "https://")):
        url = target if urlsplit(target).path.strip("/") else target.rstrip("/") + PATH
        return lambda event: _posted(url, event)
    return lambda event: _appended(Path(target.removeprefix("file://")), event)


def _appended(path: Path, event: Event) -> None:
    try:
        with path.open("ab") as lines:
            lines.write(msgspec.json.encode(event) + b"\n")
    except OSError as error:
        raise PipelineError(f"--lineage {path}: cannot be written: {error.strerror}") from None


def _posted(url: str, event: Event) -> str | None:
    asked = Request(url, msgspec.json.encode(event), {"Content-Type": "application/json"}, method="POST")
    try:
        with urlopen(asked, timeout=TIMEOUT_S):
            return None
    except (URLError, OSError) as error:
        return str(getattr(error, "reason", error))
