"""The archive of a broker elsewhere, for programs without an event loop: executors of Spark, scripts."""

from __future__ import annotations

import base64
import http.client
import ssl
import time
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import quote, urlencode

import msgspec
import pyarrow as pa

from godwit.net.address import Address
from godwit.net.archive.log import ArchiveError, File, Piece

ANSWER_S = 150.0
STRANGER_S, AWAY_S = 6.0, 90.0
"""So long a broker may be away: one that was never heard of, whose address may be wrong, and one that was. That one is
being restarted, and rows that it has served before are the same afterwards."""
RETRY_S, RETRY_MAX_S = 0.2, 2.0


class RemoteArchive:
    """What `archive.listen` of a broker serves. `ArchiveError` where it refuses, or stays away."""

    def __init__(
        self,
        where: Address,
        kind: str = "events",
        *,
        user: str | None = None,
        password: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.where = where
        self.kind = kind
        self._tls = tls
        self._is_known = False
        self._headers = {} if user is None else {"Authorization": f"Basic {_basic(user, password or '')}"}

    def files(self, after: str = "") -> list[File]:
        return msgspec.json.decode(self._get(f"/archive/{self.kind}?{urlencode({'after': after})}"), type=list[File])

    def read(self, piece: Piece, condition: str = "", topic_filter: str = "") -> Iterator[pa.RecordBatch]:
        query = {"start": piece.start, "end": piece.end}
        wish = {"filter": condition, "topics": topic_filter}
        asked = urlencode(query | {name: text for name, text in wish.items() if text})
        # Whoever knows of the piece has it from this broker.
        self._is_known = True
        body = self._get(f"/archive/{self.kind}/{quote(piece.file)}?{asked}")
        if body:
            with pa.ipc.open_stream(body) as reader:
                yield from reader

    def _get(self, path: str) -> bytes:
        wait_s, until_s = RETRY_S, time.monotonic() + (AWAY_S if self._is_known else STRANGER_S)
        while True:
            try:
                body = self._once(path)
            except (OSError, http.client.HTTPException) as error:
                if time.monotonic() + wait_s > until_s:
                    raise ArchiveError(f"{self.where}: {error}; is archive.listen of a broker there?") from None
            else:
                self._is_known = True
                return body
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_MAX_S)

    def _once(self, path: str) -> bytes:
        host, port = self.where.host, self.where.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=ANSWER_S)
            if self._tls is None
            else http.client.HTTPSConnection(host, port, timeout=ANSWER_S, context=self._tls)
        )
        try:
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != HTTPStatus.OK:
            raise ArchiveError(f"{self.where}: {body.decode(errors='replace').strip() or answer.reason}")
        return body


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()
