"""What each neighbor must be told (spec 2.3 and 2.7.2): the forwards sets of both structures that routers share.

RoutingPoset    forwards sets by the equation 3.1 on the filters poset
RoutingForest   the same on the non-redundant forest, exact or approximate (spec 2.7.2)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from godwit.filters.language import Language
from godwit.tables.forests.forest import NRF, Forest, Pruning, Rules
from godwit.tables.forests.kin import KeysOf
from godwit.tables.forests.poset import Poset, ancestors
from godwit.tables.nodes import Node
from godwit.tables.table import DEFAULT, F, Interface, N

NOBODY: frozenset[Interface] = frozenset()


def others(neighbors: frozenset[Interface], users: Iterable[Interface]) -> frozenset[Interface]:
    """The neighbors minus NST: the only user of a filter need not hear of it, each of several must hear of others."""
    users = frozenset(users)
    return neighbors - users if len(users) == 1 else neighbors


class RoutingPoset(Poset[F, N]):
    """The filters poset between neighboring routers."""

    def __init__(self, language: Language[F, N] = DEFAULT, *, neighbors: Iterable[Interface] = ()) -> None:
        super().__init__(language, pruned=True)
        self.neighbors = frozenset(neighbors)

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        """The neighbors that hold, or must be sent, this filter; found without any covering test.

        Two users above suppress it everywhere; a single one leaves itself uninformed, since it knows its own filters.
        """
        node = self._nodes.get(wanted)
        if node is None:
            return NOBODY
        told = others(self.neighbors, node.interfaces)
        above: set[Interface] = set()
        for ancestor in ancestors(node):
            above |= ancestor.interfaces
            if len(above) > 1:
                return NOBODY
        return told & above if above else told

    def heads(self) -> list[F]:
        roots = list(self._roots)
        return [node.filter for node in dict.fromkeys([*roots, *(k for root in roots for k in root.children)])]

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        before = self.forwards(wanted)
        return self.forwards(wanted) - before if self.add(wanted, interface) else NOBODY

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        node = self._nodes.get(wanted)
        if node is None or interface not in node.interfaces:
            return {}
        before = self.forwards(wanted)
        # By theorem 3.4 only what rises to the first two levels can gain a neighbor.
        below = dict.fromkeys([*node.children, *(k for child in node.children for k in child.children)])
        self.remove(wanted, interface)
        lost = before - self.forwards(wanted)
        gains = {k.filter: self.forwards(k.filter) & lost for k in below} if lost else {}
        return {e: [f for f, gain in gains.items() if e in gain] for e in sorted(lost)}


class RoutingForest(Forest[F, N]):
    """The non-redundant forest between neighboring routers.

    A forest shows one coverer of each filter, so the others have to be looked for. With `approximate` that is left out
    for the filter that is added or removed: a neighbor may be told more than it needs, never less. What a removal
    uncovers is exact in both modes.
    """

    def __init__(
        self,
        language: Language[F, N] = DEFAULT,
        *,
        neighbors: Iterable[Interface] = (),
        approximate: bool = False,
        rules: Rules = NRF,
        keys: KeysOf | None = None,
    ) -> None:
        if rules.pruning is not Pruning.ALL:
            raise ValueError("forwards sets need a forest without redundant filters: rules with Pruning.ALL")
        super().__init__(language, rules, keys=keys)
        self.neighbors = frozenset(neighbors)
        self.approximate = approximate

    def forwards(self, wanted: F, /) -> frozenset[Interface]:
        """The neighbors that hold, or must be sent, this filter."""
        node = self._nodes.get(wanted)
        return NOBODY if node is None else self._exact(node)

    def approximate_forwards(self, wanted: F, /) -> frozenset[Interface]:
        """A superset of `forwards` found without any covering test."""
        node = self._nodes.get(wanted)
        return NOBODY if node is None else self._approximate(node)

    def heads(self) -> list[F]:
        return [node.filter for root in self._roots for node in (root, *root.children)]

    def announce(self, wanted: F, interface: Interface, /) -> frozenset[Interface]:
        before = self._told(wanted)
        return self._told(wanted) - before if self.add(wanted, interface) else NOBODY

    def retract(self, wanted: F, interface: Interface, /) -> dict[Interface, list[F]]:
        node = self._nodes.get(wanted)
        if node is None or interface not in node.interfaces:
            return {}
        before = self._told(wanted)
        children = list(node.children)
        self.remove(wanted, interface)
        lost = before - self._told(wanted)
        learn: dict[Interface, list[F]] = {e: [] for e in sorted(lost)}
        for other in self._uncovered(node, children, lost) if lost else ():
            for e in sorted(self._exact(other) & lost):
                learn[e].append(other.filter)
        return learn

    def _told(self, wanted: F) -> frozenset[Interface]:
        return self.approximate_forwards(wanted) if self.approximate else self.forwards(wanted)

    def _approximate(self, node: Node[F]) -> frozenset[Interface]:
        told = others(self.neighbors, node.interfaces)
        root = node.parent
        if root is None:
            return told
        return NOBODY if root.parent is not None else told - others(self.neighbors, root.interfaces)

    def _exact(self, node: Node[F]) -> frozenset[Interface]:
        told = self._approximate(node)
        if node.parent is None or not told:
            return told
        (neighbor,) = told
        return NOBODY if self._told_wider(node, neighbor) else told

    def _told_wider(self, node: Node[F], neighbor: Interface) -> bool:
        """Whether the neighbor, the only user of the root above, has been told something wider from another tree."""
        for root in self._roots.near(node.kind):
            informed = root is not node.parent and neighbor in others(self.neighbors, root.interfaces)
            if informed and self.language.covers(root.filter, node.filter):
                return True
        return any(
            self._outranks(other, node)
            for root in self._roots.near(node.kind)
            if root.interfaces == {neighbor}
            for other in root.children
            if other is not node
        )

    def _outranks(self, other: Node[F], node: Node[F]) -> bool:
        """Two equivalent filters must not suppress each other: the older is told."""
        return self.language.covers(other.filter, node.filter) and (
            other.age < node.age or not self.language.covers(node.filter, other.filter)
        )

    def _uncovered(self, gone: Node[F], children: list[Node[F]], lost: frozenset[Interface]) -> Iterator[Node[F]]:
        """What the lost neighbors may have to be told now: roots and second-level nodes that `gone` covers.

        Among the roots only its children can be; on the second level only trees with a lost neighbor as the one user
        of the root count, for everywhere else the root has been told.
        """
        known = set(children)
        for child in children:
            if child.parent is None:
                yield child
        for root in list(self._roots.near(gone.kind)):
            if len(root.interfaces) == 1 and root.interfaces <= lost:
                below = root is gone or root in known
                for node in root.children:
                    if below or node in known or self.language.covers(gone.filter, node.filter):
                        yield node
