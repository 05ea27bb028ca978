"""How subscribers move, on frames of a few rows."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.mobility import movement as mobility
from godwit.pipeline.mobility.movement import Box, Rules
from godwit.pipeline.schemas import ASSOCIATIONS, HANDOFFS, POSITIONS, SITES, VISITS

RULES = Rules(gap_s=300, ping_pong_s=120)

Step = tuple[str, float, str]


def near(spark: SparkSession, steps: list[Step]) -> DataFrame:
    return spark.createDataFrame([(*step, 1.0, row) for row, step in enumerate(steps)], ASSOCIATIONS)


def stays(spark: SparkSession, steps: list[Step]) -> DataFrame:
    return mobility.visits(near(spark, steps), RULES)


def moves(spark: SparkSession, steps: list[Step]) -> DataFrame:
    return mobility.handoffs(stays(spark, steps), RULES)


def test_a_site_stands_in_the_middle_of_its_parts_and_the_largest_are_chosen(spark: SparkSession) -> None:
    parts = [("10", 1.0, 1.0), ("10", 3.0, 5.0), ("9", 0.0, 0.0), ("9", 0.0, 0.0), ("8", 7.0, 7.0)]
    frame = spark.createDataFrame(parts, SITES)
    expected = spark.createDataFrame([("9", 0.0, 0.0)], SITES)
    assertDataFrameEqual(mobility.sites(frame, most=1), expected, ignoreNullable=True)
    everybody = {row["site"]: (row["lat"], row["lon"]) for row in mobility.sites(frame).collect()}
    assert everybody == {"10": (2.0, 3.0), "9": (0.0, 0.0), "8": (7.0, 7.0)}


def test_bad_fixes_go_to_quarantine_by_the_name_of_the_rule(spark: SparkSession) -> None:
    rows = [("a", 1.0, 37.7, -122.4), ("b", 2.0, 91.0, 0.0), ("c", 3.0, 50.0, -122.4)]
    found = mobility.fixes(spark.createDataFrame(rows, POSITIONS), Box(37.6, -122.6, 37.8, -122.3))
    assert [row["subscriber"] for row in found.good.collect()] == ["a"]
    assert sorted(row["reason"].partition(":")[0] for row in found.bad.collect()) == ["impossible", "outside"]


def test_the_nearest_site_is_nearest_on_the_globe(spark: SparkSession) -> None:
    sites = spark.createDataFrame([("east", 0.0, 179.0), ("north", 80.0, 0.0), ("pole", 89.0, 90.0)], SITES)
    rows = [("a", 1.0, 0.0, -179.5), ("b", 2.0, 86.0, -170.0), ("c", 3.0, 60.0, 1.0)]
    found = mobility.associations(spark.createDataFrame(rows, POSITIONS), sites).collect()
    assert {row["subscriber"]: row["site"] for row in found} == {"a": "east", "b": "pole", "c": "north"}
    metres = next(row["distance_m"] for row in found if row["subscriber"] == "a")
    assert metres == pytest.approx(1.5 * 111_195, rel=1e-3)


def test_without_sites_nobody_is_near_one(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="there are no sites"):
        mobility.box_around(spark.createDataFrame([], SITES))


def test_a_visit_ends_by_handoff_by_gap_or_with_the_data(spark: SparkSession) -> None:
    steps = [("c", 0.0, "A"), ("c", 60.0, "A"), ("c", 120.0, "B"), ("c", 420.0, "B"), ("c", 719.0, "B")]
    expected = [
        ("c", "A", 0.0, 60.0, 120.0, 2, "begin", "handoff", False, "B", 120.0, None),
        ("c", "B", 120.0, 120.0, 120.0, 1, "handoff", "gap", False, "B", 420.0, "A"),
        ("c", "B", 420.0, 719.0, 719.0, 2, "gap", "end", False, None, None, "B"),
    ]
    assertDataFrameEqual(stays(spark, steps), spark.createDataFrame(expected, VISITS), ignoreNullable=True)


def test_a_fix_that_is_repeated_counts_once(spark: SparkSession) -> None:
    steps = [("c", 0.0, "A"), ("c", 60.0, "A"), ("c", 60.0, "A"), ("c", 120.0, "A")]
    (stay,) = stays(spark, steps).collect()
    assert (stay["site"], stay["fixes"]) == ("A", 3)


def test_there_and_back_is_ping_pong_and_a_round_trip_is_not(spark: SparkSession) -> None:
    steps = [
        ("c", 0.0, "A"),
        ("c", 60.0, "B"),
        ("c", 120.0, "A"),
        ("c", 180.0, "C"),
        ("c", 400.0, "C"),
        ("c", 460.0, "A"),
    ]
    expected = [
        ("c", 60.0, "1970-01-01", "A", "B", True, None),
        ("c", 120.0, "1970-01-01", "B", "A", True, "A"),
        ("c", 180.0, "1970-01-01", "A", "C", False, "B"),
        ("c", 460.0, "1970-01-01", "C", "A", False, "A"),
    ]
    assertDataFrameEqual(moves(spark, steps), spark.createDataFrame(expected, HANDOFFS), ignoreNullable=True)


def test_an_edge_is_known_at_both_its_ends_and_probabilities_follow_its_direction(spark: SparkSession) -> None:
    rows = [
        ("c", 1.0, "d", "A", "B", False, None),
        ("c", 2.0, "d", "A", "B", False, None),
        ("c", 3.0, "d", "A", "C", False, None),
        ("c", 9.0, "d", "B", "A", True, "A"),
    ]
    graph = mobility.neighbors(mobility.ways(spark.createDataFrame(rows, HANDOFFS), None)).collect()
    found = {
        (row["broker"], row["peer"]): (row["uses"], row["last_used_s"], round(row["probability"], 3)) for row in graph
    }
    assert found == {
        ("A", "B"): (3, 9.0, 0.667),
        ("B", "A"): (3, 9.0, 0.0),
        ("A", "C"): (1, 3.0, 0.333),
        ("C", "A"): (1, 3.0, 0.0),
    }


def test_rates_are_those_of_the_markov_models(spark: SparkSession) -> None:
    rows = [
        ("c", "A", 0.0, 60.0, 63.0, 2, "begin", "handoff", False, "B", 63.0, None),
        ("c", "B", 63.0, 123.0, 123.0, 2, "handoff", "gap", False, "B", 135.0, "A"),
        ("c", "B", 135.0, 195.0, 195.0, 2, "gap", "end", False, None, None, "B"),
    ]
    frame = spark.createDataFrame(rows, VISITS)
    graph = mobility.neighbors(mobility.ways(mobility.handoffs(frame, RULES), None))
    found = {row["site"]: row for row in mobility.rates(mobility.spells(frame), graph, brokers=6).collect()}
    overall = found[None]
    assert (overall["connects"], overall["disconnects"], overall["handoffs"]) == (2, 1, 1)
    assert (overall["connect_mean_s"], overall["disconnect_mean_s"], overall["handoff_mean_s"]) == (60.0, 12.0, 3.0)
    # The test vector of 3.4.
    assert overall["beta_per_s"] == pytest.approx(1 / 120)
    assert overall["delta_random_per_s"] == pytest.approx(1 / 84)
    assert overall["alpha_random_per_s"] == pytest.approx(1 / 18)
    assert overall["delta_neighboring_per_s"] == pytest.approx(1 / 24)
    assert (found["A"]["neighbors"], found["A"]["alpha_neighboring_per_s"]) == (1, pytest.approx(1 / 3))
    assert (overall["to_disconnect"], overall["to_same_broker"]) == (0.5, 1.0)


def test_dwell_and_gap_times_are_told_by_site_and_over_all(spark: SparkSession) -> None:
    steps = [("c", 0.0, "A"), ("c", 60.0, "B"), ("c", 100.0, "A"), ("c", 180.0, "B"), ("c", 780.0, "B")]
    found = {
        (row["measure"], row["site"]): (row["samples"], row["mean_s"], row["p50_s"])
        for row in mobility.distributions(mobility.spells(stays(spark, steps))).collect()
    }
    assert found == {
        ("dwell", "A"): (2, 70.0, 70.0),
        ("dwell", "B"): (1, 40.0, 40.0),
        ("dwell", None): (3, 60.0, 60.0),
        ("gap", "B"): (1, 600.0, 600.0),
        ("gap", None): (1, 600.0, 600.0),
    }


def test_however_fine_clocks_tick_quantiles_keep_few_times_and_means_are_exact(spark: SparkSession) -> None:
    dwells = [2_000 + at / 1_000 for at in range(100)]
    began = [0.0, *accumulate(dwells)]
    rows = [("c", "A", begin, end, end, 1, "begin", "handoff", False, "B", end, None) for begin, end in pairwise(began)]
    kept = mobility.spells(spark.createDataFrame(rows, VISITS))
    assert {row["s"]: row["visits"] for row in kept.collect()} == {2_000.0: 50, 2_000.1: 50}
    told = next(row for row in mobility.distributions(kept).collect() if row["site"] is None)
    assert told["mean_s"] == pytest.approx(sum(dwells) / 100, rel=1e-12)
    assert told["p95_s"] == pytest.approx(sorted(dwells)[95], rel=1e-3)


def test_a_forecast_is_learned_on_other_days_and_the_path_helps(spark: SparkSession) -> None:
    learned = [("c", 1.0, "mon", "A", "B", False, "X")] * 3 + [("c", 1.0, "mon", "A", "C", False, "Y")] * 2
    tested = [("c", 1.0, "tue", "A", "C", False, "Y"), ("c", 1.0, "tue", "A", "B", False, None)]
    tested += [("c", 1.0, "tue", "A", "D", False, "X"), ("c", 1.0, "tue", "B", "A", True, "A")]
    frame = spark.createDataFrame(learned + tested, HANDOFFS)
    found = mobility.forecasts(mobility.ways(frame, "tue"), "tue").collect()
    assert {row["learned"] for row in found} == {5}, "how many handoffs they know"
    assert {row["model"]: (row["handoffs"], round(row["likeliest"], 3), round(row["known"], 3)) for row in found} == {
        "graph": (3, 0.333, 0.667),
        "path": (3, 0.667, 0.667),
        "busiest": (3, 0.333, 0.667),
    }
