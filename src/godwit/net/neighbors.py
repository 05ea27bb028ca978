"""The neighbor graph as a file: one row for each way from a broker to another.

    from,to,count,weight,last_used
    north,south,112,74.25,1700000000

CSV, JSON (a list of objects) or Parquet, by how the name ends; a folder is what Spark has written there. `count` is how
often the way was gone, `weight` what that counts by now, `last_used` in seconds since 1970; of count and weight one is
enough. The table `neighbors` of `godwit pipeline mobility` can be read as it is.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from godwit.net.report import NeighborRow
from godwit.protocols.broker.neighbours import RETURN_WEIGHT, Learned

COLUMNS = ("from", "to", "count", "weight", "last_used")
PIPELINE = {"broker": "from", "peer": "to", "uses": "count", "last_used_s": "last_used", "handoffs_out": "out"}
"""The same in the words of `godwit.pipeline.schemas.NEIGHBORS`; `out` of the count are moves from here."""

IMPORT = "neighbors.import.json"
"""In a broker's data folder: what it is to take instead of what it knows. It is gone when it was taken."""


class NeighborsError(ValueError):
    """A file that cannot be taken; the text names file, row and column, and what would be right."""


class Way(msgspec.Struct, frozen=True, rename={"origin": "from"}):
    """From one broker to another."""

    origin: str
    to: str
    count: int = 0
    weight: float = 0.0
    last_used: float | None = None


def ways_of(broker: str, rows: Iterable[NeighborRow]) -> list[Way]:
    """What a broker says of its neighbors."""
    return [Way(broker, row.peer, row.uses, row.weight, row.last_used) for row in rows]


def learned(ways: Iterable[Way], broker: str) -> list[Learned]:
    """What is of use to this broker."""
    return [
        Learned(peer=way.to, weight=way.weight, last_used=way.last_used, uses=way.count)
        for way in ways
        if way.origin == broker
    ]


def read(path: Path) -> list[Way]:
    rows = list(_rows(path))
    if not rows:
        raise NeighborsError(f"{path}: no rows; right would be at least one way, as {', '.join(COLUMNS)}")
    return merged(_way(f"{path}, row {number}", row) for number, row in enumerate(rows, 1))


def merged(ways: Iterable[Way]) -> list[Way]:
    """Each way once; nobody goes to where it is."""
    found: dict[tuple[str, str], Way] = {}
    for way in ways:
        key = way.origin, way.to
        known = found.get(key)
        if known is not None:
            times = [time for time in (known.last_used, way.last_used) if time is not None]
            last_used = max(times, default=None)
            way = Way(*key, known.count + way.count, known.weight + way.weight, last_used)
        if way.origin != way.to:
            found[key] = way
    return list(found.values())


def mapped(ways: Iterable[Way], names: Mapping[str, str]) -> list[Way]:
    """With sites turned into the brokers that stand there; ways from or to others are left out."""
    return merged(
        msgspec.structs.replace(way, origin=names[way.origin], to=names[way.to])
        for way in ways
        if way.origin in names and way.to in names
    )


def read_names(path: Path) -> dict[str, str]:
    """Brokers by site: a JSON object, or CSV with the columns `site` and `broker`."""
    if path.suffix == ".json":
        try:
            return msgspec.json.decode(_bytes(path), type=dict[str, str])
        except msgspec.DecodeError as error:
            raise NeighborsError(f'{path}: {error}; right would be {{"site": "broker", ...}}') from None
    names: dict[str, str] = {}
    for number, row in enumerate(_csv(path), 1):
        if not row.get("site") or not row.get("broker"):
            raise NeighborsError(f"{path}, row {number}: right would be a name in each of the columns site and broker")
        names[row["site"]] = row["broker"]
    return names


def text(ways: Iterable[Way], kind: str) -> str:
    """As a file of this kind, "json" or "csv"."""
    if kind == "json":
        return msgspec.json.format(msgspec.json.encode(list(ways)), indent=2).decode() + "\n"
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for way in ways:
        last_used = "" if way.last_used is None else f"{way.last_used:.3f}"
        writer.writerow((way.origin, way.to, way.count, f"{way.weight:.6g}", last_used))
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
    origin, to = _name(where, told, "from"), _name(where, told, "to")
    count, weight, out = _number(where, told, "count"), _number(where, told, "weight"), _number(where, told, "out")
    if weight is None and count is None:
        raise NeighborsError(f"{where}: neither count nor weight; right would be how often this way was gone")
    if weight is None:
        assert count is not None
        weight = count if out is None else out + RETURN_WEIGHT * (count - out)
    return Way(origin, to, int(count or 0), weight, _number(where, told, "last_used"))


def _name(where: str, row: Mapping[str, Any], column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be the name of a broker")
    return value


def _number(where: str, row: Mapping[str, Any], column: str) -> float | None:
    value = row.get(column)
    if value is None or value == "":
        return None
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (TypeError, ValueError):
        number = -1.0
    if not isfinite(number) or number < 0:
        raise NeighborsError(f"{where}, column {column}: {value!r}; right would be a number from 0 on")
    return number


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.exists():
        raise NeighborsError(f"{path}: No such file or directory")
    if path.is_dir() or path.suffix == ".parquet":
        yield from _parquet(path)
    elif path.suffix == ".json":
        yield from _json(path)
    elif path.suffix == ".csv":
        yield from _csv(path)
    else:
        raise NeighborsError(f"{path}: right would be a .json, .csv or .parquet file, or a folder of the last")


def _json(path: Path) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(_bytes(path), type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise NeighborsError(f"{path}: {error}; right would be a list of objects with {', '.join(COLUMNS)}") from None


def _csv(path: Path) -> Iterator[dict[str, str]]:
    try:
        lines = _bytes(path).decode().splitlines()
    except UnicodeDecodeError:
        raise NeighborsError(f"{path}: not a text file") from None
    reader = csv.DictReader(lines)
    for number, row in enumerate(reader, 1):
        if None in row or None in row.values():
            wanted = len(reader.fieldnames or ())
            raise NeighborsError(f"{path}, row {number}: right would be {wanted} columns, as in the first line")
        yield row


def _parquet(path: Path) -> list[dict[str, Any]]:
    # Few brokers are given one, and Arrow takes its time to load.
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise NeighborsError(f"{path}: no .parquet file in it; right would be the folder `neighbors` of the pipeline")
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            rows += pq.ParquetFile(file).read().to_pylist()
        except (OSError, pa.ArrowException) as error:
            raise NeighborsError(f"{file}: {error}") from None
    return rows


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NeighborsError(f"{path}: {error.strerror}") from None
