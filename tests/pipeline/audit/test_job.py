"""The audit job on the trace of a simulation, and on the shape that deployed brokers archive."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from godwit.pipeline.audit.job import PAGE, AuditOptions, run, run_stream
from godwit.pipeline.streaming.queries import Pace
from godwit.protocols import records
from godwit.protocols.host import Record
from godwit.sim.recorder import Trace


def test_a_recorded_run_is_judged_and_shown_on_a_page(spark: SparkSession, tmp_path: Path) -> None:
    trace = Trace()
    for sequence in range(3):
        trace.record(float(sequence), "p", Record("published", ("p", sequence), client="p"))
        trace.record(float(sequence), "p", Record("matched", ("p", sequence), client="<c>"))
    for time_s, sequence in ((0.5, 0), (1.5, 1), (1.6, 1)):
        trace.record(time_s, "<c>", Record("delivered", ("p", sequence), client="<c>", hops=2))
    trace.write(tmp_path / "run.parquet")
    summary = run(spark, AuditOptions(traces=str(tmp_path / "run.parquet"), out=str(tmp_path / "out")))
    assert summary.notes == [
        "3 expected, 2 delivered, 1 lost (0 of them dropped knowingly)",
        "1 came twice, 0 out of order, 0 unasked",
    ]
    page = (tmp_path / "out" / PAGE).read_text()
    assert "1 lost, 1 twice, 0 out of order." in page
    assert "&lt;c&gt;" in page
    assert "<c>" not in page


def test_where_brokers_do_not_say_who_should_get_what_the_match_job_does(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"time_s": 1.0, "node": "b", "kind": "published", "publisher": "p", "sequence": 0, "client": "p"},
        {"time_s": 1.2, "node": "b", "kind": "delivered", "publisher": "p", "sequence": 0, "client": "c"},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=records.schema()), tmp_path / "traces-1.parquet")
    plain = AuditOptions(traces=str(tmp_path / "traces-1.parquet"), out=str(tmp_path / "out"))
    assert run(spark, plain).notes[0].startswith("1 deliveries; the traces do not say who should have got what")
    deliveries = {"publisher": ["p", "p"], "sequence": [0, 0], "subscription": ["c", "d"]}
    pq.write_table(pa.table(deliveries), tmp_path / "deliveries.parquet")
    informed = AuditOptions(
        traces=plain.traces,
        out=plain.out,
        expected=str(tmp_path / "deliveries.parquet"),
        expected_select="publisher, sequence, subscription AS client",
    )
    assert run(spark, informed).notes[0] == "2 expected, 1 delivered, 1 lost (0 of them dropped knowingly)"


def test_a_stream_judges_what_has_ended_and_calls_nothing_lost_that_is_on_its_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    trace = Trace()
    for sequence, time_s in enumerate((0.0, 1.0, 2.0, 100.0)):
        trace.record(time_s, "p", Record("published", ("p", sequence), client="p"))
        trace.record(time_s, "p", Record("matched", ("p", sequence), client="c"))
    for time_s, sequence in ((0.5, 0), (1.5, 1), (1.6, 1)):
        trace.record(time_s, "c", Record("delivered", ("p", sequence), client="c", hops=2))
    trace.record(3.0, "c", Record("attached", client="c", peer="b"))
    (tmp_path / "traces").mkdir()
    trace.write(tmp_path / "traces" / "run.parquet")
    asked = AuditOptions(traces=str(tmp_path / "traces"), out=str(tmp_path / "out"), late="10 seconds")
    summary = run_stream(spark, asked, Pace())
    assert summary.notes[:2] == [
        "3 expected, 2 delivered, 1 lost (0 of them dropped knowingly)",
        "1 came twice, 0 out of order, 0 unasked",
    ]
    assert (tmp_path / "out" / "judged" / PAGE).exists()
    kept = pq.read_table(tmp_path / "out" / "outcomes").num_rows, pq.read_table(tmp_path / "out" / "others").num_rows
    assert kept == (3, 1)
