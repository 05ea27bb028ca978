"""Where brokers stand, as a file: for how near they are to each other.

    broker,lat,lon
    north,37.7749,-122.4194

CSV, JSON or Parquet; the table `sites` of `godwit pipeline mobility` can be read as it is, with `site` for `broker`.
Rows of one name are one place, in their middle.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from godwit.net.rows import NeighborsError, name_in, number_in, rows
from godwit.protocols.handoff.nearness import Site


def read_sites(path: Path) -> dict[str, Site]:
    found: dict[str, list[tuple[float, float]]] = {}
    for number, row in enumerate(rows(path), 1):
        where = f"{path}, row {number}"
        name = name_in(where, row, "broker" if "broker" in row else "site")
        lat, lon = number_in(where, row, "lat", -90, 90), number_in(where, row, "lon", -180, 360)
        if lat is None or lon is None:
            raise NeighborsError(f"{where}: no place; right would be degrees in each of the columns lat and lon")
        found.setdefault(name, []).append((lat, lon))
    return {name: Site(*(fmean(some) for some in zip(*places, strict=True))) for name, places in found.items()}
