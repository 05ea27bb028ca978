"""All that the models say, as one page: computed now, beside what was printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from godwit.lab.models import costs, curve, overhead, published
from godwit.lab.models.populations import Places, Population, Stays, neighbor_places, random_places, random_shares
from godwit.lab.models.prediction import difference, overall, predict
from godwit.lab.models.topology import six_brokers
from godwit.lab.pages import Page, Table

SUBSCRIBERS = (10, 50, 100, 150, 200)
HEADER = ("", *(f"{away_s} s away" for away_s in published.AWAY_S))


def page() -> Page:
    tables = [_r1(), _ratio(), *_r2(), _random(), _neighbor(), _throughput(), _overhead()]
    lead = (
        "Spec proactive-handoff 3: computed now; a printed number stands in brackets where it differs. R2 with the"
        " tabulated 1/λ3 = 3.29 s is not what the source quotes; 7.5 s and 0.32 s are fits to those quotes (G8)."
    )
    return Page("Analytical models of handoff", lead, [], tables)


Cell = Callable[[int, float], float]


def _by_case(title: str, note: str, printed: Mapping[int, Sequence[float]], cell: Cell, digits: int) -> Table:
    rows = [_row(f"case {case}", partial(cell, case), row, digits) for case, row in printed.items()]
    return Table(title, note, HEADER, rows)


def _row(name: str, computed: Callable[[float], float], printed: Sequence[float], digits: int) -> tuple[str, ...]:
    cells = zip(published.AWAY_S, printed, strict=True)
    return (name, *(_beside(computed(away_s), old, digits) for away_s, old in cells))


def _beside(computed: float, printed: float, digits: int) -> str:
    """A number on the edge between two roundings, as 1.5 * 3.29 / 300 is, agrees with both."""
    agrees = abs(computed - printed) <= 0.5 / float(10**digits) + 1e-12
    return f"{printed:.{digits}f}" if agrees else f"{computed:.{digits}f} [{printed:.{digits}f}]"


def _r1() -> Table:
    return _by_case(
        "R1",
        "Pro-active is cheaper than reactive where caching over shipping is below this; 1/λ0 = 600 s.",
        published.R1,
        lambda case, away: costs.r1(costs.CASES[case], published.R1_CONNECTED_S, away),
        4,
    )


def _ratio() -> Table:
    rows = [
        _row(f"N1 = {n1:g}", partial(costs.caching_over_shipping, n1), row, 4)
        for n1, row in published.CACHING_OVER_SHIPPING.items()
    ]
    return Table("Caching over shipping", "To be held against R1; N2 = 1.", HEADER, rows)


def _r2() -> list[Table]:
    kinds = (
        ("R2, worst case, 1/λ3 = 3.29 s as tabulated", published.R2_WORST, 1.0, costs.REACTIVE_S),
        ("R2, worst case, 1/λ3 = 7.5 s, fitted", published.R2_WORST_FITTED, 1.0, costs.MATCHING_WORST_S),
        ("R2, best case, 1/λ3 = 0.32 s", published.R2_BEST, 0.0, costs.MATCHING_BEST_S),
    )
    note = "Pro-active is cheaper than durable where N1/N3 is below this; 1/λ0 = 60 s."
    return [_by_case(title, note, printed, _r2_cell(ratio, stranger), 2) for title, printed, ratio, stranger in kinds]


def _r2_cell(ratio: float, stranger_s: float) -> Cell:
    return lambda case, away: costs.r2(costs.CASES[case], published.R2_CONNECTED_S, away, ratio, stranger_s)


def _random() -> Table:
    shares = random_shares(6, Stays())
    rows = [
        ("P, at one broker", f"{shares.broker:.6f}", "0.147679"),
        ("handoff", f"{shares.handoff:.6f}", "0.025316"),
        ("disconnect", f"{shares.disconnect:.6f}", "0.088608"),
        ("subscribers per broker of 200", f"{200 * round(shares.broker, 6):.4f}", "29.5358"),
        ("throughput there, msg/s", f"{curve.PUBLISHED(200 * shares.broker):.3f}", "218.983"),
    ]
    return Table("Random pattern, 6 brokers", "Stays of 60, 12 and 3 s.", ("", "computed", "printed"), rows)


def _neighbor() -> Table:
    graph = six_brokers()
    places = neighbor_places(graph, Stays())
    rows = [
        (
            name,
            str(len(graph[name])),
            _beside(share, published.NEIGHBOR_SHARES[name], 6),
            *(f"{Population(k, share).mean:.3f}" for k in SUBSCRIBERS[1:]),
        )
        for name, share in places.connected.items()
    ]
    header = ("broker", "neighbors", "share", *(f"K = {k}" for k in SUBSCRIBERS[1:]))
    return Table("Neighboring pattern", "Connected subscribers by broker, on the testbed's graph.", header, rows)


def _throughput() -> Table:
    graph = six_brokers()
    rnd, nbr = random_places(list(graph), Stays()), neighbor_places(graph, Stays())
    rows = [
        (
            str(k),
            *_compared(rnd, k, published.MODEL_RND, published.MEASURED_RND),
            *_compared(nbr, k, published.MODEL_NBR, published.MEASURED_NBR),
        )
        for k in SUBSCRIBERS
    ]
    header = ("K", "RND model", "measured", "difference", "NBR model", "measured", "difference")
    note = "Messages per second of all brokers, by the published curve, and what the testbed measured."
    return Table("Throughput, predicted and measured", note, header, rows)


def _compared(places: Places, k: int, printed: Mapping[int, float], measured: Mapping[int, float]) -> tuple[str, ...]:
    model = overall(predict(places, k, curve.PUBLISHED))
    if k not in measured:
        return _beside(model, printed[k], 1), "", ""
    return _beside(model, printed[k], 1), f"{measured[k]:.2f}", f"{difference(model, measured[k]):+.1%}"


def _overhead() -> Table:
    """(3.1) to (3.4) on the testbed: one subscription, 12 s away, a fifth of 29.5 msg/s, at each broker's neighbors."""
    rate_per_s, away_s = 29.5 / 5, Stays().disconnect_s
    rows = []
    for name, others in {"RND, any broker": ("",) * 5, **six_brokers()}.items():
        placed = overhead.propagation(1, len(others))
        cached = overhead.caching([[False] * len(others)], rate_per_s, away_s)
        rows.append((name, str(len(others)), str(placed), f"{cached:.1f}", f"{overhead.total(placed, cached):.1f}"))
    header = ("broker", "neighbors", "propagation", "caching", "total")
    return Table("Overhead of one disconnection", "Messages, where no neighbor shares the interest.", header, rows)
