"""Each published claim judged by the runs of a plan.

Numbers are met within the spec's tolerance. Orderings hold where the difference, seed by seed in the same worlds,
exceeds two standard errors; closer than that nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from godwit.lab.adhoc.claims import CLAIMS, FLAT, LOW, PACKETS, POINTS, ROUGHLY, SHARP, SLIGHTLY
from godwit.lab.adhoc.evidence import Evidence, beacon_share, between, crossing, delivery, overhead
from godwit.lab.adhoc.model import expected_distances, torus_of
from godwit.lab.adhoc.plan import CREDITS, PERIODS_S, SUBSCRIBER_CREDITS
from godwit.lab.adhoc.runs import Configuration
from godwit.lab.claims import Finding, judged
from godwit.lab.intervals import Interval

Judgement = tuple[bool | None, str]
MISSING: Judgement = (None, "not enough runs")


def findings(evidence: Evidence) -> list[Finding]:
    """Every claim, in order."""
    return [judged(claim, *JUDGES[name](evidence)) for name, claim in CLAIMS.items()]


class Curve:
    """Gossip in the default scenario over its probability."""

    def __init__(self, evidence: Evidence) -> None:
        plan = evidence.plan
        settings = [plan.gossip(p) for p in plan.probabilities]
        deliveries, overheads = evidence.means(delivery, settings), evidence.means(overhead, settings)
        self.is_known = deliveries is not None and overheads is not None
        self.probabilities = list(plan.probabilities)
        self.deliveries = [mean.mean for mean in deliveries or []]
        self.overheads = [mean.mean for mean in overheads or []]

    def overhead_at(self, wanted: float) -> float | None:
        """The packets per delivery at which gossip delivers so much."""
        p = crossing(self.probabilities, self.deliveries, wanted) if self.is_known else None
        return None if p is None else between(self.probabilities, self.overheads, p)

    def delivery_at(self, packets: float) -> float | None:
        p = crossing(self.probabilities, self.overheads, packets) if self.is_known else None
        return None if p is None else between(self.probabilities, self.deliveries, p)

    def __str__(self) -> str:
        points = zip(self.probabilities, self.deliveries, self.overheads, strict=True)
        return ", ".join(f"{d:.2f} at {o:.1f} (p {p:g})" for p, d, o in points)


def _e1a(evidence: Evidence) -> Judgement:
    curve = Curve(evidence)
    if not curve.is_known:
        return MISSING
    p, d = curve.probabilities, curve.deliveries
    rises = [0.1 * (d[i + 1] - d[i]) / (p[i + 1] - p[i]) for i in range(len(p) - 1)]
    holds = d[0] < LOW and max(rises) >= SHARP and rises[-1] < max(rises) / 2
    return holds, f"{curve}; steepest {max(rises):.2f} for 0.1 of probability"


def _e1b(evidence: Evidence) -> Judgement:
    curve = Curve(evidence)
    most = evidence.mean(delivery, evidence.plan.gossip(1.0))
    if not curve.is_known or most is None:
        return MISSING
    return max(curve.deliveries) < 1, f"at most {max(curve.deliveries):.3f}; at p 1 {most}"


def _e1c(evidence: Evidence) -> Judgement:
    at = Curve(evidence).overhead_at(0.5)
    return MISSING if at is None else (at >= 5 - PACKETS, f"{at:.2f} packets per delivery at 50 %")


def _e2a(evidence: Evidence) -> Judgement:
    plain = evidence.plan.cell()
    delivered, packets = evidence.mean(delivery, plain), evidence.mean(overhead, plain)
    if delivered is None or packets is None:
        return MISSING
    holds = abs(delivered.mean - 0.70) <= POINTS and abs(packets.mean - 2.5) <= PACKETS
    share = evidence.mean(beacon_share, plain)
    return holds, f"{delivered} at {packets} packets per delivery, of which {share} beacons"


def _e2b(evidence: Evidence) -> Judgement:
    curve, plain = Curve(evidence), evidence.plan.cell()
    own, packets = evidence.mean(delivery, plain), evidence.mean(overhead, plain)
    at_70 = curve.overhead_at(0.7)
    if own is None or packets is None or at_70 is None:
        return MISSING
    equal = curve.overhead_at(own.mean)
    factor = equal / packets.mean if equal is not None else None
    holds = abs(at_70 - 5.5) <= PACKETS and factor is not None and factor > 2
    return holds, f"{at_70:.2f} at 70 %; at the same delivery {factor or 0:.2f} times as many"


def _e2c(evidence: Evidence) -> Judgement:
    curve = Curve(evidence)
    found = curve.delivery_at(2.5)
    if found is not None:
        return abs(found - 0.3) <= POINTS, f"{found:.2f} at 2.5 packets per delivery"
    if not curve.is_known:
        return MISSING
    return None, f"gossip never costs as little as 2.5: {curve}"


def _e2d(evidence: Evidence) -> Judgement:
    plan, curve = evidence.plan, Curve(evidence)
    settings = [plan.cell(credits=c) for c in CREDITS]
    deliveries, overheads = evidence.means(delivery, settings), evidence.means(overhead, settings)
    rise = evidence.difference(delivery, plan.cell(credits=2), plan.cell())
    if deliveries is None or overheads is None or rise is None or not curve.is_known:
        return MISSING
    dearer = [curve.overhead_at(d.mean) for d in deliveries]
    cheaper = all(other is None or o.mean < 0.75 * other for o, other in zip(overheads, dearer, strict=True))
    numbers = ", ".join(
        f"Cr {c}: {d.mean:.3f} at {o.mean:.2f} (gossip {f'{g:.2f}' if g else 'never'})"
        for c, d, o, g in zip(CREDITS, deliveries, overheads, dearer, strict=True)
    )
    return _both(rise.is_positive, cheaper), numbers


def _e2e(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    deliveries = evidence.means(delivery, [plan.cell(credits=c) for c in CREDITS])
    if deliveries is None:
        return MISSING
    best = max(zip(deliveries, CREDITS, strict=True), key=lambda one: one[0].mean)[1]
    lead = evidence.difference(delivery, plan.gossip(1.0), plan.cell(credits=best))
    if lead is None:
        return MISSING
    return _both(lead.is_positive, lead.mean <= SLIGHTLY), f"gossip at p 1 leads Cr {best} by {lead}"


def _e3a(evidence: Evidence) -> Judgement:
    plan, most = evidence.plan, max(SUBSCRIBER_CREDITS)
    gains = [
        evidence.difference(delivery, plan.cell(subscribers=n, credits=most), plan.cell(subscribers=n))
        for n in (plan.subscribers[0], plan.subscribers[-1])
    ]
    few, many = gains
    if few is None or many is None:
        return MISSING
    numbers = f"{most} credits bring {few} with {plan.subscribers[0]} subscribers, {many} with {plan.subscribers[-1]}"
    return _greater(few, many), numbers


def _e3b(evidence: Evidence) -> Judgement:
    plan, numbers, deliveries, costs = evidence.plan, [], [], []
    for count in plan.subscribers:
        settings = [plan.cell(subscribers=count, credits=c) for c in SUBSCRIBER_CREDITS]
        means = evidence.means(delivery, settings)
        if means is None:
            return MISSING
        best = max(range(len(means)), key=lambda i: means[i].mean)
        cost = evidence.mean(overhead, settings[best])
        assert cost is not None
        deliveries.append(means[best].mean)
        costs.append(cost.mean)
        numbers.append(f"{count}: {means[best]} at {cost.mean:.2f} (Cr {SUBSCRIBER_CREDITS[best]})")
    return min(deliveries) > 0.85 and _falls(costs), "; ".join(numbers)


def _e3c(evidence: Evidence) -> Judgement:
    plan, numbers, holds = evidence.plan, [], True
    for p in (0.5, 1.0):
        means = evidence.means(overhead, [plan.gossip(p, subscribers=n) for n in plan.subscribers])
        if means is None:
            return MISSING
        holds = holds and _falls([mean.mean for mean in means])
        numbers.append(f"p {p:g}: " + ", ".join(f"{m.mean:.1f}" for m in means))
    return holds, f"packets per delivery with {_listed(plan.subscribers)} subscribers: {'; '.join(numbers)}"


def _e4a(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    means = evidence.means(delivery, [plan.cell(rate_per_s=rate) for rate in plan.rates_per_s])
    if means is None:
        return MISSING
    heights = [mean.mean for mean in means]
    return max(heights) - min(heights) <= FLAT, _series(plan.rates_per_s, means, "msg/s")


def _e4b(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    slow, fast = plan.rates_per_s[0], plan.rates_per_s[-1]
    low, high = (
        evidence.difference(delivery, plan.gossip(p, rate_per_s=fast), plan.gossip(p, rate_per_s=slow))
        for p in (0.3, 1.0)
    )
    if low is None or high is None:
        return MISSING
    falls = None if high.is_positive is None else not high.is_positive
    return _both(falls, _greater(low, high)), f"from {slow:g} to {fast:g} msg/s: p 0.3 {low}, p 1 {high}"


def _e4c(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    settings = [plan.cell(rate_per_s=rate) for rate in plan.rates_per_s]
    overheads, shares = evidence.means(overhead, settings), evidence.means(beacon_share, settings)
    if overheads is None or shares is None:
        return MISSING
    points = zip(plan.rates_per_s, overheads, shares, strict=True)
    numbers = ", ".join(f"{o.mean:.2f} ({s.mean:.2f} beacons) at {r:g} msg/s" for r, o, s in points)
    return overheads[0].mean > overheads[-1].mean and _falls([s.mean for s in shares]), numbers


def _e5(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    short, long = PERIODS_S[0], PERIODS_S[-1]
    leads = {}
    for speed in (plan.speeds_mps[0], plan.speeds_mps[-1]):
        lead = evidence.difference(delivery, plan.at_speed(speed, period_s=short), plan.at_speed(speed, period_s=long))
        if lead is None:
            return MISSING
        leads[speed] = lead
    slow, fast = leads.values()
    bad_at_low = None if slow.is_positive is None else not slow.is_positive
    numbers = ", ".join(f"{lead} at {speed:g} m/s" for speed, lead in leads.items())
    return _both(bad_at_low, fast.is_positive), f"delivery with {short:g} s minus {long:g} s: {numbers}"


def _e6(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    small, large = plan.sizes[0], plan.sizes[-1]
    gossip = {"protocol": "gossip", "probability": 0.5}
    own = evidence.difference(delivery, plan.grown(large), plan.grown(small))
    other = evidence.difference(delivery, plan.grown(large, **gossip), plan.grown(small, **gossip))
    if own is None or other is None:
        return MISSING
    gossip_falls = None if other.is_positive is None else not other.is_positive
    scale = min(own.mean, other.mean) >= -SLIGHTLY
    numbers = f"from {small} to {large} nodes: gossip {other}, proximity {own}"
    return (_both(scale, gossip_falls, own.is_positive) if scale else False), numbers


def _e7a(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    gossip = {"protocol": "gossip", "probability": 0.3}
    return _change(evidence, [plan.denser(n, **gossip) for n in plan.densities], "p 0.3")


def _e7b(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    settings = [plan.denser(n, protocol="gossip", probability=1.0) for n in plan.densities]
    means = evidence.means(delivery, settings)
    if means is None:
        return MISSING
    best = max(range(len(means)), key=lambda i: means[i].mean)
    fall = evidence.difference(delivery, settings[best], settings[-1])
    assert fall is not None
    return best < len(means) - 1 and fall.is_positive is True, "p 1: " + _series(plan.densities, means, "nodes")


def _e7c(evidence: Evidence) -> Judgement:
    plan = evidence.plan
    dense = [n for n in plan.densities if n >= 100]
    settings = [plan.denser(n) for n in dense]
    deliveries, overheads = evidence.means(delivery, settings), evidence.means(overhead, settings)
    gossip = evidence.means(overhead, [plan.denser(n, protocol="gossip", probability=0.5) for n in dense])
    if deliveries is None or overheads is None or gossip is None:
        return MISSING
    kept = deliveries[-1].mean >= deliveries[0].mean - FLAT
    costs = [mean.mean for mean in overheads]
    cheap = all(own.mean < 0.75 * other.mean for own, other in zip(overheads, gossip, strict=True))
    fixed = evidence.means(overhead, [plan.cell(nodes=n) for n in dense])
    numbers = _series(dense, deliveries, "nodes") + "; packets per delivery " + _series(dense, overheads, "nodes")
    numbers += "; gossip at p 0.5 " + _series(dense, gossip, "nodes")
    if fixed is not None:
        numbers += "; with 10 subscribers and 2 publishers throughout " + _series(dense, fixed, "nodes")
    return kept and max(costs) <= ROUGHLY * min(costs) and cheap, numbers


def _a1(evidence: Evidence) -> Judgement:
    curves = {s: expected_distances(torus_of(s, 0.9), 10) for s in (0.1, 0.5, 0.9)}
    rises = all(list(curve) == sorted(curve) for curve in curves.values())
    ordered = all(a <= b + 1e-9 for a, b in zip(curves[0.1], curves[0.9], strict=True))
    numbers = "; ".join(f"s {s:g}: {c[1]:.2f}, {c[5]:.2f}, {c[10]:.2f} after 1, 5, 10 ticks" for s, c in curves.items())
    return rises and ordered, f"{numbers}; solved just now, A 20, L 10, beta 0.9"


def _change(evidence: Evidence, settings: Sequence[Configuration], name: str) -> Judgement:
    means = evidence.means(delivery, settings)
    change = evidence.difference(delivery, settings[-1], settings[0])
    if means is None or change is None:
        return MISSING
    return change.is_positive, f"{name}: {_series([s.nodes for s in settings], means, 'nodes')}; change {change}"


JUDGES: Mapping[str, Callable[[Evidence], Judgement]] = {
    "E1a": _e1a,
    "E1b": _e1b,
    "E1c": _e1c,
    "E2a": _e2a,
    "E2b": _e2b,
    "E2c": _e2c,
    "E2d": _e2d,
    "E2e": _e2e,
    "E3a": _e3a,
    "E3b": _e3b,
    "E3c": _e3c,
    "E4a": _e4a,
    "E4b": _e4b,
    "E4c": _e4c,
    "E5": _e5,
    "E6": _e6,
    "E7a": _e7a,
    "E7b": _e7b,
    "E7c": _e7c,
    "A1": _a1,
}


def _both(*parts: bool | None) -> bool | None:
    """False if one is, else unknown if one is."""
    if False in parts:
        return False
    return None if None in parts else True


def _greater(one: Interval, other: Interval) -> bool | None:
    if abs(one.mean - other.mean) <= one.half + other.half:
        return None
    return one.mean > other.mean


def _falls(values: Sequence[float]) -> bool:
    return all(a >= b for a, b in pairwise(values))


def _series(xs: Sequence[float], means: Sequence[Interval], unit: str) -> str:
    return ", ".join(f"{mean.mean:.3g} at {x:g}" for x, mean in zip(xs, means, strict=True)) + f" {unit}"


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
