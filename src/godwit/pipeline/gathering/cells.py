"""The space partition of data gathering as a column: the name of the broker's box that a place is in."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError
from godwit.protocols.gathering import space
from godwit.protocols.gathering.space import Leaf, Tree
from godwit.protocols.host import LocalError

LON = 0


def partition(brokers: Iterable[tuple[str, float, float]]) -> Tree:
    """The tree of cuts for brokers given as (name, lat, lon), joining in this order."""
    try:
        return space.partition((name, (lon, lat)) for name, lat, lon in brokers)
    except LocalError as error:
        raise PipelineError(str(error)) from None


def cell_of(tree: Tree, lat: Column, lon: Column) -> Column:
    """The prefix of the box that a place is in; null where there is no place."""
    if isinstance(tree, Leaf):
        return sf.lit(tree.prefix)
    here = lon if tree.dimension == LON else lat
    return sf.when(here < tree.coordinate, cell_of(tree.less, lat, lon)).when(
        here >= tree.coordinate, cell_of(tree.more, lat, lon)
    )
