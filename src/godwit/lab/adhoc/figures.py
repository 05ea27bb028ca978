"""The plots of the evaluation, as PNG: delivery and cost over what was swept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes

from godwit.lab.adhoc import waits
from godwit.lab.adhoc.evidence import Evidence, Quantity, delivery, overhead
from godwit.lab.adhoc.model import expected_distances, torus_of
from godwit.lab.adhoc.plan import CREDITS, PERIODS_S, SUBSCRIBER_CREDITS
from godwit.lab.adhoc.readings import Known
from godwit.lab.adhoc.runs import Configuration
from godwit.lab.pages import crossed, line, picture

Line = tuple[str, Sequence[float], Sequence[Configuration]]


def drawn(evidence: Evidence) -> dict[str, bytes]:
    """Caption and picture."""
    plan = evidence.plan
    gossip = {"protocol": "gossip", "probability": 0.5}
    rates = [
        ("proximity", plan.rates_per_s, [plan.cell(rate_per_s=r) for r in plan.rates_per_s]),
        *(
            (f"gossip p {p:g}", plan.rates_per_s, [plan.gossip(p, rate_per_s=r) for r in plan.rates_per_s])
            for p in (0.3, 0.5, 1.0)
        ),
    ]
    subscribers = [
        (f"Cr {c}", plan.subscribers, [plan.cell(subscribers=n, credits=c) for n in plan.subscribers])
        for c in SUBSCRIBER_CREDITS
    ]
    speeds = [
        *((f"{d:g} s", plan.speeds_mps, [plan.at_speed(s, period_s=d) for s in plan.speeds_mps]) for d in PERIODS_S),
        ("adaptive", plan.speeds_mps, [plan.at_speed(s, adaptive=True) for s in plan.speeds_mps]),
    ]
    sizes = [
        ("proximity", plan.sizes, [plan.grown(n) for n in plan.sizes]),
        ("gossip p 0.5", plan.sizes, [plan.grown(n, **gossip) for n in plan.sizes]),
    ]
    densities = [
        ("proximity", plan.densities, [plan.denser(n) for n in plan.densities]),
        *(
            (
                f"gossip p {p:g}",
                plan.densities,
                [plan.denser(n, protocol="gossip", probability=p) for n in plan.densities],
            )
            for p in (0.3, 0.5, 1.0)
        ),
    ]
    plots: dict[str, Callable[[Axes], None]] = {
        "E1, E2: delivery over packets per delivery": lambda axes: _trade(axes, evidence),
        "E3: delivery by subscribers": lambda axes: _lines(axes, evidence, subscribers, delivery, "subscribers"),
        "E3: packets per delivery by subscribers": lambda axes: _lines(
            axes, evidence, subscribers, overhead, "subscribers"
        ),
        "E4: delivery by rate of a publisher": lambda axes: _lines(axes, evidence, rates, delivery, "msg/s"),
        "E5: delivery by speed": lambda axes: _lines(axes, evidence, speeds, delivery, "mean m/s"),
        "E6: delivery by size at constant density": lambda axes: _lines(axes, evidence, sizes, delivery, "nodes"),
        "E7: delivery by density": lambda axes: _lines(axes, evidence, densities, delivery, "nodes in 1 km2"),
        "E7: packets per delivery by density": lambda axes: _lines(
            axes, evidence, densities, overhead, "nodes in 1 km2"
        ),
        "A1: expected distance since the link broke": _distances,
    }
    return {caption: picture(draw) for caption, draw in plots.items()}


SWEPT: Mapping[str, Sequence[str]] = {
    "E1 and E2 along gossip's longest wait; above zero a claim is true": ("E1a", "E1c", "E2b", "E2c", "E2d", "E2e"),
    "E3c and E7a along gossip's longest wait; above zero a claim is true": ("E3c", "E7a"),
    "E4b and E7b along gossip's longest wait; above zero a claim is true": ("E4b", "E7b"),
}


def swept(known: Known) -> dict[str, bytes]:
    """Caption and picture of what was swept besides: how long gossip waits, and which radio it has."""
    curves = {"E1: gossip's delivery by probability, for its waits": picture(partial(waits.draw_curves, known=known))}
    every = {caption: waits.swept(known, names) for caption, names in SWEPT.items()}
    drawn = {caption: picture(partial(waits.draw_margins, found=found)) for caption, found in every.items() if found}
    return {**curves, **drawn}


def _lines(axes: Axes, evidence: Evidence, lines: Sequence[Line], quantity: Quantity, unit: str) -> None:
    for label, xs, settings in lines:
        line(axes, [(x, evidence.mean(quantity, s)) for x, s in zip(xs, settings, strict=True)], label)
    axes.set_xlabel(unit)


def _trade(axes: Axes, evidence: Evidence) -> None:
    plan = evidence.plan
    families = {
        "gossip, p from 0.1 to 1": [plan.gossip(p) for p in plan.probabilities],
        "proximity, 0 to 5 credits": [plan.cell(credits=c) for c in CREDITS],
        "proximity with carrying, 20 and 60 s": [plan.cell(carry_s=age) for age in (20.0, 60.0)],
    }
    for label, settings in families.items():
        found = [(evidence.mean(overhead, s), evidence.mean(delivery, s)) for s in settings]
        crossed(axes, [(o, d) for o, d in found if o is not None and d is not None], label)
    axes.plot([2.5, 5.5, 2.5], [0.7, 0.7, 0.3], "kx", label="published")
    axes.set_xlabel("packets per delivery")
    axes.set_ylabel("delivery")


def _distances(axes: Axes) -> None:
    for speed in (0.1, 0.5, 0.9):
        axes.plot(expected_distances(torus_of(speed, 0.9), 40), label=f"s = {speed:g}")
    axes.set_xlabel("ticks")
    axes.set_ylabel("grid steps")
