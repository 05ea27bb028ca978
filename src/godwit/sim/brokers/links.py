"""Streams between brokers without a tree: this fabric keeps the order of each stream and nothing else.

Each stream is as slow as its dice say. So what brokers do with streams is tested apart from how streams are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.messages import Content, Repeated, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.host import Message, NodeId

if TYPE_CHECKING:
    from godwit.sim.brokers.site import SimHost, Site

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Content] = msgspec.msgpack.Decoder(Content).decode


class Wire:
    """What one broker sees: a `Fabric`."""

    retains_everywhere = True
    deals = True

    def __init__(self, site: Site, host: SimHost, store: MemoryStore) -> None:
        self.site = site
        self.host = host
        self.store = store
        self.world = site.world
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = lambda: 0.0
        self.outgoing: dict[NodeId, dict[int, bytes]] = {}
        """What each other broker has not confirmed."""
        self.ready: dict[NodeId, list[int]] = {}
        """Numbers that may leave: they are on the disk, or need none."""
        self.unsettled = 0
        """How many of them are not yet."""
        self.marks: dict[NodeId, int] = {}
        self.given: dict[NodeId, int] = {}
        for origin, _, row in store.load("marks"):
            self.marks[origin] = self.given[origin] = int(row)
        for to, number, row in store.load("outbox"):
            self.outgoing.setdefault(to, {})[number] = row
            self.ready.setdefault(to, []).append(number)

    def is_known(self, broker: NodeId) -> bool:
        return broker != self.host.name and broker in self.site.known

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        return self.site.known - {self.host.name}

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        return {*self.site.known, *places}

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {name: filters for name, (_, filters) in self.site.heard.items() if self.is_known(name)}

    def want(self, filters: Iterable[Filter]) -> int:
        self.site.statement = (self.site.statement[0] + 1, tuple(filters))
        self.world.spread_interest(self.site)
        return self.site.statement[0]

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return None

    def is_silent(self, broker: NodeId) -> bool:
        return False

    def disk_of(self, broker: NodeId) -> int:
        return 0

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        return number not in self.outgoing.get(broker, {})

    def heard(self, broker: NodeId) -> int:
        return self.site.heard.get(broker, (0, ()))[0]

    @property
    def sent(self) -> int:
        return self.world.number

    @property
    def crossings(self) -> int:
        return 0

    def crossed(self, after: int) -> list[tuple[str, int]]:
        return []

    def passage(self, origin: NodeId, number: int) -> tuple[str, int]:
        return origin, number

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        receivers = list(to)
        if not receivers:
            return
        assert self.host.name not in receivers, content
        number = self.world.next_number()
        self.world.said.append((self.host.name, tuple(receivers), content))
        row = _encode(content)
        for receiver in receivers:
            self.outgoing.setdefault(receiver, {})[number] = row
            if durable:
                self.store.put("outbox", receiver, number, row)
        self.unsettled += 1
        if durable or self.unsettled > 1:
            self.store.settled(lambda: self._let_go(receivers, number))
        else:
            self._let_go(receivers, number)

    def _let_go(self, receivers: list[NodeId], number: int) -> None:
        self.unsettled -= 1
        if self.host.alive:
            for receiver in receivers:
                self.ready.setdefault(receiver, []).append(number)
                self.world.wake(self.host.name, receiver)

    def next_for(self, receiver: NodeId, after: int) -> tuple[int, bytes] | None:
        for number in self.ready.get(receiver, ()):
            if number > after and number in self.outgoing[receiver]:
                return number, self.outgoing[receiver][number]
        return None

    def give(self, origin: NodeId, number: int, row: bytes) -> None:
        if number > self.given.get(origin, 0):
            self.given[origin] = number
            self.on_content(origin, number, _decode(row))
            assert self.marks.get(origin) == number, "the broker must take what it was given"

    def taken(self, origin: NodeId, number: int) -> None:
        self.marks[origin] = number
        self.store.put("marks", origin, 0, str(number).encode())
        self.store.settled(lambda: self.world.confirm(origin, self.host.name, number))

    def confirmed(self, receiver: NodeId, number: int) -> None:
        rows = self.outgoing.get(receiver, {})
        for old in [old for old in rows if old <= number]:
            del rows[old]
            self.store.delete("outbox", receiver, old)
        self.ready[receiver] = [old for old in self.ready.get(receiver, ()) if old > number]

    def receive(self, sender: NodeId, message: Message) -> None: ...
    def linked(self, peer: NodeId) -> None: ...
    def unlinked(self, peer: NodeId) -> None: ...
