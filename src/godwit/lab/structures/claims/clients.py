"""C1 to C5 and C11: structures that serve local clients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from godwit.lab.claims import Claim
from godwit.lab.claims import Point as CurvePoint
from godwit.lab.parts import Part
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence
from godwit.lab.structures.judging import (
    ALIKE,
    FLAT,
    NAMED_PHASES,
    PHASES,
    SIMILAR,
    Check,
    Judgement,
    by_schema,
    cheaper,
    curve,
    curved,
    flat,
    held,
    rising,
    short,
    versus,
)
from godwit.lab.structures.routing import COUNTING, NAIVE

FORESTS = ("PF", "BF", "NRF")
LOCAL = (*FORESTS, "FP")
PUBLISHED_FILTERS = 500


def forests_beat_the_poset(found: Evidence) -> Judgement:
    """At 500 filters, the number that the text has; below it points are shown and decide nothing."""
    largest = max(point[1] for point in found.points())
    if largest < PUBLISHED_FILTERS:
        return None, f"{largest} filters, where the text has up to {PUBLISHED_FILTERS}"
    parts = [
        cheaper(found, (phase, forest, point), (phase, "FP", point))
        for point in found.points(filters=largest)
        for forest in FORESTS
        for phase in PHASES
    ]
    return held(parts, by_schema(found, lambda point: versus(found, ("PF", "FP"), point)))


def sizes_are_equal(found: Evidence) -> Judgement:
    sizes = {point: {found.mean(of.size, one, point) for one in LOCAL} for point in found.points()}
    largest = max(point[1] for point in sizes)
    held = ", ".join(
        f"{point[0]} {'/'.join(f'{one:g}' for one in sorted(own))}"
        for point, own in sizes.items()
        if point[1] == largest
    )
    return all(len(own) == 1 for own in sizes.values()), f"filters held by all four at the largest size: {held}"


def dimensions_order(found: Evidence, structures: Sequence[str]) -> Judgement:
    largest = max(point[1] for point in found.points())
    points = {point[0]: point for point in found.points(filters=largest)}
    if not {"1-3D", "2D", "3D"} <= points.keys():
        return None, "not all three schemas were run"
    parts = [
        cheaper(found, (phase, structure, points[less]), (phase, structure, points[more]))
        for structure in structures
        for phase in PHASES
        for less, more in (("1-3D", "2D"), ("2D", "3D"))
    ]
    numbers = "; ".join(
        f"{structure} {short(found.mean(of.add, structure, points[schema]))} add,"
        f" {short(found.mean(of.replace, structure, points[schema]))} add/remove in {schema}"
        for structure in structures[:1]
        for schema in ("1-3D", "2D", "3D")
    )
    return held(parts, numbers)


TESTS_ARE_NO_TIME = "counted covering tests, where the text speaks of time"
CONSTRAINTS = {"1-3D": 2.0, "2D": 2.0, "3D": 3.0}
"""How many constraints a covering test may have to look at, on average: its time, in the text's own measure."""


def dimensions_cost(found: Evidence, structures: Sequence[str]) -> Judgement:
    """The text speaks of time: a test of three constraints takes half as long again as one of two."""
    largest = max(point[1] for point in found.points())
    points = {point[0]: point for point in found.points(filters=largest)}
    if not CONSTRAINTS.keys() <= points.keys():
        return None, "not all three schemas were run"
    parts = [
        cheaper(
            found,
            (phase, structure, points[less]),
            (phase, structure, points[more]),
            CONSTRAINTS[less] / CONSTRAINTS[more],
        )
        for structure in structures
        for phase in PHASES
        for less, more in (("1-3D", "2D"), ("2D", "3D"))
    ]
    told = "; ".join(
        f"{structure} in {schema}: {short(weight * found.mean(of.add, structure, points[schema]))} add,"
        f" {short(weight * found.mean(of.replace, structure, points[schema]))} add/remove"
        for structure in structures
        for schema, weight in CONSTRAINTS.items()
    )
    return held(parts, f"constraints looked at, at most: {told}")


