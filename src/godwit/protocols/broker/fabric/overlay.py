"""What keeps the tree: an election, MFT-PubSub's tables, and the subscriber that states what the broker wants.

Election and tables know processes by the role in their names, so each broker is two here: `b` and its name keeps the
tree, `s` and its name is the subscriber. Whoever uses this speaks of brokers by their names alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.publication import NUMBER_MAX
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.broker.streams.sequence import Numbers
from godwit.protocols.host import Host, NodeId, RemoteError
from godwit.protocols.routing.clients import ClientOptions, Subscriber
from godwit.protocols.routing.courier import Carried, Courier, Numbered
from godwit.protocols.routing.messages import Ack, Bask, Bmig, Bquery, Bsub
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess, Device, Enclosed
from godwit.protocols.routing.rules import HARDENED
from godwit.protocols.topology.election import Choice, Election, ElectionOptions, Heartbeat
from godwit.protocols.topology.tree import Tree

BROKER, WISH = "b", "s"
STATEMENTS = 4_096
"""How many statements are reserved at once."""

WIRED = ElectionOptions(choice=Choice.BALANCED, hold_s=0.02, jitter_s=0.005, patience_s=2.5)
"""Links that tell when they break: a parent is kept while it is heard, and nothing collides."""


class TreeOptions(msgspec.Struct, frozen=True, kw_only=True):
    election: ElectionOptions = WIRED
    streams: StreamOptions = StreamOptions()
    refresh_s: float = 300.0
    """How often a broker repeats what it wants."""
    forget_s: float = 24 * 3600.0
    """How long a broker may be silent before it is given up, with all that is kept for it."""
    look_round_s: float = 1.0
    bundle_b: int = 64 * 1024
    timeout_s: float = 0.5
    """How long a neighbor may take to acknowledge a message about the tree."""
    incarnation: int = 0
    """A number that is larger at each start, whatever happens to the disk: seconds since 1970. 0: the disk counts."""

    def __post_init__(self) -> None:
        if self.forget_s < 2 * self.refresh_s:
            raise ValueError(f"forget_s is {self.forget_s}: at least twice refresh_s, {self.refresh_s}")


class Said(dict[str, Any]):
    """Where the subscriber keeps its statement number `t`; a crash may skip some, and repeats none."""

    def __init__(self, store: Store, incarnation: int) -> None:
        self.numbers = Numbers(store, "statements", at_least=incarnation << 20, block=STATEMENTS)
        super().__init__(t=self.numbers.last)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.numbers.skip_to(value)


class Overlay:
    """Of one broker. Nothing leaves before this is made, and the broker is unheard of until `play`."""

    def __init__(self, host: Host, options: TreeOptions, incarnation: int) -> None:
        self.options = options
        self.device = Device(host)
        self.device.play(
            BROKER, lambda inside: BrokerProcess(inside, self._router, options.election, incarnation=incarnation)
        )
        process = self.device.processes[BROKER + host.name]
        assert isinstance(process, BrokerProcess)
        self.election: Election = process.election
        self._seen: tuple[int, frozenset[NodeId]] = (-1, frozenset())
        self._hops: dict[NodeId, tuple[int, NodeId | None, NodeId | None]] = {}
        """The way to each broker that was asked for, and at which change of the tables it was looked up."""

    def _router(self, host: Host, tree: Tree) -> MftBroker:
        options = self.options
        self.tables = MftBroker(
            host,
            tree,
            HARDENED,
            acknowledge=True,
            retry_s=options.look_round_s,
            silent_s=options.forget_s,
            departed_s=options.forget_s,
            courier=Courier(host, timeout_s=options.timeout_s, bundle_b=options.bundle_b),
        )
        return self.tables

    def play(self, wanted: dict[Filter, None], said: Said, refresh_s: float) -> Subscriber:
        """Begin to speak for the broker."""
        options = ClientOptions(refresh_s=refresh_s, acknowledge=True)
        home = self.election.host.name
        name = self.device.play(WISH, lambda inside: Subscriber(inside, wanted, options, disk=said, home=home))
        wish = self.device.processes[name]
        assert isinstance(wish, Subscriber)
        return wish

    @property
    def leader(self) -> NodeId:
        return self.election.leader[1:]

    @property
    def parent(self) -> NodeId | None:
        return None if self.election.parent is None else self.election.parent[1:]

    @property
    def children(self) -> list[NodeId]:
        return sorted(child[1:] for child in self.election.children)

    @property
    def hops(self) -> int:
        return self.election.hops

    def linked(self, peer: NodeId) -> None:
        self.election.linked(BROKER + peer)

    def unlinked(self, peer: NodeId) -> None:
        self.election.unlinked(BROKER + peer)

    def receive(self, sender: NodeId, message: Enclosed) -> list[tuple[NodeId, int]]:
        """What a neighbor says of the tree; returns the brokers that it speaks of, with their statement numbers."""
        said = _checked(message, BROKER + sender, self.election.host.name)
        self.device.receive(sender, message)
        return [(wish[1:], statement) for wish, statement in said if wish.startswith(WISH)]

    def led_back(self, to: NodeId) -> None:
        """What is for this broker comes from where it should go."""
        self.tables.led_back([WISH + to])

    def hop(self, to: NodeId) -> NodeId | None:
        routes, found = self.tables.routes, self._hops.get(to)
        if found is None or found[0] != routes.changes:
            hop = routes.hop(WISH + to)
            found = self._hops[to] = routes.changes, hop, hop[1:] if hop is not None else None
        return found[2] if found[1] in self.election.neighbors else None

    def changed(self) -> bool:
        """Whether statements or ways may be others than at the last time this was asked."""
        now = self.tables.routes.changes, frozenset(self.election.neighbors)
        was, self._seen = self._seen, now
        return now != was

    def statements(self) -> Iterator[tuple[NodeId, int, tuple[Filter, ...]]]:
        """What each broker has said last, as far as the tables know: (broker, statement number, filters)."""
        for wish, (statement, _) in list(self.tables.known.items()):
            if wish.startswith(WISH):
                yield wish[1:], statement, self.tables.routes.filters(wish)


def _checked(enclosed: Enclosed, sender: NodeId, here: NodeId) -> list[tuple[NodeId, int]]:
    """Between brokers only the tree is spoken of, each for itself, and in numbers that leave room for more.

    Returns the subscribers that are spoken of, with their numbers.
    """
    message = enclosed.message
    if enclosed.sender != sender or enclosed.to not in ("", here):
        raise RemoteError(f"{sender} speaks as {enclosed.sender!r} to {enclosed.to!r}")
    pairs: list[tuple[NodeId, int]] = []
    if isinstance(message, Heartbeat):
        pairs = [("", message.incarnation), ("", message.round)]
    elif not isinstance(message, Ack):
        parts = message.parts if isinstance(message, Numbered) else (message,)
        pairs = [pair for part in parts for pair in _numbers(part)]
    if any(number > NUMBER_MAX for _, number in pairs):
        raise RemoteError(f"{sender} counts beyond {NUMBER_MAX}")
    return pairs


def _numbers(part: Carried) -> Iterable[tuple[NodeId, int]]:
    match part:
        case Bsub(subscriber, t=t) | Bquery(subscriber, t=t):
            return ((subscriber, t),)
        case Bmig(below, beyond):
            return ((claim.subscriber, claim.t) for claim in (*below, *beyond))
        case Bask(doubts):
            return ((doubt.subscriber, doubt.t) for doubt in doubts)
    raise RemoteError(f"{type(part).__name__} is not spoken between brokers")
