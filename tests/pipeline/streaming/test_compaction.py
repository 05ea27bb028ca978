"""Small files of a stream joined to large ones: the same rows, each once, whatever is killed and whoever comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.ingest import IngestOptions, run_stream
from godwit.pipeline.io.files import Files
from godwit.pipeline.streaming import compaction
from godwit.pipeline.streaming.compaction import compact, recover
from godwit.pipeline.streaming.queries import Pace


def put(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    rows: dict[str, list[Any]] = {"broker": ["b"] * 2, "publisher": ["p"] * 2, "attributes": ["{}"] * 2}
    rows |= {"sequence": [2 * number, 2 * number + 1], "time_s": [0.0, 90_000.0]}
    pq.write_table(pa.table(rows), folder / f"{number}.parquet")


def sequences(out: Path) -> list[int]:
    return sorted(row["sequence"] for row in pq.read_table(out / "events").to_pylist())


def files(out: Path) -> int:
    return len([file for file in (out / "events").rglob("*.parquet") if "_compact" not in str(file)])


@pytest.fixture
def asked(spark: SparkSession, tmp_path: Path) -> IngestOptions:
    """A stream that has taken four files, one after the other."""
    options = IngestOptions(archives=(str(tmp_path / "archive"),), out=str(tmp_path / "out"), files_per_batch=1)
    for number in range(4):
        put(tmp_path / "archive", number)
    run_stream(spark, options, Pace())
    return options


def test_rows_stay_and_the_stream_goes_on(spark: SparkSession, tmp_path: Path, asked: IngestOptions) -> None:
    out = tmp_path / "out"
    assert (sequences(out), files(out)) == (list(range(8)), 8)
    summary = compact(spark, str(out))
    assert (sequences(out), files(out), summary.rows_out["events"]) == (list(range(8)), 2, 8)
    put(tmp_path / "archive", 4)
    assert run_stream(spark, asked, Pace()).rows_in == 2
    assert sequences(out) == list(range(10))
    with pytest.raises(PipelineError, match="has no tables of a stream"):
        compact(spark, str(tmp_path / "archive"))


def test_one_that_was_killed_is_finished_by_the_next(
    spark: SparkSession, tmp_path: Path, asked: IngestOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, renamed = tmp_path / "out", list[str]()

    class KilledError(Exception):
        pass

    class Dying(Files):
        def rename(self, path: str, to: str) -> None:
            if len(renamed) == 2:
                raise KilledError
            renamed.append(path)
            super().rename(path, to)

    monkeypatch.setattr(compaction, "Files", Dying)
    with pytest.raises(KilledError):
        compact(spark, str(out))
    assert len(sequences(out)) < 8
    recover(Files(spark), str(out))
    assert sequences(out) == list(range(8))


def test_what_a_target_has_not_got_yet_is_not_joined(spark: SparkSession, tmp_path: Path, asked: IngestOptions) -> None:
    (tmp_path / "out" / "_published.json").write_bytes(msgspec.json.encode({"delta:lake": 1}))
    compact(spark, str(tmp_path / "out"))
    numbers = {file.parent.name for file in (tmp_path / "out" / "events").rglob("*.parquet")}
    assert numbers == {"batch=1", "batch=2", "batch=3"}
    assert sequences(tmp_path / "out") == list(range(8))
