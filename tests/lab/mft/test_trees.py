"""Trees compared in the same worlds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.mft.made import result

from godwit.lab import pages
from godwit.lab.mft.results import Results, Row
from godwit.lab.mft.trees import TREES, Comparison, page


@pytest.mark.feature("mft-pubsub F37")
def test_every_tree_grows_in_the_same_worlds() -> None:
    comparison = Comparison()
    worlds = [{(c.size, c.speed_mps, c.seed) for c in comparison.runs(tree, "mft", 8)} for tree in TREES]
    assert all(world == worlds[0] for world in worlds)
    assert len(set(comparison.all())) == len(comparison.all()) == 2 * 2 * 5 * 2 * 3


@pytest.mark.feature("mft-pubsub F37")
def test_the_table_shows_clear_differences_from_the_first_copy(tmp_path: Path) -> None:
    comparison = Comparison(sizes=(8,), protocols=("mft",))
    results = Results(tmp_path / "results.parquet")
    results.rows = [
        Row(run, result(migrations_per_min=(16.0 if run.patience_s else 106.0) + run.seed), results.made)
        for run in comparison.all()
    ]
    text = pages.markdown(page(comparison, results, "godwit lab trees"))
    line = next(line for line in text.splitlines() if "| patient |" in line)
    assert line.startswith("| mft | C8 | patient | 18 ± 2.5 (-90) | 6 ± 0 |")
