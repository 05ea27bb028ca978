"""Iceberg through its Python library: what Spark's own package does on a cluster that has it, where none has it.

A catalog is configured as the library wants it: `~/.pyiceberg.yaml`, or `PYICEBERG_CATALOG__LAKE__URI` and the like.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import pyarrow as pa

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import TableAddress

if TYPE_CHECKING:
    from pyiceberg.table import Table

PUBLISHED = "godwit.published"
"""A property of a table: what was published to it last."""


class IcebergTable:
    """A table as it is now, or as it was at the version or time of the address."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        self._table = _opened(address)
        self._snapshot = _snapshot(self._table, address)

    def pinned(self) -> TableAddress:
        """By the file of metadata that was opened, which never changes, and without a catalog."""
        table, newest = self._table, self._table.current_snapshot()
        snapshot = self._snapshot if self._snapshot is not None or newest is None else newest.snapshot_id
        options = tuple((name, str(value)) for name, value in table.io.properties.items())
        return TableAddress(self._address.format, table.metadata_location, version=snapshot, options=options)

    def schema(self) -> pa.Schema:
        """With the names and types that the table had then."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        found: pa.Schema = schema_to_pyarrow(self._scan().projection(), include_field_ids=False)
        return found

    def parts(self) -> Sequence[object]:
        """What one task reads each: a file with the deletes that go with it."""
        return list(self._scan().plan_files())

    def read(self, part: object) -> Iterator[pa.RecordBatch]:
        """The rows of a file by the table's schema: columns by their ids, whatever they were called when it was
        written, without rows that were deleted."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self._table.metadata, self._table.io, self._scan().projection(), AlwaysTrue())
        yield from scan.to_record_batches([part])  # type: ignore[list-item]

    def _scan(self) -> Any:
        return self._table.scan(snapshot_id=self._snapshot)


def _opened(address: TableAddress) -> Table:
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    if address.is_folder:
        newest = _newest_metadata(address.place)
        try:
            return StaticTable.from_metadata(newest, dict(address.options))
        except (ValidationError, ValueError, OSError) as error:
            told = (str(error).splitlines() or [""])[0]
            raise PipelineError(f"{newest}: damaged metadata of an Iceberg table: {told}") from None
    found: Table = _catalog(address).load_table(_identifier(address))
    return found


def _newest_metadata(folder: str) -> str:
    if "://" in folder.removeprefix("file://") or folder.endswith(".metadata.json"):
        return folder  # in a folder the library reads version-hint.text
    found = list(Path(folder.removeprefix("file://"), "metadata").glob("*.metadata.json"))
    if not found:
        raise PipelineError(f"iceberg:{folder}: there is no metadata/*.metadata.json; is it the folder of a table?")
    # Names begin with a number that grows (catalogs), or are v and the number (Hadoop's tables).
    return str(max(found, key=lambda path: int(path.name.removeprefix("v").split("-")[0].split(".")[0])))


def _catalog(address: TableAddress) -> Any:
    from pyiceberg.catalog import load_catalog

    name, dot, rest = address.place.partition(".")
    if not dot or "." not in rest:
        raise PipelineError(f"{address.text}: right would be iceberg:CATALOG.NAMESPACE.TABLE, or a folder")
    try:
        return load_catalog(name)
    except Exception as error:
        raise PipelineError(
            f"{address.text}: the catalog {name!r} cannot be opened: {error}; it is configured in ~/.pyiceberg.yaml"
            f" or by PYICEBERG_CATALOG__{name.upper()}__URI"
        ) from None


def _identifier(address: TableAddress) -> str:
    return address.place.partition(".")[2]


def _snapshot(table: Table, address: TableAddress) -> int | None:
    if address.version is not None:
        if table.snapshot_by_id(address.version) is None:
            known = ", ".join(str(one.snapshot_id) for one in table.snapshots()[-5:]) or "none"
            raise PipelineError(f"{address.text}: there is no snapshot {address.version}; the newest are {known}")
        return address.version
    if address.time_ms is None:
        return None
    found = table.snapshot_as_of_timestamp(address.time_ms)
    if found is None:
        raise PipelineError(f"{address.text}: the table was not there yet at that time")
    return found.snapshot_id


def replace(address: TableAddress, rows: pa.RecordBatchReader, run: str) -> bool:
    """Let the table have these rows and no others, in one commit; False where this run was published before."""
    table = _made(address, rows.schema)
    if table.properties.get(PUBLISHED) == run:
        return False
    with catch_warnings(), table.transaction() as change:
        simplefilter("ignore", UserWarning)  # the first run finds nothing to delete
        change.overwrite(_in_types_of(table, rows), snapshot_properties={PUBLISHED: run})
        change.set_properties({PUBLISHED: run})
    return True


def append(address: TableAddress, rows: pa.RecordBatchReader, number: int) -> None:
    """Add the rows of micro-batches up to this number, in one commit that also says so."""
    table = _made(address, rows.schema)
    with table.transaction() as change:
        change.append(_in_types_of(table, rows), snapshot_properties={PUBLISHED: str(number)})
        change.set_properties({PUBLISHED: str(number)})


def published(address: TableAddress) -> int:
    """The micro-batch that was added last, -1 before the first."""
    from pyiceberg.exceptions import NoSuchTableError

    try:
        return int(_catalog(address).load_table(_identifier(address)).properties.get(PUBLISHED, "-1"))
    except NoSuchTableError:
        return -1
    except ValueError:
        raise PipelineError(f"{address.text}: was published to by a batch; a stream needs a table of its own") from None


def _made(address: TableAddress, schema: pa.Schema) -> Table:
    """The table, with columns added that it did not have yet."""
    catalog, identifier = _catalog(address), _identifier(address)
    catalog.create_namespace_if_not_exists(identifier.rpartition(".")[0])
    table: Table = catalog.create_table_if_not_exists(identifier, schema)
    with table.update_schema() as change:
        change.union_by_name(schema)
    return table


def _in_types_of(table: Table, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """A table that was widened keeps its wider types."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    types = {field.name: field.type for field in schema_to_pyarrow(table.schema(), include_field_ids=False)}
    return rows.cast(pa.schema([(field.name, types[field.name]) for field in rows.schema]))
