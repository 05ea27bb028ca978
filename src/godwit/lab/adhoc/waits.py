"""Where each claim holds along gossip's longest wait, which the text does not report: a table, and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from godwit.lab.adhoc.evidence import Evidence, delivery, overhead
from godwit.lab.adhoc.readings import NO_SLOTS, SLOTS, WAITS, Known, at
from godwit.lab.adhoc.verdicts import GossipCurve
from godwit.lab.claims import Finding, Margin, Verdict
from godwit.lab.intervals import Interval
from godwit.lab.pages import Table, line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WITHOUT_GOSSIP = ("E2a", "E3a", "E3b", "E4a", "E4c", "E5")
"""They compare proximity-driven routing with itself: whatever gossip waits, their runs are the same."""
WITH_GOSSIP = ("E1a", "E1b", "E1c", "E2b", "E2c", "E2d", "E2e", "E3c", "E4b", "E6", "E7a", "E7b", "E7c")

HEADER = ("claim", "closest part", *(name.removeprefix(SLOTS) for name in WAITS), "no slots, 10 ms")
NOTE = (
    "Does a claim hold, and by how much in the part that is closest to failing or fails most; a part of another name is"
    " named. Where E6 and E7c fail by proximity-driven routing alone, gossip was not run. "
    f"{', '.join(WITHOUT_GOSSIP)} have no gossip in them."
)
HELD = {Verdict.REPRODUCED: "holds", Verdict.NOT_REPRODUCED: "fails", Verdict.NOT_DECIDABLE: "open"}


def table(known: Known) -> Table:
    rows = [
        (name, *_row(name, known)) for name in WITH_GOSSIP if any(at(name, own)[0].margins for own in known.values())
    ]
    return Table("How long gossip waits (E1 to E7)", NOTE, HEADER, rows)


def _row(name: str, known: Known) -> list[str]:
    readings = [reading for reading in (*WAITS, NO_SLOTS) if reading in known]
    found = [at(name, known[reading]) for reading in readings]
    part = closest([finding for finding, _ in found])
    smaller = [evidence is not known[reading][0] for reading, (_, evidence) in zip(readings, found, strict=True)]
    return [part, *(_cell(finding, part, short) for (finding, _), short in zip(found, smaller, strict=True))]


def _cell(finding: Finding, part: str, is_short: bool) -> str:
    own = next((margin for margin in finding.margins if margin.of == part), None)
    if own is None and finding.margins:
        own = min(finding.margins, key=_room)
    if own is None:
        return "not run"
    named = "" if own.of == part else f" ({own.of})"
    size = " of size short" if is_short else ""
    return f"{HELD[finding.verdict]}: {own.by}{named}, {own.by.runs} worlds{size}"


def closest(found: Sequence[Finding]) -> str:
    """The part of the first of these that comes closest to failing in any, or fails the most."""
    names = {margin.of for margin in found[0].margins} if found else set()
    every = [margin for finding in found for margin in finding.margins if margin.of in names or not names]
    return min(every, key=_room).of if every else ""


def _room(margin: Margin) -> float:
    """In intervals, since parts have units of their own; without an interval there is all the room."""
    if not margin.by.half:
        return math.copysign(math.inf, margin.by.mean)
    return margin.by.mean / margin.by.half if math.isfinite(margin.by.half) else math.inf


NUMBERS: Mapping[str, tuple[str, Callable[[Evidence], Interval | None]]] = {
    "proximity-driven routing without credits: delivery": ("0.70", lambda e: e.mean(delivery, e.plan.cell())),
    "its packets per delivery": ("2.5", lambda e: e.mean(overhead, e.plan.cell())),
    "gossip's packets per delivery at a delivery of 0.70": ("5.5", lambda e: _packets_at(e, 0.7)),
    "gossip's packets per delivery at a delivery of 0.50": ("5 or more", lambda e: _packets_at(e, 0.5)),
    "gossip's delivery at 2.5 packets per delivery": ("0.30", lambda e: _delivery_at(e, 2.5)),
}
"""All numbers of the text that were measured (E1c, E2a to E2c), and how they are measured again."""


def _packets_at(evidence: Evidence, wanted: float) -> Interval | None:
    curve = GossipCurve(evidence)
    return curve.each(partial(curve.overhead_at, wanted))


def _delivery_at(evidence: Evidence, packets: float) -> Interval | None:
    curve = GossipCurve(evidence)
    return curve.each(partial(curve.delivery_at, packets))


def published(known: Known) -> Table:
    """What the text has in numbers beside ours, reading by reading."""
    rows = []
    for what, (told, measured) in NUMBERS.items():
        cells = []
        for reading in (*WAITS, NO_SLOTS):
            found = [(measured(own), own) for own in known.get(reading, ())]
            mean, evidence = next((both for both in found if both[0] is not None), (None, None))
            size = " of size short" if evidence is not None and evidence is not known[reading][0] else ""
            cells.append(f"{mean}, {mean.runs} worlds{size}" if mean is not None else "not run")
        rows.append((what, told, *cells))
    return Table("Published numbers beside ours (E1, E2)", PUBLISHED_NOTE, ("what", "published", *HEADER[2:]), rows)


PUBLISHED_NOTE = (
    "In the default scenario, by the longest wait of gossip; gossip's are read off the line through its probabilities,"
    " world by world. The text's other statements on these experiments are in words and figures."
)


def swept(known: Known, names: Sequence[str]) -> dict[str, dict[float, Margin]]:
    """Of these claims those that were run at more than one wait: the part of the table, by the wait in milliseconds."""
    found: dict[str, dict[float, Margin]] = {}
    for name in names:
        each = {reading: at(name, known[reading])[0] for reading in (*WAITS, NO_SLOTS) if reading in known}
        part = closest(list(each.values()))
        found[name] = {
            WAITS[reading] * 1e3: margin
            for reading, finding in each.items()
            for margin in finding.margins
            if reading in WAITS and margin.of == part
        }
    return {name: own for name, own in found.items() if len(own) > 1}


def draw_margins(axes: Axes, found: Mapping[str, Mapping[float, Margin]]) -> None:
    """Of each claim its margins, as shares of the largest; above zero the claim is true.

    Claims stand a little beside one another, so that their intervals can be told apart.
    """
    for place, (name, by_wait) in enumerate(found.items()):
        largest = max(abs(margin.by.mean) for margin in by_wait.values()) or 1.0
        drawn = [(x + place * BESIDE_MS, margin.by.scaled(1 / largest)) for x, margin in by_wait.items()]
        line(axes, drawn, f"{name}: {next(iter(by_wait.values())).of}", ms=3)
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -CUT), min(high, CUT))
    axes.axhline(0, color="#b3261e", linewidth=1)
    axes.set_xlabel("gossip waits up to, ms")
    axes.set_ylabel(f"margin, of the largest; cut at {CUT:g}")


BESIDE_MS, CUT = 0.001, 3.0


def draw_curves(axes: Axes, known: Known) -> None:
    """Gossip's delivery over its probability, a line for each reading."""
    for reading, sizes in known.items():
        evidence = next((own for own in sizes if GossipCurve(own).seeds), None)
        if evidence is not None:
            settings = {p: evidence.plan.gossip(p) for p in evidence.plan.probabilities}
            found = [(p, evidence.mean(delivery, setting)) for p, setting in settings.items()]
            line(axes, found, reading.replace("gossip waits ", ""), ms=3)
    axes.set_xlabel("probability")
    axes.set_ylabel("delivery")
