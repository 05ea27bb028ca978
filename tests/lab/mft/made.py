"""Rows of runs that never ran, with figures that a test makes up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from godwit.lab.mft.grid import Grid
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Configuration, Result

Figures = dict[str, Any]
Make = Callable[[Configuration], Figures]


def result(**figures: Any) -> Result:
    usual: Figures = {
        "published": 100,
        "wanted": 100,
        "routed": 100,
        "delivered": 80,
        "delivered_routed": 80,
        "replayed": 10,
        "duplicates": 0,
        "delay_mean_s": 0.2,
        "delay_direct_mean_s": 0.1,
        "delay_replayed_mean_s": 1.0,
        "hops_mean": 2.0,
        "messages_per_node": 50.0,
        "messages_per_node_without_beacons": 20.0,
        "bytes_per_node": 1000.0,
        "messages_by_role": {"broker": 100.0, "subscriber": 10.0, "publisher": 20.0},
        "messages_by_type": {"Heartbeat": 30, "Pub": 20},
        "repeated_by_type": {"Pub": 2},
        "messages_by_depth": {"0": 4.0, "1": 1.0},
        "beats_by_depth": {"0": 10, "1": 20},
        "migrations_per_min": 5.0,
        "attachments_per_min": 6.0,
        "dropped": {"b00": 1},
        "receptions": 1000,
        "wall_s": 1.0,
        "cpu_s": 1.0,
        "digest": "00",
    }
    return Result(**{**usual, **figures})


def rows(runs: list[Configuration], make: Make) -> list[Row]:
    return [Row(run, result(**make(run))) for run in runs]


def noisy(grid: Grid, run: Configuration, figure: float) -> int:
    """A count with a little of the seed in it, so that there is a spread to speak of."""
    return round(figure) + run.seed % 2
