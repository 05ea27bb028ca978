"""Checkers that stand outside the protocols: is a network complete, and did a run lose or repeat anything?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import NodeId
from godwit.protocols.relocation.messages import EventId
from godwit.protocols.routing.covering.router import Router


class Incomplete(msgspec.Struct, frozen=True):
    """A broker that should know of a filter and does not."""

    broker: NodeId
    filter: Filter
    advert: bool


def incompleteness(routers: Mapping[NodeId, Router], adverts: Iterable[Filter] = ()) -> list[Incomplete]:
    """Definition 5.3 on a network under advertisement semantics.

    A subscription is complete if every broker that has an overlapping advert has it, or something as wide, active. An
    advert is complete if every broker with an overlapping subscription has processed it, or something as wide.
    """
    wanted = {one for router in routers.values() for one in router.wanted.table}
    offered = {*adverts, *(one for router in routers.values() for one in router.offered.table)}
    found = [
        Incomplete(name, one, advert=False)
        for name, router in routers.items()
        for one in wanted
        if router.offers(one) and not _knows(router, router.wanted.table, one) and _elsewhere(router, one)
    ]
    found += [
        Incomplete(name, one, advert=True)
        for name, router in routers.items()
        for one in offered
        if any(router.language.overlaps(one, w) for w in router.wanted.table)
        and not _knows(router, router.offered.table, one)
    ]
    return found


def _knows(router: Router, table: Iterable[Filter], one: Filter) -> bool:
    return any(router.language.covers(known, one) for known in table)


def _elsewhere(router: Router, one: Filter) -> bool:
    """A broker at the edge whose only overlapping adverts come from the side of the subscriber need not know of it."""
    return bool(router.offers(one) - router.neighbors)


class Flaw(msgspec.Struct, frozen=True):
    """What is wrong with the deliveries of one event to one client."""

    what: str
    client: str
    event: EventId


def flaws(
    published: Iterable[Event],
    wanted: Mapping[str, Sequence[Filter]],
    got: Mapping[str, Sequence[EventId]],
    due: Iterable[EventId] | None = None,
) -> Iterator[Flaw]:
    """Safety and liveness (5.1, 5.2) of a run that has come to rest, and with moves in it mobility safety (5.4).

    Lost: due and never notified. Twice: notified again. Strange: never published, or wanted by no filter of the client.
    `due` are the events that must arrive; all unless given.
    """
    events = {event.id: event for event in published}
    must = set(events if due is None else due)
    for client, filters in wanted.items():
        counts = Counter(got.get(client, ()))
        for name, event in events.items():
            matches = any(one.matches(event.values()) for one in filters)
            if matches and name in must and not counts[name]:
                yield Flaw("lost", client, name)
            if counts[name] > 1:
                yield Flaw("twice", client, name)
            if counts[name] and not matches:
                yield Flaw("strange", client, name)
        for name in counts.keys() - events.keys():
            yield Flaw("strange", client, name)
