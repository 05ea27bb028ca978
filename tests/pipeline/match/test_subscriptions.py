"""Subscriptions that executors parse are those that the driver would parse."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from pyspark.sql import SparkSession
from tests import worlds

from godwit.filters.canonical import canonical
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.text import FilterError, parse
from godwit.pipeline.io.reading import checked
from godwit.pipeline.match import subscriptions
from godwit.pipeline.match.subscriptions import Shipper, spread
from godwit.pipeline.schemas import SUBSCRIPTIONS

TEXTS = [
    "sensor = 5 AND value >= 1 AND value < 2.5",
    "sensor = 5.0 AND value >= -0.0 AND value < 1e300",
    "n = 9223372036854775807 OR n <> -9223372036854775808",
    "carrier IN ('UA', 'it''s', '') AND NOT dest LIKE 'B\\_%'",
    "within(lat, lon, 39.92, 116.42, 5km) AND pm25 IS NOT NULL",
    "within_box(lat, lon, -1, 179, 1, -179) OR ok",
    "a < INFINITY AND startswith(b, c) AND rate(2)",
    "\"odd `name\" = '🐦' OR (a = 1 AND b = 2) OR (a = 1 AND b = 3)",
    "TRUE",
    "FALSE",
    "dest =",
    "",
    "within(lat, lon, 39.92, 116.42)",
    "a = 'never closed",
]


def meant(text: str) -> str:
    """To the last digit and kind, which `==` does not tell apart."""
    try:
        return repr(parse(text))
    except FilterError as error:
        return repr(str(error))


def test_executors_find_what_the_parser_finds_and_say_what_it_says(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "TASK_TEXTS", 5)
    assert [repr(found) for found in spread(spark, TEXTS)] == [meant(text) for text in TEXTS]


def test_many_subscriptions_are_compiled_as_few_are(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"s{number:02}", text) for number, text in enumerate([*TEXTS, *TEXTS])]
    asked = checked(spark.createDataFrame([*rows, rows[0]], SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")
    few = Shipper(spark).ship(asked)
    monkeypatch.setattr(subscriptions, "SPREAD_MIN", 1)
    many = Shipper(spark).ship(asked)
    assert (many.count, many.attributes, many.bad) == (few.count, few.attributes, few.bad)
    assert (few.count, len(few.bad)) == (20, 9)


@given(worlds.filters(), worlds.filters())
def test_a_set_of_filters_arrives_as_it_was_sent(one: Filter, other: Filter) -> None:
    sent = canonical([one, other])
    got = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=FilterSet)
    assert repr(got) == repr(sent)
