"""The published claims C1 to C15 (spec data-gathering 4.6), each judged within the tolerance that the spec states."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from statistics import median_low
from typing import Any

from godwit.lab.claims import Claim, Finding, fair, judged, undecided
from godwit.lab.gathering.crossings import LATE_S, PERIOD_S
from godwit.lab.gathering.evidence import Evidence, Quantity
from godwit.lab.gathering.plan import BITS, JUDGED_RACES
from godwit.lab.gathering.runs import Configuration, Result, reference
from godwit.lab.intervals import Interval, welch
from godwit.lab.parts import all_hold

FULL = "the full plan: about five minutes on two cores"
CLAIMS = {
    claim.name: claim
    for claim in (
        Claim("C1", "LBM mean hops grow like log N and stay below log2 N", "4.2", "no fall that 95 % intervals show"),
        Claim("C2", "LBM is not affected by b", "4.2", "means over the same maps differ by less than 1 %"),
        Claim("C3", "the longest LBM way may exceed log2 N", "4.2", "on some map of each size"),
        Claim("C4", "LBM overhead grows from 2.6 (N = 8) to 4.5 (N = 64)", "4.2", "15 %, radius 1"),
        Claim("C5", "IDM mean hops grow like log N, below log2 N, and fall with b", "4.3", "strictly from N = 16 on"),
        Claim("C6", "IDM overhead is 2.0 at N = 8 for every b", "4.3", "10 %"),
        Claim("C7", "IDM overhead at N = 64 is 3.4, 3.3 and 3.0 for b = 1, 2, 4", "4.3", "10 %, b = 4 the lowest"),
        Claim("C8", "the number of associations does not depend on N", "4.4", "within a quarter from N = 24 on"),
        Claim(
            "C9",
            "latencies form levels, one for each broker; at most one item takes a detour after each relocation",
            "4.4",
            "levels: to a millisecond, all but one item of each stay, for the client that is away least on each map;"
            " detours: on average over a run",
            was="levels were drawn and not judged",
        ),
        Claim("C10", "what was buffered comes at once, 10 s apart in age", "4.4", "0.5 s"),
        Claim("C11", "handover overhead grows like log N", "4.4", "between 3.7 and 6.1, 15 % beyond each end"),
        Claim("C12", "nothing is lost on relocation", "4.4", "none at all"),
        Claim("C13", "a buffer climbs during an absence and drops to 0 at relocation", "4.4", "the shape"),
        Claim("C14", "static clients are never reached by a detour", "4.2, 4.3", "none at all"),
        Claim("C15", "forward pointers never loop", "6.2-H", "0 bad of 60 races with all rules, some without epochs"),
    )
}


def hops(result: Result) -> float:
    return result.hops_mean


def overhead(result: Result) -> float:
    return result.overhead


def handover(result: Result) -> float:
    return result.handover


def associations(result: Result) -> float:
    return float(result.associations)


def _listed(means: Sequence[Interval]) -> str:
    return " / ".join(str(mean) for mean in means)


def _rises(evidence: Evidence, quantity: Quantity, setting: Callable[[int], Configuration]) -> bool | None:
    """Every size has its own maps: a fall that these maps cannot tell from none is none."""
    values = [[quantity(one) for one in evidence.results(setting(size))] for size in evidence.plan.sizes]
    steps = [welch(after, before) for before, after in pairwise(values)]
    return all(step.high >= 0 for step in steps) and welch(values[-1], values[0]).is_positive


def _sizes(evidence: Evidence) -> str:
    return "/".join(str(size) for size in evidence.plan.sizes)


def _below(evidence: Evidence, means: Sequence[Interval]) -> bool | None:
    limits = map(reference, evidence.plan.sizes)
    return all_hold([mean.within(-math.inf, limit) for mean, limit in zip(means, limits, strict=True)])


def _means(
    evidence: Evidence, quantity: Quantity, setting: Callable[[int], Configuration], *sizes: int
) -> list[Interval] | None:
    return evidence.means(quantity, [setting(size) for size in sizes or evidence.plan.sizes])


def c1(claim: Claim, evidence: Evidence) -> Finding:
    means = _means(evidence, hops, evidence.plan.s1)
    if means is None:
        return undecided(claim, "S1 was not run", FULL)
    holds = all_hold([_rises(evidence, hops, evidence.plan.s1), _below(evidence, means)])
    return judged(claim, holds, f"N = {_sizes(evidence)}: {_listed(means)}", FULL)


def c2(claim: Claim, evidence: Evidence) -> Finding:
    plan = evidence.plan
    apart = [
        evidence.difference(hops, plan.s1(size, bits), plan.s1(size, 4)) for size in plan.sizes for bits in BITS[:2]
    ]
    known = [one for one in apart if one is not None]
    means = _means(evidence, hops, plan.s1)
    if len(known) < len(apart) or means is None:
        return undecided(claim, "S1 was not run for every b", FULL)
    worst, least = max(known, key=lambda one: abs(one.mean)), 0.01 * min(mean.mean for mean in means)
    holds = all_hold([one.within(-least, least) for one in known])
    return judged(claim, holds, f"largest difference {abs(worst.mean):.4f} ± {worst.half:.2g} hops", FULL)


def c3(claim: Claim, evidence: Evidence) -> Finding:
    plan = evidence.plan
    longest = {size: max((r.hops_max for r in evidence.results(plan.s1(size))), default=0) for size in plan.sizes}
    if not all(longest.values()):
        return undecided(claim, "S1 was not run", FULL)
    numbers = ", ".join(f"{most} at N = {size} (log2 N {reference(size):.1f})" for size, most in longest.items())
    return judged(claim, all(most > reference(size) for size, most in longest.items()), numbers)


def _near(mean: Interval, published: float, tolerance: float) -> bool | None:
    return mean.within(published * (1 - tolerance), published * (1 + tolerance))


def c4(claim: Claim, evidence: Evidence) -> Finding:
    means = _means(evidence, overhead, evidence.plan.s1)
    if means is None:
        return undecided(claim, "S1 was not run", FULL)
    ends = _near(means[0], 2.6, 0.15), _near(means[-1], 4.5, 0.15)
    holds = all_hold([*ends, _rises(evidence, overhead, evidence.plan.s1)])
    return judged(claim, holds, f"N = {_sizes(evidence)}: {_listed(means)}", FULL)


def c5(claim: Claim, evidence: Evidence) -> Finding:
    plan = evidence.plan
    settings = {bits: partial(plan.s2, bits=bits) for bits in BITS}
    by_bits = {bits: _means(evidence, hops, setting) for bits, setting in settings.items()}
    curves = [means for means in by_bits.values() if means is not None]
    if len(curves) < len(BITS):
        return undecided(claim, "S2 was not run for every b", FULL)
    falls = [
        evidence.difference(hops, plan.s2(size, more), plan.s2(size, fewer))
        for size in plan.sizes
        if size >= 16
        for fewer, more in pairwise(BITS)
    ]
    ordered = all_hold([one.within(-math.inf, 0.0) for one in falls if one is not None])
    rising = [_rises(evidence, hops, setting) for setting in settings.values()]
    holds = all_hold([ordered, *rising, *(_below(evidence, means) for means in curves)])
    ends = ", ".join(f"b = {bits}: {means[-1]}" for bits, means in zip(BITS, curves, strict=True))
    return judged(claim, holds, f"N = {plan.sizes[-1]}: {ends}; strict order from 16 brokers on: {ordered}", FULL)


def _overheads(evidence: Evidence, size: int) -> list[Interval] | None:
    return evidence.means(overhead, [evidence.plan.s2(size, bits) for bits in BITS])


def c6(claim: Claim, evidence: Evidence) -> Finding:
    means = _overheads(evidence, 8)
    if means is None:
        return undecided(claim, "S2 was not run with 8 brokers", FULL)
    return judged(claim, all_hold([_near(mean, 2.0, 0.10) for mean in means]), f"b = 1/2/4: {_listed(means)}", FULL)


def c7(claim: Claim, evidence: Evidence) -> Finding:
    means = _overheads(evidence, 64)
    if means is None:
        return undecided(claim, "S2 was not run with 64 brokers", FULL)
    near = [_near(mean, published, 0.10) for mean, published in zip(means, (3.4, 3.3, 3.0), strict=True)]
    cells = [evidence.plan.s2(64, bits) for bits in BITS]
    fewer = [evidence.difference(overhead, cell, cells[-1]) for cell in cells[:-1]]
    holds = all_hold([*near, *(one.is_positive for one in fewer if one is not None)])
    more = f"more than these {means[0].runs} maps of 64 brokers, less than a second of a core each"
    return judged(claim, holds, f"b = 1/2/4: {_listed(means)}", more)


def c8(claim: Claim, evidence: Evidence) -> Finding:
    sizes = [size for size in evidence.plan.sizes if size >= 24]
    means = _means(evidence, associations, evidence.plan.m, *sizes)
    if means is None:
        return undecided(claim, "M was not run", FULL)
    middle = sum(mean.mean for mean in means) / len(means)
    holds = all_hold([_near(mean, middle, 0.25) for mean in means])
    return judged(claim, holds, f"N = {'/'.join(map(str, sizes))}: {_listed(means)}", FULL)


LEVEL_S = 0.001
"""Latencies that differ by less are one level: those of two brokers differ by tens of milliseconds."""


def c9(claim: Claim, evidence: Evidence) -> Finding:
    means = _means(evidence, lambda result: result.redirected / max(1, result.relocations), evidence.plan.m)
    every = evidence.every_series()
    if means is None or not every:
        return undecided(claim, "M was not run, or not with 24 brokers", FULL)
    off = [count for series in every for count in off_level(series["short"])]
    holds = all_hold([*(mean.within(-math.inf, 1.0) for mean in means), max(off) <= 1])
    numbers = f"{sum(off)} items off the level in {len(off)} stays on {len(every)} maps, at most {max(off)} in one"
    return judged(claim, holds, f"{numbers}; detours, N = {_sizes(evidence)}: {_listed(means)}", FULL)


def off_level(client: dict[str, Any]) -> list[int]:
    """By stay at a broker how many items came otherwise than most."""
    stays: dict[int, list[float]] = {}
    for time_s, latency_s in client["latencies"]:
        stays.setdefault(bisect_right(client["associations"], time_s), []).append(latency_s)
    return [sum(abs(one - median_low(own)) > LEVEL_S for one in own) for own in stays.values()]


def c10(claim: Claim, evidence: Evidence) -> Finding:
    series = evidence.series()
    if series is None:
        return undecided(claim, "M was not run with 24 brokers", FULL)
    steps = [
        before - after
        for (first, before), (second, after) in pairwise(series["long"]["latencies"])
        if before > LATE_S and after > LATE_S and abs(second - first - PERIOD_S) < 1e-6 and before > after
    ]
    if not steps:
        return undecided(claim, "no client was away long enough", FULL)
    holds = all(abs(step - PERIOD_S) < 0.5 for step in steps)
    return judged(claim, holds, f"{len(steps)} steps of {min(steps):.2f} to {max(steps):.2f} s")


def c11(claim: Claim, evidence: Evidence) -> Finding:
    means = _means(evidence, handover, evidence.plan.m)
    if means is None:
        return undecided(claim, "M was not run", FULL)
    inside = [mean.within(3.7 * 0.85, 6.1 * 1.15) for mean in means]
    holds = all_hold([*inside, _rises(evidence, handover, evidence.plan.m)])
    return judged(claim, holds, f"N = {_sizes(evidence)}: {_listed(means)}", FULL)


def c12(claim: Claim, evidence: Evidence) -> Finding:
    results = [result for size in evidence.plan.sizes for result in evidence.results(evidence.plan.m(size))]
    if not results:
        return undecided(claim, "M was not run", FULL)
    wanted, lost = sum(r.wanted for r in results), sum(r.lost for r in results)
    waiting = sum(result.buffered for result in results)
    numbers = f"{lost} of {wanted:,} lost in {len(results)} runs; {waiting} still buffered for clients out of range"
    return judged(claim, lost == 0, numbers)


def c13(claim: Claim, evidence: Evidence) -> Finding:
    series = evidence.series()
    if series is None:
        return undecided(claim, "M was not run with 24 brokers", FULL)
    buffered = [(time_s, waiting) for time_s, _, waiting in series["storage"]]
    peak_s, peak = max(buffered, key=lambda one: one[1])
    emptied = next((time_s for time_s, waiting in buffered if time_s > peak_s and waiting == 0), None)
    numbers = f"peak {peak} at {peak_s:.0f} s, empty at {emptied if emptied is None else round(emptied)} s"
    if peak < 3:
        return undecided(claim, f"nobody was away for long: {numbers}", FULL)
    return judged(claim, emptied is not None, numbers)


def c14(claim: Claim, evidence: Evidence) -> Finding:
    plan = evidence.plan
    settings = [setting for size in plan.sizes for setting in (plan.s1(size), plan.s2(size))]
    results = [result for setting in settings for result in evidence.results(setting)]
    if not results:
        return undecided(claim, "S1 and S2 were not run", FULL)
    redirected = sum(result.redirected for result in results)
    return judged(claim, not redirected, f"{redirected} redirected in {len(results)} runs")


def c15(claim: Claim, evidence: Evidence) -> Finding:
    counted = {variant: evidence.bad(evidence.plan.race(variant)) for variant in JUDGED_RACES}
    if not all(runs for _, runs in counted.values()):
        return undecided(claim, "the races were not run", FULL)
    (without, _), *repaired = counted.values()
    numbers = "; ".join(f"{variant}: {bad} of {runs} bad" for variant, (bad, runs) in counted.items())
    return judged(claim, without > 0 and not any(bad for bad, _ in repaired), numbers)


JUDGES: dict[str, Callable[[Claim, Evidence], Finding]] = {
    "C1": c1,
    "C2": c2,
    "C3": c3,
    "C4": c4,
    "C5": c5,
    "C6": c6,
    "C7": c7,
    "C8": c8,
    "C9": c9,
    "C10": c10,
    "C11": c11,
    "C12": c12,
    "C13": c13,
    "C14": c14,
    "C15": c15,
}


def findings(evidence: Evidence) -> list[Finding]:
    quick = evidence.plan.quick
    return [fair(judge(CLAIMS[name], evidence), quick=quick, cost=FULL) for name, judge in JUDGES.items()]


def logarithmic(sizes: Sequence[int]) -> list[float]:
    return [math.log2(size) for size in sizes]
