"""The published claims C12 to C19 (spec content-routing 4.3), and what the trials and the bounds say (T12 to T23)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from godwit.lab.claims import Claim, Finding, Margin, Point, along, fair, judged, undecided
from godwit.lab.intervals import Interval
from godwit.lab.parts import Part, all_hold, decided
from godwit.lab.relocation.evidence import Evidence, direct, latency, path, signalling
from godwit.lab.relocation.networks import WIRINGS
from godwit.lab.relocation.plan import RATIO, TABLE
from godwit.lab.relocation.runs import FILTERS, MOBILITY, Configuration
from godwit.lab.relocation.trials import VARIANTS
from godwit.protocols.relocation.costs import Bounds, Overlay, Protocol, bounds

FULL = "godwit lab all --only relocation --size published: about an hour of a core"
PUBLISHED_MS = dict(zip(TABLE, ((170, 26), (168, 22), (49, 16), (48, 17), (39, 17), (39, 17)), strict=True))
PINGS = 3
"""A handover under adverts needs a second ping, a long way a third or fourth."""

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "C12", "average handover cost is below the upper bounds", "4.3", "the mean of every protocol and mobility"
        ),
        Claim(
            "C13",
            "cost: ping/pong > ping/pong RP > incomplete acyclic > complete acyclic; complete acyclic RP is lowest",
            "4.3, figure 5.11",
            "each step with its interval, border brokers",
        ),
        Claim(
            "C14",
            "latencies of table 5.4: 170/168/49/48/39/39 ms",
            "4.2",
            "our mean within one published deviation each",
        ),
        Claim(
            "C14 ratio",
            "generic takes about 3.5 times incomplete and 4.4 times complete acyclic",
            "4.3",
            "within a quarter of each",
        ),
        Claim("C15 path", "between border brokers ways are longer and incomplete handovers cost more", "4.3", "both"),
        Claim(
            "C15 covering", "between border brokers the covering optimisation applies more often", "4.3", "its share"
        ),
        Claim(
            "C16", "incomplete acyclic cost grows with subscribers", "4.3, figure 5.13", "from least to most by half"
        ),
        Claim(
            "C17",
            "complete acyclic cost peaks at 20 subscribers, then falls",
            "4.3",
            "peak at 10 to 30, less at the end",
        ),
        Claim("C18", "ping/pong does not depend on the numbers of subscribers and publishers", "4.3", "10 %"),
        Claim(
            "C19 acyclic",
            "more publishers cost acyclic protocols moderately more",
            "4.3, figure 5.14",
            "more, less than twice",
        ),
        Claim("C19 RP", "more publishers have no significant effect with rendezvous points", "4.3", "10 %"),
        Claim(
            "T12, T13",
            "every strategy delivers as flooding does, and links hold what they should",
            "3",
            "no tree wrong",
        ),
        Claim("T21", "safe handovers lose nothing, whatever moves", "3", "no trial wrong"),
        Claim("T21 negative", "the published shortcuts lose events", "2.11.4, 2.11.6, 2.11.7", "some trial of each"),
        Claim("T24", "in all replays nothing is lost and nothing comes twice", "3", "none at all"),
    )
}


def _listed(means: Sequence[Interval]) -> str:
    return " / ".join(str(mean) for mean in means)


def _by(margins: Mapping[str, Interval | None]) -> tuple[Margin, ...]:
    """By how much each part of a claim holds, where it was run."""
    return tuple(Margin(of, by) for of, by in margins.items() if by is not None)


def _less(by: Interval | None, limit: float) -> Interval | None:
    return Interval(by.mean - limit, by.half, by.runs) if by is not None else None


def upper(evidence: Evidence, protocol: str, setting: Configuration) -> int | None:
    """The bound that a protocol's mean must keep; None where it was not run."""
    results = evidence.results(setting)
    if not results:
        return None
    longest = max(one.longest for one in results)
    overlay = Overlay(brokers=setting.brokers, path=0, longest=longest, pings=PINGS)
    found: Bounds = bounds(KINDS[protocol], overlay)
    return found.incomplete_upper if protocol.startswith("incomplete") else found.upper


