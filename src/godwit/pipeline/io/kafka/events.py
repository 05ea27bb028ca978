"""Kafka's records as events, and rows as Kafka's records.

A record that godwit wrote says in its headers which event it is. Any other is named by its topic, partition and offset,
and has the attributes that a broker would see, had it been published: so filters mean the same here and there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.kafka import source
from godwit.pipeline.io.kafka.address import KafkaAddress, one_topic, parsed
from godwit.pipeline.schemas import ARCHIVE_FILES
from godwit.protocols.broker.publication import Publication

CONNECTOR, REGISTERED = "kafka", "spark.godwit.kafka"
BROKER = "kafka"
"""Stands for the broker of events that none of ours has taken."""

NAMED = ("broker", "publisher", "sequence", "topic")
"""What the headers of a record say that godwit wrote, beside the time in `time_us` and the attributes."""

_EVENTS = StructType([StructField(field.name, field.dataType) for field in ARCHIVE_FILES])


def has_connector(spark: SparkSession) -> bool:
    """Whether this session has Spark's own; asked once."""
    known = spark.conf.get(REGISTERED, "")
    if not known:
        known = "connector" if _finds_connector(spark) else "library"
        if known == "library":
            spark.dataSource.register(source.KafkaRecords)
        spark.conf.set(REGISTERED, known)
    return known == "connector"


def _finds_connector(spark: SparkSession) -> bool:
    reader = spark.read.format(CONNECTOR).option("kafka.bootstrap.servers", "localhost:1").option("subscribe", "none")
    try:
        return bool(reader.load().columns)
    except Exception as error:  # an error of Spark, or of Java through the gateway
        return "find" not in str(error).lower()


def records(spark: SparkSession, text: str, *, stream: bool = False, rows_per_batch: int | None = None) -> DataFrame:
    """The records of an address, in the columns of Spark's connector."""
    address = parsed(text)
    is_connector = has_connector(spark)
    options = connector_options(address, rows_per_batch) if is_connector else _own_options(address, rows_per_batch)
    reader = spark.readStream if stream else spark.read
    return reader.format(CONNECTOR if is_connector else source.NAME).options(**options).load()


def connector_options(address: KafkaAddress, rows_per_batch: int | None) -> dict[str, str]:
    """What Spark's connector is told, by the names of its documentation."""
    told = {f"kafka.{name}": value for name, value in address.properties} | {
        "kafka.bootstrap.servers": address.servers,
        "subscribe": ",".join(address.topics),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "kafka.isolation.level": "read_committed",
    }
    return told if rows_per_batch is None else told | {"maxOffsetsPerTrigger": str(rows_per_batch)}


def _own_options(address: KafkaAddress, rows_per_batch: int | None) -> dict[str, str]:
    return {
        "address": msgspec.json.encode(address).decode(),
        "maxOffsetsPerTrigger": "" if rows_per_batch is None else str(rows_per_batch),
    }


def events(spark: SparkSession, text: str, *, stream: bool = False, rows_per_batch: int | None = None) -> DataFrame:
    """The same as events, in the columns of an archive."""
    found = records(spark, text, stream=stream, rows_per_batch=rows_per_batch)
    told = found.select(
        "value", "topic", "partition", "offset", sf.unix_micros("timestamp").alias("time_us"), "headers"
    )
    return told.mapInArrow(_as_events, _EVENTS)


