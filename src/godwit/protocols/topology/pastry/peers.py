"""What a node keeps of others: the leaf set, the routing table and the neighbor list (spec data-gathering 2.2, 2.14).

None of them ever asks anybody; `node.py` fills them from messages alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import msgspec

from godwit.protocols.host import NodeId
from godwit.protocols.topology.pastry.keys import BITS, RING, Key, apart, common_bits, digit, number_of


class Peer(msgspec.Struct, frozen=True, array_like=True):
    """A node as others know it: its address, its name on the ring and where it stands."""

    name: NodeId
    key: Key
    place: tuple[float, ...] = ()

    @property
    def number(self) -> int:
        return number_of(self.key)


class Known:
    """A peer with its number worked out once."""

    __slots__ = ("far", "number", "peer")

    def __init__(self, peer: Peer, place: tuple[float, ...]) -> None:
        self.peer = peer
        self.number = peer.number
        self.far = math.dist(place, peer.place) if place and peer.place else 0.0


class LeafSet:
    """The L/2 nearest nodes on either side of this one."""

    def __init__(self, own: int, size: int) -> None:
        self.own = own
        self.size = size
        self._members: dict[int, Known] = {}
        self._upwards: list[int] = []

    def __contains__(self, number: int) -> bool:
        return number in self._members

    def __len__(self) -> int:
        return len(self._members)

    def members(self) -> list[Known]:
        """Going upwards from this node and once around."""
        return [self._members[number] for number in self._upwards]

    def covers(self, number: int) -> bool:
        """Whether the node in charge of this key is sure to be among the leaves; with few nodes it always is."""
        if len(self._members) < self.size:
            return True
        if not self.size:
            return False
        half = self.size // 2
        first, last = self._upwards[-half], self._upwards[half - 1]
        return (number - first) % RING <= (last - first) % RING

    def closest(self, number: int) -> Known | None:
        """The leaf in charge of this key; None if it is this node. Of two equally near the longer common prefix wins,
        so that a region without its broker stays with its neighbor, and then the smaller name."""
        best = min((self.own, *self._members), key=lambda one: preference(one, number))
        return self._members.get(best)

    def insert(self, known: Known) -> bool:
        """Whether it is a leaf now and was none before."""
        number = known.number
        if number == self.own or not self.size:
            return False
        was_there = number in self._members
        self._members[number] = known
        if not was_there:
            self._settle()
        return not was_there and number in self._members

    def remove(self, number: int, others: Iterable[Known] = ()) -> bool:
        """`others` fill the gap until the true successor is known: with fewer than L leaves this node would take its
        ring for a small one, and itself for near to every key."""
        if self._members.pop(number, None) is None:
            return False
        self._members.update((other.number, other) for other in others if other.number not in (self.own, number))
        self._settle()
        return True

    def _settle(self) -> None:
        self._upwards = sorted(self._members, key=lambda one: (one - self.own) % RING)
        if len(self._upwards) > self.size:
            half = self.size // 2
            self._upwards = self._upwards[:half] + self._upwards[-half:]
            self._members = {number: self._members[number] for number in self._upwards}


def preference(number: int, key: int) -> tuple[int, int, int]:
    """Who is in charge of a key: the smallest of these over all nodes."""
    return apart(number, key), -common_bits(number, key), number


class RoutingTable:
    """Row r, column d: a node that shares r digits with this one and has digit d next. Of several, the nearest."""

    def __init__(self, own: int, bits: int) -> None:
        if bits not in (1, 2, 4):
            raise ValueError(f"a digit has 1, 2 or 4 bits, not {bits}")
        self.own = own
        self.bits = bits
        self._cells: dict[tuple[int, int], Known] = {}

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Known]:
        return iter(self._cells.values())

    def position(self, number: int) -> tuple[int, int]:
        row = common_bits(self.own, number) // self.bits
        return row, digit(number, row, self.bits)

    def get(self, row: int, column: int) -> Known | None:
        return self._cells.get((row, column))

    def row(self, row: int) -> list[Known]:
        columns = range(1 << self.bits)
        return [known for column in columns if (known := self._cells.get((row, column))) is not None]

    def insert(self, known: Known) -> bool:
        """Into its cell, unless that has a nearer node."""
        if known.number == self.own:
            return False
        position = self.position(known.number)
        there = self._cells.get(position)
        if there is not None and there.number != known.number and there.far <= known.far:
            return False
        self._cells[position] = known
        return True

    def remove(self, number: int) -> bool:
        position = self.position(number)
        there = self._cells.get(position)
        if there is None or there.number != number:
            return False
        del self._cells[position]
        return True

    def drop(self, keep: Callable[[int, int], bool]) -> None:
        """Leave holes, as incomplete tables have them."""
        self._cells = {position: known for position, known in self._cells.items() if keep(*position)}


class NeighborList:
    """The nodes that stand nearest; they help to mend the other tables and never carry anything."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._members: dict[int, Known] = {}

    def insert(self, known: Known) -> None:
        self._members[known.number] = known
        if len(self._members) > self.size:
            del self._members[max(self._members.values(), key=lambda one: (one.far, one.number)).number]

    def remove(self, number: int) -> None:
        self._members.pop(number, None)

    def nearest(self, count: int) -> list[Known]:
        return sorted(self._members.values(), key=lambda one: (one.far, one.number))[:count]


def with_prefix(known: Iterator[Known], prefix: str) -> list[Known]:
    """Those whose bits begin like this, the nearest first."""
    shift, wanted = BITS - len(prefix), int(prefix, 2) if prefix else 0
    found = {one.number: one for one in known if one.number >> shift == wanted}
    return sorted(found.values(), key=lambda one: (one.far, one.number))
