"""What leaves a connection: collected during a turn of the loop, written at its end, bounded where nobody reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import repeat

from godwit.net.mqtt.encode import NOBODYS
from godwit.net.mqtt.framing import PACKET_ANY, answers
from godwit.net.mqtt.front import SAMPLED, TICK_S, Front
from godwit.net.mqtt.options import Hold
from godwit.protocols.broker.api import Delivery, Reason
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.vacant import VACANT

WRITE_HIGH_BYTES = 256 * 1024
"""Where the transport has enough, and what follows waits with us."""


class Output(asyncio.Protocol):
    """The writing half of a connection, over whatever transport."""

    __slots__ = (
        "_awaited",
        "_gated",
        "_hanging_up",
        "_held",
        "_last",
        "_moved",
        "_pieces",
        "_pieces_bytes",
        "ended",
        "front",
        "held_bytes",
        "options",
        "packet_max",
        "paused",
        "transport",
    )

    def __init__(self, front: Front) -> None:
        self.front = front
        self.options = front.options
        """As they were when this client came: it was told of them."""
        self.transport: asyncio.Transport | None = None
        self.ended = False
        """Nothing more is sent."""
        self.paused = False
        """The transport is full: the client reads more slowly than we write."""
        self.packet_max = PACKET_ANY
        """The largest packet that the client takes."""
        self.held_bytes = 0
        self._held: list[bytes] | None = None
        self._pieces: list[bytes] | None = None
        self._pieces_bytes = 0
        self._gated = False
        """Nothing leaves before the disk has what the first of it says."""
        self._hanging_up = False
        """It is to be hung up on once that has left."""
        self._last = False
        """The client says no more: all that came is what there is to be looked at."""
        self._awaited = False
        """Somebody has more for the client, and waits until it takes that."""
        self._moved = 0
        """The tick at which something last left."""

    def send(self, data: bytes, count: int = 1) -> None:
        """What must arrive, or the connection ends: so many packets."""
        if not self.ended:
            self._add_pieces([data])
            self._pieces_bytes += len(data)
            self.front.counts.packets_out += count

    def _add_pieces(self, packets: list[bytes]) -> None:
        """To what is written next. The list is kept, and may grow."""
        if self._pieces is not None:
            self._pieces += packets
        else:
            self._pieces = packets
            self.front.flush_soon(self)  # type: ignore[arg-type]

    def takes_more(self) -> bool:
        if not self.paused and self._pieces_bytes < WRITE_HIGH_BYTES:
            return True
        self._awaited = True
        return False

    def pass_on(self, data: bytes, count: int) -> None:
        """Publications at QoS 0, `count` of them: dropped where too much waits already."""
        if self.ended:
            return
        counts = self.front.counts
        if self.held_bytes > self.front.output_share_bytes:
            counts.drop("client does not read", count)
            return
        self._add_pieces([data])
        self._pieces_bytes += len(data)
        counts.packets_out += count

    def is_ready(self) -> bool:
        """Whether the transport takes something now, and nothing is to leave before that."""
        if self._pieces is not None or self.paused or self._gated or self.ended or self.transport is None:
            return False
        return not self.transport.is_closing()

    def pass_on_now(self, data: bytes) -> None:
        """As `pass_on` of one publication, where it `is_ready`."""
        assert self.transport is not None
        counts = self.front.counts
        counts.packets_out += 1
        counts.bytes_out += len(data)
        self.transport.write(data)

    def pass_on_fitting(self, packets: list[bytes]) -> int:
        """Such publications, but for those that are larger than the client takes; how many they were."""
        count, most, front = len(packets), self.packet_max, self.front
        if most < PACKET_ANY:
            packets = [packet for packet in packets if len(packet) <= most]
            if len(packets) < count:
                front.counts.drop("larger than the client takes", count - len(packets))
        if not packets or self.ended:
            return count
        if self.held_bytes > front.output_share_bytes:
            front.counts.drop("client does not read", len(packets))
            return count
        self._add_pieces(packets)
        self._pieces_bytes += sum(map(len, packets))
        front.counts.packets_out += len(packets)
        return count

    def gate(self) -> None:
        """What is said from now on leaves once `ungate` is called, in its order."""
        self._gated = True

    def ungate(self) -> None:
        self._gated = False
        if self._hanging_up:
            self.hang_up()
        else:
            self.flush()

    def flush(self) -> None:
        if self._gated:
            return
        pieces, self._pieces, self._pieces_bytes = self._pieces, None, 0
        if pieces is None or self.transport is None or self.transport.is_closing():
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.paused:
            self._hold(data)
        else:
            self.front.counts.bytes_out += len(data)
            self.transport.write(data)
            self._ask_for_more()

    def _hold(self, data: bytes) -> None:
        if self._held is None:
            self._held = []
        self._held.append(data)
        self.held_bytes += len(data)

    def _ask_for_more(self) -> None:
        if self._awaited and not self.paused:
            self._awaited = False
            self.front.later(self.go_on_delivering)

    def go_on_delivering(self) -> None:
        """What was written has left."""

    def pause_writing(self) -> None:
        if not self.paused:
            self.front.one_slower(1)
        self.paused = True
        self._moved = self.front.tick

    def resume_writing(self) -> None:
        if self.paused:
            self.front.one_slower(-1)
        self.paused = False
        self._moved = self.front.tick
        while self._held and not self.paused and self.transport is not None:
            data = self._held.pop(0)
            self._release(len(data))
            self.front.counts.bytes_out += len(data)
            self.transport.write(data)
        self._ask_for_more()

    def _release(self, size: int) -> None:
        self.held_bytes -= size

    def look_at_output(self) -> None:
        """A client that takes nothing for long is not there any more."""
        if (self.front.tick - self._moved) * TICK_S > self.options.stall_s:
            self.front.counts.drop("client closed for not reading")
            self.hang_up(at_once=True)

    def hang_up(self, *, at_once: bool = False) -> None:
        """Write what was said, and close; or do not even wait for that."""
        if self.transport is None:
            return
        if self._gated and not at_once:
            self.ended = self._hanging_up = True
            return
        if not at_once and (self._hanging_up or not self.ended):
            self._hanging_up = False
            self.flush()
            # Who says no more and does not read is not there. Anybody else may yet read why it is hung up on.
            at_once = self.paused and self._last
            self._pour()
        self.ended = True
        if at_once:
            self.transport.abort()
        elif self.transport.can_write_eof() and not self.transport.is_closing() and not self._last:
            # What the client still says would make the system answer with a reset, which overtakes our last words: so
            # only our half is closed. The client closes the other when it has read them, or loses our patience.
            self.transport.write_eof()
            self.go_on_listening()
        else:
            self.transport.close()

    def _pour(self) -> None:
        """All that waits, into the transport, though that has enough: it is the last."""
        held, self._held = self._held, None
        for data in held or ():
            self._release(len(data))
            self.front.counts.bytes_out += len(data)
            if self.transport is not None and not self.transport.is_closing():
                self.transport.write(data)

    def go_on_listening(self) -> None:
        """Nothing that is said from now on counts; but it must be read."""

    def _drop_output(self) -> None:
        self.ended = True
        self.transport = None
        if self.paused:
            self.paused = False
            self.front.one_slower(-1)
        self._release(self.held_bytes)
        self._held = self._pieces = None


# What the broker has a client told: deliveries, and the answers to what it published.


class Delivering(Output):
    """The part of a connection that the broker calls."""

    __slots__ = (
        "_aliases_out",
        "_aliases_out_max",
        "_incoming",
        "_session",
        "_stopped",
        "_teller",
        "_unknown",
        "version",
    )

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self.version = 0
        self._session: Session | None = None
        self._teller = NOBODYS
        self._stopped = Hold.NONE
        self._incoming: dict[int, None] = VACANT
        """Packet ids of publications not yet acknowledged."""
        self._unknown: dict[int, None] = VACANT
        """Packet ids that it released and nobody knew."""
        self._aliases_out: dict[str, int] | None = None
        self._aliases_out_max = 0

    def deliver(self, delivery: Delivery) -> None:
        if self.ended:
            return
        counts = self.front.counts
        if not delivery.qos and self.held_bytes > self.front.output_share_bytes:
            counts.drop("client does not read")
            return
        alias, known = self._alias(delivery.publication.topic) if self._aliases_out_max else (0, False)
        packet = self.front.forms.packet(delivery, self.version, alias, known)
        if len(packet) > self.packet_max:
            counts.drop("larger than the client takes")
            if delivery.qos:
                self.front.later(self._skip, delivery.number)
            return
        if alias and not known:
            assert self._aliases_out is not None
            self._aliases_out[delivery.publication.topic] = alias
        self.send(packet)
        timings = self.front.timings
        timings.skipped += 1
        if timings.skipped >= SAMPLED and not (delivery.retain or delivery.again):
            timings.skipped = 0
            timings.delivery.add(self.front.broker.clock() - delivery.publication.time)

    def takes_as_it_is(self, version: int) -> bool:
        """Whether what a client of this version says can be passed to this one, but for packet identifiers."""
        return (self.version == 5) == (version == 5) and not self._aliases_out_max

    def accepted_all(self, numbers: Sequence[int]) -> None:
        """As `accepted`, of publications at QoS 1 that are safe."""
        incoming = self._incoming
        deque(map(incoming.pop, numbers, repeat(None)), 0)
        if self._stopped & Hold.INFLIGHT and len(incoming) <= self.options.inflight_max // 2:
            self.go_on_reading(Hold.INFLIGHT)
        self.send(answers(0x40, numbers), len(numbers))

    def _hold(self, data: bytes) -> None:
        """Whoever asks and asks and does not read the answers is not read either."""
        super()._hold(data)
        options = self.options
        if self.held_bytes > options.output_bytes_max + options.packet_bytes_max:
            self.stop_reading(Hold.OUTPUT)

    def _release(self, size: int) -> None:
        super()._release(size)
        if self._stopped & Hold.OUTPUT and self.held_bytes <= self.options.output_bytes_max // 2:
            self.go_on_reading(Hold.OUTPUT)

    def _alias(self, topic: str) -> tuple[int, bool]:
        """The alias to send with this topic, 0 for none, and whether the client knows it."""
        known = self._aliases_out
        if known is None:
            known = self._aliases_out = {}
        alias = known.get(topic)
        if alias is not None:
            return alias, True
        return (len(known) + 1, False) if len(known) < self._aliases_out_max else (0, False)

    def _skip(self, number: int) -> None:
        """What is too large for the client counts as delivered (MQTT-3.1.2-25)."""
        if self._session is not None:
            self.front.broker.acknowledged(self._session, number)

    def release(self, number: int) -> None:
        self.send(self._teller.release(number))

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        # Version 5 counts a publication at QoS 2 until PUBCOMP (section 4.9). A client of 3.1.1 that is not read for it
        # could not even say PUBREL.
        if qos == 1 or self.version != 5 or reason >= Reason.UNSPECIFIED:
            self._acknowledged(number)
        self.send(self._teller.accepted(number, qos, int(reason)))

    def completed(self, number: int) -> None:
        self.completed_all((number,))

    def completed_all(self, numbers: Sequence[int]) -> None:
        unknown, teller = self._unknown, self._teller
        for number in numbers:
            self._acknowledged(number)
            self.send(teller.completed(number, known=number not in unknown))
            unknown.pop(number, None)

    def _acknowledged(self, number: int) -> None:
        self._incoming.pop(number, None)
        if self._stopped & Hold.INFLIGHT and len(self._incoming) <= self.options.inflight_max // 2:
            self.go_on_reading(Hold.INFLIGHT)

    @property
    def is_read(self) -> bool:
        return not self._stopped

    def go_on_listening(self) -> None:
        self.go_on_reading(~Hold.NONE)

    def stop_reading(self, why: Hold) -> None:
        if not self._stopped and self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()
        self._stopped |= why

    def go_on_reading(self, why: Hold) -> None:
        stopped, self._stopped = self._stopped, self._stopped & ~why
        if stopped and not self._stopped and self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()
