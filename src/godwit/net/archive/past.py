"""The archive as its own broker reads it, for those who subscribe with `since` (docs/lasting.md, "Replay").

A thread reads, one stretch at a time and never more than a share of the time, so that live clients do not suffer. What
is not on the disk yet is in memory: it is looked at in the broker's own turn, so that nothing lies between the last row
that is told and the next that comes by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from godwit.filters.filters import FilterSet
from godwit.net.archive.log import ArchiveError, File, FolderArchive, Piece, Position, gap, pieces
from godwit.net.archive.writer import GROUP_ROWS, TIME, Roll
from godwit.protocols.broker import messages
from godwit.protocols.broker.lasting.past import Stretch
from godwit.protocols.broker.publication import ATTRIBUTES, Properties, Publication, is_topic_attribute

log = logging.getLogger("godwit.archive")

LOOKED_AT_MAX = 2_000
"""Rows of the right time of which a thread asks in one stretch whether they are wanted."""
SKIPPED_MAX = 1_000_000
"""Rows that may be passed over in one stretch since they are too old."""
ROWS_MAX, BYTES_MAX = 256, 256 * 1024
"""What is told at once; one row may always be."""
REST_MAX = 2_000
"""So many that are in memory are looked at in the broker's own turn."""
SHARE = 0.25
"""Of the time, for reading."""
LATE_S = 60.0
"""A file may have rows that are so much older than its name."""


class Ask(NamedTuple):
    since: float
    position: messages.Position
    wanted: FilterSet
    final: bool
    then: Callable[[Stretch], None]


class PastReader:
    """A `Past`: `start` it in the broker's loop, and `stop` it."""

    def __init__(self, folder: Path, roll: Roll, clock: Callable[[], float]) -> None:
        self._archive = FolderArchive(folder)
        self._roll = roll
        self._clock = clock
        self._asks: asyncio.Queue[Ask] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._group = lru_cache(maxsize=2)(self._read_group)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def read(
        self,
        since: float,
        position: messages.Position,
        wanted: FilterSet,
        final: bool,
        then: Callable[[Stretch], None],
    ) -> None:
        self._asks.put_nowait(Ask(since, position, wanted, final, then))

    async def _run(self) -> None:
        while True:
            ask = await self._asks.get()
            begun_s = time.perf_counter()
            try:
                found = await asyncio.to_thread(self._stretch, ask)
            except (ArchiveError, OSError, pa.ArrowException) as error:
                log.error("an archive cannot be replayed: %s", error)
                found = Stretch((), ask.position, lost=str(error))
                await asyncio.sleep(1.0)
            took_s = time.perf_counter() - begun_s
            try:
                ask.then(self._with_rest(ask, found))
            except Exception:
                log.exception("a replay has failed")
            await asyncio.sleep(took_s * (1 - SHARE) / SHARE)

    # In a thread.

    def _stretch(self, ask: Ask) -> Stretch:
        """From one file, so that a row's number says where it is."""
        at = Position(*ask.position)
        files = self._archive.files(at.file)
        if not at.file:
            at = _start(files, ask.since)
        if not files:
            return Stretch((), ask.position)
        lost = gap(files, at)
        end = Position(files[-1].name, files[-1].rows)
        for piece in pieces(files, at, end):
            return self._of_piece(ask, piece, lost)
        return Stretch((), (end.file, end.row) if at.file else ask.position, lost=lost)

    def _of_piece(self, ask: Ask, piece: Piece, lost: str) -> Stretch:
        found: list[tuple[int, Publication]] = []
        size_b, looked_at = 0, 0
        row = piece.start
        since = pa.scalar(datetime.fromtimestamp(max(ask.since, 0.0), UTC), pa.timestamp("us", tz="UTC"))
        for row, batch in self._batches(piece):
            right = pc.greater_equal(batch.column("time"), since)
            for at in pc.indices_nonzero(right).to_pylist():
                looked_at += 1
                values = _values(batch, at)
                if ask.wanted.matches(values):
                    made = _publication(batch, at, values)
                    found.append((row + at + 1, made))
                    size_b += len(made.payload) + len(made.topic)
                if looked_at >= LOOKED_AT_MAX or len(found) >= ROWS_MAX or size_b >= BYTES_MAX:
                    return Stretch(tuple(found), (piece.file, row + at + 1), lost=lost)
            row += batch.num_rows
            if row - piece.start >= SKIPPED_MAX:
                break
        return Stretch(tuple(found), (piece.file, row), lost=lost)

    def _batches(self, piece: Piece) -> Iterator[tuple[int, pa.RecordBatch]]:
        """From the first row of the piece, a row group at a time: the next question is for the rows behind."""
        for start in range(piece.start - piece.start % GROUP_ROWS, piece.end, GROUP_ROWS):
            end, row = min(start + GROUP_ROWS, piece.end), start
            for batch in self._group(Piece(piece.file, start, end)):
                first = max(piece.start - row, 0)
                if first < batch.num_rows:
                    yield row + first, batch.slice(first)
                row += batch.num_rows

    def _read_group(self, piece: Piece) -> list[pa.RecordBatch]:
        return list(self._archive.rows(piece))

    # In the broker's turn.

    def _with_rest(self, ask: Ask, found: Stretch) -> Stretch:
        """What is not on the disk yet: how long there was nothing else, or, where that is asked for, all of it."""
        rest = self._roll.behind(*found.position)
        if rest is None or found.lost:
            return found
        if not rest:
            return msgspec.structs.replace(found, until=self._clock(), is_all=ask.final)
        if not ask.final or len(rest) > REST_MAX:
            return msgspec.structs.replace(found, until=rest[0].time)
        rows = [*found.rows, *((0, one) for one in rest if one.time >= ask.since and ask.wanted.matches(one.values()))]
        return Stretch(tuple(rows), found.position, self._clock(), is_all=True)


def _start(files: list[File], since: float) -> Position:
    """Before the first row that may be of that time; at the very beginning where no file can be older."""
    name = f"events-{time.strftime(TIME, time.gmtime(max(since - LATE_S, 0.0)))}"
    older = [file.name for file in files if file.name <= name]
    return Position(older[-1], 0) if older else Position()


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _values(batch: pa.RecordBatch, at: int) -> dict[str, Any]:
    try:
        return _decode(batch.column("attributes")[at].as_py() or "{}")
    except msgspec.DecodeError:
        return {}


def _publication(batch: pa.RecordBatch, at: int, values: dict[str, Any]) -> Publication:
    """As it was published, but for what its publisher said beside content and topic: what of that a filter saw is in
    one property."""

    def cell(name: str) -> Any:
        return batch.column(name)[at].as_py()

    made = Publication(
        cell("publisher"),
        max(cell("sequence"), 0),
        cell("topic"),
        cell("payload") or b"",
        cell("qos"),
        time=cell("time").timestamp(),
    )
    own = made.values()
    beside = {name: value for name, value in values.items() if not is_topic_attribute(name) and own.get(name) != value}
    if not beside:
        return made
    said = Properties(user=((ATTRIBUTES, msgspec.json.encode(beside).decode()),))
    return msgspec.structs.replace(made, properties=said)
