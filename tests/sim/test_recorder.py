"""A trace is a table with a name."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from godwit.protocols.host import Record
from godwit.protocols.records import COLUMNS
from godwit.sim.recorder import Trace

FULL = {"kind": "delivered", "event": ("p", 7), "client": "s", "peer": "b", "message": "Pub", "size_b": 23, "hops": 2}


def traced(time_s: float = 1.5, node: str = "b1", **changes: object) -> Trace:
    trace = Trace()
    trace.record(time_s, node, Record(**{**FULL, "note": "direct", **changes}))  # type: ignore[arg-type]
    return trace


def test_the_same_facts_have_the_same_digest() -> None:
    assert traced().digest == traced().digest


@pytest.mark.parametrize(
    "change",
    [
        {"time_s": 1.5000000001},
        {"node": "b2"},
        {"kind": "queued"},
        {"event": ("q", 7)},
        {"event": ("p", 8)},
        {"event": None},
        {"client": "s2"},
        {"peer": ""},
        {"message": "Rep"},
        {"size_b": 24},
        {"hops": 3},
        {"note": "replayed"},
        {"client": "sb", "peer": ""},
    ],
)
def test_every_field_counts_for_the_digest(change: dict[str, object]) -> None:
    assert traced(**change).digest != traced().digest  # type: ignore[arg-type]


def test_order_counts_for_the_digest() -> None:
    one, other = Trace(), Trace()
    for trace, kinds in ((one, "ab"), (other, "ba")):
        for kind in kinds:
            trace.record(1.0, "n", Record(kind))
    assert one.digest != other.digest


def test_kinds_not_kept_still_count() -> None:
    trace, all_kept = Trace(frozenset({"kept"})), Trace()
    for kind in ("kept", "counted", "kept"):
        trace.record(1.0, "n", Record(kind))
        all_kept.record(1.0, "n", Record(kind))
    assert trace.digest == all_kept.digest
    assert trace.counts == {"kept": 2, "counted": 1}
    assert len(trace.rows) == len(trace.of("kept")) == 2


def test_a_trace_comes_back_from_parquet_as_it_was(tmp_path: Path) -> None:
    trace = traced()
    trace.record(2.0, "b2", Record("crashed"))
    trace.write(tmp_path / "trace.parquet")
    table = pq.read_table(tmp_path / "trace.parquet")
    assert tuple(table.column_names) == COLUMNS
    assert [tuple(row.values()) for row in table.to_pylist()] == trace.rows
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


def test_an_empty_trace_has_the_schema_all_the_same(tmp_path: Path) -> None:
    Trace().write(tmp_path / "empty.parquet")
    table = pq.read_table(tmp_path / "empty.parquet")
    assert table.num_rows == 0
    assert table.schema.field("sequence").type == "int64"
