"""H3 cells and time zones: the grid and the clocks that other people's tables have.

A cell of H3 (extra `h3`) names a hexagon of the globe at one of 16 resolutions. It can stand for a site in mobility,
where there is no list of sites, and for an area in gathering, beside the cells of our own space partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from godwit.filters.areas import EARTH_RADIUS_M
from godwit.pipeline.errors import PipelineError

Floats = npt.NDArray[np.float64]

RESOLUTIONS = range(16)
H3_AREA = "h3 "
"""Before the name of a cell where it is an area."""


def check_resolution(resolution: int) -> None:
    """`PipelineError` where there is no such resolution, or no library."""
    if resolution not in RESOLUTIONS:
        raise PipelineError(f"--h3 {resolution}: right would be 0 (1,100 km from side to side) to 15 (half a metre)")
    try:
        import h3
    except ModuleNotFoundError:
        raise PipelineError("--h3 needs h3, which comes with godwit[h3]") from None
    assert h3.__name__


def with_cell(frame: DataFrame, resolution: int, name: str) -> DataFrame:
    """The rows with the cell of their `lat` and `lon`, null where they say no place on Earth."""
    check_resolution(resolution)
    schema = StructType([*frame.schema.fields, StructField(name, StringType())])
    return frame.mapInArrow(_Celled(resolution, name).celled, schema)


def associated(positions: DataFrame, resolution: int) -> DataFrame:
    """Every fix at the cell that holds it, as a site, with the metres to the cell's middle."""
    check_resolution(resolution)
    chosen = positions.select("subscriber", "time_s", "lat", "lon")
    return chosen.mapInArrow(
        _Celled(resolution, "site").associated, "subscriber string, time_s double, site string, distance_m double"
    )


def middles(cells: Iterable[str]) -> list[tuple[str, float, float]]:
    """Cells with where their middles are, as sites."""
    from h3 import cell_to_latlng

    return [(cell, *cell_to_latlng(cell)) for cell in cells]


@dataclass(frozen=True, slots=True)
class _Celled:
    """For `mapInArrow`."""

    resolution: int
    name: str

    def celled(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.append_column(self.name, self._cells(batch))

    def associated(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            cells = self._cells(batch)
            metres = pa.array(_metres(batch, cells))
            yield batch.drop_columns(["lat", "lon"]).append_column("site", cells).append_column("distance_m", metres)

    def _cells(self, batch: pa.RecordBatch) -> pa.Array:
        from h3 import latlng_to_cell

        lats, lons = batch.column("lat").to_pylist(), batch.column("lon").to_pylist()
        return pa.array(
            [
                latlng_to_cell(lat, lon, self.resolution) if _is_place(lat, lon) else None
                for lat, lon in zip(lats, lons, strict=True)
            ],
            pa.string(),
        )


def _is_place(lat: float | None, lon: float | None) -> bool:
    return lat is not None and lon is not None and -90.0 <= lat <= 90.0 and -180.0 <= lon <= 360.0


def _metres(batch: pa.RecordBatch, cells: pa.Array) -> Floats:
    """Great circles from each row to the middle of its cell."""
    from h3 import cell_to_latlng

    named = cells.dictionary_encode()
    middles = np.array([cell_to_latlng(cell) for cell in named.dictionary.to_pylist()]).reshape(-1, 2)
    at = named.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    here = np.radians(np.column_stack((batch.column("lat").to_numpy(), batch.column("lon").to_numpy())))
    there = np.radians(middles[at])
    apart = np.sin((there - here) / 2) ** 2
    arc = apart[:, 0] + np.cos(here[:, 0]) * np.cos(there[:, 0]) * apart[:, 1]
    metres: Floats = EARTH_RADIUS_M * 2 * np.arcsin(np.sqrt(np.minimum(arc, 1.0)))
    return metres


def check_zone(zone: str) -> None:
    """`PipelineError` where IANA's list has no such zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise PipelineError(
            f"--zone {zone!r}: right would be a name of IANA's list, as in America/Los_Angeles"
        ) from None


def local_day(time_s: Column, zone: str) -> Column:
    """The date on the clocks of a zone, summer time included, of seconds since 1970; the session's zone is UTC."""
    return sf.date_format(sf.from_utc_timestamp(sf.timestamp_seconds(time_s), zone), "yyyy-MM-dd")
