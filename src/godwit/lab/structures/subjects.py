"""The structures on trial, each behind the same three verbs, with a language that counts.

What a verb returns is how many neighbors must be told of a filter because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from godwit.filters.filters import TYPE_ATTRIBUTE, Filter
from godwit.filters.language import FILTERS, Counted, Language
from godwit.lab.structures.truth import Structure
from godwit.lab.workloads import Event
from godwit.tables.forests.forest import BF, LOCAL, NRF, Forest, Pruning
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.forests.poset import Poset
from godwit.tables.nodes import Node
from godwit.tables.table import Interface

KEPT_BF = replace(BF, pruning=Pruning.NONE)
"""The balanced forest for local clients, which drops nothing."""


class Counts(Counted[Filter, Event]):
    """Counts covering tests, filters tested for events, and the constraints looked at in these tests.

    All filters here are of one type, by which the tables are partitioned, so that it is not counted.
    """

    def __init__(self, language: Language[Filter, Event] = FILTERS) -> None:
        super().__init__(language)

    def matches(self, wanted: Filter, event: Event, /) -> bool:
        self.count["matches"] += 1
        for attribute in wanted.attributes:
            self.count["predicates"] += attribute.name != TYPE_ATTRIBUTE
            if not attribute.matches(event):
                return False
        return True


class Subject:
    """A structure that takes filters as they come; `reduced` says that its interfaces tell no filter they cover."""

    def __init__(self, table: Structure, language: Counts, *, reduced: bool = False) -> None:
        self.table = table
        self.language = language
        self.reduced = reduced

    @property
    def covers(self) -> int:
        return self.language.count["covers"]

    def add(self, wanted: Filter, interface: Interface) -> int:
        self.table.add(wanted, interface)
        return 0

    def resend(self, wanted: Filter, interface: Interface) -> int:
        """Add a filter that the removal of another has uncovered."""
        return self.add(wanted, interface)

    def remove(self, wanted: Filter, interface: Interface) -> int:
        self.table.remove(wanted, interface)
        return 0


class Eliminating(Forest[Filter, Event]):
    """A non-redundant forest that knows what it spends on dropping filters of the same interface."""

    def __init__(self, language: Counts) -> None:
        super().__init__(language, NRF)
        self.counts = language.count
        self.eliminate_covers = 0

    def _eliminate(self, node: Node[Filter], interface: Interface) -> None:
        before = self.counts["covers"]
        super()._eliminate(node, interface)
        self.eliminate_covers += self.counts["covers"] - before


class HierarchicalForest(Subject):
    """The non-redundant forest below interfaces that tell no filter they cover: it need not look for one (spec 2.6)."""

    def __init__(self, language: Counts) -> None:
        self.forest = Eliminating(language)
        super().__init__(self.forest, language, reduced=True)

    def add(self, wanted: Filter, interface: Interface) -> int:
        self.forest.add(wanted, interface, uncovered=True)
        return 0

    def resend(self, wanted: Filter, interface: Interface) -> int:
        self.forest.add(wanted, interface, uncovered=True, covers_none=True)
        return 0


class PeerPoset(Subject):
    """The filters poset between peers."""

    def __init__(self, language: Counts, neighbors: Collection[Interface]) -> None:
        self.poset = RoutingPoset(language, neighbors=neighbors)
        super().__init__(self.poset, language, reduced=True)

    def add(self, wanted: Filter, interface: Interface) -> int:
        return len(self.poset.announce(wanted, interface))

    def remove(self, wanted: Filter, interface: Interface) -> int:
        return sum(map(len, self.poset.retract(wanted, interface).values()))


class PeerForest(Subject):
    """The non-redundant forest between peers, which tell no filter that they cover themselves."""

    def __init__(self, language: Counts, neighbors: Collection[Interface], *, approximate: bool) -> None:
        self.forest = RoutingForest(language, neighbors=neighbors, approximate=approximate)
        super().__init__(self.forest, language, reduced=True)
        self._told = self.forest.approximate_forwards if approximate else self.forest.forwards

    def add(self, wanted: Filter, interface: Interface) -> int:
        return self._announce(wanted, interface, covers_none=False)

    def resend(self, wanted: Filter, interface: Interface) -> int:
        return self._announce(wanted, interface, covers_none=True)

    def remove(self, wanted: Filter, interface: Interface) -> int:
        return sum(map(len, self.forest.retract(wanted, interface).values()))

    def _announce(self, wanted: Filter, interface: Interface, *, covers_none: bool) -> int:
        before = self._told(wanted)
        self.forest.add(wanted, interface, uncovered=True, covers_none=covers_none)
        return len(self._told(wanted) - before)


Makers = dict[str, Callable[[Counts], Subject]]


def for_clients() -> Makers:
    """Every client has an interface of its own, so that nothing is redundant and nothing dropped."""
    return {
        "PF": lambda language: Subject(Forest(language, LOCAL), language),
        "BF": lambda language: Subject(Forest(language, KEPT_BF), language),
        "NRF": lambda language: Subject(Forest(language, NRF), language),
        "FP": lambda language: Subject(Poset(language, pruned=False), language),
    }


def for_shared_interfaces() -> Makers:
    """Forests keep what clients gave them, or drop what is redundant (NRF); the poset of Siena always drops it."""
    return for_clients() | {
        "NRF": lambda language: Subject(Forest(language, NRF), language, reduced=True),
        "FP": lambda language: Subject(Poset(language), language, reduced=True),
    }


def for_hierarchies() -> Makers:
    return {
        "NRF": lambda language: HierarchicalForest(language),
        "FP": lambda language: Subject(Poset(language), language, reduced=True),
    }


def for_peers(neighbors: Collection[Interface]) -> Makers:
    return {
        "FP": lambda language: PeerPoset(language, neighbors),
        "NRF exact": lambda language: PeerForest(language, neighbors, approximate=False),
        "NRF approximate": lambda language: PeerForest(language, neighbors, approximate=True),
    }
