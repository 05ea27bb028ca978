"""Subscriptions that executors parse are those that the driver would parse."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from pyspark.sql import DataFrame, SparkSession
from tests import worlds

from godwit.filters.canonical import canonical
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.text import FilterError, parse
from godwit.pipeline.io.reading import Dataset, checked
from godwit.pipeline.match import compilation, subscriptions
from godwit.pipeline.match.compilation import spread
from godwit.pipeline.match.deliveries import deliveries
from godwit.pipeline.match.subscriptions import Compiled, Shipper
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
    monkeypatch.setattr(compilation, "TASK_TEXTS", 5)
    assert [repr(found) for found in spread(spark, TEXTS)] == [meant(text) for text in TEXTS]


def test_many_subscriptions_are_compiled_as_few_are(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"s{number:02}", text) for number, text in enumerate([*TEXTS, *TEXTS])]
    asked = checked(spark.createDataFrame([*rows, rows[0]], SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")
    few = Shipper(spark).ship(asked)
    monkeypatch.setattr(subscriptions, "SPREAD_MIN", 1)
    many = Shipper(spark).ship(asked)
    assert (many.count, many.attributes, set(many.bad)) == (few.count, few.attributes, set(few.bad))
    assert (few.count, len(few.bad)) == (20, 9)
    events = spark.range(-2, 40).selectExpr("id", "id % 7 AS a", "id % 3 AS b", "id AS sensor", "1.5 AS value")
    assert wanted(events, many) == wanted(events, few)


def test_of_many_subscriptions_neither_texts_nor_filters_are_on_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(f"s{number}", f"a = {number} AND note = 'of number {number}'") for number in range(60)]
    asked = checked(spark.createDataFrame(rows, SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")
    monkeypatch.setattr(subscriptions, "SPREAD_MIN", 1)
    for name in ("meaning", "sorted_out", "Part"):
        monkeypatch.setattr(subscriptions, name, None)  # here, and not where executors are
    shipper = Shipper(spark)
    many = shipper.ship(asked)
    assert many.count == 60
    told = repr(many) + repr(vars(shipper))
    assert "of number" not in told
    assert len(told) < 60 * len(rows[-1][1]), "less than the texts alone"
    shipper.close()


def wanted(events: DataFrame, compiled: Compiled) -> list[tuple[int, str]]:
    rows = deliveries(events, compiled, ["id"]).collect()
    return sorted((row["id"], row["subscription"]) for row in rows)


def test_a_changed_set_ships_the_difference_and_means_what_it_would_mean_compiled_anew(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(subscriptions, "SPREAD_MIN", 1)
    monkeypatch.setattr(subscriptions, "CHANGED_SHARE", 1.5)
    events = spark.range(0, 40).selectExpr("id", "id % 7 AS a", "id % 3 AS b")

    def asked(**filters: str) -> Dataset:
        return checked(spark.createDataFrame(list(filters.items()), SUBSCRIPTIONS), SUBSCRIPTIONS, "subscriptions")

    first = {f"s{at}": f"a = {at}" for at in range(12)} | {"broken": "a ="}
    steps = [
        {**first, "s1": "b = 1", "new": "c IS NULL AND a > 4", "broken": "a = 6"},
        {name: text for name, text in first.items() if name not in ("s0", "s2")} | {"new": "a > b", "s3": "a !"},
        {**first, "new": "a > b"},
    ]
    shipper = Shipper(spark, part_max=5, memory=str(tmp_path / "known"))
    before = shipper.ship(asked(**first))
    assert [len(part.changes) for part in before.parts] == [0, 0, 0]
    for step in steps:
        now = shipper.ship(asked(**step), before)
        assert [part.base for part in now.parts] == [part.base for part in before.parts]
        shipper.forget(before)
        assert wanted(events, now) == wanted(events, Shipper(spark).ship(asked(**step)))
        assert len(list((tmp_path / "known").iterdir())) == 1, "older versions are forgotten"
        before = now
    assert before.changed == 3 + 6 + 3
    anew = shipper.ship(asked(**dict.fromkeys(first, "a = 1")), before)
    assert not {id(part.base) for part in anew.parts} & {id(part.base) for part in before.parts}
    sent = [Path(cast(Any, parcel).broadcast._path) for part in before.parts for parcel in part.parcels()]
    assert all(file.exists() for file in sent)
    shipper.forget(before)
    assert not any(file.exists() for file in sent), "what was sent is taken back"
    assert len(wanted(events, anew)) == 6 * len(first)
    shipper.close()


def test_a_set_that_did_not_change_ships_nothing(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(subscriptions, "SPREAD_MIN", 1)
    rows = spark.createDataFrame([(f"s{at}", "a > 1") for at in range(9)], SUBSCRIPTIONS)
    shipper, asked = Shipper(spark, memory=str(tmp_path)), checked(rows, SUBSCRIPTIONS, "subscriptions")
    before = shipper.ship(asked)
    again = shipper.ship(asked, before)
    assert (again.parts, again.count, again.changed) == (before.parts, 9, 0)
    shipper.close()


@given(worlds.filters(), worlds.filters())
def test_a_set_of_filters_arrives_as_it_was_sent(one: Filter, other: Filter) -> None:
    sent = canonical([one, other])
    got = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=FilterSet)
    assert repr(got) == repr(sent)
