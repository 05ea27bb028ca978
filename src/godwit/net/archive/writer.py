"""What a broker took, kept for later as Parquet: one file after another, for Spark or anything else that reads it.

The file being written is an Arrow stream, which is readable up to its last whole batch whatever happens to its writer.
When it is large or old enough it becomes a Parquet file, under its name only once it is whole; streams that a killed
broker left become one at the next start. Rows keep their order and names only grow, so that a name and a number of
rows are a position that can be returned to: see `godwit.net.archive.log`.
"""

from __future__ import annotations

import calendar
import contextlib
import logging
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.protocols import records
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import NodeId

log = logging.getLogger("godwit.archive")

EVENTS = pa.schema(
    [
        ("broker", pa.string()),
        ("publisher", pa.string()),
        ("sequence", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("topic", pa.string()),
        ("qos", pa.int8()),
        ("retain", pa.bool_()),
        ("attributes", pa.string()),
        ("lat", pa.float64()),
        ("lon", pa.float64()),
        ("payload", pa.binary()),
    ]
)
"""`attributes` is a JSON object of all that a filter sees; `lat` and `lon` are among them where they are numbers."""

Row = tuple[Any, ...]
MENDING = ("-m", "godwit.net.archive.mending")
STREAM, PARQUET, DAMAGED = ".arrows", ".parquet", ".damaged"

AFTER = b"godwit.after"
"""Metadata of a file: the name and the rows of the one before it, so that readers see where one is missing."""

GROUP_ROWS = 1 << 16
MARKS = 4
"""So many of the last batches can still be had from memory."""
TIME = "%Y%m%dT%H%M%S"


class ArchiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    file_bytes: int = 64 * 1024 * 1024
    """A file ends when it has grown to this."""
    file_s: float = 3600.0
    """Or is this old."""
    batch_s: float = 0.25
    """What is younger than this may be lost when the broker is killed, and is not yet seen by readers."""
    batch_rows: int = 10_000
    waiting_max: int = 1_000_000
    """Rows that wait for a slow disk; beyond it they are dropped and counted."""


class Roll:
    """Rows of one schema into one file after another, by a thread of its own. `add` never waits."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        schema: pa.Schema,
        row: Callable[[Any], Row],
        options: ArchiveOptions = ArchiveOptions(),  # noqa: B008
        *,
        remembers: bool = False,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # With its first array pyarrow loads pandas, where that is installed. On a busy machine this takes seconds, and
        # all that came meanwhile would be lost with a broker that is killed.
        pa.array([], pa.null())
        self.folder = folder
        self.kind = kind
        self.schema = schema
        self.options = options
        self.dropped = 0
        self.written = 0
        self.failure: OSError | None = None
        self._row = row
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._stopping = threading.Event()
        self._stream: _Stream | None = None
        for left in sorted(folder.glob(f"{kind}-*{STREAM}")):
            _mend(left)
        self._last, self._last_rows = _newest(folder, kind)
        self._remembers = remembers
        self._lock = threading.Lock()
        self._recent: deque[Any] = deque()
        self._marks: deque[tuple[int, str, int]] = deque([(0, self._last, self._last_rows)])
        """Of the last batches: how many items were added before, and the place in the archive that this is."""
        self._forgotten = 0
        """How many items were added before the first of `_recent`."""
        self._thread = threading.Thread(target=self._run, name=f"godwit-archive-{kind}", daemon=True)
        self._thread.start()

    def add(self, item: Any) -> None:
        if self._items.qsize() < self.options.waiting_max:
            if self._remembers:
                with self._lock:
                    self._items.put(item)
                    self._recent.append(item)
            else:
                self._items.put(item)
        else:
            self.dropped += 1

    def behind(self, file: str, row: int) -> list[Any] | None:
        """All that was added behind this place of the archive, written or not; None where that is more than is in
        memory. In the thread that adds, nothing is between this and the next that is added."""
        with self._lock:
            found = [count for count, *place in self._marks if place == [file, row]]
            return list(islice(self._recent, found[-1] - self._forgotten, None)) if found else None

    def _note(self, taken: int) -> None:
        """So many more items are dealt with, and the last that was written stands where the archive ends."""
        if not self._remembers:
            return
        with self._lock:
            self._marks.append((self._marks[-1][0] + taken, self._last, self._last_rows))
            while len(self._marks) > MARKS:
                self._marks.popleft()
            while self._forgotten < self._marks[0][0]:
                self._recent.popleft()
                self._forgotten += 1

    def stop(self) -> None:
        """Write what waits, and end the file."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self.options.batch_s)
            self._write_waiting()
            if self._stream is not None and self._stream.is_due(self.options):
                self._end()
        self._write_waiting()
        self._end()

    def _write_waiting(self) -> None:
        for rows in self._batches():
            try:
                if self._stream is None:
                    self._stream = self._begun()
                self._stream.write(rows)
                self._last, self._last_rows = self._stream.path.stem, self._stream.rows
                self.written += len(rows)
                self.failure = None
            except OSError as error:
                self.dropped += len(rows)
                if self.failure is None:
                    log.error("archive %s: %s; what comes meanwhile is dropped", self.folder, error)
                self.failure = error
                self._stream = None
            self._note(len(rows))
            if self._stream is not None and self._stream.is_due(self.options):
                self._end()

    def _batches(self) -> Iterator[list[Row]]:
        while True:
            rows: list[Row] = []
            with contextlib.suppress(Empty):
                while len(rows) < self.options.batch_rows:
                    rows.append(self._row(self._items.get_nowait()))
            if not rows:
                return
            yield rows

    def _begun(self) -> _Stream:
        """Named by the time, or right after the file before it where the clock has been set back."""
        now_ns = max(time.time_ns(), _time_ns(self._last, self.kind) + 1)
        after = {AFTER: f"{self._last}:{self._last_rows}"} if self._last else None
        return _Stream(self.folder / f"{_name(self.kind, now_ns)}{STREAM}", self.schema.with_metadata(after))

    def _end(self) -> None:
        if self._stream is not None:
            stream, self._stream = self._stream, None
            try:
                stream.close()
                finish(stream.path)
            except OSError as error:
                self.failure = error
                log.error("archive %s: %s", stream.path, error)


class _Stream:
    """The file being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self.schema = schema
        self.rows = 0
        _make_private(self.path)
        self._sink = pa.OSFile(str(self.path), "wb")
        self._writer = pa.ipc.new_stream(self._sink, schema)
        self._since_s = time.monotonic()

    def write(self, rows: Sequence[Row]) -> None:
        columns = [
            pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), self.schema, strict=True)
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=self.schema))
        self._sink.flush()
        self.rows += len(rows)

    def is_due(self, options: ArchiveOptions) -> bool:
        return self._sink.tell() >= options.file_bytes or time.monotonic() - self._since_s >= options.file_s

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


def _make_private(path: Path) -> None:
    """An empty file that only its user may read: what people publish is in it."""
    os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
    path.chmod(0o600)


def _mend(stream: Path) -> None:
    """Finish what an earlier broker has left, in a process of its own: a damaged file may end whoever reads it."""
    told = subprocess.run([sys.executable, *MENDING, str(stream)], check=False)
    if told.returncode:
        _set_aside(stream, "it cannot be read")


def _set_aside(path: Path, why: str) -> None:
    aside = path.with_name(path.name + DAMAGED)
    with contextlib.suppress(OSError):
        path.rename(aside)
    path.with_suffix(PARQUET).with_name(path.with_suffix(PARQUET).name + ".part").unlink(missing_ok=True)
    log.error("archive %s: %s; it is kept as %s, and the archive goes on without it", path, why, aside.name)


def finish(stream: Path) -> None:
    """Turn a stream, whole or cut off, into a Parquet file, and remove it."""
    whole = stream.with_suffix(PARQUET)
    unfinished = whole.with_name(whole.name + ".part")
    rows = 0
    _make_private(unfinished)
    try:
        with (
            pa.memory_map(str(stream)) as source,
            pa.ipc.open_stream(source) as reader,
            pq.ParquetWriter(unfinished, reader.schema, compression="zstd") as writer,
        ):
            for table in _groups(_whole_batches(reader)):
                writer.write_table(table)
                rows += table.num_rows
    except pa.ArrowInvalid as error:
        log.warning("archive %s: nothing in it can be read: %s", stream, error)
    if rows:
        unfinished.replace(whole)
    unfinished.unlink(missing_ok=True)
    stream.unlink()


def _whole_batches(reader: Any) -> Iterator[Any]:
    while True:
        try:
            batch = reader.read_next_batch()
            batch.validate(full=True)
        except (StopIteration, pa.ArrowInvalid, OSError):
            return
        yield batch


def _groups(batches: Iterator[Any]) -> Iterator[pa.Table]:
    """What came in small pieces, in pieces of a size that is quick to read."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= GROUP_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _newest(folder: Path, kind: str) -> tuple[str, int]:
    """The name and rows of the last file there, if any."""
    for whole in sorted(folder.glob(f"{kind}-*{PARQUET}"), reverse=True):
        try:
            return whole.stem, pq.read_metadata(whole).num_rows
        except (pa.ArrowInvalid, OSError) as error:
            _set_aside(whole, str(error))
    return "", 0


def _name(kind: str, now_ns: int) -> str:
    now_s, rest_ns = divmod(now_ns, 10**9)
    return f"{kind}-{time.strftime(TIME, time.gmtime(now_s))}-{rest_ns:09d}"


def _time_ns(name: str, kind: str) -> int:
    """The time that a file is named by; 0 where it has another name."""
    try:
        since, rest_ns = name.removeprefix(f"{kind}-").split("-")
        return calendar.timegm(time.strptime(since, TIME)) * 10**9 + int(rest_ns)
    except ValueError:
        return 0


def events(folder: Path, broker: NodeId, options: ArchiveOptions = ArchiveOptions()) -> Roll:  # noqa: B008
    """An archive of publications: `add` each."""

    def row(publication: Publication) -> Row:
        values = publication.values()
        lat, lon = values.get("lat"), values.get("lon")
        return (
            broker,
            publication.publisher,
            publication.sequence,
            int(publication.time * 1e6),
            publication.topic,
            publication.qos,
            publication.retain,
            msgspec.json.encode(values).decode(),
            float(lat) if type(lat) in (int, float) else None,  # type: ignore[arg-type]
            float(lon) if type(lon) in (int, float) else None,  # type: ignore[arg-type]
            publication.payload,
        )

    return Roll(folder, "events", EVENTS, row, options, remembers=True)


def traces(folder: Path, options: ArchiveOptions = ArchiveOptions()) -> Roll:  # noqa: B008
    """An archive of records: `add` each as (seconds since 1970, node, record)."""
    return Roll(folder, "traces", records.schema(), lambda item: records.row(*item), options)
