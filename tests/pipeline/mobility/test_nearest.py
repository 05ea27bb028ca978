"""Which place is nearest, on the globe and on a plane; and what follows for the recorded day of San Francisco."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from godwit.pipeline.mobility.nearest import Nearest
from godwit.pipeline.mobility.visits import Visiting

RECORDED = Path("/work/shared/data")
BEGIN_S, END_S = 1_211_958_000, 1_212_044_400
"""The local day 2008-05-28."""

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def test_a_plane_of_another_latitude_may_choose_another_place() -> None:
    names, lats, lons = ["north", "east"], np.array([60.9, 60.0]), np.array([0.0, 1.0])
    here = np.array([60.0]), np.array([0.0])
    assert Nearest(names, lats, lons, plane_latitude=60).of(*here)[0].to_pylist() == ["east"]
    assert Nearest(names, lats, lons, plane_latitude=0).of(*here)[0].to_pylist() == ["north"]
    assert Nearest(names, lats, lons).of(*here)[0].to_pylist() == ["east"]


def test_metres_of_plane_and_globe_agree_in_a_town() -> None:
    lats, lons = np.array([37.70]), np.array([-122.40])
    there = np.array([37.71]), np.array([-122.41])
    (globe,), (plane,) = (Nearest(["a"], lats, lons, at).of(*there)[1] for at in (None, 37.7))
    assert plane == pytest.approx(globe, rel=0.01)


@pytest.mark.skipif(not (RECORDED / "sf_taxi_gps_week.parquet").exists(), reason="the recordings are not here")
@pytest.mark.parametrize(
    ("most", "plane_latitude", "handoffs"),
    [(549, 37.77, 257_163), (50, 37.77, 117_808), (549, None, 257_172), (50, None, 117_771)],
)
def test_the_recorded_day_has_the_handoffs_that_are_stated(
    most: int, plane_latitude: float | None, handoffs: int
) -> None:
    """The first two are those of the data's README; the others are by great circles."""
    cells = pa.csv.read_csv(RECORDED / "sf_lte_cells.csv.gz")
    names, lats, lons = largest(cells, most)
    batch = Nearest(names, lats, lons, plane_latitude).associated([fixes(cells)])
    ordered = pa.Table.from_batches(batch).sort_by([("subscriber", "ascending"), ("time_s", "ascending")])
    visits = Visiting(gap_s=300, ping_pong_s=120).visits(ordered.to_batches(10_000))
    assert sum(pc.sum(pc.equal(one.column("ended"), "handoff")).as_py() for one in visits) == handoffs


def largest(cells: pa.Table, most: int) -> tuple[list[str], Floats, Floats]:
    parts = defaultdict(list)
    for cell, lat, lon in zip(*(cells[name].to_pylist() for name in ("cell", "lat", "lon")), strict=True):
        parts[cell // 256].append((lat, lon))
    chosen = sorted(parts, key=lambda site: (-len(parts[site]), site))[:most]
    middles = np.array([np.mean(parts[site], axis=0) for site in chosen])
    return [str(site) for site in chosen], middles[:, 0], middles[:, 1]


def fixes(cells: pa.Table) -> pa.RecordBatch:
    """Those of the day, in the box around all cells."""
    table = pq.read_table(RECORDED / "sf_taxi_gps_week.parquet")
    time_s = table["t"].to_numpy()
    lats, lons = table["lat_e5"].to_numpy() / 1e5, table["lon_e5"].to_numpy() / 1e5
    kept = (time_s >= BEGIN_S) & (time_s < END_S)
    for values, name in ((lats, "lat"), (lons, "lon")):
        ends = pc.min_max(cells[name]).as_py()
        kept &= (values >= ends["min"]) & (values <= ends["max"])
    subscribers = table["cab"].cast(pa.string()).combine_chunks().filter(pa.array(kept))
    columns = [subscribers, pa.array(time_s[kept].astype(float)), pa.array(lats[kept]), pa.array(lons[kept])]
    columns.append(pa.array(range(len(columns[0])), pa.int64()))
    return pa.RecordBatch.from_arrays(columns, names=["subscriber", "time_s", "lat", "lon", "log_row"])
