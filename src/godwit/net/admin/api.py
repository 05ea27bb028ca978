"""The HTTP API of a broker for operators: a table of endpoints, who may call each, and what answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from godwit.net.access import Admitted, Role
from godwit.net.admin import reasons, rows, sessions
from godwit.net.admin.actions import ActionError, Actions
from godwit.net.admin.audit import AuditLog
from godwit.net.admin.moves import MoveLog
from godwit.net.admin.notices import Notices, noticing
from godwit.net.admin.reasons import QuestionError
from godwit.net.admin.trail import Trail
from godwit.net.admin.views import Views
from godwit.net.admin.watch import Watch, event_row
from godwit.net.http import TEXT, Answer, Request
from godwit.net.ops import structures
from godwit.net.server import Parts

JSON = "application/json"
PREFIX = "/v1/"
ROWS_MAX = 1_000
ACTIONS = {
    "disconnect": "Hang up on a client; its session stays.",
    "end": "End a client's session, with all that waits in it.",
    "purge": "Drop what waits for a client.",
    "cordon": "Send new clients to other brokers; those that are here stay.",
    "uncordon": "Let new clients in again.",
    "leave": "Give the cells of a broker of a ring to its neighbors, for good.",
    "drain": "Send all clients to other brokers, within `seconds`.",
    "restart": "Stop in order, and start again.",
    "reload": "Read users and grants again.",
    "record": "Record publications and deliveries for `seconds`, for questions about them.",
}
OF_CLIENTS = ("disconnect", "end", "purge")
HARMLESS = ("uncordon", "reload", "record")
"""Everything else wants `confirm`."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    summary: str
    answer: Any
    query: Mapping[str, str] = {}
    """Parameters and what they mean."""
    body: Any = None
    """What is posted; None: it is a GET."""
    role: Role = Role.VIEWER


LIMIT = {"limit": f"How many rows at most, up to {ROWS_MAX:,}."}
FILTER = {"filter": "A condition, as in pm25 > 150."}

ENDPOINTS = (
    Endpoint(path="me", summary="Who asks, and with which role.", answer=rows.Me, role=Role.NONE),
    Endpoint(path="broker", summary="The broker on one card.", answer=rows.BrokerRow),
    Endpoint(
        path="clients",
        summary="Clients by name.",
        answer=rows.Sessions,
        query={"search": "A part of the name.", "state": "connected, away or moved.", **LIMIT},
    ),
    Endpoint(path="client", summary="One client.", answer=rows.SessionDetail, query={"name": "Its name."}),
    Endpoint(path="backlogs", summary="Clients by what waits for them.", answer=rows.Sessions, query=LIMIT),
    Endpoint(path="areas", summary="Where subscriptions look.", answer=rows.Areas),
    Endpoint(
        path="things",
        summary="What said where it is, while this is asked for.",
        answer=rows.Things,
        query={"since": "The serial of the last answer."},
    ),
    Endpoint(path="attributes", summary="Attributes of what is published.", answer=rows.Attributes),
    Endpoint(path="last", summary="The last of each thing, and what is retained.", answer=rows.Events, query=FILTER),
    Endpoint(path="events", summary="The last publications.", answer=rows.Events, query=FILTER),
    Endpoint(
        path="problems",
        summary="What went wrong lately.",
        answer=rows.Problems,
        query={"since": "The serial of the last answer."},
    ),
    Endpoint(path="handoffs", summary="How clients move.", answer=rows.Handoffs),
    Endpoint(path="users", summary="Users and grants.", answer=rows.Users),
    Endpoint(
        path="may",
        summary="May this user do that?",
        answer=rows.Verdict,
        query={
            "user": "Empty: anonymous.",
            "act": "publish or subscribe.",
            "topic": "A topic, or a topic filter.",
            "condition": "Of a subscription.",
            "payload": "Of a publication.",
        },
    ),
    Endpoint(path="archive", summary="Files of the archive, and who follows.", answer=rows.ArchiveRow | None),
    Endpoint(
        path="structures",
        summary="How filters of clients cover one another, in the structures of the routing tables.",
        answer=structures.Structures,
        query={"kind": "FP, PF, BF or NRF; PF.", "size": f"Filters to arrange, up to {structures.SIZE_MAX:,}."},
    ),
    Endpoint(path="context", summary="Things and lasting questions, and how they meet.", answer=structures.Context),
    Endpoint(path="audit", summary="Who did what.", answer=rows.Audit),
    Endpoint(
        path="why",
        summary="What this broker knows of a client and an event.",
        answer=rows.Why,
        query={
            "client": "Its name.",
            "event": "publisher:sequence, as traces name it.",
            "topic": "Instead of an event that is known: what it would be like.",
            "payload": "The same.",
        },
    ),
    Endpoint(path="wanting", summary="Who would get this publication?", answer=rows.Wanting, body=rows.Offer),
    *(
        Endpoint(path=f"actions/{name}", summary=text, answer=rows.Done, body=rows.Wish, role=Role.OPERATOR)
        for name, text in ACTIONS.items()
    ),
)

RANKS = {Role.NONE: 0, Role.VIEWER: 1, Role.OPERATOR: 2}


