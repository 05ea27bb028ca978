"""Steadier trees (spec mft-pubsub F37): which copy of a heartbeat names the parent, and what that spares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from godwit.lab.intervals import Interval, of_worlds
from godwit.lab.mft.cells import Quantity
from godwit.lab.mft.grid import DRAIN_SHARE, TUNED
from godwit.lab.mft.results import Results
from godwit.lab.mft.runs import Configuration, Result
from godwit.lab.pages import Page, Table
from godwit.protocols.topology.election import Choice

HOLD_S, PATIENCE_S = 0.05, 2.5

TREES: Mapping[str, Mapping[str, Any]] = {
    "first copy": {"patience_s": 0.0},
    "sticky": {"choice": Choice.STICKY, "hold_s": HOLD_S, "patience_s": 0.0},
    "balanced": {"choice": Choice.BALANCED, "hold_s": HOLD_S, "patience_s": 0.0},
    "patient": {"patience_s": PATIENCE_S},
    "patient, balanced": {"choice": Choice.BALANCED, "hold_s": HOLD_S, "patience_s": PATIENCE_S},
}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The same worlds under every tree."""

    sizes: tuple[int, ...] = (8, 16)
    speeds_mps: tuple[float, ...] = (4.0, 8.0)
    seeds: int = 3
    protocols: tuple[str, ...] = ("mft", "hardened")
    publish_s: float = 60.0

    def runs(self, tree: str, protocol: str, size: int) -> list[Configuration]:
        return [
            Configuration(
                size=size,
                speed_mps=speed,
                seed=seed,
                protocol=protocol,
                publish_s=self.publish_s,
                drain_s=self.publish_s * DRAIN_SHARE,
                **{**TUNED[protocol], **TREES[tree]},
            )
            for speed in self.speeds_mps
            for seed in range(1, self.seeds + 1)
        ]

    def all(self) -> list[Configuration]:
        return [
            run
            for size in sorted(self.sizes, reverse=True)
            for protocol in self.protocols
            for tree in TREES
            for run in self.runs(tree, protocol, size)
        ]


COLUMNS: Mapping[str, Quantity] = {
    "migrations/min": lambda result: result.migrations_per_min,
    "attachments/min": lambda result: result.attachments_per_min,
    "rate": lambda result: result.rate,
    "of all wanted": lambda result: result.honest_rate,
    "delay s": lambda result: result.delay_mean_s,
    "messages/node": lambda result: result.messages_per_node,
    "kB/node": lambda result: result.bytes_per_node / 1e3,
}


def page(comparison: Comparison, results: Results, command: str) -> Page:
    rows = [
        (protocol, f"C{size}", tree, *_row(comparison, results, tree, protocol, size))
        for size in comparison.sizes
        for protocol in comparison.protocols
        for tree in TREES
    ]
    note = (
        f"Means over {comparison.seeds} seeds at {', '.join(f'{s:g}' for s in comparison.speeds_mps)} m/s with their"
        f" 95 % intervals; in brackets the difference from the first copy in the same worlds, where it is clear"
        f" of zero. Held back {HOLD_S * 1e3:g} ms; patience {PATIENCE_S:g} s."
    )
    lead = f"Which copy of a heartbeat names the parent, and the broker of a client. Made by `{command}`."
    table = Table("Trees", note, ("protocol", "size", "tree", *COLUMNS), rows)
    return Page("Steadier trees", lead, [], [table])


def _row(comparison: Comparison, results: Results, tree: str, protocol: str, size: int) -> list[str]:
    mine = _by_world(results, comparison.runs(tree, protocol, size))
    plain = _by_world(results, comparison.runs("first copy", protocol, size))
    cells = []
    for quantity in COLUMNS.values():
        mean = of_worlds((seed, quantity(result)) for (_, seed), result in mine.items())
        gain = of_worlds((world[1], quantity(mine[world]) - quantity(plain[world])) for world in mine if world in plain)
        cells.append(_cell(mean, gain))
    return cells


def _by_world(results: Results, wanted: Sequence[Configuration]) -> dict[tuple[float, int], Result]:
    return {(row.configuration.speed_mps, row.configuration.seed): row.result for row in results.of(wanted)}


def _cell(mean: Interval | None, gain: Interval | None) -> str:
    if mean is None:
        return "-"
    clear = gain is not None and gain.is_positive is not None
    return f"{mean} ({gain.mean:+.3g})" if clear and gain is not None else str(mean)
