"""The tree fabric (docs/broker.md): brokers elect a leader, hang themselves below it, and route streams along it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from godwit.filters.filters import Filter
from godwit.protocols.broker.fabric.overlay import Overlay, Said, TreeOptions
from godwit.protocols.broker.fabric.passages import Passage, Passages, entrance, is_owed, passage_of
from godwit.protocols.broker.interest.heard import Interests, disk_of, marker
from godwit.protocols.broker.messages import Content, Repeated, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken, spoken_by
from godwit.protocols.broker.streams.sender import Counts
from godwit.protocols.broker.streams.sequence import reserved
from godwit.protocols.broker.streams.streams import Streams
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError
from godwit.protocols.routing.clients import Subscriber
from godwit.protocols.routing.process import Enclosed
from godwit.protocols.routing.rules import HOPS_MAX

__all__ = ["TreeFabric", "TreeOptions"]

EARLY_MAX = 256


class TreeFabric:
    """A `Fabric`. Make one at each start and call `want` once, though it be with nothing: only then do others hear of
    this broker. Frames that come before the disk has settled are ignored, as if they were lost."""

    retains_everywhere = True
    deals = True

    def __init__(self, host: Host, store: Store, options: TreeOptions = TreeOptions()) -> None:  # noqa: B008
        self.host = host
        self.store = store
        self.options = options
        self.on_content: Callable[[NodeId, int, Content | Repeated], None] = lambda origin, number, content: None
        self.on_change: Callable[[], None] = lambda: None
        self.clock: Callable[[], float] = host.now
        self.links: set[NodeId] = set()
        self.beyond: set[NodeId] = set()
        """Brokers of no tree that are reached directly now: streams lead to them all the same (`gateway`)."""
        self.is_foreign: Callable[[NodeId], bool] = lambda broker: False
        """Whether a broker is such a one, reached now or not: what it brings may have come another way."""
        self.streams = Streams(
            host, store, options.streams, self._pass_on, self._has_way, self._give, self._reborn, self._now
        )
        self._interests = Interests(store, host.now())
        self._said = Said(store, options.incarnation)
        self._incarnation = max(reserved(store, "boots") + 1, options.incarnation)
        store.put("meta", "boots", 0, str(self._incarnation).encode())
        self._marker = marker(host.name, self.streams.sender.stream)
        self._wanted: dict[Filter, None] | None = None
        self._wish: Subscriber | None = None
        self._tree: Overlay | None = None
        self._ways: dict[NodeId, NodeId | None] = {}
        self._early: dict[NodeId, Ask] = {}
        self._surveying = self._stating = False
        self._passages = Passages(store, host.now())
        store.settled(self._start)

    def _start(self) -> None:
        for name, problem in self._interests.healed.items():
            self.host.trace(Record("refused", peer=name, message="Statement", note=problem))
        self._tree = Overlay(self.host, self.options, self._incarnation)
        for peer in sorted(self.links):
            self._tree.linked(peer)
        if self._wanted is not None:
            self._state()
        self.streams.start()
        self.host.after(self.options.look_round_s, self._tick)

    @property
    def brokers(self) -> Set[NodeId]:
        """All others ever heard of and not given up, reachable now or not."""
        return self._interests.peers.keys()

    def origins(self, filters: Iterable[Filter], places: Iterable[NodeId]) -> set[NodeId]:
        return {*self._interests.peers, *places}

    def is_known(self, broker: NodeId) -> bool:
        return broker in self._interests.peers

    def sources(self, filters: Iterable[Filter]) -> Set[NodeId]:
        return self._interests.peers.keys()

    @property
    def interests(self) -> Mapping[NodeId, tuple[Filter, ...]]:
        return self._interests.wanted

    @property
    def counts(self) -> Counts:
        return self.streams.counts

    @property
    def unconfirmed(self) -> dict[NodeId, int]:
        """How many contents are kept for each broker that has some to confirm."""
        return self.streams.unconfirmed

    @property
    def leader(self) -> NodeId:
        """The broker at the top of the tree, as believed here."""
        return self._tree.leader if self._tree else self.host.name

    @property
    def parent(self) -> NodeId | None:
        """The broker above this one; None where this one leads."""
        return self._tree.parent if self._tree else None

    @property
    def children(self) -> list[NodeId]:
        """The brokers below this one."""
        return self._tree.children if self._tree else []

    @property
    def hops(self) -> int:
        """How far away the leader is."""
        return self._tree.hops if self._tree else 0

    @property
    def stated(self) -> list[Filter]:
        """What this broker has told the others that it wants."""
        return [one for one in self._wanted or () if one != self._marker]

    def way(self, to: NodeId) -> NodeId | None:
        """The linked broker through which another one is reached now."""
        if to in self.beyond:
            return to
        hop = self._tree.hop(to) if self._tree else None
        return to if hop is None and to in self.links else hop

    def want(self, filters: Iterable[Filter]) -> int:
        self._wanted = dict.fromkeys((self._marker, *filters))
        statement = self._said.numbers.next()
        self._said["t"] = statement
        if self._wish is not None:
            # Before anything is said again: what has a higher statement number than this must be this, or newer.
            self._wish.wanted = self._wanted
        self._state_soon()
        return statement

    def route(self, publication: Publication, share: Share | None = None) -> NodeId | None:
        return None

    def is_silent(self, broker: NodeId) -> bool:
        return self.way(broker) is None

    def disk_of(self, broker: NodeId) -> int:
        """By its stream, once that has been heard: what is said of its interest may be outdated."""
        source, peer = self.streams.receiver.sources.get(broker), self._interests.peers.get(broker)
        return source.stream if source is not None else disk_of(peer.marker) if peer is not None else 0

    def is_confirmed(self, broker: NodeId, number: int) -> bool:
        lane = self.streams.sender.outbox.lanes.get(broker)
        return lane is None or number not in lane.parcels

    def _reborn(self, broker: NodeId) -> None:
        """It speaks from another disk."""
        self.on_change()

    def heard(self, broker: NodeId) -> int:
        peer = self._interests.peers.get(broker)
        return 0 if peer is None else peer.statement

    @property
    def sent(self) -> int:
        return self.streams.sender.numbers.last

    def send(self, to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        self.streams.send(to, content, durable=durable)

    def taken(self, origin: NodeId, number: int) -> None:
        self.streams.taken(origin, number)

    def linked(self, peer: NodeId) -> None:
        if not peer or peer == self.host.name:
            raise LocalError(f"{self.host.name!r} cannot be linked to {peer!r}: another broker is needed")
        self.links.add(peer)
        if self._tree is not None:
            self._tree.linked(peer)
            self._survey_soon()

    def unlinked(self, peer: NodeId) -> None:
        self.links.discard(peer)
        if self._tree is not None:
            self._tree.unlinked(peer)
            self._survey_soon()

    def receive(self, sender: NodeId, message: Message) -> None:
        if self._tree is None:
            return
        match message:
            case Enclosed():
                self._excel(self._tree.receive(sender, message))
                self._survey_if_changed()
            case Parcels():
                if message.origin in self.brokers:
                    self._take(message, message.origin, sender)
                self._pass_on(message, sender)
            case Ask():
                self._asked(message, sender)
            case Taken():
                if message.origin != self.host.name:
                    self._pass_on(message, sender)
                elif message.by in self.brokers:
                    self._take(message, message.by, sender)
            case _:
                raise RemoteError(f"{type(message).__name__} is nothing that brokers say to one another")

    def reached(self, peer: NodeId) -> None:
        """A broker of no tree can be spoken to directly from now on."""
        self.beyond.add(peer)
        self.streams.again(peer)

    def receive_from_beyond(self, sender: NodeId, message: Message) -> None:
        """What such a broker says. It speaks for itself only, and to this broker."""
        if self._tree is not None:
            self.streams.receive(spoken_by(sender, self.host.name, message))

    def _take(self, frame: Parcels | Ask | Taken, speaker: NodeId, sender: NodeId) -> None:
        """A frame for this broker. A neighbor that has only passed on what another one made up is not to blame."""
        try:
            self.streams.receive(frame)
        except RemoteError as error:
            if speaker == sender:
                raise
            self.counts.refused += 1
            self.host.trace(Record("refused", peer=speaker, message=type(frame).__name__, note=str(error)))

    def _asked(self, ask: Ask, sender: NodeId) -> None:
        if ask.to != self.host.name:
            self._pass_on(ask, sender)
        elif ask.origin in self.brokers:
            self._take(ask, ask.origin, sender)
        elif ask.origin != self.host.name and len(self._early) < EARLY_MAX:
            # It has heard of this broker before this one has heard of it.
            self._early[ask.origin] = ask

    def _give(self, origin: NodeId, number: int, content: Content) -> None:
        if (
            not isinstance(content, Publication)
            or content.passage is None
            or (entrance(content.passage) == origin and not self.is_foreign(origin))
        ):
            self.on_content(origin, number, content)
        elif not is_owed(content.passage, origin, {self.host.name, *self.brokers}):
            self.streams.taken(origin, number)
        elif self._passages.admit(content.passage, self.host.now()):
            self.on_content(origin, number, content)
        else:
            self.on_content(origin, number, Repeated(content))

    def admits(self, publication: Publication) -> bool:
        """Whether something that comes from the air is taken here; it is then not taken again."""
        assert publication.passage is not None
        tree = {self.host.name, *self.brokers}
        return entrance(publication.passage) not in tree and self._passages.admit(publication.passage, self.host.now())

    @property
    def crossings(self) -> int:
        return self._passages.count

    def crossed(self, after: int) -> list[Passage]:
        return self._passages.after(after)

    def passage(self, origin: NodeId, number: int) -> tuple[str, int]:
        """How what came from this broker under this number is called in the air, whichever bridge brings it there."""
        return passage_of(origin, self.streams.stream_of(origin), number)

    def _now(self) -> float:
        return self.clock()

    def _has_way(self, to: NodeId) -> bool:
        return self.way(to) is not None

    def _pass_on(self, frame: Parcels | Ask | Taken, arrived: NodeId = "") -> None:
        """One step further. Whatever has no way on, would go back, or is going in circles ends here: it comes again."""
        speaker = frame.by if isinstance(frame, Taken) else frame.origin
        if frame.hops >= HOPS_MAX or (arrived and speaker == self.host.name):
            return
        if isinstance(frame, Parcels):
            for hop, runs in self._split(frame.runs, arrived).items():
                self.host.send(hop, Parcels(frame.origin, frame.stream, tuple(runs), frame.hops + 1, frame.sent))
            return
        way = self._onward(frame.to if isinstance(frame, Ask) else frame.origin, arrived)
        if way is not None:
            self.host.send(way, msgspec.structs.replace(frame, hops=frame.hops + 1))

    def _onward(self, to: NodeId, arrived: NodeId) -> NodeId | None:
        """The way, unless it leads back: then somebody's table is wrong, and the receiver is asked to speak again."""
        way = self.way(to)
        if way != arrived:
            return way
        if self._tree is not None:
            self._tree.led_back(to)
        return None

    def _split(self, runs: Iterable[Run], arrived: NodeId) -> dict[NodeId, list[Run]]:
        """The runs by next hop, each with those receivers that lie behind it."""
        found: dict[NodeId, list[Run]] = {}
        ways: dict[NodeId, NodeId | None] = {self.host.name: None}
        for run in runs:
            behind: dict[NodeId, list[Leg]] = {}
            for leg in run.legs:
                if leg.to not in ways:
                    ways[leg.to] = self._onward(leg.to, arrived)
                hop = ways[leg.to]
                if hop is not None:
                    behind.setdefault(hop, []).append(leg)
            for hop, legs in behind.items():
                found.setdefault(hop, []).append(run if len(legs) == len(run.legs) else Run(tuple(legs), run.items))
        return found

    def _state_soon(self) -> None:
        if self._tree is not None and not self._stating:
            self._stating = True
            self.host.after(0.0, self._state)

    def _state(self) -> None:
        """Say what this broker wants, under the next statement number."""
        self._stating = False
        if self._tree is None or self._wanted is None:
            return
        if self._wish is None:
            self._wish = self._tree.play(self._wanted, self._said, self.options.refresh_s)
        else:
            self._wish.refresh()

    def _survey_if_changed(self) -> None:
        """Most of what is heard are heartbeats that change nothing, and a survey looks at all brokers."""
        if self._tree is not None and self._tree.changed():
            self._survey_soon()

    def _survey_soon(self) -> None:
        if not self._surveying:
            self._surveying = True
            self.host.after(0.0, self._survey)

    def _survey(self) -> None:
        """Something may have changed in the tables: who wants what, and through whom each broker is reached."""
        self._surveying = False
        if self._tree is None:
            return
        news = [name for name, statement, wanted in self._tree.statements() if self._hear(name, statement, wanted)]
        for name in self.brokers:
            way = self.way(name)
            if way != self._ways.get(name):
                self._ways[name] = way
                if way is not None:
                    self.streams.again(name)
        for name in news:
            if name in self._early:
                self.streams.receive(self._early.pop(name))
        if news:
            self.on_change()

    def _hear(self, name: NodeId, statement: int, filters: tuple[Filter, ...]) -> bool:
        return name != self.host.name and self._interests.hear(name, statement, filters, self.host.now())

    def _excel(self, said: Iterable[tuple[NodeId, int]]) -> None:
        """Others remember a higher statement number of this broker than it does: its disk is lost. Speak above that."""
        highest = max((statement for broker, statement in said if broker == self.host.name), default=0)
        if highest > self._said["t"]:
            self._said["t"] = highest
            self._state_soon()

    def _tick(self) -> None:
        self._survey_if_changed()
        gone = self._interests.forget(self.host.now() - self.options.forget_s)
        for name in gone:
            self._ways.pop(name, None)
            self.streams.forget(name)
        if gone:
            self.on_change()
        self.host.after(self.options.look_round_s, self._tick)
