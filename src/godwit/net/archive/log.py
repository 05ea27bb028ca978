"""An archive as a log: every row has a position, and whoever remembers one can go on from it, or read a range again.

A position is a file's name and how many of its rows are before it. Files are only added, under names that grow, and
rows to the newest only; the Arrow stream that a broker is writing becomes a Parquet file of the same name and rows.
So a range between two positions is the same rows whenever and by whomever it is read.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.filters.filters import Filter, FilterSet
from godwit.net.archive.writer import AFTER, PARQUET, STREAM
from godwit.protocols.broker import topics

ATTRIBUTES = "attributes"


class ArchiveError(Exception):
    """The archive cannot be read from there: the text says why, and what would be right."""


class Position(NamedTuple):
    """Before the first row of all where there is no file."""

    file: str = ""
    row: int = 0


class File(msgspec.Struct, frozen=True, array_like=True):
    """A file of an archive as it is now."""

    name: str
    rows: int
    after: str = ""
    """What its writer knew of the file before it: name, colon, rows; nothing where it knew of none."""


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one file, from `start` up to but not including `end`."""

    file: str
    start: int
    end: int


class Archive(Protocol):
    """One kind of rows, in a folder or at a broker."""

    def files(self, after: str = "") -> list[File]:
        """Those of this name and later ones that have rows, in their order."""
        ...

    def read(self, piece: Piece, condition: str = "", topic_filter: str = "") -> Iterator[pa.RecordBatch]:
        """The rows of a piece that meet the condition, of topics that the topic filter wants."""
        ...


def latest(files: Sequence[File], start: Position) -> Position:
    """The end of what is there."""
    return Position(files[-1].name, files[-1].rows) if files else start


def advanced(files: Sequence[File], start: Position, rows_max: int | None = None) -> Position:
    """So many rows further, or the end of what is there."""
    at, left = start, rows_max
    for piece in pieces(files, start, latest(files, start)):
        if left is not None and piece.end - piece.start >= left:
            return Position(piece.file, piece.start + left)
        left = None if left is None else left - (piece.end - piece.start)
        at = Position(piece.file, piece.end)
    return at


def pieces(files: Iterable[File], start: Position, end: Position) -> Iterator[Piece]:
    """The range from one position to another, file by file."""
    for file in files:
        if start.file <= file.name <= end.file:
            first = start.row if file.name == start.file else 0
            last = min(end.row, file.rows) if file.name == end.file else file.rows
            if first < last:
                yield Piece(file.name, first, last)


def split(piece: Piece, rows_max: int) -> Iterator[Piece]:
    for at in range(piece.start, piece.end, rows_max):
        yield Piece(piece.file, at, min(at + rows_max, piece.end))


def gap(files: Sequence[File], start: Position) -> str:
    """Where rows after `start` were there once and are no more; nothing where all are."""
    if not start.file:
        return ""
    if files and files[0].name == start.file:
        begun, rest = f"{start.file}:{files[0].rows}", files[1:]
    else:
        begun, rest = f"{start.file}:{start.row}", files
    known = [begun, *(f"{file.name}:{file.rows}" for file in rest)]
    for before, file in zip(known, rest, strict=False):
        if file.after and file.after != before:
            return f"rows between {before} and {file.name} are gone"
    if not files:
        return f"{start.file} is gone, and there is no later file"
    return ""


def short(files: Sequence[File], end: Position) -> str:
    """Where rows before `end` were there once and are no more; nothing where all are."""
    if not end.file or any(file.name == end.file and file.rows >= end.row for file in files):
        return ""
    return f"rows of {end.file} up to {end.row} are gone"


def wish(condition: str = "", topic_filter: str = "") -> tuple[Filter | FilterSet, ...]:
    """What a row must match; `FilterError` or `ArchiveError` where the texts cannot be."""
    asked: list[Filter | FilterSet] = []
    if topic_filter and topic_filter != "#":
        if problem := topics.problem_of_filter(topic_filter):
            raise ArchiveError(problem)
        asked.append(topics.meaning(topic_filter))
    if condition:
        from godwit.filters.text import parse  # takes a while to load, and not every reader has conditions

        asked.append(parse(condition))
    return tuple(asked)


def matching(batches: Iterable[pa.RecordBatch], asked: Sequence[Filter | FilterSet]) -> Iterator[pa.RecordBatch]:
    """The rows whose attributes match all; where these are no object, a row matches nothing but nothing asked."""
    for batch in batches:
        if not asked:
            yield batch
            continue
        rows = [_matches(text, asked) for text in batch.column(ATTRIBUTES).to_pylist()]
        if found := batch.filter(pa.array(rows, pa.bool_())):
            yield found


_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _matches(text: str | None, asked: Sequence[Filter | FilterSet]) -> bool:
    try:
        values = _decode(text or "")
    except msgspec.DecodeError:
        return False
    return all(one.matches(values) for one in asked)


