"""Forests derived from the covering order (spec 2.4-2.6): each filter hangs under one that covers it.

One class, and the published structures as rules for it:

    PF     poset-derived forest: children in order of arrival, redundant filters found on one path are dropped
    BF     balanced forest: an interface index, and trees that already hold an interface are tried first
    NRF    non-redundant forest: an interface keeps only the most general of its filters, wherever they stand
    LOCAL  a PF that drops nothing: for local clients, whose filters must outlive those that cover them
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic

from godwit.filters.language import Language
from godwit.tables import matching
from godwit.tables.nodes import Node
from godwit.tables.partition import Partition, Users, event_type
from godwit.tables.table import DEFAULT, F, Interface, N

Order = Callable[[Node[Any], Iterable[Node[Any]]], Iterable[Node[Any]]]
"""Given a node to place and the children it could go under, the order in which these are tried."""


def by_insertion(placed: Node[F], children: Iterable[Node[F]]) -> Iterable[Node[F]]:
    return children


def by_interface(placed: Node[F], children: Iterable[Node[F]]) -> Iterable[Node[F]]:
    """Trees that hold an interface of the new node first: the 1-bit balancing of spec 2.5. Needs the index."""
    return sorted(children, key=lambda child: placed.interfaces.isdisjoint(child.index or ()))


def by_size(placed: Node[F], children: Iterable[Node[F]]) -> Iterable[Node[F]]:
    return sorted(children, key=lambda child: child.size)


def by_rate(rate_of: Callable[[F], float | None]) -> Order:
    """The closest rate limit first (spec 2.9.1); trees without a limit come last, in order of arrival."""

    def order(placed: Node[F], children: Iterable[Node[F]]) -> Iterable[Node[F]]:
        wanted = rate_of(placed.filter)
        if wanted is None:
            return children
        return sorted(children, key=lambda child: _distance(wanted, rate_of(child.filter)))

    return order


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
    forgets filters, so it is for neighbours that send uncovered filters again, never for local clients.
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


class Forest(Generic[F, N]):
    """Filters in trees under the rules given, and the root set at hand at any time."""

    def __init__(self, language: Language[F, N] = DEFAULT, rules: Rules = PF) -> None:
        self.language = language
        self.rules = rules
        self._nodes: dict[F, Node[F]] = {}
        self._roots: Partition[Node[F]] = Partition()
        self._users = Users()
        self._births = 0

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
            node = self._grow(wanted, interface, on_path=self.rules.pruning is Pruning.PATH and not uncovered)
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

    def roots(self) -> list[F]:
        return [node.filter for node in self._roots]

    def roots_of(self, kind: str | None) -> list[F]:
        """The roots of exactly this type (spec 1.4: Get-Roots)."""
        return [node.filter for node in self._roots.of(kind)]

    def tops(self, kind: str | None) -> list[Node[F]]:
        """The root nodes that something of this type may have to do with; all of them where the type is open."""
        return list(self._roots.near(kind))

    def is_root(self, wanted: F) -> bool:
        node = self._nodes.get(wanted)
        return node is not None and node.parent is None

    def node(self, wanted: F) -> Node[F]:
        """Where the filter stands: to look at, not to change."""
        return self._nodes[wanted]

    def parent(self, wanted: F) -> F | None:
        parent = self._nodes[wanted].parent
        return None if parent is None else parent.filter

    def children(self, wanted: F) -> list[F]:
        """The filters directly below; when a root goes, the new roots are among its children."""
        return [node.filter for node in self._nodes[wanted].children]

    def coverers(self, wanted: F) -> list[F]:
        """All other filters here that cover it, whether it is here itself or not."""
        found = []
        stack = list(self._roots.near(self.language.type_of(wanted)))
        while stack:
            node = stack.pop()
            if self.language.covers(node.filter, wanted):
                found.append(node.filter)
                stack.extend(node.children)
        return [other for other in found if other != wanted]

    def covered(self, wanted: F) -> list[F]:
        """All other filters here that it covers, whether it is here itself or not."""
        found: list[Node[F]] = []
        stack = list(self._roots.near(self.language.type_of(wanted)))
        while stack:
            node = stack.pop()
            if self.language.covers(wanted, node.filter):
                found.extend(node.subtree())
            else:
                stack.extend(node.children)
        return [node.filter for node in found if node.filter != wanted]

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        node = self._nodes.get(wanted)
        return frozenset(node.interfaces) if node is not None else frozenset()

    def __iter__(self) -> Iterator[F]:
        return iter(list(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._nodes

    def _redundant(self, wanted: F, interface: Interface, node: Node[F] | None) -> bool:
        """Whether the interface already has something wider; on a path that is only known once the node has a place."""
        if self.rules.pruning is Pruning.ALL:
            return self._covered_by_same(wanted, interface)
        if self.rules.pruning is Pruning.PATH and node is not None:
            return any(interface in above.interfaces for above in node.ancestors())
        return False

    def _covered_by_same(self, wanted: F, interface: Interface) -> bool:
        stack = list(self._roots.near(self.language.type_of(wanted)))
        while stack:
            node = stack.pop()
            if node.uses(interface) and self.language.covers(node.filter, wanted):
                # What is no wider than the new filter is replaced by it: what a neighbour tells last, it will withdraw.
                if interface in node.interfaces and not self.language.covers(wanted, node.filter):
                    return True
                stack.extend(node.children)
        return False

    def _grow(self, wanted: F, interface: Interface, *, on_path: bool) -> Node[F] | None:
        node = Node(wanted, self.language.type_of(wanted), self._births, indexed=self.rules.indexed)
        node.interfaces.add(interface)
        if not self._place(node, None, unless=interface if on_path else None):
            return None
        self._births += 1
        self._nodes[wanted] = node
        return node

    def _place(self, node: Node[F], parent: Node[F] | None, unless: Interface | None = None) -> bool:
        """Algorithm 3: descend to where it belongs and hang it there with all it carries.

        False, and nothing done, where a node on the way down already has the interface `unless`. What slides below a
        node that carries a tree of its own is placed into that tree in turn; chains of filters make this deep, hence
        no recursion.
        """
        pending = [(node, parent)]
        while pending:
            node, parent = pending.pop()
            seat = self._seat(node, parent, unless)
            if seat is None:
                return False
            parent, small = seat
            fresh = not node.children
            self._attach(node, parent)
            for child in small:
                self._detach(child)
                if fresh:
                    self._attach(child, node)
            if not fresh:
                pending.extend((child, node) for child in reversed(small))
        return True

    def _seat(
        self, node: Node[F], parent: Node[F] | None, unless: Interface | None
    ) -> tuple[Node[F] | None, list[Node[F]]] | None:
        """Where the node belongs, at or below `parent`, and which of the children there belong below it."""
        while True:
            big, small = self._compare(node, parent)
            if big is None:
                return parent, small
            if unless in big.interfaces:
                return None
            parent = big

    def _compare(self, node: Node[F], parent: Node[F] | None) -> tuple[Node[F] | None, list[Node[F]]]:
        """The first child that covers the node, or else all children that it covers."""
        children = self._roots.near(node.kind) if parent is None else parent.children
        small: list[Node[F]] = []
        for child in self.rules.order(node, children):
            if not small and self._over(child, node):
                return child, []
            if self.language.covers(node.filter, child.filter):
                small.append(child)
        return None, small

    def _over(self, child: Node[F], node: Node[F]) -> bool:
        """Of two equivalent filters the older stays on top, or what was forwarded would change by a mere relocation."""
        return self.language.covers(child.filter, node.filter) and (
            child.age < node.age or not self.language.covers(node.filter, child.filter)
        )

    def _attach(self, node: Node[F], parent: Node[F] | None) -> None:
        node.hang(parent)
        if parent is None:
            self._roots.add(node.kind, node)

    def _detach(self, node: Node[F]) -> None:
        if node.parent is None:
            self._roots.discard(node.kind, node)
        node.unhang()

    def _eliminate(self, node: Node[F], interface: Interface) -> None:
        """Drop what the interface no longer needs because it has this node."""
        if self.rules.pruning is Pruning.PATH:
            self._release([k for k in node.subtree() if k is not node and interface in k.interfaces], interface)
        elif self.rules.pruning is Pruning.ALL:
            self._release(self._covered_of_same(node, interface), interface)

    def _covered_of_same(self, node: Node[F], interface: Interface) -> list[Node[F]]:
        """Below a covered node all is covered, so it is taken without tests."""
        found = []
        stack = [(root, False) for root in self._roots.near(node.kind)]
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
            node.release(interface)
            self._users.remove(node.kind, interface)
        self._uproot([node for node in nodes if not node.interfaces])

    def _uproot(self, dead: list[Node[F]]) -> None:
        """Structural del. Nodes that go together leave together, so that nothing is placed under one about to go."""
        doomed = set(dead)
        moved: list[Node[F]] = []
        for node in dead:
            del self._nodes[node.filter]
        for node in dead:
            if node.parent not in doomed:
                moved += self._bequeath(node, doomed)
        if self.rules.strip:
            for node in moved:
                self._strip(node)

    def _bequeath(self, node: Node[F], doomed: set[Node[F]]) -> list[Node[F]]:
        """Take out a tree of doomed nodes and find a place at its parent for each subtree that survives.

        Orphans of a root are always placed by comparison, else the root set would not be exact any more.
        """
        home = node.parent
        orphans = _orphans(node, doomed)
        self._detach(node)
        for orphan in orphans:
            orphan.unhang()
        for orphan in orphans:
            if self.rules.pure or home is None:
                self._place(orphan, home)
            else:
                self._attach(orphan, home)
        return orphans

    def _strip(self, moved: Node[F]) -> None:
        if self._nodes.get(moved.filter) is not moved:
            return
        above: set[Interface] = set().union(*(node.interfaces for node in moved.ancestors()))
        emptied = []
        stack = [(moved, above)]
        while stack:
            node, held = stack.pop()
            for interface in sorted(node.interfaces & held):
                node.release(interface)
                self._users.remove(node.kind, interface)
            if not node.interfaces:
                emptied.append(node)
            stack.extend((child, held | node.interfaces) for child in node.children)
        self._uproot(emptied)


def _orphans(node: Node[F], doomed: set[Node[F]]) -> list[Node[F]]:
    """The topmost survivors below a doomed node, in the order of their trees."""
    found = []
    stack = list(reversed(node.children))
    while stack:
        child = stack.pop()
        if child in doomed:
            stack.extend(reversed(child.children))
        else:
            found.append(child)
    return found


def _distance(wanted: float, limit: float | None) -> float:
    return float("inf") if limit is None else abs(wanted - limit)
