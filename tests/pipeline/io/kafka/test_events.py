"""Kafka as a source and a sink.

No package registry here has a Kafka server, nor the connector of Spark, which comes from Maven. The cluster is the
stand-in of librdkafka: brokers that speak the protocol of Kafka over TCP. What the connector is told is compared with
the names of its documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("confluent_kafka")

from confluent_kafka import Consumer, Producer
from pyspark.sql import SparkSession

from godwit.pipeline import ingest
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.ingest import IngestOptions
from godwit.pipeline.io.kafka import source
from godwit.pipeline.io.kafka.address import KafkaAddress, parsed
from godwit.pipeline.io.kafka.events import connector_options
from godwit.pipeline.io.kafka.source import advanced
from godwit.pipeline.match import job as match_job
from godwit.pipeline.match.job import MatchOptions
from godwit.pipeline.streaming.queries import Pace

WAIT_S = 60.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """Three brokers of Kafka's protocol, as long as their owner lives."""
    owner = Producer({"test.mock.num.brokers": "3", "bootstrap.servers": "none:1", "log_level": "0"})
    told = owner.list_topics(timeout=WAIT_S)
    yield ",".join(f"{broker.host}:{broker.port}" for broker in told.brokers.values())
    owner.flush()


def put(servers: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "log_level": "0"})
    for value in values:
        producer.produce(topic, value, key=b"k")
    assert producer.flush(WAIT_S) == 0


def taken(servers: str, topic: str, count: int) -> list[tuple[bytes, bytes]]:
    client = Consumer(
        {"bootstrap.servers": servers, "group.id": topic, "auto.offset.reset": "earliest", "log_level": "0"}
    )
    client.subscribe([topic])
    found = client.consume(count, timeout=WAIT_S)
    client.close()
    return [(message.key(), message.value()) for message in found]  # type: ignore[misc]


