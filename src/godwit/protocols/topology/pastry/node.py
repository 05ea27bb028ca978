"""A Pastry node (spec data-gathering 2.2): who is in charge of a key, and the next hop on the way there.

What it knows of others it was told: by the answer to its join, by announcements, keep-alives and answers to questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.topology.pastry.keys import Key, apart, common_bits, digit, number_of, padded
from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import (
    Announce,
    Cast,
    Destination,
    Gone,
    Join,
    Joined,
    KeepAlive,
    PeersAsked,
    PeersTold,
)
from godwit.protocols.topology.pastry.peers import Known, LeafSet, NeighborList, Peer, RoutingTable, with_prefix
from godwit.protocols.topology.ring import Application

LEAVES = -1
"""The row that asks for leaves."""

MEND_S = 1.0
ASKED = 3
"""How many are asked about a hole at a time, and how long nobody else is."""

BEATS = 3
"""Keep-alives within the time after which silence means failure."""


class RingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`bits` is b of the spec, `leaves` L; with 0 leaves only the routing table decides, as in the worked examples."""

    bits: int = 4
    leaves: int = 8
    neighbors: int = 8
    silence_s: float = 0.0
    """T_ka: so long a silence of a leaf is a failure; 0 is no keep-alives, as in the published experiments."""
    join_s: float = 5.0
    """How long a newcomer waits for the answer to its join before it asks again."""


