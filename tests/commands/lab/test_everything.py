"""`godwit lab all`: the plan before the cost, and a site from what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.lab.test_site import STUDY, Shown, Toss
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.lab import everything
from godwit.lab.provenance import Provenance
from godwit.lab.results import Results


@pytest.fixture(autouse=True)
def one_study(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(everything, "STUDIES", {"dice": STUDY})


def called(*words: str) -> Any:
    return CliRunner().invoke(app, ["lab", "all", *words])


def test_the_plan_says_what_is_missing_and_what_it_costs_and_runs_nothing(tmp_path: Path) -> None:
    result = called("--plan", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "dice: 9 of 9 runs are missing, about 9 s of a core" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_everything_is_run_once_and_one_site_is_written(tmp_path: Path) -> None:
    first = called("--size", "quick", "--no-spark", "--out", str(tmp_path), "--documents", str(tmp_path / "docs"))
    assert first.exit_code == 0, first.stderr
    assert "1 reproduced" in first.stdout
    for name in ("index.html", "dice.html", "dice/results.parquet", "docs/index.md", "docs/dice.md"):
        assert (tmp_path / name).exists(), name
    again = called("--size", "quick", "--no-spark", "--out", str(tmp_path))
    assert "dice: 0 of 3 runs are missing" in again.stderr


def test_rows_of_other_code_count_only_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called("--size", "quick", "--no-spark", "--out", str(tmp_path))
    newer = msgspec.structs.replace(STUDY, kept=lambda path: Results(path, Toss, Shown, Provenance(code="newer")))
    monkeypatch.setattr(everything, "STUDIES", {"dice": newer})
    plan = ("--plan", "--size", "quick", "--out", str(tmp_path))
    assert "dice: 3 of 3 runs are missing" in called(*plan).stderr
    assert "dice: 0 of 3 runs are missing" in called(*plan, "--any-code").stderr


def test_rows_of_other_code_count_where_some_that_are_run_again_come_out_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called("--size", "quick", "--no-spark", "--out", str(tmp_path))
    newer = msgspec.structs.replace(STUDY, kept=lambda path: Results(path, Toss, Shown, Provenance(code="newer")))
    monkeypatch.setattr(everything, "STUDIES", {"dice": newer})
    words = ("--size", "quick", "--no-spark", "--out", str(tmp_path))
    plan = called(*words, "--plan", "--vouch").stderr
    assert "dice: 1 runs of code c0de will be run again" in plan
    assert "dice: 0 of 3 runs are missing" in plan
    assert not (tmp_path / "dice" / "vouchers.json").exists()
    assert "Code newer has run 1 of the 3 runs of code c0de again" in called(*words, "--report-only", "--vouch").stderr
    assert "dice: 0 of 3 runs are missing" in called(*words, "--plan").stderr, "found again without being asked for"
    assert "run 1 of the 3 runs of code c0de again" in (tmp_path / "dice.html").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--size", "huge"], "--size huge: one of quick, short, published"),
        (["--only", "chess"], "--only chess: there is no such study; there are dice"),
        (["--report-only"], "no run of size short or smaller is there"),
    ],
)
def test_what_cannot_be_done_is_told(tmp_path: Path, words: list[str], told: str) -> None:
    result = called(*words, "--out", str(tmp_path))
    assert result.exit_code == 2
    assert told in result.stderr


def test_studies_that_are_run_one_by_one_are_all_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    coins = msgspec.structs.replace(STUDY, name="coins", title="Coins")
    monkeypatch.setattr(everything, "STUDIES", {"dice": STUDY, "coins": coins})
    for name in ("coins", "dice"):
        done = called("--only", name, "--size", "quick", "--no-spark", "--out", str(tmp_path))
        assert f"{name}: 0 of 3" not in done.stderr, "only what is asked for is run"
    index = (tmp_path / "index.html").read_text()
    assert index.index("dice.html") < index.index("coins.html")
    assert "10 statements" in index


def test_a_library_that_the_report_needs_is_asked_for_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "find_spec", lambda name: None)
    result = called("--out", str(tmp_path))
    assert result.exit_code == 2
    assert "lab all needs scipy, which comes with godwit[lab]" in result.stderr
    assert list(tmp_path.iterdir()) == []
