"""Sweeps as users see them: what failed is told and tried again, what finished is not, and Spark may be missing."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from tests.toys import Played, Toy, marked, play
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.console import InputError
from godwit.commands.pipeline import sweeping
from godwit.commands.pipeline.sweeping import Where, in_order, opened, swept
from godwit.lab.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
HERE = Where(spark=False)
TOYS = [Toy(seed=seed, size=size) for size in (2, 3) for seed in (1, 2)]


def kept(path: Path) -> Results[Toy, Played]:
    return Results(path, Toy, Played)


def test_what_failed_is_told_with_its_configuration_and_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = [Toy(seed=seed, size=5, fails=True) for seed in (1, 2, 3)]
    with opened(str(tmp_path), kept) as results:
        assert swept(broken, results, play, HERE) == 1
    told = capsys.readouterr().err
    assert "1 runs failed for good" in told
    assert "seed=2 size=5 fails=True: RuntimeError: no luck with 2" in told
    (line,) = (tmp_path / "failed.jsonl").read_text().splitlines()
    assert json.loads(line)["configuration"] == {"seed": 2, "size": 5, "marks": "", "takes_s": 0.0, "fails": True}
    assert "tests/toys.py" in json.loads(line)["error"]
    ran: list[Toy] = []

    def mended(toy: Toy) -> Played:
        ran.append(toy)
        return Played(0, 0.0)

    with opened(str(tmp_path), kept) as results:
        assert swept(broken, results, mended, HERE) == 0
    assert ran == [broken[1]]
    assert not (tmp_path / "failed.jsonl").exists()
    assert len(pq.read_table(tmp_path / "results.parquet")) == 3


def test_on_spark_the_costliest_run_first_and_else_what_was_wanted_first(tmp_path: Path) -> None:
    ran: list[int] = []

    def noted(toy: Toy) -> Played:
        ran.append(toy.seed)
        return play(toy)

    toys = [Toy(seed=seed, size=2) for seed in (2, 3, 1)]
    with opened(str(tmp_path), kept) as results:
        assert swept(toys, results, noted, HERE, cost=lambda toy: float(toy.seed)) == 0
    assert ran == [2, 3, 1]
    for where in (Where(), Where(spark=True)):
        assert [toy.seed for toy in in_order(toys, lambda toy: float(toy.seed), where)] == [3, 2, 1]


def test_a_disk_that_is_full_is_told_and_what_was_kept_is_still_there(tmp_path: Path) -> None:
    class Full(Results[Toy, Played]):
        def add(self, configuration: Toy, result: Played) -> None:
            if len(self.rows) == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            super().add(configuration, result)

    full = Full(tmp_path / "results.parquet", Toy, Played)
    with pytest.raises(InputError, match="No space left on device; what was kept before is still there"):
        swept(TOYS, full, play, HERE)
    assert len(kept(full.path).rows) == 2


def test_without_pyspark_runs_go_one_after_the_other_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sweeping, "START_S", 0.0)
    monkeypatch.delitem(sys.modules, "godwit.pipeline.sweep.runs", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with opened(str(tmp_path), kept) as results:
        assert swept(TOYS, results, play, Where()) == 0
    told = capsys.readouterr().err
    assert "needs pyspark, which comes with godwit[pipeline]; without Spark, runs go one after the other" in told
    assert len(results.rows) == 4


@pytest.mark.parametrize("where", [Where(spark=True), Where(master="local[2]")])
def test_whoever_asks_for_spark_gets_it_or_an_error(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "godwit.pipeline.sweep.runs", raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with opened(str(tmp_path), kept) as results, pytest.raises(InputError, match="needs pyspark"):
        swept(TOYS, results, play, where)


@pytest.mark.parametrize("runs", [1, 4])
def test_runs_that_are_over_before_spark_had_started_are_no_reason_to_start_it(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "started", lambda *_: pytest.fail("Spark was started"))
    with opened(str(tmp_path), kept) as results:
        assert swept(TOYS[:runs], results, play, Where()) == 0
        assert len(results.rows) == runs


@pytest.mark.parametrize(
    ("left_s", "cores", "is_worth"), [(9, 64, False), (12, 64, True), (22, 2, False), (27, 2, True), (27, 1, True)]
)
def test_spark_is_worth_its_start_where_its_cores_make_up_for_it(left_s: float, cores: int, is_worth: bool) -> None:
    assert sweeping.is_worth_spark(left_s, cores) == is_worth


def test_a_first_run_that_loads_what_others_find_there_is_no_measure_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "started", lambda *_: pytest.fail("Spark was started"))
    toys = [Toy(seed=1, takes_s=0.5), *(Toy(seed=seed) for seed in range(2, 103))]
    with opened(str(tmp_path), kept) as results:
        assert swept(toys[::-1], results, play, Where()) == 0
        assert len(results.rows) == len(toys)


def test_the_cheapest_run_tells_whether_the_others_are_worth_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[int]] = []

    def spark_missing(*_: object) -> None:
        asked.append([row.configuration.seed for row in results.rows])
        raise InputError("no Spark today")

    monkeypatch.setattr(sweeping, "started", spark_missing)
    toys = [Toy(seed=seed, takes_s=0.01 * seed) for seed in (1, 2, 3)]
    with opened(str(tmp_path), kept) as results:
        assert swept(toys, results, play, Where(), cost=lambda toy: toy.seed**20) == 0
    assert asked == [[1]]
    assert len(results.rows) == 3


def test_no_spark_and_a_master_contradict_each_other(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["lab", "races", "--no-spark", "--master", "local[2]", "--out", str(tmp_path)])
    assert answer.exit_code == 2
    assert "--no-spark: nothing runs on Spark then" in answer.stderr


def test_a_summary_does_not_outlive_its_runs(tmp_path: Path) -> None:
    (tmp_path / "summary.parquet").touch()
    with opened(str(tmp_path), kept) as results:
        swept(TOYS, results, play, HERE)
    assert not (tmp_path / "summary.parquet").exists()


def test_a_sweep_on_spark_goes_on_after_ctrl_c_and_runs_nothing_twice(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is interrupted as people do it, with the Java of its own. What it goes on in is the session of all tests."""
    marks, out, grid = tmp_path / "marks", tmp_path / "out", tmp_path / "grid.toml"
    marks.mkdir()
    grid.write_text(
        f'experiment = "tests.toys:play"\nseeds = 6\n[grid]\nsize = [2, 3]\n'
        f'[fixed]\nmarks = "{marks}"\ntakes_s = 0.2\nfails = true\n'
    )
    words = ["pipeline", "sweep", str(grid), "--out", str(out), "--master", "local[2]"]
    command = [sys.executable, "-m", "godwit", *words]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while finished(out) < 2 and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    told = process.communicate(timeout=300)[1]
    assert process.returncode == 130
    assert "interrupted; what has finished is kept in" in told
    assert "Traceback" not in told
    before = {(row.configuration.size, row.configuration.seed) for row in kept(out / "results.parquet").rows}
    assert 2 <= len(before) < 10
    so_far = marked(marks)
    monkeypatch.setattr(sweeping, "started", lambda *_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda self: None)
    last = CliRunner().invoke(app, words)
    assert last.exit_code == 1
    assert last.stderr.count("RuntimeError: no luck with 2") == 2
    assert {run: marked(marks)[run] for run in before} == {run: so_far[run] for run in before}
    rows = pq.read_table(out / "results.parquet").to_pylist()
    assert sorted((row["size"], row["seed"]) for row in rows) == [(n, seed) for n in (2, 3) for seed in (1, 3, 4, 5, 6)]
    means = {(row["size"], row["measure"]): row for row in pq.read_table(out / "summary.parquet").to_pylist()}
    assert means[3, "area"]["mean"] == means[3, "area"]["low"] == 9
    assert means[2, "noise"]["runs"] == 5
    assert means[2, "noise"]["low"] < 19 / 35 < means[2, "noise"]["high"]


def finished(out: Path) -> int:
    path = out / "results.parquet"
    return len(kept(path).rows) if path.exists() else 0
