"""To whom a broker tells what (spec 2.1, 2.7.1, 2.8, 2.11.6).

A scope answers three questions about a filter or an event: where adverts go, where subscriptions go, and which
neighbors get an event whether they want it or not. Everything else about routing is the same in all of them: equation
3.3 only takes away neighbors from equation 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from godwit.filters.filters import TYPE_ATTRIBUTE, Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.host import LocalError, NodeId
from godwit.protocols.topology.mesh import lot
from godwit.tables.table import Interface

Ways = frozenset[Interface]
Offered = Callable[[Filter], Ways]
"""The interfaces that have advertised something that may meet this filter."""

NOWHERE: Ways = frozenset()


class Scope(Protocol):
    """`told` are the neighbors that hear of subscriptions at all; None as ways means all of them."""

    advertising: bool
    told: Ways

    def adverts(self, offered: Filter) -> Ways | None: ...
    def subscriptions(self, wanted: Filter, offered: Offered) -> Ways | None: ...
    def events(self, kind: str) -> Ways:
        """The neighbors that get every event of this type."""


class Everywhere:
    """Subscription semantics between peers: subscriptions go everywhere, events back along them."""

    advertising = False

    def __init__(self, neighbors: Iterable[NodeId]) -> None:
        self.told = frozenset(neighbors)

    def adverts(self, offered: Filter) -> Ways | None:
        return NOWHERE

    def subscriptions(self, wanted: Filter, offered: Offered) -> Ways | None:
        return None

    def events(self, kind: str) -> Ways:
        return NOWHERE


class Flooded(Everywhere):
    """Events go everywhere: the oracle of all others."""

    def events(self, kind: str) -> Ways:
        return self.told


class Advertised(Everywhere):
    """Advertisement semantics between peers: adverts go everywhere, subscriptions back along those that they meet."""

    advertising = True

    def adverts(self, offered: Filter) -> Ways | None:
        return None

    def subscriptions(self, wanted: Filter, offered: Offered) -> Ways | None:
        return offered(wanted)


class Hierarchical(Everywhere):
    """A master above, slaves and clients below: subscriptions go up, events go up always and down where wanted."""

    def __init__(self, master: NodeId | None) -> None:
        super().__init__([master] if master is not None else [])

    def events(self, kind: str) -> Ways:
        return self.told


class Rendezvous:
    """Adverts and subscriptions of a type meet at the broker that its name hashes to (spec 2.11.6).

    With `attributes` subscriptions also follow adverts that they met on the way, and events follow subscriptions only.
    Without, the events of a type all pass its rendezvous point.

    `toward` names the next broker on the way to another one; the overlay is static, as the source assumes.
    """

    advertising = True

    def __init__(
        self,
        name: NodeId,
        neighbors: Iterable[NodeId],
        brokers: Iterable[NodeId],
        toward: Mapping[NodeId, NodeId],
        *,
        attributes: bool = True,
    ) -> None:
        self.name = name
        self.told = frozenset(neighbors)
        self.brokers = sorted(brokers)
        self.toward = toward
        self.attributes = attributes

    def adverts(self, offered: Filter) -> Ways | None:
        return self._up(offered)

    def subscriptions(self, wanted: Filter, offered: Offered) -> Ways | None:
        return self._up(wanted) | offered(wanted) if self.attributes else self._up(wanted)

    def events(self, kind: str) -> Ways:
        return NOWHERE if self.attributes else self.up(kind)

    def up(self, kind: str) -> Ways:
        """The next broker on the way to where a type meets; nobody at that place itself."""
        place = self.place(kind)
        return NOWHERE if place == self.name else frozenset({self.toward[place]})

    def place(self, kind: str) -> NodeId:
        return max(self.brokers, key=lambda broker: lot(kind, broker))

    def _up(self, wanted: Filter) -> Ways:
        return self.up(kind_of(wanted))


def kind_of(wanted: Filter) -> str:
    """The type that a filter names; a network with rendezvous points cannot do without it."""
    kind = wanted.type
    if kind is None:
        raise LocalError(f"{wanted} names no event type; with rendezvous points it needs one, as in type = 'reading'")
    return kind


def lifted(wanted: Filter, kind: str) -> Filter:
    """The same filter for another type: how an advert reads from the rendezvous point of a supertype."""
    kept = [one for one in wanted if one.name != TYPE_ATTRIBUTE]
    return filter_of(attribute(TYPE_ATTRIBUTE, equ(kind)), *kept)
