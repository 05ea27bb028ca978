"""Says in the log why a broker has no cell of a ring, and who is in another one."""

from __future__ import annotations

import asyncio
import logging

from godwit.net.server import Parts, Service
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.host import NodeId

log = logging.getLogger("godwit.fabric")

LOOK_S = 5.0
"""Who has just started gets its cell within less, as a rule."""
LOOKS = 6
"""A cell that two brokers own for so many looks does not merely change hands: to agree on that takes 20 s at most."""


class RingWatch(Service):
    is_there_for_all = True

    def __init__(self, parts: Parts, ring: RingFabric) -> None:
        self.parts = parts
        self.ring = ring
        self._told = ""
        self._rivals: dict[NodeId, int] = {}
        """Peers that owned, when they were linked, what this broker owns; and at how many looks that was still so."""
        self._next: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        links = self.parts.links
        before = links.on_linked
        links.cells = self._cells

        def linked(peer: NodeId) -> None:
            before(peer)
            self._rivals.pop(peer, None)
            if self._is_rival(peer):
                self._rivals[peer] = 0

        links.on_linked = linked
        self._look_later()

    async def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look_later(self) -> None:
        self._next = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """The same reason is told once."""
        membership = self.ring.membership
        problem = "" if self.ring.is_member or membership.leaving else membership.problem
        if problem and problem != self._told:
            text = "this broker has no cell yet, and subscriptions may be refused: %s%s"
            log.warning(text, problem, self._advice())
        self._told = problem
        for peer in [peer for peer in self._rivals if not self._is_rival(peer)]:
            del self._rivals[peer]
        for peer in self._rivals:
            self._rivals[peer] += 1
            if self._rivals[peer] == LOOKS:
                log.warning("%s", self._rivalry(peer), extra={"peer": peer})
        self._look_later()

    def _cells(self) -> tuple[str, ...]:
        return tuple(one.prefix for one in self.ring.regions)

    def _is_rival(self, peer: NodeId) -> bool:
        """Whether it said that it owns what this broker owns, and has no cell by all that is known here."""
        link = self.parts.links.up.get(peer)
        if link is None or peer in self.ring.atlas.owners:
            return False
        return any(_overlap(mine, theirs) for mine in self._cells() for theirs in link.peer.cells)

    def _rivalry(self, peer: NodeId) -> str:
        return (
            f"{peer} is in another ring, which owns the same cells; two rings never become one, and neither hears what"
            " is published in the other. Give one of them up: start its brokers with empty data folders and --peer"
        )

    def _advice(self) -> str:
        """What an operator can do who has given addresses at which there is no ring."""
        if self.parts.links.up:
            return ""
        return f" ({', '.join(self.parts.config.peers.connect) or 'mDNS'}); --found begins a ring where there is none"

    def problems(self) -> list[str]:
        """Linked brokers that are in another ring, as it seems."""
        up = self.parts.links.up
        return [self._rivalry(peer) for peer, looks in sorted(self._rivals.items()) if looks >= LOOKS and peer in up]


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
