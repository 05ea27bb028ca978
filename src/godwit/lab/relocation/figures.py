"""Figures 5.11 to 5.14 again, as PNG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from godwit.lab.pages import line, picture
from godwit.lab.relocation.evidence import Evidence, latency, signalling
from godwit.lab.relocation.plan import TABLE
from godwit.lab.relocation.runs import Configuration
from godwit.lab.relocation.verdicts import PUBLISHED_MS


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
    return {caption: picture(draw) for caption, draw in plots.items()}


def _lines(
    axes: Axes, evidence: Evidence, counts: Sequence[int], cell: Callable[[str, int], Configuration], what: str
) -> None:
    for protocol in TABLE:
        line(axes, [(n, evidence.mean(signalling, cell(protocol, n))) for n in counts], protocol)
    axes.set_yscale("log")
    axes.set_xlabel(what)
    axes.set_ylabel("messages a handover")


def _latency(axes: Axes, evidence: Evidence) -> None:
    means = [evidence.mean(latency, evidence.plan.cell(protocol)) for protocol in TABLE]
    places = range(len(TABLE))
    told, spread = zip(*PUBLISHED_MS.values(), strict=True)
    half = [mean.half if mean and math.isfinite(mean.half) else 0.0 for mean in means]
    axes.bar([place - 0.2 for place in places], told, 0.4, yerr=spread, label="table 5.4, with its deviation")
    axes.bar(
        [place + 0.2 for place in places], [mean.mean if mean else 0.0 for mean in means], 0.4, yerr=half, label="ours"
    )
    axes.set_xticks(list(places), [name.replace(" ", "\n") for name in TABLE], fontsize=7)
    axes.set_ylabel("ms")
