"""Each published claim judged by the runs of a grid: pure functions from rows to findings.

A claim is taken apart into quantities that must be above zero (`lab.parts`), each with its interval over seeds. Beside
the verdicts stands what the same runs say of all that somebody wanted: by the published denominator an event for a
subscriber that no broker knew is nobody's loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from godwit.lab.claims import Claim, Finding, fair, judged
from godwit.lab.intervals import Interval, of_worlds
from godwit.lab.mft import golden
from godwit.lab.mft.cells import Cells, Quantity
from godwit.lab.mft.claims import BARELY, CLAIMS, EXPLODES, HARDLY, MOST, POINT, SAME_ORDER, STRONG_LOSS
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Result
from godwit.lab.parts import Part, decided

BOTH = ("mft", "aodv")


class Evidence:
    """What a verdict may rest on: the grid, its reference speed, and C2 spread over the area of C32."""

    def __init__(
        self, rows: Sequence[Row], sparse: Sequence[Row], reference_mps: float, *, quick: bool = False, cost: str = ""
    ) -> None:
        self.cells = Cells(rows)
        self.sparse = sparse
        self.speed_mps = reference_mps
        self.quick = quick
        self.cost = cost or "the published size, about an hour of a core"

    def at(self, quantity: Quantity, protocol: str, size: int) -> Interval | None:
        return self.cells.mean(quantity, protocol, size, self.speed_mps)

    def by_size(self, quantity: Quantity, protocol: str) -> dict[int, Interval]:
        """At the reference speed, where there are runs."""
        found = {size: self.at(quantity, protocol, size) for size in self.cells.sizes}
        return {size: mean for size, mean in found.items() if mean is not None}


def findings(evidence: Evidence) -> list[Finding]:
    """Every claim, in order."""
    return [fair(_found(claim, evidence), quick=evidence.quick, cost=evidence.cost) for claim in CLAIMS.values()]


def _found(claim: Claim, evidence: Evidence) -> Finding:
    if claim.name in TRACES:
        counted, published = TRACES[claim.name]
        found = counted()
        return judged(claim, found == published, f"{found[0]} in the first approach, {found[1]} in MFT; executed now")
    return decided(claim, parts_of(claim.name, evidence), BESIDE.get(claim.name, _nothing)(evidence), evidence.cost)


def parts_of(name: str, evidence: Evidence) -> list[Part]:
    """What must be above zero for a claim to hold."""
    return list(JUDGES[name](evidence))


TRACES: Mapping[str, tuple[Callable[[], tuple[int, int]], tuple[int, int]]] = {
    "E1": (
        lambda: (golden.simple_migration(golden.first_approach()), golden.simple_migration(golden.mft())),
        (13, 2),
    ),
    "E2": (
        lambda: (golden.double_migration(golden.first_approach()), golden.double_migration(golden.mft())),
        (12, 13),
    ),
}


def rate(result: Result) -> float:
    return result.rate


def honest_rate(result: Result) -> float:
    return result.honest_rate


def delivered(result: Result) -> float:
    return result.delivered


def delivered_share(result: Result) -> float:
    return result.delivered / result.wanted if result.wanted else 0.0


def delay_s(result: Result) -> float:
    return result.delay_mean_s


def hops(result: Result) -> float:
    return result.hops_mean


def messages(result: Result) -> float:
    return result.messages_per_node


def messages_without_beacons(result: Result) -> float:
    return result.messages_per_node_without_beacons


def replayed_share(result: Result) -> float:
    return result.replayed / result.wanted if result.wanted else 0.0


def logarithm(quantity: Quantity) -> Quantity:
    """Of base ten; of nothing, as of a ten-thousandth."""
    return lambda result: math.log10(max(quantity(result), 1e-4))


def shifted(mean: Interval | None, by: float = 0.0, sign: int = 1) -> Interval | None:
    """`sign` times the mean, plus a tolerance."""
    return Interval(sign * mean.mean + by, mean.half, mean.runs) if mean is not None else None


def _e3(evidence: Evidence) -> Iterable[Part]:
    cells, (slow, fast) = evidence.cells, _ends(evidence.cells.speeds)
    rise = cells.between_speeds(rate, "mft", fast, slow) if slow != fast else None
    yield Part(f"MFT's rate at {fast:g} minus {slow:g} m/s", rise, POINT)
    yield Part("that minus AODV's", _bears_better(evidence, slow, fast), 0.0)


def _bears_better(evidence: Evidence, slow: float, fast: float) -> Interval | None:
    """By how much more, or less negatively, MFT's rate changes with speed, world by world."""
    known = {(name, size, speed, seed): rate(result) for name, size, speed, seed, result in _runs(evidence)}

    def change(protocol: str, size: int, seed: int) -> float:
        return known[protocol, size, fast, seed] - known[protocol, size, slow, seed]

    worlds = {(size, seed) for _, size, _, seed in known}
    return of_worlds(
        (seed, change("mft", size, seed) - change("aodv", size, seed))
        for size, seed in worlds
        if slow != fast and all((name, size, speed, seed) in known for name in BOTH for speed in (slow, fast))
    )


