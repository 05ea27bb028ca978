"""Each published claim judged by the runs of a grid: pure functions from results to findings.

A claim is taken apart into quantities that must be above zero (`lab.parts`), seed by seed in the same worlds. What was
published for the pro-active scheme is held against `proactive`, which has its memory only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from godwit.lab.claims import Finding, along, arithmetic, fair
from godwit.lab.handoff.claims import CLAIMS, HALF, NOTHING
from godwit.lab.handoff.evidence import (
    Evidence,
    Quantity,
    duplication,
    handoff,
    loss,
    q60,
    throughput,
    transfer_share,
)
from godwit.lab.handoff.extras import SHARED
from godwit.lab.handoff.grid import STORED, TEXT_READING, WALK
from godwit.lab.handoff.runs import Result
from godwit.lab.intervals import Interval, interval_if_any, of_worlds
from godwit.lab.models import costs, curve, published
from godwit.lab.models.populations import Stays, neighbor_places, random_shares
from godwit.lab.models.prediction import difference, overall, predict
from godwit.lab.models.topology import six_brokers
from godwit.lab.parts import Part, decided

Parts = Iterable[Part]
PATTERNS = ("RND", "NBR")
COST = "--size published, five seeds of 300 s: 21 min of a core for all that the short size leaves open, 2 h in all"
COSTS = {"Q9": "half a min of a core a world: reactive and pro-active, with the fewest and the most subscribers"}


def findings(evidence: Evidence) -> list[Finding]:
    """Every claim, in order."""
    return [judge(name, evidence) for name in CLAIMS]


def judge(name: str, evidence: Evidence) -> Finding:
    if name in DIGITS:
        return arithmetic(CLAIMS[name], *DIGITS[name]())
    cost = COSTS.get(name, COST)
    found = decided(CLAIMS[name], list(JUDGES[name](evidence)), BESIDE.get(name, _nothing)(evidence), cost)
    return fair(found, quick=evidence.quick, cost=cost)


def over_readings(known: Mapping[str, Evidence]) -> list[Finding]:
    """Each claim over the readings of the testbed in which it could be decided."""
    return [_over(name, known) for name in CLAIMS]


def _over(name: str, known: Mapping[str, Evidence]) -> Finding:
    """On durable's store where that alone turns the verdict, else over all readings.

    Where the text's own reading is open, with whatever store, so is the claim: the others contradict the text.
    """
    found = {reading: judge(name, evidence) for reading, evidence in known.items()}
    first = next(iter(found.values()))
    points = [point for reading, one in found.items() if (point := one.at(reading)).holds is not None]
    if name in DIGITS or not any(_is_text(point.at) for point in points):
        return first
    numbers = f"{points[0].at}: {points[0].numbers}"
    stored = [
        msgspec.structs.replace(point, at=f"{times:g} times its size")
        for times, point in sorted((STORED.get(point.at, USUAL_STORE), point) for point in points if _is_text(point.at))
    ]
    if len({point.holds for point in stored}) > 1:
        return along(CLAIMS[name], "what a stored event occupies in durable's queue", stored, numbers)
    return along(CLAIMS[name], "the channel and the size of a message", points, numbers, ordered=False)


def _is_text(reading: str) -> bool:
    return reading == TEXT_READING or reading in STORED


USUAL_STORE = float(str(SHARED["stored"]))


Cell = tuple[str, int, Mapping[str, Any]]
"""Scheme, subscribers, and what differs from the defaults."""


def _apart(evidence: Evidence, quantity: Quantity, more: Cell, less: Cell, factor: float = 1.0) -> Interval | None:
    """The quantity of one cell minus `factor` times that of another, seed by seed."""
    here = evidence.by_seed(more[0], more[1], **more[2])
    there = evidence.by_seed(less[0], less[1], **less[2])
    return interval_if_any(quantity(here[seed]) - factor * quantity(there[seed]) for seed in here if seed in there)


SCHEMES = ("durable", "reactive", "proactive")
TENTH = 0.1
"""An effect below a tenth of the published one is not what the text speaks of."""


def _tenth(table: Mapping[int, Sequence[float]], size: int, one: int, other: int) -> float:
    """Of what was published between two columns; 0 where it was not, or the other way round."""
    row = table.get(size)
    return max(0.0, TENTH * (row[one] - row[other])) if row else 0.0


def _largest(evidence: Evidence) -> int:
    return max(evidence.sizes_of("proactive"), default=0)


def _q1(evidence: Evidence) -> Parts:
    """In the six cells that were published: three sizes, two patterns."""
    for size in evidence.sizes_of("proactive"):
        for pattern in PATTERNS if size in published.LOSS else ():
            at = {"pattern": pattern}
            spared = _apart(evidence, loss, ("durable", size, at), ("proactive", size, at), 1 / HALF)
            yield Part(f"K={size} {pattern}: durable's loss minus twice pro-active's, %", spared, NOTHING)


def _q2(evidence: Evidence) -> Parts:
    rows = [row for row in evidence.rows if row.configuration.scheme == "proactive"]
    fast = [row for row in rows if row.configuration.bandwidth_mbps > 1]
    room = of_worlds((row.configuration.seed, NOTHING - duplication(row.result)) for row in fast)
    yield Part(f"below {NOTHING:g} % in the mean, by", room)


def _q3(evidence: Evidence) -> Parts:
    for size in evidence.sizes_of("proactive"):
        lead = _apart(evidence, handoff, ("reactive", size, {}), ("proactive", size, {}))
        yield Part(f"K={size}: reactive minus pro-active, s", lead, _tenth(published.HANDOFF_S, size, 1, 2))


def _q4(evidence: Evidence) -> Parts:
    for size in evidence.sizes_of("durable"):
        if size >= 50:
            for other in ("reactive", "proactive"):
                lead = _apart(evidence, handoff, (other, size, {}), ("durable", size, {}))
                least = _tenth(published.HANDOFF_S, size, SCHEMES.index(other), 0)
                yield Part(f"K={size}: {other} minus durable, s", lead, least)


def _q5(evidence: Evidence) -> Parts:
    size = _largest(evidence)
    for slow, fast, said_s in (("reactive", "proactive", 1.2 - 0.35), ("proactive", "durable", 0.35 - 0.05)):
        lead = _apart(evidence, q60, (slow, size, {}), (fast, size, {}))
        yield Part(f"60 % quantile, {slow} minus {fast}, s", lead, TENTH * said_s)


def _q6(evidence: Evidence) -> Parts:
    share = evidence.interval(transfer_share, "reactive", _largest(evidence))
    yield Part(f"above {37 * HALF:g} %, by", _plus(share, -37 * HALF))
    yield Part(f"below {42 * (1 + HALF):g} %, by", _plus(share, 42 * (1 + HALF), -1))


def _q7(evidence: Evidence) -> Parts:
    size = _largest(evidence)
    for more, less in (("proactive", "reactive"), ("reactive", "durable")):
        lead = _apart(evidence, throughput, (more, size, {}), (less, size, {}))
        least = _tenth(published.THROUGHPUT, size, 2 * SCHEMES.index(more), 2 * SCHEMES.index(less))
        yield Part(f"{more} minus {less}, msg/s", lead, least)


def _q8(evidence: Evidence) -> Parts:
    gains = {scheme: _gain(evidence, scheme) for scheme in ("proactive", "durable", "reactive")}
    yield Part("pro-active's gain beyond 10.5 %", _plus(gains["proactive"], -0.105))
    for scheme in ("durable", "reactive"):
        yield Part(f"2 % minus {scheme}'s gain", _plus(gains[scheme], 0.02, -1))


def _gain(evidence: Evidence, scheme: str) -> Interval | None:
    """Of throughput by moving to neighbors only, as a share."""
    size = _largest(evidence)
    rnd, nbr = evidence.by_seed(scheme, size), evidence.by_seed(scheme, size, pattern="NBR")
    return interval_if_any(throughput(nbr[s]) / throughput(rnd[s]) - 1 for s in rnd if s in nbr)


def _q9(evidence: Evidence) -> Parts:
    sizes = evidence.sizes_of("proactive")
    few, many = min(sizes, default=0), max(sizes, default=0)
    apart = few != many
    less = _apart(evidence, loss, ("proactive", few, {}), ("proactive", many, {})) if apart else None
    more = _apart(evidence, loss, ("reactive", many, {}), ("reactive", few, {})) if apart else None
    yield Part(f"pro-active's loss with {few} minus {many}, %", less, TENTH * (2.25 - 0.58))
    yield Part(f"reactive's with {many} minus {few}, %", more, TENTH * (9.62 - 3.65))


def _q10(evidence: Evidence) -> Parts:
    for scheme in ("durable", "proactive"):
        usual: Cell = (scheme, evidence.base, {})
        longer: Cell = (scheme, evidence.base, {"disconnect_s": 24.0})
        yield Part(f"{scheme}'s loss beyond 1.5 times, %", _apart(evidence, loss, longer, usual, 3 * HALF))
        below = _apart(evidence, loss, longer, usual, 3 * (1 + HALF))
        yield Part(f"{scheme}'s loss below 4.5 times, %", _plus(below, 0.0, -1))


def _q11(evidence: Evidence) -> Parts:
    often: Cell = ("reactive", evidence.base, {})
    seldom: Cell = ("reactive", evidence.base, {"connect_s": 150.0})
    here = evidence.by_seed("reactive", evidence.base, connect_s=150.0)
    there = evidence.by_seed("reactive", evidence.base)
    change = interval_if_any(throughput(here[s]) / throughput(there[s]) - 1 for s in here if s in there)
    yield Part("throughput not below by 5 %", _plus(change, 0.05))
    yield Part("nor above", _plus(change, 0.05, -1))
    yield Part("loss with fewer handoffs minus more, %", _apart(evidence, loss, seldom, often), NOTHING)


def _q12(evidence: Evidence) -> Parts:
    queues = sorted({row.configuration.queue_mb for row in evidence.rows}) or [1.0]
    ends = {"queue_mb": queues[-1]}, {"queue_mb": queues[0]}
    for scheme in ("durable", "reactive"):
        rise = _apart(evidence, duplication, (scheme, evidence.base, ends[0]), (scheme, evidence.base, ends[1]))
        name = f"{scheme}'s duplicates at {queues[-1]:g} minus {queues[0]:g} MB, %"
        yield Part(name, rise if len(queues) > 1 else None, NOTHING)
    most = evidence.interval(duplication, "proactive", evidence.base, **ends[0])
    yield Part(f"pro-active's below {NOTHING:g} %, by", _plus(most, NOTHING, -1))


def _q13(evidence: Evidence) -> Parts:
    for scheme in ("durable", "reactive", "proactive"):
        slow = (scheme, evidence.base, {"bandwidth_mbps": 1.0})
        more = _apart(evidence, loss, (scheme, evidence.base, {}), slow)
        yield Part(f"{scheme}'s loss at 11 minus 1 Mb/s, %", more, NOTHING)


def _q14(evidence: Evidence) -> Parts:
    rnd, nbr = (evidence.by_seed("proactive", _largest(evidence), pattern=pattern) for pattern in PATTERNS)
    for name in BROKERS:
        less = interval_if_any(1e3 * (_of(rnd[s], name) - _of(nbr[s], name)) for s in rnd if s in nbr)
        yield Part(f"{name}: RND minus NBR, ms", less, LEAST_MS)
    others = interval_if_any(
        1e3 * (min(_of(run, name) for name in BROKERS if name != "B5") - _of(run, "B5")) for run in nbr.values()
    )
    yield Part("the fastest other minus B5, ms", others, LEAST_MS)


BROKERS = tuple(f"B{i}" for i in range(1, 7))
LEAST_MS = 0.05
"""Of some 20 ms of processing; less is no difference that a measurement of 2004 could have shown."""
LEAST_PER_S = 1.0
"""Of some hundred messages a second at a broker."""


def _of(result: Result, broker: str) -> float:
    return result.broker_processing_s[broker]


def _q15(evidence: Evidence) -> Parts:
    runs = evidence.by_seed("proactive", _largest(evidence), pattern="NBR").values()
    lead = interval_if_any(
        min(run.broker_throughput_per_s[name] for name in ("B3", "B6"))
        - max(run.broker_throughput_per_s[name] for name in BROKERS if name not in ("B3", "B6"))
        for run in runs
    )
    yield Part("the lesser of B3 and B6 minus the best other, msg/s", lead, LEAST_PER_S)


def _q16(evidence: Evidence) -> Parts:
    """By long walks: in a run of the evaluation most are still near where they began, and nobody's average is right."""
    shares = {
        "RND": dict.fromkeys(BROKERS, random_shares(6, Stays()).broker),
        "NBR": dict(neighbor_places(six_brokers(), Stays()).connected),
    }
    for pattern in PATTERNS:
        walks = evidence.results("durable", evidence.base, pattern=pattern, sleep_s=WALK["sleep_s"])
        expected = {name: evidence.base * share for name, share in shares[pattern].items()}
        room = hotelling_room(expected, [walk.population for walk in walks])
        yield Part(f"{pattern}: Hotelling's T² below its 95 % limit, by", room)


