"""The tables of one broker in a routing network: what is offered, what is wanted, and where an event goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS, Language
from godwit.filters.predicates import Values
from godwit.protocols.host import LocalError, NodeId
from godwit.protocols.routing.covering.configurations import Configuration, inside, outside
from godwit.protocols.routing.covering.scopes import Scope, Ways
from godwit.protocols.routing.covering.statements import Statements, Unlimited
from godwit.protocols.routing.covering.strategies import Identical, Strategy
from godwit.tables.matching.twophase import CLIENTS
from godwit.tables.merging.merging import Update
from godwit.tables.table import Interface

FilterLanguage = Language[Filter, Values]
UNREDUCED = (Strategy.FLOODING, Strategy.SIMPLE)
"""Strategies in which each client is an interface of its own."""


class Change(msgspec.Struct):
    """What one neighbor must be told at once."""

    adverts: Update[Filter] = Update()
    subscriptions: Update[Filter] = Update()


Changes = dict[NodeId, Change]


class Book:
    """Who has said what of one kind, filters offered or filters wanted, and what neighbors are told of it."""

    def __init__(
        self,
        statements: Statements[Filter, Values],
        neighbors: Iterable[NodeId],
        configuration: Configuration,
        language: FilterLanguage,
    ) -> None:
        self.statements = statements
        self.table = statements.forwarder.table
        self._pending: list[Update[Filter]] = []
        self._held: dict[Interface, dict[Filter, None]] = {}
        self._local = (
            None
            if configuration.strategy in UNREDUCED
            else inside(configuration, self.table, neighbors, language, self._pending.append)
        )

    def add(self, said: Filter, client: Interface) -> dict[Interface, Update[Filter]]:
        held = self._held.setdefault(client, {})
        if said in held:
            return {}
        held[said] = None
        if self._local is None:
            return self.statements.apply(Update(added=(said,)), client)
        self._local.add(said, client)
        return self._tell()

    def remove(self, said: Filter, client: Interface) -> dict[Interface, Update[Filter]]:
        if said not in self._held.get(client, {}):
            raise LocalError(f"{client} cannot withdraw {said}: it has not said it")
        del self._held[client][said]
        if self._local is None:
            return self.statements.apply(Update(removed=(said,)), client)
        self._local.remove(said, client)
        return self._tell()

    def of(self, client: Interface) -> list[Filter]:
        return list(self._held.get(client, ()))

    def clients(self, values: Values) -> set[Interface]:
        found = self.table.match(values) if self._local is None else self._local.match(values)
        return {interface for interface in found if interface in self._held}

    def _tell(self) -> dict[Interface, Update[Filter]]:
        pending, self._pending[:] = list(self._pending), []
        return self.statements.apply(pending[0], CLIENTS) if pending else {}


class Router:
    """Every change returns what neighbors must be told; nothing is told by itself.

    Clients are known by names that are no broker's. `neighbors` are all brokers next to this one, also those that the
    scope tells nothing, as slaves are.
    """

    def __init__(
        self,
        neighbors: Iterable[NodeId],
        scope: Scope,
        configuration: Configuration = Configuration(),  # noqa: B008
        language: FilterLanguage = FILTERS,
    ) -> None:
        self.neighbors = frozenset(neighbors)
        self.scope = scope
        self.language: FilterLanguage = Identical(language) if configuration.strategy is Strategy.IDENTITY else language
        self.wanted = self._book(configuration, limited=scope.advertising, allowed=self._ways)
        self.offered = self._book(Configuration(), limited=True, allowed=scope.adverts)

    def _book(self, configuration: Configuration, *, limited: bool, allowed: Any) -> Book:
        forwarder = outside(configuration, self.scope.told, self.language)
        statements = Statements(forwarder, allowed) if limited else Unlimited(forwarder)
        return Book(statements, self.neighbors, configuration, self.language)

    def check(self, said: Filter) -> None:
        """Raise `LocalError` for a filter that this network has no way for; it is called before anything is changed."""
        self.scope.adverts(said)

    def subscribe(self, client: Interface, wanted: Filter) -> Changes:
        self.check(wanted)
        return self._changes({}, self.wanted.add(wanted, client))

    def unsubscribe(self, client: Interface, wanted: Filter) -> Changes:
        return self._changes({}, self.wanted.remove(wanted, client))

    def advertise(self, client: Interface, offered: Filter) -> Changes:
        self.check(offered)
        return self._changes(self.offered.add(offered, client), self.wanted.statements.refresh())

    def unadvertise(self, client: Interface, offered: Filter) -> Changes:
        return self._changes(self.offered.remove(offered, client), self.wanted.statements.refresh())

    def hear(self, neighbor: NodeId, adverts: Update[Filter], subscriptions: Update[Filter]) -> Changes:
        """What a neighbor has said at once: adverts first, or what is wanted of them would be dropped meanwhile."""
        offered = self.offered.statements.apply(adverts, neighbor) if adverts else {}
        if subscriptions:
            return self._changes(offered, self.wanted.statements.apply(subscriptions, neighbor))
        return self._changes(offered, self.wanted.statements.refresh() if adverts else {})

    def note(self, neighbor: NodeId, filters: Iterable[Filter], *, adverts: bool = False) -> Changes:
        """Take these for said by a neighbor, which will take them for said."""
        said, nothing = Update[Filter](added=tuple(filters)), Update[Filter]()
        return self.hear(neighbor, said, nothing) if adverts else self.hear(neighbor, nothing, said)

    def replace(self, neighbor: NodeId, filters: Iterable[Filter]) -> Changes:
        """All that a slave wants from now on."""
        return self._changes({}, self.wanted.statements.forwarder.replace(filters, neighbor))

    def ways(self, values: Values, kind: str, source: Interface) -> set[NodeId]:
        """The neighbors that an event goes to."""
        wanting = self.wanted.table.match(values) & self.neighbors
        return (wanting | self.scope.events(kind)) - {source}

    def clients(self, values: Values) -> set[Interface]:
        return self.wanted.clients(values)

    def offers(self, wanted: Filter) -> Ways:
        """The interfaces that have advertised something that may meet this."""
        table, found = self.offered.table, set[Interface]()
        for offered in table:
            if self.language.overlaps(offered, wanted):
                found |= table.interfaces(offered)
        return frozenset(found)

    def _ways(self, wanted: Filter) -> Ways | None:
        return self.scope.subscriptions(wanted, self.offers)

    def _changes(
        self, adverts: dict[Interface, Update[Filter]], subscriptions: dict[Interface, Update[Filter]]
    ) -> Changes:
        return {
            neighbor: Change(adverts.get(neighbor, Update()), subscriptions.get(neighbor, Update()))
            for neighbor in sorted({*adverts, *subscriptions})
        }
