"""Texts of subscriptions to compiled indexes: in this process, or by executors, which hand over the finished bytes."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.filters.predicates import Kind
from godwit.filters.text import parse
from godwit.pipeline.match.parts import Part

TASK_TEXTS = 2_500
"""How many texts a task parses."""

CHUNK_BYTES = 8 << 20
"""What a task hands over at a time of an index that it has built."""

Bad = tuple[str, str, str | None, str]
"""A row of quarantine."""

Found = FilterSet | str
"""What a text means, or why it is no filter."""


def part_of(parts: int) -> Column:
    return sf.pmod(sf.xxhash64("id"), sf.lit(parts)).cast("int")


def built(wishes: DataFrame, count: int, parts: int) -> DataFrame:
    """The indexes in pieces, and what is told of each; equal texts meet in one task, and are parsed once there."""
    tasks = max(-(-count // TASK_TEXTS), parts)
    parsed = wishes.repartition(tasks, "filter").mapInArrow(_parsed, "id string, filter string, packed binary")
    own = parsed.withColumn("part", part_of(parts)).repartition(parts, "part")
    return own.sortWithinPartitions("part", "id", "filter").mapInArrow(_parts, "part int, chunk binary, about binary")


class About(msgspec.Struct, frozen=True):
    """What the driver is told of a part."""

    count: int = 0
    attributes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    bad: tuple[Bad, ...] = ()

    def __or__(self, other: About) -> About:
        return About(
            self.count + other.count,
            self.attributes | other.attributes,
            self.numbers | other.numbers,
            (*self.bad, *other.bad),
        )


class Built:
    """Indexes that come in pieces from executors: to files, one for each part."""

    def __init__(self, folder: Path, parts: int) -> None:
        self._folder, self._numbers = folder, range(parts)
        self._parts: set[int] = set()
        self.about = About()

    def take(self, part: int, chunk: bytes | None, about: bytes | None) -> None:
        if chunk is not None:
            with self._path(part).open("ab") as file:
                file.write(chunk)
        if about is not None:
            self._parts.add(part)
            self.about = self.about | msgspec.msgpack.decode(about, type=About)

    def paths(self) -> list[Path]:
        """In the order of their numbers, by which changes are told; a part that has nothing has an empty index."""
        for number in set(self._numbers) - self._parts:
            with self._path(number).open("wb") as file:
                pickle.dump(Part(), file, pickle.HIGHEST_PROTOCOL)
        return [self._path(number) for number in self._numbers]

    def _path(self, part: int) -> Path:
        return self._folder / str(part)


def _parsed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: canonical filters as brokers send them to one another; nothing where a text is no filter."""
    known = dict[str, bytes | None]()
    for batch in batches:
        texts = batch.column("filter").to_pylist()
        for text in set(texts) - known.keys():
            meant = meaning(text)
            known[text] = None if isinstance(meant, str) else msgspec.msgpack.encode(meant)
        packed = pa.array([known[text] for text in texts], pa.binary())
        yield pa.record_batch([batch.column("id"), batch.column("filter"), packed], names=["id", "filter", "packed"])
        if len(known) > 4 * TASK_TEXTS:
            known.clear()


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: subscriptions sorted by part and id to indexes in pieces, one part after the other."""
    building: _Building | None = None
    for batch in batches:
        numbers = batch.column("part").to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for begin, end in pairwise(edges):
            number = int(numbers[begin]) if end > begin else -1
            if building is not None and end > begin and building.number != number:
                yield from building.pieces()
                building = None
            if end > begin:
                building = building or _Building(number)
                building.add(batch.slice(begin, end - begin))
    if building is not None:
        yield from building.pieces()


class _Building:
    """A part that is being compiled in a task."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._part, self._last, self._about = Part(), None, About()

    _last: str | None

    def add(self, rows: pa.RecordBatch) -> None:
        names, filters, bad = list[str](), list[FilterSet](), list[Bad]()
        columns = (rows.column(name) for name in ("id", "filter", "packed"))
        for name, text, packed in zip(*columns, strict=True):
            own = name.as_py()
            if own == self._last:
                bad.append(twice(own, text.as_py()))
            elif packed.is_valid:
                names.append(own)
                filters.append(_decode(packed.as_buffer()))
            else:
                bad.append(_bad(own, text.as_py(), str(meaning(text.as_py()))))
            self._last = own
        self._part.add(names, filters)
        told = About(len(names), asked_for(filters), compared_with_numbers(filters), tuple(bad))
        self._about = self._about | told

    def pieces(self) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryFile() as file:
            pickle.dump(self._part, file, pickle.HIGHEST_PROTOCOL)
            self._part = Part()
            file.seek(0)
            while chunk := file.read(CHUNK_BYTES):
                yield self._piece(chunk, None)
        yield self._piece(None, msgspec.msgpack.encode(self._about))

    def _piece(self, chunk: bytes | None, about: bytes | None) -> pa.RecordBatch:
        columns = [pa.array([self.number], pa.int32()), pa.array([chunk], pa.binary()), pa.array([about], pa.binary())]
        return pa.record_batch(columns, names=["part", "chunk", "about"])


_decode = msgspec.msgpack.Decoder(FilterSet).decode


def asked_for(filters: Iterable[FilterSet]) -> frozenset[str]:
    return frozenset(name for one in filters for part in one for own in part for name in own.names())


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
        found = [meaning(text) for text in batch.column("text").to_pylist()]
        packed = [None if isinstance(one, str) else msgspec.msgpack.encode(one) for one in found]
        reasons = [one if isinstance(one, str) else None for one in found]
        yield pa.record_batch(
            [batch.column("at"), pa.array(packed, pa.binary()), pa.array(reasons, pa.string())],
            names=["at", "packed", "reason"],
        )


def meaning(text: str) -> Found:
    try:
        return parse(text)
    except FilterError as error:
        return str(error)


def sorted_out(
    rows: list[tuple[str, str]], meanings: Mapping[str, Found]
) -> tuple[list[str], list[FilterSet], list[Bad]]:
    """Those that are filters, and the others with what is wrong; a name is used once."""
    names, filters, bad = list[str](), list[FilterSet](), list[Bad]()
    before: str | None = None
    for name, text in rows:
        reason = _USED.format(name) if name == before else meanings[text]
        before = name
        if isinstance(reason, str):
            bad.append(_bad(name, text, reason))
        else:
            names.append(name)
            filters.append(reason)
    return names, filters, bad


_USED = "the id {!r} is used twice"


def twice(name: str, text: str) -> Bad:
    return _bad(name, text, _USED.format(name))


def _bad(name: str, text: str, reason: str) -> Bad:
    return ("subscriptions", reason, None, msgspec.json.encode({"id": name, "filter": text}).decode())
