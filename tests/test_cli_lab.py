"""`godwit lab mft`, `lab trees`, `lab convergence`: from options to pages, and how bad options are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.adhoc.made import as_published
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.lab import lab
from godwit.lab.adhoc.plan import Plan
from godwit.lab.mft.grid import Grid
from godwit.lab.mft.results import Results

SLICE = ["lab", "mft", "--no-spark", "--sizes", "2", "--speeds", "2,8", "--seeds", "1", "--seconds", "5"]


@pytest.mark.parametrize("command", ["adhoc", "mft", "trees", "convergence"])
def test_every_experiment_has_help_with_examples(command: str) -> None:
    result = CliRunner().invoke(app, ["lab", command, "--help"])
    assert result.exit_code == 0
    assert "Examples:" in result.stdout
    assert f"godwit lab {command} " in result.stdout


@pytest.mark.feature("mft-pubsub F33", "mft-pubsub F34")
def test_a_slice_of_the_grid_runs_reports_and_is_not_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = ["--out", str(tmp_path)]
    first = CliRunner().invoke(app, [*SLICE, *out])
    assert first.exit_code == 0, first.output
    assert "E17  " in first.output
    table = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(table) == 2 * 3 + 3 + 1
    assert "E17" in (tmp_path / "report.html").read_text()
    assert "--sizes 2 --speeds 2,8 --seeds 1 --seconds 5" in (tmp_path / "report.md").read_text()

    monkeypatch.setattr(lab, "run", lambda configuration: pytest.fail("nothing is left to run"))
    again = CliRunner().invoke(app, [*SLICE, *out])
    assert "10 runs, 10 finished before" in again.output
    only = CliRunner().invoke(app, [*SLICE, *out, "--report-only"])
    assert only.exit_code == 0


@pytest.mark.feature("mft-pubsub F33")
def test_an_interrupted_grid_keeps_what_it_finished(tmp_path: Path) -> None:
    options = ["--sizes", "2", "--speeds", "8", "--seeds", "9", "--seconds", "100", "--out", str(tmp_path)]
    command = [sys.executable, "-c", "from godwit.cli import main; main()", "lab", "mft", "--no-spark", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    finished = tmp_path / "results.parquet"
    while not finished.exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; what has finished is kept in" in said
    assert "Traceback" not in said
    grid = Grid(sizes=(2,), speeds_mps=(8.0,), seeds=9, publish_s=100.0)
    left = Results(finished).missing(grid.all())
    assert 0 < len(left) < len(grid.all())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sizes", "3"], "--sizes 3: 3 must be one of 2, 4, 8, 16, 32"),
        (["--sizes", "two"], "'two' is not a number"),
        (["--speeds", "-2"], "must be more than 0"),
        (["--speeds", "nan"], "must be more than 0"),
        (["--protocols", "mft,ospf"], "'ospf' is none of mft, hardened, aodv"),
        (["--workload", "anycast"], "unicast or multicast"),
        (["--seeds", "0"], "greater than or equal to 1"),
        (["--seconds", "0"], "greater than or equal to 1"),
        (["--report-only"], "no such file; run without --report-only first"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "run", lambda configuration: pytest.fail("it ran"))
    result = CliRunner().invoke(app, ["lab", "mft", "--out", str(tmp_path / "out"), *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


def test_results_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_text("nonsense")
    result = CliRunner().invoke(app, [*SLICE, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "not a Parquet file" in result.output


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    result = CliRunner().invoke(app, [*SLICE, "--out", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "cannot be made a folder for results" in result.output


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, [*SLICE, "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "pip install 'godwit[lab]'" in result.output


@pytest.mark.feature("mft-pubsub F37")
def test_trees_are_compared_in_one_table(tmp_path: Path) -> None:
    options = ["--sizes", "2", "--speeds", "4", "--seeds", "1", "--seconds", "5", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, ["lab", "trees", "--no-spark", *options])
    assert result.exit_code == 0, result.output
    assert result.stdout.count("| C2 |") == 10
    assert "patient, balanced" in (tmp_path / "trees.md").read_text()


@pytest.mark.feature("mft-pubsub F24")
def test_the_convergence_table_is_written_beside_its_counts(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["lab", "convergence", "--no-spark", "--seeds", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| settled, broker moves | " in (tmp_path / "convergence.md").read_text()
    assert len(pq.read_table(tmp_path / "results.parquet")) == 90


@pytest.mark.feature("manet-cbr F20")
def test_the_ad_hoc_plan_runs_reports_and_is_not_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.lab.adhoc.runs.run", as_published)
    command = ["lab", "adhoc", "--no-spark", "--seeds", "1", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "E2a  " in first.output
    assert len(pq.read_table(tmp_path / "results.parquet")) == len(Plan().cells())
    assert "godwit lab adhoc --seeds 1" in (tmp_path / "report.md").read_text()
    assert "data:image/png" in (tmp_path / "report.html").read_text()

    monkeypatch.setattr("godwit.lab.adhoc.runs.run", lambda configuration: pytest.fail("nothing is left to run"))
    again = CliRunner().invoke(app, command)
    assert "finished before" in again.output
    other = CliRunner().invoke(app, [*command, "--seconds", "10", "--report-only"])
    assert other.exit_code == 2
    assert "no run of this plan is there" in other.output


def test_programs_get_the_tables_of_the_models_as_one_object() -> None:
    told = json.loads(CliRunner().invoke(app, ["lab", "models", "--json"]).stdout)
    plain = CliRunner().invoke(app, ["lab", "models"]).stdout
    assert told["tables"]
    for table in told["tables"]:
        assert f"## {table['title']}" in plain
        assert all(len(row) == len(table["header"]) for row in table["rows"])
