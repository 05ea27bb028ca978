"""Clients of a broker as operators look for them: in a list, one by one, by what waits, and on a map."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from heapq import nlargest, nsmallest
from math import isinf

from godwit.filters.areas import WORLD, Circle
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import Within
from godwit.net.access import user_of
from godwit.net.admin.moves import MoveLog
from godwit.net.admin.rows import (
    AreaRow,
    Areas,
    SessionDetail,
    SessionRow,
    Sessions,
    SubscriptionRow,
    WaitingRow,
)
from godwit.net.admin.watch import named
from godwit.net.mqtt.connection import Connection
from godwit.net.server import Parts
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.state import Session, Sub

AREAS_MAX = 2_000
QUEUE_SHOWN = 20
SHARE = 2_000
"""Sessions in one turn of the loop."""
GRANTS_SHOWN = 50
STATES = ("connected", "away", "moved")


def state_of(session: Session) -> str:
    if session.standing.state is State.SHADOW:
        return "moved"
    return "connected" if session.outlet is not None else "away"


def row_of(session: Session, now_s: float) -> SessionRow:
    queue, outlet = session.queue, session.outlet
    first = queue.waiting[0] if queue.waiting else next(iter(queue.flying.values()), None)
    connection = outlet if isinstance(outlet, Connection) and outlet.transport is not None else None
    return SessionRow(
        client=session.client,
        state=state_of(session),
        address=connection.address if connection is not None else "",
        since=connection.since_s if connection is not None else 0.0,
        version=connection.version if connection is not None else 0,
        over=str(connection.over) if connection is not None else "",
        subscriptions=len(session.subscriptions),
        waiting=len(queue.waiting),
        waiting_bytes=queue.waiting_b,
        under_way=len(queue.flying),
        oldest_s=max(0.0, now_s - first.since) if first is not None else 0.0,
        dropped=sum(queue.dropped.values()),
        moved_to=session.standing.moved_to,
    )


async def every(parts: Parts) -> AsyncIterator[Session]:
    """Sessions and shadows, some in each turn of the loop: a broker of many clients must not stand still meanwhile."""
    shadows = [one for epochs in parts.broker.shadows.values() for one in epochs.values()]
    for place, session in enumerate([*parts.broker.sessions.values(), *shadows], 1):
        yield session
        if place % SHARE == 0:
            await asyncio.sleep(0)


async def listed(parts: Parts, search: str, state: str, most: int) -> Sessions:
    """Those whose name has the text in it, by name."""
    text = search.casefold()
    found = [one async for one in every(parts) if text in one.client.casefold() and state in ("", state_of(one))]
    now_s = parts.broker.steady()
    first = nsmallest(most, found, key=lambda one: one.client)
    return Sessions(total=len(found), rows=[row_of(one, now_s) for one in first])


async def backlogs(parts: Parts, most: int) -> Sessions:
    """Those for whom something waits or was dropped, the most first."""
    burdened = [one async for one in every(parts) if one.queue.waiting or one.queue.flying or one.queue.dropped]
    first = nlargest(most, burdened, key=lambda one: (len(one.queue.waiting) + len(one.queue.flying), one.client))
    now_s = parts.broker.steady()
    return Sessions(total=len(burdened), rows=[row_of(one, now_s) for one in first])


def found(parts: Parts, client: str) -> Session | None:
    """Its session, or a shadow where that is all."""
    session = parts.broker.sessions.get(client)
    if session is not None:
        return session
    shadows = parts.broker.shadows.get(client)
    return shadows[max(shadows)] if shadows else None


def detail(parts: Parts, client: str, moves: MoveLog) -> SessionDetail | None:
    session = found(parts, client)
    if session is None:
        return None
    now_s, queue = parts.broker.steady(), session.queue
    waiting = [item for item, _ in zip((*queue.flying.values(), *queue.waiting), range(QUEUE_SHOWN), strict=False)]
    return SessionDetail(
        row=row_of(session, now_s),
        user=user_of(session.client),
        expiry_s=None if isinf(session.carried.expiry_s) else session.carried.expiry_s,
        copies=sorted(session.standing.copies),
        came_from=session.standing.came_from,
        subscriptions=[_subscription(sub) for sub in session.subscriptions.values()],
        areas=list(areas_of(session)),
        moves=moves.of(client),
        queue=[
            WaitingRow(
                event=named(item.label.id),
                topic=item.label.topic,
                qos=item.qos,
                age_s=max(0.0, now_s - item.since),
                bytes=item.size_b,
            )
            for item in waiting
        ],
        dropped=dict(queue.dropped),
        publish=texts_of(session.grant.publish),
        subscribe=texts_of(session.grant.subscribe),
    )


def _subscription(sub: Sub) -> SubscriptionRow:
    wanted = sub.wanted
    return SubscriptionRow(
        key=wanted.key, topics=wanted.topics, condition=wanted.condition, group=wanted.group, qos=wanted.qos
    )


def texts_of(granted: FilterSet | None) -> list[str] | None:
    """None: everything."""
    if granted is None:
        return None
    from godwit.filters.text import to_text  # takes a while to load, and few ask

    return [to_text(one) for one, _ in zip(granted, range(GRANTS_SHOWN), strict=False)]


def areas_of(session: Session) -> Iterator[AreaRow]:
    for sub in session.subscriptions.values():
        if sub.condition is not None:
            for one in sub.condition:
                yield from areas_in(one, session.client, sub.wanted.condition)


def areas_in(wanted: Filter, client: str, text: str) -> Iterator[AreaRow]:
    """Where on the Earth a filter looks."""
    for attribute in wanted:
        for predicate in attribute.clause:
            if isinstance(predicate, Within) and predicate.area != WORLD:
                area = predicate.area
                if isinstance(area, Circle):
                    yield AreaRow(client=client, text=text, circle=[area.lat, area.lon, area.radius_m])
                else:
                    yield AreaRow(client=client, text=text, box=[area.south, area.west, area.north, area.east])


async def areas(parts: Parts) -> Areas:
    """Of all subscriptions here, and of what the broker has told the others."""
    shown: list[AreaRow] = []
    total = 0
    async for session in every(parts):
        found = list(areas_of(session))
        total += len(found)
        shown += found[: AREAS_MAX - len(shown)]
    told: Iterable[AreaRow] = (row for one in parts.stated for row in areas_in(one, parts.identity.name, ""))
    interest = [row for row, _ in zip(told, range(AREAS_MAX), strict=False)]
    return Areas(total=total, areas=shown, interest=interest)
