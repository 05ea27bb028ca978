"""The fabric without infrastructure (docs/adhoc.md): no list of brokers, no streams, only one-hop broadcasts.

To the broker all others together are one, `AIR`, which wants everything and has no stream: sessions do not move there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Protocol

import msgspec

from godwit.events import Event, Value
from godwit.filters.filters import Filter, FilterSet, problem_of
from godwit.protocols.adhoc.clients import Statement
from godwit.protocols.adhoc.digest import EventId
from godwit.protocols.adhoc.messages import Beacon, Data, Frame
from godwit.protocols.adhoc.options import Carry, Options
from godwit.protocols.adhoc.proximity import ProximityBroker
from godwit.protocols.adhoc.table import Entry
from godwit.protocols.broker.fabric.passages import Passage, entrance, passage_of
from godwit.protocols.broker.messages import Content, Repeated
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.steady import Steady
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.topics import meaning
from godwit.protocols.host import Host, Message, NodeId, RemoteError

AIR: NodeId = "/air"
"""No broker can be named so."""

LINES_MAX = 4_096
"""Of so many brokers it is known what came last from them."""


class Queue(Protocol):
    """What waits in a radio."""

    def withdraw(self, message: Message) -> bool:
        """Take back a message that was broadcast, if nothing of it has left."""

    def is_waiting(self, event: EventId) -> bool: ...


def _nothing_waits(event: EventId) -> bool:
    return False


class AirCounts(msgspec.Struct):
    """Of one broker since its start."""

    sent: int = 0
    """Publications that entered the air here."""
    given: int = 0
    """That came from the air and were wanted here."""
    late: int = 0
    """Of them, those that came after a later one that had entered the air at the same broker."""
    expired: int = 0
    """That came after their time."""


class AdhocFabric:
    """A `Medium`: what is sent may be lost, comes at most once to each broker, and in the order of sending unless it
    had to be carried or came another way.

    `clock` gives seconds since 1970; `queue` is what waits in the radio, where the world can tell. `boot` names the
    start of the machine (`Steady`).
    """

    def __init__(
        self,
        host: Host,
        store: Store,
        options: Options,
        clock: Callable[[], float],
        queue: Queue | None = None,
        boot: str = "",
    ) -> None:
        self.host = host
        self.clock = clock = Steady(host, store, clock, boot).now
        self.counts = AirCounts()
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self._clients = Statement(host.name, options.summary_max_b)
        self.core = ProximityBroker(
            host,
            options,
            on_event=self._on_event,
            withdraw=None if queue is None else queue.withdraw,
            is_waiting=_nothing_waits if queue is None else queue.is_waiting,
            clients=self._clients,
            traced=False,
        )
        self._store = store
        self._memory = AirMemory(store, options.seen_s, clock)
        for passage in self._memory:
            self.core.remember(passage)
        self._life = 1 + host.random.getrandbits(40)
        self._number = 0
        self._statement = 0
        self._age_s = 0.0
        """Of what is being received."""
        self._publishing = False
        self._newest: dict[str, int] = {}
        self._wants: dict[NodeId, FilterSet] = {}
        host.after(options.period_s, self._look_round)

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {AIR: ALL_TOPICS.filters}

    @property
    def neighbors(self) -> Mapping[NodeId, Entry]:
        """Who was heard, or heard of, in the last ten periods."""
        return self.core.table.entries

    @property
    def wanted_by(self) -> Mapping[NodeId, FilterSet]:
        """What each of them wants; `on_change` tells when this has changed."""
        return self._wants

    @property
    def stated(self) -> list[Filter]:
        """What this broker has told the others that it wants; beacons may say something wider."""
        return list(self._clients.wanted.filters)

    def want(self, filters: Iterable[Filter]) -> int:
        self._statement += 1
        self.core.state(FilterSet(tuple(filters)))
        return self._statement

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        """Whatever `durable` says: nothing is on a disk until it has come to a session. But it waits until the disk
        knows that it was said: else its publisher would say it again after a crash, and it would be there twice."""
        if AIR in to and isinstance(content, Publication):
            named = msgspec.structs.replace(content, passage=self.next_passage())
            if content.qos:
                self._store.settled(partial(self.publish, named))
            else:
                self.publish(named)

    def next_passage(self) -> tuple[str, int]:
        """A name for something that enters the air here."""
        self._number += 1
        return passage_of(self.host.name, self._life, self._number)

    def publish(self, publication: Publication) -> None:
        """Into the air, under the name of its passage, unless something of this name has been there already."""
        if publication.passage is not None and publication.passage not in self.core.seen:
            self.counts.sent += 1
            self._publishing = True
            self.core.publish(aired(self._dated(publication)))
            self._publishing = False

    def wants(self, publication: Publication, *, besides: Container[NodeId]) -> bool:
        """Whether anybody in the air is known to want it, others than these."""
        values = publication.values()
        return any(wanted.matches(values) for name, wanted in self._wants.items() if name not in besides)

    def receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Data):
            self._age_s = message.age_s
        self.core.receive(sender, message)
        if not isinstance(message, Data):
            self._follow()

    def _look_round(self) -> None:
        self._follow()
        self._memory.forget()
        self.host.after(self.core.options.period_s, self._look_round)

    def _follow(self) -> None:
        wants = {name: entry.wanted for name, entry in self.core.table.entries.items()}
        if wants != self._wants:
            self._wants = wants
            self.on_change()

    def _on_event(self, client: str, event: Event) -> None:
        assert isinstance(event, Aired)
        if self._publishing or entrance(event.id) == self.host.name:
            return  # what entered the air here in an earlier life, whoever wanted it here has had since then
        publication = self._timed(event.publication)
        if publication is not None:
            self.counts.given += 1
            self._note_order(event.id)
            self._memory.add(event.id)
            self.on_content(AIR, 0, msgspec.structs.replace(publication, passage=event.id))

    def _note_order(self, passage: tuple[str, int]) -> None:
        line, number = passage
        newest = self._newest.pop(line, 0)
        self.counts.late += number < newest
        self._newest[line] = max(number, newest)
        if len(self._newest) > LINES_MAX:
            del self._newest[next(iter(self._newest))]

    def _dated(self, publication: Publication) -> Publication:
        """With its end as long after its beginning as it has left: in the air only ages count."""
        if publication.expires is None:
            return publication
        return msgspec.structs.replace(publication, expires=publication.time + publication.expires - self.clock())

    def _timed(self, publication: Publication) -> Publication | None:
        """With its end by this broker's clock: clocks of nodes that never met the net differ. None: it has ended."""
        if publication.expires is None:
            return publication
        left_s = publication.expires - publication.time - self._age_s
        if left_s <= 0:
            self.counts.expired += 1
            return None
        return msgspec.structs.replace(publication, expires=self.clock() + left_s)


