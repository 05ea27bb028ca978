"""The published claims C12 to C19 (spec content-routing 4.3), and what the trials and the bounds say (T12 to T23)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

from godwit.lab.claims import Claim, Finding, Margin, Point, along, fair, judged, undecided
from godwit.lab.intervals import Interval
from godwit.lab.parts import Part, all_hold, decided
from godwit.lab.relocation.evidence import Evidence, direct, latency, path, signalling
from godwit.lab.relocation.networks import WIRINGS
from godwit.lab.relocation.plan import RATIO, TABLE
from godwit.lab.relocation.runs import FILTERS, MOBILITY, Configuration, Result
from godwit.lab.relocation.trials import VARIANTS
from godwit.protocols.relocation.costs import Bounds, Overlay, Protocol, bounds

FULL = "godwit lab all --only relocation --size published: about an hour of a core"
PUBLISHED_MS = dict(zip(TABLE, ((170, 26), (168, 22), (49, 16), (48, 17), (39, 17), (39, 17)), strict=True))
EQUAL = 0.1
"""What differs by less than a tenth does not depend: nobody sees it in the figures."""
PINGS = 3
"""A handover under adverts needs a second ping, a long way a third or fourth."""

CLAIMS = {
    claim.name: claim
    for claim in (
        Claim(
            "C12",
            "average handover cost is below the upper bounds",
            "4.3",
            "every protocol and mobility: means are bounded, so that what is left to the bound of the same topology is"
            " averaged over topologies, and its whole interval is above zero",
            was="means without their error were held against the largest bound of all topologies",
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
            "the interval of each mean within one published deviation: that is how much single handovers differ, and a"
            " reader of the table would not tell means apart that differ by less, on topologies that are not published",
            was="means were held against the deviations without their error",
        ),
        Claim(
            "C14 ratio",
            "generic takes about 3.5 times incomplete and 4.4 times complete acyclic",
            "4.3",
            "within a quarter of each",
        ),
        Claim("C15 path", "between border brokers ways are longer and incomplete handovers cost more", "4.3", "both"),
        Claim(
            "C15 covering",
            "between border brokers the covering optimisation applies more often",
            "4.3",
            "its share, whatever subscribers want",
            was="it was refuted by one reading where the other was open",
        ),
        Claim(
            "C16", "incomplete acyclic cost grows with subscribers", "4.3, figure 5.13", "from least to most by half"
        ),
        Claim(
            "C17",
            "complete acyclic cost peaks at 20 subscribers, then falls",
            "4.3",
            "peak at 10 to 30, less at both ends; nothing beyond 30 is more than a tenth above it, which is what this"
            " study takes for equal (C18)",
            was="only the ends were looked at, so that a peak at 40 or 50 passed",
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


def _over_readings(claim: Claim, on: str, points: Sequence[Point], numbers: str) -> Finding:
    """Open where a reading is, unless it depends anyway: with that reading it might."""
    found = [point.holds for point in points]
    if None in found and not {True, False} <= set(found):
        return undecided(claim, f"{_close(points)}{numbers}", FULL, numbers)
    return along(claim, on, points, numbers, FULL, ordered=False)


def _close(points: Sequence[Point]) -> str:
    """In which reading it is open, and how many topologies might decide that."""
    found = []
    for point in points:
        worlds = [Part(margin.of, margin.by).worlds for margin in point.margins] if point.holds is None else []
        if known := [count for count in worlds if count is not None]:
            found.append(f"too close where {point.at}, about {max(known):,} topologies might tell")
    return f"{', '.join(found)}; " if found else ""


def upper(protocol: str, brokers: int, longest: int) -> int:
    """The bound that a protocol's mean must keep in a topology, by its longest way to the rendezvous point."""
    found: Bounds = bounds(KINDS[protocol], Overlay(brokers=brokers, path=0, longest=longest, pings=PINGS))
    return found.incomplete_upper if protocol.startswith("incomplete") else found.upper


def uppers(evidence: Evidence, protocol: str, setting: Configuration) -> str:
    """The bounds of all topologies that were run."""
    every = {upper(protocol, setting.brokers, one.longest) for one in evidence.results(setting)}
    return " to ".join(str(limit) for limit in sorted({min(every), max(every)})) if every else ""


KINDS = {
    "ping/pong": Protocol.GENERIC,
    "ping/pong RP": Protocol.GENERIC_RENDEZVOUS,
    "incomplete acyclic": Protocol.ACYCLIC_SUBSCRIBER,
    "complete acyclic": Protocol.ACYCLIC_SUBSCRIBER,
    "incomplete acyclic RP": Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER,
    "complete acyclic RP": Protocol.ACYCLIC_RENDEZVOUS_SUBSCRIBER,
}


def c12(claim: Claim, evidence: Evidence) -> Finding:
    parts = []
    for protocol in TABLE:
        for mobility in MOBILITY:
            setting = evidence.plan.cell(protocol, mobility)
            left = partial(_left, protocol, setting.brokers)
            told = (
                f"{protocol}, {mobility}: {evidence.mean(signalling, setting)} of {uppers(evidence, protocol, setting)}"
            )
            parts.append(Part(f"{told}, left", evidence.mean(left, setting)))
    return decided(claim, parts, cost=FULL)


