"""What files are at a path, of which format they are, and whether they are a table of a format that has a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.files import PATTERN, Files, within

PARQUET, CSV, JSON = "parquet", "csv", "json"
SUFFIXES = {".parquet": PARQUET, ".csv": CSV, ".jsonl": JSON, ".ndjson": JSON, ".json": JSON}

DELTA, ICEBERG, HUDI = "Delta", "Iceberg", "Hudi"
LOGS = {"_delta_log": DELTA, ".hoodie": HUDI}
METADATA, METADATA_END = "metadata", ".metadata.json"
LEVELS_MAX = 4
"""So far above a folder a table's log is looked for: folders of partitions are inside of it."""


def data_files(spark: SparkSession, path: str) -> list[str]:
    """The files at a path without hidden ones, in order. Raises `PipelineError` where there is no such path."""
    files = Files(spark)
    local = None if set(path) & PATTERN else files.local(path)
    if local is None:
        found = [name for name, _, _ in files.walk(path)]
        fixed = path.split("*")[0].rstrip("/")
        shown = [name for name in found if _is_shown(name.partition(fixed)[2])]
    else:
        shown = _local_files(path, local)
    if not shown and not files.exists(path) and local is not None:
        raise PipelineError(f"{path}: there is no such file or folder")
    if not shown and local is None:
        raise PipelineError(f"{path}: there is no such file or folder, or nothing in it")
    return shown


def _local_files(path: str, local: Path) -> list[str]:
    if not local.exists():
        raise PipelineError(f"{path}: there is no such file or folder")
    if local.is_file():
        return [str(local)]
    return [
        str(found)
        for found in sorted(local.rglob("*"))
        if _is_shown(found.relative_to(local).as_posix()) and found.is_file()
    ]


def _is_shown(name: str) -> bool:
    """As Spark sees it: a folder of a partition may begin with an underscore, if it has a value."""
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in name.split("/"))


def kind_of(path: str, names: Sequence[str]) -> str:
    """The format of most of these files by the ends of their names, Parquet of two that are as many."""
    counts = Counter(kind for name in names if (kind := _kind(name)) is not None)
    if not counts:
        raise PipelineError(f"{path}: no file there ends in {', '.join(SUFFIXES)} (text also with .gz)")
    return max(counts, key=lambda kind: (counts[kind], kind == PARQUET))


def _kind(name: str) -> str | None:
    bare = name.removesuffix(".gz")
    return next((kind for suffix, kind in SUFFIXES.items() if bare.endswith(suffix)), None)


def of_kind(names: Sequence[str], kind: str) -> list[str]:
    return [name for name in names if _kind(name) == kind]


def table_format(spark: SparkSession, path: str) -> tuple[str, str] | None:
    """The format and the folder of the table that a path is, or is a part of, if its files are not all rows of it.

    A table with a log of its own has files that are rows no more, and rows that no file has by itself.
    """
    files, place = Files(spark), path.rstrip("/")
    for _ in range(LEVELS_MAX):
        if place.endswith(":/") or not place or set(place) & PATTERN:
            break
        if found := _log_in(files, place):
            return found, place
        place = place.rpartition("/")[0]
    return None


def _log_in(files: Files, folder: str) -> str | None:
    for name, kind in LOGS.items():
        if files.exists(within(folder, name)):
            return kind
    told = files.names(within(folder, METADATA)) if files.exists(within(folder, METADATA)) else []
    return ICEBERG if any(name.endswith(METADATA_END) for name in told) else None
