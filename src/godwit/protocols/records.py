"""Records as rows: the one schema of every trace, simulated or real, so that one audit reads both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from godwit.protocols.host import NodeId, Record

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[float, NodeId, str, str | None, int | None, str, str, str, int, int, str]

COLUMNS = ("time_s", "node", "kind", "publisher", "sequence", "client", "peer", "message", "size_b", "hops", "note")


def row(time_s: float, node: NodeId, record: Record) -> Row:
    publisher, sequence = record.event or (None, None)
    return (
        time_s,
        node,
        record.kind,
        publisher,
        sequence,
        record.client,
        record.peer,
        record.message,
        record.size_b,
        record.hops,
        record.note,
    )


def schema() -> pa.Schema:
    """Arrow takes its time to load, and most runs keep no trace."""
    import pyarrow as pa

    kinds = {"time_s": pa.float64(), "sequence": pa.int64(), "size_b": pa.int64(), "hops": pa.int64()}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
