"""The fabric of a broker that has no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from godwit.filters.filters import Filter
from godwit.protocols.broker.contents import Content, Repeated
from godwit.protocols.broker.passages import Passage
from godwit.protocols.host import Message, NodeId


class Alone:
    """A `Fabric` in which nothing ever happens."""

    def __init__(self) -> None:
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None

    @property
    def brokers(self) -> Set[NodeId]:
        return frozenset()

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {}

    def want(self, filters: Iterable[Filter]) -> int:
        return 0

    def heard(self, broker: NodeId) -> int:
        return 0

    def reached(self, broker: NodeId) -> int:
        return 0

    def crossed(self, since_s: float) -> list[Passage]:
        return []

    @property
    def sent(self) -> int:
        return 0

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool) -> None:
        pass

    def taken(self, origin: NodeId, number: int) -> None:
        pass

    def receive(self, sender: NodeId, message: Message) -> None:
        pass

    def linked(self, peer: NodeId) -> None:
        pass

    def unlinked(self, peer: NodeId) -> None:
        pass
