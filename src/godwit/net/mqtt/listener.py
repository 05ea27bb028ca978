"""Where clients knock: addresses that a front listens at, over TCP or TLS, plain or as WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from functools import partial

from godwit.net.mqtt.connection import Connection
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.secure import Secured
from godwit.net.mqtt.websocket import WebSocket

BACKLOG = 4_096
"""How many clients may knock at once: a fleet that comes back after an outage."""


class Listener:
    """One address. `port` 0 asks for a free one; `port` tells which it is once `open` has returned."""

    def __init__(
        self,
        front: Front,
        host: str = "127.0.0.1",
        port: int = 1883,
        *,
        tls: ssl.SSLContext | None = None,
        websocket: bool = False,
    ) -> None:
        self.front = front
        self.host = host
        self.port = port
        self.tls = tls
        self.websocket = websocket
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """OSError where the address cannot be had."""
        self.front.begin()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._answer(),
            self.host,
            self.port,
            backlog=BACKLOG,
            reuse_address=True,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def _answer(self) -> Callable[[], asyncio.Protocol]:
        front, tls = self.front, self.tls
        plain = partial(WebSocket if self.websocket else Connection, front)
        return plain if tls is None else lambda: Secured(front, tls, plain)

    async def close(self) -> None:
        """No more clients; those that are in stay."""
        if self._server is not None:
            self._server.close()
            # On some versions this waits for the connections too, which others close.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), 0.1)
            self._server = None
