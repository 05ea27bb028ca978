"""What leaves a connection: collected during a turn of the loop, written at its end, bounded where nobody reads."""

from __future__ import annotations

import asyncio

from godwit.net.mqtt.front import TICK_S, Front

WRITE_HIGH_BYTES = 256 * 1024
"""Where the transport has enough, and what follows waits with us."""


STUCK_S = 2.0
"""How long a client for which too much waits may take nothing at all."""


class Output(asyncio.Protocol):
    """The writing half of a connection, over whatever transport."""

    __slots__ = ("_held", "_moved", "_pieces", "ended", "front", "held_bytes", "paused", "transport")

    def __init__(self, front: Front) -> None:
        self.front = front
        self.transport: asyncio.Transport | None = None
        self.ended = False
        """Nothing more is sent."""
        self.paused = False
        """The transport is full: the client reads more slowly than we write."""
        self.held_bytes = 0
        self._held: list[bytes] = []
        self._pieces: list[bytes] = []
        self._moved = 0
        """The tick at which something last left."""

    def send(self, data: bytes) -> None:
        """What must arrive, or the connection ends."""
        if not self.ended:
            if not self._pieces:
                self.front.flush_soon(self)  # type: ignore[arg-type]
            self._pieces.append(data)
            self.front.counts.packets_out += 1

    def pass_on(self, data: bytes, count: int) -> None:
        """Publications at QoS 0, `count` of them: dropped where too much waits already."""
        if self.ended:
            return
        counts = self.front.counts
        if self.held_bytes > self.front.options.output_bytes_max:
            counts.drop("client does not read", count)
            return
        if not self._pieces:
            self.front.flush_soon(self)  # type: ignore[arg-type]
        self._pieces.append(data)
        counts.packets_out += count
        counts.publishes_out += count

    def flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if not pieces or self.transport is None or self.transport.is_closing():
            return
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self.paused:
            self._hold(data)
        else:
            self.front.counts.bytes_out += len(data)
            self.transport.write(data)

    def _hold(self, data: bytes) -> None:
        self._held.append(data)
        self.held_bytes += len(data)
        self.front.backlog_bytes += len(data)

    def pause_writing(self) -> None:
        self.paused = True
        self._moved = self.front.tick

    def resume_writing(self) -> None:
        self.paused = False
        self._moved = self.front.tick
        while self._held and not self.paused and self.transport is not None:
            data = self._held.pop(0)
            self._release(len(data))
            self.front.counts.bytes_out += len(data)
            self.transport.write(data)

    def _release(self, size: int) -> None:
        front = self.front
        self.held_bytes -= size
        front.backlog_bytes -= size
        if front.slowed and front.backlog_bytes < front.options.backlog_bytes_max // 2:
            front.speed_up()

    def look_at_output(self) -> None:
        """A client that takes nothing for long, or for a while where very much waits, is not there any more."""
        options, waited_s = self.front.options, (self.front.tick - self._moved) * TICK_S
        if waited_s > options.stall_s or (waited_s > STUCK_S and self.held_bytes > options.output_bytes_hard):
            self.front.counts.drop("client closed for not reading")
            self.hang_up(at_once=True)

    def hang_up(self, *, at_once: bool = False) -> None:
        """Write what was said, and close; or do not even wait for that."""
        if self.transport is None:
            return
        if not at_once and not self.ended:
            self.flush()
            # What the transport does not take any more would keep the connection open for a client that does not read.
            at_once = self.paused
        self.ended = True
        if at_once:
            self.transport.abort()
        else:
            self.transport.close()

    def _drop_output(self) -> None:
        self.ended = True
        self.transport = None
        self._release(self.held_bytes)
        self._held.clear()
        self._pieces.clear()
