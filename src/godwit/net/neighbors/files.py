"""The neighbor graph as a file: one row for each way from a broker to another.

    from,to,count,weight,last_used,before
    north,south,112,74.25,1700000000,"{""west"": 60.5, ""north"": 3}"

CSV, JSON (a list of objects) or Parquet, by how the name ends; a folder is what Spark has written there. `count` is how
often the way was gone, `weight` what that counts by now, `last_used` in seconds since 1970; of count and weight one is
enough. `before` says how much of the weight is of clients that had come from which broker, where that is known; `from`
itself stands for those that had not been elsewhere. In CSV it is a JSON object, in Parquet a map. The table `neighbors`
of `godwit pipeline mobility` can be read as it is, and so can files without `before`.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from godwit.net.ops.report import NeighborRow, OnwardRow, PathRow
from godwit.protocols.broker.handoff import prediction
from godwit.protocols.broker.handoff.prediction import RETURN_WEIGHT, Learned
from godwit.protocols.neighbors.nearness import Site

COLUMNS = ("from", "to", "count", "weight", "last_used", "before")
PIPELINE = {"broker": "from", "peer": "to", "uses": "count", "last_used_s": "last_used", "handoffs_out": "out"}
"""The same in the words of `godwit.pipeline.schemas.NEIGHBORS`; `out` of the count are moves from here."""

IMPORT = "neighbors.import.json"
"""In a broker's data folder: what it is to take instead of what it knows. It is gone when it was taken."""


