"""The report: every claim, every figure, and what the runs were."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.lab.mft.made import result

from godwit.lab import pages
from godwit.lab.mft.claims import CLAIMS
from godwit.lab.mft.figures import drawn
from godwit.lab.mft.grid import QUICK, Grid
from godwit.lab.mft.report import evidence_of, page
from godwit.lab.mft.results import Results, Row

GRID = Grid(sizes=(2, 16), speeds_mps=(2.0, 8.0), seeds=2)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results.parquet")
    made.rows = [Row(run, result(), made.made) for run in GRID.all()]
    return made


@pytest.mark.feature("mft-pubsub F34")
def test_the_page_stands_alone_with_six_figures_and_names_every_claim(results: Results) -> None:
    html = pages.html(page(GRID, results, "godwit lab mft"), drawn(evidence_of(GRID, results)))
    assert html.count("data:image/png;base64,") == 6
    assert not re.search(r"(src|href)=\"(?!data:)", html)
    for claim in CLAIMS.values():
        assert f"<td>{claim.name}</td>" in html
    assert len(re.findall(r'class="(reproduced|not-reproduced|not-decidable)"', html)) == len(CLAIMS)


@pytest.mark.feature("mft-pubsub F34", "mft-pubsub F32")
def test_both_denominators_beacons_roles_depths_and_bytes_are_in_the_tables(results: Results) -> None:
    text = pages.markdown(page(GRID, results, "godwit lab mft"))
    for word in ("| rate | of all wanted |", "| without beacons | kB/node |", "| broker | subscriber | publisher |"):
        assert word in text
    for title in ("Messages by depth", "Messages by type", "Wall times"):
        assert f"## {title}" in text


def test_what_the_publication_leaves_open_is_stated(results: Results) -> None:
    text = pages.markdown(page(GRID, results, "godwit lab mft"))
    for words in ("heartbeat period | 1 s", "given up after | 3 s", "heartbeats 0 to 20 ms", "hardened 2.5 s"):
        assert words in text
    assert "Made by `godwit lab mft`." in text


def test_the_quick_report_says_that_it_is_the_quick_one(results: Results) -> None:
    assert "quick" not in page(GRID, results, "").lead
    results.rows = [Row(run, result(), results.made) for run in QUICK.all()]
    assert "The quick grid" in page(QUICK, results, "").lead


def test_a_part_of_a_grid_is_reported_as_a_part(results: Results) -> None:
    results.rows = [row for row in results.rows if row.configuration.protocol == "mft"]
    made = page(GRID, results, "")
    assert "8 of 24 runs" in made.lead
    assert len(made.findings) == len(CLAIMS)
    assert len(drawn(evidence_of(GRID, results))) == 6
