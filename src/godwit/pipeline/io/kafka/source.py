# ruff: noqa: N802  (the names of methods are Spark's)
"""Records of topics as a source of Spark, by librdkafka: with the columns of Spark's connector, where there is none.

An offset is one number for each partition of each topic, and records between two offsets are always the same as long as
Kafka keeps them: a micro-batch that Spark repeats is the same micro-batch. Nothing is committed to Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.kafka.address import KafkaAddress

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

NAME = "godwit_kafka"
BATCH_ROWS = 10_000
TIMEOUT_S, POLL_S = 60.0, 0.5
"""How long a broker of Kafka may take to answer."""

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
COLUMNS = StructType(
    [
        *(StructField("key", BinaryType()), StructField("value", BinaryType()), StructField("topic", StringType())),
        *(StructField("partition", IntegerType()), StructField("offset", LongType())),
        *(StructField("timestamp", TimestampType()), StructField("timestampType", IntegerType())),
        StructField("headers", HEADERS),
    ]
)
"""Those that Spark's connector has, with `includeHeaders`."""

Offsets = dict[str, dict[str, int]]
"""By topic and partition: the next record."""


class KafkaRecords(DataSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        told = {name.lower(): value for name, value in options.items()}
        self.address = msgspec.json.decode(told["address"], type=KafkaAddress)
        self.rows_max = int(told["maxoffsetspertrigger"]) if told.get("maxoffsetspertrigger") else None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return _RecordReader(self.address)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _RecordStream(self.address, self.rows_max)


def consumer(address: KafkaAddress) -> Consumer:
    """A client that reads what it is told to, and belongs to no group."""
    try:
        from confluent_kafka import Consumer
    except ModuleNotFoundError:
        raise PipelineError(
            "kafka:// needs Spark's connector, as in --conf"
            " spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 with the version of your Spark, or"
            " confluent-kafka, which comes with godwit[kafka]"
        ) from None
    settings = {
        **dict(address.properties),
        "bootstrap.servers": address.servers,
        "group.id": "godwit",
        "enable.auto.commit": "false",
        "auto.offset.reset": "error",
        # What a transaction of a producer has not committed is not there.
        "isolation.level": "read_committed",
        "enable.partition.eof": "true",
    }
    return Consumer(settings)


class _Reading:
    def __init__(self, address: KafkaAddress) -> None:
        self.address = address

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's word for: there is nothing
            return
        topic, number, start, end = partition.value
        yield from records(self.address, topic, number, start, end)

    def bounds(self) -> tuple[Offsets, Offsets]:
        """The oldest record that is kept, and the one that will come next."""
        from confluent_kafka import KafkaException, TopicPartition

        client = consumer(self.address)
        lows, highs = Offsets(), Offsets()
        try:
            for topic in self.address.topics:
                told = client.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
                if told.error is not None:
                    raise PipelineError(f"kafka: topic {topic!r}: {told.error.str()}")
                for number in sorted(told.partitions):
                    low, high = client.get_watermark_offsets(TopicPartition(topic, number), timeout=TIMEOUT_S)
                    lows.setdefault(topic, {})[str(number)] = low
                    highs.setdefault(topic, {})[str(number)] = high
        except KafkaException as error:
            raise PipelineError(f"kafka: {self.address.servers}: {error.args[0].str()}") from None
        finally:
            client.close()
        return lows, highs


def _parts(start: Offsets, end: Offsets) -> list[InputPartition]:
    return [
        InputPartition((topic, int(number), start.get(topic, {}).get(number, 0), until))
        for topic, numbers in end.items()
        for number, until in numbers.items()
        if until > start.get(topic, {}).get(number, 0)
    ]


class _RecordReader(_Reading, DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        lows, highs = self.bounds()
        return _parts(lows, highs)


class _RecordStream(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, address: KafkaAddress, rows_max: int | None) -> None:
        super().__init__(address)
        self._rows_max = rows_max
        self._target: Offsets | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self.bounds()[0]

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._rows_max is None else ReadMaxRows(self._rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self.bounds()[1]

    def reportLatestOffset(self) -> dict[str, Any]:
        return self.bounds()[1]

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        ends = self._target if self._target is not None else self.bounds()[1]
        if not isinstance(limit, ReadMaxRows):
            return ends
        return advanced(start, ends, limit.max_rows)

    def partitions(self, start: Offsets, end: Offsets) -> list[InputPartition]:
        lows, _ = self.bounds()
        for topic, numbers in end.items():
            for number in numbers:
                begun, low = start.get(topic, {}).get(number, 0), lows.get(topic, {}).get(number, 0)
                if begun < low:
                    raise PipelineError(f"kafka: {topic}/{number}: records {begun} to {low - 1} are not kept any more")
        return _parts(start, end)


def advanced(start: Offsets, ends: Offsets, rows_max: int) -> Offsets:
    """So many records further, the same share of every partition that has more."""
    ahead = {
        (topic, number): end - start.get(topic, {}).get(number, 0)
        for topic, numbers in ends.items()
        for number, end in numbers.items()
    }
    total = sum(ahead.values())
    share = min(rows_max / total, 1.0) if total else 1.0
    found = Offsets()
    for (topic, number), more in ahead.items():
        begun = start.get(topic, {}).get(number, 0)
        # At least one of each that has any, or a small limit would never reach the end.
        found.setdefault(topic, {})[number] = begun + min(more, max(int(more * share), 1))
    return found


def records(address: KafkaAddress, topic: str, number: int, start: int, end: int) -> Iterator[pa.RecordBatch]:
    """Those of a partition from one offset to before another. Control records have offsets and are nobody's."""
    from confluent_kafka import KafkaError, TopicPartition

    client, kinds = consumer(address), to_arrow_schema(COLUMNS, timezone="UTC")
    try:
        client.assign([TopicPartition(topic, number, start)])
        at, heard_s = start, time.monotonic()
        while at < end:
            # It waits for as many as it is asked for, and control records never come: so it is asked again and again.
            told = client.consume(min(BATCH_ROWS, end - at), timeout=POLL_S)
            if told:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > TIMEOUT_S:
                raise PipelineError(f"kafka: {topic}/{number}: no record from {at} on for {TIMEOUT_S:g} s")
            rows = list[dict[str, Any]]()
            for message in told:
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    at = end
                elif error is not None:
                    raise PipelineError(f"kafka: {topic}/{number}: {error.str()}")
                elif (offset := message.offset() or 0) < end:
                    rows.append(_row(message))
                    at = offset + 1
                else:
                    at = end
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=kinds)
    finally:
        client.close()


def _row(message: Message) -> dict[str, Any]:
    kind, time_ms = message.timestamp()
    headers: Any = message.headers() or ()
    return {
        "key": _bytes(message.key()),
        "value": _bytes(message.value()),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": time_ms * 1000,
        # The client counts from 1 what Java's counts from 0: the time of the producer, or that of the log.
        "timestampType": kind - 1,
        "headers": [{"key": key, "value": _bytes(value)} for key, value in headers],
    }


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
