"""How a claim is decided: what counts as equal, constant or much less, and how the numbers are told.

Where the source speaks of speed, covering and matching tests stand in for it. A claim is taken apart into leads, each
of which must be above zero with its whole interval over replications (`lab.parts`); the closest is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from godwit.lab.claims import Claim, Margin
from godwit.lab.claims import Point as CurvePoint
from godwit.lab.parts import Part, all_hold
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence, Measure, Point, Seen

T = TypeVar("T")

NAMED_PHASES: Mapping[str, Measure] = {"add": of.add, "add/remove": of.replace}
PHASES = tuple(NAMED_PHASES.values())

ALIKE = 1.1
"""Costs up to a tenth apart are equal."""
FLAT = 1.5
"""What grows by less than half over a whole sweep is about constant."""
SIMILAR = 2.0
"""Costs within a factor of two are similar."""
HALF = 0.5
"""Much smaller, much faster: at most half."""
NEGLIGIBLE, SUBSTANTIAL = 0.1, 0.25
"""Overheads as shares of what the structure costs without."""

Judgement = tuple[bool | None, str]
"""Whether a claim holds, None where that cannot be said, and the numbers behind it."""


class Check(NamedTuple):
    """`expected` is what the rows of the experiment must show; `note` says why they may not."""

    claim: Claim
    experiment: str
    expected: str
    judge: Callable[[Evidence], Judgement]
    note: str = ""
    on: str = ""
    """What it may hang on, where `curve` says at which values it holds."""
    curve: Callable[[Evidence], list[CurvePoint]] | None = None


def held(parts: Sequence[Part], numbers: str) -> Judgement:
    """Whether all hold, with the one that comes closest to failing, or fails the most."""
    known = [part for part in parts if part.margin is not None]
    if not known:
        return None, numbers
    closest = min(known, key=lambda part: part.margin.low if part.margin is not None else 0.0)
    return all_hold([part.holds for part in parts]), f"{numbers}; closest: {closest}{_enough(closest)}"


def _enough(part: Part) -> str:
    """How many replications might decide a part that is open, if their mean and spread are those that were seen."""
    if part.holds is not None or part.worlds is None or part.margin is None:
        return ""
    return f", open with {part.margin.runs} replications, about {part.worlds:,} might tell"


def cheaper(found: Evidence, less: Seen, more: Seen, weight: float = 1.0) -> Part:
    """That the first is less than the second, or by a factor. Of two that are surely equal none is less."""
    factor = f"{weight:.3g} times " if weight != 1 else ""
    least = 1 - 1 / ALIKE if weight == 1 else 0.0
    return Part(f"{factor}{_named(less)} below {_named(more)}, by", found.lead(less, more, weight), least)


def _named(seen: Seen) -> str:
    measure, structure, (schema, filters, interfaces, clients) = seen
    places = f"{interfaces} interfaces" if interfaces else "an interface each"
    local = f" and {clients} local" if clients else ""
    return f"{measure.__name__} of {structure} ({schema}, {filters} on {places}{local})"


def flat(found: Evidence, measure: Measure, name: str, points: Sequence[Point], limit: float = FLAT) -> Part:
    """That the most is at most so many times the least."""
    by_mean = sorted(points, key=lambda point: found.mean(measure, name, point))
    return cheaper(found, (measure, name, by_mean[-1]), (measure, name, by_mean[0]), 1 / limit)


def rising(found: Evidence, measure: Measure, name: str, points: Sequence[Point], times: float = 1.0) -> Part:
    """That from the first to the last point it becomes more than so many times as much."""
    return cheaper(found, (measure, name, points[0]), (measure, name, points[-1]), times)


def curved(parts: Mapping[str, Part]) -> tuple[bool | None, str, tuple[Margin, ...]]:
    """What a point of a curve says beside its place."""
    margins = tuple(Margin(name, part.margin) for name, part in parts.items() if part.margin is not None)
    return all_hold([part.holds for part in parts.values()]), "", margins


def curve(found: Evidence, measure: Measure, name: str, points: Sequence[Point]) -> str:
    return f"{short(found.mean(measure, name, points[0]))} to {short(found.mean(measure, name, points[-1]))}"


def versus(found: Evidence, names: Sequence[str], point: Point) -> str:
    return f"{costs(found, of.add, names, point)} add, {costs(found, of.replace, names, point)} add/remove"


def costs(found: Evidence, measure: Measure, names: Sequence[str], point: Point) -> str:
    return " / ".join(f"{name} {short(found.mean(measure, name, point))}" for name in names)


def by_schema(found: Evidence, told: Callable[[Point], str]) -> str:
    """For each schema, at its largest point."""
    return "; ".join(f"{schema}: {told(found.points(schema)[-1])}" for schema in found.schemas())


def ends(found: Evidence, told: Callable[[Point], str], schemas: Sequence[str] | None = None) -> str:
    """For each schema with the fewest and the most neighbors, without local clients."""
    points = [
        point for schema in schemas or found.schemas() for point in first_and_last(found.points(schema, clients=0))
    ]
    return "; ".join(f"{point[0]}, {point[2]}: {told(point)}" for point in points)


def first_and_last(line: Sequence[T]) -> list[T]:
    return [*line[:1], *line[1:][-1:]]


def short(value: float) -> str:
    """Three digits are enough to compare."""
    for unit, name in ((1_000_000, "M"), (1000, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"
