"""The plots P17 to P25 of the evaluation (spec data-gathering 4.5), as PNG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from godwit.lab.gathering.evidence import Evidence, Quantity
from godwit.lab.gathering.plan import BITS
from godwit.lab.gathering.runs import Configuration
from godwit.lab.gathering.verdicts import associations, handover, hops, logarithmic, overhead
from godwit.lab.pages import line, picture, published


def drawn(evidence: Evidence) -> dict[str, bytes]:
    """Caption and picture."""
    plan = evidence.plan

    def s1(bits: int) -> Callable[[int], Configuration]:
        return lambda size: plan.s1(size, bits)

    def s2(bits: int) -> Callable[[int], Configuration]:
        return lambda size: plan.s2(size, bits)

    plots: dict[str, Callable[[Axes], None]] = {
        "P17a: LBM hops, mean": lambda axes: _by_bits(axes, evidence, s1, hops, reference=True),
        "P17b: LBM hops, longest": lambda axes: _by_bits(axes, evidence, s1, lambda r: r.hops_max, reference=True),
        "P17c: LBM hops, standard deviation": lambda axes: _by_bits(axes, evidence, s1, lambda r: r.hops_std),
        "P18: LBM overhead": lambda axes: _by_bits(axes, evidence, s1, overhead, told=[{8: 2.6, 64: 4.5}]),
        "P19: IDM hops, mean": lambda axes: _by_bits(axes, evidence, s2, hops, reference=True),
        "P20: IDM overhead": lambda axes: _by_bits(axes, evidence, s2, overhead, told=IDM_OVERHEAD),
        "P21: associations in a mobile run": lambda axes: _line(axes, evidence, plan.m, associations, "all clients"),
        "P24: handover messages a relocation": lambda axes: _handovers(axes, evidence),
    }
    series = evidence.series()
    if series is not None:
        plots |= {
            "P22: latency, a client hardly ever away (N = 24)": lambda axes: _latency(axes, series["short"]),
            "P23: latency, the client away longest (N = 24)": lambda axes: _latency(axes, series["long"]),
            "P25: attached clients and buffered items at one broker (N = 24)": lambda axes: _storage(axes, series),
        }
    return {caption: picture(draw) for caption, draw in sorted(plots.items())}


def _by_bits(
    axes: Axes,
    evidence: Evidence,
    setting: Callable[[int], Callable[[int], Configuration]],
    quantity: Quantity,
    *,
    reference: bool = False,
    told: Sequence[Mapping[float, float]] = (),
) -> None:
    for bits in BITS:
        _line(axes, evidence, setting(bits), quantity, f"b = {bits}")
    if reference:
        sizes = evidence.plan.sizes
        axes.plot(sizes, logarithmic(sizes), "k--", label="log2 N", lw=1)
    for points in told:
        published(axes, points)


IDM_OVERHEAD: Sequence[Mapping[float, float]] = [{8: 2.0, 64: last} for last in (3.4, 3.3, 3.0)]
"""For digits of 1, 2 and 4 bits."""


def _handovers(axes: Axes, evidence: Evidence) -> None:
    _line(axes, evidence, evidence.plan.m, handover, "b = 4, k = 3")
    published(axes, {8: 3.7, 64: 6.1})


def _line(
    axes: Axes, evidence: Evidence, setting: Callable[[int], Configuration], quantity: Quantity, label: str
) -> None:
    line(axes, [(size, evidence.mean(quantity, setting(size))) for size in evidence.plan.sizes], label)
    axes.set_xlabel("brokers")


def _latency(axes: Axes, shown: dict[str, Any]) -> None:
    if shown["latencies"]:
        axes.plot(*zip(*shown["latencies"], strict=True), ".", ms=4, label="item")
    for at, time_s in enumerate(shown["associations"]):
        axes.axvline(time_s, color="tab:red", lw=0.8, label="relocation" if not at else None)
    axes.set_xlabel("published, s")
    axes.set_ylabel("latency, s")


def _storage(axes: Axes, series: dict[str, Any]) -> None:
    times, attached, buffered = zip(*series["storage"], strict=True)
    axes.step(times, attached, label="attached clients")
    axes.step(times, buffered, label="buffered items")
    axes.set_xlabel("s")