def _left(protocol: str, brokers: int, result: Result) -> float:
    """By how much a topology's mean is below the bound of that topology. Links are counted here, and the bounds count
    brokers between, one less a way: that makes it no easier to keep them."""
    return upper(protocol, brokers, result.longest) - result.signalling


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
    told = f"messages a handover, in the order of table 5.4. {numbers}"
    return _over_readings(claim, "what subscribers want", points, told)


WANTED = {"one": "all subscribers want the same", "ranges": "each wants a random range"}


def c14(claim: Claim, evidence: Evidence) -> Finding:
    """With both readings of how an update passes a rendezvous point."""
    points = []
    for reading, suffix in (("by way of the point", ""), ("leaving where the source's way joins", ", joined")):
        names = [name + suffix if name.endswith("acyclic RP") else name for name in TABLE]
        means = [evidence.mean(latency, evidence.plan.cell(name)) for name in names]
        parts = [Part(name, _room(mean, name)) for name, mean in zip(TABLE, means, strict=True)]
        told = " / ".join("not run" if mean is None else str(mean) for mean in means)
        margins = _by({part.name: part.margin for part in parts})
        points.append(Point(reading, all_hold([part.holds for part in parts]), told, margins))
    numbers = "; ".join(f"{point.at}: {point.numbers} ms" for point in points)
    return _over_readings(claim, "how an update passes a rendezvous point", points, numbers)


def _room(mean: Interval | None, protocol: str) -> Interval | None:
    """How far a mean is within what was published, at the nearer end."""
    told, spread = PUBLISHED_MS[protocol]
    return None if mean is None else Interval(spread - abs(mean.mean - told), mean.half, mean.runs)


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
    return _over_readings(claim, "what subscribers want", points, numbers)


def _by_subscribers(evidence: Evidence, protocol: str, filters: str) -> list[Configuration]:
    plan = evidence.plan
    return [plan.cell(protocol, "border", filters, subscribers=n) for n in plan.subscribers]


def _curve(evidence: Evidence, cells: Sequence[Configuration]) -> str:
    return _listed(evidence.means(signalling, cells) or [])


def c16(claim: Claim, evidence: Evidence) -> Finding:
    points = []
    for filters in FILTERS:
        cells = _by_subscribers(evidence, "incomplete acyclic", filters)
        beyond = evidence.lead(signalling, cells[-1], cells[0], 1.5)
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
    """By how much the highest of 10 to 30 subscribers is above either end, and what is left of a tenth above it for
    all others; empty where a number was not run."""
    means = {cell: evidence.mean(signalling, cell) for cell in cells}
    middle = {cell: mean.mean for cell, mean in means.items() if mean and 10 <= cell.subscribers <= 30}
    if not middle or None in means.values():
        return {}
    top = max(middle, key=lambda cell: middle[cell])
    ends = (cells[0], cells[-1])
    others = [cell for cell in cells[1:-1] if cell not in middle]
    return {
        **{f"peak above {end.subscribers}": evidence.difference(signalling, top, end) for end in ends},
        **{f"1.1 of the peak above {cell.subscribers}": _tenth_above(evidence, top, cell) for cell in others},
    }


def _tenth_above(evidence: Evidence, one: Configuration, other: Configuration) -> Interval | None:
    """By how much 1.1 of one exceeds the other."""
    return _reversed(evidence.lead(signalling, other, one, 1 + EQUAL))


def _reversed(by: Interval | None) -> Interval | None:
    return None if by is None else Interval(-by.mean, by.half, by.runs)


def _along_subscribers(claim: Claim, evidence: Evidence, points: Sequence[Point]) -> Finding:
    counts = "/".join(map(str, evidence.plan.subscribers))
    numbers = f"{counts} subscribers. " + "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return _over_readings(claim, "what subscribers want", points, numbers)


def _by_publishers(evidence: Evidence, protocol: str) -> list[Configuration]:
    return [evidence.plan.cell(protocol, publishers=n) for n in evidence.plan.publishers]


def _constant(evidence: Evidence, cells: Sequence[Configuration]) -> bool | None:
    """Whether all are within a tenth of the first, topology by topology."""
    first = cells[0]
    parts = [Part("below", _tenth_above(evidence, first, cell)) for cell in cells[1:]]
    parts += [Part("above", evidence.lead(signalling, cell, first, 1 - EQUAL)) for cell in cells[1:]]
    return all_hold([part.holds for part in parts])


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
        parts = [
            Part("more by", evidence.difference(signalling, cells[-1], cells[0])),
            Part("less than twice by", _reversed(evidence.lead(signalling, cells[-1], cells[0], 2.0))),
        ]
        holds = all_hold([part.holds for part in parts])
        margins = _by({part.name: part.margin for part in parts})
        points.append(Point(protocol, holds, _curve(evidence, cells), margins))
    counts = "/".join(map(str, evidence.plan.publishers))
    numbers = f"{counts} publishers. " + "; ".join(f"{point.at}: {point.numbers}" for point in points)
    return _over_readings(claim, "the protocol", points, numbers)


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
