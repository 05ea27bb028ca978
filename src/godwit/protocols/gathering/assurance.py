"""A client hears that its subscription is in place once no single failure can lose it (the rule `assured`).

Whoever stores a subscription first has it copied by the nodes that would stand in for it, and then tells the broker
that asked, with its cell. That broker knows by itself when all have answered: their cells are a complete prefix code
over whatever the area touches. So nobody needs to know how many owners there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.gathering.areas import Area, Reach, sides
from godwit.protocols.gathering.messages import Change, ClientId, Copied, Replica, Stored, Subscribed, Subscription
from godwit.protocols.gathering.space import Cell
from godwit.protocols.host import NodeId, Timer
from godwit.protocols.topology.pastry.keys import Key, padded
from godwit.protocols.topology.pastry.peers import Peer

if TYPE_CHECKING:
    from godwit.protocols.gathering.broker import GatheringBroker


def complete(area: Reach, cells: Iterable[Cell], *, exact: bool = False) -> bool:
    """Whether these cells are all that a walk of this area ends in. Cells of before and after a split may both be
    among them."""
    known = {cell.prefix: cell for cell in cells}

    def covered(prefix: str) -> bool:
        if prefix in known:
            return True
        below = next((cell for name, cell in known.items() if name.startswith(prefix)), None)
        if below is None:
            return False
        at = len(prefix)
        far, near = sides(below, area, at, exact=exact)
        return (not near or covered(below.prefix[: at + 1])) and (not far or covered(below.sibling_prefix(at)))

    return covered("")


class Copying(msgspec.Struct):
    """Of an owner: a change that stand-ins have yet to copy; `answered` is told when all have."""

    key: Key
    cell: Cell
    change: Change
    waiting: set[NodeId]
    had: set[NodeId]
    """Whoever has been asked, so that nobody is asked twice."""
    answered: Subscription | None


class Expected(msgspec.Struct):
    """Of the broker that asked: who has answered so far."""

    client: ClientId
    area: Area
    cells: dict[str, Cell]
    timer: Timer


class Assurance:
    def __init__(self, broker: GatheringBroker) -> None:
        self.broker = broker
        self.number = 0
        """Of the last change of this broker's book."""
        self._copying: dict[int, Copying] = {}
        self._expected: dict[str, Expected] = {}

    @property
    def unsettled(self) -> int:
        return len(self._copying) + len(self._expected)

    # The broker that asks

    def expect(self, subscription: Subscription) -> None:
        sid = subscription.sid
        timer = self.broker.host.after(self.broker.rules.assured_s, partial(self._late, sid))
        self._expected[sid] = Expected(subscription.client, subscription.area, {}, timer)

    def forget(self, sid: str) -> None:
        expected = self._expected.pop(sid, None)
        if expected is not None:
            expected.timer.cancel()

    def stored(self, message: Stored) -> None:
        expected = self._expected.get(message.sid)
        if expected is None:
            return
        expected.cells[message.cell.prefix] = message.cell
        if complete(expected.area, expected.cells.values(), exact=self.broker.rules.exact):
            self.forget(message.sid)
            self._tell(expected.client, Subscribed(message.sid))

    def _late(self, sid: str) -> None:
        expected = self._expected.pop(sid, None)
        if expected is not None:
            self._tell(expected.client, Subscribed(sid, complete=False))

    def _tell(self, client: ClientId, message: Subscribed) -> None:
        profile = self.broker.profiles.get(client)
        if profile is not None:
            self.broker.host.send(profile.address, message)

    # An owner

    def added(self, cell: Cell, subscription: Subscription) -> None:
        """It is in the book; let it be copied, and then say so."""
        self._begin(cell, Change(padded(cell.prefix), self.broker.ring.me, self._next(), subscription), subscription)

    def removed(self, cell: Cell, sid: str) -> None:
        self._begin(cell, Change(padded(cell.prefix), self.broker.ring.me, self._next(), removed=sid), None)

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _begin(self, cell: Cell, change: Change, answered: Subscription | None) -> None:
        copying = self._copying[change.number] = Copying(change.region, cell, change, set(), set(), answered)
        for peer in self.broker.ring.nearest(change.region, self.broker.rules.replicas):
            self._copy(copying, peer)
        self._settle(copying)

    def _copy(self, copying: Copying, peer: Peer, base: Replica | None = None) -> None:
        copying.waiting.add(peer.name)
        copying.had.add(peer.name)
        change = copying.change if base is None else msgspec.structs.replace(copying.change, base=base)
        self.broker.ring.send(peer.name, change, partial(self._instead, copying, peer))

    def _instead(self, copying: Copying, lost: Peer) -> None:
        """It does not answer: the next nearest must copy it, if there is one."""
        broker = self.broker
        broker.ring.fail(lost)
        copying.waiting.discard(lost.name)
        for peer in broker.ring.nearest(copying.key, broker.rules.replicas):
            if peer.name not in copying.had:
                self._copy(copying, peer)
        self._settle(copying)

    def copied(self, sender: NodeId, message: Copied) -> None:
        copying = self._copying.get(message.number)
        if copying is None or sender not in copying.waiting:
            return
        if message.whole:
            copying.waiting.discard(sender)
            self._settle(copying)
            return
        peers = self.broker.ring.nearest(copying.key, len(copying.had))
        peer = next((one for one in peers if one.name == sender), None)
        if peer is None:
            copying.waiting.discard(sender)
            self._settle(copying)
        else:
            self._copy(copying, peer, self.broker.takeover.replica(copying.key, copying.cell))

    def _settle(self, copying: Copying) -> None:
        if copying.waiting or self._copying.pop(copying.change.number, None) is None:
            return
        if copying.answered is not None:
            body = Stored(copying.answered.sid, copying.cell)
            self.broker.ring.route(copying.answered.source, body)

    # Whoever would stand in

    def change(self, sender: NodeId, message: Change) -> None:
        takeover = self.broker.takeover
        if message.base is not None:
            takeover.keep(message.base)
        self.broker.links.send(sender, Copied(message.number, takeover.apply(message)))
