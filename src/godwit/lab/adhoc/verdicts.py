"""Each published claim judged by the runs of a plan: pure functions from results to findings.

A claim is taken apart into quantities that must be above zero (`lab.parts`), with the spec's tolerance inside and an
interval over seeds. Differences are taken seed by seed in the same worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import pairwise

from godwit.lab.adhoc.claims import CLAIMS, FLAT, LOW, PACKETS, POINTS, ROUGHLY, SHARP, SLIGHTLY
from godwit.lab.adhoc.evidence import Evidence, Quantity, beacon_share, between, crossing, delivery, overhead
from godwit.lab.adhoc.model import expected_distances, torus_of
from godwit.lab.adhoc.plan import CREDITS, PERIODS_S, SUBSCRIBER_CREDITS
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.sigmoid import Sigmoid, fitted
from godwit.lab.claims import Finding, arithmetic, fair
from godwit.lab.intervals import Interval, interval_if_any
from godwit.lab.parts import Part, decided

Parts = Iterable[Part]


def findings(evidence: Evidence) -> list[Finding]:
    """Every claim, in order."""
    return [judge(name, evidence) for name in CLAIMS]


def judge(name: str, evidence: Evidence) -> Finding:
    if name == "A1":
        return arithmetic(CLAIMS["A1"], *_a1())
    cost = f"{COSTS.get(name, USUAL_COST)} of a core a world of 300 s"
    found = decided(CLAIMS[name], list(JUDGES[name](evidence)), BESIDE.get(name, _nothing)(evidence), cost)
    return fair(found, quick=evidence.plan.quick, cost=cost)


COSTS = {
    "E1a": "13 s",
    "E1c": "13 s",
    "E2a": "2 s",
    "E2b": "14 s",
    "E2c": "13 s",
    "E3b": "20 s",
    "E4a": "6 s",
    "E4b": "18 s",
    "E5": "6 s",
    "E6": "17 s",
    "E7b": "2 min",
}
USUAL_COST = "up to 3 min"
"""Measured at the published size on a shared core: all of a claim's cells once."""


class GossipCurve:
    """Gossip in the default scenario over its probability, seed by seed."""

    def __init__(self, evidence: Evidence) -> None:
        plan = evidence.plan
        self.probabilities = list(plan.probabilities)
        every = [evidence.by_seed(plan.gossip(p)) for p in plan.probabilities]
        self.seeds = sorted(set.intersection(*map(set, every))) if every else []
        self._by_seed = {seed: [own[seed] for own in every] for seed in self.seeds}

    def values(self, quantity: Quantity, seed: int) -> list[float]:
        return [quantity(result) for result in self._by_seed[seed]]

    def mean(self, quantity: Quantity) -> list[float]:
        columns = zip(*(self.values(quantity, seed) for seed in self.seeds), strict=True)
        return [sum(own) / len(own) for own in columns]

    def overhead_at(self, wanted: float, seed: int) -> float | None:
        """The packets per delivery at which gossip delivers so much in this world."""
        p = crossing(self.probabilities, self.values(delivery, seed), wanted)
        return None if p is None else between(self.probabilities, self.values(overhead, seed), p)

    def delivery_at(self, packets: float, seed: int) -> float | None:
        p = crossing(self.probabilities, self.values(overhead, seed), packets)
        return None if p is None else between(self.probabilities, self.values(delivery, seed), p)

    def each(self, found: Callable[[int], float | None]) -> Interval | None:
        """Of what is found in each world; None where it is found in none."""
        return interval_if_any(value for seed in self.seeds if (value := found(seed)) is not None)

    def sigmoid(self) -> Sigmoid | None:
        return fitted(self.probabilities, self.mean(delivery)) if self.seeds else None

    def __str__(self) -> str:
        points = zip(self.probabilities, self.mean(delivery), self.mean(overhead), strict=True)
        return ", ".join(f"{d:.2f} at {o:.1f} (p {p:g})" for p, d, o in points)


def _e1a(evidence: Evidence) -> Parts:
    """A sigmoid is fitted in every world: low at the smallest probability, and steep in the middle."""
    curve = GossipCurve(evidence)
    fits = [fitted(curve.probabilities, curve.values(delivery, seed)) for seed in curve.seeds]
    low = interval_if_any(LOW - curve.values(delivery, seed)[0] for seed in curve.seeds)
    yield Part(f"below {LOW:g} at the smallest probability, by", low)
    steep = interval_if_any(fit.steepest / 10 - SHARP for fit in fits)
    yield Part(f"steepest rise for a tenth of probability, beyond {SHARP:g}", steep)


