"""C6 to C10: structures between routers, hierarchical and peer to peer."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.lab.claims import Claim, Margin
from godwit.lab.claims import Point as CurvePoint
from godwit.lab.intervals import Interval
from godwit.lab.structures import evidence as of
from godwit.lab.structures.evidence import AGREED, Evidence, decided
from godwit.lab.structures.judging import (
    NEGLIGIBLE,
    PHASES,
    SIMILAR,
    SUBSTANTIAL,
    Check,
    Judgement,
    costs,
    ends,
    first_and_last,
    versus,
)

PEER_FORESTS = ("NRF exact", "NRF approximate")

FLAT_POSET = (
    "A poset is at most as deep as there are interfaces: with three of them its search is short, while the forest still"
    " pays for finding redundant filters and, in exact mode, for asking whether a neighbor knows something wider."
)


def nrf_beats_the_poset(found: Evidence) -> Judgement:
    shares = [found.share(phase, ("NRF", point), ("FP", point)) for point in found.points() for phase in PHASES]
    return decided(shares), ends(found, lambda point: versus(found, ("NRF", "FP"), point))


def elimination_is_costly(found: Evidence) -> Judgement:
    """The text calls it the costly part and gives no share: a substantial part, as for merging, is a quarter."""
    shares = {point: found.mean(of.eliminated, "NRF", point) for point in found.points()}
    return min(shares.values()) >= SUBSTANTIAL, ends(found, lambda point: f"{shares[point]:.0%}")


def cheaper_by_interfaces(found: Evidence, forests: Sequence[str], schemas: Sequence[str]) -> list[CurvePoint]:
    """By the number of interfaces: whether every forest adds cheaper than the poset in all schemas."""
    curve = []
    for number in sorted({point[2] for point in found.points(clients=0)}):
        compared = {
            f"{forest}, {schema}": ((forest, point), ("FP", point))
            for schema in schemas
            for point in found.points(schema, clients=0)
            if point[2] == number
            for forest in forests
        }
        holds = decided([found.share(of.add, *pair) for pair in compared.values()])
        saved = tuple(Margin(name, found.saved(of.add, *pair)) for name, pair in compared.items())
        curve.append(CurvePoint(f"{number} interfaces", holds, margins=saved))
    return curve


def costly_by_schema(found: Evidence) -> list[CurvePoint]:
    """By schema: whether elimination is a substantial part at every number of interfaces."""
    curve = []
    for schema in found.schemas():
        shares = [found.interval(of.eliminated, "NRF", point) for point in found.points(schema)]
        least = min(shares, key=lambda share: share.mean)
        beyond = Interval(least.mean - SUBSTANTIAL, least.half, least.runs)
        curve.append(CurvePoint(schema, least.mean >= SUBSTANTIAL, margins=(Margin("least share", beyond),)))
    return curve


def peers_add_cheaper(found: Evidence, schemas: Sequence[str]) -> Judgement:
    points = [point for schema in schemas for point in found.points(schema, clients=0)]
    if not points:
        return None, "not run"
    shares = {
        (forest, point): found.share(of.add, (forest, point), ("FP", point))
        for point in points
        for forest in PEER_FORESTS
    }
    dearer = ", ".join(
        f"{forest} {point[0]} with {point[2]}" for (forest, point), share in shares.items() if share < AGREED
    )
    numbers = ends(found, lambda point: costs(found, of.add, ("FP", *PEER_FORESTS), point), schemas)
    return decided(list(shares.values())), f"{numbers}; not clearly cheaper than FP: {dearer or 'none'}"


def poset_removes_cheaper(found: Evidence) -> Judgement:
    shares, wearing = [], []
    for schema in found.schemas():
        line = found.points(schema, clients=0)
        shares += [found.share(own, ("FP", line[0]), ("NRF exact", line[0])) for own in (of.remove, of.replace)]
        ratios = [found.mean(of.replace, "NRF exact", p) / found.mean(of.replace, "FP", p) for p in line]
        wearing.append(ratios[-1] < ratios[0] if len(line) > 1 else None)
    if None in wearing:
        return None, "one number of neighbors shows no trend"
    return decided(shares) and all(wearing), ends(
        found,
        lambda point: (
            f"{costs(found, of.remove, ('FP', 'NRF exact'), point)} removals,"
            f" {costs(found, of.replace, ('FP', 'NRF exact'), point)} add/remove"
        ),
    )


def approximation_is_cheaper(found: Evidence) -> Judgement:
    exact, approximate = PEER_FORESTS
    shares = [found.share(phase, (approximate, point), (exact, point)) for point in found.points() for phase in PHASES]
    return decided(shares), ends(
        found,
        lambda point: " and ".join(
            f"{found.mean(phase, approximate, point) / found.mean(phase, exact, point) - 1:+.0%} {name}"
            for phase, name in zip(PHASES, ("add", "add/remove"), strict=True)
        ),
    )


def approximation_sends_more(found: Evidence) -> Judgement:
    exact, approximate = PEER_FORESTS
    shares = [
        found.share(measure, (exact, point), (approximate, point))
        for point in found.points()
        for measure in (of.sent, of.replace_sent)
    ]
    return decided(shares), ends(
        found,
        lambda point: " and ".join(
            f"{found.mean(measure, approximate, point) / found.mean(measure, exact, point) - 1:+.1%} {name}"
            for measure, name in ((of.sent, "add"), (of.replace_sent, "add/remove"))
        ),
    )


def clients_reduce_forwarding(found: Evidence) -> Judgement:
    with_clients = found.points(clients=1)
    shares, numbers = [], []
    for schema in found.schemas():
        points = [point for point in found.points(schema, clients=0) if (*point[:3], 1) in with_clients]
        pairs = [(("FP", (*point[:3], 1)), ("FP", point)) for point in points]
        shares.append(found.share_in_all(of.forwarded, pairs))
        numbers += [
            f"{schema}, {point[2]}: {found.mean(of.forwarded, 'FP', point):.0f} without,"
            f" {found.mean(of.forwarded, *crowd):.0f} with"
            for crowd, (_, point) in first_and_last(pairs)
        ]
    return decided(shares), "; ".join(numbers)


def many_clients_favour_forests(found: Evidence) -> Judgement:
    last = found.points()[-1]
    shares = [found.share(phase, (forest, last), ("FP", last)) for forest in PEER_FORESTS for phase in PHASES]
    return decided(shares), f"{last[3]} clients: {versus(found, ('NRF exact', 'FP'), last)}"


def poset_degrades(found: Evidence) -> Judgement:
    points = found.points()
    if len(points) < 2:
        return None, "one number of clients says nothing about growth"
    growth = {
        name: [found.mean(phase, name, points[-1]) / found.mean(phase, name, points[0]) for phase in PHASES]
        for name in ("FP", "NRF exact")
    }
    holds = min(growth["FP"]) >= SIMILAR and all(
        poset > forest for poset, forest in zip(growth["FP"], growth["NRF exact"], strict=True)
    )
    return holds, f"from {points[0][3]} to {points[-1][3]} clients: " + "; ".join(
        f"{name} x {own[0]:.1f} add, x {own[1]:.1f} add/remove" for name, own in growth.items()
    )


def approximation_gains_little(found: Evidence) -> Judgement:
    points = found.points()
    exact, approximate = PEER_FORESTS
    gains = {
        point: 1
        - sum(found.mean(phase, approximate, point) for phase in PHASES)
        / sum(found.mean(phase, exact, point) for phase in PHASES)
        for point in points
    }
    numbers = ", ".join(f"{gain:.1%} with {point[3]}" for point, gain in gains.items())
    return gains[points[-1]] <= NEGLIGIBLE, f"saves {numbers} clients"


CHECKS = (
    Check(
        Claim("C6", "NRF is faster than the poset in hierarchical add and add/remove, in all schemas"),
        "E3",
        "NRF needs fewer covering tests than FP in both phases at every point",
        nrf_beats_the_poset,
        "With three interfaces a poset is shallow, and its search short.",
        "how many interfaces there are",
        lambda found: cheaper_by_interfaces(found, ("NRF",), found.schemas()),
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
