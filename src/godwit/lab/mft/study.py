"""The study of MFT-PubSub: a screening of what the text leaves open, two readings at size, area, and energy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from godwit.lab.claims import Claim, Dependence, Finding, Verdict, along, judged, undecided
from godwit.lab.mft import area, energy, screening
from godwit.lab.mft.area import AreaPlan
from godwit.lab.mft.claims import CLAIMS
from godwit.lab.mft.energy import EnergyPlan
from godwit.lab.mft.grid import BY_SPEED, QUICK, Grid
from godwit.lab.mft.results import Results, Row
from godwit.lab.mft.runs import Configuration, run
from godwit.lab.mft.screening import FACTORS, Margins, Screening
from godwit.lab.mft.verdicts import TRACES, Evidence, findings
from godwit.lab.pages import Table
from godwit.lab.studies import LeftOut, Outcome, Parameter, Study

TEXT = {"acknowledge": "subscriber", "retry_s": 0.0}
BOTH = ("mft", "aodv")
PEAK_MPS = 6.0
"""From where on deliveries fall, as published (E8)."""
EVERYWHERE = 0.95
"""A claim that holds, or fails, in so many of all settings does not hang on any of them."""


EXPLAINS = 0.15
"""A factor that explains less of a margin's variance than this is not what a claim hangs on."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the study runs in one size."""

    screening: Screening = Screening()
    grid: Grid = Grid(seeds=10, first_seed=201, protocols=BOTH, needed=True)
    area: AreaPlan = AreaPlan()
    energy: EnergyPlan = EnergyPlan()
    quick: bool = False

    @property
    def readings(self) -> Mapping[str, Grid]:
        """As ours and as the text has it; AODV is the same in both."""
        return {
            "the text's acknowledgements, no retry": msgspec.structs.replace(self.grid, **TEXT),
            "acknowledged hop by hop, retried": self.grid,
        }

    def runs(self) -> list[Configuration]:
        """What only many worlds at size decide comes before the rest of the grids, the text's reading first."""
        grids = [run for grid in self.readings.values() for run in grid.cells()]
        first = sorted((run for run in grids if self._left_open(run)), key=lambda one: one.seed)
        by_seed = sorted(grids, key=lambda one: one.seed)
        others = [*self.screening.runs(), *self.energy.runs(), *self.area.runs()]
        return list(dict.fromkeys([*others, *first, *by_seed]))

    def _left_open(self, run: Configuration) -> bool:
        """No factor of the screening explains E3, E8 and E9: they compare speeds, of which three are enough."""
        ends = (self.grid.speeds_mps[0], self.grid.speeds_mps[-1])
        return run.size == BY_SPEED and (run.speed_mps in ends or (run.protocol == "mft" and run.speed_mps == PEAK_MPS))


PLANS: Mapping[str, Plan] = {
    "quick": Plan(
        screening=Screening(publish_s=10.0, drain_s=4.0),
        grid=msgspec.structs.replace(QUICK, protocols=BOTH, needed=True, seeds=2),
        area=AreaPlan(seeds=2, publish_s=30.0, drain_s=12.0, ranges_m=(46.0,)),
        energy=EnergyPlan(seeds=2, publish_s=30.0, drain_s=12.0, protocols=("mft", "hardened")),
        quick=True,
    ),
    "short": Plan(
        grid=Grid(seeds=4, first_seed=201, protocols=BOTH, needed=True, publish_s=100.0),
        area=AreaPlan(seeds=3, publish_s=100.0, drain_s=40.0, sides_m=(35.0, 60.0, 85.0, 110.0, 220.0)),
    ),
    "published": Plan(),
}


def outcome(rows: Sequence[Row], size: str) -> Outcome:
    plan = PLANS[size]
    known = {row.configuration: row for row in rows}
    margins = Margins([known[run] for run in plan.screening.runs() if run in known])
    by_reading = {name: _evidence(grid, known, quick=plan.quick) for name, grid in plan.readings.items()}
    found = _findings(plan, margins, by_reading, rows)
    tables = [
        _factors(margins),
        _together(margins),
        _readings(by_reading),
        area.table(plan.area, rows),
        energy.table(plan.energy, rows),
    ]
    text = next(iter(by_reading.values()))
    return Outcome(
        lead=_lead(plan, rows, margins),
        findings=found,
        tables=tables,
        parameters=PARAMETERS,
        left_out=LEFT_OUT,
        seeds=f"screening {plan.screening.first_seed}; grid from {plan.grid.first_seed}; area from"
        f" {plan.area.first_seed}; energy from {plan.energy.first_seed}",
        figures=partial(_figures, margins, text, plan, rows),
    )


