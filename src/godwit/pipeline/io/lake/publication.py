"""What jobs leave in folders, brought into tables that others query: once, whatever is repeated or killed.

A batch replaces a table's rows in one commit. Of a stream, the micro-batches that are complete and were not published
before are added in one commit, which also says up to which; so each row is there once.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import DELTA, ICEBERG, TABLE, TableAddress, parsed

_BATCH = "batch="
PUBLISHED = "_published.json"
"""Beside the tables of a stream: up to which micro-batch each target has them."""


def published(out: str, target: str) -> dict[str, int]:
    """Publish every table of a job's folder below the target; the rows that were added, by table.

    The target is a namespace, as in `iceberg:lake.fleet`, or a folder, as in `delta:/lake/fleet`.
    """
    folder, address = Path(out.removeprefix("file://")), _target(target)
    if not folder.is_dir():
        raise PipelineError(f"{out}: there is no such folder on this machine; tables are published from where they are")
    rows = dict[str, int]()
    for table in sorted(_tables(folder)):
        rows[table.name] = _publish(table, folder, _beneath(address, table.name))
    _note(folder, target)
    return rows


def _note(folder: Path, target: str) -> None:
    """Of a stream, up to which micro-batch a target has it: `compaction` joins no others."""
    complete = _complete(folder)
    if complete >= 0:
        note = folder / PUBLISHED
        told = msgspec.json.decode(note.read_bytes(), type=dict[str, int]) if note.exists() else {}
        note.write_bytes(msgspec.json.encode(told | {target: complete}))


def _target(text: str) -> TableAddress:
    address = parsed(text)
    if address is not None and address.format == TABLE:
        raise PipelineError(
            f"{text}: a name of Spark's catalogs needs the session that knows it:"
            f" right would be --tables {text} with the job itself"
        )
    if address is None or address.format not in (ICEBERG, DELTA) or (address.version, address.time_ms) != (None, None):
        raise PipelineError(f"{text}: right would be iceberg:CATALOG.NAMESPACE or delta:FOLDER")
    if address.is_folder and address.format == ICEBERG:
        raise PipelineError(f"{text}: Iceberg commits through a catalog; right would be iceberg:CATALOG.NAMESPACE")
    if not address.is_folder and address.format == DELTA:
        raise PipelineError(f"{text}: right would be delta:FOLDER, as in delta:./lake or delta:s3://bucket/lake")
    return address


def _beneath(address: TableAddress, name: str) -> TableAddress:
    mark = "/" if address.format == DELTA else "."
    return TableAddress(address.format, f"{address.place.rstrip('/')}{mark}{name}")


def _tables(folder: Path) -> Iterator[Path]:
    """Folders with Parquet in them; those that begin with a dot or an underscore are somebody's own."""
    for child in folder.iterdir():
        if child.is_dir() and child.name[0] not in "._" and any(child.rglob("*.parquet")):
            yield child


def _publish(table: Path, folder: Path, address: TableAddress) -> int:
    library = _library(address)
    files = sorted(str(path) for path in table.rglob("*.parquet") if _is_visible(path.relative_to(table)))
    numbers = {number for file in files if (number := _number(file)) is not None}
    if not numbers:
        run = blake2b("\n".join(files).encode(), digest_size=8).hexdigest()
        counted = _Counted(files)
        return counted.rows if library.replace(address, counted.reader, run) else 0
    done, complete = library.published(address), _complete(folder)
    new = [file for file in files if (number := _number(file)) is not None and done < number <= complete]
    if not new:
        return 0
    counted = _Counted(new)
    library.append(address, counted.reader, max(number for file in new if (number := _number(file)) is not None))
    return counted.rows


def _library(address: TableAddress) -> ModuleType:
    name, needs = ("iceberg", "pyiceberg") if address.format == ICEBERG else ("delta", "deltalake")
    if find_spec(needs) is None:
        raise PipelineError(f"{address.text}: needs {needs}, which comes with godwit[tables]")
    return import_module(f"godwit.pipeline.io.lake.{name}")


def _is_visible(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _number(file: str) -> int | None:
    """The micro-batch that wrote a file, or None where it was no stream."""
    for part in Path(file).parts:
        number = part.removeprefix(_BATCH)
        if part.startswith(_BATCH) and number.isdecimal():
            return int(number)
    return None


def _complete(folder: Path) -> int:
    """The newest micro-batch that all queries of the stream have finished: Spark notes it in the checkpoint."""
    newest = [
        max((int(note.name) for note in commits.iterdir() if note.name.isdecimal()), default=-1)
        for commits in folder.glob("_checkpoint/**/commits")
    ]
    return min(newest, default=-1)


class _Counted:
    """Rows of files as one stream of batches, in bounded memory, and how many have gone by."""

    def __init__(self, files: list[str]) -> None:
        self.rows = 0
        folders = sorted({part.partition("=")[0] for file in files for part in Path(file).parts[:-1] if "=" in part})
        # Names of folders are texts: 007 must not become 7.
        named = pa.schema([(name, pa.string()) for name in folders])
        inside = pa.unify_schemas(
            [pq.read_schema(file).remove_metadata() for file in files], promote_options="permissive"
        )
        everything = pa.unify_schemas([inside, named])
        found = ds.dataset(files, everything, format="parquet", partitioning=ds.partitioning(named, flavor="hive"))
        names = [name for name in everything.names if name != _BATCH.rstrip("=")]
        # A later batch may lack what this one has, so nothing is promised to be there always.
        self._schema = pa.schema([pa.field(name, _kept(everything.field(name).type)) for name in names])
        self.reader = pa.RecordBatchReader.from_batches(self._schema, self._batches(found.scanner(columns=names)))

    def _batches(self, scanner: ds.Scanner) -> Iterator[pa.RecordBatch]:
        for batch in scanner.to_batches():
            self.rows += batch.num_rows
            yield batch.cast(self._schema)


def _kept(kind: pa.DataType) -> pa.DataType:
    """Spark writes moments as 96 bits, which say no zone and are UTC; tables of other formats keep microseconds."""
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind
