from __future__ import annotations

from pathlib import Path

from tests.lab.recorded.rings import a_ring, configured

from godwit.lab.pages import markdown
from godwit.lab.recorded.report import page, plan
from godwit.lab.recorded.runs import Configuration, run
from godwit.lab.results import Results


def test_the_page_compares_all_schemes_with_all_neighbors(tmp_path: Path) -> None:
    ring = a_ring(tmp_path / "ring")
    results = Results(tmp_path / "results.parquet", Configuration, type(run(configured(ring))))
    wanted = [one for one in plan(configured(ring)) if one.scheme in ("neighbors", "reactive")]
    for one in wanted:
        results.add(one, run(one))
    text = markdown(page(results.of(wanted), "godwit lab recorded"))
    assert "| neighbors |" in text
    assert "| reactive | - | - |" in text
