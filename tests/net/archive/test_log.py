"""A position in an archive is good for ever: the same rows come from there, whatever became of the file meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.errors import FilterError
from godwit.net.archive import writer
from godwit.net.archive.log import (
    ArchiveError,
    File,
    FolderArchive,
    Piece,
    Position,
    advanced,
    gap,
    latest,
    pieces,
    split,
    wish,
)
from godwit.net.archive.writer import ArchiveOptions, Roll
from godwit.protocols.broker.publication import Publication

QUICK = ArchiveOptions(batch_s=0.01)


def publication(number: int) -> Publication:
    return Publication("van-7", number, "air/beijing", b'{"pm25": %d}' % number)


def published(roll: Roll, *numbers: int) -> None:
    written = roll.written + len(numbers)
    for number in numbers:
        roll.add(publication(number))
    until(lambda: roll.written == written)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def sequences(folder: FolderArchive, start: Position, end: Position, condition: str = "") -> list[int]:
    found = [batch for piece in pieces(folder.files(), start, end) for batch in folder.read(piece, condition)]
    return [number for batch in found for number in batch.column("sequence").to_pylist()]


def test_rows_are_read_while_they_are_written_and_again_from_the_finished_file(tmp_path: Path) -> None:
    roll, folder = writer.events(tmp_path, "north", QUICK), FolderArchive(tmp_path)
    published(roll, 1, 2, 3)
    first = latest(folder.files(), Position())
    published(roll, 4)
    published(roll, 5)
    second = latest(folder.files(), first)
    for _ in range(2):
        assert sequences(folder, Position(), first) == [1, 2, 3]
        assert sequences(folder, first, second) == [4, 5]
        assert sequences(folder, Position(first.file, 1), Position(first.file, 4)) == [2, 3, 4]
        roll.stop()
    assert [path.suffix for path in tmp_path.iterdir()] == [".parquet"]
    assert sequences(FolderArchive(tmp_path), first, second) == [4, 5]


def test_a_reader_that_began_with_the_stream_is_not_disturbed_by_its_end(tmp_path: Path) -> None:
    roll, folder = writer.events(tmp_path, "north", QUICK), FolderArchive(tmp_path)
    published(roll, 1, 2)
    (file,) = folder.files()
    rows = folder.read(Piece(file.name, 0, 2))
    roll.stop()
    assert [number for batch in rows for number in batch.column("sequence").to_pylist()] == [1, 2]


def test_a_reader_is_not_disturbed_by_what_is_written_and_seen_by_others_meanwhile(tmp_path: Path) -> None:
    roll, folder = writer.events(tmp_path, "north", QUICK), FolderArchive(tmp_path)
    published(roll, 1)
    published(roll, 2)
    (file,) = folder.files()
    rows = folder.read(Piece(file.name, 0, 2))
    assert next(rows).column("sequence").to_pylist() == [1]
    published(roll, 3)
    assert folder.files()[0].rows == 3
    assert [number for batch in rows for number in batch.column("sequence").to_pylist()] == [2]
    roll.stop()


def test_a_file_is_there_while_it_becomes_a_parquet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roll, folder = writer.events(tmp_path, "north", QUICK), FolderArchive(tmp_path)
    published(roll, 1)
    glob = Path.glob

    def slow_look(place: Path, pattern: str) -> Iterator[Path]:
        found = list(glob(place, pattern))
        roll.stop()
        return iter(found)

    monkeypatch.setattr(Path, "glob", slow_look)
    assert [file.rows for file in folder.files()] == [1]


def test_what_a_killed_writer_left_half_is_not_there(tmp_path: Path) -> None:
    roll = writer.events(tmp_path, "north", QUICK)
    published(roll, 1, 2)
    published(roll, 3)
    (stream,) = tmp_path.glob("*.arrows")
    left = tmp_path / "left"
    left.mkdir()
    (left / stream.name).write_bytes(stream.read_bytes()[:-50])
    roll.stop()
    folder = FolderArchive(left)
    assert [file.rows for file in folder.files()] == [2]
    (left / stream.name).write_bytes(b"")
    assert FolderArchive(left).files() == []


def test_files_are_named_in_their_order_when_the_clock_is_set_back(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    roll = writer.events(tmp_path / "old", "north", QUICK)
    published(roll, 1)
    roll.stop()
    (old,) = (tmp_path / "old").iterdir()
    old.rename(tmp_path / "events-29991231T235959-999999999.parquet")
    roll = writer.events(tmp_path, "north", QUICK)
    published(roll, 2)
    roll.stop()
    files = FolderArchive(tmp_path).files()
    assert [file.name for file in files] == ["events-29991231T235959-999999999", "events-30000101T000000-000000000"]
    assert sequences(FolderArchive(tmp_path), Position(), latest(files, Position())) == [1, 2]


def three_files(folder: Path) -> list[File]:
    for number in range(3):
        roll = writer.events(folder, "north", QUICK)
        published(roll, number)
        roll.stop()
    return FolderArchive(folder).files()


@pytest.mark.parametrize(("missing", "start", "lost"), [(0, 0, False), (0, None, False), (1, 0, True), (2, 1, False)])
def test_a_missing_file_is_noticed_by_whoever_has_not_read_it(
    tmp_path: Path, missing: int, start: int | None, lost: bool
) -> None:
    files = three_files(tmp_path)
    at = Position() if start is None else Position(files[start].name, files[start].rows)
    (tmp_path / f"{files[missing].name}.parquet").unlink()
    assert bool(gap(FolderArchive(tmp_path).files(at.file), at)) is lost


def test_a_file_that_was_read_in_part_must_still_be_there(tmp_path: Path) -> None:
    first, *rest = three_files(tmp_path)
    assert gap(rest, Position(first.name, 0))
    assert gap([], Position(first.name, 1))


@given(st.lists(st.integers(1, 5), max_size=5), st.integers(1, 7), st.integers(1, 4))
def test_steps_of_any_length_cover_every_row_once(rows: list[int], step: int, split_rows: int) -> None:
    files = [File(f"events-{number}", count) for number, count in enumerate(rows)]
    every = [(file.name, row) for file in files for row in range(file.rows)]
    at, seen = Position(), list[tuple[str, int]]()
    while (to := advanced(files, at, step)) != at:
        found = [small for piece in pieces(files, at, to) for small in split(piece, split_rows)]
        assert all(piece.end - piece.start <= split_rows for piece in found)
        new = [(piece.file, row) for piece in found for row in range(piece.start, piece.end)]
        assert len(new) <= step
        seen, at = seen + new, to
    assert seen == every
    assert at == latest(files, Position())


def test_only_rows_that_a_subscription_would_get_are_read(tmp_path: Path) -> None:
    roll, folder = writer.events(tmp_path, "north", QUICK), FolderArchive(tmp_path)
    published(roll, *range(10))
    end = latest(folder.files(), Position())
    assert sequences(folder, Position(), end, "pm25 >= 4 AND topic_2 = 'beijing'") == [4, 5, 6, 7, 8, 9]
    (piece,) = pieces(folder.files(), Position(), end)
    assert list(folder.read(piece, topic_filter="air/shanghai/#")) == []
    roll.stop()


def test_wishes_that_are_none_are_told(tmp_path: Path) -> None:
    with pytest.raises(FilterError, match="column"):
        wish("pm25 >")
    with pytest.raises(ArchiveError, match="must be a whole level"):
        wish("", "air/b+")


def test_other_files_of_the_folder_cannot_be_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "secret.parquet")
    folder = FolderArchive(tmp_path / "archive")
    for name in ("../secret", "secret", "events-/../../secret"):
        with pytest.raises(ArchiveError, match="is no file of events"):
            folder.rows(Piece(name, 0, 1))
