"""Subscribers and publishers (spec mft-pubsub 2.4): they listen to heartbeats and follow the nearest broker."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import Host, Message, NodeId, Record, Timer
from godwit.protocols.routing.courier import Carried, Courier, Numbered
from godwit.protocols.routing.messages import Ack, Bquery, Bsub, Filters, Mig, Pub, Rep, Sub, Uns
from godwit.protocols.topology.election import Heartbeat
from godwit.protocols.topology.tree import ignore


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    timeout_s: float = 3.0
    sticky_s: float = 0.0
    """A new broker is taken only if the present one's copy of the round does not come within this time (F37)."""
    patience_s: float = 0.0
    """A broker heard within this time is kept, whoever brings the rounds first."""
    refresh_s: float | None = None
    """H6: how often a subscriber repeats all its filters, and whenever it attaches; None is the thesis: never."""
    acknowledge: bool = False
    """Whether what a client says is repeated until its broker has it."""
    remembered: int = 100_000
    """How many event ids are kept to recognise a second copy."""
    unsent_max: int = 1000
    """How many events a publisher keeps that no broker has acknowledged."""


class Attachment:
    """Which broker a client speaks to. `joined(broker, previous)` is called at every change."""

    def __init__(
        self, host: Host, joined: Callable[[NodeId, NodeId | None], None], options: ClientOptions, home: NodeId | None
    ) -> None:
        self.host = host
        self.joined = joined
        self.options = options
        self.broker: NodeId | None = None
        self.last_broker: NodeId | None = None
        self._leader: NodeId | None = None
        self._seen: dict[NodeId, tuple[int, int]] = {}
        self._broker_timer: Timer | None = None
        self._leader_timer: Timer | None = None
        self._pending: Timer | None = None
        if home is not None:
            host.after(0.0, lambda: self._join(home))
        self._home = home
        self._heard_at = -math.inf

    def heard(self, sender: NodeId, beat: Heartbeat) -> None:
        """A client on a broker's own device stays with that broker and does not listen."""
        if self._home is not None:
            return
        if sender == self.broker:
            self._heard_at = self.host.now()
            self._broker_timer = self._restarted(self._broker_timer, self._lost)
        known = self._seen.get(beat.leader, (-1, -1))
        better = self._leader is None or beat.leader <= self._leader
        if sender == self.broker and better:
            self._stay()
        if self._leader is not None and not (better and (beat.incarnation, beat.round) > known):
            return
        self._leader = beat.leader
        self._seen[beat.leader] = max(known, (beat.incarnation, beat.round))
        self._leader_timer = self._restarted(self._leader_timer, self._forget_leader)
        if sender != self.broker:
            self._consider(sender)

    def _consider(self, sender: NodeId) -> None:
        if self.broker is not None and self.host.now() - self._heard_at < self.options.patience_s:
            return
        if self.broker is None or not self.options.sticky_s:
            self._join(sender)
        elif self._pending is None:
            self._pending = self.host.after(self.options.sticky_s, lambda: self._join(sender))

    def _stay(self) -> None:
        """Whoever else was considered, the present broker has been heard in time."""
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _join(self, broker: NodeId) -> None:
        self._stay()
        if self.broker is not None:
            self.last_broker = self.broker
        self.broker = broker
        self._heard_at = self.host.now()
        self._broker_timer = self._restarted(self._broker_timer, self._lost)
        self.host.trace(Record("attached", peer=broker))
        self.joined(broker, self.last_broker)

    def _lost(self) -> None:
        if self._home is None:
            self._stay()
            self.last_broker, self.broker, self._leader = self.broker, None, None

    def _forget_leader(self) -> None:
        """Else a client of a dead leader would refuse every lesser one for ever."""
        self._leader = None

    def _restarted(self, timer: Timer | None, call: Callable[[], None]) -> Timer:
        if timer is not None:
            timer.cancel()
        return self.host.after(self.options.timeout_s, call)


class Client:
    """What subscribers and publishers share: a broker to speak to, and word from it that it has heard."""

    def __init__(self, host: Host, options: ClientOptions, home: NodeId | None) -> None:
        self.host = host
        self.options = options
        self.attachment = Attachment(host, self._joined, options, home)
        self.courier = Courier(host)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        match message:
            case Heartbeat():
                self.attachment.heard(sender, message)
            case Ack():
                self.courier.acknowledged(sender, message)
            case Numbered():
                for part in self.courier.open(sender, message):
                    self.handle(sender, part)
            case _:
                self.handle(sender, message)

    def handle(self, sender: NodeId, message: Message) -> None:
        """What is neither a heartbeat nor an acknowledgement."""

    def _joined(self, broker: NodeId, previous: NodeId | None) -> None:
        """Attached to another broker, or again to the same."""

    def _say(self, message: Carried) -> None:
        """To the broker, if there is one; with acknowledgements until it has it or is the broker no more."""
        broker = self.attachment.broker
        if broker is None:
            return
        if self.options.acknowledge:
            self.courier.tell(broker, message, ignore, keep_on=lambda: self.attachment.broker == broker)
        else:
            self.host.send(broker, message)


