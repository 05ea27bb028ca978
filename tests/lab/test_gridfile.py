"""Grids from files: every combination with every seed, and what is wrong in a file is said."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.toys import Toy, play

from godwit.lab.gridfile import GridError, read
from godwit.lab.mft.runs import Configuration, run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sweeps" / "sizes.toml"


def written(folder: Path, text: str, name: str = "grid.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_combination_is_run_with_every_seed() -> None:
    grid = read(EXAMPLE)
    assert (grid.work, grid.configuration) == (run, Configuration)
    assert len(grid.runs) == len(set(grid.runs)) == 3 * 3 * 3
    assert {run.publish_s for run in grid.runs if isinstance(run, Configuration)} == {20.0}


def test_json_says_the_same_and_functions_of_others_are_found(tmp_path: Path) -> None:
    said = {"experiment": "tests.toys:play", "seeds": [7, 9], "grid": {"size": [2]}}
    grid = read(written(tmp_path, msgspec.json.encode(said).decode(), "grid.json"))
    assert grid.work is play
    assert grid.runs == [Toy(seed=7, size=2), Toy(seed=9, size=2)]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("experiment = ", "Invalid value"),
        ("seeds = 3", "missing required field `experiment`"),
        ("experiment = 'toy'", "experiment 'toy': one of mft, handoff, adhoc, explore, or a function of yours"),
        ("experiment = 'nowhere:play'", "No module named 'nowhere'"),
        ("experiment = 'tests.toys:pray'", "has no attribute 'pray'"),
        ("experiment = 'tests.toys:marked'", "must take one msgspec.Struct and return one"),
        ("experiment = 'tests.toys:play'\nseed = 3", "unknown field `seed`"),
        ("experiment = 'tests.toys:play'\nseeds = 0", "seeds: at least one"),
        (
            "experiment = 'tests.toys:play'\n[grid]\nsice = [1]",
            "'sice' is no parameter of tests.toys:play; there are size",
        ),
        ("experiment = 'tests.toys:play'\n[grid]\nsize = []", "grid.size has no values"),
        ("experiment = 'tests.toys:play'\n[fixed]\nsize = 'x'", "size = x, seed = 1: Expected `int`, got `str`"),
        ("experiment = 'mft'\n[fixed]\nsize = 3\nspeed_mps = 2.0", "size 3: give side_m, or one of 2, 4, 8, 16, 32"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(GridError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert told in str(error.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(GridError, match="cannot be read: No such file"):
        read(tmp_path / "grid.toml")
