"""Who gets what is published on a topic as it came: packets at QoS 0 that are passed on, counted, and nothing else.

What is found out about a topic is remembered under the very bytes by which a packet names it. A run of packets to
whatever topics is passed on as one piece where all of them have the same receivers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from godwit.events import Value
from godwit.net.mqtt.codec import PacketError, topic_of
from godwit.net.mqtt.framing import PACKET_ANY, Piece, with_properties, without_properties
from godwit.protocols.broker.api import Outlet
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.interest.subscribers import Asking, Parted, Taker, Wanting
from godwit.protocols.broker.publication import plain_values
from godwit.protocols.broker.topics import LEVELS_MAX

if TYPE_CHECKING:
    from godwit.net.mqtt.connection import Connection

ROUTES_MAX = 32_768
ROUTE_BYTES_MAX = 256
"""What is remembered of topics: so many, of that length at most."""


FEW = 4
"""To so many clients is written at once, whatever else was said in this turn."""


class Carriage:
    """The receivers of some topics, the same for all of these."""

    __slots__ = ("asking", "few", "fives", "packet_max", "receivers", "threes")

    def __init__(self, connections: Iterable[Connection] = (), asking: tuple[Asking, ...] = ()) -> None:
        self.fives = tuple(one for one in connections if one.version == 5)
        self.threes = tuple(one for one in connections if one.version != 5)
        self.receivers = self.fives + self.threes
        self.asking = asking
        """The conditions of those who want only some of it, for its content."""
        is_few = not asking and len(self.receivers) <= FEW
        self.few = tuple(own if is_few and own == self.receivers else None for own in (self.threes, self.fives))
        """The receivers of what a client of 3.1.1 says, and of what one of 5 does, where they are few, get all of it,
        and take it as it came."""
        # One byte less, for the empty properties that a client of version 5 gets and one of 3.1.1 does not send.
        self.packet_max: int = min((one.packet_max for one in self.fives), default=PACKET_ANY) - 2
        """The largest packet, in the larger of both forms, that those take who want all of it; 0: the broker must see
        what is published."""

    def carry(self, run: bytes, version: int, count: int) -> int:
        """Pass a run of whole packets on, converted once where clients speak the other version; how many get it."""
        fives, threes = self.fives, self.threes
        if fives:
            data = run if version == 5 else with_properties(run)
            for connection in fives:
                connection.pass_on(data, count)
        if threes:
            data = without_properties(run) if version == 5 else run
            for connection in threes:
                connection.pass_on(data, count)
        return len(self.receivers)


class Handing:
    """Those who get at QoS 1 what is published on some topics, and take it as it came but for packet identifiers."""

    __slots__ = ("packet_max", "takers")

    def __init__(self, takers: list[Taker]) -> None:
        self.takers = takers
        outlets = cast("list[Connection]", [one.session.outlet for one in takers if one.session.outlet is not None])
        self.packet_max: int = min((one.packet_max for one in outlets), default=PACKET_ANY)


BY_BROKER = Carriage()
BY_BROKER.packet_max = 0
"""More is to be done than to pass it on."""


class Parcels:
    """Packets for many receivers, each of which gets its own in one piece."""

    def __init__(self, version: int) -> None:
        self._five = version == 5
        self._count = 0
        self._same: dict[Connection | None, list[bytes]] = {}
        self._other: dict[Connection, list[bytes]] = {}

    def add(self, packet: bytes, receivers: Wanting | tuple[Connection, ...]) -> None:
        """None stands for those who are not connected."""
        same = self._same
        self._count += 1
        for one in cast("Iterable[Connection | None]", receivers):
            if one in same:
                same[one].append(packet)
            elif one is not None and (one.version == 5) == self._five:
                same[one] = [packet]
            elif one is not None:
                self._other.setdefault(one, []).append(packet)

    def part(self, packets: list[bytes], parted: Parted) -> None:
        """Of these packets each receiver gets those that it wants; there are no others yet."""
        self._count += len(packets)
        for one, wanted in cast("dict[Connection, list[int]]", parted).items():
            (self._same if (one.version == 5) == self._five else self._other)[one] = [packets[at] for at in wanted]

    def send(self) -> tuple[int, int]:
        """How many packets those were, and to how many receivers all of them together."""
        convert, deliveries, count = without_properties if self._five else with_properties, 0, self._count
        for receiver, packets in self._same.items():
            assert receiver is not None
            deliveries += receiver.pass_on_fitting(packets)
        for receiver, packets in self._other.items():
            deliveries += receiver.pass_on_fitting([convert(packet) for packet in packets])
        self._same, self._other, self._count = {}, {}, 0
        return count, deliveries


Route = TypeVar("Route")


class Known(dict[bytes, Route]):
    """Routes by the bytes with which packets name them. One that is not known is looked up, `left` more times: to find
    out who wants a topic costs as much as to look at a packet, and who names many new ones has no larger share."""

    __slots__ = ("_look_up", "left")

    def __init__(self, look_up: Callable[[bytes], Route]) -> None:
        self._look_up = look_up
        self.left = 0

    def __missing__(self, name: bytes) -> Route | None:
        """None where that may not be asked now, or names no topic: whoever looks at the packet then says what is wrong
        with it."""
        if self.left <= 0:
            return None
        self.left -= 1
        try:
            return self.find(name)
        except PacketError:
            return None

    def find(self, name: bytes) -> Route:
        """However many were asked for. `PacketError` where it names none."""
        if name in self:
            return self[name]
        found = self._look_up(name)
        if len(name) <= ROUTE_BYTES_MAX:
            if len(self) >= ROUTES_MAX:
                self.clear()
            self[name] = found
        return found


class Topics(dict[bytes, str]):
    """The text of a topic by its name, checked once; `PacketError` where that is none."""

    __slots__ = ()

    def __missing__(self, name: bytes) -> str:
        topic = topic_of(name, "PUBLISH")
        if len(name) <= ROUTE_BYTES_MAX:
            if len(self) >= ROUTES_MAX:
                self.clear()
            self[name] = topic
        return topic


class Routes:
    """What is known of topics; it is forgotten whenever the broker's audiences change."""

    def __init__(self, broker: Broker, connections: set[Connection]) -> None:
        self._broker = broker
        self._connections = connections
        self.topics = Topics()
        self._generation = -1
        self._known = (Known(partial(self._find, 4)), Known(partial(self._find, 5)))
        """By a packet's body up to its payload, without and with empty properties."""
        self._handings = (Known(partial(self._find_handing, 4)), Known(partial(self._find_handing, 5)))
        """By a topic with its length; None where the broker must see what is published."""
        self._carriages: dict[object, Carriage | Handing] = {}

    def known(self, version: int) -> Known[Carriage]:
        """Who gets what begins so: a topic with its length, and in version 5 empty properties. Good now; ask anew
        whenever the broker has been called."""
        if self._generation != self._broker.generation:
            self._generation = self._broker.generation
            self._known[0].clear()
            self._known[1].clear()
            self._handings[0].clear()
            self._handings[1].clear()
            self._carriages.clear()
        return self._known[version == 5]

    def handings(self, version: int) -> Known[Handing | None]:
        """The same at QoS 1, by a topic with its length."""
        self.known(version)
        return self._handings[version == 5]

    def _topic(self, name: bytes) -> str:
        """Of a name with its length, which may be that of another one: packets of a run are looked at where those
        before it had theirs."""
        if len(name) != 2 + (name[0] << 8 | name[1]):
            raise PacketError("PUBLISH: not a topic with its length")
        return self.topics[name[2:]]

    def _find_handing(self, version: int, name: bytes) -> Handing | None:
        topic = self._topic(name)
        takers = self._broker.takers(topic) if topic.count("/") < LEVELS_MAX else None
        if takers is None or not all(self._takes(one.session.outlet, version) for one in takers):
            return None
        key = (version, *(one.session for one in takers))
        found = self._carriages.get(key)
        if found is None:
            found = self._carriages[key] = Handing(takers)
        assert isinstance(found, Handing)
        return found

    def _takes(self, outlet: Outlet | None, version: int) -> bool:
        if outlet is None:
            return True
        connection = cast("Connection", outlet)
        return connection in self._connections and connection.takes_as_it_is(version)

    def _find(self, version: int, prefix: bytes) -> Carriage:
        if version == 5 and prefix[-1]:
            raise PacketError("PUBLISH: it has properties")
        topic = self._topic(prefix[:-1] if version == 5 else prefix)
        if topic.count("/") >= LEVELS_MAX:
            return BY_BROKER
        audience = self._broker.audience(topic)
        outlets = cast("tuple[Connection, ...] | None", audience.straight)
        if outlets is None or not self._connections.issuperset(outlets):
            return BY_BROKER
        found = self._carriages.get(audience)
        if found is None:
            key = (outlets, tuple(map(id, audience.asking)))
            found = self._carriages[audience] = self._carriages.setdefault(
                key, Carriage(outlets, tuple(audience.asking))
            )
        assert isinstance(found, Carriage)
        return found

    def wanting(self, carriage: Carriage, data: bytes, pieces: Sequence[Piece], now_s: float) -> list[Wanting] | Parted:
        """Who wants each of these packets for its content."""
        topics = self.topics
        values: list[Mapping[str, Value]] = []
        for piece in pieces:
            topic = topics[data[piece[1] + 2 : piece[2]]]
            values.append(plain_values(topic, data[piece[3] : piece[4]], now_s))
        return self._broker.outlets(carriage.asking, values, self._connections)
