"""Links between brokers over TCP: one for each pair, in order, until it breaks and loses what was in flight.

A link costs its peer nothing but itself: whatever is malformed, too large, too slow or not admitted ends it, and the
dialler tries again later. Nothing is repeated here, the fabric's streams do that.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from godwit.net.frames import Control, Kind, Peer, Ping, encode_control, framed
from godwit.net.handshake import Handshake, SpareError, State
from godwit.net.identity import Identity
from godwit.net.link import LINGER_S, Link, LinkOptions
from godwit.protocols.host import Message, NodeId, RemoteError

log = logging.getLogger("godwit.links")

TOLD_MAX = 256

PING = framed(Kind.CONTROL, encode_control(Ping()))


class Club(msgspec.Struct, frozen=True, kw_only=True):
    """Who may be a peer: brokers of this cluster that know its secret, and, with TLS, have a certificate of its CA."""

    cluster: str = "godwit"
    secret: bytes = b""
    serving: ssl.SSLContext | None = None
    dialling: ssl.SSLContext | None = None


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
        self.sent = self.received = 0
        self.dropped: Counter[str] = Counter()
        self._all: set[Link] = set()
        self._nonces: set[bytes] = set()
        self._told: dict[str, str] = {}
        self._servers: list[asyncio.Server] = []
        self._beat: asyncio.TimerHandle | None = self.loop.call_later(options.heartbeat_s / 2, self._tick)

    async def listen(self, host: str, port: int) -> int:
        """Accept peers there; the port, where 0 asked for a free one."""
        server = await self.loop.create_server(self._link, host, port, ssl=self.club.serving, backlog=128)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def connect(self, host: str, port: int, address: str) -> Link:
        """A connection to whoever is there, or `OSError`; await `admitted` to know whether it becomes a link."""
        try:
            async with asyncio.timeout(self.options.connect_s):
                _, link = await self.loop.create_connection(
                    lambda: self._link(address), host, port, ssl=self.club.dialling
                )
        except TimeoutError:
            raise OSError(f"no answer within {self.options.connect_s:g} s") from None
        return link

    def _link(self, address: str = "") -> Link:
        handshake = Handshake(
            self.identity,
            cluster=self.club.cluster,
            secret=self.club.secret,
            dialled=bool(address),
            nonce=os.urandom(16),
            address=self.address,
            own_nonces=self._nonces,
        )
        return Link(self, handshake, address)

    def met(self, link: Link) -> None:
        """A connection is there; whether its peer is admitted is still open."""
        self._all.add(link)
        self._nonces.add(link.handshake.nonce)
        strangers = sum(1 for each in self._all if each.handshake.state is not State.ADMITTED)
        if strangers > self.options.strangers_max and not link.address:
            link.refuse(RemoteError("too many peers greet at a time; try again"))

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
        elif link.write(framed(Kind.MESSAGE, body)):
            self.sent += 1
        else:
            self.dropped["queue full"] += 1

    def drop(self, peer: NodeId, reason: str) -> None:
        """The peer broke the protocol: end its link."""
        if peer in self.up:
            self.up[peer].refuse(RemoteError(reason))

    def admit(self, link: Link) -> None:
        """The peer has proved who it is; of several links to it one stays."""
        held = self.up.get(link.peer.name)
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
        log.info("linked with %s (%s)", link.peer.name, link.address or f"from {link.remote_host}")
        self.on_admitted(link)
        self.on_linked(link.peer.name)

    def _is_better(self, link: Link, held: Link) -> bool:
        """Both ends must choose alike: what the smaller name dialled stays. Yet a link that was made again replaces the
        one before it, and a peer that has restarted has no other."""
        if link.peer.incarnation != held.peer.incarnation:
            return link.peer.incarnation > held.peer.incarnation
        ours = link.handshake.dialled
        return ours == held.handshake.dialled or ours == (self.identity.name < link.peer.name)

    def lost(self, link: Link) -> None:
        self._all.discard(link)
        self._nonces.discard(link.handshake.nonce)
        if link.handshake.peer is not None and self.up.get(link.peer.name) is link:
            self._unlink(link)
            log.info("link with %s is down", link.peer.name)

    def _unlink(self, link: Link) -> None:
        del self.up[link.peer.name]
        self.on_unlinked(link.peer.name)

    def tell(self, where: str, reason: str) -> None:
        """Log why there is no link, once as long as it stays the same reason."""
        if self._told.get(where) != reason:
            if len(self._told) >= TOLD_MAX:
                self._told.clear()
            self._told[where] = reason
            log.warning("no link with %s: %s", where, reason)

    def control(self, control: Control, *, besides: Link | None = None) -> None:
        """To all peers but one."""
        body = encode_control(control)
        for link in self.up.values():
            if link is not besides:
                link.control(body)

    def _tick(self) -> None:
        options, now = self.options, self.loop.time()
        self._beat = self.loop.call_later(options.heartbeat_s / 2, self._tick)
        for name, link in list(self.up.items()):
            if now - link.heard_s > options.idle_s:
                log.warning("%s has been silent for %.1f s", name, now - link.heard_s)
                link.abort()
            elif now - link.said_s > options.heartbeat_s / 2:
                link.write(PING)

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
