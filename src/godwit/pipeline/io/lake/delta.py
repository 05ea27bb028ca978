"""Delta through its Python library, which needs neither Java nor a catalog.

Tables in an object store take the library's options from the environment: `AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import TableAddress

APP = "godwit"
"""Who counts its commits in the table's log."""

RUN = "godwit.run"


class DeltaFolder:
    """A table as it is now, or as it was at the version or time of the address."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        self._table = _opened(address)
        try:
            self._rows = self._table.to_pyarrow_dataset()
        except DeltaProtocolError as error:
            raise PipelineError(
                f"{address.text}: {error}; the Python library cannot read such a table, Spark's own delta-spark can"
            ) from None
        self._fragments = {fragment.path: fragment for fragment in self._rows.get_fragments()}

    def pinned(self) -> TableAddress:
        return TableAddress(
            self._address.format, self._address.place, version=self._table.version(), options=_environment()
        )

    def schema(self) -> pa.Schema:
        found: pa.Schema = self._rows.schema
        return found

    def parts(self) -> Sequence[object]:
        """What one task reads each: a file that belongs to this version."""
        return list(self._fragments)

    def read(self, part: object) -> Iterator[pa.RecordBatch]:
        """The rows of a file in the table's schema; columns that it did not have yet are null."""
        yield from self._fragments[part].to_batches(schema=self._rows.schema)


def _opened(address: TableAddress) -> DeltaTable:
    try:
        told = dict(address.options) or None
        table = DeltaTable(address.place.removeprefix("file://"), version=address.version, storage_options=told)
        if address.time_ms is not None:
            table.load_as_version(datetime.fromtimestamp(address.time_ms / 1000, UTC))
    except DeltaError as error:
        raise PipelineError(f"{address.text}: {str(error).splitlines()[0]}") from None
    return table


def _environment() -> tuple[tuple[str, str], ...]:
    """What the library would take from here, for machines where it is not set."""
    return tuple((name, value) for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_", "GOOGLE_")))


def replace(address: TableAddress, rows: pa.RecordBatchReader, run: str) -> bool:
    """Let the table have these rows and no others, in one commit; False where this run was published before."""
    told = _known(address)
    if told is not None and any(commit.get(RUN) == run for commit in told.history(1)):
        return False
    properties = CommitProperties(custom_metadata={RUN: run})
    write_deltalake(address.place, rows, mode="overwrite", schema_mode="overwrite", commit_properties=properties)
    return True


def append(address: TableAddress, rows: pa.RecordBatchReader, number: int) -> None:
    """Add the rows of micro-batches up to this number, in one commit that also says so."""
    properties = CommitProperties(app_transactions=[Transaction(APP, number)])
    write_deltalake(address.place, rows, mode="append", schema_mode="merge", commit_properties=properties)


def published(address: TableAddress) -> int:
    """The micro-batch that was added last, -1 before the first."""
    table = _known(address)
    found = None if table is None else table.transaction_version(APP)
    return -1 if found is None else found


def _known(address: TableAddress) -> DeltaTable | None:
    try:
        return DeltaTable(address.place)
    except TableNotFoundError:
        return None