class FolderArchive:
    """The archive in a folder of this machine, while a broker writes it or after. May be used by several threads."""

    def __init__(self, folder: Path, kind: str = "events") -> None:
        self.folder = folder
        self.kind = kind
        self._whole: dict[str, File] = {}
        self._streams: dict[str, _Batches] = {}
        self._lock = threading.Lock()

    def files(self, after: str = "") -> list[File]:
        with self._lock:
            # Streams first: one that becomes a Parquet file meanwhile is then seen twice, and not at neither look.
            names = {path.stem for end in (STREAM, PARQUET) for path in self.folder.glob(f"{self.kind}-*{end}")}
            self._whole = {name: file for name, file in self._whole.items() if name in names}
            found = [self._file(name) for name in sorted(names) if name >= after]
        return [file for file in found if file is not None and file.rows]

    def bytes_of(self, name: str) -> int:
        """What a file takes on the disk; 0 where it is gone."""
        for end in (STREAM, PARQUET):
            with contextlib.suppress(FileNotFoundError):
                return (self.folder / f"{name}{end}").stat().st_size
        return 0

    def read(self, piece: Piece, condition: str = "", topic_filter: str = "") -> Iterator[pa.RecordBatch]:
        return matching(self.rows(piece), wish(condition, topic_filter))

    def rows(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        if "/" in piece.file or not piece.file.startswith(f"{self.kind}-"):
            raise ArchiveError(f"{piece.file!r} is no file of {self.kind}")
        with self._lock, contextlib.suppress(FileNotFoundError):
            stream = self._stream(piece.file)
            # A stream whose file is open, or mapped, can be read to its end although its name is gone by then.
            if stream is not None and stream.rows >= piece.end:
                return stream.read(piece)
        return self._from_parquet(piece)

    def _file(self, name: str) -> File | None:
        if name not in self._whole:
            stream = self._stream(name)
            if stream is not None:
                return File(name, stream.rows, stream.after)
            self._streams.pop(name, None)
            try:
                with pq.ParquetFile(self._path(name)) as file:
                    self._whole[name] = File(name, file.metadata.num_rows, _after(file.schema_arrow))
            except FileNotFoundError:
                return None
            except (pa.ArrowException, OSError) as error:
                raise ArchiveError(f"{self._path(name)}: damaged or no Parquet file: {error}") from None
        return self._whole[name]

    def _stream(self, name: str) -> _Batches | None:
        """A stream that is still one; a Parquet file of its name is the same and quicker."""
        if self._path(name).exists():
            return None
        stream = self._streams.setdefault(name, _Batches(self.folder / f"{name}{STREAM}"))
        return stream if stream.look() else None

    def _from_parquet(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        path = self._path(piece.file)
        try:
            file = pq.ParquetFile(path)
        except FileNotFoundError:
            raise ArchiveError(f"{path}: there is no such file any more") from None
        return _cut(_row_groups(file, piece), piece)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{PARQUET}"


class _Batches:
    """An Arrow stream that may still grow, and where in it each batch begins."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = 0
        self.after = ""
        self._schema: pa.Schema | None = None
        self._marks: list[tuple[int, int]] = []
        self._end_b = 0

    def look(self) -> bool:
        """Note what has been added; whether the stream is still there. A batch counts once it is there as a whole."""
        try:
            with pa.memory_map(str(self.path)) as source:
                source.seek(self._end_b)
                while (message := _message(source)) is not None:
                    self._note(message)
                    self._end_b = source.tell()
        except FileNotFoundError:
            return False
        except pa.ArrowInvalid:  # an empty file cannot be mapped
            return self.path.exists()
        return True

    def _note(self, message: Any) -> None:
        if self._schema is None:
            self._schema = pa.ipc.read_schema(message)
            self.after = _after(self._schema)
        else:
            self._marks.append((self.rows, self._end_b))
            self.rows += pa.ipc.read_record_batch(message, self._schema).num_rows

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Opens at once, reads when asked; where the batches are is known by then, whoever looks again meanwhile."""
        ends = [row for row, _ in self._marks[1:]] + [self.rows]
        wanted = [
            mark for mark, end in zip(self._marks, ends, strict=True) if mark[0] < piece.end and end > piece.start
        ]
        return _cut(_batches(pa.memory_map(str(self.path)), self._schema, wanted), piece)


def _batches(
    source: Any, schema: pa.Schema | None, marks: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    with source:
        for row, at_b in marks:
            source.seek(at_b)
            yield row, pa.ipc.read_record_batch(pa.ipc.read_message(source), schema)


def _message(source: Any) -> Any | None:
    try:
        return pa.ipc.read_message(source)
    except (EOFError, OSError, pa.ArrowInvalid):
        return None


def _row_groups(file: pq.ParquetFile, piece: Piece) -> Iterator[tuple[int, pa.RecordBatch]]:
    with file:
        counts = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
        starts = [sum(counts[:number]) for number in range(len(counts) + 1)]
        for number, (row, end) in enumerate(pairwise(starts)):
            if row < piece.end and end > piece.start:
                for batch in file.read_row_group(number, use_threads=False).to_batches():
                    yield row, batch
                    row += batch.num_rows


def _cut(batches: Iterator[tuple[int, pa.RecordBatch]], piece: Piece) -> Iterator[pa.RecordBatch]:
    """The rows of the piece out of batches that begin at these rows."""
    for row, batch in batches:
        first, last = max(piece.start - row, 0), min(piece.end - row, batch.num_rows)
        if first < last:
            yield batch.slice(first, last - first)


def _after(schema: pa.Schema) -> str:
    metadata: dict[bytes, bytes] = schema.metadata or {}
    return metadata.get(AFTER, b"").decode()
