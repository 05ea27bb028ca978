"""Figures 5.11 to 5.14 again, as PNG."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from godwit.lab.relocation.evidence import Evidence, latency, signalling
from godwit.lab.relocation.plan import TABLE
from godwit.lab.relocation.runs import Configuration
from godwit.lab.relocation.verdicts import PUBLISHED_MS

SIZE_IN = (6.4, 3.8)
DPI = 110


def drawn(evidence: Evidence) -> dict[str, bytes]:
    """Caption and picture."""
    plan = evidence.plan
    plots: dict[str, Callable[[Axes], None]] = {"Latency beside table 5.4": lambda axes: _latency(axes, evidence)}
    for filters, wanted in (("one", "all want the same"), ("ranges", "random ranges")):
        plots[f"5.13: cost by subscribers, {wanted}"] = lambda axes, filters=filters: _lines(  # type: ignore[misc]
            axes,
            evidence,
            plan.subscribers,
            lambda name, n: plan.cell(name, "border", filters, subscribers=n),
            "subscribers",
        )
    plots["5.14: cost by publishers"] = lambda axes: _lines(
        axes, evidence, plan.publishers, lambda name, n: plan.cell(name, publishers=n), "publishers"
    )
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


def _lines(
    axes: Axes, evidence: Evidence, counts: Sequence[int], cell: Callable[[str, int], Configuration], what: str
) -> None:
    for protocol in TABLE:
        found = [(n, evidence.mean(signalling, cell(protocol, n))) for n in counts]
        points = [(n, mean.mean) for n, mean in found if mean is not None]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", ms=4, label=protocol)
    axes.set_yscale("log")
    axes.set_xlabel(what)
    axes.set_ylabel("messages a handover")


def _latency(axes: Axes, evidence: Evidence) -> None:
    means = [evidence.mean(latency, evidence.plan.cell(protocol)) for protocol in TABLE]
    places = range(len(TABLE))
    axes.bar([place - 0.2 for place in places], [told for told, _ in PUBLISHED_MS.values()], 0.4, label="table 5.4")
    axes.bar([place + 0.2 for place in places], [mean.mean if mean else 0.0 for mean in means], 0.4, label="ours")
    axes.set_xticks(list(places), [name.replace(" ", "\n") for name in TABLE], fontsize=7)
    axes.set_ylabel("ms")
