"""The space partition of data gathering (2.3) as a column: which broker's rectangle a place is in.

Every broker splits the rectangle that it stands in, across the dimension in which it is further from the broker there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf

from godwit.pipeline.errors import PipelineError

X, Y = "lon", "lat"


@dataclass(slots=True)
class Leaf:
    """A broker's rectangle; `prefix` is the path of splits to it, and begins the broker's id."""

    name: str
    x: float
    y: float
    prefix: str = ""


@dataclass(slots=True)
class Split:
    """`less` is the side below the coordinate, `more` the side at and above it."""

    dimension: str
    coordinate: float
    less: Split | Leaf
    more: Split | Leaf


def partition(brokers: Iterable[tuple[str, float, float]]) -> Split | Leaf:
    """The tree of splits for brokers given as (name, lat, lon), joining in this order."""
    root: Split | Leaf | None = None
    for name, lat, lon in brokers:
        new = Leaf(name, x=lon, y=lat)
        root = new if root is None else _joined(root, new)
    if root is None:
        raise PipelineError("a space partition needs one broker at least")
    return root


def _joined(node: Split | Leaf, new: Leaf) -> Split:
    if isinstance(node, Split):
        if _at(new, node.dimension) < node.coordinate:
            node.less = _joined(node.less, new)
        else:
            node.more = _joined(node.more, new)
        return node
    wide, tall = abs(new.x - node.x), abs(new.y - node.y)
    if wide == tall == 0:
        raise PipelineError(f"brokers {node.name!r} and {new.name!r} stand at the same place: a split needs two")
    dimension = X if wide >= tall else Y
    middle = (_at(new, dimension) + _at(node, dimension)) / 2
    # Of two neighboring floats the mean may be the smaller; then the larger alone is at or above it.
    new_is_more = _at(new, dimension) > _at(node, dimension)
    new.prefix, node.prefix = (node.prefix + bit for bit in ("10" if new_is_more else "01"))
    less, more = (node, new) if new_is_more else (new, node)
    return Split(dimension, max(middle, _above(less, more, dimension, middle)), less, more)


def _above(less: Leaf, more: Leaf, dimension: str, middle: float) -> float:
    return middle if _at(less, dimension) < middle else _at(more, dimension)


def _at(leaf: Leaf, dimension: str) -> float:
    return leaf.x if dimension == X else leaf.y


def cell_of(tree: Split | Leaf, lat: Column, lon: Column) -> Column:
    """The prefix of the rectangle that a place is in; null where there is no place."""
    if isinstance(tree, Leaf):
        return sf.lit(tree.prefix)
    here = lon if tree.dimension == X else lat
    return sf.when(here < tree.coordinate, cell_of(tree.less, lat, lon)).when(
        here >= tree.coordinate, cell_of(tree.more, lat, lon)
    )
