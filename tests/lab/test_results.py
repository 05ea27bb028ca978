"""Any experiment's results on disk: words, numbers and choices come back as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.adhoc.made import result

from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.results import Results, ResultsError
from godwit.protocols.adhoc.table import Estimate

PLAIN = Configuration(seed=1)
CHOSEN = Configuration(seed=2, estimate=Estimate.RESIDENCE, radio="ideal disc")


def kept(path: Path, version: str = "1") -> Results[Configuration, Result]:
    return Results(path, Configuration, Result, version)


@pytest.mark.feature("manet-cbr F20")
def test_what_was_kept_comes_back_and_is_not_missing(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    kept(path).add(PLAIN, result(0.5, 2.0))
    kept(path).add(CHOSEN, result(0.7, 3.0))
    again = kept(path)
    assert [row.configuration for row in again.rows] == [PLAIN, CHOSEN]
    assert again.rows[1].configuration.estimate is Estimate.RESIDENCE
    assert again.of([CHOSEN])[0].result == result(0.7, 3.0)
    other = Configuration(seed=3)
    assert again.missing([PLAIN, other, CHOSEN]) == [other]


def test_another_version_runs_again_and_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    kept(path).add(PLAIN, result(0.5, 2.0))
    newer = kept(path, version="2")
    assert newer.missing([PLAIN]) == [PLAIN]
    newer.add(PLAIN, result(0.6, 2.0))
    assert [row.result.delivered for row in kept(path).of([PLAIN])] == [600]


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_text("seed\n")
    with pytest.raises(ResultsError, match="not a Parquet file"):
        kept(path)
    pq.write_table(pa.table({"seed": [1]}), path)
    with pytest.raises(ResultsError, match="column 'protocol' is missing"):
        kept(path)
