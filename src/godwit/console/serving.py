"""Runs the console: by itself, or beside a broker."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator, Mapping
from urllib.parse import urlsplit

import uvicorn

from godwit.console.fleet import Fleet
from godwit.console.page import Console
from godwit.net.address import Address, is_loopback
from godwit.net.admin.client import completed
from godwit.net.server import Parts, ServeError, Service, reason_of
from godwit.net.tls import for_pages

STOP_S = 2


class ConsoleServer(uvicorn.Server):
    """Whoever starts it listens for signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def console_server(fleet: Fleet, where: Address, tls: ssl.SSLContext | None = None) -> ConsoleServer:
    """Without a login only on this machine: elsewhere anybody could use the trust that brokers have in it."""
    console = Console(fleet, trusted=is_loopback(where.host))
    config = uvicorn.Config(
        console.app(),
        host=where.host,
        port=where.port,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=STOP_S,
    )
    config.load()
    config.ssl = tls  # ours, so that it shows a renewed certificate once that was read again
    return ConsoleServer(config)


class Hosted:
    """A console in the running loop, from `start` until `stop`."""

    def __init__(self, fleet: Fleet, where: Address, tls: ssl.SSLContext | None = None) -> None:
        self.where = where
        self._server = console_server(fleet, where, tls)
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None
        self.scheme = "http" if tls is None else "https"

    async def start(self) -> None:
        """`OSError` where the address cannot be had."""
        found = await asyncio.get_running_loop().getaddrinfo(
            self.where.host, self.where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, at = found[0]
        self._socket = socket.create_server(at[:2], family=family)
        self.where = Address(self.where.host, self._socket.getsockname()[1])
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise OSError("the web server has ended before it began")
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        if self._socket is not None:
            self._socket.close()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.where}"


class ConsoleService(Service):
    """Of the broker that it runs beside, and of those that this one has heard of."""

    def __init__(self, parts: Parts, where: Address) -> None:
        self._parts = parts
        self._asked = where
        tls = parts.config.tls
        pages = for_pages(tls.certificate, tls.key) if tls is not None and not is_loopback(where.host) else None
        shown = {parts.identity.name: str(tls.certificate)} if tls is not None else {}
        authority = str(tls.authority) if tls is not None and tls.authority is not None else None
        self._hosted = Hosted(Fleet(source=self._known, authority=authority, shown=shown), where, pages)

    def _known(self) -> Mapping[str, str]:
        parts = self._parts
        found = {name: load.address_http for name, load in parts.balance.loads.items()}
        own = completed(parts.balance.address_http, "127.0.0.1") if parts.balance.address_http else ""
        return {parts.identity.name: own, **{name: url for name, url in found.items() if urlsplit(url).hostname}}

    async def start(self) -> None:
        try:
            await self._hosted.start()
        except OSError as error:
            raise ServeError(f"listen.console: {self._asked}: {reason_of(error, self._asked)}") from None

    async def stop(self) -> None:
        await self._hosted.stop()

    def addresses(self) -> list[tuple[str, str]]:
        return [("console", self._hosted.url)]
