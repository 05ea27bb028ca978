"""The poset-derived forest as a structure (spec 2.4): each filter hangs under one that covers it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic

from godwit.filters.language import Language
from godwit.tables.forests.kin import KeysOf, Kin
from godwit.tables.forests.ranges import NO_RANGES, RangesOf
from godwit.tables.nodes import Node
from godwit.tables.partition import Partition
from godwit.tables.table import F, Interface, N

MANY = 16
"""From so many children on it pays to find those that can be concerned by their keys."""

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


class Trees(Generic[F, N]):
    """A forest without a thought for interfaces. It is maximal: no root is covered by any other node.

    While `pure`, siblings are incomparable on every level, else among the roots only. With `keys` most covering tests
    are saved, and then which of several covering nodes a filter hangs under is up to the keys as well as to the order.
    With `ranges` those between filters with the same keys are saved too.
    """

    def __init__(
        self,
        language: Language[F, N],
        *,
        order: Order,
        pure: bool,
        indexed: bool,
        keys: KeysOf | None = None,
        ranges: RangesOf | None = None,
    ) -> None:
        self.language = language
        self._order = order
        self._pure = pure
        self._indexed = indexed
        self._keys = keys
        self._ranges = ranges
        self._nodes: dict[F, Node[F]] = {}
        self._roots: Partition[Node[F]] = Partition()
        self._root_kin: Kin[Node[F]] | None = None if keys is None else Kin()
        self._births = 0

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
        stack = self.tops(self.language.type_of(wanted))
        while stack:
            node = stack.pop()
            if self.language.covers(node.filter, wanted):
                found.append(node.filter)
                stack.extend(node.children)
        return [other for other in found if other != wanted]

    def covered(self, wanted: F) -> list[F]:
        """All other filters here that it covers, whether it is here itself or not."""
        found: list[Node[F]] = []
        stack = self.tops(self.language.type_of(wanted))
        while stack:
            node = stack.pop()
            if self.language.covers(wanted, node.filter):
                found.extend(node.subtree())
            else:
                stack.extend(node.children)
        return [node.filter for node in found if node.filter != wanted]

    def __iter__(self) -> Iterator[F]:
        return iter(list(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._nodes

    def _grow(self, wanted: F, interface: Interface, unless: Interface | None = None) -> Node[F] | None:
        """A new node in its place; None where a node on the way down already has the interface `unless`."""
        keys: Iterable[Hashable] = () if self._keys is None else self._keys(wanted)
        ranges = NO_RANGES if self._ranges is None else self._ranges(wanted)
        node = Node(wanted, self.language.type_of(wanted), self._births, keys, ranges, indexed=self._indexed)
        node.interfaces.add(interface)
        if not self._place(node, None, unless):
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
        kin = self._kin(parent)
        if kin is not None:
            big = next((k for k in self._order(node, kin.wider(node.keys, node.ranges)) if self._over(k, node)), None)
            return big, [] if big else [k for k in kin.narrower(node.keys, node.ranges) if self._under(k, node)]
        small: list[Node[F]] = []
        for child in self._order(node, self._roots.near(node.kind) if parent is None else parent.children):
            if not small and self._over(child, node):
                return child, []
            if self._under(child, node):
                small.append(child)
        return None, small

    def _kin(self, parent: Node[F] | None) -> Kin[Node[F]] | None:
        """The children of a node, or the roots, by their keys, where there are keys and it pays."""
        if parent is None or self._keys is None:
            return self._root_kin
        if parent.kin is None and len(parent.children) >= MANY:
            parent.kin = Kin(parent.children)
        return parent.kin

    def _over(self, child: Node[F], node: Node[F]) -> bool:
        """Of two equivalent filters the older stays on top, or what was forwarded would change by a mere relocation."""
        return self.language.covers(child.filter, node.filter) and (
            child.age < node.age or not self.language.covers(node.filter, child.filter)
        )

    def _under(self, child: Node[F], node: Node[F]) -> bool:
        return self.language.covers(node.filter, child.filter)

    def _attach(self, node: Node[F], parent: Node[F] | None) -> None:
        node.hang(parent)
        if parent is None:
            self._roots.add(node.kind, node)
            if self._root_kin is not None:
                self._root_kin.add(node)

    def _detach(self, node: Node[F]) -> None:
        if node.parent is None:
            self._roots.discard(node.kind, node)
            if self._root_kin is not None:
                self._root_kin.remove(node)
        node.unhang()

    def _uproot(self, dead: list[Node[F]]) -> list[Node[F]]:
        """Structural del; returns the nodes whose trees have moved.

        Nodes that go together leave together, so that little is placed under a node that is about to go.
        """
        doomed = set(dead)
        moved: list[Node[F]] = []
        for node in dead:
            del self._nodes[node.filter]
        for node in dead:
            if node.parent not in doomed:
                moved += self._bequeath(node, doomed)
        return moved

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
            if self._pure or home is None:
                self._place(orphan, home)
            else:
                self._attach(orphan, home)
        return orphans


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