def _evidence(grid: Grid, known: Mapping[Configuration, Row], *, quick: bool) -> Evidence:
    rows = [known[run] for run in grid.cells() if run in known]
    return Evidence(rows, (), grid.reference_mps, quick=quick)


def _findings(plan: Plan, margins: Margins, by_reading: Mapping[str, Evidence], rows: Sequence[Row]) -> list[Finding]:
    at_size = {name: {f.claim.name: f for f in findings(evidence)} for name, evidence in by_reading.items()}
    found = []
    for name in CLAIMS:
        if name in TRACES:
            found.append(next(iter(at_size.values()))[name])
        elif name == "E17":
            found.append(area.finding(plan.area, rows))
        else:
            found.append(
                screened(name, margins, {reading: own[name] for reading, own in at_size.items()}, quick=plan.quick)
            )
    return found


def screened(name: str, margins: Margins, at_size: Mapping[str, Finding], *, quick: bool) -> Finding:
    """By the screening where it says the same everywhere, else on what it hangs; the grids at size stand beside it.
    Where these differ, the claim hangs on the reading."""
    claim, share = CLAIMS[name], margins.holding(name)
    if share is None:
        return undecided(claim, "the screening was not run", "ten minutes of a core")
    beside = "; ".join(f"{reading}: {_short(one)}" for reading, one in at_size.items())
    numbers = f"holds in {share:.0%} of {len(margins.of(name))} settings. At size, {beside}"
    decided: set[Verdict] = {one.verdict for one in at_size.values()} - {Verdict.NOT_DECIDABLE}
    if share >= EVERYWHERE and decided == {Verdict.REPRODUCED}:
        return judged(claim, True, numbers)
    if share <= 1 - EVERYWHERE and decided == {Verdict.NOT_REPRODUCED} and not quick:
        return judged(claim, False, numbers)
    if not decided and not 1 - EVERYWHERE < share < EVERYWHERE:
        return undecided(
            claim, "every setting says the same, but in one world, and at size none is decided", AT_SIZE, numbers
        )
    if len(decided) > 1 or max(margins.explained(name).values()) < EXPLAINS:
        return _by_reading(claim, at_size, numbers)
    factor = margins.decisive(name)
    curve = margins.curve(name, factor)
    told = along(claim, screening.NAMES[factor], curve, numbers)
    if told.verdict is Verdict.DEPENDS:
        return told
    shares = {value: margins.holding(name, **{factor: value}) or 0.0 for value in FACTORS[factor]}
    told_by_value = ", ".join(f"{share:.0%} at {screening.named(factor, value)}" for value, share in shares.items())
    where = f"in so many settings: {told_by_value}"
    depends = Dependence(f"{screening.NAMES[factor]} and others together", where, tuple(curve))
    return Finding(claim, Verdict.DEPENDS, numbers, depends=depends)


AT_SIZE = "two minutes of a core a world of 500 s, of all cells in both readings"


def _by_reading(claim: Claim, at_size: Mapping[str, Finding], numbers: str) -> Finding:
    """Many worlds at size outweigh one of the screening, where they decide, and differ. And only they can decide where
    nothing that was varied explains the sign, so that it is the world's."""
    points = [point for reading, one in at_size.items() if (point := one.at(reading)).holds is not None]
    if points:
        return along(claim, "the reading of acknowledgements and retries", points, numbers, ordered=False)
    what = "none of the six factors explains its sign in one world, and worlds at size are too few"
    cost = "44 s of a core a world of 500 s: C16 at the slowest and the fastest speed, in both readings"
    told = "; ".join(f"{reading}: {one.missing.what}" for reading, one in at_size.items() if one.missing is not None)
    return undecided(claim, f"{what} ({told})" if told else what, cost, numbers)


def _short(finding: Finding) -> str:
    if finding.missing is None:
        return finding.verdict.value
    if finding.missing.what.startswith("not run"):
        return "not run"
    worlds = min((margin.by.runs for margin in finding.margins), default=0)
    return "one world, which tells nothing" if worlds == 1 else f"too close to tell with {worlds} worlds"


