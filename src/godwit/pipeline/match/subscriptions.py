"""Subscriptions made ready for executors: a few are compiled here, many by executors, and each set is sent once.

Of many, neither texts nor filters come to the driver: executors parse them and build the index, whose bytes go through
a file of the driver to all executors. When a set changes, what executors have is changed: only the difference is parsed
and sent, until changes are many and the set is compiled anew.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as sf

from godwit.filters.filters import FilterSet
from godwit.pipeline.driver import sent, sent_value
from godwit.pipeline.io.files import Files, within
from godwit.pipeline.io.reading import Dataset
from godwit.pipeline.match.compilation import (
    Bad,
    Built,
    Found,
    asked_for,
    built,
    compared_with_numbers,
    meaning,
    part_of,
    sorted_out,
    spread,
    twice,
)
from godwit.pipeline.match.parts import Change, Part, Shipped
from godwit.pipeline.schemas import QUARANTINE, SUBSCRIPTIONS

PART_MAX = 2_000_000
"""Subscriptions in one index; a larger set is split, and executors share the parts among them."""

SPREAD_MIN = 5_000
"""So many texts take two seconds to parse, and more than to ask executors."""

CHANGES_MAX, CHANGED_SHARE = 16, 0.2
"""A set is compiled anew after so many changes, or when so much of it has changed since it was."""


class Compiled(msgspec.Struct, frozen=True):
    """A set of subscriptions as executors have it."""

    parts: tuple[Shipped, ...]
    count: int
    attributes: frozenset[str]
    """The attributes that some filter asks for."""
    numbers: frozenset[str] = frozenset()
    """Those that some filter compares with a number."""
    bad: tuple[Bad, ...] = ()
    """Filters that are none, as rows of quarantine; of a set that has changed, those that are new."""
    changed: int = 0
    """Subscriptions that were sent as changes."""

    def quarantine(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(list(self.bad), QUARANTINE)


class Shipper:
    """Compiles sets of subscriptions and ships each once in the life of a session.

    With a folder of its own as `memory`, it knows a large set again after it has changed, and ships the difference.
    """

    def __init__(self, spark: SparkSession, part_max: int = PART_MAX, memory: str | None = None) -> None:
        self.spark = spark
        self.part_max = part_max
        self._shipped: dict[str, Compiled] = {}
        self._memory = None if memory is None else _Memory(spark, memory)

    def ship(self, subscriptions: Dataset, before: Compiled | None = None) -> Compiled:
        """Compile and ship, unless this very set has been shipped before; `before` is what it was until now."""
        wishes = subscriptions.good.select("id", "filter")
        few, unread = wishes.limit(SPREAD_MIN).collect(), _rows_of(subscriptions.bad)
        if len(few) < SPREAD_MIN:
            return self._shipped_few(sorted((row["id"], row["filter"]) for row in few), unread)
        if self._memory is None:
            return self._shipped_many(wishes, unread)
        now = self._memory.taken(wishes)
        made = self._changed(now, unread, before) if before is not None and self._memory.is_of(before) else None
        made = made or self._shipped_many(now, unread)
        self._memory.settle(made)
        return made

    def forget(self, compiled: Compiled) -> None:
        """Take back one set that nothing will be computed with any more, but for what another still needs."""
        for digest in [digest for digest, one in self._shipped.items() if one is compiled]:
            del self._shipped[digest]
        kept = {id(parcel) for one in self._shipped.values() for part in one.parts for parcel in part.parcels()}
        for parcel in (parcel for part in compiled.parts for parcel in part.parcels() if id(parcel) not in kept):
            parcel.forget()

    def close(self) -> None:
        """Take back from executors what was shipped; frames made with it cannot be computed any more."""
        for compiled in list(self._shipped.values()):
            self.forget(compiled)

    def _shipped_few(self, rows: list[tuple[str, str]], unread: tuple[Bad, ...]) -> Compiled:
        digest = blake2b(msgspec.msgpack.encode([rows, unread]), digest_size=12).hexdigest()
        if digest not in self._shipped:
            self._shipped[digest] = self._compiled(rows, unread)
        return self._shipped[digest]

    def _compiled(self, rows: list[tuple[str, str]], unread: tuple[Bad, ...]) -> Compiled:
        names, filters, bad = sorted_out(rows, self._meanings({text for _, text in rows}))
        cuts = range(0, len(names), self.part_max)
        parts = tuple(self._part(names[at : at + self.part_max], filters[at : at + self.part_max]) for at in cuts)
        return Compiled(parts, len(names), asked_for(filters), compared_with_numbers(filters), (*unread, *bad))

    def _part(self, names: list[str], filters: list[FilterSet]) -> Shipped:
        part = Part()
        part.add(names, filters)
        return Shipped(sent_value(self.spark, part))

    def _shipped_many(self, wishes: DataFrame, unread: tuple[Bad, ...]) -> Compiled:
        """By executors: some parse, and then for each part one compiles."""
        count = wishes.count()
        parts = -(-count // self.part_max)
        with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
            taken = Built(Path(folder), parts)
            for row in built(wishes, count, parts).toLocalIterator():
                taken.take(row["part"], row["chunk"], row["about"])
            shipped = tuple(Shipped(sent(self.spark, path)) for path in taken.paths())
        made = Compiled(
            *(shipped, taken.about.count, taken.about.attributes, taken.about.numbers),
            bad=(*unread, *taken.about.bad),
        )
        self._keep(made)
        return made

    def _meanings(self, texts: Iterable[str]) -> dict[str, Found]:
        different = sorted(texts)
        if len(different) < SPREAD_MIN:
            return {text: meaning(text) for text in different}
        return dict(zip(different, spread(self.spark, different), strict=True))

    def _keep(self, compiled: Compiled) -> None:
        self._shipped[f"many {id(compiled)}"] = compiled

    def _changed(self, wishes: DataFrame, unread: tuple[Bad, ...], before: Compiled) -> Compiled | None:
        """The set as it was with what is different; None where so much is that it should be compiled anew."""
        assert self._memory is not None
        if max(len(part.changes) for part in before.parts) >= CHANGES_MAX:
            return None
        left = int(before.count * CHANGED_SHARE) - before.changed
        rows = self._memory.different(wishes, len(before.parts), left + 1)
        if len(rows) > left:
            return None
        meanings = self._meanings({row["filter"] for row in rows if row["filter"] is not None})
        parts, bad, added = list(before.parts), list[Bad](), list[FilterSet]()
        for number in sorted({row["part"] for row in rows}):
            own = [row for row in rows if row["part"] == number]
            told = sorted((row["id"], row["filter"]) for row in own if row["filter"] is not None)
            names, filters, wrong = sorted_out(told, meanings)
            change = Change([row["id"] for row in own if row["was_there"]], names, filters)
            parts[number] = parts[number].changed(sent_value(self.spark, change))
            bad, added = bad + wrong, added + filters
        made = Compiled(
            tuple(parts),
            max(before.count + len(added) - sum(row["was_there"] for row in rows), 1),
            before.attributes | asked_for(added),
            before.numbers | compared_with_numbers(added),
            (*unread, *bad, *self._memory.repeated(wishes)),
            before.changed + len(rows),
        )
        self._keep(made)
        return made


def _rows_of(bad: DataFrame) -> tuple[Bad, ...]:
    return tuple(tuple(row) for row in bad.select(*QUARANTINE.names).collect())


class _Memory:
    """The set that executors have, in a folder and not on the driver: for the next one to be compared with it.

    What is compiled is the copy in the folder: a file that is written meanwhile cannot come between.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._spark, self._files, self._folder = spark, Files(spark), folder
        self._known: tuple[str, Compiled] | None = None
        self._new = ""

    def is_of(self, compiled: Compiled) -> bool:
        return self._known is not None and self._known[1] is compiled

    def taken(self, wishes: DataFrame) -> DataFrame:
        """A set as it is now, and stays."""
        self._new = uuid.uuid4().hex
        wishes.write.parquet(within(self._folder, self._new))
        return self._read(self._new)

    def settle(self, compiled: Compiled) -> None:
        """What was taken is what executors have from now on; older ones are removed, those of earlier runs too."""
        self._known = (self._new, compiled)
        for name in self._files.names(self._folder):
            if name != self._new:
                self._files.delete(within(self._folder, name))

    def different(self, wishes: DataFrame, parts: int, most: int) -> list[Row]:
        """At most so many rows of ids that are new, gone or have another filter, and the part of each."""
        assert self._known is not None
        known = _firsts(self._read(self._known[0])).select("id", _key().alias("before"))
        both = _firsts(wishes).select("id", "filter", _key()).join(known, "id", "full_outer")
        other = both.where(~sf.col("key").eqNullSafe(sf.col("before")))
        was_there = sf.col("before").isNotNull().alias("was_there")
        return other.select("id", "filter", was_there, part_of(parts).alias("part")).limit(most).collect()

    def repeated(self, wishes: DataFrame) -> list[Bad]:
        rows = _numbered(wishes).where("nth > 1").select("id", "filter").collect()
        return [twice(row["id"], row["filter"]) for row in rows]

    def _read(self, name: str) -> DataFrame:
        return self._spark.read.schema(SUBSCRIPTIONS).parquet(within(self._folder, name))


def _key() -> Column:
    return sf.xxhash64("filter").alias("key")


def _numbered(wishes: DataFrame) -> DataFrame:
    return wishes.withColumn("nth", sf.row_number().over(Window.partitionBy("id").orderBy("filter")))


def _firsts(wishes: DataFrame) -> DataFrame:
    """An id is used once."""
    return wishes.groupBy("id").agg(sf.min("filter").alias("filter"))
