"""Deliveries to a file or stdout: JSON lines or Parquet, whole or under another name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from godwit.commands.lines import STDIN, cannot_open, suffix
from godwit.commands.reports import InputError
from godwit.commands.sources import Events
from godwit.commands.subscriptions import SubscriptionId

STDOUT = STDIN
DELIVERIES_MAX = 1 << 20
"""Written at a time: Arrow text arrays end at 2 GiB."""


class Writer(Protocol):
    def write(self, events: Events, rows: NDArray[np.int64], subscriptions: NDArray[np.int64]) -> None:
        """Event `rows[i]` of `events` goes to subscription number `subscriptions[i]`, for each i."""

    def close(self) -> None: ...


class Deliveries:
    """Where deliveries go. The name given holds all of them or does not change: until `finish` they grow beside it."""

    def __init__(self, path: str, subscriptions: Sequence[SubscriptionId]) -> None:
        self.path = path
        make = _WRITERS.get(".jsonl" if path == STDOUT else suffix(path))
        if make is None or path.endswith(".gz"):
            raise InputError(f"{path}: deliveries go to a name that ends in {', '.join(_WRITERS)}, or to - for stdout")
        self.growing = None if path == STDOUT else Path(path).with_suffix(f".partial{Path(path).suffix}")
        try:
            self.file = sys.stdout.buffer if self.growing is None else self.growing.open("wb")
        except OSError as error:
            raise cannot_open(path, error) from None
        self.writer = make(self.file, subscriptions)

    def write(self, events: Events, offsets: NDArray[np.int64], subscriptions: NDArray[np.int64]) -> None:
        """The subscriptions of event i are `subscriptions[offsets[i]:offsets[i + 1]]`."""
        rows = np.repeat(np.arange(len(events)), np.diff(offsets))
        for start in range(0, len(rows), DELIVERIES_MAX):
            part = slice(start, start + DELIVERIES_MAX)
            self.writer.write(events, rows[part], subscriptions[part])

    def finish(self) -> None:
        """Close and give the file its name."""
        self._close()
        if self.growing is not None:
            self.growing.replace(self.path)

    def abandon(self) -> str | None:
        """Close and leave what was written under the name returned; None where it went to stdout."""
        with suppress(OSError):
            self._close()
        return str(self.growing) if self.growing is not None else None

    def _close(self) -> None:
        self.writer.close()
        self.file.flush()
        if self.growing is not None:
            self.file.close()


class JsonLines:
    """One object a line: event, event_id where it has one, subscription."""

    def __init__(self, file: BinaryIO, subscriptions: Sequence[SubscriptionId]) -> None:
        self.file = file
        self.tails = pa.array([f"{_json(name)}}}\n" for name in subscriptions], pa.string())

    def write(self, events: Events, rows: NDArray[np.int64], subscriptions: NDArray[np.int64]) -> None:
        # Each event and each subscription is spelled once; a delivery is the two spellings put together, in Arrow.
        wanted, heads = np.unique(rows, return_inverse=True)
        spelled = pa.array(_heads(events, wanted), pa.string())
        lines = pc.binary_join_element_wise(spelled.take(pa.array(heads)), self.tails.take(pa.array(subscriptions)), "")
        _, ends, text = lines.buffers()
        length = int(np.frombuffer(ends, np.int32)[len(lines)])
        self.file.write(memoryview(text)[:length])

    def close(self) -> None:
        """Nothing is held back."""


class Parquet:
    """Columns event, event_id (text, null where an event has none) and subscription (whole numbers or text)."""

    def __init__(self, file: BinaryIO, subscriptions: Sequence[SubscriptionId]) -> None:
        numbered = all(isinstance(name, int) for name in subscriptions)
        self.names = (
            pa.array(subscriptions, pa.int64()) if numbered else pa.array([str(name) for name in subscriptions])
        )
        fields = [("event", pa.int64()), ("event_id", pa.string()), ("subscription", self.names.type)]
        self.schema = pa.schema(fields)
        self.file = pq.ParquetWriter(file, self.schema, compression="zstd")

    def write(self, events: Events, rows: NDArray[np.int64], subscriptions: NDArray[np.int64]) -> None:
        ids = events.ids()
        texts = pa.array([None if name is None else str(name) for name in ids] or [None] * len(events), pa.string())
        columns = [
            pa.array(events.numbers[rows]),
            texts.take(pa.array(rows)),
            self.names.take(pa.array(subscriptions)),
        ]
        self.file.write_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def close(self) -> None:
        self.file.close()


def _heads(events: Events, wanted: NDArray[np.int64]) -> list[str]:
    ids = events.ids()
    heads = []
    for row in wanted.tolist():
        name = f'"event_id":{_json(ids[row])},' if ids and ids[row] is not None else ""
        heads.append(f'{{"event":{events.numbers[row]},{name}"subscription":')
    return heads


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_WRITERS: dict[str, type[JsonLines] | type[Parquet]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".json": JsonLines,
    ".parquet": Parquet,
}