def forests_cost_the_same(found: Evidence) -> Judgement:
    ratios = {
        forest: [
            found.mean(phase, forest, point) / found.mean(phase, "PF", point)
            for point in found.points()
            for phase in PHASES
        ]
        for forest in ("BF", "NRF")
    }
    parts = [
        cheaper(found, (phase, one, point), (phase, other, point), 1 / ALIKE)
        for forest in ratios
        for point in found.points()
        for phase in PHASES
        for one, other in ((forest, "PF"), ("PF", forest))
    ]
    return held(parts, "; ".join(f"{forest} {min(own):.2f} to {max(own):.2f} x PF" for forest, own in ratios.items()))


def forests_are_flat(found: Evidence, forests: Sequence[str]) -> Judgement:
    points = found.points()
    if len(points) < 2:
        return None, "one number of interfaces says nothing about growth"
    parts = [flat(found, phase, forest, points) for forest in forests for phase in PHASES]
    return held(parts, _growth(found, forests))


def flat_from(found: Evidence, forest: str) -> list[CurvePoint]:
    """By the number of interfaces that a curve begins with: whether it is flat from there on."""
    points, begins = found.points(), []
    for i, point in enumerate(points[:-1]):
        parts = {name: flat(found, phase, forest, points[i:]) for name, phase in NAMED_PHASES.items()}
        begins.append(CurvePoint(f"{point[2]} interfaces", *curved(parts)))
    return begins


def the_poset_grows(found: Evidence) -> Judgement:
    points = found.points()
    if len(points) < 2:
        return None, "one number of interfaces says nothing about growth"
    parts = [rising(found, phase, "FP", points, SIMILAR) for phase in PHASES]
    return held(parts, _growth(found, ("FP",)))


def _growth(found: Evidence, names: Sequence[str]) -> str:
    points = found.points()
    return f"from {points[0][2]} to {points[-1][2]} interfaces: " + "; ".join(
        f"{name} {curve(found, of.add, name, points)} add, {curve(found, of.replace, name, points)} add/remove"
        for name in names
    )


def matching_is_similar(found: Evidence) -> Judgement:
    tests = {point: {name: found.mean(of.tests, name, point) for name in LOCAL} for point in found.points()}
    spreads = {point: max(own.values()) / min(own.values()) for point, own in tests.items()}
    worst = max(spreads, key=lambda point: spreads[point])
    parts = [
        cheaper(found, (of.tests, one, point), (of.tests, other, point), 1 / SIMILAR)
        for point in found.points()
        for one in LOCAL
        for other in LOCAL
        if one != other
    ]
    return held(
        parts,
        f"at most x {spreads[worst]:.2f} apart; tests an event with {worst[2]} interfaces: "
        + ", ".join(f"{name} {own:.0f}" for name, own in tests[worst].items())
        + f", naive {found.mean(of.tests, NAIVE, worst):.0f}",
    )


def few_interfaces_match_best(found: Evidence) -> Judgement:
    points = found.points()
    if len(points) < 2:
        return None, "one number of interfaces shows no trend"
    parts = [rising(found, of.tests, name, step) for name in LOCAL for step in pairwise(points)]
    curves = {name: [found.mean(of.tests, name, point) for point in points] for name in LOCAL}
    numbers = f"tests an event from {points[0][2]} to {points[-1][2]} interfaces: " + "; ".join(
        f"{name} {own[0]:.1f} to {own[-1]:.0f}" for name, own in curves.items()
    )
    return held(parts, numbers)


def dedicated_matchers_win(found: Evidence) -> Judgement:
    """With the most interfaces: with few, a structure that prunes holds next to nothing.

    A hit in an index of the counting matcher is no more work than a test of a constraint. Where it has fewer hits than
    every structure has tests it is the faster; where it has more than all, it is not; between, it depends.
    """
    numbers = "; ".join(
        f"interfaces {point[2]}: {found.mean(of.predicates, COUNTING, point):.0f} hits counting, constraints tested "
        + ", ".join(f"{name} {found.mean(of.predicates, name, point):.0f}" for name in LOCAL)
        for point in (found.points()[0], found.points()[-1])
    )
    return held([_fewer_hits(found, name) for name in LOCAL], numbers)