class OperatorApi:
    """Of one broker; `start` begins to notice, `stop` ends it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        loop = asyncio.get_running_loop()
        self.notices = Notices()
        self.moves = MoveLog(parts.broker.clock)
        self.watch = Watch(parts.broker, loop.time, loop.call_later)
        self.trail = Trail(parts.broker, parts.host, parts.broker.clock, loop.call_later)
        self.views = Views(parts, self.notices, self.moves)
        self.actions = Actions(parts, AuditLog(parts.config.folder), self.watch, self.trail)
        self._endpoints = {one.path: one for one in ENDPOINTS}
        self._stop_noticing: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._stop_noticing = noticing(self.notices)
        self.parts.front.on_opened = self.moves.note

    def stop(self) -> None:
        self._stop_noticing()
        self.actions.stop()
        self.watch.stop()
        self.trail.stop()

    async def answer(self, request: Request, who: Admitted) -> Answer:
        """Whoever asks is known by now; whether it may is found out here."""
        endpoint = self._endpoints.get(request.path.removeprefix(PREFIX))
        if endpoint is None:
            return HTTPStatus.NOT_FOUND, TEXT, b"there is no such thing; /openapi.json lists what there is\n"
        if (request.method == "POST") != (endpoint.body is not None):
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"this is asked for the other way: GET or POST\n"
        if RANKS[who.role] < RANKS[endpoint.role]:
            text = f"this needs the role {endpoint.role}; {who.user or 'anonymous'} has {who.role}\n"
            return HTTPStatus.FORBIDDEN, TEXT, text.encode()
        try:
            return HTTPStatus.OK, JSON, msgspec.json.encode(await self._found(endpoint, request, who))
        except (QuestionError, ActionError, msgspec.DecodeError) as error:
            return HTTPStatus.BAD_REQUEST, TEXT, f"{error}\n".encode()
        except LookupError as error:
            return HTTPStatus.NOT_FOUND, TEXT, f"{error.args[0]}\n".encode()

    async def _found(self, endpoint: Endpoint, request: Request, who: Admitted) -> object:
        if endpoint.role is Role.OPERATOR:
            wish = msgspec.json.decode(request.body or b"{}", type=rows.Wish)
            return await self._act(endpoint.path.rpartition("/")[2], wish, request, who)
        found = self._tell(endpoint.path, request, who)
        return await found if isinstance(found, Awaitable) else found

    def _tell(self, path: str, request: Request, who: Admitted) -> object:
        parts, query = self.parts, request.query
        match path:
            case "me":
                return rows.Me(broker=parts.identity.name, user=who.user, role=str(who.role))
            case "broker":
                until = self.trail.until if self.trail.until != float("inf") else parts.broker.clock() + 3600
                return self.views.broker(until, self.actions.draining)
            case "clients":
                return sessions.listed(parts, query.get("search", ""), query.get("state", ""), _limit(query))
            case "client":
                found = sessions.detail(parts, query.get("name", ""), self.moves)
                if found is None:
                    raise LookupError("no session of this client is here")
                return found
            case "backlogs":
                return sessions.backlogs(parts, _limit(query))
            case "areas":
                return sessions.areas(parts)
            case "things":
                return self.watch.things(_number(query, "since"))
            case "attributes":
                return self.watch.attributes()
            case "last":
                return self._lasts(query)
            case "events":
                wanted = reasons.parsed(query["filter"]) if query.get("filter") else None
                return rows.Events(events=self.watch.recent(wanted, _limit(query)))
            case "problems":
                return self.views.problems(_number(query, "since"))
            case "handoffs":
                return self.views.handoffs()
            case "users":
                return self.views.users()
            case "may":
                said = (query.get(name, "") for name in ("user", "act", "topic", "condition", "payload"))
                return reasons.may(parts, *said)
            case "archive":
                return asyncio.to_thread(self.views.archive)
            case "structures":
                kind = query.get("kind") or "PF"
                if kind not in structures.KINDS:
                    raise QuestionError(f"kind {kind!r}; right would be one of {', '.join(structures.KINDS)}")
                return structures.structures(parts, sessions.every(parts), kind, _number(query, "size"))
            case "context":
                return structures.context(parts)
            case "audit":
                return rows.Audit(rows=self.actions.audit.last())
            case "why":
                client, event, topic, payload = (
                    query.get(name, "") for name in ("client", "event", "topic", "payload")
                )
                return reasons.why(parts, client, event, payload, topic, self.watch, self.trail)
            case "wanting":
                offer = msgspec.json.decode(request.body or b"{}", type=rows.Offer)
                return reasons.wanting(parts, offer.topic, offer.payload)
        raise LookupError("nothing answers this")

    def _lasts(self, query: Mapping[str, str]) -> rows.Events:
        wanted = reasons.parsed(query["filter"]) if query.get("filter") else None
        most = _limit(query)
        retained = self.parts.broker.lasts("#", query.get("filter", ""), None, self.parts.access.limits)
        found = [event_row(one, retained=True) for one in retained[-ROWS_MAX:]]
        return rows.Events(events=[*self.watch.lasts(wanted, most), *reversed(found)][:most])

    async def _act(self, action: str, wish: rows.Wish, request: Request, who: Admitted) -> rows.Done:
        if action in OF_CLIENTS and not wish.client:
            raise ActionError("say which client")
        if action not in HARMLESS and not wish.confirm:
            raise ActionError(f"{action} wants to be confirmed: say confirm")
        result = await self.actions.do(action, wish, who.user, request.peer)
        return rows.Done(action=action, result=result)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not (text.isascii() and text.isdecimal()):
        raise QuestionError(f"{name} {unquote(text)!r}; right would be a number")
    return int(text)


def _limit(query: Mapping[str, str]) -> int:
    return min(_number(query, "limit") or 200, ROWS_MAX)
