"""Whom to dial, and when again: addresses from the configuration, from other brokers, and from the last time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from random import Random

import msgspec

from godwit.net.address import Address, AddressError
from godwit.net.peers.frames import Kind, Known, Peer, encode_control, framed
from godwit.net.peers.handshake import RefusedError, SelfError, SpareError
from godwit.net.peers.links import Link, Links
from godwit.protocols.broker.store import Store
from godwit.protocols.host import RemoteError

log = logging.getLogger("godwit.links")

PORT = 7883
"""Where peers listen unless told otherwise."""

LEARNED_MAX = 1_024


class DialOptions(msgspec.Struct, frozen=True, kw_only=True):
    again_s: float = 0.2
    """After the first failure; each further one waits twice as long."""
    again_max_s: float = 30.0
    steady_s: float = 10.0
    """A link that lasted so long is made again at once; one that did not is a failure too."""
    forget_s: float = 7 * 24 * 3600.0
    """An address that was learned and has led nowhere for so long is forgotten."""


class Entry(msgspec.Struct, array_like=True):
    """What is kept of an address, in the table `peers`."""

    name: str = ""
    seen: float = 0.0
    """When it last led to a peer, or was learned: seconds since 1970."""


class Dialler:
    """Keeps a link to every broker it hears of. `dial` what is configured; the rest is learned and remembered."""

    def __init__(
        self,
        links: Links,
        store: Store,
        options: DialOptions = DialOptions(),  # noqa: B008
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.links = links
        self.store = store
        self.options = options
        self.clock = clock
        self.book: dict[str, Entry] = {}
        self._configured: set[str] = set()
        self._own: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dice = Random()
        links.on_known = self.learn_all
        links.on_admitted = self._admitted

    def start(self) -> None:
        """Dial whoever was known at the last time."""
        for address, _, value in self.store.load("peers"):
            self.book[address] = msgspec.msgpack.decode(value, type=Entry)
            self._keep_dialling(address)

    def dial(self, address: str) -> None:
        """Keep a link to whoever is there, however long it is away; `AddressError` where this is none."""
        text = str(Address.parse(address, port=PORT))
        self._configured.add(text)
        self.book.setdefault(text, Entry(seen=self.clock()))
        self._keep_dialling(text)

    def learn_all(self, peers: tuple[Peer, ...]) -> None:
        for peer in peers:
            self.learn(peer)

    def learn(self, peer: Peer) -> None:
        """Somebody knows a broker there. What is no address, is known, or is one too many changes nothing."""
        try:
            address = str(Address.parse(peer.address, port=PORT))
        except AddressError:
            return
        if address in self._own or peer.name == self.links.identity.name:
            return
        entry = self.book.get(address)
        if entry is None:
            if len(self.book) < LEARNED_MAX:
                self._note(address, peer.name)
                self._keep_dialling(address)
        elif peer.name and not entry.name:
            self._note(address, peer.name)

    def _admitted(self, link: Link) -> None:
        """A peer is here: note where it is, tell it of the others, and the others of it."""
        if link.address:
            self._note(link.address, link.peer.name)
        known = [Peer(entry.name, address) for address, entry in self.book.items() if entry.name]
        link.write(framed(Kind.CONTROL, encode_control(Known(tuple(known)))))
        own = Peer(link.peer.name, link.peer_address)
        if own.address:
            self._moved(own)
            self.learn(own)
            self.links.control(Known((own,)), besides=link)

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
        failures = 0
        while True:
            name = self.book[address].name
            if name in self.links.up:
                lasted_s = await self._while_up(name)
                failures = 0 if lasted_s > self.options.steady_s else failures + 1
                await asyncio.sleep(self._pause_s(failures))
                continue
            try:
                await self._connect(address)
            except SelfError:
                self._own.add(address)
                self._give_up(address)
                return
            except SpareError:
                failures += self.book[address].name not in self.links.up
            except (OSError, RemoteError, UnicodeError) as error:
                failures += 1
                if not isinstance(error, RefusedError):
                    self.links.tell(address, str(error))
                if self._is_hopeless(address):
                    self._give_up(address)
                    return
            await asyncio.sleep(self._pause_s(failures) if failures else 0)

    async def _connect(self, address: str) -> None:
        where = Address.parse(address)
        link = await self.links.connect(where.host, where.port, address)
        try:
            await link.admitted
        finally:
            if link.handshake.peer is not None and address in self.book:
                self._note(address, link.peer.name)

    async def _while_up(self, name: str) -> float:
        started = self.links.loop.time()
        while name in self.links.up:
            await self.links.up[name].closed.wait()
        return self.links.loop.time() - started

    def _pause_s(self, failures: int) -> float:
        """Somewhere in the upper half of twice as long as before, so that two never dial in step for ever."""
        longest = min(self.options.again_s * 2.0 ** min(failures, 32), self.options.again_max_s)
        return self._dice.uniform(longest / 2, longest)

    def _is_hopeless(self, address: str) -> bool:
        too_long = self.clock() - self.book[address].seen > self.options.forget_s
        return too_long and address not in self._configured

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
