"""Brokers' links without brokers: stations on loopback that talk in heartbeats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from godwit.net.identity import Identity
from godwit.net.peers.dialler import Dialler, DialOptions
from godwit.net.peers.links import Club, LinkOptions, Links
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.host import Message, NodeId, RemoteError
from godwit.protocols.routing.courier import Carried, Numbered
from godwit.protocols.routing.messages import Ack
from godwit.protocols.topology.election import Heartbeat

QUICK = LinkOptions(heartbeat_s=0.05, idle_s=0.4, connect_s=2.0, greeting_s=0.5)
QUICK_DIALS = DialOptions(again_s=0.01, again_max_s=0.1, steady_s=0.05)

_decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Heartbeat | Numbered | Ack | Carried)


def decode(body: bytes) -> Message:
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError as error:
        raise RemoteError(str(error)) from error


class Station:
    """Links and a dialler, and all that they told."""

    def __init__(
        self,
        name: NodeId,
        club: Club = Club(),  # noqa: B008
        options: LinkOptions = QUICK,
        *,
        incarnation: int = 1,
        disk: Disk | None = None,
        disk_name: str = "",
    ) -> None:
        self.name = name
        self.links = Links(
            Identity(name, disk_name or f"disk of {name}", incarnation),
            club,
            options,
            encode=msgspec.msgpack.encode,
            decode=decode,
        )
        self.disk: Disk = {} if disk is None else disk
        self.store = MemoryStore(self.disk, lambda call: call())
        self.dialler = Dialler(self.links, self.store, QUICK_DIALS)
        self.heard: list[tuple[NodeId, Message]] = []
        self.changes: list[tuple[str, NodeId]] = []
        self.links.on_message = lambda sender, message: self.heard.append((sender, message))
        self.links.on_linked = lambda peer: self.changes.append(("linked", peer))
        self.links.on_unlinked = lambda peer: self.changes.append(("unlinked", peer))

    async def listen(self) -> str:
        port = await self.links.listen("127.0.0.1", 0)
        self.links.address = f"127.0.0.1:{port}"
        return self.links.address

    @property
    def peers(self) -> set[NodeId]:
        return set(self.links.up)

    async def stop(self) -> None:
        self.store.settled(lambda: None)
        await self.dialler.stop()
        await self.links.close()


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait for it; a test fails where it does not come."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def played(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """In a loop of its own, for three minutes at most."""
    asyncio.run(asyncio.wait_for(scene(), 180))
