"""C6 to C10: structures between routers, hierarchical and peer to peer."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from godwit.lab.claims import Claim
from godwit.lab.claims import Point as CurvePoint
from godwit.lab.intervals import interval
from godwit.lab.parts import Part
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import Evidence, Measure, Point
from godwit.lab.structures.judging import (
    NAMED_PHASES,
    NEGLIGIBLE,
    PHASES,
    SIMILAR,
    SUBSTANTIAL,
    Check,
    Judgement,
    cheaper,
    costs,
    curved,
    ends,
    first_and_last,
    held,
    rising,
    versus,
)

PEER_FORESTS = ("NRF exact", "NRF approximate")

FLAT_POSET = (
    "A poset is at most as deep as there are interfaces: with three of them its search is short, while the forest still"
    " pays for finding redundant filters and, in exact mode, for asking whether a neighbor knows something wider."
)


def nrf_beats_the_poset(found: Evidence) -> Judgement:
    parts = [
        cheaper(found, (phase, "NRF", point), (phase, "FP", point)) for point in found.points() for phase in PHASES
    ]
    return held(parts, ends(found, lambda point: versus(found, ("NRF", "FP"), point)))


def elimination_is_costly(found: Evidence) -> Judgement:
    """The text calls it the costly part and gives no share: a substantial part, as for merging, is a quarter."""
    parts = [_costly(found, point) for point in found.points()]
    return held(parts, ends(found, lambda point: f"{found.mean(of.eliminated, 'NRF', point):.0%}"))


def _costly(found: Evidence, point: Point) -> Part:
    """Eliminating takes more than a quarter of what adding takes."""
    return cheaper(found, (of.add, "NRF", point), (of.eliminating, "NRF", point), SUBSTANTIAL)


def cheaper_by_interfaces(
    found: Evidence, forests: Sequence[str], schemas: Sequence[str], phases: Sequence[Measure] = (of.add,)
) -> list[CurvePoint]:
    """By the number of interfaces: whether every forest is cheaper than the poset in all schemas and phases."""
    curve = []
    for number in sorted({point[2] for point in found.points(clients=0)}):
        parts = {
            f"{forest}, {schema}, {phase.__name__}": cheaper(found, (phase, forest, point), (phase, "FP", point))
            for schema in schemas
            for point in found.points(schema, clients=0)
            if point[2] == number
            for forest in forests
            for phase in phases
        }
        curve.append(CurvePoint(f"{number} interfaces", *curved(parts)))
    return curve


def costly_by_schema(found: Evidence) -> list[CurvePoint]:
    """By schema: whether elimination is a substantial part at every number of interfaces."""
    return [
        CurvePoint(schema, *curved({f"{point[2]} interfaces": _costly(found, point) for point in found.points(schema)}))
        for schema in found.schemas()
    ]


def peers_add_cheaper(found: Evidence, schemas: Sequence[str]) -> Judgement:
    points = [point for schema in schemas for point in found.points(schema, clients=0)]
    if not points:
        return None, "not run"
    parts = {
        (forest, point): cheaper(found, (of.add, forest, point), (of.add, "FP", point))
        for point in points
        for forest in PEER_FORESTS
    }
    dearer = ", ".join(
        f"{forest} {point[0]} with {point[2]}" for (forest, point), part in parts.items() if not part.holds
    )
    numbers = ends(found, lambda point: costs(found, of.add, ("FP", *PEER_FORESTS), point), schemas)
    return held(list(parts.values()), f"{numbers}; not clearly cheaper than FP: {dearer or 'none'}")


def poset_removes_cheaper(found: Evidence) -> Judgement:
    parts = []
    for schema in found.schemas():
        line = found.points(schema, clients=0)
        if len(line) < 2:
            return None, "one number of neighbors shows no trend"
        first, last = line[0], line[-1]
        parts += [cheaper(found, (own, "FP", first), (own, "NRF exact", first)) for own in (of.remove, of.replace)]
        few, many = (found.ratios((of.replace, "NRF exact", p), (of.replace, "FP", p)) for p in (first, last))
        wearing = interval(few[one] - many[one] for one in few.keys() & many.keys())
        parts.append(Part(f"{schema}: how often as dear NRF is with {first[2]} minus {last[2]} neighbors", wearing))
    return held(
        parts,
        ends(
            found,
            lambda point: (
                f"{costs(found, of.remove, ('FP', 'NRF exact'), point)} removals,"
                f" {costs(found, of.replace, ('FP', 'NRF exact'), point)} add/remove"
            ),
        ),
    )


def approximation_is_cheaper(found: Evidence) -> Judgement:
    exact, approximate = PEER_FORESTS
    parts = [
        cheaper(found, (phase, approximate, point), (phase, exact, point))
        for point in found.points()
        for phase in PHASES
    ]
    numbers = ends(
        found,
        lambda point: " and ".join(
            f"{found.mean(phase, approximate, point) / found.mean(phase, exact, point) - 1:+.0%} {name}"
            for phase, name in zip(PHASES, ("add", "add/remove"), strict=True)
        ),
    )
    return held(parts, numbers)


def approximation_sends_more(found: Evidence) -> Judgement:
    exact, approximate = PEER_FORESTS
    parts = [
        cheaper(found, (measure, exact, point), (measure, approximate, point))
        for point in found.points()
        for measure in (of.sent, of.replace_sent)
    ]
    numbers = ends(
        found,
        lambda point: " and ".join(
            f"{found.mean(measure, approximate, point) / found.mean(measure, exact, point) - 1:+.1%} {name}"
            for measure, name in ((of.sent, "add"), (of.replace_sent, "add/remove"))
        ),
    )
    return held(parts, numbers)


def clients_reduce_forwarding(found: Evidence) -> Judgement:
    with_clients = found.points(clients=1)
    parts, numbers = [], []
    for schema in found.schemas():
        points = [point for point in found.points(schema, clients=0) if (*point[:3], 1) in with_clients]
        crowded = {point: (*point[:3], 1) for point in points}
        fewer = found.lead_in_all([((of.forwarded, "FP", crowded[p]), (of.forwarded, "FP", p)) for p in points])
        parts.append(Part(f"{schema}: fewer with local clients, by", fewer))
        numbers += [
            f"{schema}, {point[2]}: {found.mean(of.forwarded, 'FP', point):.0f} without,"
            f" {found.mean(of.forwarded, 'FP', crowded[point]):.0f} with"
            for point in first_and_last(points)
        ]
    return held(parts, "; ".join(numbers))


def many_clients_favour_forests(found: Evidence) -> Judgement:
    last = found.points()[-1]
    parts = [cheaper(found, (phase, forest, last), (phase, "FP", last)) for forest in PEER_FORESTS for phase in PHASES]
    return held(parts, f"{last[3]} clients: {versus(found, ('NRF exact', 'FP'), last)}")


def poset_degrades(found: Evidence) -> Judgement:
    points = found.points()
    if len(points) < 2:
        return None, "one number of clients says nothing about growth"
    first, last = points[0], points[-1]
    growth = {
        name: [found.ratios((phase, name, last), (phase, name, first)) for phase in PHASES]
        for name in ("FP", "NRF exact")
    }
    parts = [rising(found, phase, "FP", points, SIMILAR) for phase in PHASES]
    for name, poset, forest in zip(NAMED_PHASES, *growth.values(), strict=True):
        more = interval(poset[one] - forest[one] for one in poset.keys() & forest.keys())
        parts.append(Part(f"{name}: growth of FP minus that of NRF exact", more))
    numbers = f"from {first[3]} to {last[3]} clients: " + "; ".join(
        f"{name} x {fmean(own[0].values()):.1f} add, x {fmean(own[1].values()):.1f} add/remove"
        for name, own in growth.items()
    )
    return held(parts, numbers)


def approximation_gains_little(found: Evidence) -> Judgement:
    """What approximate sets cost is at least nine tenths of what exact ones do."""
    points = found.points()
    exact, approximate = PEER_FORESTS
    gains = {
        point: 1 - found.mean(of.dynamic, approximate, point) / found.mean(of.dynamic, exact, point) for point in points
    }
    numbers = ", ".join(f"{gain:.1%} with {point[3]}" for point, gain in gains.items())
    last = points[-1]
    part = cheaper(found, (of.dynamic, exact, last), (of.dynamic, approximate, last), 1 - NEGLIGIBLE)
    return held([part], f"saves {numbers} clients")


CHECKS = (
    Check(
        Claim("C6", "NRF is faster than the poset in hierarchical add and add/remove, in all schemas"),
        "E3",
        "NRF needs fewer covering tests than FP in both phases at every point",
        nrf_beats_the_poset,
        "With three interfaces a poset is shallow, and its search short.",
        "how many interfaces there are",
        lambda found: cheaper_by_interfaces(found, ("NRF",), found.schemas(), PHASES),
    ),
    Check(
        Claim(
            "C6",
            "interface elimination is the costly part of NRF",
            was="wanted more than half, which is not in the text",
        ),
        "E3",
        f"a substantial part of the covering tests of add at every point, at least {SUBSTANTIAL:.0%}",
        elimination_is_costly,
        "In 3D with many interfaces finding a place costs far more: the interface index spares trees without the"
        " interface, and nothing is tested below a covered node.",
        "the schema",
        costly_by_schema,
    ),
    Check(
        Claim("C7", "peer-to-peer: NRF is better in add (2D, the published curve)"),
        "E4",
        "NRF, exact and approximate, needs fewer covering tests than FP in add with every number of neighbors",
        lambda found: peers_add_cheaper(found, ["2D"]),
        FLAT_POSET,
        "how many neighbors there are",
        lambda found: cheaper_by_interfaces(found, PEER_FORESTS, ["2D"]),
    ),
    Check(
        Claim("C7", "peer-to-peer: NRF is better in add (3D and variable schemas alike)"),
        "E4",
        "the same in the other schemas",
        lambda found: peers_add_cheaper(found, ["3D", "1-3D"]),
        FLAT_POSET,
        "how many neighbors there are",
        lambda found: cheaper_by_interfaces(found, PEER_FORESTS, ["3D", "1-3D"]),
    ),
    Check(
        Claim("C7", "peer-to-peer: the poset is better in del, notably with few interfaces"),
        "E4",
        "with the fewest neighbors FP needs fewer covering tests than exact NRF, for removals alone and in add/remove"
        " as a whole; with the most, that advantage is smaller or gone",
        poset_removes_cheaper,
    ),
    Check(
        Claim("C8", "approximate forwards sets are faster than exact ones"),
        "E4",
        "fewer covering tests in both phases at every point",
        approximation_is_cheaper,
    ),
    Check(
        Claim("C8", "approximate forwards sets forward more filters"),
        "E4",
        "more subscriptions sent in both phases at every point",
        approximation_sends_more,
    ),
    Check(
        Claim("C9", "with an interface of local clients fewer filters are forwarded"),
        "E4",
        "of as many filters fewer have to be told to any neighbor, over all numbers of neighbors, in every schema",
        clients_reduce_forwarding,
        "What local clients cover need not be forwarded, and one interface of many makes that a small difference.",
    ),
    Check(
        Claim("C10", "with many local clients forests are faster in add and del"),
        "E5",
        "NRF needs fewer covering tests than FP in both phases with the most clients",
        many_clients_favour_forests,
    ),
    Check(
        Claim("C10", "with many local clients the poset degrades"),
        "E5",
        f"from the fewest to the most clients FP rises by at least x {SIMILAR:g}, and by more than NRF",
        poset_degrades,
    ),
    Check(
        Claim("C10", "with many local clients approximation gains little"),
        "E5",
        f"at most {NEGLIGIBLE:.0%} of the covering tests of exact NRF saved with the most clients",
        approximation_gains_little,
    ),
)
