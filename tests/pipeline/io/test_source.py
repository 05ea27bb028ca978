"""Archives of brokers as a source of Spark: all of it, parts of it, and as a stream that goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In, Not, StringStartsWith

from godwit.filters.text import parse
from godwit.net.archive import writer
from godwit.net.archive.writer import ArchiveOptions, Roll
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.source import _Reader, register
from godwit.pipeline.io.source_options import Asked, asked
from godwit.protocols.broker.publication import Publication


@pytest.fixture(autouse=True)
def known(request: pytest.FixtureRequest) -> None:
    if "spark" in request.fixturenames:
        register(request.getfixturevalue("spark"))


@pytest.fixture
def roll(tmp_path: Path) -> Iterator[Roll]:
    """The archive of a broker that runs."""
    running = writer.events(tmp_path / "archive", "north", ArchiveOptions(batch_s=0.01))
    yield running
    running.stop()


def published(roll: Roll, *numbers: int) -> None:
    written = roll.written + len(numbers)
    for number in numbers:
        payload = b'{"pm25": %d, "lat": %d.5, "lon": 116}' % (number, number)
        roll.add(Publication("van-7", number, f"air/{number % 2}", payload, time=1e9 + number))
    while roll.written < written:
        time.sleep(0.005)


def sequences(found: DataFrame) -> list[int]:
    return sorted(row["sequence"] for row in found.collect())


def drained(frame: DataFrame, folder: Path) -> list[tuple[int, list[int]]]:
    """What each micro-batch of a stream got, until nothing is left."""
    seen: list[tuple[int, list[int]]] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, number: seen.append((number, sequences(batch))))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return seen


def test_a_batch_has_what_is_finished_and_what_is_being_written(
    spark: SparkSession, tmp_path: Path, roll: Roll
) -> None:
    published(roll, 1, 2)
    roll.stop()
    more = writer.events(tmp_path / "archive", "north", ArchiveOptions(batch_s=0.01))
    published(more, 3, 4)
    everything = spark.read.format("godwit").load(str(tmp_path / "archive"))
    assert sequences(everything) == [1, 2, 3, 4]
    assert sequences(everything.where("topic = 'air/1' AND lat > 2.0 AND qos = 0")) == [3]
    chosen = spark.read.format("godwit").option("filter", "pm25 <> 2").option("topics", "air/0")
    assert sequences(chosen.load(str(tmp_path / "archive"))) == [4]
    more.stop()


def test_what_a_query_says_of_topics_and_places_becomes_a_subscription() -> None:
    reader = _Reader(Asked(places=("archive",), condition="pm25 > 1"))
    pushed: list[Filter] = [
        EqualTo(("topic",), "it's"),
        In(("topic",), ("it's", "b")),
        GreaterThan(("lat",), 39.5),
        EqualTo(("publisher",), "p"),
        Not(EqualTo(("topic",), "c")),
        StringStartsWith(("topic",), "a"),
    ]
    assert list(reader.pushFilters(pushed)) == pushed, "Spark must ask again"
    expected = "(pm25 > 1) AND topic = 'it''s' AND topic IN ('it''s', 'b') AND lat > 39.5"
    assert reader.asked.condition == expected
    assert parse(expected).filters


def test_a_stream_takes_so_many_at_a_time_and_goes_on_where_it_stopped(
    spark: SparkSession, tmp_path: Path, roll: Roll
) -> None:
    published(roll, 1, 2)
    published(roll, 3, 4, 5)
    stream = spark.readStream.format("godwit").option("maxEventsPerBatch", 2).load(str(tmp_path / "archive"))
    assert drained(stream, tmp_path) == [(0, [1, 2]), (1, [3, 4]), (2, [5])]
    roll.stop()
    more = writer.events(tmp_path / "archive", "north", ArchiveOptions(batch_s=0.01))
    published(more, 6)
    more.stop()
    assert drained(stream, tmp_path) == [(3, [6])]


def test_a_stream_that_missed_a_file_ends_and_says_so(spark: SparkSession, tmp_path: Path, roll: Roll) -> None:
    published(roll, 1)
    roll.stop()
    stream = spark.readStream.format("godwit").load(str(tmp_path / "archive"))
    assert drained(stream, tmp_path) == [(0, [1])]
    for number in (2, 3):
        more = writer.events(tmp_path / "archive", "north", ArchiveOptions(batch_s=0.01))
        published(more, number)
        more.stop()
    sorted((tmp_path / "archive").iterdir())[1].unlink()
    with pytest.raises(PySparkException, match=r"rows between .* are gone"):
        drained(stream, tmp_path)
    going_on = spark.readStream.format("godwit").option("failOnDataLoss", "false").load(str(tmp_path / "archive"))
    assert drained(going_on, tmp_path) == [(1, [3])]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "path: name a folder"),
        ({"path": "/nowhere"}, "/nowhere: there is no such folder"),
        ({"path": "mqtt://north:1883"}, "right would be godwit://host:port"),
        ({"path": "godwit://north"}, "names no port"),
        ({"path": "godwit://north:x"}, "right would be host:port"),
        ({"path": "godwit://north:1", "filter": "pm25 >"}, "filter: .*column"),
        ({"path": "godwit://north:1", "topics": "a/b#"}, "topics: .*whole level"),
        ({"path": "godwit://north:1", "kind": "traces", "filter": "a = 1"}, "traces have no attributes"),
        ({"path": "godwit://north:1", "kind": "people"}, "right would be events or traces"),
        ({"path": "godwit://north:1", "maxEventsPerBatch": "-5"}, "maxEventsPerBatch: '-5'; right would be a number"),
        ({"path": "godwit://north:1", "startingOffsets": "now"}, "right would be earliest or latest"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(PipelineError, match=complaint):
        asked(options)
