"""The plots of the published evaluation that survive as words (spec proactive-handoff 4.5), as PNG."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.axes import Axes

from godwit.lab.handoff import evidence as of
from godwit.lab.handoff.evidence import Evidence, Quantity
from godwit.lab.pages import picture

COLOURS = {
    "durable": "#8a8f98",
    "reactive": "#d1495b",
    "proactive": "#1f6fb4",
    "ours": "#2a9d4a",
    "memory": "#7b5ea7",
    "literal": "#b07d2b",
}


def drawn(evidence: Evidence) -> dict[str, bytes]:
    """Caption and picture."""
    plots: dict[str, Callable[[Axes], None]] = {
        "Throughput by subscribers, RND": lambda axes: _by_size(axes, evidence, of.throughput, "messages a second"),
        "Loss by subscribers, RND": lambda axes: _by_size(axes, evidence, of.loss, "%"),
        "Handoff latency by subscribers, RND": lambda axes: _by_size(axes, evidence, of.handoff, "seconds"),
        "Distribution of handoff latency, RND": lambda axes: _deciles(axes, evidence),
    }
    return {caption: picture(plot) for caption, plot in plots.items()}


def _by_size(axes: Axes, evidence: Evidence, quantity: Quantity, unit: str) -> None:
    for scheme in evidence.schemes:
        points = [
            (size, mean) for size in evidence.sizes if (mean := evidence.mean(quantity, scheme, size)) is not None
        ]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=COLOURS.get(scheme, "#444444"), label=scheme, ms=4)
    axes.set_xlabel("subscribers")
    axes.set_ylabel(unit)


def _deciles(axes: Axes, evidence: Evidence) -> None:
    size = max(evidence.sizes_of("proactive"), default=0)
    for scheme in evidence.schemes:
        runs = evidence.results(scheme, size)
        if runs:
            shares = range(1, 10)
            seconds = [sum(run.latency_deciles_s[str(q)] for run in runs) / len(runs) for q in shares]
            axes.plot(seconds, [q / 10 for q in shares], "o-", color=COLOURS.get(scheme, "#444444"), label=scheme, ms=4)
    axes.set_xlabel("seconds")
    axes.set_ylabel("share of handoffs")
