"""`godwit lab relocation`: from rows to a report, and clear words where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.relocation.publications import made_up
from typer.testing import CliRunner

from godwit.cli import app
from godwit.lab.relocation.plan import QUICK
from godwit.lab.relocation.study import kept

pytestmark = pytest.mark.feature("content-routing F40")


def filled(folder: Path) -> list[str]:
    """The results of the quick plan, as if they had been run."""
    results = kept(folder / "results.parquet")
    for one in QUICK.runs():
        results.add(one, made_up(one))
    results.settle()
    return ["lab", "relocation", "--quick", "--no-spark", "--out", str(folder)]


def test_rows_become_a_report_with_every_claim(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*filled(tmp_path), "--report-only"])
    assert result.exit_code == 0, result.output
    assert all(f"C{number} " in result.output for number in range(12, 20))
    assert "170 ± 26" in (tmp_path / "report.md").read_text()
    assert "data:image/png" in (tmp_path / "report.html").read_text()


def test_trials_end_in_a_table_and_what_was_run_is_not_run_again(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*filled(tmp_path), "--trials"])
    assert result.exit_code == 0, result.output
    assert (
        "| acyclic, covering out of band | unsafe | 2 of 100 | 278 of 1,500 |" in (tmp_path / "trials.md").read_text()
    )


def test_a_report_on_nothing_is_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lab", "relocation", "--report-only", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
