"""Any experiment's results on disk: words, numbers and choices come back as they were."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.lab.adhoc.made import result

from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.provenance import Provenance
from godwit.lab.results import Results, ResultsError
from godwit.protocols.adhoc.table import Estimate

PLAIN = Configuration(seed=1)
CHOSEN = Configuration(seed=2, estimate=Estimate.RESIDENCE, radio="ideal disc")


def kept(path: Path, code: str = "1") -> Results[Configuration, Result]:
    return Results(path, Configuration, Result, Provenance(code=code, commit="c" + code, machine="test"))


def test_how_long_a_run_took_is_kept_to_the_millisecond_and_all_else_to_the_last_digit(tmp_path: Path) -> None:
    exact = msgspec.structs.replace(result(0.5, 2.0), wall_s=1.23456789, cpu_s=0.00049, delay_mean_s=0.123456789012)
    kept(tmp_path / "results.parquet").add(PLAIN, exact)
    again = kept(tmp_path / "results.parquet")
    assert again.rows[0].result == msgspec.structs.replace(exact, wall_s=1.235, cpu_s=0.0)
    assert again.is_equal("1", PLAIN, exact)


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


def test_rows_of_other_code_are_run_again_and_never_reused_silently(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    kept(path).add(PLAIN, result(0.5, 2.0))
    newer = kept(path, code="2")
    assert newer.missing([PLAIN]) == [PLAIN]
    assert newer.of([PLAIN]) == []
    assert [row.made.commit for row in newer.foreign] == ["c1"]
    newer.add(PLAIN, result(0.6, 2.0))
    assert [row.result.delivered for row in kept(path, code="2").of([PLAIN])] == [600]
    third = kept(path, code="3")
    assert third.missing([PLAIN, CHOSEN]) == [PLAIN, CHOSEN]
    third.any_code = True
    assert [row.result.delivered for row in third.of([PLAIN])] == [600]
    assert third.missing([PLAIN, CHOSEN]) == [CHOSEN]


def test_every_row_says_commit_code_and_machine(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    kept(path).add(PLAIN, result(0.5, 2.0))
    row = pq.read_table(path).to_pylist()[0]
    assert (row["commit"], row["code"], row["machine"], row["seed"]) == ("c1", "1", "test", 1)


def test_a_file_from_before_rows_said_so_is_read_and_not_reused(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    kept(path).add(PLAIN, result(0.5, 2.0))
    pq.write_table(pq.read_table(path).drop_columns(["commit", "code", "machine"]), path)
    old = kept(path)
    assert old.missing([PLAIN]) == [PLAIN]
    assert old.foreign[0].made.commit == "unknown"


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_text("seed\n")
    with pytest.raises(ResultsError, match="not a Parquet file"):
        kept(path)
    pq.write_table(pa.table({"seed": [1]}), path)
    with pytest.raises(ResultsError, match="column 'published' is missing"):
        kept(path)


def test_rows_that_stand_beside_the_file_are_found_wherever_a_run_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.lab.results.RECENT_SHARE", 1.0)
    path = tmp_path / "results.parquet"
    running = kept(path)
    ends = []
    for seed in range(3):
        running.add(Configuration(seed=seed), result(0.5, seed))
        ends.append((tmp_path / "results.parquet.recent").stat().st_size)
    whole = (tmp_path / "results.parquet.recent").read_bytes()
    assert not path.exists()
    for cut in (0, 10, ends[0] - 1, ends[0], ends[0] + 1, ends[1] - 1, ends[1], ends[2] - 1, ends[2]):
        (tmp_path / "results.parquet.recent").write_bytes(whole[:cut])
        assert [row.configuration.seed for row in kept(path).rows] == [n for n in range(3) if ends[n] <= cut]
    killed = kept(path)
    killed.add(Configuration(seed=3), result(0.5, 2.0))
    assert len(pq.read_table(path)) == 4
    assert not (tmp_path / "results.parquet.recent").exists()


def test_rows_that_were_settled_just_before_a_run_was_killed_do_not_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.lab.results.RECENT_SHARE", 1.0)
    path, recent = tmp_path / "results.parquet", tmp_path / "results.parquet.recent"
    running = kept(path)
    running.add(PLAIN, result(0.5, 2.0))
    left = recent.read_bytes()
    running.settle()
    recent.write_bytes(left)
    assert len(kept(path).rows) == 1


def test_a_large_sweep_writes_the_whole_file_now_and_then_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    running = kept(path)
    for seed in range(300):
        running.add(Configuration(seed=seed), result(0.5, 2.0))
    assert 280 < len(pq.read_table(path)) < 300
    assert len(kept(path).rows) == 300
    running.settle()
    assert len(pq.read_table(path)) == 300
