"""The filters poset of Siena (spec 2.2): all of the covering relation, as immediate predecessors and successors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from godwit.filters.language import Language
from godwit.tables.forests import matching
from godwit.tables.partition import Partition, Users, event_type
from godwit.tables.table import DEFAULT, F, Interface, N


class Node(Generic[F]):
    """A filter with its immediate predecessors (`parents`) and successors (`children`); dicts keep their order."""

    __slots__ = ("children", "filter", "interfaces", "kind", "parents")

    used_below = None

    def __init__(self, wanted: F, kind: str | None) -> None:
        self.filter = wanted
        self.kind = kind
        self.interfaces: set[Interface] = set()
        self.parents: dict[Node[F], None] = {}
        self.children: dict[Node[F], None] = {}


class Poset(Generic[F, N]):
    """Covering as a graph without shortcuts.

    With `pruned` an interface keeps only the most general of its filters, and of equivalent ones the last: whoever
    withdraws one must send what it had covered along (spec 2.2). Without, every filter stays until its own removal, as
    local clients need it.
    """

    def __init__(self, language: Language[F, N] = DEFAULT, *, pruned: bool = True) -> None:
        self.language = language
        self.pruned = pruned
        self._nodes: dict[F, Node[F]] = {}
        self._roots: Partition[Node[F]] = Partition()
        self._users = Users()

    def add(self, wanted: F, interface: Interface, /) -> bool:
        """Algorithm 1: subscribe."""
        node = self._nodes.get(wanted)
        if node is None:
            node = self._insert(wanted, unless=interface if self.pruned else None)
            if node is None:
                return False
        elif interface in node.interfaces or self._redundant(ancestors(node), wanted, interface):
            return False
        node.interfaces.add(interface)
        self._users.add(node.kind, interface)
        if self.pruned:
            # Above the node only equivalent filters can still have the interface.
            self._release([*ancestors(node), *_closure(node.children, _down)], interface)
        return True

    def remove(self, wanted: F, interface: Interface, /) -> bool:
        node = self._nodes.get(wanted)
        return node is not None and bool(self._release([node], interface))

    def remove_covered(self, wanted: F, interface: Interface, /) -> list[F]:
        """Unsubscribe as the original Siena does: the interface loses all that `wanted` covers, which is returned."""
        return self._release(self._covered(wanted), interface)

    def match(self, event: N, /, expired: matching.Expired | None = None) -> set[Interface]:
        kind = event_type(event)
        return matching.match(self._roots.near(kind), event, self.language, self._users.reach(kind), expired)

    def roots(self) -> list[F]:
        return [node.filter for node in self._roots]

    def roots_of(self, kind: str | None) -> list[F]:
        """The roots of exactly this type (spec 1.4: Get-Roots)."""
        return [node.filter for node in self._roots.of(kind)]

    def is_root(self, wanted: F) -> bool:
        node = self._nodes.get(wanted)
        return node is not None and not node.parents

    def predecessors(self, wanted: F) -> list[F]:
        return [node.filter for node in self._nodes[wanted].parents]

    def successors(self, wanted: F) -> list[F]:
        return [node.filter for node in self._nodes[wanted].children]

    def coverers(self, wanted: F) -> list[F]:
        """All other filters here that cover it, whether it is here itself or not."""
        return [node.filter for node in self._coverers(wanted) if node.filter != wanted]

    def covered(self, wanted: F) -> list[F]:
        """All other filters here that it covers, whether it is here itself or not."""
        return [node.filter for node in self._covered(wanted) if node.filter != wanted]

    def interfaces(self, wanted: F, /) -> frozenset[Interface]:
        node = self._nodes.get(wanted)
        return frozenset(node.interfaces) if node is not None else frozenset()

    def __iter__(self) -> Iterator[F]:
        return iter(list(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, wanted: object, /) -> bool:
        return wanted in self._nodes

    def _redundant(self, above: Iterable[Node[F]], wanted: F, interface: Interface | None) -> bool:
        """Whether the interface has something wider. If it is no wider than the new filter, the new one replaces it.

        A neighbor relies on that: what it tells last is what it will withdraw.
        """
        return self.pruned and any(
            interface in node.interfaces and not self.language.covers(wanted, node.filter) for node in above
        )

    def _insert(self, wanted: F, unless: Interface | None) -> Node[F] | None:
        """A new node between its neighbors in the order; None where the interface already has something wider."""
        kind = self.language.type_of(wanted)
        above = self._predecessors(wanted, kind, unless)
        if above is None:
            return None
        below = self._successors(wanted, kind, above)
        node = self._nodes[wanted] = Node(wanted, kind)
        for y in below:
            for p in above:
                _unlink(p, y)
            self._roots.discard(y.kind, y)
            _link(node, y)
        for p in above:
            _link(p, node)
        if not above:
            self._roots.add(kind, node)
        return node

    def _predecessors(self, wanted: F, kind: str | None, unless: Interface | None) -> list[Node[F]] | None:
        """Breadth first over the covering nodes; each node is tested once however many paths lead to it."""
        tested: dict[Node[F], bool] = {}

        def covering(nodes: Iterable[Node[F]]) -> list[Node[F]]:
            for node in nodes:
                if node not in tested:
                    tested[node] = self.language.covers(node.filter, wanted)
            return [node for node in nodes if tested[node]]

        lowest = []
        queue = deque(covering(list(self._roots.near(kind))))
        seen = set(queue)
        while queue:
            node = queue.popleft()
            if self._redundant([node], wanted, unless):
                return None
            closer = covering(node.children)
            if not closer:
                lowest.append(node)
            queue.extend(k for k in closer if k not in seen)
            seen.update(closer)
        return lowest

    def _successors(self, wanted: F, kind: str | None, above: list[Node[F]]) -> list[Node[F]]:
        """The topmost covered nodes. One may also be reached by a path that avoids another above it; those go last."""
        start: Iterable[Node[F]] = (k for p in above for k in p.children) if above else self._roots.near(kind)
        queue = deque(dict.fromkeys(start))
        seen = set(queue)
        met = []
        while queue:
            node = queue.popleft()
            if self.language.covers(wanted, node.filter):
                met.append(node)
            else:
                queue.extend(k for k in node.children if k not in seen)
                seen.update(node.children)
        return [y for y in met if not any(z is not y and self.language.covers(z.filter, y.filter) for z in met)]

    def _release(self, nodes: list[Node[F]], interface: Interface) -> list[F]:
        """Take the interface from these nodes; a node without any goes. Returns the filters that it had."""
        released = [node for node in nodes if interface in node.interfaces]
        for node in released:
            node.interfaces.discard(interface)
            self._users.remove(node.kind, interface)
            if not node.interfaces:
                self._delete(node)
        return [node.filter for node in released]

    def _delete(self, node: Node[F]) -> None:
        above, below = list(node.parents), list(node.children)
        del self._nodes[node.filter]
        self._roots.discard(node.kind, node)
        for p in above:
            _unlink(p, node)
        for y in below:
            _unlink(node, y)
        for x in above:
            others = list(x.children)
            for y in below:
                if not any(self.language.covers(other.filter, y.filter) for other in others):
                    _link(x, y)
        for y in below:
            if not y.parents:
                self._roots.add(y.kind, y)

    def _coverers(self, wanted: F) -> Iterator[Node[F]]:
        node = self._nodes.get(wanted)
        if node is not None:
            yield from ancestors(node)
            starts: Iterable[Node[F]] = node.children
        else:
            starts = self._roots.near(self.language.type_of(wanted))

        def covering(nodes: Iterable[Node[F]]) -> Iterator[Node[F]]:
            return (k for k in nodes if self.language.covers(k.filter, wanted))

        yield from _closure(covering(starts), lambda k: covering(k.children))

    def _covered(self, wanted: F) -> list[Node[F]]:
        """All nodes below it, its own and those equivalent to it included; no test is made below a covered one."""
        node = self._nodes.get(wanted)
        if node is not None:
            equals = _closure([node], lambda k: (p for p in k.parents if self.language.covers(wanted, p.filter)))
            return list(_closure(equals, _down))
        tops = []
        queue = deque(self._roots.near(self.language.type_of(wanted)))
        seen = set(queue)
        while queue:
            node = queue.popleft()
            if self.language.covers(wanted, node.filter):
                tops.append(node)
            else:
                queue.extend(k for k in node.children if k not in seen)
                seen.update(node.children)
        return list(_closure(tops, _down))


def _link(p: Node[F], y: Node[F]) -> None:
    p.children[y] = None
    y.parents[p] = None


def _unlink(p: Node[F], y: Node[F]) -> None:
    p.children.pop(y, None)
    y.parents.pop(p, None)


def _up(node: Node[F]) -> Iterable[Node[F]]:
    return node.parents


def _down(node: Node[F]) -> Iterable[Node[F]]:
    return node.children


def _closure(start: Iterable[Node[F]], step: Callable[[Node[F]], Iterable[Node[F]]]) -> Iterator[Node[F]]:
    """Everything reachable, the start included, once each, breadth first."""
    seen = dict.fromkeys(start)
    queue = deque(seen)
    while queue:
        node = queue.popleft()
        yield node
        fresh = [k for k in step(node) if k not in seen]
        seen.update(dict.fromkeys(fresh))
        queue.extend(fresh)


def ancestors(node: Node[F]) -> Iterator[Node[F]]:
    """All nodes above, nearest first."""
    return _closure(node.parents, _up)
