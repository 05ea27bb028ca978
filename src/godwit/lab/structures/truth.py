"""What must hold after each phase of every experiment (spec 4.1), decided without the structure that is on trial."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.lab.structures.settings import Setting
from godwit.lab.workloads import Event, Subscription
from godwit.tables.forests.forest import Forest
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset, others
from godwit.tables.forests.poset import Poset
from godwit.tables.merging.merging import minimal_cover
from godwit.tables.table import Interface

Structure = Forest[Filter, Event] | Poset[Filter, Event]


class ViolationError(Exception):
    """A structure is wrong: the message says in which setting, which structure, and how."""


class Truth:
    """What is so at one moment, whatever a structure says."""

    def __init__(self, setting: Setting, wanted: Iterable[Subscription], events: Sequence[Event]) -> None:
        self.setting = setting
        self.users: dict[Filter, set[Interface]] = {}
        for one in wanted:
            self.users.setdefault(one.wanted, set()).add(one.interface)
        self.roots = set(minimal_cover(FILTERS, self.users))
        self._wide_first = [*self.roots, *(one for one in self.users if one not in self.roots)]
        self._told: dict[Filter, frozenset[Interface]] = {}
        self.events = events
        self.interested = [interested(self.users, event) for event in events]

    def check(self, name: str, table: Structure, held: Collection[Subscription]) -> None:
        """The structure holds this, its root set is exact, and no event reaches anybody wrong or misses anybody."""
        found = {Subscription(f, interface) for f in table for interface in table.interfaces(f)}
        self._equal(name, "entries", found, set(held))
        self._equal(name, "root set", set(table.roots()), self.roots)
        for event, right in zip(self.events, self.interested, strict=True):
            self._equal(name, f"interfaces for {event}", table.match(event), right)
        for lower, above in edges(table):
            if not FILTERS.covers(above, lower):
                self.fail(name, f"{lower} is below {above}, which does not cover it")
        self._equal(name, "filters below the roots", reachable(table), set(table))

    def check_forwards(self, name: str, table: RoutingForest[Filter, Event] | RoutingPoset[Filter, Event]) -> None:
        """Each neighbor is told what a naive computation says; approximately, that and perhaps more."""
        for one in table:
            right = self._forwards(one)
            self._equal(name, f"forwards set of {one}", table.forwards(one), right)
            if isinstance(table, RoutingForest) and not table.approximate_forwards(one) >= right:
                self.fail(name, f"approximately, {one} is not told to all of {sorted(right)}")

    def check_propagated(self, name: str, propagated: Iterable[Filter], *, perfect: bool) -> None:
        """Mergers cover every root; perfect ones accept no event more."""
        told = list(propagated)
        for root in self.roots:
            if not any(FILTERS.covers(one, root) for one in told):
                self.fail(name, f"nothing that is propagated covers the root {root}")
        for event, right in zip(self.events, self.interested, strict=True):
            if perfect and any(FILTERS.matches(one, event) for one in told) != bool(right):
                self.fail(name, f"what is propagated is wrong about {event}")

    def fail(self, name: str, what: str) -> NoReturn:
        raise ViolationError(f"{self.setting}: {name}: {what}")

    def _forwards(self, wanted: Filter) -> frozenset[Interface]:
        if wanted not in self._told:
            self._told[wanted] = forwards(wanted, self.users, self._wide_first, self.setting.neighbors)
        return self._told[wanted]

    def _equal(self, name: str, what: str, found: Collection[object], right: Collection[object]) -> None:
        if found != right:
            extra, missing = (len([one for one in a if one not in b]) for a, b in ((found, right), (right, found)))
            self.fail(name, f"{what}: {extra} too many, {missing} missing, {len(right)} expected")


def interested(users: Mapping[Filter, Collection[Interface]], event: Event) -> set[Interface]:
    """The naive matcher."""
    return {interface for wanted, own in users.items() if wanted.matches(event) for interface in own}


def forwards(
    wanted: Filter,
    users: Mapping[Filter, set[Interface]],
    wide_first: Iterable[Filter],
    neighbors: frozenset[Interface],
) -> frozenset[Interface]:
    """The closed form of spec 2.3 for filters that all differ in meaning: what is wider, and wanted by others, is told.

    Once the wider ones are wanted by two, nobody is told of this one; the search ends there, soonest with the widest
    filters first.
    """
    above: set[Interface] = set()
    for wider in wide_first:
        if wider.covers(wanted) and wider != wanted:
            above |= users[wider]
            if len(above) > 1:
                return frozenset()
    told = others(neighbors, users[wanted])
    return told & above if above else told


def edges(table: Structure) -> Iterable[tuple[Filter, Filter]]:
    """Each filter with each of those directly above it."""
    if isinstance(table, Poset):
        return ((lower, upper) for lower in table for upper in table.predecessors(lower))
    return ((lower, upper) for lower in table if (upper := table.parent(lower)) is not None)


def reachable(table: Structure) -> set[Filter]:
    below = table.successors if isinstance(table, Poset) else table.children
    found: set[Filter] = set()
    stack = table.roots()
    while stack:
        one = stack.pop()
        if one not in found:
            found.add(one)
            stack += below(one)
    return found
