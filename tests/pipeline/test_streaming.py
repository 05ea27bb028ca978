"""Streams, of a live broker and of files, whose driver is killed: nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.brokers import Process, running

import godwit
from godwit.filters.text import parse
from godwit.pipeline import audit_job, gathering_job, ingest, match_job
from godwit.pipeline.streaming import Pace, reason
from godwit.protocols import records
from godwit.protocols.host import Record

START_S = 300
STREAMS = 5
"""Ingest, and two each of gathering and audit. The driver of a match is killed in test_match_job.py."""
FILES = 12
AIR = Path(__file__).resolve().parent.parent / "data" / "air.parquet"
FILTERS = {"hot": "pm25 > 70", "centre": "sensor = 'a' AND pm25 <= 20", "nobody": "pm25 > 1000"}

DRIVER = """
import sys
import msgspec
from godwit.pipeline import audit_job, gathering_job, ingest
from godwit.pipeline.session import QUIET, Options, start
from godwit.pipeline.streaming import Pace, finished
from godwit.pipeline.subscriptions import Shipper
told = msgspec.json.decode(sys.argv[1])
quick = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
quick |= {"spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
spark = start(Options(master="local[2]", memory="512m", partitions=1, settings=quick))
pace, shipper = Pace(follow=True, every="3 seconds"), Shipper(spark)
finished(
    ingest.stream(spark, msgspec.convert(told["ingest"], ingest.IngestOptions), pace),
    *gathering_job.stream(spark, msgspec.convert(told["gathering"], gathering_job.GatheringOptions), shipper, pace),
    *audit_job.stream(spark, msgspec.convert(told["audit"], audit_job.AuditOptions), pace),
)
"""


class Jobs(msgspec.Struct, frozen=True):
    """Two that follow a broker, and two that are fed with files."""

    ingest: ingest.IngestOptions
    match: match_job.MatchOptions
    gathering: gathering_job.GatheringOptions
    audit: audit_job.AuditOptions


def jobs(folder: Path, live: str, *, files_per_batch: int | None) -> Jobs:
    wishes = folder / "wishes.jsonl"
    wishes.write_bytes(b"\n".join(msgspec.json.encode({"id": name, "filter": FILTERS[name]}) for name in FILTERS))
    return Jobs(
        ingest.IngestOptions(archives=(live,), out=str(folder / "ingest")),
        match_job.MatchOptions(events=live, subscriptions=str(wishes), out=str(folder / "match")),
        gathering_job.GatheringOptions(
            readings=str(folder / "air"),
            out=str(folder / "gathering"),
            quantities=("pm25",),
            select="station AS sensor, ts AS time, pm25",
            late="1 hour",
            files_per_batch=files_per_batch,
        ),
        audit_job.AuditOptions(
            traces=str(folder / "traces"),
            out=str(folder / "audit"),
            late="10 seconds",
            files_per_batch=files_per_batch,
        ),
    )


def in_files(table: pa.Table, folder: Path, by: str) -> None:
    """Rows in the order of their time, in files of which each is newer than the one before."""
    folder.mkdir()
    ordered, size = table.sort_by(by), -(-table.num_rows // FILES)
    for number in range(FILES):
        file = folder / f"{number:02}.parquet"
        pq.write_table(ordered.slice(number * size, size), file)
        os.utime(file, (1e9 + number, 1e9 + number))


def readings() -> pa.Table:
    """A week of Beijing's air, some of it from nobody."""
    air = pq.read_table(AIR)
    week = air.filter(pc.less(air["ts"], datetime(2013, 3, 8)))
    names = [None if at % 50 == 0 else name for at, name in enumerate(week["station"].to_pylist())]
    return week.set_column(week.schema.get_field_index("station"), "station", pa.array(names, pa.string()))


def traces() -> pa.Table:
    """Events for two clients, of which some get lost and some come twice, and one long after all others."""
    rows = list[records.Row]()
    for sequence in range(200):
        at_s = sequence if sequence < 199 else 1000.0
        rows.append(records.row(at_s, "p", Record("published", ("p", sequence), client="p")))
        for client in "cd":
            rows.append(records.row(at_s, "p", Record("matched", ("p", sequence), client=client)))
            copies = 2 if sequence % 9 == 0 else int((sequence + ord(client)) % 10 > 0)
            for copy in range(copies):
                got = Record("delivered", ("p", sequence), client=client, hops=copy)
                rows.append(records.row(at_s + 0.5 + copy, client, got))
    rows.append(records.row(50.0, "c", Record("attached", client="c", peer="b")))
    columns = [
        pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), records.schema(), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=records.schema())


@contextmanager
def published(address: str) -> Iterator[Callable[[], int]]:
    """Readings all the time; calling it stops that and says how many there were."""
    stopping, number = threading.Event(), 0

    async def main() -> None:
        nonlocal number
        async with godwit.connect(address, client="van-7") as van:
            while not stopping.is_set():
                await van.publish({"sensor": "ab"[number % 2], "pm25": number % 100, "number": number}, qos=1)
                number += 1
                await asyncio.sleep(0.03)

    thread = threading.Thread(target=lambda: asyncio.run(main()))

    def stop() -> int:
        stopping.set()
        thread.join()
        return number

    thread.start()
    try:
        yield stop
    finally:
        stop()


