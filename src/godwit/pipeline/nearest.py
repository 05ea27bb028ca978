"""The nearest of many places on the globe, for millions of positions: a kd-tree on every executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.spatial import KDTree

from godwit.filters.areas import EARTH_RADIUS_M

Floats = npt.NDArray[np.float64]


class Nearest:
    """Places by name. Lines through the globe order places as great circles do, without a seam at 180 degrees."""

    def __init__(self, names: list[str], lats: Floats, lons: Floats) -> None:
        self.names = pa.array(names, pa.string())
        self._tree = KDTree(_on_the_sphere(lats, lons))

    def of(self, lats: Floats, lons: Floats) -> tuple[pa.Array, Floats]:
        """The name of the nearest place of each position, and its distance in metres."""
        chords, at = self._tree.query(_on_the_sphere(lats, lons))
        return self.names.take(pa.array(at)), 2 * EARTH_RADIUS_M * np.arcsin(np.minimum(chords / 2, 1.0))

    def associated(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows with `lat` and `lon` to the same rows with `site` and `distance_m` instead."""
        for batch in batches:
            lats, lons = batch.column("lat").to_numpy(), batch.column("lon").to_numpy()
            sites, metres = self.of(lats, lons)
            kept = batch.drop_columns(["lat", "lon"])
            yield kept.append_column("site", sites).append_column("distance_m", pa.array(metres))


def _on_the_sphere(lats: Floats, lons: Floats) -> Floats:
    north, east = np.radians(lats), np.radians(lons)
    return np.column_stack((np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)))