def _as_events(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    kinds = to_arrow_schema(_EVENTS, timezone="UTC")
    for batch in batches:
        yield pa.RecordBatch.from_pylist([_event(row) for row in batch.to_pylist()], schema=kinds)


def _event(row: dict[str, object]) -> dict[str, object]:
    headers = _headers(row["headers"])
    payload, time_us = row["value"], int(headers.get("time_us", row["time_us"]))  # type: ignore[call-overload]
    told = {
        "broker": headers.get("broker", BROKER),
        "publisher": headers.get("publisher", f"{row['topic']}/{row['partition']}"),
        "sequence": int(headers.get("sequence", row["offset"])),  # type: ignore[call-overload]
        "time": time_us,
        "topic": headers.get("topic", row["topic"]),
        "payload": payload,
    }
    seen = _seen(told, headers)
    place = {name: float(seen[name]) for name in ("lat", "lon") if isinstance(seen.get(name), (int, float))}  # type: ignore[arg-type]
    return told | place | {"attributes": msgspec.json.encode(seen).decode()}


def _headers(told: object) -> dict[str, str]:
    pairs = [(pair["key"], pair["value"]) for pair in told] if isinstance(told, list) else []
    return {key: value.decode("utf-8", "replace") for key, value in pairs if key is not None and value is not None}


def _seen(told: dict[str, object], headers: dict[str, str]) -> dict[str, object]:
    if "attributes" in headers:
        try:
            return msgspec.json.decode(headers["attributes"], type=dict[str, object])
        except msgspec.DecodeError:
            pass
    payload = told["payload"] if isinstance(told["payload"], bytes) else b""
    made = Publication(
        str(told["publisher"]),
        int(str(told["sequence"])),
        str(told["topic"]),
        payload,
        time=int(str(told["time"])) / 1e6,
    )
    return dict(made.values())


def write_events(found: DataFrame, text: str) -> None:
    """Archived events to a topic: keyed by publisher, the payload as it was, and the rest in headers.

    Kafka may get an event again when a run is repeated. Its name is in the headers, and ingest takes it once.
    """
    header = [
        sf.struct(sf.lit(name).alias("key"), sf.encode(sf.col(name).cast("string"), "UTF-8").alias("value"))
        for name in (*NAMED, "attributes")
    ]
    time = sf.struct(
        sf.lit("time_us").alias("key"),
        sf.encode(sf.round(sf.col("time_s") * 1e6).cast("long").cast("string"), "UTF-8").alias("value"),
    )
    named = sf.filter(sf.array(*header, time), lambda one: one["value"].isNotNull())
    key = sf.encode("publisher", "UTF-8").alias("key")
    _write(found.select(key, sf.col("payload").alias("value"), named.alias("headers")), text)


def write_rows(found: DataFrame, text: str, key: str) -> None:
    """Rows of any table to a topic, each as a JSON object, keyed by one of its columns."""
    whole = sf.encode(sf.to_json(sf.struct(*(sf.col(f"`{name}`") for name in found.columns))), "UTF-8")
    _write(found.select(sf.encode(sf.col(key).cast("string"), "UTF-8").alias("key"), whole.alias("value")), text)


def _write(found: DataFrame, text: str) -> None:
    address = one_topic(text)
    if has_connector(found.sparkSession):
        options = {f"kafka.{name}": value for name, value in address.properties}
        options |= {"kafka.bootstrap.servers": address.servers, "topic": address.topics[0], "includeHeaders": "true"}
        found.write.format(CONNECTOR).options(**options).save()
        return
    sent = found.mapInArrow(_Sender(address).sent, "sent long").agg(sf.sum("sent")).first()
    assert sent is not None


class _Sender:
    """Sends the rows of a partition by an idempotent producer; for `mapInArrow`."""

    def __init__(self, address: KafkaAddress) -> None:
        self.address = address

    def sent(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from confluent_kafka import Producer

        settings = {
            **dict(self.address.properties),
            "bootstrap.servers": self.address.servers,
            "enable.idempotence": "true",
            "delivery.timeout.ms": str(int(source.TIMEOUT_S * 1000)),
        }
        producer, failed = Producer(settings), list[str]()

        def told(error: object, _: object) -> None:
            if error is not None:
                failed.append(str(error))

        for batch in batches:
            for row in batch.to_pylist():
                self._send(producer, row, told)
            producer.flush()
            if failed:
                raise PipelineError(f"kafka: {self.address.topics[0]}: {failed[0]}")
            yield pa.RecordBatch.from_pydict({"sent": [batch.num_rows]})

    def _send(self, producer: object, row: dict[str, object], told: object) -> None:
        headers = [(one["key"], one["value"]) for one in row.get("headers") or ()]  # type: ignore[attr-defined]
        while True:
            try:
                producer.produce(  # type: ignore[attr-defined]
                    self.address.topics[0], row["value"], row["key"], headers=headers, on_delivery=told
                )
                return
            except BufferError:  # the queue is full: wait until some have gone
                producer.poll(1.0)  # type: ignore[attr-defined]