def _runs(evidence: Evidence) -> Iterable[tuple[str, int, float, int, Result]]:
    for row in evidence.cells.rows:
        c = row.configuration
        yield c.protocol, c.size, c.speed_mps, c.seed, row.result


def _e4(evidence: Evidence) -> Iterable[Part]:
    for protocol in BOTH:
        yield Part(f"{protocol.upper()} loses, beyond {STRONG_LOSS:g},", _loss(evidence, protocol), 0.0)


def _loss(evidence: Evidence, protocol: str) -> Interval | None:
    small, large = _ends(evidence.cells.sizes)
    change = evidence.cells.between_sizes(rate, protocol, int(large), int(small)) if small != large else None
    return shifted(change, -STRONG_LOSS, -1)


def _e5(evidence: Evidence) -> Iterable[Part]:
    cells = evidence.cells
    yield Part("MFT minus AODV at C32", cells.between_protocols(rate, "mft", "aodv", [32], cells.speeds), POINT)


def _e6(evidence: Evidence) -> Iterable[Part]:
    cells = evidence.cells
    lead = cells.between_protocols(delivered_share, "aodv", "mft", [32], [evidence.speed_mps])
    yield Part(f"AODV minus MFT at {evidence.speed_mps:g} m/s, of all published,", lead, POINT)


def _e7(evidence: Evidence) -> Iterable[Part]:
    cells = evidence.cells
    for speed in sorted({row.configuration.speed_mps for row in cells.rows if row.configuration.size == 16}):
        lead = cells.between_protocols(delivered_share, "mft", "aodv", [16], [speed])
        yield Part(f"MFT minus AODV at {speed:g} m/s", lead, POINT)


def _e8(evidence: Evidence) -> Iterable[Part]:
    cells, (slow, fast) = evidence.cells, _ends(evidence.cells.speeds)
    peak = min(cells.speeds, key=lambda speed: abs(speed - 6.0), default=0.0)
    for other in (slow, fast):
        lead = _between(cells, delivered_share, "mft", (16, peak), (16, other)) if peak not in (slow, fast) else None
        yield Part(f"delivered at {peak:g} minus {other:g} m/s", lead, POINT)


def _e9(evidence: Evidence) -> Iterable[Part]:
    slow, fast = _ends(evidence.cells.speeds)
    rise = evidence.cells.between_speeds(replayed_share, "mft", fast, slow) if slow != fast else None
    yield Part(f"replayed share of all published at {fast:g} minus {slow:g} m/s", rise, POINT)


def _e10(evidence: Evidence) -> Iterable[Part]:
    cells, limit = evidence.cells, math.log10(SAME_ORDER)
    for size in cells.sizes:
        ratio = cells.between_protocols(logarithm(delay_s), "mft", "aodv", [size], [evidence.speed_mps])
        if ratio is not None:
            yield Part(f"C{size}: a factor below {SAME_ORDER:g}, by decades", shifted(ratio, limit, -1))
            yield Part(f"C{size}: above its inverse, by decades", shifted(ratio, limit))


def _e11(evidence: Evidence) -> Iterable[Part]:
    for name, quantity in (("delay", logarithm(delay_s)), ("hops", hops)):
        for other in (2, 8):
            at = evidence.speed_mps
            lead = _between(evidence.cells, quantity, "aodv", (4, at), (other, at))
            yield Part(f"{name} at C4 over C{other}", lead, 0.0)


def _e12(evidence: Evidence) -> Iterable[Part]:
    cells = evidence.cells
    yield Part("MFT minus AODV", cells.between_protocols(messages, "mft", "aodv", [2], cells.speeds), 0.0)


def _e13(evidence: Evidence) -> Iterable[Part]:
    growth = {protocol: _growth(evidence, protocol) for protocol in BOTH}
    yield Part(f"AODV's growth beyond x {EXPLODES:g}, by decades", shifted(growth["aodv"], -math.log10(EXPLODES)))
    yield Part(f"MFT's growth below x {BARELY:g}, by decades", shifted(growth["mft"], math.log10(BARELY), -1))


def _growth(evidence: Evidence, protocol: str) -> Interval | None:
    at, known = evidence.speed_mps, evidence.by_size(messages, protocol)
    if not {2, 32} <= known.keys():
        return None
    return _between(evidence.cells, logarithm(messages), protocol, (32, at), (2, at))


def _e14(evidence: Evidence) -> Iterable[Part]:
    rows = [row for row in evidence.cells.rows if row.configuration.protocol == "mft"]
    lead = of_worlds((row.configuration.seed, _broker_lead(row.result)) for row in rows)
    yield Part(f"a broker's messages over {MOST:g} times a client's, by decades", lead)
    deep = [row for row in rows if row.configuration.size >= 8]
    above = of_worlds((row.configuration.seed, _leader_lead(row.result)) for row in deep)
    yield Part("a leader's over those of a broker below, in a period", above)


def _broker_lead(result: Result) -> float:
    roles = result.messages_by_role
    clients = max(roles["subscriber"], roles["publisher"], 1e-4)
    return math.log10(max(roles["broker"], 1e-4) / clients / MOST)


