"""Seeds of an exploration as runs of a grid."""

from __future__ import annotations

from pathlib import Path

from godwit.lab import gridfile
from godwit.lab.product.exploration import Configuration, run


def test_a_grid_file_names_explorations(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('experiment = "explore"\nseeds = 3\n')
    grid = gridfile.read(path)
    assert [one.seed for one in grid.runs] == [1, 2, 3]  # type: ignore[attr-defined]
    assert grid.work is run


def test_a_run_says_what_happened() -> None:
    result = run(Configuration(seed=3))
    assert result.failed == 0
    assert result.found == {}
    assert result.published > 10
    assert result.happened
