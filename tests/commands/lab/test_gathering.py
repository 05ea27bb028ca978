"""`godwit lab gathering`: from options to a report, and clear words about bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from godwit.cli import app

pytestmark = pytest.mark.feature("data-gathering F41")


def test_a_small_plan_writes_results_and_a_report_with_every_claim(tmp_path: Path) -> None:
    arguments = ["lab", "gathering", "--quick", "--sizes", "8", "--seeds", "1", "--no-spark", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert all(f"C{number} " in result.output for number in range(1, 16))
    assert "S2: notices" in (tmp_path / "report.md").read_text()
    assert "data:image/png" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "results.parquet").exists()


def test_defects_end_in_a_table(tmp_path: Path) -> None:
    arguments = ["lab", "gathering", "--defects", "--seeds", "1", "--no-spark", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Moves faster than messages" in result.output
    assert "Joins under random delays" in (tmp_path / "defects.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sizes", "8,many"], "'many' is not a number"),
        (["--sizes", "1"], "2 to 256 brokers"),
        (["--scale", "--defects"], "give one of them"),
        (["--data", "nowhere"], "there is no sf_taxi_gps_week.parquet"),
    ],
)
def test_bad_options_are_said(arguments: list[str], told: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lab", "gathering", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert told in result.output
