"""A run as an animation: one HTML file that needs nothing else, with a time slider, messages and a broker's tables."""

from __future__ import annotations

import math
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from godwit.sim.brokers.production import Production
from godwit.sim.sight import Sight, frame_of
from godwit.sim.stage import Stage

BEACONS = {"Heartbeat", "Hello"}
ARRIVALS_MAX = 80
"""Messages that one picture shows; beacons would hide all others and are left out."""


def write(path: Path, stage: Stage | Production, sights: list[Sight]) -> None:
    """Under its name only once it is whole."""
    page = files("godwit.commands").joinpath("animation.html").read_text()
    data = {
        "title": stage.scenario.title,
        "frame": frame_of(stage, sights),
        "nodes": [{"name": node.name, "role": node.role} for node in sights[0].nodes],
        "sights": [_picture(sight) for sight in sights],
    }
    # What stands in the scenario must not end the script that holds it.
    encoded = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(page.replace("DATA", encoded, 1), encoding="utf-8")
    unfinished.replace(path)


def _picture(sight: Sight) -> dict[str, Any]:
    arrivals = [arrival for arrival in sight.arrivals if arrival.kind not in BEACONS][-ARRIVALS_MAX:]
    return {
        "time": round(sight.time_s, 3),
        "nodes": [(_metres(n.x_m), _metres(n.y_m), n.alive, n.leads, n.up, n.queued) for n in sight.nodes],
        "arrivals": [(round(a.time_s, 3), a.sender, a.to, a.kind) for a in arrivals],
        "cuts": sight.cuts,
        "tables": sight.tables,
    }


def _metres(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 1)