KINDS = {
    "ping/pong": Protocol.GENERIC,
    "ping/pong RP": Protocol.GENERIC_RENDEZVOUS,
    "incomplete acyclic": Protocol.ACYCLIC_SUBSCRIBER,
    "complete acyclic": Protocol.ACYCLIC_SUBSCRIBER,
    "incomplete acyclic RP": Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER,
    "complete acyclic RP": Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER,
}


def c12(claim: Claim, evidence: Evidence) -> Finding:
    said, holds = [], []
    for protocol in TABLE:
        for mobility in MOBILITY:
            setting = evidence.plan.cell(protocol, mobility)
            mean, most = evidence.mean(signalling, setting), upper(evidence, protocol, setting)
            if mean is None or most is None:
                return undecided(claim, f"{protocol} was not run", FULL)
            holds.append(mean.mean < most)
            said.append(f"{protocol}, {mobility}: {mean.mean:.1f} of {most}")
    return judged(claim, all(holds), "; ".join(said))


def c13(claim: Claim, evidence: Evidence) -> Finding:
    order = ("ping/pong", "ping/pong RP", "incomplete acyclic", "complete acyclic")
    points = []
    for filters in FILTERS:
        cells = {protocol: evidence.plan.cell(protocol, "border", filters) for protocol in TABLE}
        steps = [(one, other) for one, other in pairwise(order)]
        steps += [(one, "complete acyclic RP") for one in TABLE if one != "complete acyclic RP"]
        parts = {f"{one} - {other}": evidence.difference(signalling, cells[one], cells[other]) for one, other in steps}
        means = evidence.means(signalling, list(cells.values()))
        holds = all_hold([None if part is None else part.is_positive for part in parts.values()])
        points.append(Point(WANTED[filters], holds, _listed(means or []), _by(parts)))
    numbers = "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return along(
        claim,
        "what subscribers want",
        points,
        f"messages a handover, in the order of table 5.4. {numbers}",
        FULL,
        ordered=False,
    )


WANTED = {"one": "all subscribers want the same", "ranges": "each wants a random range"}


def c14(claim: Claim, evidence: Evidence) -> Finding:
    """With both readings of how an update passes a rendezvous point."""
    points = []
    for reading, suffix in (("by way of the point", ""), ("leaving where the source's way joins", ", joined")):
        names = [name + suffix if name.endswith("acyclic RP") else name for name in TABLE]
        means = evidence.means(latency, [evidence.plan.cell(name) for name in names])
        if means is None:
            return undecided(claim, "latencies were not measured", FULL)
        near = [
            abs(mean.mean - told) <= spread for mean, (told, spread) in zip(means, PUBLISHED_MS.values(), strict=True)
        ]
        room = {
            name: Interval(spread - abs(mean.mean - told), mean.half, mean.runs)
            for name, mean, (told, spread) in zip(TABLE, means, PUBLISHED_MS.values(), strict=True)
        }
        points.append(Point(reading, all(near), "/".join(f"{mean.mean:.0f}" for mean in means), _by(room)))
    numbers = "; ".join(f"{point.at}: {point.numbers} ms" for point in points)
    return along(claim, "how an update passes a rendezvous point", points, numbers, FULL, ordered=False)


def c14_ratio(claim: Claim, evidence: Evidence) -> Finding:
    cell, holds, said = evidence.plan.cell, [], []
    generic, *others = RATIO
    for protocol, told in zip(others, (3.5, 4.4), strict=True):
        ratio = evidence.ratio(latency, cell(generic), cell(protocol))
        holds.append(None if ratio is None else ratio.within(0.75 * told, 1.25 * told))
        said.append(f"{ratio} where {told} was published")
    return judged(claim, all_hold(holds), " and ".join(said), FULL)