def _leader_lead(result: Result) -> float:
    return result.messages_by_depth.get("0", 0.0) - below_leader(result)


def _e15(evidence: Evidence) -> Iterable[Part]:
    cells = evidence.cells
    better = cells.between_protocols(rate, "mft", "aodv", cells.sizes, cells.speeds)
    yield Part("rate over all cells, MFT minus AODV", better, POINT)
    yield Part(f"MFT loses, beyond {STRONG_LOSS:g},", _loss(evidence, "mft"))
    mft, aodv = (_growth_by_seed(evidence, protocol) for protocol in BOTH)
    slower = of_worlds((seed, aodv[seed] - mft[seed]) for seed in mft if seed in aodv)
    yield Part("growth of messages, AODV's over MFT's, by decades", slower)


def _growth_by_seed(evidence: Evidence, protocol: str) -> dict[int, float]:
    at = {
        (size, seed): math.log10(max(messages(result), 1e-4))
        for name, size, speed, seed, result in _runs(evidence)
        if name == protocol and speed == evidence.speed_mps
    }
    return {seed: at[32, seed] - at[2, seed] for size, seed in at if size == 32 and (2, seed) in at}


def _e17(evidence: Evidence) -> Iterable[Part]:
    for protocol in BOTH:
        dense = evidence.at(honest_rate, protocol, 2)
        sparse = of_worlds(
            (row.configuration.seed, row.result.honest_rate)
            for row in evidence.sparse
            if row.configuration.protocol == protocol
        )
        limit = HARDLY * dense.mean if dense is not None else 0.0
        room = shifted(sparse, limit, -1) if dense is not None else None
        yield Part(f"{protocol.upper()}: half of {limit / HARDLY:.2f} less the share delivered", room)


JUDGES: Mapping[str, Callable[[Evidence], Iterable[Part]]] = {
    "E3": _e3, "E4": _e4, "E5": _e5, "E6": _e6, "E7": _e7, "E8": _e8, "E9": _e9, "E10": _e10, "E11": _e11,
    "E12": _e12, "E13": _e13, "E14": _e14, "E15": _e15, "E17": _e17,
}  # fmt: skip


def _nothing(evidence: Evidence) -> str:
    return ""


def _honest_speeds(evidence: Evidence) -> str:
    slow, fast = _ends(evidence.cells.speeds)
    told = (f"{p.upper()} {evidence.cells.between_speeds(honest_rate, p, fast, slow)}" for p in BOTH)
    return f"of all wanted: {', '.join(told)}"


def _honest_sizes(evidence: Evidence) -> str:
    small, large = _ends(evidence.cells.sizes)
    told = (f"{p.upper()} {evidence.cells.between_sizes(honest_rate, p, int(large), int(small))}" for p in BOTH)
    return f"of all wanted: {', '.join(told)}"


def _honest_lead(evidence: Evidence) -> str:
    cells = evidence.cells
    return f"of all wanted: {cells.between_protocols(honest_rate, 'mft', 'aodv', [32], cells.speeds)}"


def _bare_lead(evidence: Evidence) -> str:
    cells = evidence.cells
    return f"without beacons {cells.between_protocols(messages_without_beacons, 'mft', 'aodv', [2], cells.speeds)}"


def _delays(evidence: Evidence) -> str:
    mft, aodv = evidence.by_size(delay_s, "mft"), evidence.by_size(delay_s, "aodv")
    return ", ".join(f"C{size} {mft[size].mean:.3g} against {aodv[size].mean:.3g} s" for size in mft if size in aodv)


def _messages(evidence: Evidence) -> str:
    told = []
    for protocol in BOTH:
        by_size = evidence.by_size(messages, protocol)
        told.append(f"{protocol.upper()} " + ", ".join(f"{mean.mean:.0f} at C{size}" for size, mean in by_size.items()))
    return "; ".join(told)


BESIDE: Mapping[str, Callable[[Evidence], str]] = {
    "E3": _honest_speeds,
    "E4": _honest_sizes,
    "E5": _honest_lead,
    "E10": _delays,
    "E12": _bare_lead,
    "E13": _messages,
}
"""Numbers that decide nothing, and that a reader needs all the same."""


def _between(
    cells: Cells, quantity: Quantity, protocol: str, one: tuple[int, float], other: tuple[int, float]
) -> Interval | None:
    """One (size, speed) minus another, seed by seed."""
    found: dict[tuple[int, float], dict[int, float]] = {one: {}, other: {}}
    for row in cells.rows:
        c = row.configuration
        if c.protocol == protocol and (c.size, c.speed_mps) in found:
            found[c.size, c.speed_mps][c.seed] = quantity(row.result)
    return of_worlds((seed, value - found[other][seed]) for seed, value in found[one].items() if seed in found[other])


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return (min(values), max(values)) if values else (0.0, 0.0)


def below_leader(result: Result) -> float:
    """What a broker that is not the leader sends in a period, on average."""
    rounds = {depth: n for depth, n in result.beats_by_depth.items() if depth != "0"}
    sent = sum(result.messages_by_depth[depth] * n for depth, n in rounds.items())
    return sent / max(sum(rounds.values()), 1)
