"""What an owner has matched before another stood in for it, and what others have not confirmed of that.

A cell that is divided goes when all in its book have had what its owner sent them. An owner that was away is not asked.
When it hears that its cell is another's, some of what it has matched may still be under way, and what the other matches
would overtake it. So nothing for the cell leaves here before that is confirmed: neither publications, nor a `Pass` by
which others ask whether all of theirs is matched (docs/ring.md, "Order where a cell changes hands").
"""

from __future__ import annotations

from functools import partial

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Content, Dealt, Region
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.outbox import Lane, Outbox
from godwit.protocols.gathering.areas import meets
from godwit.protocols.host import Host, NodeId

ROWS = "trail "

_decode = msgspec.msgpack.Decoder(Content).decode


class Trails:
    """Which cells those are is on the disk, and so is what is under way."""

    def __init__(self, host: Host, store: Store, outbox: Outbox, targets: Targets, wait_s: float) -> None:
        self.host = host
        self.store = store
        self.outbox = outbox
        self.targets = targets
        self.wait_s = wait_s
        """How long it is waited for; beyond that what comes goes."""
        self.left: dict[str, dict[NodeId, int]] = {}
        """By prefix of the cell: the last publication that each broker has not confirmed."""
        for owner, _, row in store.load(TABLE):
            if owner.startswith(ROWS):
                region = msgspec.msgpack.decode(row, type=Region)
                self.left[region.prefix] = self._unconfirmed(region)

    def start(self) -> None:
        self.look()
        for prefix, left in self.left.items():
            self.host.after(self.wait_s, partial(self._end, prefix, left))

    def begin(self, region: Region) -> None:
        """This cell was here, and is another's now."""
        left = self._unconfirmed(region)
        if left:
            self.left[region.prefix] = left
            self.store.put(TABLE, ROWS + region.prefix, 0, msgspec.msgpack.encode(region))
            self.host.after(self.wait_s, partial(self._end, region.prefix, left))

    def closes(self, region: Region) -> bool:
        """Whether nothing is to leave for it."""
        prefix = region.prefix
        return any(at.startswith(prefix) or prefix.startswith(at) for at in self.left)

    def look(self) -> bool:
        """Call it where something was confirmed, or given up. Whether a cell is no longer waited for."""
        done = [prefix for prefix, left in self.left.items() if not any(map(self._waits, left, left.values()))]
        for prefix in done:
            self._end(prefix, self.left[prefix])
        return bool(done)

    def _waits(self, broker: NodeId, number: int) -> bool:
        lane = self.outbox.lanes.get(broker)
        return lane is not None and number in lane.parcels

    def _end(self, prefix: str, left: dict[NodeId, int]) -> None:
        if self.left.get(prefix) is left:
            del self.left[prefix]
            self.store.delete(TABLE, ROWS + prefix, 0)

    def _unconfirmed(self, region: Region) -> dict[NodeId, int]:
        found = ((name, self._last(lane, region)) for name, lane in self.outbox.lanes.items())
        return {name: number for name, number in found if number}

    def _last(self, lane: Lane, region: Region) -> int:
        bodies = ((number, lane.parcels[number].body) for number in reversed(lane.parcels))
        return next((number for number, body in bodies if self._is_of(_decode(body), region)), 0)

    def _is_of(self, content: Content, region: Region) -> bool:
        one = content.publication if isinstance(content, Dealt) else content
        return isinstance(one, Publication) and meets(region.cell, self.targets.of_publication(one))
