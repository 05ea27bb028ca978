"""Deliveries to a file or stdout: JSON lines or Parquet, whole or under another name."""

from __future__ import annotations

import os
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

from godwit.commands.console import InputError
from godwit.commands.match.lines import STDIN, cannot_open, suffix
from godwit.commands.match.sources import Events
from godwit.commands.match.subscriptions import SubscriptionId
from godwit.events import Value

Ints = NDArray[np.int64]

STDOUT = STDIN
DELIVERIES_MAX = 1 << 20
CHARACTERS_MAX = 1 << 27
"""Written at a time, whichever is reached first: Arrow's text arrays end at 2 GiB."""

Ids = Sequence[Value | None]


class Writer(Protocol):
    def write(self, numbers: Ints, ids: Ids, rows: Ints, subscriptions: Ints) -> None:
        """For each i, event `rows[i]` goes to subscription `subscriptions[i]`; an event has a number and maybe an id.

        `ids` is empty where no event has one.
        """

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
        self.writer: Writer = make(self.file, subscriptions)
        self.longest_name = max((len(str(name)) for name in subscriptions), default=0)

    def write(self, events: Events, offsets: Ints, subscriptions: Ints) -> None:
        """The subscriptions of event i are `subscriptions[offsets[i]:offsets[i + 1]]`."""
        ids = events.ids()
        rows = np.repeat(np.arange(len(events)), np.diff(offsets))
        longest = max((len(str(name)) for name in ids), default=0) + self.longest_name
        step = min(DELIVERIES_MAX, max(1, CHARACTERS_MAX // (longest + 1)))
        for start in range(0, len(rows), step):
            self.writer.write(events.numbers, ids, rows[start : start + step], subscriptions[start : start + step])

    def finish(self) -> None:
        """Close and give the file its name."""
        self._close()
        if self.growing is not None:
            self.growing.replace(self.path)

    def abandon(self) -> str | None:
        """Close and leave what was written under the name returned; None where it went to stdout."""
        with suppress(OSError):
            self._close()
        if self.growing is not None:
            return str(self.growing)
        with suppress(OSError):
            # The interpreter flushes stdout once more on its way out, and would complain of what is known already.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())
        return None

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

    def write(self, numbers: Ints, ids: Ids, rows: Ints, subscriptions: Ints) -> None:
        # Each event and each subscription is spelled once; a delivery is the two spellings put together, in Arrow.
        wanted, heads = np.unique(rows, return_inverse=True)
        spelled = pa.array([_head(numbers, ids, row) for row in wanted.tolist()], pa.string())
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

    def write(self, numbers: Ints, ids: Ids, rows: Ints, subscriptions: Ints) -> None:
        texts = pa.array([None if name is None else str(name) for name in ids] or [None] * len(numbers), pa.string())
        columns = [
            pa.array(numbers[rows]),
            texts.take(pa.array(rows)),
            self.names.take(pa.array(subscriptions)),
        ]
        self.file.write_batch(pa.RecordBatch.from_arrays(columns, schema=self.schema))

    def close(self) -> None:
        self.file.close()


def _head(numbers: Ints, ids: Ids, row: int) -> str:
    name = f'"event_id":{_json(ids[row])},' if ids and ids[row] is not None else ""
    return f'{{"event":{numbers[row]},{name}"subscription":'


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_WRITERS: dict[str, type[JsonLines] | type[Parquet]] = {
    ".jsonl": JsonLines,
    ".ndjson": JsonLines,
    ".json": JsonLines,
    ".parquet": Parquet,
}