# Publications as brokers without infrastructure carry them, and the protocol's options as the product uses them.

ALL_TOPICS = FilterSet((meaning("#"),))

EVENT_OVERHEAD_B = 2_048
"""What topic, properties and names may take beside the payload before somebody notices."""

_encode = msgspec.msgpack.Encoder().encode
_frames: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)
_publications: msgspec.msgpack.Decoder[Publication] = msgspec.msgpack.Decoder(Publication)


class Aired(Event, frozen=True, dict=True):
    """An event whose payload is a publication; its id is its passage, and filters see what the publication shows."""

    @cached_property
    def publication(self) -> Publication:
        return _publications.decode(self.payload)

    @cached_property
    def _values(self) -> Mapping[str, Value]:
        return self.publication.values()

    def values(self) -> Mapping[str, Value]:
        return self._values


def aired(publication: Publication) -> Aired:
    """It as an event that has the name of its passage."""
    assert publication.passage is not None
    return Aired(*publication.passage, payload=_encode(msgspec.structs.replace(publication, passage=None)))


def encode(frame: Beacon | Data) -> bytes:
    return _encode(frame)


def decode(data: bytes) -> Frame:
    """What came over the air; `RemoteError` says what is wrong with it."""
    try:
        frame = _frames.decode(data)
        return _with_sound_filters(frame) if isinstance(frame, Beacon) else _with_publication(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RemoteError(f"no frame of the air: {error}") from error


def _with_sound_filters(beacon: Beacon) -> Beacon:
    for wanted in (*beacon.wanted, *(one for hint in beacon.hints for one in hint.wanted)):
        if problem := problem_of(wanted):
            raise ValueError(problem)
    return beacon


def _with_publication(data: Data) -> Data:
    event = data.event
    inside = Aired(event.publisher, event.sequence, payload=event.payload)
    if not inside.publication.topic:
        raise ValueError("a publication without topic")
    return msgspec.structs.replace(data, event=inside)


def field_options(
    *,
    period_s: float = 2.0,
    credit: int = 2,
    carry_s: float = 600.0,
    carry_events: int = 4_096,
    carry_bytes: int = 4 * 1024 * 1024,
    beacon_max_b: int = 1_200,
) -> Options:
    """Proximity-driven routing with all that matters where nodes stand still for a while, part and meet again.

    Everybody beacons, so that a node that wants nothing itself relays; hints travel as far as their age allows; what
    is carried crosses a gap as soon as it closes, through nodes that do not want it.
    """
    return Options(
        period_s=period_s,
        period_jitter=0.05,
        credits=credit,
        thrifty=True,
        delay_max_s=min(0.2, period_s / 4),
        beacon_when_empty=True,
        tell_period=True,
        prompt=True,
        mindful=True,
        in_order=True,
        hints_max=64,
        hints_relayed=True,
        hint_max_b=min(160, beacon_max_b // 4),
        summary_max_b=min(384, beacon_max_b // 3),
        beacon_max_b=beacon_max_b,
        destinations_max=24,
        seen_max=65_536,
        seen_s=1.5 * carry_s + 60.0,
        carry=Carry(
            age_max_s=carry_s, count_max=carry_events, bytes_max=carry_bytes, batch_max=64, tries=8, relay=True
        ),
    )


# What came from the air, on the disk: else a broker that restarts would be given again all that others still carry.

TABLE = "air"


class AirMemory:
    """One row each, written in the turn in which the broker took it, and gone after `age_max_s` by `clock`."""

    def __init__(self, store: Store, age_max_s: float, clock: Callable[[], float]) -> None:
        self.store = store
        self.age_max_s = age_max_s
        self.clock = clock
        rows = [(float(value), line, number) for line, number, value in store.load(TABLE)]
        self._rows = deque(sorted(rows))
        self.forget()

    def __iter__(self) -> Iterator[Passage]:
        """The oldest first."""
        return ((line, number) for _, line, number in self._rows)

    def add(self, passage: Passage) -> None:
        now = self.clock()
        self._rows.append((now, *passage))
        self.store.put(TABLE, *passage, str(now).encode())

    def forget(self) -> None:
        """Also what a clock that went back made too young to be true."""
        now = self.clock()
        while self._rows and not now - self.age_max_s <= self._rows[0][0] <= now + self.age_max_s:
            _, line, number = self._rows.popleft()
            self.store.delete(TABLE, line, number)