def _e1b(evidence: Evidence) -> Parts:
    """One world that falls short proves it: none can have more than everything."""
    most = [delivery(result) for result in evidence.by_seed(evidence.plan.gossip(1.0)).values()]
    short = Interval(1 - sum(most) / len(most), 0.0, len(most)) if most else None
    yield Part("short of everything at p 1, by", short)


def _e1c(evidence: Evidence) -> Parts:
    curve = GossipCurve(evidence)
    at = curve.each(lambda seed: curve.overhead_at(0.5, seed))
    yield Part(f"packets per delivery at 50 %, beyond 5 less {PACKETS:g}", _plus(at, PACKETS - 5))


def _e2a(evidence: Evidence) -> Parts:
    plain = evidence.plan.cell()
    yield from _near("delivery", evidence.mean(delivery, plain), 0.70, POINTS)
    yield from _near("packets per delivery", evidence.mean(overhead, plain), 2.5, PACKETS)


def _e2b(evidence: Evidence) -> Parts:
    """In each world at that world's own delivery, so that the error of both enters."""
    curve, own = GossipCurve(evidence), evidence.by_seed(evidence.plan.cell())
    yield from _near("gossip at 70 %", curve.each(lambda seed: curve.overhead_at(0.7, seed)), 5.5, PACKETS)
    yield Part("times as many as the other at equal delivery, beyond 2", curve.each(lambda s: _excess(curve, own, s)))


def _excess(curve: GossipCurve, own: Mapping[int, Result], seed: int) -> float | None:
    if seed not in own:
        return None
    equal = curve.overhead_at(delivery(own[seed]), seed)
    return None if equal is None else equal / overhead(own[seed]) - 2


def _e2c(evidence: Evidence) -> Parts:
    """Where gossip never costs as little, the claim is about a point that is not on the curve, and fails."""
    curve = GossipCurve(evidence)
    found = curve.each(lambda seed: curve.delivery_at(2.5, seed))
    if found is None and curve.seeds:
        cheapest = interval_if_any(2.5 - min(curve.values(overhead, seed)) for seed in curve.seeds)
        yield Part("cheapest gossip below 2.5 packets per delivery, by", cheapest)
    else:
        yield from _near("delivery at 2.5 packets per delivery", found, 0.3, POINTS)


def _e2d(evidence: Evidence) -> Parts:
    plan, curve = evidence.plan, GossipCurve(evidence)
    rise = evidence.difference(delivery, plan.cell(credits=2), plan.cell())
    yield Part("delivery with 2 credits minus none", rise, 0.01)
    for count in CREDITS:
        own = evidence.by_seed(plan.cell(credits=count))
        saved = curve.each(partial(_cheaper, curve, own))
        if saved is not None or not own or not curve.seeds:
            yield Part(f"Cr {count}: three quarters of gossip's packets less its own", saved)


def _cheaper(curve: GossipCurve, own: Mapping[int, Result], seed: int) -> float | None:
    """None where gossip never delivers as much."""
    equal = curve.overhead_at(delivery(own[seed]), seed) if seed in own else None
    return None if equal is None else MUCH * equal - overhead(own[seed])


MUCH = 0.75
"""Much cheaper: at most three quarters."""


def _e2e(evidence: Evidence) -> Parts:
    plan = evidence.plan
    means = {c: evidence.mean(delivery, plan.cell(credits=c)) for c in CREDITS}
    known = {c: mean for c, mean in means.items() if mean is not None}
    best = max(known, key=lambda c: known[c].mean, default=CREDITS[-1])
    lead = evidence.difference(delivery, plan.gossip(1.0), plan.cell(credits=best))
    yield Part(f"gossip at p 1 minus Cr {best}", lead, 0.01)
    yield Part(f"that, below {SLIGHTLY:g}", _plus(lead, SLIGHTLY, -1))


def _e3a(evidence: Evidence) -> Parts:
    plan, most = evidence.plan, max(SUBSCRIBER_CREDITS)
    few, many = (
        _gain(evidence, plan.cell(subscribers=n, credits=most), plan.cell(subscribers=n))
        for n in (plan.subscribers[0], plan.subscribers[-1])
    )
    more = interval_if_any(few[seed] - many[seed] for seed in few if seed in many)
    yield Part(
        f"gain of {most} credits with {plan.subscribers[0]} minus {plan.subscribers[-1]} subscribers", more, 0.01
    )


