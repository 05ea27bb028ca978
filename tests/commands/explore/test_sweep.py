"""A sweep counts by kind of fault, and explains what fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console
from tests.sim.exploration.plans import small_plan

from godwit.commands.explore import sweep
from godwit.commands.explore.sweep import Outcome, explained, table
from godwit.sim.exploration.plan import load


def test_seeds_and_failures_are_counted_by_kind() -> None:
    outcomes = [
        Outcome(seed=1, fabric="tree", kinds=("crash", "come")),
        Outcome(seed=2, fabric="tree", kinds=("crash",), found=("lost",)),
        Outcome(seed=3, fabric="tree", kinds=("come",)),
    ]
    console = Console(record=True, width=100)
    console.print(table(outcomes))
    rows = {line.split("  ")[0].strip(): line.split()[-3:] for line in console.export_text().splitlines()}
    assert rows["crash"] == ["2", "1", "1"]
    assert rows["come"] == ["2", "0", "0"]
    assert rows["nothing wrong with brokers"] == ["1", "0", "0"]
    assert rows["all"] == ["3", "1", "1"]


def test_a_failure_is_saved_whole_and_small_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "reduced", lambda plan, kinds: small_plan())
    explained(small_plan(), tmp_path, shrink=True)
    assert load(tmp_path / "seed-1.small.json") == load(tmp_path / "seed-1.json") == small_plan()
    assert (tmp_path / "seed-1.txt").read_text().startswith("seed 1, tree")
    assert (tmp_path / "seed-1.html").exists()
