"""The space partition of data gathering: every place is in one rectangle, and every broker in its own."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.gathering.cells import cell_of, partition
from godwit.protocols.gathering.space import Split, leaves


def test_each_broker_is_in_its_own_rectangle_and_prefixes_are_the_paths_to_them(spark: SparkSession) -> None:
    dice = random.Random(3)
    brokers = [(f"b{at}", dice.uniform(0, 100), dice.uniform(0, 100)) for at in range(20)]
    tree = partition(brokers)
    prefixes = {leaf.name: leaf.prefix for leaf in leaves(tree)}
    assert len(set(prefixes.values())) == 20
    assert sum(2.0 ** -len(prefix) for prefix in prefixes.values()) == 1.0
    frame = spark.createDataFrame(brokers, "name string, lat double, lon double")
    found = frame.select("name", cell_of(tree, sf.col("lat"), sf.col("lon")).alias("cell")).collect()
    assert {row["name"]: row["cell"] for row in found} == prefixes


def test_the_longer_side_is_cut_in_the_middle_and_the_edge_belongs_above(spark: SparkSession) -> None:
    tree = partition([("a", 0.0, 0.0), ("b", 10.0, 40.0)])
    assert isinstance(tree, Split)
    assert (tree.dimension, tree.coordinate) == (0, 20.0)
    frame = spark.createDataFrame([(0.0, 19.9), (0.0, 20.0), (0.0, None)], "lat double, lon double")
    assert [row[0] for row in frame.select(cell_of(tree, sf.col("lat"), sf.col("lon"))).collect()] == ["0", "1", None]


def test_two_brokers_at_one_place_cannot_share_it() -> None:
    with pytest.raises(PipelineError, match="'a' and 'b': no cut separates"):
        partition([("a", 1.0, 2.0), ("b", 1.0, 2.0)])
    with pytest.raises(PipelineError, match="one broker at least"):
        partition([])
