"""Baselines that install subscriptions otherwise, on the same maps (spec data-gathering F44).

Flooding spreads every subscription over a tree of short links to all brokers. A rendezvous keeps all subscriptions of a
type at the broker in charge of the type's hash, on a ring whose names are random: nothing is near to anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from hashlib import sha1
from typing import Any

from godwit.protocols.gathering.maps import Map
from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.topology.pastry.keys import BITS, BYTES, key_of
from godwit.protocols.topology.pastry.links import Links
from godwit.protocols.topology.pastry.messages import Destination, Hop, HopAck
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions
from godwit.protocols.topology.pastry.peers import Peer
from godwit.sim.ring.underlay import Underlay
from godwit.sim.streams import Streams
from godwit.sim.world import World

Told = tuple[list[int], int, float, int]
"""Hops of every delivery, transmissions, distance, and most subscriptions at one broker."""

TYPES = 20


def flooded(chart: Map, requests: int) -> Told:
    """Each subscription crosses every link of the shortest tree that joins all brokers, once."""
    places = [site.place for site in chart.sites]
    depth, length = _tree(places)
    return [hops for hops in depth for _ in range(requests)], (len(places) - 1) * requests, length * requests, requests


def _tree(places: Sequence[tuple[float, ...]]) -> tuple[list[int], float]:
    """Prim's tree from the first place: how deep each place is, and how long all links are."""
    count = len(places)
    depth, nearest = [0] * count, [(math.inf, 0)] * count
    outside = set(range(1, count))
    length, newest = 0.0, 0
    while outside:
        for at in outside:
            nearest[at] = min(nearest[at], (math.dist(places[at], places[newest]), newest))
        newest = min(outside, key=lambda at: nearest[at])
        far, above = nearest[newest]
        outside.remove(newest)
        depth[newest] = depth[above] + 1
        length += far
    return depth, length


class Rendezvous:
    """A node that keeps whatever is routed to a key of its own."""

    def __init__(self, host: Host, peer: Peer, options: RingOptions) -> None:
        self.links = Links(host)
        self.ring = PastryNode(host, self.links, peer, self, options)
        self.kept: list[int] = []

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, HopAck):
            self.links.confirm(message)
        elif isinstance(message, Hop) and self.links.opened(sender, message):
            self.ring.receive(sender, message.body)

    def hear(self, sender: NodeId, body: Any, /) -> None: ...

    def deliver(self, destinations: Sequence[Destination], body: Any, hops: int, /) -> None:
        self.kept.append(hops)

    def entered(self) -> None: ...

    def met(self, peer: Peer, /) -> None: ...

    def gone(self, peer: Peer, /) -> None: ...


def rendezvous(chart: Map, streams: Streams, bits: int, requests: int) -> Told:
    """Subscriptions to one of some types, from one broker, on a ring with random names."""
    world = World(streams.seed, Underlay)
    assert isinstance(world.medium, Underlay)
    dice = streams.stream("names")
    peers = [Peer(site.name, key_of(dice.getrandbits(BITS)), site.place) for site in chart.sites]
    nodes: list[Rendezvous] = []
    for peer in peers:
        world.medium.places[peer.name] = peer.place
        world.add(peer.name, partial(_added, nodes, peer, bits))
    for node in nodes:
        node.ring.begin(peers)
    start = dice.choice(nodes)
    for _ in range(requests):
        topic = sha1(bytes((dice.randrange(TYPES),)), usedforsecurity=False).digest()[:BYTES]
        start.ring.route(topic, "subscription")
        world.run(world.engine.now + 1.0)
    hops = [hop for node in nodes for hop in node.kept]
    return hops, world.medium.sent["str"], world.medium.travelled / 2, max(len(node.kept) for node in nodes)


def _added(nodes: list[Rendezvous], peer: Peer, bits: int, host: Host) -> Rendezvous:
    nodes.append(Rendezvous(host, peer, RingOptions(bits=bits)))
    return nodes[-1]
