"""Traces: structured facts in one schema for every protocol and both worlds, with a digest that names a run."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from godwit.protocols import records
from godwit.protocols.host import NodeId, Record
from godwit.protocols.records import COLUMNS, Row


class Trace:
    """Keeps every record, or those of some kinds, and folds all of them into the digest.

    Two runs have the same digest if and only if they recorded the same facts at the same times in the same order.
    """

    def __init__(self, kinds: frozenset[str] | None = None) -> None:
        self.kinds = kinds
        self.rows: list[Row] = []
        self.counts: Counter[str] = Counter()
        self._hash = blake2b(digest_size=16)
        self._encode = msgspec.msgpack.Encoder().encode

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        row = records.row(time_s, node, record)
        self._hash.update(self._encode(row))
        self.counts[record.kind] += 1
        if self.kinds is None or record.kind in self.kinds:
            self.rows.append(row)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row[2] == kind]

    def write(self, path: Path) -> None:
        """As Parquet, under its name only once it is whole."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: list[list[Any]] = [list(column) for column in zip(*self.rows, strict=True)] or [[] for _ in COLUMNS]
        table = pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=records.schema())
        unfinished = path.with_name(path.name + ".part")
        pq.write_table(table, unfinished, compression="zstd")
        unfinished.replace(path)
