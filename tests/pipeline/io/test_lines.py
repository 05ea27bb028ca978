"""Lines of text: types are never guessed, and headers are taken file by file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.match.jobs import delivered, wishes

from godwit.pipeline.errors import SchemaError
from godwit.pipeline.io.reading import events, legible, read
from godwit.pipeline.match.job import MatchOptions, run
from godwit.pipeline.schemas import SITES


def test_one_text_among_numbers_changes_nothing_for_the_numbers(spark: SparkSession, tmp_path: Path) -> None:
    lines = ['{"id": 1, "speed": 70}', '{"id": 2, "speed": "fast"}', '{"id": 3, "speed": 80.5, "note": null}', "broken"]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    asked = MatchOptions(
        events=str(tmp_path / "events.jsonl"),
        subscriptions=wishes(tmp_path, quick="speed > 50", words="speed = 'fast'"),
        out=str(tmp_path / "out"),
        schema="id BIGINT",
    )
    summary = run(spark, asked)
    assert delivered(tmp_path / "out") == [(1, "quick"), (2, "words"), (3, "quick")]
    assert (summary.rows_in, summary.quarantined) == (4, 1)


def test_csv_is_text_but_for_the_columns_whose_type_is_given(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("id,unit,day,speed\n1,007,2024-01-02,60\n2,7,2024-01-03,oh\n")
    options = MatchOptions(
        events=str(tmp_path / "events.csv"),
        subscriptions=wishes(tmp_path, agent="unit = '007'", day="day = '2024-01-02'", quick="speed > 50"),
        out=str(tmp_path / "out"),
        schema="speed DOUBLE",
    )
    summary = run(spark, options)
    assert delivered(tmp_path / "out") == [("1", "agent"), ("1", "day"), ("1", "quick")]
    assert summary.quarantined == 1


def test_filters_that_compare_text_of_csv_with_numbers_are_told_how_to_say_the_type(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "events.csv").write_text("id,speed\n1,60\n")
    options = MatchOptions(
        events=str(tmp_path / "events.csv"),
        subscriptions=wishes(tmp_path, quick="speed > 50"),
        out=str(tmp_path / "out"),
    )
    with pytest.raises(SchemaError, match="filters compare 'speed' with numbers; right would be --schema 'speed DOUB"):
        run(spark, options)


def test_columns_of_csv_are_found_by_their_headers_in_every_file(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("site,lat,lon\na,1,2\n")
    (tmp_path / "2.csv").write_text("lon,lat,site,note\n4,3,b,x\n")
    good = read(spark, str(tmp_path), SITES, "sites").good
    assert sorted(tuple(row) for row in good.collect()) == [("a", 1.0, 2.0), ("b", 3.0, 4.0)]


def test_an_expression_over_json_must_say_the_type_it_means(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text('{"id": 1, "speed": 70}\n')
    raw = events(spark, str(tmp_path), as_columns=True)
    with pytest.raises(SchemaError, match="have any type: say which is meant, as in speed::double > 50"):
        legible(raw, None, "speed > 50")
    assert legible(raw, None, "speed::double > 50").good.count() == 1
