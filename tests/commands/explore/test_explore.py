"""What can be typed after `godwit explore`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sim.exploration.plans import CRASH, small_plan
from typer.testing import CliRunner

from godwit.cli import app
from godwit.sim.exploration.plan import save


def explore(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explore", *words])
    return result.exit_code, result.output


def test_seeds_are_explored_told_by_kind_and_not_tried_again(tmp_path: Path) -> None:
    where = ("--out", str(tmp_path), "--workers", "1")
    status, said = explore("--seeds", "2", *where)
    assert status == 0, said
    assert "seeds 0 to 1" in said
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert [json.loads(line)["seed"] for line in lines] == [0, 1]
    with (tmp_path / "results.jsonl").open("a") as results:
        results.write('{"seed": 2, "fab')  # a crash while it was written
    status, said = explore("--seeds", "2", *where)
    assert status == 0, said
    assert "2 seeds are in" in said
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 3
    assert "partition" in said


def test_programs_get_the_table_and_nothing_else(tmp_path: Path) -> None:
    words = ["explore", "--seeds", "1", "--out", str(tmp_path), "--workers", "1", "--json"]
    result = CliRunner().invoke(app, words)
    told = json.loads(result.stdout)
    assert (told["failed"], told["by_kind"]["all"]) == ([], {"seeds": 1, "failed": 0})


def test_worlds_of_what_lasts_are_kept_apart_from_others(tmp_path: Path) -> None:
    where = ("--seeds", "1", "--first", "60", "--out", str(tmp_path), "--workers", "1")
    assert explore(*where)[0] == 0
    status, said = explore(*where, "--worlds", "lasting")
    assert status == 0, said
    assert "worlds lasting: seeds 60 to 60" in said
    assert "already" not in said
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [line["worlds"] for line in lines] == ["any", "lasting"]
    assert {"lasting", "since"} <= set(lines[1]["kinds"])


def test_a_plan_is_replayed_and_drawn(tmp_path: Path) -> None:
    save(small_plan(*CRASH), tmp_path / "plan.json")
    status, said = explore("--replay", str(tmp_path / "plan.json"), "--out", str(tmp_path / "out"))
    assert status == 0, said
    assert "strike broker=b2" in said
    assert (tmp_path / "out" / "replay-1.html").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seeds", "2", "--minutes", "1"), "give one of them"),
        (("--fabric", "rope"), "--fabric rope: one of tree"),
        (("--worlds", "dry"), "--worlds dry: one of any, lasting, apart"),
        (("--replay", "nowhere.json"), "nowhere.json: No such file"),
    ],
)
def test_bad_input_is_told_in_a_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    status, output = explore(*words, "--out", str(tmp_path))
    assert status == 2
    assert said in output
    assert "Traceback" not in output