def _e3b(evidence: Evidence) -> Parts:
    """With the credits that deliver the most; the text does not say how many."""
    plan, costs = evidence.plan, []
    for count in plan.subscribers:
        settings = [plan.cell(subscribers=count, credits=c) for c in SUBSCRIBER_CREDITS]
        known = [setting for setting in settings if evidence.results(setting)]
        if not known:
            yield Part(f"{count} subscribers", None)
            continue
        best = max(known, key=lambda setting: _mean(evidence, delivery, setting))
        costs.append(best)
        yield Part(f"{count} subscribers, Cr {best.credits}: beyond 85 %", _plus(evidence.mean(delivery, best), -0.85))
    for fewer, more in pairwise(costs):
        fall = evidence.difference(overhead, fewer, more)
        yield Part(f"cost falls from {fewer.subscribers} to {more.subscribers} by", fall)


def _e3c(evidence: Evidence) -> Parts:
    plan = evidence.plan
    for p in (0.5, 1.0):
        for fewer, more in pairwise(plan.subscribers):
            fall = evidence.difference(overhead, plan.gossip(p, subscribers=fewer), plan.gossip(p, subscribers=more))
            yield Part(f"p {p:g}: cost falls from {fewer} to {more} by", fall)


def _e4a(evidence: Evidence) -> Parts:
    plan = evidence.plan
    slow = plan.cell(rate_per_s=plan.rates_per_s[0])
    for rate in plan.rates_per_s[1:]:
        change = evidence.difference(delivery, plan.cell(rate_per_s=rate), slow)
        yield from _near(f"change of delivery at {rate:g} msg/s", change, 0.0, FLAT)


def _e4b(evidence: Evidence) -> Parts:
    plan = evidence.plan
    slow, fast = plan.rates_per_s[0], plan.rates_per_s[-1]
    falls = {p: _gain(evidence, plan.gossip(p, rate_per_s=slow), plan.gossip(p, rate_per_s=fast)) for p in (0.3, 1.0)}
    yield Part(f"p 1 loses from {slow:g} to {fast:g} msg/s", interval_if_any(falls[1.0].values()), 0.01)
    more = interval_if_any(falls[1.0][seed] - falls[0.3][seed] for seed in falls[1.0] if seed in falls[0.3])
    yield Part("that minus what p 0.3 loses", more)


def _e4c(evidence: Evidence) -> Parts:
    plan = evidence.plan
    settings = [plan.cell(rate_per_s=rate) for rate in plan.rates_per_s]
    yield Part("cost at the lowest rate minus the highest", evidence.difference(overhead, settings[0], settings[-1]))
    for low, high in pairwise(settings):
        fall = evidence.difference(beacon_share, low, high)
        yield Part(f"beacons a delivery fall from {low.rate_per_s:g} to {high.rate_per_s:g} msg/s by", fall)


def _e5(evidence: Evidence) -> Parts:
    plan = evidence.plan
    short, long = PERIODS_S[0], PERIODS_S[-1]
    for speed, better, worse in ((plan.speeds_mps[0], long, short), (plan.speeds_mps[-1], short, long)):
        lead = evidence.difference(
            delivery, plan.at_speed(speed, period_s=better), plan.at_speed(speed, period_s=worse)
        )
        yield Part(f"at {speed:g} m/s delivery with {better:g} s minus {worse:g} s", lead, 0.01)


def _e6(evidence: Evidence) -> Parts:
    plan = evidence.plan
    small, large = plan.sizes[0], plan.sizes[-1]
    gossip = {"protocol": "gossip", "probability": 0.5}
    own = evidence.difference(delivery, plan.grown(large), plan.grown(small))
    other = evidence.difference(delivery, plan.grown(small, **gossip), plan.grown(large, **gossip))
    yield Part(f"proximity's delivery at {large} minus {small} nodes", own, 0.01)
    yield Part(f"gossip's at {small} minus {large} nodes", other, 0.01)
    yield Part(f"that, below {SLIGHTLY:g}", _plus(other, SLIGHTLY, -1))


def _e7a(evidence: Evidence) -> Parts:
    plan = evidence.plan
    few, many = (plan.denser(n, protocol="gossip", probability=0.3) for n in (plan.densities[0], plan.densities[-1]))
    rise = evidence.difference(delivery, many, few)
    yield Part(f"p 0.3: delivery with {plan.densities[-1]} minus {plan.densities[0]} nodes", rise, 0.01)


