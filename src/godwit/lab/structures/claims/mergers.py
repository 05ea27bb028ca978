"""C24 to C29: root sets merged once, or as they change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from godwit.lab.claims import Claim
from godwit.lab.intervals import interval
from godwit.lab.parts import Part
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence, Point
from godwit.lab.structures.judging import (
    ALIKE,
    FLAT,
    HALF,
    NEGLIGIBLE,
    SIMILAR,
    SUBSTANTIAL,
    Check,
    Judgement,
    cheaper,
    curve,
    flat,
    held,
    rising,
    short,
)
from godwit.lab.structures.merging import IMPERFECT, PERFECT, UNMERGED

UNCHANGED = 0.95
"""The share of roots left by merging above which nothing has been gained."""


def merged_roots_stay_few(found: Evidence) -> Judgement:
    points = _few_interfaces(found)
    if len(points) < 2:
        return None, "one number of filters says nothing about growth"
    first, last = points[0], points[-1]
    parts = [
        cheaper(found, (of.roots, PERFECT, last), (of.roots, PERFECT, first), 1 / ALIKE),
        rising(found, of.roots, UNMERGED, points, ALIKE),
        cheaper(found, (of.roots, PERFECT, last), (of.roots, UNMERGED, last), 1 / HALF),
    ]
    numbers = f"{first[1]} to {last[1]} filters: " + "; ".join(
        f"{name} {curve(found, of.roots, name, points)}" for name in (UNMERGED, PERFECT, IMPERFECT)
    )
    return held(parts, numbers)


def merged_roots_match_faster(found: Evidence) -> Judgement:
    last = _few_interfaces(found)[-1]
    parts = [cheaper(found, (own, PERFECT, last), (own, UNMERGED, last), 1 / HALF) for own in (of.roots, of.tests)]
    numbers = f"tests an event with {last[1]} filters: " + "; ".join(
        f"{name} {found.mean(of.roots, name, last):.0f} naive, {found.mean(of.tests, name, last):.1f} by tree walk"
        for name in (UNMERGED, PERFECT, IMPERFECT)
    )
    return held(parts, numbers)


def merging_is_affordable(found: Evidence) -> Judgement:
    points = _few_interfaces(found)
    parts = [cheaper(found, (of.merging, PERFECT, point), (of.add, UNMERGED, point)) for point in points]
    last = max(points)
    return held(
        parts,
        f"{last[1]} filters: merging {short(found.mean(of.merging, PERFECT, last))},"
        f" finding the minimal covers {short(found.mean(of.add, UNMERGED, last))}",
    )


def interfaces_reduce_merging(found: Evidence) -> Judgement:
    points = _published(found, filters=max(point[1] for point in found.points()))
    if len(points) < 2:
        return None, "one number of interfaces shows no trend"
    left = {point: found.ratios((of.roots, PERFECT, point), (of.roots, UNMERGED, point)) for point in points}
    parts = []
    for few, many in pairwise(points):
        more = interval(left[many][one] - left[few][one] for one in left[few].keys() & left[many].keys())
        parts.append(Part(f"share left with {many[2]} minus {few[2]} interfaces", more))
    numbers = ", ".join(f"{fmean(own.values()):.0%} with {point[2]}" for point, own in left.items())
    return held(parts, f"roots left by merging: {numbers} interfaces")


def saturation_generalises(found: Evidence) -> Judgement:
    """A root that accepts every event ends the search: as many tests an event as it takes to come to one that does."""
    points = _few_interfaces(found)
    if len(points) < 2:
        return None, "one number of filters says nothing about saturation"
    first, last = points[0], points[-1]
    parts = [
        Part(f"{ALIKE:g} less tests an event with {last[1]} filters", found.room(of.tests, PERFECT, last, ALIKE)),
        cheaper(found, (of.tests, PERFECT, last), (of.tests, PERFECT, first)),
    ]
    numbers = f"tests an event from {first[1]} to {last[1]} filters: " + "; ".join(
        f"{name} {curve(found, of.tests, name, points)}" for name in (UNMERGED, PERFECT, IMPERFECT)
    )
    return held(parts, numbers)


def imperfect_is_as_fast(found: Evidence) -> Judgement:
    points = _few_interfaces(found)
    ratios = [found.mean(of.tests, IMPERFECT, point) / found.mean(of.tests, PERFECT, point) for point in points]
    effort = [found.mean(of.merging, IMPERFECT, point) / found.mean(of.merging, PERFECT, point) for point in points]
    parts = [
        cheaper(found, (measure, one, point), (measure, other, point), 1 / FLAT)
        for measure in (of.tests, of.merging)
        for point in points
        for one, other in ((IMPERFECT, PERFECT), (PERFECT, IMPERFECT))
    ]
    return held(
        parts,
        f"imperfect by perfect: tests an event {min(ratios):.2f} to {max(ratios):.2f},"
        f" effort of merging {min(effort):.2f} to {max(effort):.2f}",
    )


def imperfect_merges_same_structures(found: Evidence) -> Judgement:
    points = [point for schema in ("2 mixed", "3 mixed") for point in found.points(schema)]
    parts = [cheaper(found, (of.roots, IMPERFECT, point), (of.roots, PERFECT, point), 1 / HALF) for point in points]
    numbers = "; ".join(
        f"{point[0]}: {found.mean(of.roots, UNMERGED, point):.0f} roots, {found.mean(of.roots, PERFECT, point):.0f}"
        f" perfectly merged, {found.mean(of.roots, IMPERFECT, point):.0f} imperfectly"
        for point in points
    )
    return held(parts, numbers)


def false_positives_vary(found: Evidence) -> Judgement:
    rates = {point: found.mean(of.false_positives, IMPERFECT, point) for point in _published(found)}
    some = {point: rate for point, rate in rates.items() if rate}
    if not some:
        return None, "no event was unwanted anywhere"
    least, most = (pick(some, key=lambda point: some[point]) for pick in (min, max))
    part = cheaper(found, (of.false_positives, IMPERFECT, least), (of.false_positives, IMPERFECT, most), SIMILAR)
    shown = ", ".join(f"{rate:.0%} with {point[1]} filters on {point[2]}" for point, rate in some.items())
    return held([part], f"of the unwanted pairs of event and interface match: {shown} interfaces; 0% elsewhere")


def dynamic_1_to_3(found: Evidence) -> Judgement:
    points = found.points("1-3 mixed")
    if len(points) < 2:
        return None, "one number of filters says nothing about growth"
    small = [
        cheaper(found, (of.dynamic_merging, PERFECT, point), (of.dynamic, UNMERGED, point), 1 / NEGLIGIBLE)
        for point in points
    ]
    return held([*small, *_near_constant(found, points)], _dynamic(found, points))


def dynamic_2(found: Evidence) -> Judgement:
    points, narrow = found.points("2 mixed"), found.points("1-3 mixed")
    if len(points) < 2 or not narrow:
        return None, "one number of filters says nothing about growth"
    here, there = (_overheads(found, own[-1]) for own in (points, narrow))
    more = interval(here[one] - there[one] for one in here.keys() & there.keys())
    beyond = Part("overhead beyond that with 1-3 attributes, by", more)
    return held([beyond, *_near_constant(found, points)], _dynamic(found, points))


def dynamic_3(found: Evidence) -> Judgement:
    points = found.points("3 mixed")
    if not points:
        return None, "not run"
    parts = [
        cheaper(found, (of.dynamic, UNMERGED, point), (of.dynamic_merging, PERFECT, point), SUBSTANTIAL)
        for point in points
    ]
    parts += [cheaper(found, (of.roots, UNMERGED, p), (of.roots, PERFECT, p), UNCHANGED) for p in points]
    return held(parts, _dynamic(found, points))


def _near_constant(found: Evidence, points: Sequence[Point]) -> list[Part]:
    """Merged roots stay within a factor, unmerged ones do not."""
    return [flat(found, of.roots, PERFECT, points), rising(found, of.roots, UNMERGED, points, FLAT)]


def _overheads(found: Evidence, point: Point) -> dict[int, float]:
    """What perfect merging adds to the covering tests of the forest, building and replacing together."""
    return found.ratios((of.dynamic_merging, PERFECT, point), (of.dynamic, UNMERGED, point))


def _dynamic(found: Evidence, points: Sequence[Point]) -> str:
    overheads = [fmean(_overheads(found, point).values()) for point in points]
    return (
        f"{points[0][1]} to {points[-1][1]} filters: roots {curve(found, of.roots, UNMERGED, points)},"
        f" merged {curve(found, of.roots, PERFECT, points)}; overhead {min(overheads):.0%} to {max(overheads):.0%}"
    )


def _published(found: Evidence, filters: int | None = None) -> list[Point]:
    """The points of the published one-shot workload."""
    return found.points("1-3 mixed", filters=filters)


def _few_interfaces(found: Evidence) -> list[Point]:
    """The curve over the number of filters, with three interfaces."""
    fewest = min(point[2] for point in _published(found))
    return [point for point in _published(found) if point[2] == fewest]


CHECKS = (
    Check(
        Claim("C24", "merged root sets are much smaller, and constant in the number of filters"),
        "E12",
        f"merged roots do not grow over the sweep, unmerged ones do; at the end at most {HALF:.0%} of them",
        merged_roots_stay_few,
    ),
    Check(
        Claim("C24", "matching merged root sets is much faster"),
        "E12",
        f"at most {HALF:.0%} of the tests an event, naively and by tree walk, with the most filters",
        merged_roots_match_faster,
    ),
    Check(
        Claim("C24", "the time for merging is reasonable"),
        "E12",
        "attempts to merge and their covering tests are no more than those that find the minimal covers",
        merging_is_affordable,
    ),
    Check(
        Claim("C25", "more interfaces, fewer filters on each, less benefit"),
        "E12",
        "the share of roots left by merging rises with the number of interfaces",
        interfaces_reduce_merging,
    ),
    Check(
        Claim("C25", "where filters saturate the space, merged roots become very general"),
        "E12",
        f"with the most filters the first root that is tested accepts nearly every event: at most {ALIKE:g} tests an"
        " event, and fewer than with the fewest filters",
        saturation_generalises,
    ),
    Check(
        Claim("C26", "imperfect merging is about as fast as perfect merging"),
        "E12",
        f"tests an event and the effort of merging within a factor of {FLAT} on the published workload",
        imperfect_is_as_fast,
    ),
    Check(
        Claim("C26", "imperfect merging is better where many filters have the same structure"),
        "E12",
        f"at most {HALF:.0%} of the roots that perfect merging leaves, with a fixed number of attributes",
        imperfect_merges_same_structures,
    ),
    Check(
        Claim("C26", "its rate of false positives depends on the parameters"),
        "E12",
        f"rates at different points at least a factor of {SIMILAR:g} apart",
        false_positives_vary,
    ),
    Check(
        Claim("C27", "dynamic, 1-3 attributes: no significant overhead, constant root set where unmerged it grows"),
        "E13",
        f"overhead at most {NEGLIGIBLE:.0%}; merged roots within a factor of {FLAT}, unmerged ones beyond",
        dynamic_1_to_3,
    ),
    Check(
        Claim("C28", "dynamic, 2 attributes: near-constant root set, more overhead"),
        "E13",
        f"merged roots within a factor of {FLAT}, unmerged ones beyond; more overhead than with 1-3 attributes",
        dynamic_2,
    ),
    Check(
        Claim("C29", "dynamic, 3 attributes: substantial overhead, root set not reduced"),
        "E13",
        f"overhead at least {SUBSTANTIAL:.0%}; at least {UNCHANGED:.0%} of the roots are left",
        dynamic_3,
    ),
)
