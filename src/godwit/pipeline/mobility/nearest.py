"""The nearest of many places, for millions of positions: a kd-tree on every executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.spatial import KDTree

from godwit.filters.areas import EARTH_RADIUS_M

LAT_DEGREE_M, LON_DEGREE_M = 110_540.0, 111_320.0
"""Metres in a degree at the equator, as they are usually rounded."""

Floats = npt.NDArray[np.float64]


class Nearest:
    """Places by name, near on the globe or, with `plane_latitude`, on the plane that `flat` makes there."""

    def __init__(self, names: list[str], lats: Floats, lons: Floats, plane_latitude: float | None = None) -> None:
        self.names = pa.array(names, pa.string())
        self._plane_latitude = plane_latitude
        self._tree = KDTree(self._points(lats, lons))

    def of(self, lats: Floats, lons: Floats) -> tuple[pa.Array, Floats]:
        """The name of the nearest place of each position, and its distance in metres."""
        apart, at = self._tree.query(self._points(lats, lons))
        metres = apart if self._plane_latitude is not None else EARTH_RADIUS_M * 2 * np.arcsin(np.minimum(apart / 2, 1))
        return self.names.take(pa.array(at)), metres

    def associated(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows with `lat`, `lon` and `log_row` to the same rows with `site` and `distance_m`."""
        for batch in batches:
            lats, lons = batch.column("lat").to_numpy(), batch.column("lon").to_numpy()
            sites, metres = self.of(lats, lons)
            kept = batch.select(["subscriber", "time_s"]).append_column("site", sites)
            yield kept.append_column("distance_m", pa.array(metres)).append_column("log_row", batch.column("log_row"))

    def _points(self, lats: Floats, lons: Floats) -> Floats:
        if self._plane_latitude is None:
            return on_the_sphere(lats, lons)
        return flat(lats, lons, self._plane_latitude)


def on_the_sphere(lats: Floats, lons: Floats) -> Floats:
    """Lines through the globe order places as great circles do, without a seam at 180 degrees."""
    north, east = np.radians(lats), np.radians(lons)
    return np.column_stack((np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)))


def flat(lats: Floats, lons: Floats, latitude: float) -> Floats:
    """Metres on a plane as many programs make them of degrees: for a town near this latitude, and for no more."""
    return np.column_stack((lats * LAT_DEGREE_M, lons * (LON_DEGREE_M * np.cos(np.radians(latitude)))))
