"""Links between brokers over TCP: one for each pair, in order, until it breaks and loses what was in flight.

A link costs its peer nothing but itself: whatever is malformed, too large, too slow or not admitted ends it, and the
dialler tries again later. Nothing is repeated here, the fabric's streams do that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import msgspec

from godwit.net.address import is_loopback
from godwit.net.host import LoopTurns
from godwit.net.identity import Identity
from godwit.net.peers.frames import (
    Control,
    Hello,
    Kind,
    Known,
    Peer,
    Ping,
    Proof,
    Reader,
    Refused,
    encode_control,
    framed,
)
from godwit.net.peers.guests import Guests
from godwit.net.peers.handshake import Handshake, SelfError, SpareError, State, WrongSecretError
from godwit.net.peers.pace import WAIT_S, Pace, Traffic
from godwit.protocols.host import Message, NodeId, RemoteError

if TYPE_CHECKING:
    from godwit.net.peers.packing import Packer

# One connection between two brokers, from the first byte to the last.

MIB = 1024 * 1024
HIGH_WATER_B = MIB
LINGER_S = 2.0
"""How long a closed link may take to say its last words."""
TURN_S = 0.05
"""What all peers together may cost in one turn of the loop. Meanwhile nothing leaves, and no client is heard."""


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
    packs: tuple[str, ...] = ()
    """Ways to compress that are offered: `zstd`, or none."""
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
        self.is_spare = False
        """It has ended because there are enough others."""
        self.heard_s = self.said_s = self.loop.time()
        self.remote_host = ""
        self.dropped = 0
        self.is_own = False
        """The other end is this very broker."""
        self._transport: asyncio.Transport | None = None
        self._reader = Reader()
        self._queue: list[bytes] = []
        self._queue_b = 0
        self._paused = False
        self._later: asyncio.TimerHandle | None = None
        self.is_behind = False
        """The peer has said more than fits into a turn of the loop."""
        self._name: NodeId = ""
        self._pace: Pace | None = None
        """Of its peer, once that is admitted."""
        self.traffic = Traffic()
        self._packer: Packer | None = None

    @property
    def peer(self) -> Hello:
        assert self.handshake.peer is not None
        return self.handshake.peer

    @property
    def is_needed(self) -> bool:
        """Whether either end has said that it may be cut off without this link."""
        return self.peer.needed or self.handshake.needed

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
        if self.handshake.hello:
            self.control(self.handshake.hello)
        self.links.met(self)
        self._look_at_certificate(transport.get_extra_info("ssl_object"))
        self.loop.call_later(self.links.options.greeting_s, self._greeted_or_gone)

    def _look_at_certificate(self, tls: ssl.SSLObject | None) -> None:
        """TLS has verified who signed it; whether it was for a broker is our affair."""
        shown = tls.getpeercert(binary_form=True) if tls is not None else None
        problem = self.links.club.problem_of(shown) if shown else ""
        if problem:
            self.refuse(RemoteError(problem))

    def _greeted_or_gone(self) -> None:
        if not self.admitted.done():
            self.refuse(RemoteError(f"no complete greeting within {self.links.options.greeting_s:g} s"))

    def data_received(self, data: bytes) -> None:
        self.heard_s = self.loop.time()
        self.traffic.wire_in += len(data)
        self._hear(data)

    def go_on(self) -> None:
        """With what came before its turn was over."""
        self.is_behind = False
        self._hear(b"")
        if not self.is_behind and (transport := self._open()) is not None:
            transport.resume_reading()

    def _hear(self, data: bytes) -> None:
        """As much of it as fits into this turn; nothing is read while the rest waits."""
        try:
            for kind, body in self._reader.feed(data):
                if self._open() is None:
                    return
                if self.handshake.opens:
                    body = self.handshake.opened(kind, body)
                if kind == Kind.MESSAGE:
                    self._take_message(body)
                elif kind == Kind.PACKED:
                    self._take_message(self._unpacked(body))
                else:
                    self._take_control(body)
                if self.links.turns.is_over() and self.handshake.state is State.ADMITTED:
                    self._wait()
                    break
        except RemoteError as error:
            if self.handshake.state is State.ADMITTED:
                self.links.dropped["malformed"] += 1
            if isinstance(error, SelfError):
                self.links.met_itself(self)
            if isinstance(error, WrongSecretError):
                self.links.guests.was_wrong(self.remote_host, self.loop.time())
            if self.handshake.state is State.REFUSED:
                self._end(error)
            else:
                self.refuse(error)
        self.links.on_read()

    def _open(self) -> asyncio.Transport | None:
        return None if self._transport is None or self._transport.is_closing() else self._transport

    def _wait(self) -> None:
        if not self.is_behind and (transport := self._open()) is not None:
            self.is_behind = True
            transport.pause_reading()
            self.links.turns.wait(self)

    def _take_message(self, body: bytes) -> None:
        if self.handshake.state is not State.ADMITTED:
            raise RemoteError(f"a message came while {self.handshake.state}")
        links = self.links
        links.received += 1
        self.traffic.plain_in += len(body)
        links.on_message(self._name, links.decode(body))

    def _unpacked(self, body: bytes) -> bytes:
        if self._packer is None:
            raise RemoteError("a compressed frame, though nothing of that kind was agreed on")
        return self._packer.unpack(body, self.links.options.frame_b_max)

    def message(self, body: bytes) -> bool:
        """Send a message, compressed where that was agreed; False where there is no room for it."""
        if self._packer is None:
            sent = self.write(Kind.MESSAGE, body)
        elif self._queue_b + len(body) > self.links.options.queue_b_max and self._queue_b:
            self.dropped += 1
            sent = False  # before it is compressed: the other end must see all that was
        else:
            self._enqueue(Kind.PACKED, self._packer.pack(body))
            self._flush()
            sent = True
        self.traffic.plain_out += len(body) if sent else 0
        return sent

    def _take_control(self, body: bytes) -> None:
        if not self.address and self.handshake.state is State.GREETING and not self.links.may_greet(self):
            raise RemoteError("too many greetings from this address; try again later")
        control, answers = self.handshake.receive(body)
        for answer in answers:
            self.control(answer)
        self.handshake.answered()
        if isinstance(control, Proof):
            self._reader.size_max = self.links.options.frame_b_max
            if self.handshake.agreed:
                from godwit.net.peers.packing import Packer

                self._packer = Packer()
            self._name = self.peer.name
            self._pace = self.links.pace_of(self._name)
            self.traffic = self.links.traffic.setdefault(self._name, self.traffic)
            self.links.admit(self)
        elif isinstance(control, Known):
            self.links.on_known(control.peers)

    def control(self, body: bytes) -> None:
        self.write(Kind.CONTROL, body)

    def write(self, kind: Kind, body: bytes) -> bool:
        """Send a frame, or queue it while the peer is slow; False where there is no room. The loop itself gathers what
        is written in one of its turns."""
        if self._queue_b + len(body) > self.links.options.queue_b_max and self._queue_b:
            self.dropped += 1
            return False
        frame = framed(kind, self.handshake.sealed(kind, body) if self.handshake.seals else body)
        if self._queue or self._paused or self._pace is not None:
            self._queue.append(frame)
            self._queue_b += len(frame)
            self._flush()
        else:
            self._let_go(frame)
        return True

    def _enqueue(self, kind: Kind, body: bytes) -> None:
        """What is sealed must leave in its order, and none of it may be dropped."""
        frame = framed(kind, self.handshake.sealed(kind, body))
        self._queue.append(frame)
        self._queue_b += len(frame)

    def _flush(self) -> None:
        if self._paused or self._open() is None:
            return
        pace = self._pace
        data = b"".join(self._queue) if pace is None else self._due(pace)
        if pace is None:
            self._queue.clear()
            self._queue_b = 0
        if data:
            self._let_go(data)

    def _let_go(self, data: bytes) -> None:
        """What is said to a connection that has ended is lost with it."""
        if (transport := self._open()) is not None:
            self.said_s = self.loop.time()
            self.traffic.wire_out += len(data)
            transport.write(data)

    def _due(self, pace: Pace) -> bytes:
        """What may leave now, byte by byte, so that the other end hears something all the time; the rest follows."""
        now, due = self.loop.time(), bytearray()
        room_b = pace.room_b(now)
        while self._queue and room_b > 0:
            part, rest = self._queue[0][:room_b], self._queue[0][room_b:]
            self._queue[:1] = [rest] if rest else []
            room_b -= len(part)
            due += part
        pace.spend(len(due), now)
        self._queue_b -= len(due)
        if self._queue and self._later is None:
            self._later = self.loop.call_later(WAIT_S, self._flush_later)
        return bytes(due)

    def _flush_later(self) -> None:
        self._later = None
        self._flush()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        if self._queue:
            self._flush()

    def refuse(self, error: RemoteError) -> None:
        """Say why, as far as the peer still listens, and hang up."""
        refused = Refused(str(error), isinstance(error, SpareError))
        self._enqueue(Kind.CONTROL, encode_control(refused))
        self._paused = False
        self._flush()
        self._end(error)

    def _end(self, error: RemoteError) -> None:
        if self.is_own:
            error = SelfError(str(error))
        self.is_spare = isinstance(error, SpareError)
        if not isinstance(error, SpareError | SelfError):
            self.links.tell(self.address or self.remote_host, str(error), self._name)
        self._fail(error)
        self.hang_up()

    def _fail(self, error: Exception) -> None:
        if not self.admitted.done():
            self.admitted.set_exception(error)
            # Whoever dialled looks at it; nobody does where we were dialled.
            self.admitted.exception()

    def hang_up(self) -> None:
        if (transport := self._open()) is not None:
            transport.close()
            self.loop.call_later(LINGER_S, transport.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._queue.clear()
        self._fail(error or ConnectionResetError("the peer hung up"))
        self.closed.set()
        self.links.lost(self)


log = logging.getLogger("godwit.links")

TOLD_MAX = 256

PING = encode_control(Ping())


class Club(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be a peer: brokers of this cluster that know its secret, and, with TLS, have a certificate of its CA.

    With neither, brokers of this machine only, unless it is `insecure`.
    """

    cluster: str = "godwit"
    secret: bytes = b""
    serving: ssl.SSLContext | None = None
    dialling: ssl.SSLContext | None = None
    problem_of: Callable[[bytes], str] = lambda certificate: ""
    """Why a certificate of that CA, in DER, is no broker's; empty where it is one's."""
    insecure: bool = False
    fabric: str = ""
    """What its brokers are, `tree` or `dht`, and no two kinds of them are linked; empty: it does not matter."""
    located: tuple[str, ...] = ()
    """Topics that a ring matches where they happened: the same at all its brokers."""

    def reaches(self, host: str) -> bool:
        """Whether links may lead there: in the clear they stay on this machine."""
        return bool(self.secret or self.dialling or self.insecure or is_loopback(host))


