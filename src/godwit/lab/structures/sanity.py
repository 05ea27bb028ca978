"""Numbers that the spec's author measured (spec 4.4), beside ours: do both count the same things?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence, Measure
from godwit.lab.structures.rows import Row

FILTERS = 500

COLUMNS: dict[str, tuple[str, Measure]] = {
    "roots": ("PF", of.roots),
    "PF add": ("PF", of.add),
    "FP add": ("FP", of.add),
    "PF add/remove": ("PF", of.replace),
    "FP add/remove": ("FP", of.replace),
}
VALUES: dict[str, tuple[float, ...]] = {
    "2D": (59, 23_600, 222_000, 47_900, 620_000),
    "3D": (212, 93_100, 164_000, 189_000, 304_000),
}


class Compared(NamedTuple):
    schema: str
    column: str
    expected: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.measured / self.expected


def compare(rows: Iterable[Row]) -> list[Compared]:
    """Empty where local clients were not run with as many filters."""
    found = Evidence(rows, "E1")
    return [
        Compared(schema, column, expected, found.mean(measure, structure, point))
        for schema, values in VALUES.items()
        for point in found.points(schema, filters=FILTERS)
        for (column, (structure, measure)), expected in zip(COLUMNS.items(), values, strict=True)
    ]
