"""Results on disk: one row for each run, whole at any moment, and nothing run twice."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.mft.made import result

import godwit
from godwit.lab.mft.grid import Grid
from godwit.lab.mft.results import Results, ResultsError
from godwit.lab.provenance import Provenance

GRID = Grid(sizes=(2, 4), speeds_mps=(8.0,), seeds=2, publish_s=10.0)


@pytest.mark.feature("mft-pubsub F33")
def test_a_row_carries_configuration_seed_and_version(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.parquet")
    for configuration in GRID.cells():
        results.add(configuration, result())
    table = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(table) == len(GRID.cells()) == 12
    assert {row["version"] for row in table} == {godwit.__version__}
    assert {(row["size"], row["seed"], row["protocol"]) for row in table} == {
        (c.size, c.seed, c.protocol) for c in GRID.cells()
    }
    assert dict(table[0]["messages_by_role"]) == {"broker": 100.0, "subscriber": 10.0, "publisher": 20.0}


@pytest.mark.feature("mft-pubsub F33")
def test_what_was_written_is_read_back_and_not_run_again(tmp_path: Path) -> None:
    first = Results(tmp_path / "results.parquet")
    for configuration in GRID.all()[:5]:
        first.add(configuration, result(wall_s=7.0))
    again = Results(tmp_path / "results.parquet")
    assert again.rows == first.rows
    assert again.missing(GRID.all()) == GRID.all()[5:]
    assert [row.result.wall_s for row in again.of(GRID.all())] == [7.0] * 5


def test_runs_of_other_code_are_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "results.parquet"
    Results(path).add(GRID.all()[0], result())
    monkeypatch.setattr("godwit.lab.provenance.of", lambda module: Provenance(code="another"))
    assert Results(path).missing(GRID.all()) == GRID.all()


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_text("size,speed\n")
    with pytest.raises(ResultsError, match="not a Parquet file"):
        Results(path)
    pq.write_table(pa.table({"size": [2]}), path)
    with pytest.raises(ResultsError, match="column 'speed_mps' is missing"):
        Results(path)
