"""Proximity-driven routing (spec manet-cbr 2.5): no tree, no addresses, no list of neighbours, only broadcasts.

Whoever hears an event decides alone whether to send it on: it does if it has met somebody who wants it, and more
recently than anybody who sent this copy before. The more recently, the sooner; and who hears another's copy while it
waits keeps silent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.carrier import Carrier
from godwit.protocols.adhoc.clients import Clients
from godwit.protocols.adhoc.digest import EventId
from godwit.protocols.adhoc.messages import CLOSEST, FARTHEST, Beacon, Data
from godwit.protocols.adhoc.options import PUBLISHED, Delay, Options
from godwit.protocols.adhoc.seen import Recent
from godwit.protocols.adhoc.table import ProximityTable
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError, Timer

QUEUED_S = 1.0
"""How long a sent message may wait in the queue of a radio."""

Notify = Callable[[str, Event], None]
Withdraw = Callable[[Message], object]


@dataclass(slots=True)
class Pending:
    """A copy that waits: for its time or, without a timer, since this moment in the queue of the radio."""

    data: Data
    timer: Timer | None
    sent_s: float = 0.0


class ProximityBroker:
    """One broker, of one node, for its local clients; `on_event(client, event)` is called for what each wants.

    `withdraw(message)` takes a message that was broadcast back from the queue of the radio, where the world can do so.
    """

    def __init__(
        self,
        host: Host,
        options: Options = PUBLISHED,
        *,
        on_event: Notify = lambda client, event: None,
        withdraw: Withdraw | None = None,
    ) -> None:
        self.host = host
        self.options = options
        self.on_event = on_event
        self.clients = Clients(options.summary_max_b)
        self.table = ProximityTable(
            options.period_s,
            missed_max=options.missed_max,
            late_s=2 * options.period_jitter * options.period_s,
            estimate=options.estimate,
        )
        self.seen: Recent[None] = Recent(options.seen_max, options.seen_s)
        self.pending: dict[EventId, Pending] = {}
        self.carrier = None if options.carry is None else Carrier(options.carry)
        self._withdraw = withdraw if options.withdraw else None
        self._farewell = False
        host.after(host.random.uniform(0, options.period_s), self._tick)

    def subscribe(self, wanted: FilterSet, client: str) -> None:
        """Told to others with the next beacon."""
        self.clients.subscribe(wanted, client)

    def unsubscribe(self, wanted: FilterSet, client: str) -> None:
        self.clients.unsubscribe(wanted, client)
        self._farewell = self.options.farewell and not self.clients

    def publish(self, event: Event) -> None:
        """Send an event to whoever wants it anywhere; its id must be new."""
        if event.id in self.seen:
            raise LocalError(f"event {event.id} has been published before; its publisher must count on")
        now = self.host.now()
        self.host.trace(Record("published", event.id))
        destinations: dict[NodeId, int] = {}
        self._take(event, destinations, now)
        known = dict(self.table.matching(event.values(), now))
        destinations |= known
        data = Data(event, self.options.credits, destinations)
        self._carry(data, now)
        if known or self.options.publish_to_nobody:
            self._broadcast(data, now)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if sender == self.host.name:
            return
        match message:
            case Beacon():
                self._hear_beacon(sender, message)
            case Data():
                self._hear_data(message)
            case _:
                raise RemoteError(f"{type(message).__name__} is no message of brokers without infrastructure")

    @property
    def period_s(self) -> float:
        """From one beacon of this broker to the next."""
        adaptive = self.options.adaptive
        if adaptive is None:
            return self.options.period_s
        return min(max(adaptive.share * self.table.stay_s(self.host.now()), adaptive.shortest_s), adaptive.longest_s)

    def _tick(self) -> None:
        now, period = self.host.now(), self.period_s
        if self.clients or self._farewell or self.options.beacon_when_empty:
            self._farewell = False
            self.host.broadcast(self._beacon(now, period))
        self.table.clean(now)
        self.seen.forget(now)
        self.pending = {k: p for k, p in self.pending.items() if p.timer is not None or now - p.sent_s < QUEUED_S}
        off = self.host.random.uniform(-1, 1) * self.options.period_jitter if self.options.period_jitter else 0.0
        self.host.after(period * (1 + off), self._tick)

    def _beacon(self, now: float, period_s: float) -> Beacon:
        return Beacon(
            self.clients.summary,
            period_s if self.options.adaptive is not None else None,
            None if self.carrier is None else self.carrier.digest(now),
            self.table.hints(now, self.options.hints_max) if self.options.hints_max else (),
        )

    def _hear_beacon(self, sender: NodeId, beacon: Beacon) -> None:
        now = self.host.now()
        self.table.heard(sender, beacon.wanted, now, beacon.period_s)
        self._learn(beacon, now)
        if self.carrier is not None:
            for data in self.carrier.offers(sender, beacon, now):
                waiting = self.pending.get(data.event.id)
                if waiting is None or waiting.timer is None:
                    self._schedule(data, self.host.random.random() * self.options.delay_max_s)

    def _learn(self, message: Beacon | Data, now: float) -> None:
        for hint in message.hints:
            if hint.broker != self.host.name:
                self.table.told(hint, now)

    def _hear_data(self, data: Data) -> None:
        event, now = data.event, self.host.now()
        self._learn(data, now)
        if event.id in self.seen:
            if self.options.suppress:
                self._cancel(event.id)
            return
        destinations = dict(data.destinations)
        self._take(event, destinations, now)
        closest = self._approach(event, destinations, now)
        credit = data.credit
        if closest is None and credit > 0:
            credit -= 1
            closest = FARTHEST
        onward = Data(event, credit, destinations, age_s=data.age_s)
        self._carry(onward, now)
        if closest is not None:
            self._schedule(onward, self._wait_s(closest))

    def _take(self, event: Event, destinations: dict[NodeId, int], now: float) -> None:
        """Remember it and give it to local clients; who got it needs no others to look for it."""
        self.seen.add(event.id, None, now)
        for client in self.clients.wanting(event):
            destinations[self.host.name] = CLOSEST
            self.host.trace(Record("delivered", event.id, client=client))
            self.on_event(client, event)

    def _approach(self, event: Event, destinations: dict[NodeId, int], now: float) -> int | None:
        """List those to whom this broker is closer than anybody before it; how close to the closest, None if to none.

        Only strictly closer counts, so that an event never runs in circles between brokers that are equally far.
        """
        closest = None
        for broker, proximity in self.table.matching(event.values(), now):
            listed = destinations.get(broker)
            if listed is None or proximity < listed:
                destinations[broker] = proximity
                closest = proximity if closest is None else min(closest, proximity)
        return closest

    def _carry(self, data: Data, now: float) -> None:
        if self.carrier is not None:
            self.carrier.keep(data, now, is_wanted=self.clients.summary.matches(data.event.values()))

    def _wait_s(self, proximity: int) -> float:
        longest, dice = self.options.delay_max_s, self.host.random
        if self.options.delay is Delay.RANDOM:
            return dice.random() * longest
        return longest * (proximity / FARTHEST + dice.random() * self.options.jitter)

    def _schedule(self, data: Data, wait_s: float) -> None:
        event = data.event.id
        self.pending[event] = Pending(data, self.host.after(wait_s, lambda: self._send(event)))

    def _send(self, event: EventId) -> None:
        pending, now = self.pending[event], self.host.now()
        sent = self._broadcast(pending.data, now)
        self.pending[event] = Pending(sent, None, now)

    def _broadcast(self, data: Data, now: float) -> Data:
        if self.options.hints_in_data:
            hints = self.table.hints(now, len(data.destinations), data.destinations)
            data = Data(data.event, data.credit, data.destinations, hints, data.age_s)
        self.host.broadcast(data)
        return data

    def _cancel(self, event: EventId) -> None:
        """Another has sent it: whatever that copy lists, this broker's own is not needed."""
        pending = self.pending.pop(event, None)
        if pending is None:
            return
        if pending.timer is not None:
            pending.timer.cancel()
        elif self._withdraw is not None:
            self._withdraw(pending.data)