def hotelling_room(expected: Mapping[str, float], found: Sequence[Mapping[str, float]]) -> Interval | None:
    """The limit of T² less the squared distance of the mean from what is expected, by the covariance of the runs.

    A walker comes back soon to where it was, so that no formula of ours gives the variance of a run's average; the runs
    themselves do. None where there are too few to estimate it.
    """
    from scipy.stats import f

    runs, brokers = len(found), len(expected)
    if runs <= brokers:
        return None
    values = np.array([[one[name] for name in expected] for one in found])
    off = values.mean(axis=0) - np.array(list(expected.values()))
    squared = runs * float(off @ np.linalg.solve(np.cov(values, rowvar=False), off))
    limit = brokers * (runs - 1) / (runs - brokers) * float(f.ppf(0.95, brokers, runs - brokers))
    return Interval(limit - squared, 0.0, runs)


def _q22(evidence: Evidence) -> Parts:
    runs = evidence.by_seed("proactive", _largest(evidence)).values()
    first = interval_if_any(r.false_negatives_first - 0.5 for r in runs)
    yield Part("missed of the first ten moves, beyond a half", first)
    last = interval_if_any(0.05 - r.false_negatives_last for r in runs)
    yield Part("missed of the last quarter, below a twentieth, by", last)


JUDGES: Mapping[str, Callable[[Evidence], Parts]] = {
    "Q1": _q1, "Q2": _q2, "Q3": _q3, "Q4": _q4, "Q5": _q5, "Q6": _q6, "Q7": _q7, "Q8": _q8, "Q9": _q9, "Q10": _q10,
    "Q11": _q11, "Q12": _q12, "Q13": _q13, "Q14": _q14, "Q15": _q15, "Q16": _q16, "Q22": _q22,
}  # fmt: skip


