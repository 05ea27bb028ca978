"""The published claims E1 to E17 (spec mft-pubsub 3.4), each judged by the runs of a grid.

Only orderings were published. Two means are told apart where they differ by more than two standard errors of their
difference, taken run by run in the same world; closer than that, and wherever cells are missing, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from godwit.lab.claims import Claim, Finding, Verdict, judged
from godwit.lab.intervals import Interval, interval_if_any
from godwit.lab.mft import golden
from godwit.lab.mft.cells import Cells, Quantity
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Result

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim("E1", "A simple migration costs 13 messages in the first approach and 2 in MFT."),
        Claim("E2", "A double migration, MFT's worst case, costs 12 messages in the first approach and 13 in MFT."),
        Claim("E3", "MFT's delivery rate bears speed better than AODV's, and even rises with it."),
        Claim("E4", "Both protocols lose delivery rate strongly as the network grows."),
        Claim("E5", "MFT has the better delivery rate, also at C32."),
        Claim("E6", "At C32 and 8 m/s AODV delivers more messages than MFT in absolute terms."),
        Claim("E7", "At C16 MFT delivers more messages than AODV at every speed."),
        Claim("E8", "At C16 MFT's deliveries rise slightly with speed and start to fall at 6 m/s."),
        Claim(
            "E9", "Faster nodes pass a broker that stores their events more often: replayed deliveries rise with speed."
        ),
        Claim("E10", "MFT's delay, storage included, is of the same order as AODV's."),
        Claim("E11", "AODV shows abnormally high delay and hop count at C4."),
        Claim("E12", "At C2 AODV sends fewer messages per node than MFT."),
        Claim("E13", "AODV's messages per node explode with size; MFT's barely change."),
        Claim("E14", "In MFT brokers send most of the messages, more so near the leader; clients send few."),
        Claim(
            "E15", "Overall MFT outperforms AODV, loses performance in larger networks and scales better in messages."
        ),
        Claim("E16", "Simulating AODV at the largest size takes about a hundred times as long as MFT."),
        Claim("E17", "Few nodes in a large area hardly ever communicate."),
    )
}

STRONG_LOSS = 0.1
"""E4: so much of the delivery rate is a strong loss."""
SAME_ORDER = 10.0
"""E10: delays within this factor are of the same order."""
EXPLODES, BARELY = 3.0, 1.5
"""E13: growth of messages per node from the smallest to the largest size."""
ORDER_OF_100 = 30.0
"""E16: a ratio from here on is of the order of 100."""
HARDLY = 0.5
"""E17: hardly, compared with the same nodes at the usual density."""


class Evidence:
    """What a verdict may rest on: the grid, its reference speed, and C2 spread over the area of C32."""

    def __init__(self, rows: Sequence[Row], sparse: Sequence[Row], reference_mps: float) -> None:
        self.cells = Cells(rows)
        self.sparse = sparse
        self.speed_mps = reference_mps

    def at(self, quantity: Quantity, protocol: str, size: int) -> Interval | None:
        return self.cells.mean(quantity, protocol, size, self.speed_mps)

    def by_size(self, quantity: Quantity, protocol: str) -> dict[int, Interval]:
        """At the reference speed, where there are runs."""
        found = {size: self.at(quantity, protocol, size) for size in self.cells.sizes}
        return {size: mean for size, mean in found.items() if mean is not None}


def findings(evidence: Evidence) -> list[Finding]:
    """Every claim, in order."""
    found: dict[str, Finding] = {}
    for name, judge in JUDGES.items():
        holds, numbers = judge(evidence)
        found[name] = judged(CLAIMS[name], holds, numbers)
    found["E15"] = _overall(evidence, found)
    return [found[name] for name in CLAIMS]


Judgement = tuple[bool | None, str]
MISSING = "not enough runs: "


def rate(result: Result) -> float:
    return result.rate


def honest_rate(result: Result) -> float:
    return result.honest_rate


def delivered(result: Result) -> float:
    return result.delivered


def delay_s(result: Result) -> float:
    return result.delay_mean_s


def hops(result: Result) -> float:
    return result.hops_mean


def messages(result: Result) -> float:
    return result.messages_per_node


def messages_without_beacons(result: Result) -> float:
    return result.messages_per_node_without_beacons


def replayed(result: Result) -> float:
    return result.replayed


def cpu_s(result: Result) -> float:
    return result.cpu_s


def _e1(evidence: Evidence) -> Judgement:
    counted = golden.simple_migration(golden.first_approach()), golden.simple_migration(golden.mft())
    return counted == (13, 2), f"{counted[0]} in the first approach, {counted[1]} in MFT; executed just now"


def _e2(evidence: Evidence) -> Judgement:
    counted = golden.double_migration(golden.first_approach()), golden.double_migration(golden.mft())
    return counted == (12, 13), f"{counted[0]} in the first approach, {counted[1]} in MFT; executed just now"


def _e3(evidence: Evidence) -> Judgement:
    speeds = evidence.cells.speeds
    if len(speeds) < 2:
        return None, MISSING + "two speeds"
    slow, fast = speeds[0], speeds[-1]
    changes = {p: evidence.cells.between_speeds(rate, p, fast, slow) for p in ("mft", "aodv")}
    honest = {p: evidence.cells.between_speeds(honest_rate, p, fast, slow) for p in ("mft", "aodv")}
    mft, aodv = changes["mft"], changes["aodv"]
    if mft is None or aodv is None:
        return None, MISSING + "both protocols"
    resilient = None if abs(mft.mean - aodv.mean) <= mft.half + aodv.half else mft.mean > aodv.mean
    numbers = f"from {slow:g} to {fast:g} m/s: MFT {mft}, AODV {aodv}"
    beside = f"; of all wanted: MFT {honest['mft']}, AODV {honest['aodv']}"
    return _both(mft.is_positive, resilient), numbers + beside


def _e4(evidence: Evidence) -> Judgement:
    small, large = _ends(evidence)
    if small == large:
        return None, MISSING + "two sizes"
    losses = {p: evidence.cells.between_sizes(rate, p, large, small) for p in ("mft", "aodv")}
    honest = {p: evidence.cells.between_sizes(honest_rate, p, large, small) for p in ("mft", "aodv")}
    known = [loss for loss in losses.values() if loss is not None]
    if len(known) < 2:
        return None, MISSING + "both protocols"
    holds = all(loss.is_positive is False and loss.mean <= -STRONG_LOSS for loss in known)
    numbers = f"from C{small} to C{large}: MFT {losses['mft']}, AODV {losses['aodv']}"
    return holds, f"{numbers}; of all wanted: MFT {honest['mft']}, AODV {honest['aodv']}"


def _e5(evidence: Evidence) -> Judgement:
    difference = evidence.cells.between_protocols(rate, "mft", "aodv", [32], evidence.cells.speeds)
    honest = evidence.cells.between_protocols(honest_rate, "mft", "aodv", [32], evidence.cells.speeds)
    if difference is None:
        return None, MISSING + "C32 with both protocols"
    return difference.is_positive, f"MFT minus AODV at C32: {difference}; of all wanted: {honest}"


def _e6(evidence: Evidence) -> Judgement:
    difference = evidence.cells.between_protocols(delivered, "aodv", "mft", [32], [evidence.speed_mps])
    if difference is None:
        return None, MISSING + "C32 with both protocols"
    counts = ", ".join(f"{p.upper()} {evidence.at(delivered, p, 32)}" for p in ("aodv", "mft"))
    return difference.is_positive, f"at {evidence.speed_mps:g} m/s: {counts}; difference {difference}"


def _e7(evidence: Evidence) -> Judgement:
    leads = {
        speed: lead
        for speed in evidence.cells.speeds
        if (lead := evidence.cells.between_protocols(delivered, "mft", "aodv", [16], [speed])) is not None
    }
    if not leads:
        return None, MISSING + "C16 with both protocols"
    numbers = "MFT minus AODV: " + ", ".join(f"{lead} at {speed:g} m/s" for speed, lead in leads.items())
    return _both(*(lead.is_positive for lead in leads.values())), numbers


def _e8(evidence: Evidence) -> Judgement:
    by_speed = {
        speed: mean
        for speed in evidence.cells.speeds
        if (mean := evidence.cells.mean(delivered, "mft", 16, speed)) is not None
    }
    numbers = "delivered: " + ", ".join(f"{mean} at {speed:g} m/s" for speed, mean in by_speed.items())
    if len(by_speed) < 3:
        return None, MISSING + "C16 at three speeds"
    peak = max(by_speed, key=lambda speed: by_speed[speed].mean)
    worst = min(by_speed.values(), key=lambda mean: mean.mean)
    if by_speed[peak].mean - worst.mean <= by_speed[peak].half + worst.half:
        return None, f"{numbers}; the differences are within the error"
    return 4 <= peak <= 8 and peak not in (min(by_speed), max(by_speed)), f"{numbers}; the peak is at {peak:g} m/s"


def _e9(evidence: Evidence) -> Judgement:
    speeds = evidence.cells.speeds
    rise = evidence.cells.between_speeds(replayed, "mft", speeds[-1], speeds[0]) if len(speeds) > 1 else None
    if rise is None:
        return None, MISSING + "MFT at two speeds"
    means = (
        f"{interval_if_any(r.result.replayed for r in evidence.cells.rows if _is(r, 'mft', speed))} at {speed:g} m/s"
        for speed in speeds
    )
    return rise.is_positive, f"replayed deliveries of a run: {', '.join(means)}; rise {rise}"


def _e10(evidence: Evidence) -> Judgement:
    mft, aodv = evidence.by_size(delay_s, "mft"), evidence.by_size(delay_s, "aodv")
    both = [size for size in mft if size in aodv and aodv[size].mean > 0]
    if not both:
        return None, MISSING + "both protocols at one size"
    ratios = {size: mft[size].mean / aodv[size].mean for size in both}
    direct = evidence.by_size(lambda result: result.delay_direct_mean_s, "mft")
    late = evidence.by_size(lambda result: result.delay_replayed_mean_s, "mft")
    numbers = "; ".join(
        f"C{size}: MFT {mft[size].mean:.3g} s (direct {direct[size].mean:.3g}, replayed {late[size].mean:.3g}),"
        f" AODV {aodv[size].mean:.3g} s"
        for size in both
    )
    return all(1 / SAME_ORDER <= ratio <= SAME_ORDER for ratio in ratios.values()), numbers


def _e11(evidence: Evidence) -> Judgement:
    delays, counts = evidence.by_size(delay_s, "aodv"), evidence.by_size(hops, "aodv")
    if not {2, 4, 8} <= set(delays):
        return None, MISSING + "AODV at C2, C4 and C8"
    outlier = all(by_size[4].mean > max(by_size[2].mean, by_size[8].mean) for by_size in (delays, counts))
    return outlier, "; ".join(f"C{size}: {delays[size]} s, {counts[size]} hops" for size in delays)


def _e12(evidence: Evidence) -> Judgement:
    fewer = evidence.cells.between_protocols(messages, "mft", "aodv", [2], evidence.cells.speeds)
    bare = evidence.cells.between_protocols(messages_without_beacons, "mft", "aodv", [2], evidence.cells.speeds)
    if fewer is None:
        return None, MISSING + "C2 with both protocols"
    counts = ", ".join(f"{p.upper()} {evidence.cells.mean(messages, p, 2)}" for p in ("mft", "aodv"))
    return fewer.is_positive, f"{counts}; MFT minus AODV {fewer}, without beacons {bare}"


def _e13(evidence: Evidence) -> Judgement:
    growth, numbers = {}, []
    for protocol in ("mft", "aodv"):
        by_size = evidence.by_size(messages, protocol)
        bare = evidence.by_size(messages_without_beacons, protocol)
        if len(by_size) < 2:
            return None, MISSING + "two sizes with both protocols"
        small, large = min(by_size), max(by_size)
        growth[protocol] = by_size[large].mean / by_size[small].mean
        numbers.append(
            f"{protocol.upper()} {by_size[small].mean:.0f} at C{small}, {by_size[large].mean:.0f} at C{large}"
            f" (x {growth[protocol]:.2g}; without beacons {bare[small].mean:.0f} and {bare[large].mean:.0f})"
        )
    return growth["aodv"] >= EXPLODES and growth["mft"] <= BARELY, "; ".join(numbers)


def _e14(evidence: Evidence) -> Judgement:
    results = [r.result for r in evidence.cells.rows if r.configuration.protocol == "mft"]
    if not results:
        return None, MISSING + "MFT"
    roles = {role: _mean(r.messages_by_role[role] for r in results) for role in results[0].messages_by_role}
    leader = _mean(r.messages_by_depth.get("0", 0.0) for r in results)
    below = _mean(_below_leader(r) for r in results)
    clients = max(roles["subscriber"], roles["publisher"])
    numbers = ", ".join(f"{mean:.0f} per {role}" for role, mean in roles.items())
    numbers += f"; a leader sends {leader:.2g} in a period, a broker below {below:.2g}, heartbeats left out"
    return roles["broker"] > 2 * clients and leader > below, numbers


def _e16(evidence: Evidence) -> Judgement:
    size = max(evidence.cells.sizes)
    mft, aodv = evidence.cells.mean(cpu_s, "mft", size), evidence.cells.mean(cpu_s, "aodv", size)
    if mft is None or aodv is None:
        return None, MISSING + "both protocols at the largest size"
    ratio = aodv.mean / mft.mean
    numbers = f"processor time of a run at C{size}: MFT {mft.mean:.1f} s, AODV {aodv.mean:.1f} s, ratio {ratio:.2g}"
    return (ratio >= ORDER_OF_100 if size == 32 else None), numbers


def _e17(evidence: Evidence) -> Judgement:
    numbers, shares = [], []
    for protocol in ("mft", "aodv"):
        sparse = interval_if_any(r.result.honest_rate for r in evidence.sparse if r.configuration.protocol == protocol)
        dense = evidence.at(honest_rate, protocol, 2)
        if sparse is None or dense is None:
            return None, MISSING + "C2 in both areas"
        shares.append(sparse.mean / dense.mean if dense.mean else 0.0)
        numbers.append(f"{protocol.upper()} delivers {sparse} of all wanted in 110 x 110 m, {dense} in 35 x 35 m")
    return max(shares) <= HARDLY, "; ".join(numbers)


JUDGES: Mapping[str, Callable[[Evidence], Judgement]] = {
    "E1": _e1,
    "E2": _e2,
    "E3": _e3,
    "E4": _e4,
    "E5": _e5,
    "E6": _e6,
    "E7": _e7,
    "E8": _e8,
    "E9": _e9,
    "E10": _e10,
    "E11": _e11,
    "E12": _e12,
    "E13": _e13,
    "E14": _e14,
    "E16": _e16,
    "E17": _e17,
}


def _overall(evidence: Evidence, found: Mapping[str, Finding]) -> Finding:
    """E15 is three claims: a better rate everywhere, E4 and E13."""
    cells = evidence.cells
    better = cells.between_protocols(rate, "mft", "aodv", cells.sizes, cells.speeds)
    honest = cells.between_protocols(honest_rate, "mft", "aodv", cells.sizes, cells.speeds)
    if better is None:
        return judged(CLAIMS["E15"], None, MISSING + "both protocols")
    parts = [better.is_positive, *(_holds(found[name].verdict) for name in ("E4", "E13"))]
    numbers = f"delivery rate, MFT minus AODV: {better}, of all wanted {honest}"
    return judged(CLAIMS["E15"], _both(*parts), f"{numbers}; E4 {found['E4'].verdict}; E13 {found['E13'].verdict}")


def _holds(verdict: Verdict) -> bool | None:
    return None if verdict is Verdict.NOT_DECIDABLE else verdict is Verdict.REPRODUCED


def _both(*parts: bool | None) -> bool | None:
    """False if one is, else unknown if one is."""
    if False in parts:
        return False
    return None if None in parts else True


def _ends(evidence: Evidence) -> tuple[int, int]:
    return min(evidence.cells.sizes), max(evidence.cells.sizes)


def _is(row: Row, protocol: str, speed_mps: float) -> bool:
    return row.configuration.protocol == protocol and row.configuration.speed_mps == speed_mps


def _mean(values: object) -> float:
    mean = interval_if_any(values)  # type: ignore[arg-type]
    return mean.mean if mean is not None else 0.0


def _below_leader(result: Result) -> float:
    rounds = {depth: n for depth, n in result.beats_by_depth.items() if depth != "0"}
    sent = sum(result.messages_by_depth[depth] * n for depth, n in rounds.items())
    return sent / max(sum(rounds.values()), 1)
