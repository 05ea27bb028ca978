"""Subscriptions made ready for executors: parsed by them if there are many, compiled on the driver, broadcast once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import msgspec
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.filters.predicates import Kind
from godwit.filters.text import parse
from godwit.pipeline.io.reading import Dataset
from godwit.pipeline.schemas import QUARANTINE
from godwit.tables.matching.index import Index

PART_MAX = 2_000_000
"""Subscriptions in one index; a larger set is split, and executors share the parts among them."""

SPREAD_MIN, TASK_TEXTS = 5_000, 2_500
"""So many texts take two seconds to parse, and more than to ask executors; and how many of them a task is given."""

Bad = tuple[str, str, str | None, str]

Found = FilterSet | str
"""What a text means, or why it is no filter."""


@dataclass(frozen=True, slots=True)
class Part:
    """One compiled index, and the ids of its subscriptions by their numbers in it."""

    index: Index
    names: pa.Array


class Compiled(msgspec.Struct, frozen=True):
    """A set of subscriptions as executors have it."""

    parts: tuple[Broadcast[Part], ...]
    count: int
    attributes: frozenset[str]
    """The attributes that some filter asks for."""
    numbers: frozenset[str] = frozenset()
    """Those that some filter compares with a number."""
    bad: tuple[Bad, ...] = ()
    """Filters that are none, as rows of quarantine."""

    def quarantine(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(list(self.bad), QUARANTINE)


class Shipper:
    """Compiles sets of subscriptions and ships each once in the life of a session."""

    def __init__(self, spark: SparkSession, part_max: int = PART_MAX) -> None:
        self.spark = spark
        self.part_max = part_max
        self._shipped: dict[str, Compiled] = {}

    def ship(self, subscriptions: Dataset) -> Compiled:
        """Compile and ship, unless this very set has been shipped before."""
        rows = sorted((row["id"], row["filter"]) for row in subscriptions.good.select("id", "filter").collect())
        unread = tuple(tuple(row) for row in subscriptions.bad.select(*QUARANTINE.names).collect())
        digest = blake2b(msgspec.msgpack.encode([rows, unread]), digest_size=12).hexdigest()
        if digest not in self._shipped:
            self._shipped[digest] = self._compiled(rows, unread)
        return self._shipped[digest]

    def forget(self, compiled: Compiled) -> None:
        """Take back one set that nothing will be computed with any more."""
        for digest in [digest for digest, one in self._shipped.items() if one is compiled]:
            for part in self._shipped.pop(digest).parts:
                part.destroy()

    def close(self) -> None:
        """Take back from executors what was shipped; frames made with it cannot be computed any more."""
        for compiled in self._shipped.values():
            for part in compiled.parts:
                part.destroy()
        self._shipped.clear()

    def _compiled(self, rows: list[tuple[str, str]], unread: tuple[Bad, ...]) -> Compiled:
        names, filters, bad = _sorted_out(rows, self._meanings({text for _, text in rows}))
        attributes = frozenset(name for one in filters for part in one for own in part for name in own.names())
        parts = tuple(
            self._part(names[at : at + self.part_max], filters[at : at + self.part_max])
            for at in range(0, len(names), self.part_max)
        )
        return Compiled(parts, len(names), attributes, compared_with_numbers(filters), (*unread, *bad))

    def _meanings(self, texts: Iterable[str]) -> dict[str, Found]:
        different = sorted(texts)
        if len(different) < SPREAD_MIN:
            return {text: _found(text) for text in different}
        return dict(zip(different, spread(self.spark, different), strict=True))

    def _part(self, names: list[str], filters: list[FilterSet]) -> Broadcast[Part]:
        index = Index()
        index.add_many(range(len(names)), filters)
        return self.spark.sparkContext.broadcast(Part(index, pa.array(names, pa.string())))


def compared_with_numbers(filters: Iterable[FilterSet]) -> frozenset[str]:
    own = (attribute for one in filters for part in one for attribute in part)
    return frozenset(name for one in own if one.kind in _OF_NUMBERS for name in one.names())


_OF_NUMBERS = (Kind.NUMBER, Kind.PLACE)


def spread(spark: SparkSession, texts: list[str]) -> Iterator[Found]:
    """What `parse` makes of each, in their order, found by executors."""
    asked = pa.table({"at": range(len(texts)), "text": texts})
    tasks = -(-len(texts) // TASK_TEXTS)
    told = spark.createDataFrame(asked).repartition(tasks).mapInArrow(_packed, "at long, packed binary, reason string")
    decode = msgspec.msgpack.Decoder(FilterSet).decode
    ordered = told.toArrow().sort_by("at")
    for packed, reason in zip(ordered["packed"], ordered["reason"], strict=True):
        yield reason.as_py() if reason.is_valid else decode(packed.as_buffer())


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: canonical filters as brokers send them to one another, or the reasons why there are none."""
    for batch in batches:
        found = [_found(text) for text in batch.column("text").to_pylist()]
        packed = [None if isinstance(one, str) else msgspec.msgpack.encode(one) for one in found]
        reasons = [one if isinstance(one, str) else None for one in found]
        yield pa.record_batch(
            [batch.column("at"), pa.array(packed, pa.binary()), pa.array(reasons, pa.string())],
            names=["at", "packed", "reason"],
        )


def _found(text: str) -> Found:
    try:
        return parse(text)
    except FilterError as error:
        return str(error)


def _sorted_out(
    rows: list[tuple[str, str]], meanings: Mapping[str, Found]
) -> tuple[list[str], list[FilterSet], list[Bad]]:
    """Those that are filters, and the others with what is wrong; a name is used once."""
    names, filters, bad = list[str](), list[FilterSet](), list[Bad]()
    before: str | None = None
    for name, text in rows:
        reason = f"the id {name!r} is used twice" if name == before else meanings[text]
        before = name
        if isinstance(reason, str):
            bad.append(("subscriptions", reason, None, msgspec.json.encode({"id": name, "filter": text}).decode()))
        else:
            names.append(name)
            filters.append(reason)
    return names, filters, bad


@lru_cache(maxsize=1)
def loaded(part: Broadcast[Part]) -> Part:
    """A part, read once in the life of a Python worker as long as it asks for no other.

    A broadcast keeps its value for ever once asked for it, and a worker that meets all parts would come to hold all.
    """
    path = part._path
    assert path is not None
    return part.load_from_path(path)
