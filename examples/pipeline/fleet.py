"""A week of a small fleet as a folder of Parquet, for whoever has none at hand: one file a day, the same every time.

    python examples/pipeline/fleet.py FOLDER [CABS]

Cabs drive about a town and tell where they are every minute; `positions/day=...` has what they told, and `sites.csv`
where nine access points stand.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

LAT, LON, SIDE = 37.76, -122.44, 0.04
START_S = 1_794_787_200
"""Midnight of 16 November 2026, UTC."""
DAYS, HOURS = 3, 2


def drive(cab: int, day: int) -> list[tuple[str, float, float, float]]:
    """Where one cab was, minute by minute, in the first hours of a day."""
    dice = Random(f"{cab} {day}")
    lat, lon = dice.random(), dice.random()
    to_lat, to_lon = dice.random(), dice.random()
    told = []
    for minute in range(HOURS * 60):
        left = math.hypot(to_lat - lat, to_lon - lon)
        if left < 0.05:
            to_lat, to_lon = dice.random(), dice.random()
            left = math.hypot(to_lat - lat, to_lon - lon)
        lat, lon = lat + 0.05 * (to_lat - lat) / left, lon + 0.05 * (to_lon - lon) / left
        told.append((f"cab{cab:03}", START_S + day * 86_400.0 + minute * 60.0, LAT + SIDE * lat, LON + SIDE * lon))
    return told


def write(folder: Path, cabs: int) -> None:
    for day in range(DAYS):
        rows = [row for cab in range(cabs) for row in drive(cab, day)]
        columns = dict(zip(("cab", "t", "lat", "lon"), map(list, zip(*rows, strict=True)), strict=True))
        place = folder / "positions" / f"day=2026-11-{16 + day}"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place / "fleet.parquet")
    corners = [
        (f"{north}{east}", LAT + SIDE * north / 2, LON + SIDE * east / 2) for north in range(3) for east in range(3)
    ]
    lines = ["site,lat,lon", *(f"ap{name},{lat:.5f},{lon:.5f}" for name, lat, lon in corners)]
    (folder / "sites.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20)
