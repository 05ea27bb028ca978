# ruff: noqa: N802  (the names of methods are Spark's)
"""`spark.read.format("godwit")` and `spark.readStream.format("godwit")`: archives of brokers, in folders or live.

    register(spark)
    spark.readStream.format("godwit").option("filter", "pm25 > 150").load("godwit://north:9884,godwit://south:9884")

| option | meaning |
|---|---|
| path | folders that brokers archive to, `godwit://host:port` of `archive.listen`, `godwits://` over TLS; with commas |
| kind | `events`, or `traces` |
| filter, topics | only what a subscription to this would get; the broker sends nothing else |
| maxEventsPerBatch | how many events of the archive a micro-batch goes through at most |
| startingOffsets | where a new stream begins: `earliest` or `latest` |
| failOnDataLoss | whether a stream ends when files that it has not read are gone: `true`, or `false` to go on |
| user, password | where the broker wants them; else the environment's GODWIT_USER and GODWIT_PASSWORD |
| authority | a file with the certificate that signed the broker's, in PEM, where the machine does not know it |

An offset is a position in each archive, and the rows between two positions are always the same. A micro-batch that
Spark repeats after a crash is the same micro-batch; nothing needs to be acknowledged, and readers do not disturb one
another. Brokers keep their files until somebody removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as ds
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructField, StructType

from godwit.net.archive.log import ArchiveError, File, Piece, Position, advanced, gap, latest, pieces, short, split
from godwit.pipeline import schemas
from godwit.pipeline.io.source_options import EVENTS, TRACES, Asked, Live, archive_at, asked

NAME, REGISTERED = "godwit", "spark.godwit.registered"
KINDS = {EVENTS: schemas.ARCHIVE_FILES, TRACES: schemas.TRACES}
BATCH_ROWS, STREAM_ROWS = 1 << 18, 1 << 14
"""In one task: a batch wants few and large ones, a micro-batch should be over soon."""

Offset = dict[str, Any]
"""For each archive the file and the row."""


def register(spark: SparkSession) -> None:
    """Let this session know the format, and let it push filters to it.

    Jobs call it when they are given a live source. It takes Spark a Python process and some seconds at the first time.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    if spark.conf.get(REGISTERED, "") != NAME:
        spark.dataSource.register(GodwitSource)
        spark.conf.set(REGISTERED, NAME)


def frame(spark: SparkSession, path: str, live: Live, *, kind: str = EVENTS, stream: bool = False) -> DataFrame:
    """The archives at `path`; what is wrong with it is told at once, as a `PipelineError`."""
    told = {"path": path, "kind": kind, **live.options()}
    asked(told)
    register(spark)
    reader = spark.readStream if stream else spark.read
    return reader.format(NAME).options(**told).load()


class GodwitSource(DataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self.asked = asked(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return StructType([StructField(field.name, field.dataType) for field in KINDS[self.asked.kind]])

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.asked)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _StreamReader(self.asked)


class _Reading:
    """What both readers do in a task."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's word for: there is nothing
            return
        place, *rest = partition.value
        archive = archive_at(place, self.asked)
        for batch in archive.read(Piece(*rest), self.asked.condition, self.asked.topics):
            # What a file says of the one before it is none of Spark's business.
            yield batch.replace_schema_metadata()

    def files(self, place: str, after: str = "") -> list[File]:
        return archive_at(place, self.asked).files(after)


def _parts(place: str, files: Sequence[File], start: Position, end: Position, rows: int) -> Iterator[InputPartition]:
    for piece in pieces(files, start, end):
        for small in split(piece, rows):
            yield InputPartition((place, small.file, small.start, small.end))


class _Reader(_Reading, DataSourceReader):
    """All that there is when the query is planned."""

    def pushFilters(self, filters: list[ds.Filter]) -> Iterable[ds.Filter]:
        """Spark asks every row again, so that it is enough to take over what a subscription says just as well."""
        texts = [text for text in map(_condition, filters) if text is not None] if self.asked.kind == EVENTS else []
        own = [f"({self.asked.condition})"] if self.asked.condition else []
        self.asked = msgspec.structs.replace(self.asked, condition=" AND ".join([*own, *texts]))
        return filters

    def partitions(self) -> list[InputPartition]:
        found = list[InputPartition]()
        for place in self.asked.places:
            files = self.files(place)
            found += _parts(place, files, Position(), latest(files, Position()), BATCH_ROWS)
        return found


_COMPARED = {
    ds.EqualTo: "=",
    ds.GreaterThan: ">",
    ds.GreaterThanOrEqual: ">=",
    ds.LessThan: "<",
    ds.LessThanOrEqual: "<=",
}


def _condition(pushed: ds.Filter) -> str | None:
    """A filter of Spark in the words of a subscription, where columns are attributes too: `topic`, `lat`, `lon`."""
    match pushed:
        case ds.EqualTo(("topic",), str(value)):
            return f"topic = {_quoted(value)}"
        case ds.In(("topic",), values) if values and all(isinstance(value, str) for value in values):
            return f"topic IN ({', '.join(map(_quoted, values))})"
        case (
            ds.EqualTo((("lat" | "lon") as name,), value)
            | ds.GreaterThan((("lat" | "lon") as name,), value)
            | ds.GreaterThanOrEqual((("lat" | "lon") as name,), value)
            | ds.LessThan((("lat" | "lon") as name,), value)
            | ds.LessThanOrEqual((("lat" | "lon") as name,), value)
        ) if isinstance(value, float) and abs(value) <= 360:
            return f"{name} {_COMPARED[type(pushed)]} {value!r}"
    return None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class _StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """From one position to the next."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._target: dict[str, Position] | None = None
        self._at = dict.fromkeys(asked.places, Position())

    def initialOffset(self) -> Offset:
        return _offset(self._ends() if self.asked.from_latest else dict.fromkeys(self.asked.places, Position()))

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.asked.rows_max is None else ReadMaxRows(self.asked.rows_max)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        each = None if rows_max is None else -(-rows_max // len(self.asked.places))
        self._at = {place: self._advanced(place, _position(start, place), each) for place in self.asked.places}
        return _offset(self._at)

    def reportLatestOffset(self) -> Offset:
        return _offset(self._ends())

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        found = list[InputPartition]()
        for place in self.asked.places:
            begin, until = _position(start, place), _position(end, place)
            files = self._files(place, begin)
            if lost := short(files, until):
                self._tell_loss(place, lost)
            found += _parts(place, files, begin, until, STREAM_ROWS)
        return found

    def _advanced(self, place: str, start: Position, rows_max: int | None) -> Position:
        end = advanced(self._files(place, start), start, rows_max)
        return end if self._target is None else max(start, min(end, self._target.get(place, end)))

    def _files(self, place: str, start: Position) -> list[File]:
        files = self.files(place, start.file)
        if lost := gap(files, start):
            self._tell_loss(place, lost)
        return files

    def _tell_loss(self, place: str, lost: str) -> None:
        if self.asked.fail_on_loss:
            raise ArchiveError(f"{place}: {lost}; failOnDataLoss=false would go on with what is there")

    def _ends(self) -> dict[str, Position]:
        return {place: latest(self.files(place, at.file), at) for place, at in self._at.items()}


def _offset(found: Mapping[str, Position]) -> Offset:
    return {place: {"file": position.file, "row": position.row} for place, position in found.items()}


def _position(offset: Offset, place: str) -> Position:
    """Of an archive that the stream has not known before: its beginning."""
    told = offset.get(place)
    return Position() if told is None else Position(told["file"], told["row"])
