"""Rows, asked for means and for how much one structure beats another, replication by replication."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from godwit.lab.intervals import Interval, interval
from godwit.lab.structures.rows import Measures, Row
from godwit.lab.structures.settings import Setting

Measure = Callable[[Measures], float]
"""A figure of one row."""

Point = tuple[str, int, int, int]
"""Schema, filters, interfaces and clients: a place on a published curve."""

Seen = tuple[Measure, str, Point]
"""A figure of one structure at one point."""


def point_of(setting: Setting) -> Point:
    return setting.schema, setting.filters, setting.interfaces, setting.clients


class Evidence:
    """The rows of one experiment. All structures of a replication were given the same, so that they can be paired."""

    def __init__(self, rows: Iterable[Row], experiment: str) -> None:
        self._found: dict[tuple[Point, str], dict[int, Measures]] = {}
        for row in rows:
            if row.setting.experiment == experiment:
                own = self._found.setdefault((point_of(row.setting), row.structure), {})
                own[row.setting.replication] = row.measures

    def points(
        self, schema: str | None = None, *, filters: int | None = None, clients: int | None = None
    ) -> list[Point]:
        """In the order of their sizes."""
        points = {point for point, _ in self._found}
        return sorted(
            point
            for point in points
            if (schema is None or point[0] == schema)
            and (filters is None or point[1] == filters)
            and (clients is None or point[3] == clients)
        )

    def schemas(self) -> list[str]:
        return list(dict.fromkeys(point[0] for point, _ in self._found))

    def mean(self, measure: Measure, structure: str, point: Point) -> float:
        return fmean(measure(own) for own in self._found[point, structure].values())

    def interval(self, measure: Measure, structure: str, point: Point) -> Interval:
        return interval(measure(own) for own in self._found[point, structure].values())

    def room(self, measure: Measure, structure: str, point: Point, limit: float) -> Interval:
        """What is left to a limit."""
        return interval(limit - measure(own) for own in self._found[point, structure].values())

    def lead(self, less: Seen, more: Seen, weight: float = 1.0) -> Interval:
        """By how much `weight` times the mean of the first is less than that of the second, as a share of the larger.

        Above zero it is less, below zero it is more. Published are means, so that differences are taken replication by
        replication and averaged, and not shares; the interval is Student's.
        """
        low, high = self._values(less), self._values(more)
        both = sorted(low.keys() & high.keys())
        return _lead([weight * low[one] for one in both], [high[one] for one in both])

    def ratios(self, over: Seen, under: Seen) -> dict[int, float]:
        """The first by the second, by replication."""
        top, bottom = self._values(over), self._values(under)
        return {one: top[one] / bottom[one] for one in sorted(top.keys() & bottom.keys())}

    def lead_in_all(self, pairs: Sequence[tuple[Seen, Seen]]) -> Interval:
        """By which share the first of each pair come to less together than the second."""
        sums: dict[int, tuple[float, float]] = {}
        for less, more in pairs:
            low, high = self._values(less), self._values(more)
            for one in low.keys() & high.keys():
                before = sums.get(one, (0.0, 0.0))
                sums[one] = before[0] + low[one], before[1] + high[one]
        return _lead([low for low, _ in sums.values()], [high for _, high in sums.values()])

    def _values(self, seen: Seen) -> dict[int, float]:
        measure, structure, point = seen
        return {one: measure(own) for one, own in self._found[point, structure].items()}


def _lead(low: Sequence[float], high: Sequence[float]) -> Interval:
    apart = interval(more - less for less, more in zip(low, high, strict=True))
    scale = max(fmean(low), fmean(high)) or 1.0
    return Interval(apart.mean / scale, apart.half / scale, apart.runs)


def count(value: int | None) -> int:
    """A count that the row must have."""
    if value is None:
        raise ValueError("the rows lack a count that is asked of them")
    return value


def add(own: Measures) -> float:
    return count(own.add_covers)


def remove(own: Measures) -> float:
    return count(own.remove_covers)


def replace(own: Measures) -> float:
    """The add/remove scenario: removals, what they bring back, and what takes their place."""
    return count(own.remove_covers) + (own.resend_covers or 0) + count(own.insert_covers)


def eliminating(own: Measures) -> float:
    return count(own.eliminate_covers)


def eliminated(own: Measures) -> float:
    return count(own.eliminate_covers) / count(own.add_covers)


def size(own: Measures) -> float:
    return count(own.size)


def roots(own: Measures) -> float:
    return count(own.roots)


def forwarded(own: Measures) -> float:
    return count(own.forwarded)


def sent(own: Measures) -> float:
    return count(own.sent)


def replace_sent(own: Measures) -> float:
    return count(own.replace_sent)


def tests(own: Measures) -> float:
    """Filters tested for an event."""
    return count(own.match_tests) / count(own.events)


def predicates(own: Measures) -> float:
    """Constraints looked at for an event."""
    return count(own.match_predicates) / count(own.events)


def merging(own: Measures) -> float:
    """What merging spends: covering tests and attempts to merge."""
    return count(own.merge_tests) + count(own.merge_covers)


def dynamic(own: Measures) -> float:
    """What a forest spends when it is built and when its filters are replaced."""
    return add(own) + replace(own)


def dynamic_merging(own: Measures) -> float:
    """What merging spends in both."""
    return merging(own) + replace_merging(own)


def replace_merging(own: Measures) -> float:
    return count(own.replace_merge_tests) + count(own.replace_merge_covers)


def false_positives(own: Measures) -> float:
    """The share of unwanted pairs that match; 0 where there are none."""
    return count(own.false_positives) / max(count(own.unwanted), 1)


def added(own: Measures) -> float:
    return count(own.added)
