"""A broker of a tree that is also in the air: events and interest cross both ways (docs/adhoc.md, "Bridges")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from godwit.filters.filters import Filter, alternatives
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.broker.fabric.adhoc import AIR, AdhocFabric
from godwit.protocols.broker.fabric.passages import Passage
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.interest.shares import opened, parted
from godwit.protocols.broker.messages import Content, Repeated, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import Message, NodeId


class Bridge:
    """A `Fabric` of both. Streams, brokers and moving sessions are the tree's.

    What comes from the air enters the tree here, as if a client of this broker had published it; what comes from the
    tree and is wanted in the air enters the air under a name that every other bridge would give it too. In the tree
    this broker wants also what the air wants, other bridges not counted, which say themselves what they want; and in
    the air what the tree wants.
    """

    retains_everywhere = True
    deals = True

    def __init__(self, tree: TreeFabric, air: AdhocFabric) -> None:
        self.tree = tree
        self.air = air
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self._own: tuple[Filter, ...] | None = None
        self._shares: tuple[Filter, ...] = ()
        """Of groups that have members here: in the air nobody can choose among brokers."""
        self._told: tuple[Filter, ...] = ()
        tree.on_content = self._from_tree
        tree.on_change = self._tree_changed
        air.on_content = self._from_air
        air.on_change = self._air_changed

    @property
    def clock(self) -> Callable[[], float]:
        return self.tree.clock

    @clock.setter
    def clock(self, clock: Callable[[], float]) -> None:
        self.tree.clock = clock

    @property
    def name(self) -> NodeId:
        return self.tree.host.name

    def is_known(self, broker: NodeId) -> bool:
        return self.tree.is_known(broker)

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        return self.tree.sources(filters)

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        return self.tree.origins(filters, places)

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {**self.tree.interests, **self.air.interests}

    def want(self, filters: Iterable[Filter]) -> int:
        self._own, self._shares = parted(filters)
        self._tell_air()
        self._told = self._for_tree()
        return self.tree.want(self._told)

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return None

    def is_silent(self, broker: NodeId) -> bool:
        return self.tree.is_silent(broker)

    def disk_of(self, broker: NodeId) -> int:
        return self.tree.disk_of(broker)

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        return self.tree.is_confirmed(broker, number)

    def heard(self, broker: NodeId) -> int:
        return self.tree.heard(broker)

    @property
    def crossings(self) -> int:
        return self.tree.crossings

    def crossed(self, after: int) -> list[Passage]:
        return self.tree.crossed(after)

    def passage(self, origin: NodeId, number: int) -> Passage:
        return self.tree.passage(origin, number)

    @property
    def sent(self) -> int:
        return self.tree.sent

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        names = tuple(to)
        linked = tuple(name for name in names if name != AIR)
        if isinstance(content, Publication) and AIR in names and content.passage is None and self._crosses(content):
            content = msgspec.structs.replace(content, passage=self.air.next_passage())
            self.air.publish(content)
        if linked:
            self.tree.send(linked, content, durable=durable)

    def taken(self, origin: NodeId, number: int) -> None:
        if origin != self.name:
            self.tree.taken(origin, number)

    def receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Beacon | Data):
            self.air.receive(sender, message)
        else:
            self.tree.receive(sender, message)

    def linked(self, peer: NodeId) -> None:
        self.tree.linked(peer)

    def unlinked(self, peer: NodeId) -> None:
        self.tree.unlinked(peer)

    def _from_air(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        if isinstance(content, Publication) and self.tree.admits(content):
            self.on_content(self.name, number, content)

    def _from_tree(self, origin: NodeId, number: int, content: Content | Repeated) -> None:
        # Before the broker says that it has done with it: what is told from then on is a new turn.
        if isinstance(content, Publication) and self._crosses(content):
            passage = content.passage or self.tree.passage(origin, number)
            self.air.publish(msgspec.structs.replace(content, passage=passage))
        self.on_content(origin, number, content)

    def _crosses(self, publication: Publication) -> bool:
        """Whether somebody in the air wants it who is not in the tree."""
        return self.air.wants(publication, besides=self.tree.brokers)

    def _tree_changed(self) -> None:
        self._tell_air()
        self._tell_tree()
        self.on_change()

    def _air_changed(self) -> None:
        self._tell_tree()

    def _tell_air(self) -> None:
        tree = (one for filters in self.tree.interests.values() for one in filters)
        self.air.want(alternatives(map(opened, (*(self._own or ()), *self._shares, *tree))).filters)

    def _tell_tree(self) -> None:
        """Where it has changed. Not before the broker has spoken: it may want what it has not looked up yet."""
        if self._own is not None and (wanted := self._for_tree()) != self._told:
            self._told = wanted
            self.tree.want(wanted)

    def _for_tree(self) -> tuple[Filter, ...]:
        members = self.tree.brokers
        air = (one for name, wanted in self.air.wanted_by.items() if name not in members for one in wanted)
        return (*alternatives((*(self._own or ()), *air)).filters, *self._shares)
