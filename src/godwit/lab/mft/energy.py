"""Days of battery life by protocol (spec mft-pubsub F38): radios always on, or awake around the rounds of heartbeats.

The published protocols keep all radios on, and then nothing else matters. Here radios sleep for most of each heartbeat
period, with heartbeats that carry other messages or without, and what that costs is told beside what it saves: events
delivered, and their delay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from godwit.lab.intervals import interval_if_any
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Configuration, Result
from godwit.lab.pages import Table

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "always on, as published": {},
    "awake for a half": {"awake": 0.5},
    "awake for a fifth": {"awake": 0.2},
    "awake for a tenth": {"awake": 0.1},
    "always on, heartbeats carry": {"carry": True},
    "awake for a half, heartbeats carry": {"awake": 0.5, "carry": True},
    "awake for a fifth, heartbeats carry": {"awake": 0.2, "carry": True},
    "awake for a tenth, heartbeats carry": {"awake": 0.1, "carry": True},
}
COLUMNS: Mapping[str, tuple[Callable[[Result], float], str]] = {
    "days of battery": (lambda r: r.battery_days, ".1f"),
    "until the first is empty": (lambda r: r.battery_days_first, ".1f"),
    "mW": (lambda r: r.power_mw, ".1f"),
    "delivered of all wanted": (lambda r: r.honest_rate, ".3f"),
    "delay s": (lambda r: r.delay_mean_s, ".2f"),
    "messages/node": (lambda r: r.messages_per_node, ".0f"),
    "kB/node": (lambda r: r.bytes_per_node / 1e3, ".1f"),
}


class EnergyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The same worlds for every protocol and rhythm."""

    seeds: int = 3
    first_seed: int = 261
    protocols: tuple[str, ...] = ("mft", "hardened", "aodv")
    size: int = 8
    speed_mps: float = 4.0
    publish_s: float = 100.0
    drain_s: float = 40.0

    def cell(self, protocol: str, variant: str) -> list[Configuration]:
        """The runs of one line of the table; none where a protocol cannot do it."""
        changes = VARIANTS[variant]
        if protocol == "aodv" and changes.get("carry"):
            return []
        return [
            Configuration(
                size=self.size,
                speed_mps=self.speed_mps,
                seed=seed,
                protocol=protocol,
                publish_s=self.publish_s,
                drain_s=self.drain_s,
                patience_s=2.5 if protocol == "hardened" else 0.0,
                **changes,
            )
            for seed in range(self.first_seed, self.first_seed + self.seeds)
        ]

    def runs(self) -> list[Configuration]:
        return [run for protocol in self.protocols for variant in VARIANTS for run in self.cell(protocol, variant)]


def table(plan: EnergyPlan, rows: Sequence[Row]) -> Table:
    known = {row.configuration: row.result for row in rows}
    lines = []
    for protocol in plan.protocols:
        for variant in VARIANTS:
            found = [known[run] for run in plan.cell(protocol, variant) if run in known]
            if found:
                lines.append((protocol, variant, *_cells(found)))
    note = (
        f"C{plan.size} at {plan.speed_mps:g} m/s, {plan.seeds} seeds, means with 95 % intervals. Listening takes"
        " 62 mW, sending 57, sleeping 1.4; a battery is two AA cells, 18.7 kJ; nothing but the radio takes anything."
        " Radios wake together at the beginning of each heartbeat period."
    )
    return Table("Days of battery life (F38)", note, ("protocol", "radio", *COLUMNS), lines)


def _cells(found: Sequence[Result]) -> list[str]:
    cells = []
    for quantity, form in COLUMNS.values():
        mean = interval_if_any(map(quantity, found))
        assert mean is not None
        cells.append(f"{mean.mean:{form}}" + (f" ± {mean.half:.2g}" if mean.runs > 1 else ""))
    return cells
