"""Forests with interfaces (spec 2.4.1-2.6): who wants a filter, and which filters of the same interface are redundant.

One class, and the published structures as rules for it:

    PF     poset-derived forest: children in order of arrival, redundant filters found on one path are dropped
    BF     balanced forest: an interface index, and trees that already hold an interface are tried first
    NRF    non-redundant forest: an interface keeps only the most general of its filters, wherever they stand
    LOCAL  a PF that drops nothing: for local clients, whose filters must outlive those that cover them
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from godwit.filters.language import Language
from godwit.tables.forests import matching
from godwit.tables.forests.kin import KeysOf
from godwit.tables.forests.ranges import RangesOf
from godwit.tables.forests.trees import Order, Trees, by_insertion, by_interface
from godwit.tables.nodes import Node
from godwit.tables.partition import Users, event_type
from godwit.tables.table import DEFAULT, F, Interface, N


class Pruning(Enum):
    """Which filters covered by another of the same interface are dropped when a filter is added."""

    NONE = "none"
    PATH = "path"
    ALL = "all"


@dataclass(frozen=True)
class Rules:
    """What distinguishes one published forest from another.

    `pure` keeps siblings incomparable on every level, not only among the roots. `strip` is elimination in del: a tree
    that moves loses the interfaces of its new ancestors, without which Definition 3.10 does not survive a removal; it
    forgets filters, so it is for neighbors that send uncovered filters again, never for local clients.
    """

    order: Order = by_insertion
    indexed: bool = False
    pruning: Pruning = Pruning.PATH
    pure: bool = True
    strip: bool = False

    def __post_init__(self) -> None:
        if self.pruning is Pruning.ALL and not self.indexed:
            raise ValueError("forest: pruning all redundant filters finds them through the index; set indexed=True")


PF = Rules()
BF = Rules(order=by_interface, indexed=True)
NRF = Rules(order=by_interface, indexed=True, pruning=Pruning.ALL)
LOCAL = Rules(pruning=Pruning.NONE)


class Forest(Trees[F, N]):
    """Filters in trees under the rules given, and the root set at hand at any time.

    Give `keys` (for filters of this package, `kin.demands`) where filters are many and differ in their attributes, and
    `ranges` (`ranges.ranges`) where they differ in the ranges of them.
    """

    def __init__(
        self,
        language: Language[F, N] = DEFAULT,
        rules: Rules = PF,
        *,
        keys: KeysOf | None = None,
        ranges: RangesOf | None = None,
    ) -> None:
        super().__init__(language, order=rules.order, pure=rules.pure, indexed=rules.indexed, keys=keys, ranges=ranges)
        self.rules = rules
        self._users = Users()

    def add(self, wanted: F, interface: Interface, /, *, uncovered: bool = False, covers_none: bool = False) -> bool:
        """Note that the interface wants it.

        Where redundant filters are dropped, a caller who knows better saves the search for them: `uncovered` says that
        no filter of this interface covers the new one, `covers_none` that it covers none of them.
        """
        node = self._nodes.get(wanted)
        if node is not None and interface in node.interfaces:
            return False
        if not uncovered and self._redundant(wanted, interface, node):
            return False
        if node is None:
            on_path = self.rules.pruning is Pruning.PATH and not uncovered
            node = self._grow(wanted, interface, unless=interface if on_path else None)
            if node is None:
                return False
        else:
            node.take(interface)
        self._users.add(node.kind, interface)
        if not covers_none:
            self._eliminate(node, interface)
        return True

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        node = self._nodes.get(wanted)
        if node is None or interface not in node.interfaces:
            return False
        self._release([node], interface)
        return True

    def match(self, event: N, /, expired: matching.Expired | None = None) -> set[Interface]:
        """The interfaces that want the event; with a budget perhaps too many, never too few."""
        kind = event_type(event)
        return matching.match(self._roots.near(kind), event, self.language, self._users.reach(kind), expired)

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        node = self._nodes.get(wanted)
        return frozenset(node.interfaces) if node is not None else frozenset()

    def _redundant(self, wanted: F, interface: Interface, node: Node[F] | None) -> bool:
        """Whether the interface already has something wider; on a path that is only known once the node has a place."""
        if self.rules.pruning is Pruning.ALL:
            return self._covered_by_same(wanted, interface)
        if self.rules.pruning is Pruning.PATH and node is not None:
            return any(interface in above.interfaces for above in node.ancestors())
        return False

    def _covered_by_same(self, wanted: F, interface: Interface) -> bool:
        stack = self.tops(self.language.type_of(wanted))
        while stack:
            node = stack.pop()
            if node.uses(interface) and self.language.covers(node.filter, wanted):
                # What is no wider than the new filter is replaced by it: what a neighbor tells last, it will withdraw.
                if interface in node.interfaces and not self.language.covers(wanted, node.filter):
                    return True
                stack.extend(node.children)
        return False

    def _eliminate(self, node: Node[F], interface: Interface) -> None:
        """Drop what the interface no longer needs because it has this node."""
        if self.rules.pruning is Pruning.PATH:
            self._release([k for k in node.subtree() if k is not node and interface in k.interfaces], interface)
        elif self.rules.pruning is Pruning.ALL:
            self._release(self._covered_of_same(node, interface), interface)

    def _covered_of_same(self, node: Node[F], interface: Interface) -> list[Node[F]]:
        """Below a covered node all is covered, so it is taken without tests."""
        found = []
        stack = [(root, False) for root in self.tops(node.kind)]
        while stack:
            other, known = stack.pop()
            if not other.uses(interface):
                continue
            known = known or other is node or self.language.covers(node.filter, other.filter)
            if known and other is not node and interface in other.interfaces:
                found.append(other)
            stack.extend((child, known) for child in other.children)
        return found

    def _release(self, nodes: list[Node[F]], interface: Interface) -> None:
        for node in nodes:
            self._forget(node, interface)
        self._clear([node for node in nodes if not node.interfaces])

    def _forget(self, node: Node[F], interface: Interface) -> None:
        node.release(interface)
        self._users.remove(node.kind, interface)

    def _clear(self, emptied: list[Node[F]]) -> None:
        """Take out nodes that nobody wants; stripping what moves may empty others."""
        for node in self._uproot(emptied):
            if self.rules.strip and self._nodes.get(node.filter) is node:
                self._strip(node)

    def _strip(self, moved: Node[F]) -> None:
        above: set[Interface] = set().union(*(node.interfaces for node in moved.ancestors()))
        emptied = []
        stack = [(moved, above)]
        while stack:
            node, held = stack.pop()
            for interface in sorted(node.interfaces & held):
                self._forget(node, interface)
            if not node.interfaces:
                emptied.append(node)
            stack.extend((child, held | node.interfaces) for child in node.children)
        self._clear(emptied)
