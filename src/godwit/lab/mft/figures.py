"""The six plots of the published evaluation (spec mft-pubsub 3.4), as PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from godwit.lab.intervals import interval
from godwit.lab.mft.area import AreaPlan
from godwit.lab.mft.area import delivered as delivered_share
from godwit.lab.mft.cells import Quantity
from godwit.lab.mft.energy import VARIANTS, EnergyPlan
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Result
from godwit.lab.mft.screening import FACTORS, JUDGED, Margins
from godwit.lab.mft.verdicts import Evidence, delay_s, delivered, honest_rate, hops, messages, rate
from godwit.lab.pages import crossed, line, picture

LABELS = {"mft": "MFT as published", "hardened": "MFT hardened", "aodv": "AODV"}
COLOURS = {"mft": "#1f6fb4", "hardened": "#2a9d4a", "aodv": "#d1495b"}


def drawn(evidence: Evidence) -> dict[str, bytes]:
    """Caption and picture."""
    at = f"at {evidence.speed_mps:g} m/s"
    plots: dict[str, Callable[[Axes], None]] = {
        "Delivery rate by size and speed, as published (dashed: of all wanted)": lambda axes: _rates(axes, evidence),
        f"Delivered messages by size {at}": lambda axes: _by_size(axes, evidence, delivered, "messages a run"),
        "Delivered messages by speed, C16": lambda axes: _by_speed(axes, evidence, delivered, "messages a run"),
        f"Delay by size {at}": lambda axes: _by_size(axes, evidence, delay_s, "seconds", log=True),
        f"Hops by size {at}": lambda axes: _by_size(axes, evidence, hops, "transmissions"),
        f"Messages per node by size {at}": lambda axes: _by_size(axes, evidence, messages, "messages", log=True),
    }
    return {caption: picture(draw) for caption, draw in plots.items()}


def _rates(axes: Axes, evidence: Evidence) -> None:
    """One group of points for each size, the speeds side by side in it."""
    cells = evidence.cells
    ticks = []
    for group, size in enumerate(cells.sizes):
        left = group * (len(cells.speeds) + 1)
        ticks.append(left + (len(cells.speeds) - 1) / 2)
        for protocol in cells.protocols:
            for quantity, style in ((rate, "o-"), (honest_rate, "x--")):
                points = [
                    (left + i, cells.mean(quantity, protocol, size, speed)) for i, speed in enumerate(cells.speeds)
                ]
                label = LABELS[protocol] if not group and quantity is rate else ""
                line(axes, points, label, fmt=style, color=COLOURS[protocol], ms=4, lw=1)
    axes.set_xticks(ticks, [f"C{size}" for size in cells.sizes])
    axes.set_xlabel(f"size; within each, speeds {', '.join(f'{s:g}' for s in cells.speeds)} m/s")
    axes.set_ylim(0, 1.03)


def _by_size(axes: Axes, evidence: Evidence, quantity: Quantity, unit: str, *, log: bool = False) -> None:
    for protocol in evidence.cells.protocols:
        means = evidence.by_size(quantity, protocol)
        errors = [mean.half if mean.runs > 1 else 0.0 for mean in means.values()]
        heights = [mean.mean for mean in means.values()]
        _line(axes, protocol, [f"C{size}" for size in means], heights, errors)
    axes.set_ylabel(unit)
    axes.set_xlabel("size")
    if log:
        axes.set_yscale("log")


def _by_speed(axes: Axes, evidence: Evidence, quantity: Quantity, unit: str) -> None:
    for protocol in evidence.cells.protocols:
        means = {s: evidence.cells.mean(quantity, protocol, 16, s) for s in evidence.cells.speeds}
        known = {speed: mean for speed, mean in means.items() if mean is not None}
        errors = [mean.half if mean.runs > 1 else 0.0 for mean in known.values()]
        _line(axes, protocol, list(known), [mean.mean for mean in known.values()], errors)
    axes.set_ylabel(unit)
    axes.set_xlabel("m/s")


def _line(axes: Axes, protocol: str, x: list[str] | list[float], heights: list[float], errors: list[float]) -> None:
    if x:
        axes.errorbar(x, heights, errors, fmt="o-", color=COLOURS[protocol], label=LABELS[protocol], capsize=2, ms=4)


def screened(margins: Margins, area_plan: AreaPlan, energy_plan: EnergyPlan, rows: Sequence[Row]) -> dict[str, bytes]:
    """What the screening, the area and the battery have shown."""
    return {
        "Share of all settings in which each claim holds, by heartbeat period": picture(
            lambda axes: _shares(axes, margins)
        ),
        "E17: delivered of all wanted, by the side of the square": picture(lambda axes: _areas(axes, area_plan, rows)),
        "F38: days of battery against delivery": picture(lambda axes: _batteries(axes, energy_plan, rows)),
    }


def _shares(axes: Axes, margins: Margins) -> None:
    for period in FACTORS["period_s"]:
        shares = [margins.holding(name, period_s=period) or 0.0 for name in JUDGED]
        axes.plot(JUDGED, shares, "o", label=f"{period:g} s", ms=5, alpha=0.8)
    axes.set_ylabel("share of settings")
    axes.tick_params(axis="x", labelsize=8)


def _areas(axes: Axes, plan: AreaPlan, rows: Sequence[Row]) -> None:
    for protocol in ("mft", "aodv"):
        for range_m, style in zip(plan.ranges_m, ("o:", "s--", "^-"), strict=False):
            points = [
                (s, mean) for s in plan.sides_m if (mean := delivered_share(rows, protocol, s, range_m)) is not None
            ]
            if points:
                errors = [mean.half if mean.runs > 1 else 0.0 for _, mean in points]
                label = f"{LABELS[protocol]}, {range_m:g} m"
                x, heights = [s for s, _ in points], [mean.mean for _, mean in points]
                axes.errorbar(
                    x, heights, errors, fmt=style, color=COLOURS[protocol], label=label, capsize=2, ms=4, lw=1
                )
    axes.set_xlabel("side of the square, m")
    axes.set_ylabel("delivered of all wanted")


def _batteries(axes: Axes, plan: EnergyPlan, rows: Sequence[Row]) -> None:
    known = {row.configuration: row.result for row in rows}
    for protocol in plan.protocols:
        for carry, style in ((False, "o-"), (True, "s--")):
            points = []
            for variant, changes in VARIANTS.items():
                found = [known[run] for run in plan.cell(protocol, variant) if run in known]
                if found and bool(changes.get("carry")) == carry:
                    days, share = (interval([q(r) for r in found]) for q in (_battery_days, _honest_share))
                    points.append((days, share))
            label = LABELS[protocol] + (", heartbeats carry" if carry else "")
            crossed(axes, points, label, fmt=style, color=COLOURS[protocol])
    axes.set_xlabel("days of two AA cells")
    axes.set_ylabel("delivered of all wanted")


def _battery_days(result: Result) -> float:
    return result.battery_days


def _honest_share(result: Result) -> float:
    return result.honest_rate
