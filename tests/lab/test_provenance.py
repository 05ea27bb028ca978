"""A row is another row when the code behind it is another; a comment is no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.lab import provenance


def test_the_code_of_a_run_is_all_of_ours_that_it_imports() -> None:
    found = provenance.closure("godwit.lab.mft.runs")
    assert {"godwit.lab.mft.runs", "godwit.sim.radio", "godwit.protocols.routing.mft"} <= found
    assert "godwit.lab.mft.verdicts" not in found


def written(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "godwit").mkdir(exist_ok=True)
    (folder / "godwit" / "deep.py").write_text("DEPTH = 1\n")
    (folder / "godwit" / "run.py").write_text(text)
    monkeypatch.setattr(provenance, "SOURCE", folder)
    for kept in (provenance.code, provenance._bare, provenance._imported):
        kept.cache_clear()
    return provenance.code("godwit.run")


def test_a_changed_line_is_other_code_and_a_comment_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = written(tmp_path, "from godwit.deep import DEPTH\nX = 1\n", monkeypatch)
    told = '"""What it does."""\nfrom godwit.deep import DEPTH\n\n# why\nX = 1\n'
    assert written(tmp_path, told, monkeypatch) == plain
    assert written(tmp_path, "from godwit.deep import DEPTH\nX = 2\n", monkeypatch) != plain


def test_somebody_elses_experiment_has_a_code_too_and_nothing_has_none() -> None:
    assert provenance.code("tests.lab.mft.made") not in (provenance.UNKNOWN, provenance.code("godwit.lab.mft.runs"))
    assert provenance.code("no.such.module") == provenance.UNKNOWN


def test_what_a_row_says_of_its_origin_can_be_read() -> None:
    told = str(provenance.of("godwit.lab.mft.runs"))
    assert "commit" in told
    assert "cores" in told