def ingested(out: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(out / "events").to_pylist()
    return sorted(rows, key=lambda row: (str(row["publisher"]), int(str(row["sequence"]))))


def test_records_of_a_topic_are_events_with_what_a_broker_would_see(
    spark: SparkSession, tmp_path: Path, servers: str
) -> None:
    put(servers, "air", b'{"pm25": 163.5, "lat": 39.9}', b'[{"n": "temp", "v": 20}]', b"\xff no json")
    address = f"kafka://{servers}/air"
    summary = ingest.run(spark, IngestOptions(archives=(address,), out=str(tmp_path / "out")))
    events = ingested(tmp_path / "out")
    assert (summary.rows_in, len(events), summary.quarantined) == (3, 3, 0)
    seen = [json.loads(str(event["attributes"])) for event in events]
    assert [one.get("pm25", one.get("temp")) for one in seen] == [163.5, 20.0, None]
    assert {one["topic"] for one in seen} == {"air"}
    assert (events[0]["lat"], events[2]["payload"]) == (39.9, b"\xff no json")


def test_a_stream_takes_every_record_once_over_restarts(spark: SparkSession, tmp_path: Path, servers: str) -> None:
    options = IngestOptions(archives=(f"kafka://{servers}/stream",), out=str(tmp_path / "out"))
    put(servers, "stream", *(b'{"n": %d}' % number for number in range(5)))
    ingest.run_stream(spark, options, Pace())
    put(servers, "stream", *(b'{"n": %d}' % number for number in range(5, 9)))
    ingest.run_stream(spark, options, Pace())
    ingest.run_stream(spark, options, Pace())
    told = sorted(json.loads(str(event["attributes"]))["n"] for event in ingested(tmp_path / "out"))
    assert told == list(range(9))


def test_records_of_a_transaction_are_there_when_it_is_committed(
    spark: SparkSession, tmp_path: Path, servers: str
) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t", "log_level": "0"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("paid", b'{"n": 1}', partition=0)
    producer.commit_transaction(WAIT_S)
    ingest.run(spark, IngestOptions(archives=(f"kafka://{servers}/paid",), out=str(tmp_path / "out")))
    assert len(ingested(tmp_path / "out")) == 1


def test_deliveries_go_to_a_topic_as_json_keyed_by_subscription(
    spark: SparkSession, tmp_path: Path, servers: str
) -> None:
    put(servers, "readings", b'{"pm25": 200}', b'{"pm25": 20}')
    (tmp_path / "subscriptions.jsonl").write_text('{"id": "alarm", "filter": "pm25 > 150"}\n')
    options = MatchOptions(
        events=f"kafka://{servers}/readings",
        subscriptions=str(tmp_path / "subscriptions.jsonl"),
        out=str(tmp_path / "out"),
        to=f"kafka://{servers}/deliveries",
    )
    assert match_job.run(spark, options).rows_out == {"deliveries": 1}
    ((key, value),) = taken(servers, "deliveries", 1)
    assert key == b"alarm"
    assert json.loads(value)["publisher"].startswith("readings/")


def test_an_archive_sent_to_a_topic_comes_back_as_the_same_events_and_once(
    spark: SparkSession, tmp_path: Path, servers: str
) -> None:
    put(servers, "there", b'{"pm25": 1}', b"plain")
    first = IngestOptions(
        archives=(f"kafka://{servers}/there",), out=str(tmp_path / "first"), to=f"kafka://{servers}/back"
    )
    ingest.run(spark, first)
    ingest.run(spark, first)
    ingest.run(spark, IngestOptions(archives=(f"kafka://{servers}/back",), out=str(tmp_path / "second")))
    assert ingested(tmp_path / "second") == ingested(tmp_path / "first")


class Answering:
    """A client of Kafka that is told what to answer: the stand-in keeps all records, and makes topics as asked."""

    def __init__(self, low: int, high: int, error: str | None = None) -> None:
        told = SimpleNamespace(error=error and SimpleNamespace(str=lambda: error), partitions={0: None})
        self.list_topics = lambda topic, timeout: SimpleNamespace(topics={topic: told})
        self.get_watermark_offsets = lambda partition, timeout: (low, high)
        self.close = lambda: None


def test_records_that_were_removed_before_they_were_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "consumer", lambda address: Answering(low=5, high=9))
    stream = source._RecordStream(parsed("kafka://a:1/air"), None)
    with pytest.raises(PipelineError, match="air/0: records 3 to 4 are not kept any more"):
        stream.partitions({"air": {"0": 3}}, {"air": {"0": 9}})
    (part,) = stream.partitions({"air": {"0": 5}}, {"air": {"0": 9}})
    assert part.value == ("air", 0, 5, 9)


def test_a_topic_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "consumer", lambda address: Answering(0, 0, "Broker: Unknown topic or partition"))
    with pytest.raises(PipelineError, match="topic 'air': Broker: Unknown topic"):
        source._RecordStream(parsed("kafka://a:1/air"), None).initialOffset()


def test_sparks_connector_is_told_the_options_that_it_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "client.properties").write_text("# secrets\nsecurity.protocol=SASL_SSL\n")
    monkeypatch.setenv("GODWIT_KAFKA_PROPERTIES", str(tmp_path / "client.properties"))
    assert connector_options(parsed("kafka://a:9092,b:9092/air,water"), 1000) == {
        "kafka.bootstrap.servers": "a:9092,b:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.isolation.level": "read_committed",
        "subscribe": "air,water",
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        "maxOffsetsPerTrigger": "1000",
    }


@pytest.mark.parametrize(
    "text", ["kafka://", "kafka://a:1", "kafka://a:1/", "kafka:///t", "kafka://a:1/t/u", "kafka://a/t"]
)
def test_an_address_that_is_none_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(PipelineError, match="right would be"):
        parsed(text)


def test_a_limit_is_shared_by_the_partitions_and_always_makes_progress() -> None:
    start, ends = {"t": {"0": 10, "1": 0}}, {"t": {"0": 110, "1": 100, "2": 1}}
    assert advanced(start, ends, 20) == {"t": {"0": 19, "1": 9, "2": 1}}
    assert advanced(ends, ends, 20) == ends
    assert KafkaAddress("a:1", ("t",)).properties == ()
