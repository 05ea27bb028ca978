"""Rows, asked for means and for how often one structure beats another."""

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

AGREED = 0.75
"""The share of replications, paired by what they were given, that must agree before an order counts as found."""


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

    def saved(self, measure: Measure, less: tuple[str, Point], more: tuple[str, Point]) -> Interval:
        """By which share the first is less than the second, replication by replication."""
        low, high = self._found[less[1], less[0]], self._found[more[1], more[0]]
        return interval(1 - measure(low[one]) / measure(high[one]) for one in low.keys() & high.keys())

    def spread(self, measure: Measure, structure: str, points: Sequence[Point]) -> Interval:
        """The largest mean of these points over the smallest; the error is that of single replications."""
        means = {point: self.mean(measure, structure, point) for point in points}
        most, least = max(means, key=lambda point: means[point]), min(means, key=lambda point: means[point])
        apart = self.saved(measure, (structure, least), (structure, most))
        ratio = means[most] / means[least]
        return Interval(ratio, ratio * apart.half / (1 - apart.mean), apart.runs)

    def share(self, measure: Measure, less: tuple[str, Point], more: tuple[str, Point], weight: float = 1.0) -> float:
        """In how many replications `weight` times the first is less than the second, 0 to 1."""
        low, high = self._found[less[1], less[0]], self._found[more[1], more[0]]
        both = low.keys() & high.keys()
        return fmean(weight * measure(low[one]) < measure(high[one]) for one in both) if both else 0.5

    def share_in_all(self, measure: Measure, pairs: Sequence[tuple[tuple[str, Point], tuple[str, Point]]]) -> float:
        """In how many replications the first of each pair come to less together than the second."""
        sums: dict[int, float] = {}
        for (structure, point), (other, elsewhere) in pairs:
            low, high = self._found[point, structure], self._found[elsewhere, other]
            for one in low.keys() & high.keys():
                sums[one] = sums.get(one, 0.0) + measure(low[one]) - measure(high[one])
        return fmean(total < 0 for total in sums.values()) if sums else 0.5


def decided(shares: Sequence[float]) -> bool | None:
    """Whether an order holds at every point; None where the replications do not agree."""
    if shares and all(share >= AGREED for share in shares):
        return True
    return False if any(share <= 1 - AGREED for share in shares) else None


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


def replace_merging(own: Measures) -> float:
    return count(own.replace_merge_tests) + count(own.replace_merge_covers)


def false_positives(own: Measures) -> float:
    """The share of unwanted pairs that match; 0 where there are none."""
    return count(own.false_positives) / max(count(own.unwanted), 1)


def added(own: Measures) -> float:
    return count(own.added)