class Way(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """From one broker to another."""

    origin: str
    to: str
    count: int = 0
    weight: float = 0.0
    last_used: float | None = None
    before: dict[str, float] = {}
    """How much of the weight is of clients that had come from there; `origin`: from nowhere else."""


def ways_of(broker: str, told: Iterable[NeighborRow]) -> list[Way]:
    """What a broker says of its neighbors."""
    return [Way(broker, row.peer, row.uses, row.weight, row.last_used, row.before) for row in told]


def neighbor_row(one: prediction.Neighbor) -> NeighborRow:
    return NeighborRow(**msgspec.structs.asdict(one))


def path_row(path: prediction.Path) -> PathRow:
    onward = [OnwardRow(peer=one.peer, share=one.share, copied=one.copied) for one in path.onward]
    return PathRow(before=path.before, share=path.share, onward=onward)


def learned(ways: Iterable[Way], broker: str) -> list[Learned]:
    """What is of use to this broker."""
    return [
        Learned(peer=way.to, weight=way.weight, last_used=way.last_used, uses=way.count, before=way.before)
        for way in ways
        if way.origin == broker
    ]


def read(path: Path) -> list[Way]:
    found = [_way(f"{path}, row {number}", row) for number, row in enumerate(rows(path), 1)]
    if not found:
        raise NeighborsError(f"{path}: no rows; right would be at least one way, as {', '.join(COLUMNS)}")
    return merged(found)


def merged(ways: Iterable[Way]) -> list[Way]:
    """Each way once; nobody goes to where it is."""
    found: dict[tuple[str, str], Way] = {}
    for way in ways:
        key = way.origin, way.to
        known = found.get(key)
        if known is not None:
            times = [time for time in (known.last_used, way.last_used) if time is not None]
            last_used = max(times, default=None)
            before = _sums(known.before, way.before)
            count = min(known.count + way.count, int(NUMBER_MAX))
            way = Way(*key, count, known.weight + way.weight, last_used, before)
        if way.origin != way.to:
            found[key] = way
    return list(found.values())


def mapped(ways: Iterable[Way], names: Mapping[str, str]) -> list[Way]:
    """With sites turned into the brokers that stand there; ways from or to others are left out, and of others it is not
    said that clients had come from there."""
    return merged(
        msgspec.structs.replace(way, origin=names[way.origin], to=names[way.to], before=_renamed(way.before, names))
        for way in ways
        if way.origin in names and way.to in names
    )


def _renamed(before: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    return _sums(*({names[site]: weight} for site, weight in before.items() if site in names))


def _sums(*some: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in some:
        for name, weight in one.items():
            found[name] = found.get(name, 0.0) + weight
    return found


def read_names(path: Path) -> dict[str, str]:
    """Brokers by site: a JSON object, or CSV with the columns `site` and `broker`."""
    if path.suffix == ".json":
        try:
            return msgspec.json.decode(contents(path), type=dict[str, str])
        except msgspec.DecodeError as error:
            raise NeighborsError(f'{path}: {error}; right would be {{"site": "broker", ...}}') from None
    names: dict[str, str] = {}
    for number, row in enumerate(csv_rows(path), 1):
        if not row.get("site") or not row.get("broker"):
            raise NeighborsError(f"{path}, row {number}: right would be a name in each of the columns site and broker")
        names[row["site"]] = row["broker"]
    return names


def write(ways: Iterable[Way], path: Path) -> None:
    """By how the name ends; `NeighborsError` where it cannot be."""
    try:
        if path.suffix == ".parquet":
            path.write_bytes(_parquet(list(ways)))
        else:
            path.write_text(text(ways, path.suffix[1:]))
    except OSError as error:
        raise NeighborsError(f"{path}: {error.strerror}") from None


def text(ways: Iterable[Way], kind: str) -> str:
    """As a file of this kind, "json" or "csv"."""
    if kind == "json":
        return msgspec.json.format(msgspec.json.encode(list(ways)), indent=2).decode() + "\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for way in ways:
        last_used = "" if way.last_used is None else f"{way.last_used:.3f}"
        writer.writerow((way.origin, way.to, way.count, f"{way.weight:.6g}", last_used, _before_text(way.before)))
    return out.getvalue()


def _before_text(before: Mapping[str, float]) -> str:
    short = {name: float(f"{weight:.6g}") for name, weight in before.items()}
    return msgspec.json.encode(short).decode() if short else ""


def _parquet(ways: list[Way]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (pa.string(), pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.map_(pa.string(), pa.float64()))
    told = [(way.origin, way.to, way.count, way.weight, way.last_used, list(way.before.items())) for way in ways]
    arrays = [pa.array([row[at] for row in told], kind) for at, kind in enumerate(kinds)]
    out = io.BytesIO()
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), out)
    return out.getvalue()


def leave(folder: Path, ways: Iterable[Way]) -> Path:
    """For a broker to take from its data folder, when it runs or starts."""
    path = folder / IMPORT
    draft = path.with_suffix(".draft")
    try:
        draft.write_text(text(ways, "json"))
        os.replace(draft, path)
    except OSError as error:
        raise NeighborsError(f"{path}: {error.strerror}; name a folder that this user may write") from None
    return path


def _way(where: str, row: Mapping[str, Any]) -> Way:
    told = {PIPELINE.get(name, name): value for name, value in row.items()}
    origin, to = name_in(where, told, "from"), name_in(where, told, "to")
    count, weight, out = (number_in(where, told, column) for column in ("count", "weight", "out"))
    if weight is None and count is None:
        raise NeighborsError(f"{where}: neither count nor weight; right would be how often this way was gone")
    if weight is None:
        assert count is not None
        weight = count if out is None else out + RETURN_WEIGHT * (count - out)
    return Way(origin, to, int(count or 0), weight, number_in(where, told, "last_used"), _before(where, told))


def _before(where: str, row: Mapping[str, Any]) -> dict[str, float]:
    """An object of JSON, the same as text, or a map as Arrow gives it."""
    value = row.get("before")
    try:
        pairs = msgspec.json.decode(value) if isinstance(value, str) and value else value
        told = dict(pairs) if pairs else {}
    except (msgspec.DecodeError, TypeError, ValueError):
        raise NeighborsError(f'{where}, column before: {value!r}; right would be {{"west": 60.5}}') from None
    if not all(isinstance(name, str) and name for name in told):
        raise NeighborsError(f"{where}, column before: {value!r}; right would be names of brokers")
    found = {name: number_in(f"{where}, column before", told, name) for name in told}
    return {name: number for name, number in found.items() if number}


# Rows of CSV, JSON and Parquet files, and of folders that Spark has written: for what brokers are given to know.

NUMBER_MAX = 1e15
"""Nothing that is counted or timed here is more; what says otherwise lies, and sums of it would not be numbers."""


class NeighborsError(ValueError):
    """A file that cannot be taken; the text names file, row and column, and what would be right."""


def rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """By how the name ends."""
    if not path.exists():
        raise NeighborsError(f"{path}: No such file or directory")
    if path.is_dir() or path.suffix == ".parquet":
        yield from _parquet_rows(path)
    elif path.suffix == ".json":
        yield from _json(path)
    elif path.suffix == ".csv":
        yield from csv_rows(path)
    else:
        raise NeighborsError(f"{path}: right would be a .json, .csv or .parquet file, or a folder of the last")


def csv_rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        lines = contents(path).decode().splitlines()
    except UnicodeDecodeError:
        raise NeighborsError(f"{path}: not a text file") from None
    reader = csv.DictReader(lines)
    for number, row in enumerate(reader, 1):
        if None in row or None in row.values():
            wanted = len(reader.fieldnames or ())
            raise NeighborsError(f"{path}, row {number}: right would be {wanted} columns, as in the first line")
        yield row


def contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NeighborsError(f"{path}: {error.strerror}") from None


def name_in(where: str, row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be the name of a broker")
    return value


def number_in(
    where: str, row: Mapping[str, Any], column: str, least: float = 0.0, most: float = NUMBER_MAX
) -> float | None:
    """None where there is nothing."""
    value = row.get(column)
    if value is None or value == "":
        return None
    try:
        number = float(value) if not isinstance(value, bool) else least - 1
    except (TypeError, ValueError):
        number = least - 1
    if not isfinite(number) or not least <= number <= most:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be a number from {least:g} to {most:g}")
    return number


def _json(path: Path) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(contents(path), type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise NeighborsError(f"{path}: {error}; right would be a list of objects, one for each row") from None


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    # Few brokers are given one, and Arrow takes its time to load.
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise NeighborsError(f"{path}: no .parquet file in it; right would be the folder `neighbors` of the pipeline")
    found: list[dict[str, Any]] = []
    for file in files:
        try:
            found += pq.ParquetFile(file).read().to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise NeighborsError(f"{file}: {error}") from None
    return found


# Where brokers stand, as a file: for how near they are to each other. broker,lat,lon north,37.7749,-122.4194 CSV,
# JSON or Parquet; the table `sites` of `godwit pipeline mobility` can be read as it is, with `site` for `broker`.
# Rows of one name are one place, in their middle.


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
