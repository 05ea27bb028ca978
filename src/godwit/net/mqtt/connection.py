"""One client's connection: its state, what it may say in it, and what the broker has it told.

    NEW         waits for CONNECT
    ADMITTING   whoever knows the users is asked
    OPENING     the broker prepares the session, which may be at another broker
    OPEN        everything else
    GONE        nothing is read any more

What arrives while ADMITTING or OPENING waits.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import partial
from math import inf
from time import perf_counter, thread_time
from typing import cast

import mqtt5

from godwit.net.access import Admitted, session_name
from godwit.net.mqtt import codec3, codec5
from godwit.net.mqtt.codec import (
    PACKET_TOO_LARGE,
    PROTOCOL_ERROR,
    TOPIC_NAME_INVALID,
    UNSUPPORTED_VERSION,
    Kind,
    Packet,
    PacketError,
    Subscribe,
    Unsubscribe,
    check_protocol,
    protocol_of,
)
from godwit.net.mqtt.codec3 import checked_publish_flags
from godwit.net.mqtt.connect import (
    assigned_name,
    credentials_of,
    expiry_of,
    farewell,
    keep_alive_of,
    opening_of,
    properties_of,
    refusal_of,
    welcome,
)
from godwit.net.mqtt.encode import PINGRESP, teller_of
from godwit.net.mqtt.framing import (
    ANSWERS,
    NUMBERED,
    PACKET_ANY,
    PLAIN,
    Numbered,
    Piece,
    answers_run,
    length_at,
    numbered_at,
    numbered_run,
    piece_at,
    pieces,
    renumbered,
    run_end,
)
from godwit.net.mqtt.front import SHARE_S, TICK_S, Arrival, Front
from godwit.net.mqtt.options import Bucket, Hold
from godwit.net.mqtt.routes import Carriage, Handing, Known, Parcels
from godwit.net.mqtt.subscribe import Subscribing
from godwit.net.mqtt.writer import WRITE_HIGH_BYTES
from godwit.protocols.broker.api import Opening, Reason, RefusedError
from godwit.protocols.broker.interest.subscribers import BEYOND
from godwit.protocols.broker.publication import PLAIN as NO_PROPERTIES
from godwit.protocols.broker.publication import Properties, Publication
from godwit.protocols.broker.session.state import Item, Session
from godwit.protocols.broker.streams.frames import Transport
from godwit.protocols.broker.topics import LEVELS_MAX
from godwit.protocols.broker.vacant import own

log = logging.getLogger("godwit.mqtt")

VERSIONS = {3: "3.1", 4: "3.1.1", 5: "5"}

# What a client that is in may ask for: publish, acknowledge, subscribe, unsubscribe.

RECEIVE_MAX_EXCEEDED = 0x93
TOPIC_ALIAS_INVALID = 0x94


class Requests(Subscribing):
    """The part of a connection that calls the broker, once for all publications that came together."""

    __slots__ = ("_aliases_in", "_offered")

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._offered: list[tuple[Publication, int]] | None = None
        self._aliases_in: dict[int, str] | None = None

    def _publish(self, data: bytes, position: int, body: int, stop: int) -> None:
        first = data[position]
        qos = checked_publish_flags(first)
        name_end = body + 2 + (data[body] << 8 | data[body + 1]) if stop > body + 1 else stop + 1
        payload = name_end + (2 if qos else 0)
        plain = payload <= stop and (self.version != 5 or (payload < stop and data[payload] == 0))
        if not plain or name_end == body + 2:
            self._publish_rich(data[position:stop])
            return
        number = data[name_end] << 8 | data[name_end + 1] if qos else 0
        if qos and not number:
            raise PacketError("PUBLISH: the packet identifier is 0", PROTOCOL_ERROR)
        topic = self.front.routes.topics[data[body + 2 : name_end]]
        self._add(topic, data[payload + (self.version == 5) : stop], qos, first, number)

    def _publish_rich(self, data: bytes) -> None:
        """With properties, or not well-formed."""
        packet = codec5.read(data) if self.version == 5 else codec3.read(data)
        assert isinstance(packet, mqtt5.PublishPacket)
        properties = properties_of(packet, codec5.payload_is_text(data)) if self.version == 5 else NO_PROPERTIES
        number, expiry_s = packet.packet_id or 0, packet.message_expiry_interval
        self._add(self._topic(packet), packet.payload, int(packet.qos), data[0], number, properties, expiry_s)

    def _topic(self, packet: mqtt5.PublishPacket) -> str:
        alias = packet.topic_alias
        if alias is None:
            return packet.topic
        if alias > self.options.topic_alias_max:
            text = f"PUBLISH: topic alias {alias}, at most {self.options.topic_alias_max} was announced"
            raise PacketError(text, TOPIC_ALIAS_INVALID)
        known = self._aliases_in
        if known is None:
            known = self._aliases_in = {}
        if packet.topic:
            known[alias] = packet.topic
        elif alias not in known:
            raise PacketError(
                f"PUBLISH: topic alias {alias} without a topic, and none was given before", PROTOCOL_ERROR
            )
        return known[alias]

    def _add(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        first: int,
        number: int,
        properties: Properties = NO_PROPERTIES,
        interval_s: int | None = None,
    ) -> None:
        """To what is offered to the broker when all that was read is looked through."""
        assert self._session is not None
        if topic.count("/") >= LEVELS_MAX and (self.version < 5 or not qos):
            # Nothing else tells it that this goes nowhere: neither QoS 0 nor version 3.1.1 has an answer that could.
            raise PacketError(f"PUBLISH: a topic of more than {LEVELS_MAX} levels", TOPIC_NAME_INVALID)
        self.front.counts.publishes_in += 1
        broker = self.front.broker
        publication = Publication(
            self._client,
            self._session.next_sequence(),
            topic,
            payload,
            qos,
            bool(first & 1),
            broker.clock(),
            None if interval_s is None else broker.steady() + interval_s,
            properties,
        )
        if qos:
            self._expect(number)
        if self._offered is None:
            self._offered = []
        self._offered.append((publication, number))

    def _expect(self, number: int) -> None:
        """An acknowledgement is due. A client of 5 was told how many may be; one of 3.1.1 is not read meanwhile."""
        self._incoming = own(self._incoming)
        self._incoming[number] = None
        if len(self._incoming) > self.options.inflight_max:
            if self.version == 5:
                text = f"more than {self.options.inflight_max} publications unacknowledged"
                raise PacketError(text, RECEIVE_MAX_EXCEEDED)
            self.stop_reading(Hold.INFLIGHT)

    def _offer(self) -> None:
        if self._offered and self._session is not None:
            offered, self._offered = self._offered, None
            self.front.publish(self._session, offered)

    def _acknowledge(self, kind: int, number: int, code: int) -> None:
        """PUBACK, PUBREC, PUBREL or PUBCOMP."""
        if not number:
            raise PacketError(f"{Kind(kind).name}: the packet identifier is 0", PROTOCOL_ERROR)
        assert self._session is not None
        if kind != Kind.PUBREL:
            self._check_step(kind, self._session.queue.flying.get(number))
        if kind == Kind.PUBREC and code >= Reason.UNSPECIFIED:
            kind = Kind.PUBCOMP  # it does not want it, and that is the end of it
        self._answer(kind, self._session, (number,))

    def _answer(self, kind: int, session: Session, numbers: Sequence[int]) -> None:
        """What is due has come, of one kind."""
        broker, teller = self.front.broker, self._teller
        if kind == Kind.PUBREL:
            self._offer()
            strange = [one for one in numbers if one not in session.queue.incoming]
            if strange:
                self._unknown = {**self._unknown, **dict.fromkeys(strange)}
            self.completed_all(broker.released_all(session, numbers))
        elif kind == Kind.PUBREC:
            for number, is_known in broker.received_all(session, numbers):
                self.send(teller.release(number, known=is_known))
        else:
            broker.acknowledged_all(session, numbers)

    def _check_step(self, kind: int, item: Item | None) -> None:
        """That this is what is due for a delivery which is under way over this connection."""
        if item is None or not item.out:
            return
        due = Kind.PUBACK if item.qos == 1 else Kind.PUBCOMP if item.received else Kind.PUBREC
        if kind != due and not (kind == Kind.PUBREC and item.received):
            raise PacketError(f"{Kind(kind).name}: {due.name} is due for packet {item.number}", PROTOCOL_ERROR)

    def _other(self, packet: Packet) -> None:
        match packet:
            case mqtt5.PubAckPacket():
                self._acknowledge(Kind.PUBACK, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubRecPacket():
                self._acknowledge(Kind.PUBREC, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubRelPacket():
                self._acknowledge(Kind.PUBREL, packet.packet_id, int(packet.reason_code))
            case mqtt5.PubCompPacket():
                self._acknowledge(Kind.PUBCOMP, packet.packet_id, int(packet.reason_code))
            case Subscribe():
                self._offer()
                self._subscribe(packet)
            case Unsubscribe():
                self._check_filters(packet.patterns, "UNSUBSCRIBE")
                self._offer()
                assert self._session is not None
                reasons = self.front.broker.unsubscribe(self._session, packet.patterns)
                self._once_safe(self._teller.unsubscribed(packet.packet_id, reasons))
            case mqtt5.PingReqPacket():
                self.send(PINGRESP)


MESSAGE_RATE_TOO_HIGH = 0x96
KEEP_ALIVE_TIMEOUT = 0x8D
MAXIMUM_CONNECT_TIME = 0xA0
LEASE_MAX_S = 30 * 24 * 3600.0
"""Whoever has a token for longer shows it again after so long at the latest: a timer takes no longer time."""
PINGREQ = bytes((Kind.PINGREQ << 4, 0))

HELD_BYTES_MAX = 64 * 1024
"""What is read ahead of a client that is not in yet."""

SHARE_FIRST, SHARE_MAX = 8, 4_096
"""Packets of one client in one turn: at first, when nobody knows what they cost, and at most."""

AIMED = 0.9
"""The part of its time that a share should cost. Where some of that is the same for few packets and many, the share
grows until it is full; where each costs the same, it never grows beyond."""

RUN_OF_ONE = 16
"""So many that are passed on as they came cost as much as one packet that is not."""

RUN_MIN = 4
"""Shorter runs are not worth it. At QoS 0 what follows them is sorted by receiver. At QoS 1 the broker looks at each
publication, together with those that came before and after it: to hand on a run of one costs three times as much."""

APART_OF_ONE = 4
"""So many that go different ways cost as much as one packet that is looked at."""

BATCH_MAX, BATCH_BYTES_MAX = 256, 32 * 1024
"""So many publications are looked into together, of so many bytes, or else a single one. Of fewer each costs several
times as much; of more, others wait: to look into 32 kB of JSON takes most of a millisecond."""

GATHERED_MIN, GATHERED_BYTES_MAX, GATHERED_S = 32, 80 * 1024, 0.012
"""The same where very many conditions are asked together: 32 publications cost hardly more than four, and of 100,000
conditions no less than five milliseconds, for 256 publications too. So these may take longer than another share: in
half of the time they would be hardly fewer milliseconds for a fifth of the publications."""

LONG_B = 2 * 1024
"""From so many bytes on it is worth asking what they cost the processor. Other programs that had it meanwhile are no
reason to look at less at once, which would cost more; to ask takes as long as to pass a packet on."""

TURN_BYTES_MAX = 512 * 1024
"""What is read of one client before others have their turn."""

CONNECT_BYTES_MAX = 128 * 1024
"""What a client may say before it is known: a CONNECT with the largest names, properties and a will that is no film."""

CLOSE_WAIT_S = 5.0
"""How long a client is given to take our last words."""


class State(IntEnum):
    NEW = 0
    ADMITTING = 1
    OPENING = 2
    OPEN = 3
    GONE = 4


TAKES: dict[State, frozenset[Kind]] = {
    State.NEW: frozenset({Kind.CONNECT}),
    State.ADMITTING: frozenset(),
    State.OPENING: frozenset(),
    State.OPEN: frozenset(
        {
            Kind.PUBLISH,
            Kind.PUBACK,
            Kind.PUBREC,
            Kind.PUBREL,
            Kind.PUBCOMP,
            Kind.SUBSCRIBE,
            Kind.UNSUBSCRIBE,
            Kind.PINGREQ,
            Kind.DISCONNECT,
        }
    ),
    State.GONE: frozenset(),
}
"""What a client may say; anything else costs it the connection. AUTH is never asked for, so it is never in place."""


class Connection(Requests):
    """One client, over TCP, TLS or WebSocket. Implements `Outlet` for the broker."""

    __slots__ = (
        "_admission",
        "_broken",
        "_bytes_left",
        "_came_b",
        "_connect",
        "_expiry_s",
        "_gathers",
        "_id",
        "_knocked_s",
        "_lasts",
        "_lease",
        "_missing",
        "_opening",
        "_packets_left",
        "_rest",
        "_share",
        "_straight",
        "_stranger",
        "_unread",
        "_will_is_text",
        "heard",
        "patience",
        "since_s",
        "state",
    )

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        options = self.options
        self.state = State.NEW
        self.heard = front.tick
        """The tick at which the client last said something."""
        self.patience = int(options.connect_wait_s / TICK_S) + 1
        """How many ticks of silence are too many; 0: any number is fine."""
        self._id = ""
        """As the client calls itself; `_client` is what the brokers call its session."""
        self.since_s = 0.0
        """When the client was let in, in seconds since 1970."""
        self._knocked_s = 0.0
        self._stranger = False
        """Its session was not here when it knocked."""
        self._admission: asyncio.Future[None] | None = None
        self._lease: asyncio.TimerHandle | None = None
        """Ends the connection when what its client showed holds no longer."""
        self._connect: mqtt5.ConnectPacket | None = None
        self._lasts = False
        """Whether it asked for a session that outlives the connection."""
        self._will_is_text: bool | None = None
        self._opening: Opening | None = None
        self._expiry_s: float | None = None
        self._rest: bytearray | None = None
        """A packet that has begun, or all that came before the client is in."""
        self._broken = ""
        """Why nothing can be read after what came so far."""
        self._came_b = 0
        """What it has said since others had their turn, or a part of that."""
        self._missing = 0
        """How many more bytes make it whole, as far as is known."""
        self._unread: bytearray | None = None
        """What came and was more than its share of a turn."""
        self._share = SHARE_FIRST
        """How many packets that is, as far as is known."""
        self._gathers = False
        """Whether what it publishes is looked into for very many conditions."""
        self._straight = False
        """Whether what it publishes may be passed on unseen."""
        self._packets_left = self._bucket(options.packets_per_s)
        self._bytes_left = self._bucket(options.bytes_per_s)

    def _bucket(self, rate_per_s: float) -> Bucket | None:
        return Bucket(rate_per_s, self.options.burst_s, self.front.loop.time()) if rate_per_s < inf else None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are asyncio's only by what they can do.
        self.transport = transport = cast("asyncio.Transport", transport)
        transport.set_write_buffer_limits(WRITE_HIGH_BYTES)
        self.front.connections.add(self)
        self.front.counts.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.front.connections.discard(self)
        self.front.counts.connections -= 1
        said = last_words(self.transport) if exc is not None and self.state is State.OPEN else b""
        self._drop_output()
        if said:
            self.data_received(said)
        self._hear_out()
        self._leave(will=True)

    def _hear_out(self) -> None:
        """What it said before the connection broke counts, though its turn had not come. A client that takes its last
        delivery, says so and closes at once leaves a reset behind where anything of ours was on its way to it."""
        while self.state is State.OPEN and (self._unread is not None or self._asked is not None):
            if self._asked is not None:
                self._go_on_subscribing()
                continue
            unread, self._unread = self._unread, None
            self._take(bytes(unread or b""))

    def data_received(self, data: bytes) -> None:
        self.front.counts.bytes_in += len(data)
        if self._is_quick(data):
            self.heard = self.front.tick
        elif self.state is State.OPEN or self.state is State.NEW:
            self._hear(data)
        elif self.state is not State.GONE:
            self._wait_with(data)
        self._came_b += len(data)
        if self._came_b >= TURN_BYTES_MAX:
            self._let_others_speak()

    def _is_quick(self, data: bytes) -> bool:
        """One packet that came by itself and is soon done with: nobody waits meanwhile, so that it needs no share of a
        turn and nothing is collected. False where it is anything else, and nothing has happened."""
        if self.state is not State.OPEN or self._rest or self._unread is not None or self._asked is not None:
            return False
        if self._packets_left is not None or self._bytes_left is not None:
            return False
        if self._straight and data.startswith(b"\x30"):
            return self._pass_on_alone(data)
        return len(data) == 4 and data[0] in ANSWERS and self._answer_alone(data)

    def _answer_alone(self, data: bytes) -> bool:
        """PUBACK, PUBREC, PUBREL or PUBCOMP, as far as it is due."""
        session, kind, number = self._session, data[0] >> 4, data[2] << 8 | data[3]
        if session is None or data[1] != 2 or not number:
            return False
        if kind != Kind.PUBREL and not _due(session.queue.flying, kind, [number]):
            return False
        self.front.counts.packets_in += 1
        self.front.reading = True
        try:
            self._answer(kind, session, (number,))
        finally:
            self.front.flush_read()
        return True

    def _pass_on_alone(self, data: bytes) -> bool:
        """A publication at QoS 0 for few who take it as it came and at once."""
        try:
            body, size = length_at(data, 0, end := len(data))
        except PacketError:
            return False  # whoever looks closer says what is wrong
        if body + size != end or size < 2:
            return False
        front, is_five = self.front, self.version == 5
        name_end = body + 2 + (data[body] << 8 | data[body + 1])
        carriage = front.routes.known(self.version).get(data[body : name_end + is_five])
        if carriage is None or end > carriage.packet_max or end > self.options.packet_bytes_max:
            return False
        few = carriage.few[is_five]
        if few is None or not front.broker.may_carry():
            return False
        for one in few:
            if not one.is_ready():
                return False
        for one in few:
            one.pass_on_now(data)
        self._carried(1, len(few))
        return True

    def _hear(self, data: bytes) -> None:
        if self.state is State.OPEN:
            self.heard = self.front.tick
        if self._rest and self._unread is None and self._asked is None:
            if len(data) < self._missing:
                self._rest += data
                self._missing -= len(data)
                return
            data = bytes(self._rest) + data
            self._rest = None
        if self._unread is not None or self._asked is not None:
            self._unread = (self._unread or bytearray()) + data
            return
        self._look_at(data)

    def _let_others_speak(self) -> None:
        """The loop reads from one who sends fast until nothing is left, 8 MB at a time, while others wait."""
        self._came_b = 0
        if self.state is State.OPEN and not self._is_behind:
            self.stop_reading(Hold.TURN)
            self.front.turns.wait(self)

    def eof_received(self) -> bool:
        """The client says no more. What it has said counts, a goodbye above all, and may be waiting for its turn; the
        connection ends after that. Whoever is not known yet is not waited for."""
        self._last = True
        return self._is_behind or self._hanging_up

    @property
    def is_known(self) -> bool:
        """Somebody has looked at who it is."""
        return self.state is State.OPENING or self.state is State.OPEN

    @property
    def _is_behind(self) -> bool:
        """It has said something that was not looked at. Pings are nothing: who only wanted to know whether somebody is
        there, and has gone, must not have its session fetched for it."""
        waits = self.state is State.OPENING and self._rest is not None and not is_only_pings(self._rest)
        return waits or self._unread is not None or self._asked is not None

    def _end_if_last(self) -> None:
        if self._is_behind or self.state is State.GONE:
            return
        if self._broken:
            self._fail(PacketError(self._broken))
        elif self._last:
            self.hang_up()

    def _look_at(self, data: bytes) -> None:
        """Within one share of a turn; what is left over waits until the others have had theirs."""
        clock = thread_time if len(data) >= LONG_B else perf_counter
        began = clock()
        self.front.reading = True
        try:
            self._take(data)
        finally:
            self.front.flush_read(more=self._gathers and self._unread is not None)
        if self._unread is not None or self._asked is not None:
            self.stop_reading(Hold.TURN)
            self.front.turns.wait(self)
        took_s = clock() - began
        most_s = GATHERED_S if self._gathers else SHARE_S
        if took_s > most_s or (self._unread is not None and took_s < AIMED * most_s):
            self._share = share_after(self._share, took_s, most_s)

    def go_on(self) -> None:
        """Its turn has come again."""
        if self.state is not State.OPEN:
            return
        if self._asked is not None:
            self._go_on_subscribing()
            if self._asked is not None:
                self.front.turns.wait(self)
                return
        unread, self._unread = self._unread, None
        if unread:
            self._look_at(bytes(unread))
        if self._unread is None and self._asked is None:
            self.go_on_reading(Hold.TURN)
        self._end_if_last()

    def _wait_with(self, data: bytes) -> None:
        if self._keep_rest(data) > HELD_BYTES_MAX:
            self.stop_reading(Hold.OPENING)

    def _keep_rest(self, data: bytes) -> int:
        """For when more has come, or its time; how much that is by now."""
        if self._rest is None:
            self._rest = bytearray()
        self._rest += data
        return len(self._rest)

    def _take(self, data: bytes) -> None:
        """All whole packets of it; what remains waits."""
        counts = self.front.counts
        packets = counts.packets_in
        try:
            self._take_packets(data)
            left = len(self._unread) if self._unread is not None else 0
            self._charge(counts.packets_in - packets, len(data) - left)
            self._offer()
        except PacketError as error:
            self._fail(error)

    def _charge(self, packets: int, size: int) -> None:
        options = self.options
        if self._packets_left is not None and not self._packets_left.take(packets, self.front.loop.time()):
            raise PacketError(f"more than {options.packets_per_s:g} packets a second", MESSAGE_RATE_TOO_HIGH)
        if self._bytes_left is not None and not self._bytes_left.take(size, self.front.loop.time()):
            raise PacketError(f"more than {options.bytes_per_s:g} bytes a second", MESSAGE_RATE_TOO_HIGH)

    def _take_packets(self, data: bytes) -> None:
        position, end = 0, len(data)
        packet_max, left = self.options.packet_bytes_max, self._share
        if self.state is State.NEW:
            packet_max = min(packet_max, CONNECT_BYTES_MAX)
        while position < end:
            if left <= 0 or self._asked is not None:
                self._unread = bytearray(memoryview(data)[position:])
                return
            body, size = length_at(data, position, end)
            stop = body + size
            if size > packet_max or stop - position > packet_max:
                raise PacketError(f"a packet of more than {packet_max} bytes", PACKET_TOO_LARGE)
            if not body or stop > end:
                self._missing = stop - end if body else 1
                self._keep_rest(data[position:])
                return
            position, taken = self._take_next(data, position, body, stop, left)
            left -= taken
            if self.state is not State.OPEN:
                if self.state is not State.GONE:
                    self._keep_rest(data[position:])
                return

    def _take_next(self, data: bytes, position: int, body: int, stop: int, left: int) -> tuple[int, int]:
        """One packet, or a run of publications that may be passed on as they came; where the next one begins, and how
        many of its share that was."""
        if self._straight and data[position] == PLAIN:
            extra = 1 if self.version == 5 else 0
            piece = piece_at(data, position, stop, extra)
            if piece is not None and piece[2] > body + 2 and (not extra or not data[piece[2]]):
                carriage = self.front.routes.known(self.version).find(data[body : piece[3]])
                if stop - position <= carriage.packet_max:
                    return self._carry(carriage, data, piece, left)
        elif self._straight and data[position] == NUMBERED:
            numbered = numbered_at(data, position, stop, 1 if self.version == 5 else 0)
            if numbered is not None:
                handing = self.front.routes.handings(self.version).find(data[body : numbered[2]])
                if handing is not None and stop - position <= handing.packet_max:
                    return self._hand(handing, data, numbered, left)
        elif data[position] in ANSWERS and stop == position + 4 and self._session is not None:
            return self._take_answers(data, position, body, stop, left)
        self._take_packet(data, position, body, stop)
        return stop, 1

    def _hand(self, handing: Handing, data: bytes, first: Numbered, left: int) -> tuple[int, int]:
        """Publications at QoS 1 that go as they came, each with the packet identifier that the receiver knows it by."""
        front, broker = self.front, self.front.broker
        known, most = front.routes.handings(self.version), min(left, self.options.inflight_max - len(self._incoming))
        known.left = left
        packet_max = min(handing.packet_max, self.options.packet_bytes_max)
        run, alike = numbered_run(data, first, len(data), known.__getitem__, handing, packet_max, max(most, 1))
        if len(run) < RUN_MIN:
            for position, body, _, _, stop, _ in run:
                self._take_packet(data, position, body, stop)
            return run[-1][4], len(run) + left - known.left
        generation = broker.generation
        self._offer()
        session = self._session
        if session is None or broker.generation != generation or not broker.may_hand(session):
            self._take_packet(data, first[0], first[1], first[4])
            return first[4], 1
        topics, client, now_s = front.routes.topics, self._client, broker.clock()
        publications = [
            Publication(client, sequence, topics[data[body + 2 : end]], data[begin:stop], 1, False, now_s)
            for sequence, (_, body, end, begin, stop, _) in zip(session.next_sequences(len(run)), run, strict=True)
        ]
        numbers = [one[5] for one in run]
        self._incoming = own(self._incoming)
        self._incoming.update(dict.fromkeys(numbers))
        self._expect(numbers[-1])
        front.counts.packets_in += len(run)
        front.counts.publishes_in += len(run)
        given = front.hand(session, publications, handing.takers, partial(self.accepted_all, numbers))
        for taker, leaving in zip(handing.takers, given, strict=True):
            if leaving:
                cast("Connection", taker.session.outlet).send(renumbered(data, run, alike, leaving), len(leaving))
        front.timings.delivery.add(broker.clock() - now_s)
        return run[-1][4], len(run) + left - known.left

    def _take_answers(self, data: bytes, position: int, body: int, stop: int, left: int) -> tuple[int, int]:
        """PUBACK, PUBREC, PUBREL or PUBCOMP, and those of its kind that follow it, as far as they are due."""
        session, kind = self._session, data[position] >> 4
        assert session is not None
        numbers = answers_run(data, position, min(len(data), position + 4 * left))
        if kind != Kind.PUBREL:
            numbers = _due(session.queue.flying, kind, numbers)
        if len(set(numbers)) < len(numbers):
            numbers = numbers[:1]  # said again it is another matter
        if not numbers:
            self._take_packet(data, position, body, stop)
            return stop, 1
        self.front.counts.packets_in += len(numbers)
        self._answer(kind, session, numbers)
        return position + 4 * len(numbers), len(numbers)

    def _carry(self, carriage: Carriage, data: bytes, first: Piece, left: int) -> tuple[int, int]:
        """A run that begins so, as far as it has the same receivers."""
        self._offer()
        front, position = self.front, first[0]
        if not front.broker.may_carry():
            self._take_packet(data, position, first[1], first[4])
            return first[4], 1
        most, end = left * RUN_OF_ONE, len(data)
        if carriage.asking:
            # All of its share, though a part may be used up: a batch of what is left would cost nearly as much.
            self._gathers = all(one.gathers for one in carriage.asking)
            least, size = (GATHERED_MIN, GATHERED_BYTES_MAX) if self._gathers else (1, BATCH_BYTES_MAX)
            most, end = min(max(least, self._share), BATCH_MAX), min(end, max(first[4], position + size))
        known = front.routes.known(self.version)
        known.left = left
        packet_max = min(carriage.packet_max, self.options.packet_bytes_max)
        stop, count = run_end(data, first, end, known.__getitem__, carriage, packet_max, most)
        if carriage.asking:
            return self._carry_by_content(carriage, data, position, stop)
        if count < RUN_MIN:
            return self._carry_apart(data, first, known, most)
        run = data if stop - position == len(data) else data[position:stop]
        self._carried(count, count * carriage.carry(run, self.version, count))
        return stop, 1 + count // RUN_OF_ONE + left - known.left

    def _carry_by_content(self, carriage: Carriage, data: bytes, position: int, stop: int) -> tuple[int, int]:
        """Ask who wants each packet of a run, for all of them at once; up to where they were told, and how many."""
        front, count = self.front, 0
        run = pieces(data, position, stop, 1 if self.version == 5 else 0)
        found = front.routes.wanting(carriage, data, run, front.broker.clock())
        generation, always = front.broker.generation, carriage.receivers
        parcels = Parcels(self.version)
        if isinstance(found, dict):
            found.update((one, list(range(len(run)))) for one in always)
            parcels.part([data[start:end] for start, _, _, _, end in run], found)
            self._carried(*parcels.send())
            return run[-1][4], len(run)
        for (start, body, _, _, end), receivers in zip(run, found, strict=True):
            count, position = count + 1, end
            if BEYOND not in receivers:
                if always:
                    receivers.update(always)
                parcels.add(data[start:end], receivers)
                continue
            self._carried(*parcels.send())
            self._take_packet(data, start, body, end)
            self._offer()
            if self.state is not State.OPEN or front.broker.generation != generation:
                break  # what was found is out of date
        self._carried(*parcels.send())
        return position, count

    def _carry_apart(self, data: bytes, first: Piece, known: Known[Carriage], most: int) -> tuple[int, int]:
        """Packets that follow one another to different receivers, each of whom is written to once in the end."""
        extra, end, left, version = first[3] - first[2], len(data), known.left, self.version
        packet_max, piece, position = self.options.packet_bytes_max, cast("Piece | None", first), first[0]
        count = deliveries = 0
        while piece is not None and count < most:
            start, body, _, payload, stop = piece
            carriage = known[data[body:payload]]
            size = stop - start
            if carriage is None or carriage.asking or size > carriage.packet_max or size > packet_max:
                break
            deliveries += carriage.carry(data[start:stop], version, 1)
            count, position = count + 1, stop
            piece = piece_at(data, stop, end, extra) if stop < end and data[stop] == PLAIN else None
        if not count:  # the topic is too long to be remembered, and as many as may be were looked up
            carriage = known.find(data[first[1] : first[3]])
            deliveries = carriage.carry(data[first[0] : first[4]], version, 1)
            count, position = 1, first[4]
        self._carried(count, deliveries)
        return position, 1 + count // APART_OF_ONE + left - known.left

    def _carried(self, packets: int, deliveries: int) -> None:
        """So many publications were passed on as they came."""
        counts, broker = self.front.counts, self.front.broker.counts
        counts.packets_in += packets
        counts.publishes_in += packets
        broker.published[0] += packets
        broker.delivered[0] += deliveries

    def _take_packet(self, data: bytes, position: int, body: int, stop: int) -> None:
        self.front.counts.packets_in += 1
        first = data[position]
        kind = first >> 4
        if kind not in TAKES[self.state]:
            raise PacketError(_misplaced(kind, self.state), PROTOCOL_ERROR)
        if kind == Kind.PUBLISH:
            self._publish(data, position, body, stop)
        elif 4 <= kind <= 7 and stop == body + 2 and first & 15 == (2 if kind == 6 else 0):
            self._acknowledge(kind, data[body] << 8 | data[body + 1], 0)
        elif kind == Kind.CONNECT:
            self._connecting(data[position:stop])
        else:
            packet = codec5.read(data[position:stop]) if self.version == 5 else codec3.read(data[position:stop])
            if isinstance(packet, mqtt5.DisconnectPacket):
                self._disconnect(packet)
            else:
                self._other(packet)

    def _connecting(self, data: bytes) -> None:
        name, version = protocol_of(data)
        # In the form that it may understand best, should it be none of ours.
        self.version = min(max(version, 3), 5)
        check_protocol(name, version)
        if self.version == 5:
            # Also a CONNECT that is refused for what is wrong with it gets no larger answer than it asks for.
            self.packet_max = codec5.packet_max_of(data) or PACKET_ANY
        packet = codec5.read(data) if self.version == 5 else codec3.read(data)
        assert isinstance(packet, mqtt5.ConnectPacket)
        self._connect = packet
        self._will_is_text = codec5.payload_is_text(data) if self.version == 5 and packet.will is not None else None
        self.packet_max = packet.max_packet_size or PACKET_ANY
        self._teller = teller_of(self.version, self.packet_max, packet.request_problem_info)
        self._aliases_out_max = min(packet.topic_alias_max, self.options.topic_alias_max)
        refusal = refusal_of(packet, self.version, self.options)
        if refusal is not None:
            self._refuse(*refusal)
            return
        self._id = self._client = packet.client_id or assigned_name()
        self._ask(packet)

    def _ask(self, packet: mqtt5.ConnectPacket) -> None:
        assert self.transport is not None
        info = self.transport.get_extra_info
        self.state = State.ADMITTING
        self.patience = 0
        who = credentials_of(self._id, packet, info("peername"), info("ssl_object"))
        try:
            answer = self.front.authenticate(who)
        except RefusedError as error:
            self._refuse(int(error.reason), error.text)
            return
        if inspect.isawaitable(answer):
            self._admission = asyncio.ensure_future(self._wait_for(answer))
            self.front.keep(self._admission)
        else:
            self._admitted(answer)

    async def _wait_for(self, answer: Awaitable[Admitted]) -> None:
        try:
            self._admitted(await answer)
        except RefusedError as error:
            self._refuse(int(error.reason), error.text)
        except Exception:
            self._refuse(int(Reason.UNSPECIFIED), "the broker could not check who this is")
            raise
        finally:
            self._admission = None  # of a task that is done 0.7 kB would stay as long as the client

    def _admitted(self, admitted: Admitted) -> None:
        if self.state is not State.ADMITTING:
            return
        assert self._connect is not None
        self._client = session_name(admitted.user, self._id)
        if admitted.lasts_s is not None:
            self._lease = self.front.loop.call_later(min(admitted.lasts_s, LEASE_MAX_S), self._expire)
        refusal = self.front.steer(self._client, self.follows, self.over)
        if refusal is not None:
            self._refuse(int(refusal[0]), refusal[1])
            return
        broker = self.front.broker
        will_is_text = self._will_is_text
        self._opening = opening_of(self._client, self._connect, admitted, self.options, broker.clock(), will_is_text)
        self.state = State.OPENING
        self._knocked_s, self._stranger = self.front.loop.time(), self._client not in broker.sessions
        broker.open(self._opening, self)

    def _expire(self) -> None:
        if self.state is State.OPEN:
            self.closed_with(MAXIMUM_CONNECT_TIME, "the token has expired; come again with a newer one")
        else:
            self._refuse(int(Reason.NOT_AUTHORIZED), "the token has expired")

    @property
    def address(self) -> str:
        """Of the network, as far as it is known."""
        return self._peer()

    def _peer(self) -> str:
        where = self.transport.get_extra_info("peername") if self.transport is not None else None
        return str(where[0]) if where else "?"

    @property
    def follows(self) -> bool:
        """It may be told of another broker."""
        return self.version == 5

    @property
    def over(self) -> Transport:
        assert self.transport is not None
        tls = self.transport.get_extra_info("ssl_object") is not None
        if self.transport.get_extra_info("websocket"):
            return Transport.WSS if tls else Transport.WS
        return Transport.MQTTS if tls else Transport.MQTT

    def go_elsewhere(self, elsewhere: Callable[[str, Transport], str]) -> str:
        """Send a client that is in to where `elsewhere(client, over)` says; the client, if it was sent."""
        address = elsewhere(self._client, self.over) if self.state is State.OPEN and self.follows else ""
        if not address:
            return ""
        self.closed_with(int(Reason.USE_ANOTHER_SERVER), address)
        return self._client

    def _refuse(self, code: int, text: str) -> None:
        if self.state is State.GONE:
            return
        self.front.counts.refused += 1
        log.info(
            "refused %r from %s: %s (0x%02x)", self._client, self._peer(), text, code, extra=self._who(reason=code)
        )
        if said := farewell(code, text, self.version, self.packet_max):
            self.send(said)
        self._go()

    def opened(self, session: Session, present: bool) -> None:
        if self.state is State.GONE:
            return
        assert self._connect is not None
        self._session = session
        self._opening = None
        packet, options, self._connect = self._connect, self.options, None
        self._lasts = bool(packet.session_expiry_interval)
        name = self.front.broker.host.name
        said = welcome(packet, self.version, options, self._id, name, session.carried.token, present=present)
        if not said:
            self.front.later(self.hang_up)
            return
        if session.durable or session.standing.will is not None:
            # Whoever is told that its session or its will is kept must find it so after a crash.
            self.gate()
            self.front.broker.store.settled(self.ungate)
        self.send(said)
        self.front.counts.connected += 1
        self._tell_connected(present)
        self.since_s = self.front.broker.clock()
        came = self._stranger and bool(session.standing.came_from)
        waited_s, self._knocked_s = self.front.loop.time() - self._knocked_s, 0.0
        if came:
            self.front.timings.handoff.add(waited_s)
        self.front.on_opened(Arrival(session, came, waited_s))
        keep_alive_s = keep_alive_of(packet, self.version, options)
        self.patience = int(1.5 * keep_alive_s / TICK_S) + 1 if keep_alive_s else 0
        # What it said meanwhile must wait for the next turn: the broker is in the middle of something.
        self.front.later(self._begin)

    def _tell_connected(self, present: bool) -> None:
        how = "to its session" if present else "anew"
        extra = self._who(version=self.version, present=present)
        log.info(
            "connected %r from %s, %s, MQTT %s", self._client, self._peer(), how, VERSIONS[self.version], extra=extra
        )

    def _who(self, **more: object) -> dict[str, object]:
        """For programs that read the log."""
        return {"client": self._client, "address": self._peer(), **more}

    def _begin(self) -> None:
        if self.state is not State.OPENING or self._session is None:
            return
        self.state = State.OPEN
        self.heard = self.front.tick
        self._straight = self._session.grant.publish is None
        waiting, self._rest = bytes(self._rest or b""), None
        if waiting:
            self._look_at(waiting)
        self.go_on_reading(Hold.OPENING)
        self._end_if_last()

    def go_on_delivering(self) -> None:
        if self._session is not None:
            self.front.broker.go_on(self._session, self)

    def refused(self, reason: Reason, text: str) -> None:
        self._opening = None
        self._refuse(int(reason), text)

    def _disconnect(self, packet: mqtt5.DisconnectPacket) -> None:
        interval_s = packet.session_expiry_interval
        if interval_s is not None:
            if interval_s and not self._lasts:
                raise PacketError("DISCONNECT: a session expiry, where CONNECT had none", PROTOCOL_ERROR)
            self._expiry_s = expiry_of(interval_s, self.options)
        self._offer()
        self._go()
        self._leave(will=int(packet.reason_code) != 0)

    def closed(self, reason: Reason, text: str) -> None:
        if self.state is State.OPEN or self.state is State.OPENING:
            goodbye = self._teller.goodbye(int(reason), text)
            if goodbye:
                self.send(goodbye)
            if reason is Reason.SESSION_TAKEN_OVER:
                log.info(
                    "taken over: %r from %s: %s", self._client, self._peer(), text, extra=self._who(reason=int(reason))
                )
        self._go()

    def _fail(self, error: PacketError) -> None:
        """The client broke the rules: it is told which, and nobody else notices."""
        self.front.counts.malformed += 1
        if self.state is State.OPEN:
            self._offer()
            self.closed_with(error.code, error.text)
        elif self.state is State.NEW and (self.version == 5 or error.code == UNSUPPORTED_VERSION):
            self._refuse(error.code, error.text)
        else:
            self._go()

    def break_off(self, text: str) -> None:
        """What comes next is no MQTT, as the transport has found."""
        if self.state is State.OPENING or self._is_behind:
            self._broken = text
        elif self.state is not State.GONE:
            self._fail(PacketError(text))

    def closed_with(self, code: int, text: str) -> None:
        """As `closed`, for reasons of ours; the broker is told at once."""
        log.info("closed %r from %s: %s (0x%02x)", self._client, self._peer(), text, code, extra=self._who(reason=code))
        goodbye = self._teller.goodbye(code, text)
        if goodbye:
            self.send(goodbye)
        self._go()
        self._leave(will=True)

    def lose_patience(self) -> None:
        """The client has been silent for too long; unless it was not listened to."""
        if self.state is State.OPEN and self._stopped:
            self.heard = self.front.tick
            return
        if self.state is State.OPEN:
            self.closed_with(KEEP_ALIVE_TIMEOUT, "nothing heard within one and a half times the keep alive")
        else:
            self.hang_up(at_once=True)

    def _go(self) -> None:
        """Hang up; what the client still says is not heard."""
        if self.state is not State.GONE:
            self.state = State.GONE
            self._straight = False
            self._rest = None
            self._unread = self._asked = None
            self.hang_up()
            self.heard = self.front.tick
            self.patience = int(CLOSE_WAIT_S / TICK_S)

    def _leave(self, *, will: bool) -> None:
        """Tell the broker, once, that this connection is over."""
        if self.state is State.ADMITTING and self._admission is not None:
            self._admission.cancel()  # nobody waits for a password to be checked any more
        if self._lease is not None:
            self._lease.cancel()
        self.state = State.GONE
        session, self._session = self._session, None
        opening, self._opening = self._opening, None
        if session is not None:
            self.front.broker.close(session, self, will=will, expiry_s=self._expiry_s)
        elif opening is not None:
            self.front.broker.give_up(opening, self)


def last_words(transport: asyncio.Transport | None) -> bytes:
    """What has come over a connection that is lost and was not read: where we could not write, nobody reads any more,
    though the system still has it. Only of plain TCP: what came over anything else has to be understood first."""
    info = transport.get_extra_info if transport is not None else lambda name: None
    found, said = info("socket"), bytearray()
    if found is None or info("ssl_object") is not None or info("websocket"):
        return b""
    with suppress(OSError):
        while len(said) < TURN_BYTES_MAX and (more := os.read(found.fileno(), TURN_BYTES_MAX)):
            said += more
    return bytes(said)


def is_only_pings(data: bytearray) -> bool:
    return data == PINGREQ * (len(data) // len(PINGREQ))


def share_after(share: int, took_s: float, most_s: float) -> int:
    """How many packets to look at next time, where so many took so long: at most twice as many, at least half."""
    if took_s > most_s:
        return max(1, int(share * max(0.5, AIMED * most_s / took_s)))
    grown = int(share * min(2.0, AIMED * most_s / max(took_s, 1e-9)))
    return min(max(share + 1, grown), SHARE_MAX)


def _due(flying: Mapping[int, Item], kind: int, numbers: list[int]) -> list[int]:
    """The first of these, as far as each is the next step of its delivery; where there is none, whoever asks is told
    so."""
    qos, is_last = 1 if kind == Kind.PUBACK else 2, kind == Kind.PUBCOMP
    for at, number in enumerate(numbers):
        item = flying.get(number)
        if item is not None and (item.qos != qos or (is_last and not item.received)):
            return numbers[:at]
    return numbers


def _misplaced(kind: int, state: State) -> str:
    name = Kind(kind).name if kind else "a packet of type 0"
    return f"{name}: expected CONNECT first" if state is State.NEW else f"{name}: not at this point"
