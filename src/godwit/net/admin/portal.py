"""The port where people log in: it finds out who asks, keeps strange web pages out, and hands on to what answers.

A browser sends requests for any page that it shows. So a request that names another page as its origin is refused,
and an action must come as JSON, which pages elsewhere cannot send. A broker that trusts its own machine is spoken to by
number or as `localhost` only: a page can make its own name point here.
"""

from __future__ import annotations

import ipaddress
import logging
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec

from godwit.net.access import Access, Admitted, Credentials
from godwit.net.address import Address, is_loopback
from godwit.net.admin.api import JSON, PREFIX, OperatorApi
from godwit.net.config import HTTP_DEFAULT, STATUS_ANY, address
from godwit.net.http import TEXT, Answer, HttpServer, Request
from godwit.net.peers.balance import WILDCARDS
from godwit.net.server import Parts, ServeError, Service, reason_of, tls_for_clients
from godwit.net.web.events import PREFIX as EVENTS_PREFIX
from godwit.net.web.events import EventsApi
from godwit.protocols.broker.api import RefusedError

log = logging.getLogger("godwit.http")

CLIENT = "console"
"""What operators are called where users may use some client ids only."""
ANSWER_S = 30.0
USAGE = b"/openapi.json tells what there is; log in with a user of the broker's users file\n"

Handler = Callable[[Request, Admitted], Awaitable[Answer]]


class Portal(HttpServer):
    """`routes` are handlers by how a path begins. Each is called with who asks."""

    def __init__(self, access: Access, routes: dict[str, Handler], where: Address, tls: ssl.SSLContext | None) -> None:
        super().__init__(self._tell, where.host, where.port, tls=tls, answer_s=ANSWER_S, methods=("GET", "POST"))
        self._access = access
        self._routes = routes

    async def _tell(self, request: Request) -> Answer:
        if problem := strange(request):
            return HTTPStatus.FORBIDDEN, TEXT, f"{problem}\n".encode()
        if request.path == "/openapi.json":
            from godwit.net.admin.openapi import described  # few ask

            return HTTPStatus.OK, JSON, msgspec.json.encode(described())
        handler = next((one for prefix, one in self._routes.items() if request.path.startswith(prefix)), None)
        if handler is None:
            return (HTTPStatus.OK if request.path == "/" else HTTPStatus.NOT_FOUND), TEXT, USAGE
        try:
            who = await self._access.admit(
                Credentials(client=CLIENT, user=request.user, password=request.password, peer=request.peer)
            )
        except RefusedError as error:
            log.info("refused %r from %s: %s", request.user or "", request.peer, error.text)
            return HTTPStatus.UNAUTHORIZED, TEXT, f"{error.text}\n".encode()
        if not who.user and not is_plain_host(request.headers.get("host", "")):
            return HTTPStatus.FORBIDDEN, TEXT, b"use 127.0.0.1 or localhost, or log in\n"
        return await handler(request, who)


def strange(request: Request) -> str:
    """Why a request is not even asked who it is from; empty where it may be."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    if origin and urlsplit(origin).netloc != host:
        return "a page of another address may not use this"
    if request.method == "POST" and request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        return f"what is posted must be {JSON}"
    return ""


def is_plain_host(host: str) -> bool:
    """Whether it is a number, or `localhost`."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class PortalService(Service):
    """Serves operators of this broker, and whoever else logs in over HTTP."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        told = parts.config.listen.http
        self._any = told == STATUS_ANY
        self._where = address(HTTP_DEFAULT if self._any else told, "listen.http")
        self._operators: OperatorApi | None = None
        self._portal: Portal | None = None

    async def start(self) -> None:
        parts, where = self.parts, self._where
        self._operators = OperatorApi(parts)
        tls = None if is_loopback(where.host) else tls_for_clients(parts.config)
        routes: dict[str, Handler] = {PREFIX: self._operators.answer, EVENTS_PREFIX: EventsApi(parts.broker).answer}
        self._portal = Portal(parts.access, routes, where, tls)
        try:
            await self._portal.start()
        except OSError as error:
            if not self._any:
                raise ServeError(f"listen.http: {where}: {reason_of(error, where)}") from None
            # Another broker of this machine has the usual port, and nobody has asked for it.
            self._portal.port = 0
            await self._portal.start()
        self._operators.start()
        parts.balance.address_http = parts.config.listen.advertise_http or self._url()

    def _url(self) -> str:
        assert self._portal is not None
        scheme = "http" if is_loopback(self._where.host) or self.parts.config.tls is None else "https"
        return f"{scheme}://{Address(self._host(), self._portal.port)}"

    def _host(self) -> str:
        """Where it is reached; of one that listens everywhere, as far as something else was advertised. Else empty."""
        if self._where.host not in WILDCARDS:
            return self._where.host
        told = self.parts.config.peers.advertise or self.parts.config.listen.advertise
        return address(told, "listen.advertise", 0).host if told else ""

    async def stop(self) -> None:
        if self._operators is not None:
            self._operators.stop()
        if self._portal is not None:
            await self._portal.stop()

    def addresses(self) -> list[tuple[str, str]]:
        return [("http", self._url())] if self._portal is not None else []
