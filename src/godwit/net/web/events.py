"""Last values, publishing and subscribing for whoever speaks HTTP and logs in; grants apply.

GET  /events?filter=TEXT&topics=T&limit=N        what is retained and matches, without subscribing
GET  /events/stream?filter=TEXT&topics=T         server-sent events: each publication that matches
GET  /events/stream?...&lasting=                 what matches now and what changes; or lasting=cover, quiet
GET  /events/stream?...&since=-2h                first what was published since then, from the archive
POST /events                                     publish one, as JSON
"""

from __future__ import annotations

import asyncio
import itertools
from http import HTTPStatus

import msgspec

from godwit.filters.errors import FilterError
from godwit.net.access import Admitted, session_name
from godwit.net.http import TEXT, Answer, Request
from godwit.net.mqtt.codec import Wish
from godwit.net.mqtt.subscribe import subscription_of
from godwit.net.web.rows import Post, change_row
from godwit.net.web.stream import Reader
from godwit.protocols.broker.api import Opening, Reason, RefusedError, Subscription
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.topics import problem_of_filter

PREFIX = "/events"
CLIENT = "http"
JSON, EVENTS = "application/json", "text/event-stream"
LIMIT, LIMIT_MAX = 1_000, 100_000
USAGE = b"there are GET /events, GET /events/stream and POST /events\n"


class EventsApi:
    """For one broker."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._streams = itertools.count(1)
        self._sequence = 0

    async def answer(self, request: Request, who: Admitted) -> Answer:
        try:
            match request.method, request.path.rstrip("/"):
                case "GET", "/events":
                    return self._lasts(request, who)
                case "GET", "/events/stream":
                    return await self._stream(request, who)
                case "POST", "/events":
                    return await self._post(request, who)
        except (FilterError, ValueError, msgspec.DecodeError) as error:
            return HTTPStatus.BAD_REQUEST, TEXT, f"{error}\n".encode()
        except RefusedError as error:
            status = HTTPStatus.FORBIDDEN if error.reason is Reason.NOT_AUTHORIZED else HTTPStatus.BAD_REQUEST
            return status, TEXT, f"{error.text}\n".encode()
        return HTTPStatus.NOT_FOUND, TEXT, USAGE

    def _lasts(self, request: Request, who: Admitted) -> Answer:
        topics = request.query.get("topics", "#")
        if problem := problem_of_filter(topics):
            raise ValueError(problem)
        limit = int(request.query.get("limit", LIMIT))
        if not 0 < limit <= LIMIT_MAX:
            raise ValueError(f"limit={limit}; right would be 1 to {LIMIT_MAX}")
        found = self.broker.lasts(topics, request.query.get("filter", ""), who.grant.subscribe, who.limits)
        rows = [change_row(one) for one in found[:limit]]
        return HTTPStatus.OK, JSON, msgspec.json.encode(rows)

    async def _stream(self, request: Request, who: Admitted) -> Answer:
        query = request.query
        condition, words = query.get("filter", ""), query.get("lasting")
        lasting = None if words is None else words.replace(",", " ").split()
        wish = Wish(query.get("topics", "#"), 1)
        conditions, since = [condition] if condition else [], query.get("since")
        wanted: Subscription = subscription_of(wish, conditions, 0, lasting, since, self.broker.clock())
        reader = Reader(self.broker)
        client = session_name(who.user, f"{CLIENT}-{self.broker.host.name}-{next(self._streams)}")
        await reader.open(Opening(client=client, grant=who.grant, limits=who.limits), wanted)
        return HTTPStatus.OK, EVENTS, reader.lines()

    async def _post(self, request: Request, who: Admitted) -> Answer:
        post, broker = msgspec.json.decode(request.body, type=Post), self.broker
        payload = msgspec.json.encode(post.attributes) if post.payload is None else post.payload.encode()
        attributes = (("attributes", msgspec.json.encode(post.attributes).decode()),)
        user = attributes if post.payload is not None and post.attributes else ()
        self._sequence = max(self._sequence + 1, int(broker.clock() * 1e6))
        publication = Publication(
            session_name(who.user, CLIENT),
            self._sequence,
            post.topic,
            payload,
            1,
            post.retain,
            broker.clock(),
            None if post.expiry_s is None else broker.steady() + post.expiry_s,
            Properties(user=(*user, *((("profile", post.profile),) if post.profile else ()))),
        )
        reason = broker.say(publication, who.grant)
        if reason is not Reason.OK:
            raise RefusedError(reason, f"refused: {reason.name.lower().replace('_', ' ')}")
        safe = asyncio.Event()
        broker.store.settled(safe.set)
        await safe.wait()
        return HTTPStatus.OK, JSON, b'{"taken":true}\n'
