"""The six plots of the published evaluation (spec mft-pubsub 3.4), as PNG."""

from __future__ import annotations

import io
from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from godwit.lab.mft.cells import Quantity
from godwit.lab.mft.verdicts import Evidence, delay_s, delivered, honest_rate, hops, messages, rate

LABELS = {"mft": "MFT as published", "hardened": "MFT hardened", "aodv": "AODV"}
COLOURS = {"mft": "#1f6fb4", "hardened": "#2a9d4a", "aodv": "#d1495b"}
SIZE_IN = (6.4, 3.8)
DPI = 110


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
    return {caption: _picture(draw) for caption, draw in plots.items()}


def _picture(draw: Callable[[Axes], None]) -> bytes:
    figure = Figure(figsize=SIZE_IN, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, metadata={"Software": None})
    return out.getvalue()


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
                    (left + i, mean.mean)
                    for i, speed in enumerate(cells.speeds)
                    if (mean := cells.mean(quantity, protocol, size, speed)) is not None
                ]
                label = LABELS[protocol] if not group and quantity is rate else None
                axes.plot(*zip(*points, strict=True), style, color=COLOURS[protocol], label=label, ms=4, lw=1)
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
