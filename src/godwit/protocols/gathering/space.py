"""The space partition (spec data-gathering 2.3): each broker owns one box of space, and its path of cuts names it.

Every broker splits the box that it stands in, across the dimension in which it is further from the broker there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from godwit.protocols.host import LocalError

Point = tuple[float, ...]
"""x, y and perhaps z; on the globe longitude, then latitude."""

Box = tuple[tuple[float, float], ...]
"""By dimension the lower edge, which belongs to the box, and the upper edge, which does not."""


class Boundary(msgspec.Struct, frozen=True, array_like=True):
    """One cut, seen from one side of it; `increasing` is the side at and above the coordinate."""

    dimension: int
    coordinate: float
    increasing: bool

    def signed(self, point: Point) -> float:
        """How far inside our side a point is; below 0 on the other side."""
        apart = point[self.dimension] - self.coordinate
        return apart if self.increasing else -apart

    def owns(self, point: Point) -> bool:
        return (point[self.dimension] >= self.coordinate) == self.increasing

    def opposite(self) -> Boundary:
        return Boundary(self.dimension, self.coordinate, not self.increasing)


class Cell(msgspec.Struct, frozen=True):
    """A broker's box: its effective prefix and its boundary list, one boundary for each bit.

    Boundary j separates the box from the sibling that shares the first j bits and differs in bit j. The side is what
    the boundary says, never what the bit says: a broker that joins later gets bit 1 on whichever side it stands.
    """

    prefix: str = ""
    boundaries: tuple[Boundary, ...] = ()

    def __len__(self) -> int:
        return len(self.boundaries)

    def signed(self, level: int, point: Point) -> float:
        return self.boundaries[level].signed(point)

    def owns(self, level: int, point: Point) -> bool:
        return self.boundaries[level].owns(point)

    def owns_all(self, point: Point) -> bool:
        return all(boundary.owns(point) for boundary in self.boundaries)

    def append(self, boundary: Boundary, bit: str) -> Cell:
        return Cell(self.prefix + bit, (*self.boundaries, boundary))

    def box(self, level: int | None = None, dimensions: int = 2) -> Box:
        """The region of the first `level` bits; of all of them where none is given."""
        return _box(self.boundaries[:level], dimensions)

    def sibling(self, level: int, dimensions: int = 2) -> Box:
        """The region on the other side of the cut at this level."""
        return _box((*self.boundaries[:level], self.boundaries[level].opposite()), dimensions)

    def sibling_prefix(self, level: int) -> str:
        return self.prefix[:level] + ("1" if self.prefix[level] == "0" else "0")

    def beyond(self, level: int) -> Cell:
        """All that lies on the other side of the cut at this level."""
        return Cell(self.sibling_prefix(level), (*self.boundaries[:level], self.boundaries[level].opposite()))

    def first_not_owned(self, point: Point, level: int = 0) -> int | None:
        """The first cut from this level on whose other side the point is; None where the point is in this box."""
        boundaries = self.boundaries
        for at in range(level, len(boundaries)):
            if not boundaries[at].owns(point):
                return at
        return None


WHOLE = Cell()
"""All of space, which the first broker owns."""


def _box(boundaries: Iterable[Boundary], dimensions: int) -> Box:
    edges = [(-math.inf, math.inf)] * dimensions
    for cut in boundaries:
        low, high = edges[cut.dimension]
        edges[cut.dimension] = (max(low, cut.coordinate), high) if cut.increasing else (low, min(high, cut.coordinate))
    return tuple(edges)


def cut_between(old: Point, new: Point) -> Boundary:
    """The cut between two brokers, seen from the new one: across the larger difference, in the middle.

    Of equal differences the first dimension counts. Two brokers at one place cannot share it.
    """
    apart = [abs(b - a) for a, b in zip(old, new, strict=True)]
    widest = max(apart)
    if not 0 < widest < math.inf:
        raise LocalError(f"no cut separates a broker at {old} from one at {new}: they need two different places")
    dimension = apart.index(widest)
    here, there = old[dimension], new[dimension]
    middle = here / 2 + there / 2
    # Of two neighboring floats the mean may be the smaller; then the larger alone is at or above it.
    return Boundary(dimension, middle if min(here, there) < middle else max(here, there), there > here)


@dataclass(slots=True)
class Leaf:
    """A broker and its cell."""

    name: str
    place: Point
    cell: Cell = WHOLE

    @property
    def prefix(self) -> str:
        return self.cell.prefix


@dataclass(slots=True)
class Split:
    """`less` is the side below the coordinate, `more` the side at and above it."""

    dimension: int
    coordinate: float
    less: Split | Leaf
    more: Split | Leaf


Tree = Split | Leaf


def partition(brokers: Iterable[tuple[str, Point]]) -> Tree:
    """The tree of cuts for brokers that join in this order; bit 1 is the side at and above the cut."""
    root: Tree | None = None
    for name, place in brokers:
        root = joined(root, Leaf(name, place))
    if root is None:
        raise LocalError("a space partition needs one broker at least")
    return root


def joined(root: Tree | None, new: Leaf) -> Tree:
    """The tree with one broker more; the leaf whose box it splits changes its cell."""
    if root is None:
        return new
    above, node = None, root
    while isinstance(node, Split):
        above, node = node, side_of(node, new.place)
    split = _divided(node, new)
    if above is None:
        return split
    if above.less is node:
        above.less = split
    else:
        above.more = split
    return root


def _divided(old: Leaf, new: Leaf) -> Split:
    try:
        cut = cut_between(old.place, new.place)
    except LocalError as error:
        raise LocalError(f"brokers {old.name!r} and {new.name!r}: {error}") from None
    new.cell = old.cell.append(cut, "1" if cut.increasing else "0")
    old.cell = old.cell.append(cut.opposite(), "0" if cut.increasing else "1")
    less, more = (old, new) if cut.increasing else (new, old)
    return Split(cut.dimension, cut.coordinate, less, more)


def side_of(split: Split, point: Point) -> Tree:
    return split.more if point[split.dimension] >= split.coordinate else split.less


def owner(tree: Tree, point: Point) -> Leaf:
    while isinstance(tree, Split):
        tree = side_of(tree, point)
    return tree


def leaves(tree: Tree) -> Iterator[Leaf]:
    """From left to right, which is the order of their prefixes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Leaf):
            yield node
        else:
            waiting += (node.more, node.less)
