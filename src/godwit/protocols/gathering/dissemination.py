"""Where subscriptions and events go: location-based multicast and unicast, matching, notices (spec 2.5 to 2.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from godwit.protocols.gathering.areas import walk
from godwit.protocols.gathering.clients import home_key
from godwit.protocols.gathering.messages import (
    ClientId,
    Item,
    Locate,
    Located,
    Matched,
    Notice,
    Pub,
    Sub,
    Subscribe,
    Unsub,
    Unsubscribe,
)
from godwit.protocols.gathering.space import Cell
from godwit.protocols.gathering.subscriptions import grouped
from godwit.protocols.host import Record
from godwit.protocols.topology.pastry.keys import Key, padded, starts_with
from godwit.protocols.topology.pastry.messages import Destination

if TYPE_CHECKING:
    from godwit.protocols.gathering.broker import GatheringBroker

HOPS_MAX = 256
"""No way is so long: a message that has come so far is lost in tables that contradict each other."""

Matches = dict[Key, dict[ClientId, tuple[str, ...]]]


class Dissemination:
    """One broker's part in it. `match` may be replaced, as experiment S2 does."""

    def __init__(self, broker: GatheringBroker) -> None:
        self.broker = broker
        self.match: Callable[[Item], Matches] = self._matches

    def subscribe(self, message: Subscribe) -> None:
        broker, wanted = self.broker, message.subscription
        profile = broker.profiles.get(wanted.client)
        epoch = wanted.epoch if profile is None else profile.epoch
        source = home_key(wanted.client, 0) if broker.rules.via_home else broker.key
        asked = replace(wanted, source=source, epoch=epoch)
        if broker.rules.assured:
            broker.assurance.expect(asked)
        self.take(Sub(asked))

    def unsubscribe(self, message: Unsubscribe) -> None:
        self.broker.assurance.forget(message.sid)
        self.take(Unsub(message.sid, message.area, message.client))

    def publish(self, item: Item) -> None:
        self.take(Pub(item))

    def take(self, message: Located) -> None:
        """Whatever this broker has to do with it: serve it here, send it on, or both."""
        if self.broker.membership.deflects(message):
            return
        cell = self._cell_for(message.prefix)
        if cell is None:
            self._misplaced(message)
        elif isinstance(message, Sub | Unsub):
            self._multicast(cell, message)
        else:
            self._unicast(cell, message)

    def _cell_for(self, prefix: str) -> Cell | None:
        """The region that the message means: this broker's own, or one that it serves for a broker that failed."""
        broker = self.broker
        if starts_with(broker.number, prefix):
            return broker.cell
        return next((cell for cell in broker.takeover.cells() if cell.prefix.startswith(prefix)), None)

    def _multicast(self, cell: Cell, message: Sub | Unsub) -> None:
        area = message.subscription.area if isinstance(message, Sub) else message.area
        found = walk(cell, area, message.level, exact=self.broker.rules.exact)
        for level in found.crossed:
            self._forward(cell, level, message)
        if not found.stays:
            return
        if isinstance(message, Sub):
            self._store(cell, message)
        else:
            self._delete(cell, message)

    def _store(self, cell: Cell, message: Sub) -> None:
        broker, wanted = self.broker, message.subscription
        if broker.store.insert(wanted, broker.host.now()):
            broker.host.trace(Record("stored", client=wanted.client, hops=message.hops, note=wanted.sid))
        if broker.rules.assured and wanted.sid in broker.store:
            broker.assurance.added(cell, wanted)

    def _delete(self, cell: Cell, message: Unsub) -> None:
        broker = self.broker
        now = broker.host.now()
        broker.store.remove(message.sid, tombstone_until_s=now + broker.rules.tombstone_s)
        broker.store.expire(now)
        if broker.rules.assured:
            broker.assurance.removed(cell, message.sid)

    def _unicast(self, cell: Cell, message: Pub | Locate) -> None:
        place = message.item.place if isinstance(message, Pub) else message.place
        level = cell.first_not_owned(place, message.level)
        if level is not None:
            self._forward(cell, level, message)
        elif isinstance(message, Pub):
            self.matched(message)
        else:
            self.broker.membership.located(message)

    def _forward(self, cell: Cell, level: int, message: Located) -> None:
        prefix = cell.sibling_prefix(level)
        if self._cell_for(prefix) is not None:
            self.take(replace(message, level=level + 1, prefix=prefix))
        else:
            self.broker.ring.towards(prefix, replace(message, level=level + 1, prefix=prefix, hops=message.hops + 1))

    def _misplaced(self, message: Located) -> None:
        """It came here because nobody of its region answers, or because somebody's tables are old."""
        found = self.broker.ring.nodes_with_prefix(message.prefix)
        if found and message.hops < HOPS_MAX:
            self.broker.ring.towards(message.prefix, replace(message, hops=message.hops + 1))
        else:
            self.broker.count("misplaced")

    def matched(self, message: Pub) -> None:
        """This broker owns the place where it happened."""
        broker = self.broker
        brokers = self.match(message.item)
        broker.host.trace(Record("matched", event=message.item.item, hops=message.hops))
        if brokers:
            destinations = [Destination(key, tuple(clients.items())) for key, clients in brokers.items()]
            broker.ring.cast(destinations, Matched(Notice(message.item, broker.key)))

    def _matches(self, item: Item) -> Matches:
        return grouped(self.broker.store.match(item, self.broker.host.now()))


def region_key(cell: Cell) -> Key:
    """The name of the broker of a cell: its prefix and zeros, so that the key of any region lies inside the region."""
    return padded(cell.prefix)