def _lead(plan: Plan, rows: Sequence[Row], margins: Margins) -> str:
    best, _ = margins.together()[0]
    cpu_s = sum(row.result.cpu_s for row in rows)
    return (
        f"{len(rows)} runs, {cpu_s:.0f} s of processor time. A screening of six things that the text does not report,"
        f" all {len(margins.settings)} combinations in one world; two readings of the text at size"
        f" ({plan.grid.publish_s:g} s of publications and {plan.grid.seeds} seeds planned; published are 500 s and 10);"
        f" few nodes in a large area; and days of battery life. The best setting satisfies {best} of"
        f" {len(screening.JUDGED)} claims."
    )


def _factors(margins: Margins) -> Table:
    rows = []
    for name in screening.JUDGED:
        for factor, values in FACTORS.items():
            shares = [margins.holding(name, **{factor: value}) for value in values]
            told = ", ".join(
                f"{screening.named(factor, v)} {s:.0%}" for v, s in zip(values, shares, strict=True) if s is not None
            )
            rows.append((name, screening.NAMES[factor], f"{margins.explained(name)[factor]:.0%}", told))
    note = (
        "For each claim and each factor: how much of the variance of its margin the factor alone explains, and in which"
        " share of the settings with each value the claim holds. One world, so that settings are compared and not dice."
    )
    return Table("What the claims hang on", note, ("claim", "factor", "explains", "holds at"), rows)


def _together(margins: Margins) -> Table:
    best = margins.together()[:5]
    rows = [(f"{count} of {len(screening.JUDGED)}", screening.told(setting)) for count, setting in best]
    return Table("Does one setting satisfy all?", "The five that satisfy the most.", ("claims", "setting"), rows)


def _readings(by_reading: Mapping[str, Evidence]) -> Table:
    rows = [
        (finding.claim.name, name, finding.verdict.value, finding.numbers)
        for name, evidence in by_reading.items()
        for finding in findings(evidence)
        if finding.claim.name not in TRACES and finding.claim.name != "E17"
    ]
    note = "Two readings at size, each claim by its parts, which must be above zero; ± is the 95 % interval over seeds."
    return Table("Two readings at size", note, ("claim", "reading", "verdict", "parts"), sorted(rows, key=_number))


def _number(row: Sequence[str]) -> tuple[int, str]:
    return int(row[0][1:]), row[1]


LEFT_OUT = (
    LeftOut(
        name="E16",
        text="Simulating AODV at the largest size takes about a hundred times as long as MFT.",
        why="how long a simulator runs is a property of that simulator, not of a protocol",
    ),
)

PARAMETERS = (
    Parameter("sizes, areas, speeds, roles, rate", "C2 to C32, 2 to 10 m/s, one event a second", "text"),
    Parameter("radio and MAC", "CC2420, log-distance 2.4, CSMA: Castalia's stock values", "text names them"),
    Parameter("heartbeat period", "1, 2, 5, 10 s, varied; child and leader time-out three periods", "ours"),
    Parameter("acknowledgements", "every hop; the subscriber only, varied", "text and ours"),
    Parameter("retry of stored events", "every second; never, varied", "ours and text"),
    Parameter("destination of an event", "one subscriber; all, varied", "ours"),
    Parameter("AODV", "RFC 3561; hellos only for neighbors; no sequence numbers, varied", "ours and text"),
    Parameter("range", "18, 28, 46 m in the median, varied by power", "ours; 46 m follows from stock values"),
    Parameter("payload", "16 B", "ours (spec 2.10)"),
)


def _figures(margins: Margins, text: Evidence, plan: Plan, rows: Sequence[Row]) -> Mapping[str, bytes]:
    from godwit.lab.mft.figures import drawn, screened

    return {**screened(margins, plan.area, plan.energy, rows), **(drawn(text) if text.cells.rows else {})}


def cost_s(one: Configuration) -> float:
    """Measured on one of two shared cores: with the square of the size, and less with rarer heartbeats."""
    per_s = {2: 0.001, 4: 0.0018, 8: 0.0035, 16: 0.0105, 32: 0.033}.get(one.size, 3.3e-5 * one.size**2)
    crowd = 1.8 if one.workload == "multicast" else 1.0
    return float(per_s * (one.publish_s + one.drain_s) * crowd / math.sqrt(one.period_s))


STUDY = Study(
    name="mft",
    title="MFT-PubSub beside AODV",
    spec="mft-pubsub",
    runs=lambda size: PLANS[size].runs(),
    work=run,
    cost_s=cost_s,
    kept=Results,
    outcome=outcome,
    named=lambda one: f"C{one.size} {one.protocol}",
)
