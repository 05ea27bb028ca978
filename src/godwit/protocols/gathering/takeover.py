"""A region whose broker failed is served by the node in charge of its key, and given back (spec 2.13).

Brokers copy their state to the nodes nearest to their name. Each region belongs to the node in charge of *its own* key:
when a stand-in fails too, its regions go each their own way, not all to the stand-in's successor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from godwit.protocols.gathering.clients import Cause
from godwit.protocols.gathering.messages import Change, Entrusted, Replica, Waiting
from godwit.protocols.gathering.space import Cell, Point
from godwit.protocols.host import Record
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.peers import Peer

if TYPE_CHECKING:
    from godwit.protocols.gathering.broker import GatheringBroker


class Takeover:
    def __init__(self, broker: GatheringBroker) -> None:
        self.broker = broker
        self.regions: dict[Key, Cell] = {}
        """Served here for brokers that failed, by their names."""
        self.replicas: dict[Key, Replica] = {}
        """Of regions that others serve, for the case that they fail."""
        self._changes: dict[Key, dict[int, Change]] = {}
        """By region: what has changed there since the copy was made, by number."""
        if broker.rules.replicate_s:
            broker.host.after(broker.host.random.uniform(0, broker.rules.replicate_s), self._beat)

    def cells(self) -> Iterable[Cell]:
        return self.regions.values()

    def region_at(self, place: Point) -> tuple[Key, Cell] | None:
        return next(((key, cell) for key, cell in self.regions.items() if cell.owns_all(place)), None)

    def returned(self, region: Key) -> None:
        self.regions.pop(region, None)

    def _beat(self) -> None:
        if self.broker.is_member:
            self.replicate()
        self.broker.host.after(self.broker.rules.replicate_s, self._beat)

    def replicate(self) -> None:
        """This broker's own region, and each one that it serves, to the nodes nearest to that region's name."""
        broker = self.broker
        for key, cell in ((broker.key, broker.cell), *self.regions.items()):
            replica = self.replica(key, cell)
            for peer in broker.ring.nearest(key, broker.rules.replicas):
                broker.links.send(peer.name, replica)

    def replica(self, key: Key, cell: Cell) -> Replica:
        broker = self.broker
        box = cell.box(dimensions=len(broker.place))
        own = key == broker.key
        return Replica(
            key,
            broker.ring.me,
            cell,
            tuple(broker.store.overlapping(box)),
            tuple(broker.care_of) if own else (),
            tuple(_copied(broker)) if own else (),
            tuple(broker.pointers) if own else (),
            broker.assurance.number,
        )

    def keep(self, replica: Replica) -> None:
        """A newer copy in place of the one that is here; changes that it does not contain yet stay beside it."""
        region, there = replica.region, self.replicas.get(replica.region)
        if region in self.regions or region == self.broker.key:
            return
        if there is not None and there.server == replica.server and there.number > replica.number:
            return
        self.replicas[region] = replica
        changes = self._changes.get(region, {})
        same = there is not None and there.server == replica.server
        self._changes[region] = {at: one for at, one in changes.items() if same and at > replica.number}

    def apply(self, change: Change) -> bool:
        """Note one change beside the copy of its region; False where there is no copy by the same server."""
        there = self.replicas.get(change.region)
        if there is None or there.server != change.server:
            return False
        if change.number > there.number:
            self._changes.setdefault(change.region, {})[change.number] = change
        return True

    def _taken(self, region: Key) -> Replica:
        """The copy with all its changes, which is kept no longer."""
        replica, changes = self.replicas.pop(region), self._changes.pop(region, {})
        book = {one.sid: one for one in replica.subscriptions}
        for _, change in sorted(changes.items()):
            if change.added is not None:
                book[change.added.sid] = change.added
            else:
                book.pop(change.removed, None)
        return replace(replica, subscriptions=tuple(book.values()))

    def gone(self, peer: Peer) -> None:
        """Whatever that broker served and this one has a copy of, it serves from now on, if it is in charge."""
        for replica in [one for one in self.replicas.values() if one.server.key == peer.key]:
            if self.broker.ring.next_hop(replica.region) is None:
                self.activate(self._taken(replica.region))

    def activate(self, replica: Replica) -> None:
        broker = self.broker
        now = broker.host.now()
        self.regions[replica.region] = replica.cell
        broker.host.trace(Record("taken over", note=replica.cell.prefix))
        for subscription in replica.subscriptions:
            broker.store.insert(subscription, now)
        for entry in replica.care_of:
            broker.care_of.put(entry.client, entry.broker, entry.epoch)
        for pointer in replica.pointers:
            if not broker.profiles.has(pointer.client):
                broker.pointers.put(pointer.client, pointer.broker, pointer.epoch)
        for profile in replica.profiles:
            self._adopt(profile)

    def _adopt(self, copied: Waiting) -> None:
        """The client becomes an absent one of this broker, unless it has been seen later than that."""
        broker, client = self.broker, copied.client
        profile, pointer = broker.profiles.get(client), broker.pointers.get(client)
        epochs = [known.epoch for known in (profile, pointer) if known is not None]
        if max(epochs, default=-1) < copied.epoch:
            broker.pointers.remove(client)
            profile = broker.profiles.open_or_refresh(client, "", copied.epoch)
            profile.become(Cause.SILENT)
            for notice, sids in copied.notices:
                profile.push(notice, sids, broker.rules.buffer_max)
            if broker.rules.recheck_s:
                broker.mobility.recheck(profile)
            return
        for notice, sids in copied.notices:
            broker.mobility.deliver(client, notice, sids)

    def met(self, peer: Peer) -> None:
        """A newcomer may be in charge of a region that this broker serves for another."""
        for key in list(self.regions):
            way = self.broker.ring.next_hop(key)
            if way is not None and way.key == peer.key and peer.key != key and not self._is_given(key):
                cell = self.regions.pop(key)
                self.broker.links.send(peer.name, Entrusted(self.replica(key, cell)))

    def _is_given(self, key: Key) -> bool:
        dividing = self.broker.membership.dividing
        return dividing is not None and dividing.assigned.key == key

    def entrusted(self, message: Entrusted) -> None:
        self.activate(message.replica)


def _copied(broker: GatheringBroker) -> Iterable[Waiting]:
    for profile in broker.profiles:
        notices = tuple((one.notice, one.sids) for one in profile.buffer.values())
        yield Waiting(profile.client, profile.epoch, notices)
