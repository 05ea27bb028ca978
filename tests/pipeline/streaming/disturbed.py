"""What streams that are disturbed read: a live broker or files, subscriptions that change, and the jobs' options."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from datetime import datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.brokers import Process
from tests.pipeline.streaming.judging import events, traced

import godwit
from godwit.client.client import Client
from godwit.events import Value
from godwit.net.processes import hold_port
from godwit.pipeline import ingest
from godwit.pipeline.audit import job as audit_job
from godwit.pipeline.gathering import job as gathering_job
from godwit.pipeline.match import job as match_job
from godwit.protocols import records
from godwit.protocols.host import Record

WAIT_S = 600
"""A machine may be as busy as it likes; whoever waits longer waits in vain."""
DATA = Path(__file__).resolve().parents[2] / "data"
FILES = 12
FILTERS = {"all": "pm25 >= 0 OR last >= 0", "hot": "pm25 > 70", "some": "sensor = 'a' AND pm25 <= 20"}
AUDITED_LATE_S = 1.0
LAST: dict[str, Value] = {"sensor": "a", "last": 1, "at": 1e6}
"""The last event, long after all others: as a reading it closes their windows."""
NOBODY = "nobody"
"""The sensor of readings that go to quarantine."""


class Jobs(msgspec.Struct, frozen=True):
    """The options of the jobs whose streams the driver runs."""

    ingest: ingest.IngestOptions | None
    match: match_job.MatchOptions
    gathering: gathering_job.GatheringOptions
    audit: audit_job.AuditOptions

    @property
    def streams(self) -> int:
        """Queries, each with a checkpoint."""
        return 3 + (self.ingest is not None)


class Wishes:
    """The subscriptions of the match, one generation after another; each takes the place of the one before at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.generation = -1
        self.change()

    def change(self) -> None:
        self.generation += 1
        lines = [{"id": f"{name}.{self.generation}", "filter": text} for name, text in FILTERS.items()]
        unfinished = self.path.with_suffix(".new")
        unfinished.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
        unfinished.replace(self.path)


def reading(number: int) -> dict[str, Value]:
    """Of two sensors in turn; a few are nobody's."""
    sensor = NOBODY if number % 50 == 7 else "ab"[number % 2]
    return {"sensor": sensor, "pm25": number % 100, "at": 10.0 * number}


class Station:
    """A broker with an archive at ports that stay its own, and somebody who publishes and somebody who listens."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self._held = [hold_port(), hold_port()]
        self.mqtt, self.live = (f"127.0.0.1:{one.getsockname()[1]}" for one in self._held)
        (folder / "broker.toml").write_text(
            f'[archive]\nfolder = "{self.archive}"\nlisten = "{self.live}"\ntraces = true\n'
            "file_bytes = 100_000\nbatch_s = 0.1\n"
        )
        self.published, self.heard = 0, 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._talk()), daemon=True)
        self.process = self._started()
        self._thread.start()

    def _started(self) -> Process:
        return Process(self.folder, "north", "--listen", self.mqtt, "--config", str(self.folder / "broker.toml"))

    def restart(self, down_s: float) -> None:
        """As after a power cut."""
        self.process.end(signal.SIGKILL)
        time.sleep(down_s)
        self.process = self._started()

    async def _talk(self) -> None:
        async with (
            godwit.connect(self.mqtt, client="van-7") as van,
            godwit.connect(self.mqtt, client="car-1") as car,
        ):
            listening = asyncio.create_task(self._listen(car))
            wanted = 0.0
            while not self._stopping.is_set():
                number = self.published
                await van.publish(reading(number), qos=1)
                wanted = 10.0 * number if number % 100 > 50 else wanted
                self.published += 1
                await asyncio.sleep(0.1)
            async with asyncio.timeout(WAIT_S):
                while self.heard < wanted:
                    await asyncio.sleep(0.05)
            # Long after all others, so that these have ended.
            await asyncio.sleep(4 * AUDITED_LATE_S)
            await van.publish(LAST, qos=1)
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self, car: Client) -> None:
        async for event in await car.subscribe("pm25 > 50", qos=1):
            self.heard = max(self.heard, float(event.attributes["at"]))

    def finish(self) -> None:
        """Publish the last event, and have all of them and their traces in the archive."""
        self._stopping.set()
        self._thread.join()
        until_s = time.monotonic() + WAIT_S
        while not self._is_archived():
            assert time.monotonic() < until_s, "the last event does not get into the archive"
            time.sleep(0.05)

    def _is_archived(self) -> bool:
        last = [key for key, event in events(self.archive).items() if "last" in event]
        return bool(last) and last[0] in traced(self.archive)

    def close(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(60)
        if self.process.process.poll() is None:
            self.process.end(signal.SIGKILL)
        for one in self._held:
            one.close()


def jobs_of_a_broker(folder: Path, live: str, wishes: Wishes) -> Jobs:
    said = "get_json_object(attributes, '$.{}')"
    return Jobs(
        ingest.IngestOptions(archives=(live,), out=str(folder / "ingest")),
        match_job.MatchOptions(events=live, subscriptions=str(wishes.path), out=str(folder / "match")),
        gathering_job.GatheringOptions(
            readings=live,
            out=str(folder / "gathering"),
            quantities=("pm25",),
            select=(
                f"nullif({said.format('sensor')}, '{NOBODY}') AS sensor,"
                f" timestamp_seconds(CAST({said.format('at')} AS DOUBLE)) AS time, {said.format('pm25')} AS pm25"
            ),
            alerts=str(alerts(folder)),
            window="1 minute",
            late="1 minute",
        ),
        audit_job.AuditOptions(traces=live, out=str(folder / "audit"), late=f"{AUDITED_LATE_S:g} seconds"),
    )


def jobs_of_files(folder: Path, wishes: Wishes, files_per_batch: int | None) -> Jobs:
    return Jobs(
        None,
        match_job.MatchOptions(
            events=str(folder / "air"),
            subscriptions=str(wishes.path),
            out=str(folder / "match"),
            key=("station", "ts"),
            select="station, ts, station AS sensor, coalesce(pm25, 0) AS pm25",
            files_per_batch=files_per_batch,
        ),
        gathering_job.GatheringOptions(
            readings=str(folder / "air"),
            out=str(folder / "gathering"),
            quantities=("pm25",),
            select="nullif(station, if(hour(ts) = 7, 'Tiantan', '')) AS sensor, ts AS time, pm25",
            alerts=str(alerts(folder)),
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


def alerts(folder: Path) -> Path:
    path = folder / "alerts.jsonl"
    path.write_text('{"id": "smog", "filter": "pm25 > 90"}\n{"id": "broken", "filter": "pm25 >"}\n')
    return path


def readings() -> pa.Table:
    """A week of Beijing's air."""
    air = pq.read_table(DATA / "air.parquet")
    return air.filter(pc.less(air["ts"], datetime(2013, 3, 8)))


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


def in_files(table: pa.Table, folder: Path, by: str) -> None:
    """Rows in the order of their time, in files of which each is newer than the one before."""
    folder.mkdir()
    ordered, size = table.sort_by(by), -(-table.num_rows // FILES)
    for number in range(FILES):
        file = folder / f"{number:02}.parquet"
        pq.write_table(ordered.slice(number * size, size), file)
        os.utime(file, (1e9 + number, 1e9 + number))


def files(folder: Path) -> None:
    """Readings in `air` and traces in `traces`."""
    in_files(readings(), folder / "air", "ts")
    in_files(traces(), folder / "traces", "time_s")