def _q17_digits() -> tuple[bool, str]:
    value = curve.PUBLISHED(29.5358)
    return f"{value:.3f}" == "218.983", f"{value:.3f}; the data behind R² are not available"


def _q18_digits() -> tuple[bool, str]:
    places = neighbor_places(six_brokers(), Stays())
    models = {"RND": published.MODEL_RND[200], "NBR": overall(predict(places, 200, curve.PUBLISHED))}
    measured = {"RND": published.MEASURED_RND[200], "NBR": published.MEASURED_NBR[200]}
    gaps = {pattern: difference(models[pattern], measured[pattern]) for pattern in models}
    digits = [f"{gap:+.1%}" for gap in gaps.values()] == ["+12.0%", "-11.6%"]
    return digits, ", ".join(f"{pattern} {gap:+.1%}" for pattern, gap in gaps.items())


def _q19_digits() -> tuple[bool, str]:
    values = [costs.r1(costs.CASES[case], 600, 30) for case in (1, 5)]
    return [f"{value:.4f}" for value in values] == ["0.8078", "0.1911"], ", ".join(f"{value:.4f}" for value in values)


def _q20_best() -> tuple[bool, str]:
    """In the best case everybody moves between neighbors, whose handoff takes 0.32 s."""
    values = [costs.r2(costs.CASES[case], 60, 30, 0.0, costs.MATCHING_BEST_S) for case in (1, 5)]
    return [f"{value:.2f}" for value in values] == ["21.10", "6.02"], ", ".join(f"{value:.2f}" for value in values)