def c15_path(claim: Claim, evidence: Evidence) -> Finding:
    cells = [evidence.plan.cell("incomplete acyclic", mobility) for mobility in MOBILITY]
    return decided(
        claim,
        [
            Part("longer ways by", evidence.difference(path, *cells)),
            Part("more messages by", evidence.difference(signalling, *cells)),
        ],
        cost=FULL,
    )


def c15_covering(claim: Claim, evidence: Evidence) -> Finding:
    points = []
    for filters in FILTERS:
        cells = [evidence.plan.cell("complete acyclic", mobility, filters) for mobility in MOBILITY]
        apart, means = evidence.difference(direct, *cells), evidence.means(direct, cells)
        holds = None if apart is None else apart.is_positive
        points.append(Point(WANTED[filters], holds, _listed(means or []), _by({"more often by": apart})))
    numbers = "share, border and full. " + "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return along(claim, "what subscribers want", points, numbers, FULL, ordered=False)


def _by_subscribers(evidence: Evidence, protocol: str, filters: str) -> list[Configuration]:
    plan = evidence.plan
    return [plan.cell(protocol, "border", filters, subscribers=n) for n in plan.subscribers]


def _curve(evidence: Evidence, cells: Sequence[Configuration]) -> str:
    return _listed(evidence.means(signalling, cells) or [])


def c16(claim: Claim, evidence: Evidence) -> Finding:
    points = []
    for filters in FILTERS:
        cells = _by_subscribers(evidence, "incomplete acyclic", filters)
        more, first = evidence.difference(signalling, cells[-1], cells[0]), evidence.mean(signalling, cells[0])
        beyond = _less(more, first.mean / 2) if first is not None else None
        holds = None if beyond is None else beyond.is_positive
        points.append(Point(WANTED[filters], holds, _curve(evidence, cells), _by({"growth beyond a half": beyond})))
    return _along_subscribers(claim, evidence, points)


def c17(claim: Claim, evidence: Evidence) -> Finding:
    points = []
    for filters in FILTERS:
        cells = _by_subscribers(evidence, "complete acyclic", filters)
        above = _above_both_ends(evidence, cells)
        holds = all_hold([None if one is None else one.is_positive for one in above.values()])
        points.append(Point(WANTED[filters], holds, _curve(evidence, cells), _by(above)))
    return _along_subscribers(claim, evidence, points)


def _above_both_ends(evidence: Evidence, cells: Sequence[Configuration]) -> dict[str, Interval | None]:
    """By how much the highest of 10 to 30 subscribers is above either end; empty where a number was not run."""
    means = {cell: evidence.mean(signalling, cell) for cell in cells}
    middle = {cell: mean.mean for cell, mean in means.items() if mean and 10 <= cell.subscribers <= 30}
    if not middle or None in means.values():
        return {}
    top = max(middle, key=lambda cell: middle[cell])
    ends = (cells[0], cells[-1])
    return {f"peak above {end.subscribers}": evidence.difference(signalling, top, end) for end in ends}


def _along_subscribers(claim: Claim, evidence: Evidence, points: Sequence[Point]) -> Finding:
    counts = "/".join(map(str, evidence.plan.subscribers))
    numbers = f"{counts} subscribers. " + "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return along(claim, "what subscribers want", points, numbers, FULL, ordered=False)


def _by_publishers(evidence: Evidence, protocol: str) -> list[Configuration]:
    return [evidence.plan.cell(protocol, publishers=n) for n in evidence.plan.publishers]


def _constant(evidence: Evidence, cells: Sequence[Configuration]) -> bool | None:
    """Whether all are within a tenth of the first, topology by topology."""
    first = evidence.mean(signalling, cells[0])
    apart = [evidence.difference(signalling, cell, cells[0]) for cell in cells[1:]]
    if first is None or None in apart:
        return None
    tenth = first.mean / 10
    return all_hold([one.within(-tenth, tenth) for one in apart if one is not None])


