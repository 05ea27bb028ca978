"""What a broker sees of the others, whatever carries it: their interest, and a stream to each of them.

A *number* here is always a stream number: the place of something in the stream of the broker that sent it. What a
broker says that it wants has a *statement* number, and what a client must acknowledge a *packet id*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Protocol

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.passages import Passage
from godwit.protocols.broker.messages import Content, Repeated, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import Message, NodeId

ANYTHING = (Filter(),)
"""Filters that want every event."""


class Medium(Protocol):
    """Carries publications between brokers, and perhaps nothing else: what is sent may be lost, and nobody is known by
    name. A broker whose fabric is no more than this keeps its sessions where they are (`Streamless`).

    The broker sets the listeners before anything can happen.
    """

    on_content: Callable[[NodeId, int, Content | Repeated], None]
    """`on_content(origin, number, content)`: something has come. The number is that of the origin's stream, 0 where
    there are no streams."""

    on_change: Callable[[], None]
    """Brokers or their interest have changed: whatever was derived from `interests` or `sources` is out of date."""

    clock: Callable[[], float]
    """The broker's steady clock, by which `expires` and `since` count here: what comes is told by it."""

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        """What each other broker wants, as known here."""

    def want(self, filters: Iterable[Filter]) -> int:
        """State all that this broker wants, in place of what it said before; the number of this statement."""

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        """To these brokers, one copy where they share the way; nothing where there are none."""

    def receive(self, sender: NodeId, message: Message) -> None:
        """What came over a link, or from the air."""


class Fabric(Medium, Protocol):
    """From each broker to each other one there is a stream: everything sent into it arrives once, in order of sending,
    however often links break, brokers crash and the way changes. What is durable survives a crash of either end: the
    sender keeps it in its store until the receiver has said that it is in its own.

    `on_content` gives the next of the origin's stream. The broker writes what it makes of it to the store and then
    calls `taken(origin, number)`, in the same turn and before any `settled` of its own.
    """

    retains_everywhere: bool
    """Whether every broker keeps every retained publication. Else its matching broker does, and those who want its
    topic."""

    def is_known(self, broker: NodeId) -> bool:
        """Whether another broker can be addressed: it was heard of and not given up, reachable now or not."""

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        """The other brokers that may send something that these filters want, each of them known. A tree answers with
        all of its brokers, whatever the filters; who asks with `ANYTHING` hears of everybody."""

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        """Those, and the places of a session that moves, this broker among them: what each of them sends is divided
        between the places. A place that has nothing to send, and will not before this broker has agreed to it, may be
        left out."""

    deals: bool
    """Whether brokers are told of one another's groups, so that one of them all chooses the member that an event is
    for. Else each deals out its own."""

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        """A client of this broker has made it. None: this broker matches it, as in a tree every broker does. Else it
        is matched elsewhere, and is kept or under way when this returns: the broker it was sent to, or empty. With
        `share` it was matched before, and is for one member of that group."""

    def is_silent(self, broker: NodeId) -> bool:
        """Whether what is sent to it is likely to wait: there is no way to it now."""

    def disk_of(self, broker: NodeId) -> int:
        """Names the disk of another broker. Where it changes, that broker has lost all that it ever had or confirmed;
        `on_change` says so before anything else comes from there. 0: not known, or it cannot be lost."""

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        """Whether that broker does not need what was sent to it under this number any more."""

    def heard(self, broker: NodeId) -> int:
        """The number of the newest statement of that broker known here."""

    @property
    def crossings(self) -> int:
        """How much was taken here, over all starts, of what bridges and gateways bring."""

    def crossed(self, after: int) -> list[Passage]:
        """What was taken here of that when there had been so many; the newest first."""

    def passage(self, origin: NodeId, number: int) -> Passage:
        """What that broker has sent under this number is called so by whoever takes it elsewhere."""

    @property
    def sent(self) -> int:
        """The last number in the stream of this broker, whoever got it; 0 where nobody gets any."""

    def taken(self, origin: NodeId, number: int) -> None:
        """All of the origin's stream up to this number is done with here, and what came of it is written.

        This writes the mark beside it: the two become durable together, so that a crash repeats neither. The origin is
        told once they are; call this in the order of `on_content`, at once or later, not after `settled`.
        """

    def linked(self, peer: NodeId) -> None:
        """A link to this broker is up."""

    def unlinked(self, peer: NodeId) -> None:
        """That link is down; the fabric need not wait for a timeout to know."""


# The fabric of a broker that has no others.


class Alone:
    """A `Fabric` in which nothing ever happens."""

    retains_everywhere = True
    deals = False

    def __init__(self) -> None:
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = lambda: 0.0

    def is_known(self, broker: NodeId) -> bool:
        return False

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        return frozenset()

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        return {*self.sources(filters), *places}

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return {}

    def want(self, filters: Iterable[Filter]) -> int:
        return 0

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return None

    def is_silent(self, broker: NodeId) -> bool:
        return False

    def disk_of(self, broker: NodeId) -> int:
        return 0

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        return True

    def heard(self, broker: NodeId) -> int:
        return 0

    @property
    def crossings(self) -> int:
        return 0

    def crossed(self, after: int) -> list[Passage]:
        return []

    def passage(self, origin: NodeId, number: int) -> Passage:
        return origin, number

    @property
    def sent(self) -> int:
        return 0

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        pass

    def taken(self, origin: NodeId, number: int) -> None:
        pass

    def receive(self, sender: NodeId, message: Message) -> None:
        pass

    def linked(self, peer: NodeId) -> None:
        pass

    def unlinked(self, peer: NodeId) -> None:
        pass


# The fabric of a broker that hears others without knowing them.


class Streamless(Alone):
    """A `Fabric` over a medium without streams: publications come and go, and for the rest there are no others."""

    def __init__(self, medium: Medium) -> None:
        super().__init__()
        self.medium = medium
        medium.on_content = lambda origin, number, content: self.on_content(origin, number, content)
        medium.on_change = lambda: self.on_change()

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return self.medium.interests

    def want(self, filters: Iterable[Filter]) -> int:
        return self.medium.want(filters)

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        self.medium.send(to, content, durable=durable)

    def receive(self, sender: NodeId, message: Message) -> None:
        self.medium.receive(sender, message)