def counting_beats(found: Evidence) -> list[CurvePoint]:
    return [CurvePoint(name, *curved({"fewer hits than tests": _fewer_hits(found, name)})) for name in LOCAL]


def _fewer_hits(found: Evidence, name: str) -> Part:
    last = found.points()[-1]
    return cheaper(found, (of.predicates, COUNTING, last), (of.predicates, name, last))


CHECKS = (
    Check(
        Claim(
            "C1",
            "forests beat the poset for local clients, in add and in add/remove",
            was="judged at fewer filters than the 500 of the text",
        ),
        "E1",
        f"PF, BF and NRF need fewer covering tests than FP in both phases with {PUBLISHED_FILTERS} filters, 3 schemas",
        forests_beat_the_poset,
    ),
    Check(
        Claim("C2", "the structures are of the same size where nothing is pruned"),
        "E1",
        "equal numbers of filters in all four",
        sizes_are_equal,
    ),
    Check(
        Claim("C3", "3D costs more than 2D, a variable number of attributes less (forests)", was=TESTS_ARE_NO_TIME),
        "E1",
        "1-3D < 2D < 3D in covering tests, both phases, at the largest size",
        lambda found: dimensions_order(found, FORESTS),
    ),
    Check(
        Claim("C3", "3D costs more than 2D, a variable number of attributes less (poset)", was=TESTS_ARE_NO_TIME),
        "E1",
        "the same for FP, in time as the text speaks of: covering tests times the constraints that a test looks at",
        lambda found: dimensions_cost(found, ("FP",)),
        "In 3D fewer filters cover one another, so that the poset has fewer paths to search, and each test looks at"
        " more constraints.",
    ),
    Check(
        Claim("C4", "BF and NRF add no overhead over PF for local clients"),
        "E1",
        f"within {ALIKE - 1:.0%} of PF in both phases at every point",
        forests_cost_the_same,
    ),
    Check(
        Claim("C5", "forests are about constant in the number of interfaces (PF, BF)"),
        "E2",
        f"largest cost at most {FLAT} x the smallest in both phases",
        lambda found: forests_are_flat(found, ("PF", "BF")),
    ),
    Check(
        Claim(
            "C5",
            "forests are about constant in the number of interfaces (NRF)",
            was="told figures of earlier rows; the page follows from the rows now",
        ),
        "E2",
        "the same for NRF",
        lambda found: forests_are_flat(found, ("NRF",)),
        "With few interfaces most filters are redundant, and this forest drops them: it holds and costs less there."
        " From about ten interfaces on it is as flat as the others.",
        "where the curve begins",
        lambda found: flat_from(found, "NRF"),
    ),
    Check(
        Claim("C5", "the poset grows with the number of interfaces"),
        "E2",
        f"FP rises from the fewest to the most, by at least x {SIMILAR:g} in both phases",
        the_poset_grows,
    ),
    Check(
        Claim("C11", "matching performance is similar across structures"),
        "E2",
        f"tests an event of PF, BF, NRF and FP within a factor of {SIMILAR:g} at every point",
        matching_is_similar,
    ),
    Check(
        Claim("C11", "matching is best with few interfaces"),
        "E2",
        "tests an event rise with the number of interfaces in every structure",
        few_interfaces_match_best,
    ),
    Check(
        Claim("C11", "matching is slower than in optimised matchers", was="said nothing, whatever the rows"),
        "E2",
        "with the most interfaces the counting matcher has fewer hits than every structure tests constraints",
        dedicated_matchers_win,
        "Forests test fewer constraints than the counting matcher has hits, the poset more; `make bench` has times.",
        "the structure",
        counting_beats,
    ),
)
