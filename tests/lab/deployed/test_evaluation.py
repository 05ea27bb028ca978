"""The published experiments with real brokers: who moves where, and what the page says."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from tests.seeds import few

from godwit.lab.deployed import evaluation
from godwit.lab.deployed.evaluation import NAMES, Configuration, Grid, Result, itinerary, page, results
from godwit.lab.models.topology import six_brokers
from godwit.lab.pages import markdown


@pytest.mark.feature("proactive-handoff F31")
def test_clients_move_as_the_mobility_engine_says() -> None:
    configuration = Configuration(scheme="proactive", seed=3, subscribers=1, pattern="NBR")
    steps = list(islice(itinerary(configuration, 0), 20_000))
    here, graph, back = "B1", six_brokers(), 0
    for step in steps:
        there = NAMES[step.to]
        assert there == here or there in graph[here]
        back += there == here
        here = there
    assert fmean(step.stay_s for step in steps) == pytest.approx(3.0, rel=0.05)
    assert back / len(steps) == pytest.approx(0.25, rel=0.05)
    # Half are disconnected for 0.6 s, and all but those that return are under way for 0.15 s.
    assert fmean(step.away_s for step in steps) == pytest.approx(0.5 * 0.6 + 0.75 * 0.15, rel=0.05)


def result(**figures: float) -> Result:
    return msgspec.convert(dict.fromkeys(Result.__struct_fields__, 0) | figures, Result)


def test_the_page_shows_ours_beside_the_published_numbers(tmp_path: Path) -> None:
    grid = Grid(subscribers=(10, 50))
    kept = results(tmp_path / "results.parquet")
    for cell in grid.cells():
        kept.add(cell, result(loss=0.5 if cell.scheme == "durable" else 0.0, latency_s=0.004, load=1.5))
    text = markdown(page(grid, kept, "godwit lab handoff --deployed"))
    assert "| 10 | 50.00 (4.78) | 50.00 (3.13) | 0.00 (3.65) | 0.00 (5.14) | 0.00 (2.25) | 0.00 (1.26) |" in text
    assert "| 50 | proactive | RND | 0.0040 (0.084) |" in text
    assert "load was 1.5 to 1.5" in text


@pytest.mark.feature("proactive-handoff F46")
@pytest.mark.parametrize("scheme", few(1, sorted(evaluation.SCHEMES, key=lambda one: one != "proactive")))
def test_a_cell_runs_with_real_brokers_and_loses_nothing_where_sessions_follow(scheme: str) -> None:
    found = evaluation.run(Configuration(scheme=scheme, seed=1, subscribers=6, warmup_s=1.0, measure_s=4.0))
    assert found.published > 10
    assert found.handoffs > 0
    if scheme != "durable":
        assert (found.lost, found.duplicated, found.disordered) == (0, 0, 0)
