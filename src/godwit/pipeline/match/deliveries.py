"""Events x subscriptions -> deliveries, with the broker's own index and so with the broker's own meaning.

Events come in one of two shapes: an attribute in a column of its name, or as a broker archives them, with all of them
as one JSON object in the column `attributes`. A null is a missing attribute.

An event comes back from Python once, with a list of all who want it, and Spark makes a row of each. Row by row, the way
out of Arrow would take Java longer than it takes Python to find them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegralType,
    LongType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from godwit.events import Value
from godwit.pipeline.errors import PipelineError, SchemaError
from godwit.pipeline.io.counting import Counted
from godwit.pipeline.io.lines import OBJECT, value_of
from godwit.pipeline.io.row_groups import Share, planned, wanted_columns
from godwit.pipeline.match.parts import Part, Shipped, loaded
from godwit.pipeline.match.subscriptions import Compiled
from godwit.pipeline.schemas import QUARANTINE, STRING, column, shaped
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Matches

ATTRIBUTES = "attributes"
SUBSCRIPTION = "subscription"
PIECE_ROWS_MIN, PIECE_ROWS_MAX = 1 << 8, 1 << 14
PIECE_PAIRS = 1 << 24
"""Events go to the index so many at a time that no more pairs can come back, should all match all: 128 MiB."""
PIECE_GROWTH, PIECE_GOOD = 8, 1 << 19
"""Where few match, up to eight times as many events go at once, until so many pairs come back: beginning a piece would
be a fifth of the work otherwise."""
BATCH_DELIVERIES = 1 << 18
"""What a worker hands to Java at a time: it stays in the processor's cache, and ids of any length fit Arrow's text."""
READ_ROWS = 1 << 14
LIST_MAX = 1 << 16
"""An event that more want than this comes back several times: Spark keeps a row in one piece of memory."""

_PART = "part"

SEEN, UNREADABLE = "_godwit_seen", "_godwit_unreadable"
_TOLD = (StructField(SEEN, LongType()), StructField(UNREADABLE, LongType()))
"""Columns of what comes back from Python that count events; in rows of deliveries they are 0."""

Batches = Iterator[pa.RecordBatch]


def object_column(events: DataFrame) -> str | None:
    """The column that has all attributes as one JSON object, where they do not have columns of their own."""
    if OBJECT in events.columns:
        return OBJECT
    return ATTRIBUTES if {"publisher", "sequence", ATTRIBUTES} <= set(events.columns) else None


def key_of(events: DataFrame, key: Sequence[str] = ()) -> list[str]:
    """The columns that name an event: those asked for, else what an archive or a column `id` offers."""
    there, is_objects = [name for name in events.columns if name != OBJECT], OBJECT in events.columns
    is_archived = object_column(events) == ATTRIBUTES
    has_id = "id" in there or (is_objects and not there)
    chosen = list(key) or (["publisher", "sequence"] if is_archived else ["id"] if has_id else [])
    if not chosen:
        raise PipelineError(f"--key must name the columns that tell events apart; there are {', '.join(there)}")
    for name in chosen:
        if name not in there and (there or not is_objects):
            raise SchemaError(f"--key: there is no column {name!r}; the columns are {', '.join(map(repr, there))}")
        if name == SUBSCRIPTION:
            raise SchemaError(f"--key: {name!r} is what the column of subscriptions is called; rename it")
    return chosen


def keyed(events: DataFrame, key: Sequence[str], typed: StructType | None = None) -> DataFrame:
    """JSON lines with their key in columns: text, or of the types that are given."""
    missing = [name for name in key if name not in events.columns]
    kinds = {field.name: field.dataType for field in typed or ()}
    return events.select(
        "*", *(value_of(events, name).try_cast(kinds.get(name, STRING)).alias(name) for name in missing)
    )


def deliveries_schema(events: DataFrame, key: Sequence[str]) -> StructType:
    """The key as it is in the events, numbers in their widest type, and the id of the subscription.

    Files that come later may have a wider type, and a table has one.
    """
    fields = [StructField(name, _widest(events.schema[name].dataType)) for name in key]
    return StructType([*fields, StructField(SUBSCRIPTION, STRING)])


def _widest(kind: DataType) -> DataType:
    if isinstance(kind, IntegralType):
        return LongType()
    return DoubleType() if isinstance(kind, FloatType) else kind


def deliveries(
    events: DataFrame,
    subscriptions: Compiled,
    key: Sequence[str],
    *,
    is_as_filed: bool = False,
    counted: Counted | None = None,
) -> DataFrame:
    """A row for each event and each subscription that wants it; `counted` counts events, and those that are unreadable.

    Where `is_as_filed`, the events are all rows of some Parquet files, none left out and no column made of others; then
    workers may read these files themselves, which is faster.
    """
    schema, told_in = deliveries_schema(events, key), object_column(events)
    attributes = None if told_in else [name for name in events.columns if name in subscriptions.attributes]
    listed = StructType([*schema.fields[:-1], StructField(SUBSCRIPTION, ArrayType(STRING, containsNull=False)), *_TOLD])
    matcher = _Matcher(subscriptions.parts, listed.names, attributes, _rows_at_a_time(subscriptions))
    found = _read_and_matched(events, matcher, key, listed) if is_as_filed else None
    if found is None:
        seen = _spread(_matchable(events, key, attributes), len(subscriptions.parts), len(key))
        found = seen.mapInArrow(matcher.match, listed)
    if counted is not None:
        found = counted.summed(found, sf.col(SEEN), sf.col(UNREADABLE))
    return shaped(found.select(*map(column, key), sf.explode(SUBSCRIPTION).alias(SUBSCRIPTION)), schema)


def _read_and_matched(events: DataFrame, matcher: _Matcher, key: Sequence[str], listed: StructType) -> DataFrame | None:
    """The same by tasks that read their share of the files, once for each part; None where that is for Spark to do."""
    if not matcher.parts:
        return None
    names = dict.fromkeys([*key, *([ATTRIBUTES] if matcher.attributes is None else matcher.attributes)])
    wanted = wanted_columns(events, list(names))
    shares = None if wanted is None else planned(events, wanted)
    if not shares:
        return None
    tasks = len(shares) * len(matcher.parts)
    numbers = events.sparkSession.range(0, tasks, numPartitions=tasks)
    return numbers.mapInArrow(_Reader(matcher, tuple(shares), wanted, tuple(key)).match, listed)


def unreadable(events: DataFrame, subscriptions: Compiled | None = None) -> DataFrame:
    """Events that no filter can look into, as rows of quarantine; they match nothing."""
    told_in = object_column(events)
    if told_in is None:
        return _not_finite(events, subscriptions)
    whole = ("publisher", "sequence", ATTRIBUTES) if told_in == ATTRIBUTES else (OBJECT,)
    record = sf.col(OBJECT) if told_in == OBJECT else sf.to_json(sf.struct(*whole))
    told = events.select(sf.col(told_in), record.alias("record"))
    return shaped(told.mapInArrow(_undecodable, QUARANTINE), QUARANTINE)


def _not_finite(events: DataFrame, subscriptions: Compiled | None) -> DataFrame:
    names = [
        field.name
        for field in events.schema
        if isinstance(field.dataType, FractionalType) and subscriptions and field.name in subscriptions.attributes
    ]
    reasons = [
        sf.when(
            column(name).isNotNull() & ~(sf.abs(column(name)) < sf.lit(float("inf"))),
            sf.concat(sf.lit(f"column {name!r}: "), column(name).cast("string"), sf.lit(" is no finite number")),
        )
        for name in names
    ]
    if not reasons:
        return events.sparkSession.createDataFrame([], QUARANTINE)
    bad = events.withColumn("_godwit_reason", sf.coalesce(*reasons)).where("_godwit_reason IS NOT NULL")
    record = sf.to_json(sf.struct(*map(column, events.columns)))
    told = bad.select(
        sf.lit("events").alias("dataset"),
        sf.col("_godwit_reason").alias("reason"),
        sf.lit(None).cast(STRING).alias("file"),
        record.alias("record"),
    )
    return shaped(told, QUARANTINE)


def _matchable(events: DataFrame, key: Sequence[str], attributes: Sequence[str] | None) -> DataFrame:
    """The key and the attributes by position, since `mapInArrow` does not take every name; or the JSON object."""
    keys = [column(name).cast(_widest(events.schema[name].dataType)).alias(f"key{at}") for at, name in enumerate(key)]
    if attributes is None:
        return events.select(*keys, sf.col(object_column(events) or ATTRIBUTES).alias(ATTRIBUTES))
    values = [_attribute(events.schema[name]).alias(f"value{at}") for at, name in enumerate(attributes)]
    # A batch of no columns would have no rows either.
    return events.select(*keys, *(values or [sf.lit(None).cast(STRING).alias("nothing")]))


def _attribute(field: StructField) -> Column:
    """A column as filters see it: times are seconds since 1970, decimals are floats."""
    found = column(field.name)
    if isinstance(field.dataType, TimestampType):
        found = sf.unix_micros(found) / 1e6
    elif isinstance(field.dataType, DateType | TimestampNTZType):
        found = sf.unix_micros(found.cast("timestamp")) / 1e6
    elif isinstance(field.dataType, DecimalType):
        found = found.cast("double")
    elif not _is_plain(field.dataType):
        kind = field.dataType.simpleString()
        raise SchemaError(f"column {field.name!r} is {kind}; filters test only numbers, text and truth values")
    return found


def _is_plain(kind: DataType) -> bool:
    return isinstance(kind, NumericType | StringType | BooleanType | NullType)


def _spread(events: DataFrame, parts: int, keys: int) -> DataFrame:
    """Where subscriptions are split, every event meets every part, and a task meets as few parts as can be.

    Events of one part are shared out by their whole key: a publisher may have most of them.
    """
    if parts <= 1:
        return events
    session = events.sparkSession
    tasks = max(int(session.conf.get("spark.sql.shuffle.partitions", "200") or "200"), parts)
    copies = events.withColumn(_PART, sf.explode(sf.sequence(sf.lit(0), sf.lit(parts - 1))))
    salted = sf.pmod(sf.hash(*(sf.col(name) for name in events.columns[:keys])), sf.lit(max(tasks // parts, 1)))
    return copies.repartition(tasks, sf.col(_PART), salted).sortWithinPartitions(_PART)


def _rows_at_a_time(subscriptions: Compiled) -> int:
    largest = -(-subscriptions.count // max(len(subscriptions.parts), 1)) or 1
    return _whole_slices(np.clip(PIECE_PAIRS // largest, PIECE_ROWS_MIN, PIECE_ROWS_MAX))


def _whole_slices(rows: int | np.integer[Any]) -> int:
    """The index takes 256 events for the price of one."""
    return int(rows) // PIECE_ROWS_MIN * PIECE_ROWS_MIN


@dataclass(frozen=True, slots=True)
class _Matcher:
    """What a task does with its events."""

    parts: tuple[Shipped, ...]
    names: list[str]
    """Of the columns that come out: the key and the subscription."""
    attributes: list[str] | None
    """Of the columns after the key; None where these are one JSON object."""
    rows: int

    def match(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        for batch in batches:
            for part, piece in _runs(batch):
                yield from self.match_part(part, piece)

    def match_part(self, number: int, batch: pa.RecordBatch) -> Batches:
        if not self.parts:
            yield self._told(batch, 0)
            return
        part, at, rows, unreadable = loaded(self.parts[number]), 0, self.rows, 0
        while at < len(batch):
            whole = batch.slice(at, rows)
            piece, events = self._readable(whole)
            unreadable += len(whole) - len(piece)
            matches = part.index.match_batch(events)
            yield from self._listed(part, piece, matches)
            at += len(whole)
            good = PIECE_GOOD * len(whole) // (len(matches.ids) + 1)
            rows = _whole_slices(np.clip(good, self.rows, PIECE_GROWTH * self.rows))
        if number == 0:
            yield self._told(batch, unreadable)

    def _listed(self, part: Part, piece: pa.RecordBatch, matches: Matches) -> Batches:
        events, begins = _rows(matches.offsets, LIST_MAX)
        for first, end in pairwise(_cuts(begins, BATCH_DELIVERIES)):
            own, lists = pa.array(events[first:end]), begins[first : end + 1]
            columns = [piece.column(at).take(own) for at in range(self._keys)]
            wanting = part.names.take(pa.array(matches.ids[lists[0] : lists[-1]]))
            offsets = pa.array((lists - lists[0]).astype(np.int32))
            listed = pa.ListArray.from_arrays(offsets, wanting, type=_LIST)
            none = pa.array(np.zeros(end - first, np.int64))
            yield pa.RecordBatch.from_arrays([*columns, listed, none, none], names=self.names)

    def _told(self, events: pa.RecordBatch, unreadable: int) -> pa.RecordBatch:
        """A row that is no delivery, but says how many events there were."""
        keys = [pa.nulls(1, events.column(at).type) for at in range(self._keys)]
        counts = [pa.array([count], pa.int64()) for count in (len(events), unreadable)]
        return pa.RecordBatch.from_arrays([*keys, pa.array([[]], _LIST), *counts], names=self.names)

    def _readable(self, piece: pa.RecordBatch) -> tuple[pa.RecordBatch, Batch]:
        """The events that filters can look into, and what they see."""
        values = piece.columns[self._keys :]
        if self.attributes is None:
            decoded = [_decoded(text) for text in values[0].to_pylist()]
            own = [one for one in decoded if one is not None]
            if len(own) < len(decoded):
                piece = piece.filter(pa.array([one is not None for one in decoded]))
            return piece, Batch.from_events(own)
        is_finite = _finite(values)
        if is_finite is not None:
            piece, values = piece.filter(is_finite), [one.filter(is_finite) for one in values]
        return piece, Batch.from_arrow(pa.RecordBatch.from_arrays(values, names=self.attributes or [""]))

    @property
    def _keys(self) -> int:
        return len(self.names) - 1 - len(_TOLD)


def _finite(values: Sequence[pa.Array]) -> pa.Array | None:
    """Which rows have finite numbers only; None where all have."""
    floats = [pc.is_finite(one).fill_null(True) for one in values if pa.types.is_floating(one.type)]
    if all(one.true_count == len(one) for one in floats):
        return None
    return reduce(pc.and_, floats)


@dataclass(frozen=True, slots=True)
class _Reader:
    """What a task does that is given no events, but a number that says which to read."""

    matcher: _Matcher
    shares: tuple[Share, ...]
    wanted: pa.Schema
    key: tuple[str, ...]

    def match(self, numbers: Iterable[pa.RecordBatch]) -> Batches:
        for number in (number for batch in numbers for number in batch.column(0).to_pylist()):
            # The shares of one part are neighbors, so that a worker loads a part once.
            part, share = divmod(number, len(self.shares))
            for groups in self.shares[share]:
                for record in groups.read(self.wanted, READ_ROWS):
                    yield from self.matcher.match_part(part, self._laid_out(record))

    def _laid_out(self, record: pa.RecordBatch) -> pa.RecordBatch:
        """As the matcher wants it: the key, and after it what filters look at."""
        attributes = self.matcher.attributes
        values = [ATTRIBUTES] if attributes is None else attributes
        keys = [_in_widest(record.column(name)) for name in self.key]
        return pa.RecordBatch.from_arrays([*keys, *map(record.column, values)], names=[*self.key, *values])


def _in_widest(key: pa.Array) -> pa.Array:
    if pa.types.is_integer(key.type):
        return key.cast(pa.int64())
    return key.cast(pa.float64()) if pa.types.is_floating(key.type) else key


_LIST = pa.list_(pa.field("element", pa.string(), nullable=False))


def _rows(offsets: npt.NDArray[np.int64], most: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The event of each row to come, and where its list begins: no row where nobody wants it, several where very many.

    The end of the last list comes last.
    """
    rows = -(-np.diff(offsets) // most)
    events = np.repeat(np.arange(len(rows)), rows)
    nth = np.arange(len(events)) - np.repeat(np.cumsum(rows) - rows, rows)
    return events, np.append(offsets[events] + nth * most, offsets[-1])


def _cuts(begins: npt.NDArray[np.int64], most: int) -> list[int]:
    """Rows to cut at, so that no run of lists has many more entries than `most`; none where there are no rows."""
    cuts = np.searchsorted(begins[:-1], np.arange(0, begins[-1], most))
    return [int(row) for row in np.unique(np.append(cuts, len(begins) - 1))]


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The events for each part, where there are several."""
    if _PART not in batch.schema.names:
        yield 0, batch
        return
    part = batch.column(_PART).to_numpy()
    bare = batch.drop_columns([_PART])
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
    for begin, end in pairwise(edges):
        yield int(part[begin]), bare.slice(begin, end - begin)


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _decoded(text: str | None) -> Mapping[str, Value] | None:
    try:
        return None if text is None else _decode(text)
    except msgspec.DecodeError:
        return None


def are_objects(texts: pa.Array) -> pa.Array:
    """Which texts are JSON objects, for Spark to ask as it goes over the rows."""
    return pa.array([_decoded(text) is not None for text in texts.to_pylist()], pa.bool_())


def _undecodable(batches: Iterable[pa.RecordBatch]) -> Batches:
    for batch in batches:
        bad = [at for at, text in enumerate(batch.column(0).to_pylist()) if _decoded(text) is None]
        nothing = pa.nulls(len(bad), pa.string())
        records = batch.column(1).take(pa.array(bad, pa.int64()))
        reasons = pa.array(["attributes are no JSON object"] * len(bad), pa.string())
        events = pa.array(["events"] * len(bad), pa.string())
        yield pa.RecordBatch.from_arrays([events, reasons, nothing, records], names=QUARANTINE.names)
