"""Whom to dial, and when again: addresses from the configuration, from other brokers, and from the last time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from random import Random

import msgspec

from godwit.net.address import Address, AddressError
from godwit.net.peers.frames import Known, Peer, encode_control
from godwit.net.peers.handshake import RefusedError, SelfError, SpareError
from godwit.net.peers.links import Link, Links
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId, RemoteError
from godwit.protocols.topology.mesh import NEEDED, Wanted, distance, excess, has_room

log = logging.getLogger("godwit.links")

PORT = 7883
"""Where peers listen unless told otherwise."""

BOOK_MAX = 256
"""How many addresses are kept. A tree is for fewer brokers than that; of more, those that stand near on the circle."""


GATEWAYS_MAX = 4
"""Whoever configures more addresses than this names everybody, not the way to somewhere."""


class DialOptions(msgspec.Struct, frozen=True, kw_only=True):
    again_s: float = 0.2
    """After the first failure; each further one waits twice as long."""
    again_max_s: float = 30.0
    steady_s: float = 10.0
    """A link that lasted so long is made again at once; one that did not is a failure too."""
    away_s: float = 60.0
    """How long a broker that did not answer, or had no room, is not counted on."""
    forget_s: float = 7 * 24 * 3600.0
    """An address that was learned and has led nowhere for so long is forgotten."""


class Entry(msgspec.Struct, array_like=True):
    """What is kept of an address, in the table `peers`."""

    name: str = ""
    seen: float = 0.0
    """When it last led to a peer, or was learned: seconds since 1970."""


class Dialler:
    """Keeps links to some of the brokers that it hears of, as `topology.mesh` says. `dial` what is configured; the rest
    is learned and remembered. What is configured is where others are asked for, and a link is kept there while it is
    wanted or needed."""

    def __init__(
        self,
        links: Links,
        store: Store,
        options: DialOptions = DialOptions(),  # noqa: B008
        *,
        clock: Callable[[], float] = time.time,
        is_known: Callable[[NodeId], bool] = lambda name: True,
    ) -> None:
        self.links = links
        self.store = store
        self.options = options
        self.clock = clock
        self.is_known = is_known
        """Whether others have heard of this broker, though it does not answer here."""
        self.book: dict[str, Entry] = {}
        self._configured: set[str] = set()
        self._own: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dice = Random()
        self._away: dict[NodeId, float] = {}
        """Until when each is not counted on, by the loop's time."""
        self._silent: set[NodeId] = set()
        """Those of them that did not answer at all."""
        self._lending: set[str] = set()
        """Addresses that are being dialled out of need."""
        self._reviewing: asyncio.Handle | None = None
        links.on_known = self.learn_all
        links.on_admitted = self._admitted
        links.on_change = self._review_soon
        links.has_room = self._has_room

    def start(self) -> None:
        """Dial whoever was known at the last time."""
        for address, _, value in self.store.load("peers"):
            self.book[address] = msgspec.msgpack.decode(value, type=Entry)
        self._review_soon()

    def dial(self, address: str) -> None:
        """Keep a link to whoever is there, however long it is away; `AddressError` where this is none."""
        text = str(Address.parse(address, port=PORT))
        self._configured.add(text)
        self.book.setdefault(text, Entry(seen=self.clock()))
        self._review_soon()

    def learn_all(self, peers: tuple[Peer, ...]) -> None:
        """What is news goes on to the others, once: whoever hears it a second time is silent."""
        news = tuple(peer for peer in peers if self.learn(peer))
        if news:
            self.links.control(Known(news))

    def learn(self, peer: Peer) -> bool:
        """Somebody knows a broker there; whether that is news. What is no address, is known, or is one too many changes
        nothing."""
        try:
            address = str(Address.parse(peer.address, port=PORT))
        except AddressError:
            return False
        if address in self._own or peer.name == self.links.identity.name:
            return False
        if not self.links.club.reaches(Address.parse(address).host):
            return False
        entry = self.book.get(address)
        if (entry is None and self._makes_room(peer.name)) or (entry is not None and peer.name and not entry.name):
            self._note(address, peer.name)
            self._review_soon()
            return True
        return False

    def _makes_room(self, name: NodeId) -> bool:
        """Where the book is full, whoever stands nearer on the circle takes the place of the farthest."""
        if len(self.book) < BOOK_MAX:
            return True
        me, up = self.links.identity.name, self.links.up
        others = [address for address, entry in self.book.items() if entry.name and entry.name not in up]
        farthest = max(
            (address for address in others if address not in self._configured),
            key=lambda address: distance(me, self.book[address].name),
            default="",
        )
        if not farthest or distance(me, name) >= distance(me, self.book[farthest].name):
            return False
        self._forget(farthest)
        return True

    def _has_room(self, link: Link) -> bool:
        """A peer that gets no link is told of others that may have room."""
        name = self.links.identity.name
        if link.address or link.peer.needed or has_room(name, self.links.up.keys(), link.peer.name):
            return True
        self._tell_book(link)
        return False

    def _tell_book(self, link: Link) -> None:
        known = [Peer(entry.name, address) for address, entry in self.book.items() if entry.name]
        link.control(encode_control(Known(tuple(known))))

    def _admitted(self, link: Link) -> None:
        """A peer is here: note where it is, tell it of the others, and the others of it."""
        if link.address:
            self._note(link.address, link.peer.name)
        self._tell_book(link)
        own = Peer(link.peer.name, link.peer_address)
        if own.address:
            self._moved(own)
            if self.learn(own):
                self.links.control(Known((own,)), besides=link)

    # Whom to have links with

    def _review_soon(self) -> None:
        if self._reviewing is None:
            self._reviewing = self.links.loop.call_soon(self._review)

    def _review(self) -> None:
        """Dial whom this broker wants, give back what it needs no longer, and end what is too much."""
        self._reviewing = None
        up, wanted = self.links.up, self._wanted()
        for name in wanted.surplus():
            if not self._is_needed(up[name].address):
                self.links.let_go(name)
        for name in excess(wanted.me, {peer: link.is_needed for peer, link in up.items()}):
            self.links.let_go(name)
        missing = set(wanted.missing())
        for address, entry in self.book.items():
            if not entry.name or entry.name in missing or self._is_needed(address):
                self._keep_dialling(address)

    def _wanted(self) -> Wanted:
        now, up = self.links.loop.time(), self.links.up
        for name in [name for name, until in self._away.items() if until <= now or name in up]:
            del self._away[name]
            self._silent.discard(name)
        lent = {name for name, link in up.items() if link.address and link.handshake.needed}
        known = {entry.name for entry in self.book.values() if entry.name}
        return Wanted(self.links.identity.name, known, up, self._away, lent)

    def _is_needed(self, address: str) -> bool:
        """Whether this broker might be cut off without a link there: it has hardly any, or what is configured leads to
        where others are that cannot be dialled from here."""
        if len(self.links.up) + len(self._lending - {address}) < NEEDED:
            return True
        is_gateway = address in self._configured and len(self._configured) <= GATEWAYS_MAX
        return is_gateway and any(map(self.is_known, self._silent))

    def _is_wanted(self, address: str) -> bool:
        entry = self.book[address]
        return not entry.name or self._is_needed(address) or entry.name in self._wanted().missing()

    def _not_counted_on(self, address: str, *, silent: bool) -> None:
        name = self.book[address].name
        if name:
            if name in self._away and silent == (name in self._silent):
                return
            self._away[name] = self.links.loop.time() + self.options.away_s
            (self._silent.add if silent else self._silent.discard)(name)
            self.links.loop.call_later(self.options.away_s, self._review_soon)
            self._review_soon()

    def _moved(self, peer: Peer) -> None:
        """It says itself where it is, so what others said before is out of date."""
        for address, entry in list(self.book.items()):
            if entry.name == peer.name and address not in (peer.address, *self._configured, self._dialled(peer.name)):
                self._forget(address)

    def _dialled(self, name: str) -> str:
        return self.links.up[name].address if name in self.links.up else ""

    def _note(self, address: str, name: str) -> None:
        entry = self.book[address] = Entry(name, self.clock())
        self.store.put("peers", address, 0, msgspec.msgpack.encode(entry))

    def _forget(self, address: str) -> None:
        self.book.pop(address, None)
        self.store.delete("peers", address, 0)
        task = self._tasks.pop(address, None)
        if task is not None:
            task.cancel()

    def _give_up(self, address: str) -> None:
        """For the task itself: it is about to end and need not be cancelled."""
        self._tasks.pop(address)
        self._forget(address)

    def _keep_dialling(self, address: str) -> None:
        if address not in self._tasks and address not in self._own:
            self._tasks[address] = asyncio.get_running_loop().create_task(self._dial(address), name=f"dial {address}")

    async def _dial(self, address: str) -> None:
        """Until the link is no longer wanted."""
        failures = 0
        while self.book[address].name in self.links.up or self._is_wanted(address):
            try:
                if self.book[address].name not in self.links.up:
                    await self._connect(address)
                failures = 0 if await self._lasted(self.book[address].name) else failures + 1
                if failures:
                    self._not_counted_on(address, silent=False)
            except SelfError:
                self._own.add(address)
                self._give_up(address)
                return
            except SpareError:
                if self.book[address].name not in self.links.up:
                    failures += 1
                    self._not_counted_on(address, silent=False)
            except (OSError, RemoteError, UnicodeError) as error:
                failures += 1
                self._not_counted_on(address, silent=True)
                if not isinstance(error, RefusedError):
                    self.links.tell(address, str(error))
                if self._is_hopeless(address):
                    self._give_up(address)
                    return
            await asyncio.sleep(self._pause_s(failures))
        del self._tasks[address]

    async def _connect(self, address: str) -> None:
        where = Address.parse(address)
        needed = self._is_needed(address)
        if needed:
            self._lending.add(address)
        try:
            link = await self.links.connect(where.host, where.port, address, needed=needed)
            await self._greeted(link, address)
        finally:
            self._lending.discard(address)

    async def _greeted(self, link: Link, address: str) -> None:
        try:
            # Whoever stops dialling does not decide about a link that is about to be: it comes, or ends by itself.
            await asyncio.shield(link.admitted)
        finally:
            if link.handshake.peer is not None and address in self.book:
                self._note(address, link.peer.name)

    async def _lasted(self, name: str) -> bool:
        """Wait until the link is down; whether it was up long enough, and did not end because it is one too many."""
        started, was_spare = self.links.loop.time(), True
        while (link := self.links.up.get(name)) is not None:
            await link.closed.wait()
            was_spare = link.is_spare
        return not was_spare and self.links.loop.time() - started > self.options.steady_s

    def _pause_s(self, failures: int) -> float:
        """Somewhere in the upper half of twice as long as before, so that two never dial in step for ever."""
        longest = min(self.options.again_s * 2.0 ** min(failures, 32), self.options.again_max_s)
        return self._dice.uniform(longest / 2, longest)

    def _is_hopeless(self, address: str) -> bool:
        too_long = self.clock() - self.book[address].seen > self.options.forget_s
        return too_long and address not in self._configured

    async def stop(self) -> None:
        if self._reviewing is not None:
            self._reviewing.cancel()
        self.links.on_change = _nothing
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _nothing() -> None: ...
