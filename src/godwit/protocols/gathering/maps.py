"""Random deployments from dice (spec 2.3): where brokers stand, which cells they own and whom they know.

A map is what an administrator would write by hand: plain data, one entry for each broker, readable as JSON.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from random import Random

import msgspec

from godwit.protocols.gathering.space import Box, Cell, Leaf, Point, Tree, joined, leaves
from godwit.protocols.host import NodeId
from godwit.protocols.topology.pastry.keys import BITS, Key, common_bits, digit, number_of, padded
from godwit.protocols.topology.pastry.peers import Peer

SQUARE: Box = ((0.0, 100.0), (0.0, 100.0))
PHONES = 32


class Site(msgspec.Struct, frozen=True):
    """A broker's configuration but for its peers."""

    name: NodeId
    place: Point
    cell: Cell

    @property
    def key(self) -> Key:
        return padded(self.cell.prefix)

    @property
    def peer(self) -> Peer:
        return Peer(self.name, self.key, self.place)


class Map(msgspec.Struct, frozen=True):
    """`starts` are the first places of mobile clients."""

    space: Box
    sites: tuple[Site, ...]
    publisher: Point
    starts: tuple[Point, ...]


def drawn(dice: Random, space: Box) -> Point:
    return tuple(dice.uniform(low, high) for low, high in space)


def generate(brokers: int, dice: Random, space: Box = SQUARE, phones: int = PHONES) -> Map:
    """Brokers at random places, each splitting the cell that it falls into."""
    places = [drawn(dice, space) for _ in range(brokers)]
    sites = sites_of([(f"b{at:0{len(str(brokers - 1))}d}", place) for at, place in enumerate(places)])
    return Map(space, sites, drawn(dice, space), tuple(drawn(dice, space) for _ in range(phones)))


def sites_of(brokers: Iterable[tuple[NodeId, Point]]) -> tuple[Site, ...]:
    """The cells of brokers that join in this order; the order of the answer is that of their keys."""
    root: Tree | None = None
    for name, place in brokers:
        root = joined(root, Leaf(name, place))
    return () if root is None else tuple(Site(leaf.name, leaf.place, leaf.cell) for leaf in leaves(root))


def known_peers(sites: Sequence[Site], bits: int, leaf_count: int) -> dict[NodeId, list[Peer]]:
    """Whom each broker knows when all tables are complete: its leaves, and for each cell the nearest candidate.

    `sites` must be in the order of their keys, as `generate` gives them.
    """
    numbers = [number_of(site.key) for site in sites]
    peers = [site.peer for site in sites]
    return {
        site.name: [*_cells(at, numbers, peers, bits), *_leaves(at, peers, leaf_count)] for at, site in enumerate(sites)
    }


def _leaves(at: int, peers: Sequence[Peer], leaf_count: int) -> list[Peer]:
    half, count = leaf_count // 2, len(peers)
    around = [peers[(at + step) % count] for step in (*range(-half, 0), *range(1, half + 1))]
    return [peer for peer in dict.fromkeys(around) if peer is not peers[at]]


def _cells(at: int, numbers: Sequence[int], peers: Sequence[Peer], bits: int) -> list[Peer]:
    own, place = numbers[at], peers[at].place
    below, above = numbers[at - 1] if at else None, numbers[at + 1] if at + 1 < len(numbers) else None
    rows = max(common_bits(own, other) // bits for other in (below, above) if other is not None) if peers[1:] else -1
    found = []
    for row in range(rows + 1):
        shift = BITS - bits * (row + 1)
        start = own >> (shift + bits) << bits
        for column in range(1 << bits):
            if column == digit(own, row, bits):
                continue
            low = bisect_left(numbers, (start + column) << shift)
            high = bisect_left(numbers, (start + column + 1) << shift)
            if low < high:
                found.append(min(peers[low:high], key=lambda peer: (math.dist(place, peer.place), peer.key)))
    return found
