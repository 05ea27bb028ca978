"""The nodes of a forest: one parent each; the size of the tree below and the interfaces used there are kept exact."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, KeysView
from typing import Generic

from godwit.tables.forests.kin import Kin
from godwit.tables.forests.ranges import NO_RANGES, Ranges
from godwit.tables.table import F, Interface


class Node(Generic[F]):
    """A filter in a forest. `parent` is None at a root; `size` counts the node itself; smaller `age` is older.

    `kin` finds children by their keys and ranges; it is there once they are many.
    """

    __slots__ = ("age", "children", "filter", "index", "interfaces", "keys", "kin", "kind", "parent", "ranges", "size")

    def __init__(
        self,
        wanted: F,
        kind: str | None,
        age: int,
        keys: Iterable[Hashable] = (),
        ranges: Ranges = NO_RANGES,
        *,
        indexed: bool = False,
    ) -> None:
        self.filter = wanted
        self.kind = kind
        self.age = age
        self.keys = dict.fromkeys(keys).keys()
        self.ranges = ranges
        self.kin: Kin[Node[F]] | None = None
        self.interfaces: set[Interface] = set()
        self.parent: Node[F] | None = None
        self.children: dict[Node[F], None] = {}
        self.size = 1
        # How many children use each interface, in themselves or below: with counts instead of a plain set, taking a
        # child away costs its own interfaces, not a union over all that remain.
        self.index: dict[Interface, int] | None = {} if indexed else None

    @property
    def used_below(self) -> KeysView[Interface] | None:
        """The interface index of spec 2.5, exact; None where it is not kept."""
        return None if self.index is None else self.index.keys()

    def uses(self, interface: Interface) -> bool:
        """Whether the interface is found here or below; True as well where no index could tell."""
        return interface in self.interfaces or self.index is None or interface in self.index

    def take(self, interface: Interface) -> None:
        self.interfaces.add(interface)
        if self.index is not None and interface not in self.index:
            _spread(self.parent, [interface])

    def release(self, interface: Interface) -> None:
        self.interfaces.discard(interface)
        if self.index is not None and interface not in self.index:
            _retract(self.parent, [interface])

    def hang(self, parent: Node[F] | None) -> None:
        """Become the last child of `parent`, with everything below."""
        self.parent = parent
        if parent is not None:
            parent.children[self] = None
            if parent.kin is not None:
                parent.kin.add(self)
            _resize(parent, self.size)
            if self.index is not None:
                _spread(parent, self.interfaces | self.index.keys())

    def unhang(self) -> None:
        parent, self.parent = self.parent, None
        if parent is not None:
            del parent.children[self]
            if parent.kin is not None:
                parent.kin.remove(self)
            _resize(parent, -self.size)
            if self.index is not None:
                _retract(parent, self.interfaces | self.index.keys())

    def ancestors(self) -> Iterator[Node[F]]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def subtree(self) -> Iterator[Node[F]]:
        """The node and all below it, parents before children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children)


def _resize(node: Node[F] | None, change: int) -> None:
    while node is not None:
        node.size += change
        node = node.parent


def _spread(node: Node[F] | None, used: Iterable[Interface]) -> None:
    """A child of `node` uses these from now on; ancestors hear of those that are new to them."""
    while node is not None and used:
        assert node.index is not None
        news = []
        for interface in used:
            children = node.index.get(interface, 0)
            node.index[interface] = children + 1
            if not children and interface not in node.interfaces:
                news.append(interface)
        node, used = node.parent, news


def _retract(node: Node[F] | None, used: Iterable[Interface]) -> None:
    while node is not None and used:
        assert node.index is not None
        news = []
        for interface in used:
            node.index[interface] -= 1
            if not node.index[interface]:
                del node.index[interface]
                if interface not in node.interfaces:
                    news.append(interface)
        node, used = node.parent, news