def _q20_worst() -> tuple[bool, str]:
    values, fitted = (
        [costs.r2(costs.CASES[case], 60, 30, 1.0, stranger_s) for case in (1, 5)]
        for stranger_s in (costs.REACTIVE_S, costs.MATCHING_WORST_S)
    )
    told = ", ".join(f"{value:.2f}" for value in values)
    matched = ", ".join(f"{value:.2f}" for value in fitted)
    holds = [f"{value:.2f}" for value in values] == ["13.95", "5.51"]
    return holds, f"{told} with the tabulated 3.29 s; {matched} only with 7.5 s: an error of the source"


def _q21_digits() -> tuple[bool, str]:
    agree = sum(
        abs(costs.caching_over_shipping(n1, away) - printed) <= 0.5e-4 + 1e-12
        for n1, row in published.CACHING_OVER_SHIPPING.items()
        for away, printed in zip(published.AWAY_S, row, strict=True)
    )
    return agree == 20, f"{agree} of 20"


DIGITS: Mapping[str, Callable[[], tuple[bool, str]]] = {
    "Q17": _q17_digits,
    "Q18": _q18_digits,
    "Q19": _q19_digits,
    "Q20a": _q20_best,
    "Q20b": _q20_worst,
    "Q21": _q21_digits,
}


