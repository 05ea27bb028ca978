"""Which brokers keep a link with one another, where all with all would be too many (docs/broker.md, "Links").

Brokers stand on a circle, in the order of their names' hashes. Each keeps links with its `NEAR` nearest on either side
that can be reached, and with as many others, drawn by lot, as make the way to everybody short:

- *Near*: whoever of the living is near me has me near it, so that the links of the living contain a circle in which
  each is also linked with the next but one. Take any one broker away and the rest is connected; take more away, one
  after the other, and whoever stood beside them is linked anew before the next one goes.
- *Far*: each pair has a lot, the same for both, and everybody prefers those with the highest. So both ends of most
  links want them. So 64 brokers are at most three links from one another.
- *Needed*: whoever has fewer than `NEEDED` links, or cannot reach some of those it knows of, may be cut off without the
  one it asks for. Nobody refuses that, whatever it has; who has asked so lets go of it as soon as it can do without.

All of it is decided by each broker from what it knows itself. Nobody need agree with anybody.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Set
from functools import lru_cache
from hashlib import blake2b

from godwit.protocols.host import NodeId

NEAR = 2
"""On either side of the circle."""

LINKS_LEAST = 8
"""Up to so many links a broker asks for; it has fewer only where there are fewer brokers."""

LINKS_MAX = 16
"""Beyond so many it refuses what nobody needs. Where all ask at once each gets some twelve: whoever comes later must
find room."""

NEEDED = 2

CIRCLE = 2**64


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


@lru_cache(maxsize=4_096)
def position(name: NodeId) -> int:
    """Where a broker stands on the circle."""
    return _hash(name)


@lru_cache(maxsize=65_536)
def lot(one: NodeId, other: NodeId) -> int:
    """How much two brokers want a link with one another; the same for both."""
    return _hash("\0".join(sorted((one, other))))


def clockwise(me: NodeId, names: Iterable[NodeId]) -> list[NodeId]:
    """The others, as they follow on the circle."""
    start = position(me)
    return sorted((name for name in names if name != me), key=lambda name: ((position(name) - start) % CIRCLE, name))


def near(me: NodeId, names: Iterable[NodeId]) -> set[NodeId]:
    """The nearest of them on either side."""
    order = clockwise(me, names)
    return {*order[:NEAR], *order[-NEAR:]}


def distance(one: NodeId, other: NodeId) -> int:
    """How far two brokers are from one another on the circle, the shorter way round."""
    there = (position(one) - position(other)) % CIRCLE
    return min(there, CIRCLE - there)


class Wanted:
    """Whom `me` wants links with: of those that are `known`, not counting on those that are `away`: that did not answer
    lately, or had no room. `lent` are links that it has asked for out of need, and means to give back."""

    def __init__(
        self,
        me: NodeId,
        known: Collection[NodeId],
        up: Collection[NodeId],
        away: Container[NodeId] = (),
        lent: Container[NodeId] = (),
    ) -> None:
        self.me = me
        self.up = frozenset(up)
        order = clockwise(me, {*known, *up})
        self.present = {name for name in order if name in self.up or name not in away}
        self.near = {*self._reach(order), *self._reach(reversed(order))}
        """The nearest that are present, and those between that are not: they are nearer once they are back."""
        self.own = {name for name in self.up if name in self.near or name not in lent}

    def _reach(self, order: Iterable[NodeId]) -> Iterator[NodeId]:
        found = 0
        for name in order:
            yield name
            found += name in self.present
            if found == NEAR:
                return

    def missing(self) -> list[NodeId]:
        """Whom to dial now, the nearest first."""
        near = [name for name in clockwise(self.me, self.near) if name not in self.up]
        had = len(self.own | (self.near & self.present))
        others = sorted(self.present - self.up - self.near, key=lambda name: lot(self.me, name), reverse=True)
        return near + others[: max(0, LINKS_LEAST - had)]

    @property
    def settled(self) -> bool:
        """All links that it should have are up, those not counted that were only lent."""
        return self.near & self.present <= self.up and len(self.own) >= min(LINKS_LEAST, len(self.present))

    def surplus(self) -> set[NodeId]:
        """Lent links that it can do without."""
        return set(self.up - self.own) if self.settled else set()


def has_room(me: NodeId, up: Set[NodeId], peer: NodeId) -> bool:
    """Whether a broker that wants a link gets it, though it does not need it."""
    return len(up) < LINKS_MAX or peer in near(me, {*up, peer})


def excess(me: NodeId, up: Mapping[NodeId, bool]) -> list[NodeId]:
    """Links to end, as there are too many; the values say which are needed."""
    kept = near(me, up)
    spare = sorted((name for name, needed in up.items() if not needed and name not in kept), key=lambda n: lot(me, n))
    return spare[: max(0, len(up) - LINKS_MAX)]
