"""What the console serves: its files, the login, and what brokers answer. Starlette does HTTP."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from godwit import __version__
from godwit.console.fleet import Fleet, Told
from godwit.console.rolling import Rolling
from godwit.console.visitors import Visitor, Visitors
from godwit.console.why import answered
from godwit.events import Value
from godwit.filters.errors import FilterError
from godwit.filters.explanation import explanation
from godwit.filters.syntax import FilterSyntaxError
from godwit.filters.text import parse
from godwit.net.admin.client import NOBODY, AskError, Login
from godwit.net.admin.openapi import described
from godwit.net.admin.portal import is_plain_host
from godwit.protocols.broker.publication import Publication, is_topic_attribute

STATIC = Path(__file__).parent / "static"
COOKIE = "godwit-console"
BODY_MAX = 1024 * 1024
ALL_MAY = ("wanting", "actions/record", "actions/reload")
"""What may be posted to all brokers at once."""


class TellError(Exception):
    """The answer is this status, with this text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Console:
    """`trusted`: visitors of this machine need no login where brokers want none."""

    def __init__(self, fleet: Fleet, *, trusted: bool) -> None:
        self.fleet = fleet
        self.visitors = Visitors()
        self.rolling = Rolling(fleet)
        self.trusted = trusted

    def app(self) -> Starlette:
        routes = [
            Route("/", self._index),
            Route("/api/me", self._told(self._me)),
            Route("/api/login", self._told(self._login), methods=["POST"]),
            Route("/api/logout", self._told(self._logout), methods=["POST"]),
            Route("/api/openapi.json", self._told(self._openapi)),
            Route("/api/filter", self._told(self._filter), methods=["POST"]),
            Route("/api/why", self._told(self._why), methods=["POST"]),
            Route("/api/rolling", self._told(self._roll), methods=["GET", "POST"]),
            Route("/api/all/{path:path}", self._told(self._all), methods=["GET", "POST"]),
            Route("/api/one/{broker}/{path:path}", self._told(self._one), methods=["GET", "POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ]
        return Starlette(routes=routes, middleware=[Middleware(BaseHTTPMiddleware, dispatch=self._guarded)])

    async def _guarded(self, request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        """Pages elsewhere get nothing, and this page asks nobody but this server and the brokers."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin", "")
        if origin and urlsplit(origin).netloc != host:
            return Response("a page of another address may not use this\n", 403)
        if request.method == "POST" and not request.headers.get("content-type", "").startswith("application/json"):
            return Response("what is posted must be application/json\n", 403)
        response = await call(request)
        sockets = " ".join(sorted({_origin_of(one, host) for one in self.fleet.websockets}))
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
            f"connect-src 'self' {sockets}; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cache-Control"] = "no-cache" if request.url.path.startswith("/static") else "no-store"
        return response

    def _told(self, call: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                found = await call(request)
            except TellError as error:
                return _json({"text": str(error)}, error.status)
            except AskError as error:
                return _json({"text": str(error)}, error.status or 502)
            return found if isinstance(found, Response) else _json(found)

        return answer

    async def _index(self, request: Request) -> Response:
        await self.fleet.refresh()
        if not self.fleet.websockets:
            # The page may only connect to what its headers name, and they are said once.
            visitor = self.visitors.find(request.cookies.get(COOKIE, ""))
            await self.fleet.all(visitor.login if visitor is not None else NOBODY, "broker")
        return Response((STATIC / "index.html").read_bytes(), media_type="text/html")

    async def _visitor(self, request: Request) -> Visitor:
        """Who this is; 401 where nobody knows."""
        visitor = self.visitors.find(request.cookies.get(COOKIE, ""))
        if visitor is not None:
            return visitor
        if self.trusted and _is_near(request):
            try:
                me = await self.fleet.admit(NOBODY)
            except AskError as error:
                if error.status not in (401, 403):
                    raise
            else:
                if me["role"] != "none":
                    return Visitor(NOBODY, me["role"], 0.0)
        raise TellError(401, "log in")

    async def _me(self, request: Request) -> object:
        await self.fleet.refresh()
        members = [
            {"name": one.name, "url": one.url, "problem": one.problem} for _, one in sorted(self.fleet.members.items())
        ]
        told = {"version": __version__, "brokers": members, "user": "", "role": "", "named": False}
        try:
            visitor = await self._visitor(request)
        except (TellError, AskError) as error:
            # Nobody hears which brokers there are before it has logged in.
            return {**told, "brokers": [], "problem": "" if isinstance(error, TellError) else str(error)}
        return {**told, "user": visitor.login.user, "role": visitor.role, "named": bool(visitor.login.user)}

    async def _login(self, request: Request) -> object:
        address, said = _address(request), await _body(request)
        if (waits_s := self.visitors.waits_s(address)) > 0:
            raise TellError(429, f"wrong too often; try again in {waits_s:.0f} s")
        login = Login(str(said.get("user", "")), str(said.get("password", "")))
        try:
            me = await self.fleet.admit(login)
        except AskError as error:
            if error.status == 401:
                self.visitors.was_wrong(address)
            raise
        if me["role"] == "none":
            raise TellError(403, f"{login.user} may neither look nor act here; give it a role in the users file")
        self.visitors.was_right(address)
        response = _json({"user": me["user"], "role": me["role"]})
        token = self.visitors.enter(login, me["role"])
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure, path="/")
        return response

    async def _logout(self, request: Request) -> object:
        self.visitors.leave(request.cookies.get(COOKIE, ""))
        response = _json({})
        response.delete_cookie(COOKIE, path="/")
        return response

    async def _openapi(self, request: Request) -> object:
        return described()

    async def _all(self, request: Request) -> Mapping[str, Told]:
        visitor, path = await self._visitor(request), request.path_params["path"]
        if request.method == "GET":
            return await self.fleet.all(visitor.login, path, dict(request.query_params))
        if path not in ALL_MAY:
            raise TellError(400, "this goes to one broker at a time")
        return await self.fleet.all(visitor.login, path, body=await _body(request))

    async def _one(self, request: Request) -> object:
        visitor = await self._visitor(request)
        name, path = request.path_params["broker"], request.path_params["path"]
        body = await _body(request) if request.method == "POST" else None
        await self.fleet.refresh()
        told = await self.fleet.one(name, visitor.login, path, dict(request.query_params), body)
        if not told.ok:
            raise TellError(told.status or 502, told.text)
        return told.body

    async def _filter(self, request: Request) -> object:
        await self._visitor(request)
        said = await _body(request)
        event = said.get("event", "")
        filters = await asyncio.to_thread(_parsed, str(said.get("filter", "")))
        other = await asyncio.to_thread(_parsed, str(said["against"])) if said.get("against") else None
        return explanation(filters, other, _event_of(str(event)) if event else None)

    async def _why(self, request: Request) -> object:
        """First who has seen the event, then what all say of it: only where it was published is known what it said."""
        visitor, said = await self._visitor(request), await _body(request)
        asked = {name: str(said.get(name, "")) for name in ("client", "event", "topic", "payload")}
        if not asked["client"] or not (asked["event"] or asked["topic"]):
            raise TellError(400, "say which client, and which event")
        if asked["event"]:
            first = await self.fleet.all(visitor.login, "why", asked)
            seen = next((one.body["event"] for one in first.values() if one.ok and one.body["event"]), None)
            if seen is not None:
                values = {name: value for name, value in seen["values"].items() if not is_topic_attribute(name)}
                asked |= {"topic": seen["topic"], "payload": json.dumps(values)}
        answers = await self.fleet.all(visitor.login, "why", asked)
        told = [one.body for one in answers.values() if one.ok]
        if not told:
            raise TellError(502, next((one.text for one in answers.values()), "no broker is known"))
        answer = answered(asked["client"], told, thought_of=not asked["event"])
        return {"sentence": answer.sentence, "steps": answer.steps, "brokers": told}

    async def _roll(self, request: Request) -> object:
        visitor = await self._visitor(request)
        if request.method == "POST":
            said = await _body(request)
            if visitor.role != "operator":
                raise TellError(403, "this needs the role operator")
            if not said.get("confirm"):
                raise TellError(400, "a rolling restart wants to be confirmed: say confirm")
            if self.rolling.under_way:
                raise TellError(409, "a rolling restart is under way")
            await self.fleet.refresh(now=True)
            self.rolling.begin(sorted(name for name, one in self.fleet.members.items() if one.url), visitor.login)
        return {"under_way": self.rolling.under_way, "stages": self.rolling.stages}


def _json(found: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(found), status, media_type="application/json")


async def _body(request: Request) -> dict[str, Any]:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > BODY_MAX:
            raise TellError(413, "too much")
    try:
        return msgspec.json.decode(bytes(data) or b"{}", type=dict[str, Any])
    except msgspec.DecodeError:
        raise TellError(400, "no JSON object") from None


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _is_near(request: Request) -> bool:
    """On this machine, and spoken to by number: a page can make its own name point here."""
    try:
        near = ipaddress.ip_address(_address(request)).is_loopback
    except ValueError:
        near = False
    return near and is_plain_host(request.headers.get("host", ""))


def _origin_of(url: str, host: str) -> str:
    """Of a WebSocket, for the content security policy; nothing else can be in it."""
    split = urlsplit(url)
    name = split.hostname or urlsplit(f"//{host}").hostname or ""
    safe = "".join(c for c in name if c.isalnum() or c in ".-:")
    scheme, usual = ("wss", 443) if split.scheme == "wss" else ("ws", 80)
    return f"{scheme}://{f'[{safe}]' if ':' in safe else safe}:{split.port or usual}"


def _parsed(text: str) -> Any:
    try:
        return parse(text)
    except FilterSyntaxError as error:
        raise TellError(400, f"{error} (line {error.line}, column {error.column})") from None
    except FilterError as error:
        raise TellError(400, str(error)) from None


def _event_of(text: str) -> dict[str, Value]:
    """As a broker would see it."""
    try:
        told = json.loads(text)
    except ValueError as error:
        raise TellError(400, f"the event is no JSON: {error}") from None
    if not isinstance(told, dict):
        raise TellError(400, 'an event is an object such as {"pm25": 12}')
    topic = str(told.pop("topic", "t"))
    return dict(Publication("", 0, topic, json.dumps(told).encode()).values())