def c18(claim: Claim, evidence: Evidence) -> Finding:
    by_subscribers = _by_subscribers(evidence, "ping/pong", "one")
    by_publishers = _by_publishers(evidence, "ping/pong")
    holds = all_hold([_constant(evidence, by_subscribers), _constant(evidence, by_publishers)])
    numbers = f"subscribers {_curve(evidence, by_subscribers)}; publishers {_curve(evidence, by_publishers)}"
    return judged(claim, holds, numbers, FULL)


def c19_acyclic(claim: Claim, evidence: Evidence) -> Finding:
    points = []
    for protocol in ("incomplete acyclic", "complete acyclic"):
        cells = _by_publishers(evidence, protocol)
        more, first = evidence.difference(signalling, cells[-1], cells[0]), evidence.mean(signalling, cells[0])
        holds, room = None, None
        if more is not None and first is not None:
            holds = all_hold([more.is_positive, more.within(-math.inf, first.mean)])
            room = Interval(first.mean - more.mean, more.half, more.runs)
        points.append(
            Point(protocol, holds, _curve(evidence, cells), _by({"more by": more, "less than twice by": room}))
        )
    counts = "/".join(map(str, evidence.plan.publishers))
    numbers = f"{counts} publishers. " + "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return along(claim, "the protocol", points, numbers, FULL, ordered=False)


def c19_rendezvous(claim: Claim, evidence: Evidence) -> Finding:
    curves = {name: _by_publishers(evidence, name) for name in ("incomplete acyclic RP", "complete acyclic RP")}
    holds = all_hold([_constant(evidence, cells) for cells in curves.values()])
    numbers = "; ".join(f"{name} {_curve(evidence, cells)}" for name, cells in curves.items())
    return judged(claim, holds, numbers, FULL)


def trees(claim: Claim, evidence: Evidence) -> Finding:
    counts = {name: evidence.trials(name) for name in WIRINGS}
    if not all(runs for _, runs in counts.values()):
        return undecided(claim, "not every kind of network was run", FULL)
    numbers = "; ".join(f"{name}: {bad} of {runs}" for name, (bad, runs) in counts.items())
    return judged(claim, not any(bad for bad, _ in counts.values()), numbers)


def trials(claim: Claim, evidence: Evidence, *, safe: bool) -> Finding:
    counts = {name: evidence.trials(name) for name, variant in VARIANTS.items() if variant.safe is safe}
    if not all(runs for _, runs in counts.values()):
        return undecided(claim, "not every variant was tried", FULL)
    numbers = "; ".join(f"{name}: {bad} of {runs}" for name, (bad, runs) in counts.items())
    wrong = [bool(bad) for bad, _ in counts.values()]
    return judged(claim, not any(wrong) if safe else all(wrong), numbers)


def t24(claim: Claim, evidence: Evidence) -> Finding:
    flaws, handovers = evidence.flaws()
    if not handovers:
        return undecided(claim, "no script was replayed", FULL)
    return judged(claim, not flaws, f"{flaws} in {handovers:,} handovers")


JUDGES: dict[str, Callable[[Claim, Evidence], Finding]] = {
    "C12": c12,
    "C13": c13,
    "C14": c14,
    "C14 ratio": c14_ratio,
    "C15 path": c15_path,
    "C15 covering": c15_covering,
    "C16": c16,
    "C17": c17,
    "C18": c18,
    "C19 acyclic": c19_acyclic,
    "C19 RP": c19_rendezvous,
    "T12, T13": trees,
    "T21": partial(trials, safe=True),
    "T21 negative": partial(trials, safe=False),
    "T24": t24,
}


def findings(evidence: Evidence) -> list[Finding]:
    found = [judge(CLAIMS[name], evidence) for name, judge in JUDGES.items()]
    return [fair(one, quick=evidence.plan.quick, cost=FULL) for one in found]
