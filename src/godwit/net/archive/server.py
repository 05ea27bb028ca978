"""A broker's archive for readers elsewhere, by HTTP: which files there are, and rows of them as an Arrow stream.

    GET /archive/events?after=NAME                       the files of this name and later ones, as JSON
    GET /archive/events/NAME?start=0&end=500             these rows
    GET /archive/events/NAME?...&filter=TEXT&topics=T    those of them that a subscription would get

Whoever may subscribe may read, and gets the rows that its grant matches; traces are for those who may read everything.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path

import msgspec
import pyarrow as pa

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.net.access import Access, Credentials
from godwit.net.archive.log import ArchiveError, FolderArchive, Piece, matching, wish
from godwit.net.http import TEXT, Answer, HttpServer, Request
from godwit.protocols.broker.api import RefusedError

KINDS = ("events", "traces")
CLIENT = "archive"
"""What readers are called where users may use some client ids only."""
ANSWER_S = 120.0
ROWS_MAX = 1 << 20
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
USAGE = b"there are /archive/events and /archive/traces, and their files\n"


FOLLOWERS_MAX = 200


class Following(msgspec.Struct, frozen=True):
    """Somebody who reads along, and the last rows it asked for."""

    user: str
    address: str
    kind: str
    file: str
    row: int
    seen: float
    """Seconds since 1970."""


class ArchiveServer(HttpServer):
    """Serves a folder; what takes long is done by threads, and the broker does not wait."""

    def __init__(
        self, folder: Path, access: Access, host: str, port: int, *, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(self._tell, host, port, tls=tls, answer_s=ANSWER_S)
        self._access = access
        self._archives = {kind: FolderArchive(folder, kind) for kind in KINDS}
        self._followers: dict[tuple[str, str, str], Following] = {}

    def followers(self) -> list[Following]:
        return list(self._followers.values())

    def _note(self, request: Request, kind: str, piece: Piece) -> None:
        key = (request.user or "", request.peer, kind)
        self._followers.pop(key, None)
        self._followers[key] = Following(*key, piece.file, piece.end, time.time())
        if len(self._followers) > FOLLOWERS_MAX:
            del self._followers[next(iter(self._followers))]

    async def _tell(self, request: Request) -> Answer:
        try:
            grant = await self._granted(request)
            return await self._found(request, grant)
        except RefusedError as error:
            return HTTPStatus.UNAUTHORIZED, TEXT, f"{error.text}\n".encode()
        except (ArchiveError, FilterError, ValueError) as error:
            return HTTPStatus.BAD_REQUEST, TEXT, f"{error}\n".encode()

    async def _granted(self, request: Request) -> FilterSet | None:
        who = Credentials(client=CLIENT, user=request.user, password=request.password, peer=request.peer)
        return (await self._access.admit(who)).grant.subscribe

    async def _found(self, request: Request, grant: FilterSet | None) -> Answer:
        match request.path.strip("/").split("/"):
            case ["archive", kind] if kind in KINDS:
                files = await asyncio.to_thread(self._archives[kind].files, request.query.get("after", ""))
                return HTTPStatus.OK, JSON, msgspec.json.encode(files)
            case ["archive", "traces", _] if grant is not None:
                return HTTPStatus.FORBIDDEN, TEXT, b"traces are for users who may subscribe to everything\n"
            case ["archive", kind, name] if kind in KINDS:
                piece = _piece(name, request.query)
                self._note(request, kind, piece)
                body = await asyncio.to_thread(self._rows, self._archives[kind], piece, request.query, grant)
                return HTTPStatus.OK, ARROW, body
        return HTTPStatus.NOT_FOUND, TEXT, USAGE

    def _rows(self, archive: FolderArchive, piece: Piece, query: Mapping[str, str], grant: FilterSet | None) -> bytes:
        asked = wish(query.get("filter", ""), query.get("topics", ""))
        batches = matching(archive.rows(piece), asked if grant is None else (*asked, grant))
        return _stream(batches)


def _stream(batches: Iterable[pa.RecordBatch]) -> bytes:
    """Nothing at all where there are no rows."""
    sink, writer = pa.BufferOutputStream(), None
    for batch in batches:
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    body: bytes = sink.getvalue().to_pybytes()
    return body


def _piece(name: str, query: Mapping[str, str]) -> Piece:
    try:
        start, end = int(query["start"]), int(query["end"])
    except (KeyError, ValueError):
        raise ArchiveError("start and end must be numbers of rows, as in ?start=0&end=500") from None
    if not 0 <= start <= end <= start + ROWS_MAX:
        raise ArchiveError(f"from row {start} to {end}: right would be at most {ROWS_MAX:,} rows at a time")
    return Piece(name, start, end)
