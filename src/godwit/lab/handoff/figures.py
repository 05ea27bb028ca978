"""The plots of the published evaluation that survive as words (spec proactive-handoff 4.5), as PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes

from godwit.lab.handoff import evidence as of
from godwit.lab.handoff.evidence import Evidence, Quantity
from godwit.lab.handoff.grid import PUBLISHED_SCHEMES
from godwit.lab.handoff.runs import Result
from godwit.lab.intervals import Interval
from godwit.lab.models import published as text
from godwit.lab.pages import crossed, line, picture, published

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
        "Throughput by subscribers, RND": lambda axes: _by_size(
            axes, evidence, of.throughput, "messages a second", _every_other(text.THROUGHPUT)
        ),
        "Loss by subscribers, RND": lambda axes: _by_size(axes, evidence, of.loss, "%", _every_other(text.LOSS)),
        "Handoff latency by subscribers, RND": lambda axes: _by_size(
            axes, evidence, of.handoff, "seconds", text.HANDOFF_S
        ),
        "Distribution of handoff latency, RND": lambda axes: _deciles(axes, evidence),
    }
    return {caption: picture(plot) for caption, plot in plots.items()}


def _every_other(table: Mapping[int, Sequence[float]]) -> dict[int, Sequence[float]]:
    """The columns of random motion, which stand beside those of motion between neighbors."""
    return {size: row[::2] for size, row in table.items()}


def _by_size(
    axes: Axes, evidence: Evidence, quantity: Quantity, unit: str, told: Mapping[int, Sequence[float]]
) -> None:
    """`told` are the published figures of the three schemes, by size."""
    for scheme in evidence.schemes:
        color = COLOURS.get(scheme, "#444444")
        line(axes, [(k, evidence.interval(quantity, scheme, k)) for k in evidence.sizes], scheme, color=color)
    for at, scheme in enumerate(PUBLISHED_SCHEMES):
        published(axes, {size: row[at] for size, row in told.items()}, COLOURS[scheme])
    axes.set_xlabel("subscribers")
    axes.set_ylabel(unit)


def _deciles(axes: Axes, evidence: Evidence) -> None:
    size = max(evidence.sizes_of("proactive"), default=0)
    for scheme in evidence.schemes:
        found = [(q / 10, evidence.interval(partial(_decile, q), scheme, size)) for q in range(1, 10)]
        points = [(seconds, Interval(share, 0.0, seconds.runs)) for share, seconds in found if seconds is not None]
        crossed(axes, points, scheme, color=COLOURS.get(scheme, "#444444"))
    axes.set_xlabel("seconds")
    axes.set_ylabel("share of handoffs")


def _decile(q: int, result: Result) -> float:
    return result.latency_deciles_s[str(q)]