class Links:
    """All links of a broker. Set the listeners before `listen` or anything dialled."""

    def __init__(
        self,
        identity: Identity,
        club: Club = Club(),  # noqa: B008
        options: LinkOptions = LinkOptions(),  # noqa: B008
        *,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Message],
    ) -> None:
        self.identity = identity
        self.club = club
        self.options = options
        self.encode = encode
        self.decode = decode
        self.loop = asyncio.get_running_loop()
        self.turns = LoopTurns(TURN_S)
        self.up: dict[NodeId, Link] = {}
        self.address = ""
        """Where others can dial us, as told to them."""
        self.on_message: Callable[[NodeId, Message], None] = lambda sender, message: None
        self.on_read: Callable[[], None] = lambda: None
        """Called when all that has come over a link in one piece was handed out."""
        self.on_linked: Callable[[NodeId], None] = lambda peer: None
        self.on_unlinked: Callable[[NodeId], None] = lambda peer: None
        self.on_known: Callable[[tuple[Peer, ...]], None] = lambda peers: None
        self.on_admitted: Callable[[Link], None] = lambda link: None
        self.on_change: Callable[[], None] = lambda: None
        """Called when a link has come up or gone down."""
        self.has_room: Callable[[Link], bool] = lambda link: True
        """Asked for a peer that has proved who it is, before there is a link with it."""
        self.refusal: Callable[[Link], str] = lambda link: ""
        """Why a peer that has proved who it is gets no link here, whatever it tries."""
        self.cells: Callable[[], tuple[str, ...]] = tuple
        """What this broker owns of a ring, as it is told to peers that greet."""
        self.pace_of: Callable[[NodeId], Pace | None] = lambda peer: None
        """How fast may be spoken to a peer."""
        self.traffic: dict[NodeId, Traffic] = {}
        """By peer, since the start."""
        self.sent = self.received = 0
        self.dropped: Counter[str] = Counter()
        self._all: set[Link] = set()
        self.guests = Guests()
        self._nonces: dict[bytes, Link] = {}
        self._told: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        self._due_s = self.loop.time() + options.heartbeat_s / 2
        self._beat: asyncio.TimerHandle | None = self.loop.call_at(self._due_s, self._tick)

    async def listen(self, host: str, port: int) -> int:
        """Accept peers there; the port, where 0 asked for a free one."""
        server = await self.loop.create_server(self._link, host, port, ssl=self.club.serving, backlog=128)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def connect(self, host: str, port: int, address: str, *, needed: bool = False) -> Link:
        """A connection to whoever is there, or `OSError`; await `admitted` to know whether it becomes a link."""
        link = self._link(address, needed)
        try:
            async with asyncio.timeout(self.options.connect_s):
                await self.loop.create_connection(lambda: link, host, port, ssl=self.club.dialling)
        except BaseException as error:
            # It may have been made in the last moment. Then uvloop closes it, and tells nobody.
            link.connection_lost(OSError("given up"))
            if isinstance(error, TimeoutError):
                raise OSError(f"no answer within {self.options.connect_s:g} s") from None
            raise
        return link

    def _link(self, address: str = "", needed: bool = False) -> Link:
        handshake = Handshake(
            self.identity,
            cluster=self.club.cluster,
            secret=self.club.secret,
            dialled=bool(address),
            nonce=os.urandom(16),
            address=self.address,
            needed=needed,
            packs=self.options.packs,
            fabric=self.club.fabric,
            located=self.club.located,
            cells=self.cells(),
            own_nonces=self._nonces,
        )
        return Link(self, handshake, address)

    def met(self, link: Link) -> None:
        """A connection is there; whether its peer is admitted is still open."""
        self._all.add(link)
        self._nonces[link.handshake.nonce] = link
        strangers = sum(1 for each in self._all if each.handshake.state is not State.ADMITTED)
        if strangers > self.options.strangers_max and not link.address:
            link.refuse(RemoteError("too many peers greet at a time; try again"))

    def met_itself(self, link: Link) -> None:
        """The other end is a link of ours: it must not believe anybody else who says so."""
        other = self._nonces.get(link.handshake.refused_nonce)
        if other is not None:
            other.is_own = True

    def may_greet(self, link: Link) -> bool:
        """Without a secret a greeting costs nothing."""
        return not self.club.secret or self.guests.may_greet(link.remote_host, self.loop.time())

    def send(self, to: NodeId, message: Message) -> None:
        link = self.up.get(to)
        if link is None:
            self.dropped["no link"] += 1
        else:
            self._write(link, self.encode(message))

    def broadcast(self, message: Message) -> None:
        body = self.encode(message)
        for link in list(self.up.values()):
            self._write(link, body)

    def _write(self, link: Link, body: bytes) -> None:
        if len(body) >= self.options.frame_b_max:
            self.dropped["too large"] += 1
            log.error("a message of %s bytes to %s is not sent: too large", f"{len(body):,}", link.peer.name)
        elif link.message(body):
            self.sent += 1
        else:
            self.dropped["queue full"] += 1

    def drop(self, peer: NodeId, reason: str) -> None:
        """The peer broke the protocol: end its link."""
        if peer in self.up:
            self.up[peer].refuse(RemoteError(reason))

    def let_go(self, peer: NodeId) -> None:
        """End a link that neither end needs."""
        if peer in self.up:
            self.up[peer].refuse(SpareError("neither end needs this link"))

    def admit(self, link: Link) -> None:
        """The peer has proved who it is; of several links to it one stays."""
        if reason := self.refusal(link):
            raise RemoteError(reason)
        held = self.up.get(link.peer.name)
        if held is None and not self.has_room(link):
            raise SpareError("all links that this broker may have are taken; others have room")
        if held is not None:
            if held.peer.disk != link.peer.disk:
                raise RemoteError(f"two brokers are named {link.peer.name!r}; each needs a name of its own")
            if not self._is_better(link, held):
                raise SpareError("there is a link already")
            self._unlink(held)
            held.refuse(SpareError("a better link has come"))
        self.up[link.peer.name] = link
        link.admitted.set_result(None)
        self._told.pop(link.address or link.remote_host, None)
        where = link.address or f"from {link.remote_host}"
        log.info("linked with %s (%s)", link.peer.name, where, extra={"peer": link.peer.name, "address": where})
        self.on_admitted(link)
        self.on_linked(link.peer.name)
        self.on_change()

    def _is_better(self, link: Link, held: Link) -> bool:
        """Both ends must choose alike: what the smaller name dialled stays. Yet a link that was made again replaces the
        one before it, and a peer that has restarted has no other."""
        if link.peer.incarnation != held.peer.incarnation:
            return link.peer.incarnation > held.peer.incarnation
        ours = link.handshake.dialled
        return ours == held.handshake.dialled or ours == (self.identity.name < link.peer.name)

    def lost(self, link: Link) -> None:
        self._all.discard(link)
        self._nonces.pop(link.handshake.nonce, None)
        if link.handshake.peer is not None and self.up.get(link.peer.name) is link:
            self._unlink(link)
            log.info("link with %s is down", link.peer.name, extra={"peer": link.peer.name})

    def _unlink(self, link: Link) -> None:
        del self.up[link.peer.name]
        self.on_unlinked(link.peer.name)
        self.on_change()

    def tell(self, where: str, reason: str, name: NodeId = "") -> None:
        """Log why there is no link, once as long as it stays the same reason. The name is that of a peer that has
        proved who it is."""
        if self._told.get(where) != reason:
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told[where] = reason
            log.warning("no link with %s: %s", f"{name} ({where})" if name else where, reason, extra={"peer": name})

    def control(self, control: Control, *, besides: Link | None = None) -> None:
        """To all peers but one."""
        body = encode_control(control)
        for link in self.up.values():
            if link is not besides:
                link.control(body)

    def _tick(self) -> None:
        options, now = self.options, self.loop.time()
        # While this process stood still it did not listen either: what its peers said may wait to be read.
        deaf_s, self._due_s = now - self._due_s, now + options.heartbeat_s / 2
        self._beat = self.loop.call_at(self._due_s, self._tick)
        for name, link in list(self.up.items()):
            link.heard_s = now if link.is_behind else min(link.heard_s + deaf_s, now)
            if now - link.heard_s > options.idle_s:
                log.warning("%s has been silent for %.1f s", name, now - link.heard_s)
                link.abort()
            elif now - link.said_s > options.heartbeat_s / 2:
                link.control(PING)

    async def close(self) -> None:
        """Accept nobody any more and end all links, letting what is queued leave."""
        if self._beat is not None:
            self._beat.cancel()
        for server in self._servers:
            server.close()
        links = list(self._all)
        for link in links:
            link.hang_up()
        if links:
            await asyncio.wait([asyncio.ensure_future(link.closed.wait()) for link in links], timeout=LINGER_S + 1)
