"""Addresses of tables, and what a folder is that looks like plain files but belongs to a table format.

    table:fleet.events                      whatever Spark's catalogs know by this name
    iceberg:lake.fleet.events               a table of the Iceberg catalog `lake`
    iceberg:/data/events                    an Iceberg table by its folder, without a catalog
    delta:/data/events                      a Delta table by its folder, or s3://bucket/events
    iceberg:lake.fleet.events@4711          as it was: a snapshot or version by its number
    delta:/data/events@2026-11-16T12:00Z    or as it was at this time

A folder of Delta or Iceberg that is given as plain files is read as the table that it is: its files alone would show
rows that were deleted or replaced long ago.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from godwit.pipeline.errors import PipelineError

TABLE, ICEBERG, DELTA = "table", "iceberg", "delta"
FORMATS = (TABLE, ICEBERG, DELTA)


class TableAddress(msgspec.Struct, frozen=True):
    """Which table of which format, and perhaps as it was when."""

    format: str
    place: str
    """A name in a catalog, or a folder."""
    version: int | None = None
    time_ms: int | None = None
    """Milliseconds since 1970."""
    options: tuple[tuple[str, str], ...] = ()
    """What its library must be told to reach it: who reads a part of it may know neither catalog nor environment."""

    @property
    def is_folder(self) -> bool:
        return "/" in self.place

    @property
    def text(self) -> str:
        return f"{self.format}:{self.place}"


def parsed(text: str) -> TableAddress | None:
    """What an address of a table says; None where it is none."""
    form, colon, rest = text.partition(":")
    if form not in FORMATS or not colon or rest.startswith("//"):
        return None
    place, at, when = rest.rpartition("@")
    if not at:
        return TableAddress(form, rest)
    if when.isascii() and when.isdecimal():
        return TableAddress(form, place, version=int(when))
    try:
        time = datetime.fromisoformat(when)
    except ValueError:
        raise PipelineError(
            f"{text}: after @ stands {when!r}; right would be a version, as in @12, or a time, as in @2026-11-16T12:00Z"
        ) from None
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return TableAddress(form, place, time_ms=int(aware.timestamp() * 1000))


def found_at(path: str) -> TableAddress | None:
    """The table whose folder this is, or None where it is no table's; folders of this machine only."""
    folder = Path(path.removeprefix("file://"))
    if "://" in str(folder) or not folder.is_dir():
        return None
    if (folder / "_delta_log").is_dir():
        return TableAddress(DELTA, str(folder))
    if any((folder / "metadata").glob("*.metadata.json")):
        return TableAddress(ICEBERG, str(folder))
    return None


def inside_of(path: str) -> TableAddress | None:
    """The table that a folder or file is a part of: its data alone must not be read."""
    start = Path(path.removeprefix("file://"))
    if "://" in str(start) or not start.exists():
        return None
    return next((found for parent in start.absolute().parents if (found := found_at(str(parent))) is not None), None)