def at_work(out: Path) -> int:
    """How many streams have done a micro-batch."""
    return len({place.parent for place in out.glob("*/_checkpoint/**/commits/[0-9]*")})


def killed(told: Jobs, out: Path, after_s: float) -> None:
    """A driver that runs all streams, and dies without a word when all have been at work for so long."""
    words = [sys.executable, "-c", DRIVER, msgspec.json.encode(told).decode()]
    with (out / "driver.log").open("wb") as log:
        driver = subprocess.Popen(words, start_new_session=True, stdout=log, stderr=log)
    try:
        until = time.monotonic() + START_S
        while at_work(out) < STREAMS and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert at_work(out) == STREAMS, (out / "driver.log").read_text()[-2000:]
        time.sleep(after_s)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def rows(table: Path, *names: str) -> list[tuple[Any, ...]]:
    found = pq.read_table(table).to_pylist()
    return sorted((tuple(row[name] for name in names) for row in found), key=repr)


@pytest.mark.parametrize("seed", [7])
def test_a_driver_that_is_killed_at_some_moment_loses_nothing_and_repeats_nothing(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    (tmp_path / "broker.toml").write_text(
        f'[archive]\nfolder = "{tmp_path}/archive"\nlisten = "127.0.0.1:0"\nfile_bytes = 50_000\nbatch_s = 0.05\n'
    )
    in_files(readings(), tmp_path / "air", "ts")
    in_files(traces(), tmp_path / "traces", "time_s")
    broker = Process(tmp_path, "north", "--listen", "127.0.0.1:0", "--config", str(tmp_path / "broker.toml"))
    with running(broker):
        live = broker.at("archive")
        with published(f"127.0.0.1:{broker.port}") as stop:
            killed(jobs(tmp_path, live, files_per_batch=1), tmp_path, after_s=Random(seed).uniform(0, 3))
            count = stop()
        time.sleep(0.5)
        told = jobs(tmp_path, live, files_per_batch=None)
        ingest.run_stream(spark, told.ingest, Pace())
        match_job.run_stream(spark, told.match, Pace())
        gathering_job.run_stream(spark, told.gathering, Pace())
        audit_job.run_stream(spark, told.audit, Pace())
    judge_live(tmp_path, count)
    judge_gathering(spark, told, tmp_path)
    judge_audit(spark, told, tmp_path)


def judge_live(folder: Path, count: int) -> None:
    """Against what was published, and whom the filters say it was for."""
    events = pq.read_table(folder / "ingest" / "events").to_pylist()
    attributes = {(row["publisher"], row["sequence"]): msgspec.json.decode(row["attributes"]) for row in events}
    assert sorted(msgspec.json.decode(row["attributes"])["number"] for row in events) == list(range(count))
    filters = {name: parse(text) for name, text in FILTERS.items()}
    wanted = [(*key, name) for key, values in attributes.items() for name in FILTERS if filters[name].matches(values)]
    assert rows(folder / "match" / "deliveries", "publisher", "sequence", "subscription") == sorted(wanted, key=repr)


def judge_gathering(spark: SparkSession, told: Jobs, folder: Path) -> None:
    """Against a batch over the same files: all windows but the last, which may still get readings."""
    gathering_job.run(spark, msgspec.structs.replace(told.gathering, out=str(folder / "gathering batch")))
    columns = ("start", "readings", "missing", "sensors", "mean")
    windows, every_window = (rows(folder / name / "aggregates", *columns) for name in ("gathering", "gathering batch"))
    assert windows == every_window[:-1]
    bad, every_bad = (rows(folder / name / "quarantine", "reason") for name in ("gathering", "gathering batch"))
    assert bad == every_bad
    assert bad


def judge_audit(spark: SparkSession, told: Jobs, folder: Path) -> None:
    """Against a batch over the same files: all events but the last, which has not ended."""
    audit_job.run(spark, msgspec.structs.replace(told.audit, out=str(folder / "audit batch")))
    columns = ("publisher", "sequence", "client", "is_expected", "copies", "latency_s", "hops")
    outcomes = rows(folder / "audit" / "judged" / "outcomes", *columns)
    every_outcome = rows(folder / "audit batch" / "outcomes", *columns)
    assert outcomes == [row for row in every_outcome if row[1] < 199]
    assert rows(folder / "audit" / "others", "kind", "client") == [("attached", "c")]


def test_of_a_failure_the_reason_is_told() -> None:
    told = "[STREAM_FAILED] Query failed\n  File x\ngodwit.net.archive_reading.ArchiveError: north: it is gone\nmore\n"
    assert reason(told) == "north: it is gone"
    assert reason("[STREAM_FAILED] Query failed\nat java") == "[STREAM_FAILED] Query failed"