class PastryNode:
    """One member of the ring; give it every body that came over a hop. Its name on the ring never changes."""

    def __init__(self, host: Host, links: Links, me: Peer, application: Application, options: RingOptions) -> None:
        self.host = host
        self.links = links
        self.me = me
        self.application = application
        self.options = options
        self.number = me.number
        self.leaves = LeafSet(self.number, options.leaves)
        self.table = RoutingTable(self.number, options.bits)
        self.neighbors = NeighborList(options.neighbors)
        self._ways: dict[Key, Known | None] = {}
        self._regions: dict[str, list[Known]] = {}
        self._holes: dict[tuple[int, int], float] = {}
        """Cells whose node failed, and until when nobody is asked again."""
        self._failed: dict[int, NodeId] = {}
        self._considered: set[Peer] = set()
        """Put where they fit, or nowhere, since the last failure: keep-alives name the same leaves again and again."""
        self._heard_s: dict[int, float] = {}
        self._entered = False
        if options.silence_s:
            host.after(host.random.uniform(0, options.silence_s / BEATS), self._beat)

    # Decisions

    def next_hop(self, key: Key) -> Peer | None:
        known = self._way(key)
        return None if known is None else known.peer

    def nodes_with_prefix(self, prefix: str) -> list[Peer]:
        return [known.peer for known in self._region(prefix)]

    def nearest(self, key: Key, count: int) -> list[Peer]:
        number = number_of(key)
        leaves = [known for known in self.leaves.members() if known.number != number]
        leaves.sort(key=lambda known: (apart(known.number, number), known.number))
        return [known.peer for known in leaves[:count]]

    def _region(self, prefix: str) -> list[Known]:
        """As `_way`: the same siblings of a cell are asked for with every subscription."""
        try:
            return self._regions[prefix]
        except KeyError:
            found = self._regions[prefix] = with_prefix(self._known(), prefix)
            return found

    def _changed(self) -> None:
        self._ways.clear()
        self._regions.clear()

    def _way(self, key: Key) -> Known | None:
        """Worked out once for each key until a table changes."""
        try:
            return self._ways[key]
        except KeyError:
            way = self._ways[key] = self._decide(number_of(key))
            return way

    def _decide(self, key: int) -> Known | None:
        if key == self.number:
            return None
        if self.leaves.covers(key):
            return self.leaves.closest(key)
        bits = self.options.bits
        row = common_bits(self.number, key) // bits
        column = digit(key, row, bits)
        if (known := self.table.get(row, column)) is not None:
            return known
        if (row, column) in self._holes:
            self._mend((row, column))
        return self._nearer(key, row)

    def _nearer(self, key: int, row: int) -> Known | None:
        """Best effort where the table has a hole: as long a common prefix, and numerically nearer than this node."""
        own = apart(self.number, key)
        bits = self.options.bits
        nearer = [
            known
            for known in self._known()
            if common_bits(known.number, key) // bits >= row and apart(known.number, key) < own
        ]
        return min(nearer, key=lambda known: (apart(known.number, key), known.number), default=None)

    def _known(self) -> Iterator[Known]:
        return chain(self.table, self.leaves.members())

    # Sending

    def send(self, to: NodeId, body: Any, failed: Callable[[], None] | None = None) -> None:
        self.links.send(to, body, failed)

    def route(self, key: Key, body: Any) -> None:
        self.cast((Destination(key),), body)

    def cast(self, destinations: Sequence[Destination], body: Any, hops: int = 0) -> None:
        copies: dict[int, list[Destination]] = {}
        here: list[Destination] = []
        known: dict[int, Known] = {}
        for destination in destinations:
            way = self._way(destination.key)
            if way is None:
                here.append(destination)
            else:
                copies.setdefault(way.number, []).append(destination)
                known[way.number] = way
        for number, some in copies.items():
            self._transmit(known[number], Cast(tuple(some), body, hops + 1))
        if here:
            self.application.deliver(here, body, hops)

    def _transmit(self, to: Known, cast: Cast[Any]) -> None:
        def around() -> None:
            self.fail(to.peer)
            self.cast(cast.destinations, cast.body, cast.hops - 1)

        self.links.send(to.peer.name, cast, around)

    def towards(self, prefix: str, body: Any) -> None:
        found = self._region(prefix)
        if not found:
            self.route(padded(prefix), body)
            return
        nearest = found[0].peer

        def around() -> None:
            self.fail(nearest)
            self.towards(prefix, body)

        self.links.send(nearest.name, body, around)

    # Receiving

    def receive(self, sender: NodeId, body: Message) -> None:
        """What came over a hop; what is not the ring's own goes to the application."""
        if type(body) is Cast:
            self.cast(body.destinations, body.body, body.hops)
            return
        handler = HANDLERS.get(type(body))
        if handler is None:
            self.application.hear(sender, body)
        else:
            handler(self, sender, body)

    # Membership

    def enter(self, via: NodeId) -> None:
        """Join through any member, the nearer the better: it is asked to route a join to this node's own key."""
        if not self._entered:
            self.links.send(via, Join(self.me))
            self.host.after(self.options.join_s, lambda: self.enter(via))

    def begin(self, peers: Iterable[Peer] = ()) -> None:
        """Be a member at once: the first of a ring, or one whose tables are given by hand."""
        self._entered = True
        self.add(peers)

    def add(self, peers: Iterable[Peer]) -> None:
        """Put peers where they fit, leaving out those that have failed since."""
        for peer in peers:
            if peer in self._considered:
                continue
            number = peer.number
            if number != self.number and self._failed.get(number) != peer.name:
                self._considered.add(peer)
                self._insert(peer)

    def _insert(self, peer: Peer) -> None:
        known = Known(peer, self.me.place)
        new = known.number not in self.leaves
        if self.table.insert(known):
            self._holes.pop(self.table.position(known.number), None)
        self.neighbors.insert(known)
        became_leaf = self.leaves.insert(known)
        self._changed()
        if new and became_leaf:
            self._heard_s[known.number] = self.host.now()
            self.application.met(peer)

    def fail(self, peer: Peer) -> None:
        """It does not answer any more: forget it, fill its place among the leaves now and elsewhere when needed."""
        number = peer.number
        self._considered.clear()
        position = self.table.position(number)
        if self.table.remove(number):
            self._holes[position] = self.host.now()
        self.neighbors.remove(number)
        was_leaf = self.leaves.remove(number, (*self.table, *self.neighbors.nearest(self.options.neighbors)))
        self._changed()
        if self._failed.get(number) == peer.name:
            return
        self._failed[number] = peer.name
        if was_leaf:
            self._refill(peer)
        self.application.gone(peer)

    def _refill(self, lost: Peer) -> None:
        """Tell the other leaves, and ask them for theirs."""
        for known in self.leaves.members():
            self.links.send(known.peer.name, Gone(lost))
            self.links.send(known.peer.name, PeersAsked(self.me, LEAVES))

    def _mend(self, hole: tuple[int, int]) -> None:
        """Whoever shares the row may know another node for it; some of them are asked, and others the next time."""
        now = self.host.now()
        if self._holes[hole] > now:
            return
        self._holes[hole] = now + MEND_S
        row = hole[0]
        sharing = {
            one.number: one for one in self._known() if common_bits(one.number, self.number) // self.options.bits >= row
        }
        for number in self.host.random.sample(sorted(sharing), min(ASKED, len(sharing))):
            self.links.send(sharing[number].peer.name, PeersAsked(self.me, row))

    def _on_join(self, sender: NodeId, join: Join) -> None:
        """Add the row that the newcomer shares with this node; who is in charge of its key answers."""
        newcomer = join.newcomer
        self._revive(newcomer)
        row = common_bits(self.number, newcomer.number) // self.options.bits
        way = self._way(newcomer.key)
        if way is not None and way.peer.name == newcomer.name:
            way = None
        if way is None:
            useful = [known.peer for known in self._known()]
        else:
            useful = [known.peer for at in range(row + 1) for known in self.table.row(at)]
        peers = tuple({peer.key: peer for peer in (*join.peers, *useful, self.me) if peer.key != newcomer.key}.values())
        if way is None:
            self.links.send(newcomer.name, Joined(peers))
        else:
            self._pass_join(way.peer, Join(newcomer, peers))

    def _pass_join(self, to: Peer, join: Join) -> None:
        def around() -> None:
            self.fail(to)
            self._on_join(self.me.name, join)

        self.links.send(to.name, join, around)

    def _on_joined(self, sender: NodeId, joined: Joined) -> None:
        if self._entered:
            return
        self._entered = True
        self.add(joined.peers)
        for peer in {known.number: known.peer for known in self._known()}.values():
            self._announce(peer)
        self.application.entered()

    def _announce(self, to: Peer) -> None:
        self.links.send(to.name, Announce(self.me), lambda: self.fail(to))

    def _on_announce(self, sender: NodeId, announce: Announce) -> None:
        """A newcomer that is a leaf is told this node's leaves: of others that join meanwhile it knows nothing yet."""
        self._revive(announce.peer)
        self.add((announce.peer,))
        if announce.peer.number in self.leaves:
            self.links.send(sender, PeersTold((self.me, *self._told())))

    def _on_keep_alive(self, sender: NodeId, alive: KeepAlive) -> None:
        self._revive(alive.peer)
        self._heard_s[alive.peer.number] = self.host.now()
        self.add((alive.peer, *alive.leaves))
        # Whoever lists this node without being listed would never hear of it, and take that for a failure.
        if not alive.answer and alive.peer.number not in self.leaves:
            self.host.send(sender, KeepAlive(self.me, self._told(), answer=True))

    def _on_gone(self, sender: NodeId, gone: Gone) -> None:
        """Hearsay: ask the node itself. If it lives it answers; else the hop fails and so does the node."""
        number = gone.peer.number
        if number != self.number and number in self.leaves and self._failed.get(number) != gone.peer.name:
            self._check(gone.peer)

    def _check(self, peer: Peer) -> None:
        self.links.send(peer.name, KeepAlive(self.me), lambda: self.fail(peer))

    def _on_peers_asked(self, sender: NodeId, asked: PeersAsked) -> None:
        row = [known.peer for known in (self.leaves.members() if asked.row == LEAVES else self.table.row(asked.row))]
        self.links.send(sender, PeersTold((self.me, *(peer for peer in row if peer.key != asked.peer.key))))

    def _on_peers_told(self, sender: NodeId, told: PeersTold) -> None:
        """Whoever is new here is told of this node, so that knowing each other stays mutual among leaves."""
        fresh = [peer for peer in told.peers if peer.number not in self.leaves and peer.key != self.me.key]
        self.add(told.peers)
        for peer in fresh:
            if peer.number in self.leaves:
                self._announce(peer)

    def _revive(self, peer: Peer) -> None:
        self._failed.pop(peer.number, None)

    # Keep-alives

    def _beat(self) -> None:
        leaves = self._told()
        now, silence = self.host.now(), self.options.silence_s
        listed = {peer.number for peer in leaves}
        self._heard_s = {number: heard_s for number, heard_s in self._heard_s.items() if number in listed}
        for peer in leaves:
            if now - self._heard_s.setdefault(peer.number, now) > silence:
                self.fail(peer)
            else:
                self.host.send(peer.name, KeepAlive(self.me, leaves))
        self.host.after(silence / BEATS, self._beat)

    def _told(self) -> tuple[Peer, ...]:
        return tuple(known.peer for known in self.leaves.members())


HANDLERS: dict[type[Message], Callable[[PastryNode, NodeId, Any], None]] = {
    Join: PastryNode._on_join,
    Joined: PastryNode._on_joined,
    Announce: PastryNode._on_announce,
    KeepAlive: PastryNode._on_keep_alive,
    Gone: PastryNode._on_gone,
    PeersAsked: PastryNode._on_peers_asked,
    PeersTold: PastryNode._on_peers_told,
}
