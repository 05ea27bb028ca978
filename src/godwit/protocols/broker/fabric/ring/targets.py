"""Where on the ring a publication is matched, a filter is kept, and a client has its homes (docs/ring.md, "Who
matches")."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from godwit.filters.filters import Filter
from godwit.filters.predicates import Kind, Text, TextOp, Within, place_of
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.topics import matches, meaning
from godwit.protocols.gathering.areas import Anywhere, Keyed, Reach, Spot, Zone
from godwit.protocols.topology.pastry.keys import BYTES

PLACE = "lat,lon"
"""The attributes that say where something happened."""


def _hashed(what: str, text: str) -> Keyed:
    data = f"{what}\0{text}".encode("utf-8", "surrogatepass")
    return Keyed(blake2b(data, digest_size=BYTES).digest())


@lru_cache(maxsize=4_096)
def of_level(level: str) -> Keyed:
    """Of the publications whose topics begin with this level."""
    return _hashed("topic", level)


@lru_cache(maxsize=4_096)
def homes_of(client: str, count: int) -> tuple[Keyed, ...]:
    return tuple(_hashed(f"home {number}", client) for number in range(count))


class Targets:
    """`located` are the topic filters under which publications are matched where they happened."""

    def __init__(self, located: Iterable[str] = ()) -> None:
        self.located = tuple(located)
        self._meanings = [meaning(one) for one in self.located]
        self._of_filter = lru_cache(maxsize=4_096)(self._reaches)

    def of_publication(self, one: Publication) -> Keyed | Spot:
        if any(matches(topics, one.topic) for topics in self.located):
            place = place_of(PLACE, one.values())
            if place is not None:
                lat, lon = place
                return Spot((lon, lat))
        return of_level(one.topic.partition("/")[0])

    def of_filters(self, filters: Iterable[Filter]) -> tuple[Reach, ...]:
        """Together they reach all brokers that may match something that these filters want."""
        found = dict.fromkeys(reach for one in filters for reach in self._of_filter(one))
        return (Anywhere(),) if Anywhere() in found else tuple(found)

    def of_filter(self, one: Filter) -> tuple[Reach, ...]:
        return self._of_filter(one)

    def _reaches(self, one: Filter) -> tuple[Reach, ...]:
        zones, levels = _zones(one), tuple(map(of_level, _first_levels(one)))
        if zones and any(topics.covers(one) for topics in self._meanings):
            return zones
        if not levels:
            return (Anywhere(),)
        if any(topics.overlaps(one) for topics in self._meanings):
            return (*levels, *zones) if zones else (Anywhere(),)
        return levels


def _zones(one: Filter) -> tuple[Reach, ...]:
    """The areas that it demands, if it does."""
    for own in one:
        if own.kind is Kind.PLACE and own.name == PLACE and own.clause:
            areas = [part.area for part in own.clause if isinstance(part, Within)]
            if len(areas) == len(own.clause):
                return tuple(map(Zone, areas))
    return ()


def _first_levels(one: Filter) -> Iterable[str]:
    """The only ones that it accepts, where it names them; several where filters were merged."""
    for own in one:
        named = [part.operand for part in own.clause if isinstance(part, Text) and part.op is TextOp.EQU]
        if len(named) == len(own.clause) and own.name == "topic_1":
            return dict.fromkeys(named)
        if len(named) == len(own.clause) and own.name == "topic":
            return dict.fromkeys(topic.partition("/")[0] for topic in named)
    return ()