class Subscriber(Client):
    """Gets each event once. The number `t` grows with every message and must survive a restart: `disk` keeps it."""

    def __init__(
        self,
        host: Host,
        wanted: Iterable[Filter] = (),
        options: ClientOptions = ClientOptions(),  # noqa: B008
        *,
        disk: MutableMapping[str, Any] | None = None,
        home: NodeId | None = None,
        deliver: Callable[[Event], None] = lambda event: None,
    ) -> None:
        super().__init__(host, options, home)
        self.wanted: dict[Filter, None] = dict.fromkeys(wanted)
        self.disk: MutableMapping[str, Any] = {} if disk is None else disk
        self.deliver = deliver
        self._ids: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._stamp: float | None = None
        if options.refresh_s is not None:
            host.after(host.random.uniform(0, options.refresh_s), self._refresh_regularly)

    def subscribe(self, wanted: Filter) -> None:
        self.wanted[wanted] = None
        if self.attachment.broker is not None:
            self._say(Sub(wanted, self.host.name, self._next()))

    def unsubscribe(self, wanted: Filter) -> None:
        self.wanted.pop(wanted, None)
        if self.attachment.broker is not None:
            self._say(Uns(wanted, self.host.name, self._next()))

    def handle(self, sender: NodeId, message: Message) -> None:
        match message:
            case Filters(filters):
                self._reconcile(filters)
            case Bquery(_, t):
                self.disk["t"] = max(t, self.disk.get("t", 0))  # where the disk was lost, the brokers know better
                self.refresh()
            case Pub(event, hops, stamp):
                self._note_stamp(sender, stamp)
                self._got(event, hops, "direct")
            case Rep(events, _, hops, stamp):
                self._note_stamp(sender, stamp)
                for event in events:
                    self._got(event, hops, "replayed")

    def _joined(self, broker: NodeId, previous: NodeId | None) -> None:
        """Say so. A refresh says more than MIG and needs no answer, so where there is one it goes instead."""
        if self.options.refresh_s is not None:
            self.refresh()
        else:
            self._say(Mig(self.host.name, previous, self._next(), last=self._stamp))
        self._stamp = None

    def _note_stamp(self, sender: NodeId, stamp: float | None) -> None:
        """Phoenix: the newest stamp of the present broker; nobody else's clock says anything."""
        if sender == self.attachment.broker and stamp is not None:
            self._stamp = stamp

    def _reconcile(self, believed: tuple[Filter, ...]) -> None:
        """Repair a partition's stale view of what this subscriber wants."""
        for wanted in self.wanted:
            if wanted not in believed:
                self._say(Sub(wanted, self.host.name, self._next()))
        for wanted in believed:
            if wanted not in self.wanted:
                self._say(Uns(wanted, self.host.name, self._next()))

    def _refresh_regularly(self) -> None:
        self.refresh()
        assert self.options.refresh_s is not None
        self.host.after(self.options.refresh_s, self._refresh_regularly)

    def refresh(self) -> None:
        """State all filters, under the next number."""
        if self.attachment.broker is not None:
            self._say(Bsub(self.host.name, tuple(self.wanted), self._next(), 0))

    def _got(self, event: Event, hops: int, how: str) -> None:
        if event.id in self._ids:
            self.host.trace(Record("duplicate", event.id, client=self.host.name, hops=hops, note=how))
            return
        self._ids[event.id] = None
        if len(self._ids) > self.options.remembered:
            self._ids.popitem(last=False)
        self.host.trace(Record("delivered", event.id, client=self.host.name, hops=hops, note=how))
        self.deliver(event)

    def _next(self) -> int:
        self.disk["t"] = int(self.disk.get("t", 0)) + 1
        return int(self.disk["t"])


class Publisher(Client):
    """Speaks to its broker and leaves no state anywhere.

    Without acknowledgements an event that finds no broker is lost, and noted as such. With them it is the publisher's
    until some broker has it: it is offered to the present one, and again to every new one.
    """

    def __init__(self, host: Host, options: ClientOptions = ClientOptions(), *, home: NodeId | None = None) -> None:  # noqa: B008
        super().__init__(host, options, home)
        self.unsent: dict[tuple[str, int], Event] = {}

    def publish(self, event: Event) -> bool:
        """Whether there is a broker to give the event to, now."""
        self.host.trace(Record("published", event.id, client=self.host.name))
        broker = self.attachment.broker
        if self.options.acknowledge:
            self._keep(event)
            self._offer(event)
        elif broker is not None:
            self.host.send(broker, Pub(event, 1))
        else:
            self._drop(event, "no broker")
        return broker is not None

    def _joined(self, broker: NodeId, previous: NodeId | None) -> None:
        for event in list(self.unsent.values()):
            self._offer(event)

    def _keep(self, event: Event) -> None:
        self.unsent[event.id] = event
        if len(self.unsent) > self.options.unsent_max:
            self._drop(self.unsent.pop(next(iter(self.unsent))), "no broker has taken it")

    def _offer(self, event: Event) -> None:
        broker = self.attachment.broker
        if broker is not None:
            self.courier.tell(
                broker, Pub(event, 1), ignore, keep_on=lambda: self.attachment.broker == broker, arrived=self._taken
            )

    def _taken(self, message: Carried) -> None:
        if isinstance(message, Pub):
            self.unsent.pop(message.event.id, None)

    def _drop(self, event: Event, why: str) -> None:
        self.host.trace(Record("dropped", event.id, client=self.host.name, note=why))