def _nothing(evidence: Evidence) -> str:
    return ""


def _told(quantity: Quantity, unit: str) -> Callable[[Evidence], str]:
    def told(evidence: Evidence) -> str:
        size = _largest(evidence)
        found = {s: evidence.mean(quantity, s, size) for s in ("durable", "reactive", "proactive")}
        return f"K={size}: " + ", ".join(f"{s} {value:.3g}{unit}" for s, value in found.items() if value is not None)

    return told


BESIDE: Mapping[str, Callable[[Evidence], str]] = {
    "Q1": _told(loss, " %"),
    "Q3": _told(handoff, " s"),
    "Q5": _told(q60, " s"),
    "Q7": _told(throughput, " msg/s"),
}


def _plus(mean: Interval | None, by: float, sign: int = 1) -> Interval | None:
    return Interval(sign * mean.mean + by, mean.half, mean.runs) if mean is not None else None


def own_curve(evidence: Evidence) -> curve.Curve | None:
    """3.6: fitted to the random pattern's brokers, at all sizes."""
    points = [
        (result.population[name], result.broker_throughput_per_s[name])
        for size in evidence.sizes_of("proactive")
        for result in evidence.results("proactive", size)
        for name in result.population
    ]
    if len({x for x, _ in points}) < 5:
        return None
    return curve.fit([x for x, _ in points], [y for _, y in points])


def refined_curve(evidence: Evidence) -> curve.Curve | None:
    """F44: fitted to both patterns, with the stand-ins that were awake as a second cause."""
    points = [
        (result.population[name], result.broker_throughput_per_s[name], result.dummies[name])
        for size in evidence.sizes_of("proactive")
        for pattern in ("RND", "NBR")
        for result in evidence.results("proactive", size, pattern=pattern)
        for name in result.population
    ]
    if len({x for x, _, _ in points}) < 6 or not any(dummies for _, _, dummies in points):
        return None
    x, y, dummies = zip(*points, strict=True)
    return curve.fit(x, y, dummies)
