"""One connection between two brokers, from the first byte to the last."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

import msgspec

from godwit.net.frames import Hello, Kind, Known, Proof, Reader, Refused, encode_control, framed
from godwit.net.handshake import Handshake, SelfError, SpareError, State
from godwit.protocols.host import RemoteError

if TYPE_CHECKING:
    from godwit.net.links import Links

MIB = 1024 * 1024
HIGH_WATER_B = MIB
LINGER_S = 2.0
"""How long a closed link may take to say its last words."""


class LinkOptions(msgspec.Struct, frozen=True, kw_only=True):
    heartbeat_s: float = 2.0
    """How long a link may be without a word from here."""
    idle_s: float = 7.0
    """How long without a word from the peer, until it counts as dead: TCP alone would take minutes to notice."""
    connect_s: float = 5.0
    greeting_s: float = 5.0
    frame_b_max: int = 64 * MIB
    queue_b_max: int = 64 * MIB
    """What may wait for one slow peer; what does not fit is dropped and counted."""
    strangers_max: int = 64
    """Connections at a time that have not been admitted yet."""


class Link(asyncio.Protocol):
    """`address` is the one that was dialled, empty where the peer dialled us."""

    def __init__(self, links: Links, handshake: Handshake, address: str = "") -> None:
        self.links = links
        self.handshake = handshake
        self.address = address
        self.loop = links.loop
        self.admitted: asyncio.Future[None] = self.loop.create_future()
        """Done once this is the link to its peer; the exception says why it is not."""
        self.closed = asyncio.Event()
        self.heard_s = self.said_s = self.loop.time()
        self.remote_host = ""
        self.dropped = 0
        self._transport: asyncio.Transport | None = None
        self._reader = Reader()
        self._queue: list[bytes] = []
        self._queue_b = 0
        self._paused = False

    @property
    def peer(self) -> Hello:
        assert self.handshake.peer is not None
        return self.handshake.peer

    @property
    def peer_address(self) -> str:
        """Where the peer can be dialled, as far as it said; its own host is the one we see where it does not know."""
        address = self.peer.address
        if not address.startswith(":"):
            return address
        host = f"[{self.remote_host}]" if ":" in self.remote_host else self.remote_host
        return host + address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=HIGH_WATER_B)
        self.remote_host = str((transport.get_extra_info("peername") or ("",))[0])
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.control(self.handshake.hello)
        self.links.met(self)
        self.loop.call_later(self.links.options.greeting_s, self._greeted_or_gone)

    def _greeted_or_gone(self) -> None:
        if not self.admitted.done():
            self.refuse(RemoteError(f"no complete greeting within {self.links.options.greeting_s:g} s"))

    def data_received(self, data: bytes) -> None:
        self.heard_s = self.loop.time()
        try:
            for kind, body in self._reader.feed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                if kind == Kind.MESSAGE:
                    self._take_message(body)
                else:
                    self._take_control(body)
        except RemoteError as error:
            if self.handshake.state is State.REFUSED:
                self._end(error)
            else:
                self.refuse(error)
        self.links.on_read()

    def _take_message(self, body: bytes) -> None:
        if self.handshake.state is not State.ADMITTED:
            raise RemoteError(f"a message came while {self.handshake.state}")
        self.links.received += 1
        self.links.on_message(self.peer.name, self.links.decode(body))

    def _take_control(self, body: bytes) -> None:
        control, answer = self.handshake.receive(body)
        if answer:
            self.control(answer)
        if isinstance(control, Proof):
            self._reader.size_max = self.links.options.frame_b_max
            self.links.admit(self)
        elif isinstance(control, Known):
            self.links.on_known(control.peers)

    def control(self, body: bytes) -> None:
        self.write(framed(Kind.CONTROL, body))

    def write(self, frame: bytes) -> bool:
        """Send a frame, or queue it while the peer is slow; False where there is no room. The loop itself gathers what
        is written in one of its turns."""
        if self._queue_b + len(frame) > self.links.options.queue_b_max and self._queue_b:
            self.dropped += 1
            return False
        self._queue.append(frame)
        self._queue_b += len(frame)
        self._flush()
        return True

    def _flush(self) -> None:
        if self._paused or self._transport is None or self._transport.is_closing():
            return
        data = b"".join(self._queue)
        self._queue.clear()
        self._queue_b = 0
        self.said_s = self.loop.time()
        self._transport.write(data)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._queue:
            self._flush()

    def refuse(self, error: RemoteError) -> None:
        """Say why, as far as the peer still listens, and hang up."""
        refused = Refused(str(error), isinstance(error, SpareError))
        self._queue.append(framed(Kind.CONTROL, encode_control(refused)))
        self._paused = False
        self._flush()
        self._end(error)

    def _end(self, error: RemoteError) -> None:
        if not isinstance(error, SpareError | SelfError):
            self.links.tell(self.address or self.remote_host, str(error))
        self._fail(error)
        self.hang_up()

    def _fail(self, error: Exception) -> None:
        if not self.admitted.done():
            self.admitted.set_exception(error)
            # Whoever dialled looks at it; nobody does where we were dialled.
            self.admitted.exception()

    def hang_up(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            self.loop.call_later(LINGER_S, self._transport.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._queue.clear()
        self._fail(error or ConnectionResetError("the peer hung up"))
        self.closed.set()
        self.links.lost(self)
