from __future__ import annotations

from pathlib import Path

from tests.lab.recorded.rings import a_ring
from typer.testing import CliRunner

from godwit.cli import app


def lab_recorded(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lab", "recorded", *words])
    return result.exit_code, result.output


def test_all_schemes_are_compared_and_what_has_run_is_not_run_again(tmp_path: Path) -> None:
    ring = a_ring(tmp_path / "moves", walkers=3, hours=0.2)
    words = (str(ring), "--learn", "0.1", "--hours", "0.05", "--out", str(tmp_path / "out"), "--no-spark")
    status, output = lab_recorded(*words)
    assert status == 0
    assert "| foreseen 0.997, disk |" in output
    assert (tmp_path / "out" / "recorded.md").exists()
    status, output = lab_recorded(*words)
    assert status == 0
    assert "13 finished before" in output


def test_a_folder_without_movement_is_refused_with_a_line(tmp_path: Path) -> None:
    status, output = lab_recorded(str(tmp_path), "--out", str(tmp_path / "out"))
    assert status == 2
    assert "visits" in output
    assert "Traceback" not in output