def _e7b(evidence: Evidence) -> Parts:
    plan = evidence.plan
    settings = [plan.denser(n, protocol="gossip", probability=1.0) for n in plan.densities]
    known = [setting for setting in settings[:-1] if evidence.results(setting)]
    best = max(known, key=lambda setting: _mean(evidence, delivery, setting), default=settings[0])
    fall = evidence.difference(delivery, best, settings[-1])
    yield Part(f"p 1: delivery with {best.nodes} minus {plan.densities[-1]} nodes", fall, 0.01)


def _e7c(evidence: Evidence) -> Parts:
    """From the published density on. Overhead is compared by its logarithm with all others, not by the extremes."""
    plan = evidence.plan
    dense = [n for n in plan.densities if n >= 100]
    first = plan.denser(dense[0])
    for n in dense[1:]:
        kept = evidence.difference(delivery, plan.denser(n), first)
        yield Part(f"{n} nodes: delivery not below that with {dense[0]} by {FLAT:g}", _plus(kept, FLAT))
        change = evidence.difference(_log_overhead, plan.denser(n), first)
        yield from _near(f"{n} nodes: change of cost in decades", change, 0.0, math.log10(ROUGHLY))
    for n in dense:
        gossip = plan.denser(n, protocol="gossip", probability=0.5)
        saved = evidence.difference(_log_overhead, gossip, plan.denser(n))
        yield Part(
            f"{n} nodes: gossip at p 0.5 costs more than {1 / MUCH:.2f} times, by decades",
            _plus(saved, math.log10(MUCH)),
        )


def _a1() -> tuple[bool, str]:
    curves = {s: expected_distances(torus_of(s, 0.9), 10) for s in (0.1, 0.5, 0.9)}
    rises = all(list(curve) == sorted(curve) for curve in curves.values())
    ordered = all(a <= b + 1e-9 for a, b in zip(curves[0.1], curves[0.9], strict=True))
    numbers = "; ".join(f"s {s:g}: {c[1]:.2f}, {c[5]:.2f}, {c[10]:.2f} after 1, 5, 10 ticks" for s, c in curves.items())
    return rises and ordered, f"{numbers}; solved just now, A 20, L 10, beta 0.9"


JUDGES: Mapping[str, Callable[[Evidence], Parts]] = {
    "E1a": _e1a, "E1b": _e1b, "E1c": _e1c, "E2a": _e2a, "E2b": _e2b, "E2c": _e2c, "E2d": _e2d, "E2e": _e2e,
    "E3a": _e3a, "E3b": _e3b, "E3c": _e3c, "E4a": _e4a, "E4b": _e4b, "E4c": _e4c, "E5": _e5, "E6": _e6,
    "E7a": _e7a, "E7b": _e7b, "E7c": _e7c,
}  # fmt: skip


def _nothing(evidence: Evidence) -> str:
    return ""


def _curve_told(evidence: Evidence) -> str:
    curve = GossipCurve(evidence)
    fit = curve.sigmoid()
    return f"{curve}; sigmoid {fit}" if fit is not None else ""


def _headline(evidence: Evidence) -> str:
    plain = evidence.plan.cell()
    share = evidence.mean(beacon_share, plain)
    return f"{evidence.mean(delivery, plain)} at {evidence.mean(overhead, plain)}, of which {share} beacons"


BESIDE: Mapping[str, Callable[[Evidence], str]] = {"E1a": _curve_told, "E2a": _headline}


def _near(name: str, mean: Interval | None, published: float, tolerance: float) -> Parts:
    """Not further from what was published than the tolerance, above or below."""
    room = Interval(tolerance - abs(mean.mean - published), mean.half, mean.runs) if mean is not None else None
    yield Part(f"{name} within {tolerance:.3g} of {published:g}, by", room)


def _plus(mean: Interval | None, by: float, sign: int = 1) -> Interval | None:
    return Interval(sign * mean.mean + by, mean.half, mean.runs) if mean is not None else None


def _gain(evidence: Evidence, one: Configuration, other: Configuration) -> dict[int, float]:
    """Delivery of one minus the other, by seed."""
    here, there = evidence.by_seed(one), evidence.by_seed(other)
    return {seed: delivery(here[seed]) - delivery(there[seed]) for seed in here if seed in there}


def _mean(evidence: Evidence, quantity: Quantity, setting: Configuration) -> float:
    mean = evidence.mean(quantity, setting)
    return mean.mean if mean is not None else -math.inf


def _log_overhead(result: Result) -> float:
    return math.log10(overhead(result)) if result.delivered else math.inf
