"""What an earlier broker has left of its archive, whole or damaged, never keeps the next one from starting."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from godwit.net.archive.writer import DAMAGED, PARQUET, STREAM, Roll, events, finish
from godwit.protocols.broker.publication import Publication


def written(folder: Path, count: int) -> None:
    roll = events(folder, "north")
    for number in range(count):
        roll.add(Publication("p", number, "t", b"x" * 50))
    roll.stop()


def left(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stream as a killed broker leaves it."""
    with monkeypatch.context() as patch:
        patch.setattr("godwit.net.archive.writer.finish", lambda path: None)
        written(folder, 100)
    (stream,) = folder.glob(f"*{STREAM}")
    return stream


def started(folder: Path) -> Roll:
    roll = events(folder, "north")
    roll.stop()
    return roll


def test_what_a_killed_broker_has_left_is_finished_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = left(tmp_path, monkeypatch)
    started(tmp_path)
    assert pq.read_metadata(stream.with_suffix(PARQUET)).num_rows == 100
    assert not stream.exists()


def test_one_that_ends_its_reader_is_set_aside_and_the_broker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stream = left(tmp_path, monkeypatch)
    crash = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    monkeypatch.setattr("godwit.net.archive.writer.MENDING", ("-c", crash))
    with caplog.at_level(logging.ERROR, "godwit"):
        started(tmp_path)
    assert stream.with_name(stream.name + DAMAGED).exists()
    assert "it is kept as" in caplog.text


def test_a_stream_with_bytes_changed_costs_what_is_behind_them_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = left(tmp_path, monkeypatch)
    data = bytearray(stream.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = b"\xff" * 64
    stream.write_bytes(data)
    started(tmp_path)
    assert not stream.exists()


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_truncated_newest_file_is_set_aside(tmp_path: Path, keep: int) -> None:
    written(tmp_path, 100)
    (whole,) = tmp_path.glob(f"*{PARQUET}")
    whole.write_bytes(whole.read_bytes()[:keep])
    started(tmp_path)
    assert whole.with_name(whole.name + DAMAGED).exists()
    assert not whole.exists()


def test_only_its_user_may_read_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = left(tmp_path / "archive", monkeypatch)
    assert stream.stat().st_mode & 0o777 == 0o600
    finish(stream)
    assert stream.with_suffix(PARQUET).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "archive").stat().st_mode & 0o777 == 0o700
