"""What a stream knows from micro-batch to micro-batch, beside Spark's own checkpoint: a small file for each.

A micro-batch that Spark repeats after a crash begins with what the one before it left, and leaves the same again.
"""

from __future__ import annotations

import msgspec
from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from godwit.pipeline.io.files import Files, within

FOLDER, DIGITS, KEPT = "_ledger", 12, 10


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """After a micro-batch: totals of all of them so far, each row counted once."""

    number: int = -1
    rows: int = 0
    latest_s: float | None = None
    """The latest time seen, as `arrived_by` lets it count."""
    columns: str = ""
    """Of the files so far, as Spark writes a schema in JSON."""

    @property
    def schema(self) -> StructType | None:
        return StructType.fromJson(msgspec.json.decode(self.columns)) if self.columns else None


AHEAD_S = 86_400.0
"""A clock further ahead of ours than this is wrong, and says nothing of how late it is."""


def arrived_by(time_s: Column, now_s: float) -> Column:
    """A time as it counts for what has ended: no later than it arrived, and not at all where it is far ahead."""
    return sf.when(time_s <= now_s + AHEAD_S, sf.least(time_s, sf.lit(now_s)))


class Ledger:
    def __init__(self, files: Files, checkpoint: str) -> None:
        self._files, self._folder = files, within(checkpoint, FOLDER)

    def before(self, number: int) -> Entry:
        """What the micro-batch before this one left."""
        there = [name for name in self._files.names(self._folder) if _number(name) is not None]
        earlier = [name for name in there if (_number(name) or 0) < number]
        if not earlier:
            return Entry()
        return msgspec.json.decode(self._files.read(within(self._folder, max(earlier))) or "{}", type=Entry)

    def last(self) -> Entry:
        return self.before(1 << 62)

    def keep(self, entry: Entry) -> None:
        self._files.write(within(self._folder, f"{entry.number:0{DIGITS}}.json"), msgspec.json.encode(entry).decode())
        for name in self._files.names(self._folder):
            number = _number(name)
            if number is not None and number <= entry.number - KEPT:
                self._files.delete(within(self._folder, name))


def _number(name: str) -> int | None:
    stem = name.removesuffix(".json")
    return int(stem) if stem.isdecimal() else None
