"""`godwit lab handoff`: from options to pages, and how bad options are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from godwit.cli import app
from godwit.lab.handoff import runs

SLICE = [
    "lab",
    "handoff",
    "--no-spark",
    "--quick",
    "--subscribers",
    "4,8",
    "--seconds",
    "4",
    "--seeds",
    "1",
    "--only",
    "X2",
]


@pytest.mark.feature("proactive-handoff F36", "proactive-handoff F43")
def test_a_slice_runs_reports_and_is_not_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ["--schemes", "durable,proactive", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, [*SLICE, *out])
    assert first.exit_code == 0, first.output
    assert "Q22  " in first.output
    assert len(pq.read_table(tmp_path / "results.parquet").to_pylist()) == 2 * 2 * 2
    report = (tmp_path / "report.md").read_text()
    assert "## X10: throughput, msg/s" in report
    assert "## Predicted and measured" in report
    assert "--only X2 --subscribers 4,8 --seeds 1 --schemes durable,proactive --seconds 4" in report
    assert "Distribution of handoff latency" in (tmp_path / "report.html").read_text()

    monkeypatch.setattr(runs, "run", lambda configuration: pytest.fail("nothing is left to run"))
    again = CliRunner().invoke(app, [*SLICE, *out])
    assert "8 runs, 8 finished before" in again.output
    assert CliRunner().invoke(app, [*SLICE, *out, "--report-only"]).exit_code == 0


def test_what_else_varies_is_tried_with_as_many_as_asked_for(tmp_path: Path) -> None:
    few = ["--base", "5", "--schemes", "durable", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*SLICE[:-1], "X6", *few])
    assert done.exit_code == 0, done.output
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert sorted((row["subscribers"], row["disconnect_s"]) for row in rows) == [(5, 12.0), (5, 24.0)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--only", "X11"], "'X11' is none of X1"),
        (["--subscribers", "many"], "'many' is not a number"),
        (["--subscribers", "0"], "0 must be 1 to 1000"),
        (["--schemes", "magic"], "'magic' is none of durable"),
        (["--base", "0"], "greater than or equal to 1"),
        (["--deployed", "--base", "50"], "nothing but the number of subscribers varies"),
        (["--report-only"], "run without --report-only first"),
    ],
)
def test_bad_options_are_refused_with_what_would_be_right(tmp_path: Path, options: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["lab", "handoff", *options, "--out", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert said in result.output.replace("\n", " ")
