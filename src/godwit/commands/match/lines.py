"""Text files line by line: gzip or not, bounded in memory, with every failure named by file and line."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from godwit.commands.console import InputError, Reports

LINE_MAX = 1 << 20
"""Bytes. A longer line is a bad line, so that no file can exhaust memory by never ending one."""

GROUP_RECORDS = 1 << 14
GROUP_BYTES = 1 << 23

STDIN = "-"
_BUFFER = 1 << 18
_BOM = b"\xef\xbb\xbf"

T = TypeVar("T")


class TextFile:
    """The lines of a file, numbered from 1, without their ends. `share` says how much of the file has been read."""

    def __init__(self, path: str, reports: Reports) -> None:
        self.path = path
        self.reports = reports
        self.number = 0
        self._raw = sys.stdin.buffer if path == STDIN else _opened(path)
        self._size = 0 if path == STDIN else os.fstat(self._raw.fileno()).st_size

    @property
    def share(self) -> float:
        return self._raw.tell() / self._size if self._size else 0.0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Lines too long to hold are told as bad and left out. Raises `InputError` where the file breaks off."""
        source = self._raw
        if self.path.endswith(".gz"):
            source = cast(BinaryIO, gzip.GzipFile(fileobj=self._raw))
        try:
            yield from self._lines(source)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(f"{self.path}: the gzip data is damaged after line {self.number}: {error}") from None
        except OSError as error:
            raise InputError(f"{self.path}: cannot be read after line {self.number}: {error.strerror}") from None

    def _lines(self, source: BinaryIO) -> Iterator[tuple[int, bytes]]:
        while line := source.readline(LINE_MAX + 2):
            self.number += 1
            if self.number == 1:
                line = line.removeprefix(_BOM)
            if len(line) > LINE_MAX and not line.endswith(b"\n"):
                _skip_line(source)
                self.reports.bad_line(self.path, self.number, f"the line is longer than {LINE_MAX:,} bytes")
            else:
                yield self.number, line.rstrip(b"\r\n")


def grouped(records: Iterable[tuple[int, int, T]]) -> Iterator[tuple[list[int], list[T]]]:
    """Gather (line number, bytes, record) into groups of bounded size; what came before a broken file comes out too."""
    numbers: list[int] = []
    group: list[T] = []
    held = 0
    broken: InputError | None = None
    try:
        for number, size, record in records:
            numbers.append(number)
            group.append(record)
            held += size
            if len(group) == GROUP_RECORDS or held > GROUP_BYTES:
                yield numbers, group
                numbers, group, held = [], [], 0
    except InputError as error:
        broken = error
    if group:
        yield numbers, group
    if broken is not None:
        raise broken


def suffix(path: str) -> str:
    """The kind of file by its name, '.gz' aside: '.jsonl' for 'events.jsonl.gz', and for standard input."""
    return ".jsonl" if path == STDIN else Path(path.removesuffix(".gz")).suffix.lower()


def cannot_open(path: str, error: OSError) -> InputError:
    """The reason a user understands, for an error of the operating system."""
    return InputError(f"{path}: {error.strerror.lower() if error.strerror else error}")


def _opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb", buffering=_BUFFER)
    except OSError as error:
        raise cannot_open(path, error) from None


def _skip_line(source: BinaryIO) -> None:
    while (piece := source.readline(_BUFFER)) and not piece.endswith(b"\n"):
        pass
