"""The same taxis on the ring and on deployed brokers: both deliver the same, and the tree pays for everybody."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from godwit.lab.gathering.beyond.recorded import (
    BEGIN,
    CELLS,
    FIRST_HOUR,
    READINGS,
    STATIONS,
    TAXIS,
    Drive,
    Recording,
    RingNet,
    brokers_of,
    thinned,
)
from godwit.lab.gathering.beyond.tree_drive import TreeNet, meshed

LAT, LON = 37.75, -122.44
BROKERS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four taxis that cross a small town with nine cells, and two stations with bad air."""
    made = tmp_path_factory.mktemp("town")
    with gzip.open(made / CELLS, "wt", encoding="utf-8") as lines:
        rows = csv.writer(lines)
        rows.writerow(("cell", "lon", "lat"))
        rows.writerows((256 * (3 * i + j + 1), LON + 0.02 * i, LAT + 0.02 * j) for i in range(3) for j in range(3))
    with (made / STATIONS).open("w", encoding="utf-8") as lines:
        rows = csv.writer(lines)
        rows.writerow(("station", "lon", "lat"))
        rows.writerows((("A", 116.3, 39.9), ("B", 116.5, 40.0)))
    times = np.arange(BEGIN - 60, BEGIN + 240, 20)
    fixes = [
        (f"t{cab}", int(t), LAT + 0.01 * cab, LON + 0.04 * ((at + cab) % 8) / 8)
        for cab in range(4)
        for at, t in enumerate(times)
    ]
    cabs, ts, lats, lons = zip(*fixes, strict=True)
    degrees = {"lat_e5": lats, "lon_e5": lons}
    columns = {name: [round(1e5 * one) for one in some] for name, some in degrees.items()}
    pq.write_table(pa.table({"cab": list(cabs), "t": list(ts), **columns}), made / TAXIS)
    hours = FIRST_HOUR + 20
    readings = {"station": ["A"] * hours + ["B"] * hours, "pm25": [100.0] * 2 * hours}
    pq.write_table(pa.table(readings), made / READINGS)
    return made


@pytest.mark.feature("data-gathering F44")
def test_ring_and_tree_deliver_the_same_and_lose_nothing(folder: Path) -> None:
    recording = Recording(folder=str(folder), minutes=1.0, brokers=BROKERS)
    ring, tree = Drive(recording).run(RingNet), Drive(recording).run(TreeNet)
    assert ring.handoffs > 0
    assert (ring.lost, tree.lost) == (0, 0)
    for name in ("brokers", "taxis", "sensors", "events", "wanted", "received", "handoffs"):
        assert getattr(ring, name) == getattr(tree, name)
    # Of the tree each handoff is known to all; of the ring to its homes and the old broker.
    assert tree.items >= 5 * BROKERS - 2
    assert ring.items == 0


def test_a_part_of_the_brokers_is_spread_as_all_are(folder: Path) -> None:
    brokers = brokers_of(folder)
    assert len(brokers) == 9
    few = thinned(brokers, 4)
    assert len(few) == 4
    assert set(few) < set(brokers)
    assert thinned(brokers, 20) == brokers == thinned(brokers, None)
    with pytest.raises(ValueError, match="at least 2"):
        thinned(brokers, 1)


def test_links_are_those_of_deployed_brokers() -> None:
    names = [f"b{at}" for at in range(30)]
    links = meshed(names)
    assert len(links) == len(set(links))
    degree = {name: sum(name in link for link in links) for name in names}
    assert min(degree.values()) >= 8
    assert max(degree.values()) <= 24
