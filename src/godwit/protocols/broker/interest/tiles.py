"""Very many areas as few tiles of the globe, so that a busy broker still asks for its own part of the world only.

The globe is cut into 2^n by 2^n tiles of equal degrees; the finest cut at which few tiles hold all areas is stated.
Tiles are the same for everybody and do not follow the areas in them: a client that comes or moves within one changes
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from godwit.filters.areas import Box
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet, attribute
from godwit.filters.predicates import Kind, Within

TILES_MAX = 16
FINEST = 14
"""Tiles some 2.4 km wide at the equator and half as high."""

Tile = tuple[int, int]


class Tiles:
    """Tell it conditions, each once; `stated` is what all of them imply about a place."""

    def __init__(self, conditions: Iterable[FilterSet] = ()) -> None:
        self._names: Counter[str] = Counter()
        """The attributes by which places are named; an empty name for each condition without an area."""
        self._held: list[Counter[Tile]] = [Counter() for _ in range(FINEST + 1)]
        self._too_fine: list[int] = [0] * (FINEST + 1)
        """By cut how many areas reach over too many tiles."""
        self._cut = FINEST
        for one in conditions:
            self.add(one)

    def add(self, condition: FilterSet) -> None:
        self._count(condition, 1)

    def remove(self, condition: FilterSet) -> None:
        self._count(condition, -1)

    def stated(self) -> AttributeFilter | None:
        """None where some condition wants any place, or they name places differently."""
        names = +self._names
        if len(names) != 1 or "" in names:
            return None
        self._cut = self._chosen()
        tiles = sorted(+self._held[self._cut])
        return attribute(next(iter(names)), *(Within(_box(self._cut, tile)) for tile in tiles))

    def _chosen(self) -> int:
        """The finest cut with few tiles; finer than the last one only where it has very few, lest each client that
        comes or goes restates."""
        for cut in range(FINEST, 0, -1):
            most = TILES_MAX if cut <= self._cut else TILES_MAX // 2
            if not self._too_fine[cut] and len(+self._held[cut]) <= most:
                return cut
        return 0

    def _count(self, condition: FilterSet, change: int) -> None:
        for one in condition:
            own = _place(one)
            self._names[own.name if own is not None else ""] += change
            for frame in _frames(own):
                self._count_frame(frame, change)

    def _count_frame(self, frame: Box, change: int) -> None:
        for cut in range(FINEST + 1):
            ranges = _ranges(frame, cut)
            if sum(len(rows) * len(columns) for rows, columns in ranges) > TILES_MAX:
                self._too_fine[cut] += change
                continue
            held = self._held[cut]
            for tile in {(row, column) for rows, columns in ranges for row in rows for column in columns}:
                held[tile] += change
                if not held[tile]:
                    del held[tile]


def _place(one: Filter) -> AttributeFilter | None:
    """What it demands of a place, if it names areas for that."""
    for own in one:
        if own.kind is Kind.PLACE and own.clause and all(isinstance(part, Within) for part in own.clause):
            return own
    return None


def _frames(own: AttributeFilter | None) -> Iterator[Box]:
    for part in own.clause if own is not None else ():
        if isinstance(part, Within):
            yield part.area.frame()


def _ranges(frame: Box, cut: int) -> list[tuple[range, range]]:
    """The tiles that a box touches, as rows and columns; two ranges of columns where it crosses the date line."""
    count, bounds = 1 << cut, frame.bounds()
    rows = _touched(bounds.south, bounds.north, -90.0, 180.0, count)
    return [(rows, _touched(west, east, -180.0, 360.0, count)) for west, east in bounds.lons]


def _touched(low: float, high: float, first: float, extent: float, count: int) -> range:
    """Edges belong to both tiles beside them; rounding may add a tile and takes none away."""
    start, end = ((edge - first) / extent * count for edge in (low, high))
    return range(max(0, int(start - 1e-9)), min(count - 1, int(end + 1e-9)) + 1)


def _box(cut: int, tile: Tile) -> Box:
    row, column = tile
    height, width = 180.0 / (1 << cut), 360.0 / (1 << cut)
    return Box(-90.0 + row * height, -180.0 + column * width, -90.0 + (row + 1) * height, -180.0 + (column + 1) * width)
