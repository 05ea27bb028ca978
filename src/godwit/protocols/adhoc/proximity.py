"""Proximity-driven routing (spec manet-cbr 2.5): no tree, no addresses, no list of neighbors, only broadcasts.

Whoever hears an event decides alone whether to send it on: it does if it has met somebody who wants it, and more
recently than anybody who sent this copy before. The more recently, the sooner; and who hears another's copy while it
waits keeps silent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.beacons import Beacons
from godwit.protocols.adhoc.carrier import Carrier
from godwit.protocols.adhoc.clients import Clients, Statement
from godwit.protocols.adhoc.digest import EventId
from godwit.protocols.adhoc.messages import CLOSEST, FARTHEST, Beacon, Data
from godwit.protocols.adhoc.options import PUBLISHED, Delay, Options
from godwit.protocols.adhoc.seen import Recent
from godwit.protocols.adhoc.table import ProximityTable
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError, Timer

QUEUED_S = 1.0
"""How long a sent message may wait in the queue of a radio."""

STEP_S = 0.002
"""From one event to the next of its publisher, where nothing may overtake: clocks of real hosts count milliseconds."""

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

    `withdraw(message)` takes a message that was broadcast back from the queue of the radio, where the world can do so;
    `is_waiting(event)` says whether a message with this event is still in it.
    """

    def __init__(
        self,
        host: Host,
        options: Options = PUBLISHED,
        *,
        on_event: Notify = lambda client, event: None,
        withdraw: Withdraw | None = None,
        is_waiting: Callable[[EventId], bool] = lambda event: False,
        clients: Clients | Statement | None = None,
        traced: bool = True,
    ) -> None:
        self.host = host
        self.options = options
        self.on_event = on_event
        self.traced = traced
        self.clients = Clients(options.summary_max_b) if clients is None else clients
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
        self._is_waiting = is_waiting
        self._farewell = False
        self._beacons = Beacons(options, self.table, self.carrier)
        self._due_s: dict[str, float] = {}
        """By publisher: when the last that waits here is due."""
        self._beaconed_s = host.now() - options.period_s
        self._beacon_after(host.random.uniform(0, options.period_s))

    def subscribe(self, wanted: FilterSet, client: str) -> None:
        """Told to others with the next beacon."""
        assert isinstance(self.clients, Clients)
        self.clients.subscribe(wanted, client)
        self._hasten()

    def unsubscribe(self, wanted: FilterSet, client: str) -> None:
        assert isinstance(self.clients, Clients)
        self.clients.unsubscribe(wanted, client)
        self._bid_farewell()

    def state(self, wanted: FilterSet) -> None:
        """All that is wanted here, where a `Statement` stands for the clients; told with the next beacon."""
        assert isinstance(self.clients, Statement)
        before = self.clients.summary
        self.clients.state(wanted)
        if self.clients.summary != before:
            self._bid_farewell()
            self._hasten()

    def _bid_farewell(self) -> None:
        self._farewell = self.options.farewell and not self.clients

    def publish(self, event: Event) -> None:
        """Send an event to whoever wants it anywhere; its id must be new."""
        if event.id in self.seen:
            raise LocalError(f"event {event.id} has been published before; its publisher must count on")
        now = self.host.now()
        if self.traced:
            self.host.trace(Record("published", event.id))
        destinations: dict[NodeId, int] = {}
        self._take(event, destinations, now)
        known = dict(self.table.matching(event.values(), now))
        destinations |= known
        data = Data(event, self.options.credits, destinations)
        self._carry(data, now)
        if known or self.options.publish_to_nobody:
            self._broadcast(data, now)

    def remember(self, event: EventId) -> None:
        """It was taken in an earlier life; for a broker that starts."""
        self.seen.add(event, None, self.host.now())
        if self.carrier is not None:
            self.carrier.had.add(event, None, self.host.now())

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
            self._beaconed_s = now
            self.host.broadcast(self._beacons.next(self.clients.summary, now, period))
        self.table.clean(now)
        self.seen.forget(now)
        self.pending = {k: p for k, p in self.pending.items() if p.timer is not None or now - p.sent_s < QUEUED_S}
        self._due_s = {publisher: due_s for publisher, due_s in self._due_s.items() if due_s > now}
        off = self.host.random.uniform(-1, 1) * self.options.period_jitter if self.options.period_jitter else 0.0
        self._beacon_after(period * (1 + off))

    def _beacon_after(self, wait_s: float) -> None:
        self._next_s = self.host.now() + wait_s
        self._next = self.host.after(wait_s, self._tick)

    def _hasten(self) -> None:
        """There is news: the next beacon comes forward, at a moment of its own, lest all speak at once."""
        if not self.options.prompt:
            return
        early_s = self._beaconed_s + self.period_s / 4 - self.host.now()
        wait_s = max(0.0, early_s) + self.host.random.random() * self.options.delay_max_s
        if self.host.now() + wait_s < self._next_s:
            self._next.cancel()
            self._beacon_after(wait_s)

    def _hear_beacon(self, sender: NodeId, beacon: Beacon) -> None:
        now = self.host.now()
        is_news = self.table.heard(sender, beacon.wanted, now, beacon.period_s)
        if self._learn(beacon, now) or is_news:
            self._hasten()
        if self.carrier is None:
            return
        for data in self.carrier.offers(sender, beacon, now, self._beyond(beacon, now), self._is_waiting):
            waiting = self.pending.get(data.event.id)
            if waiting is None or waiting.timer is None:
                self._schedule(data, self.host.random.random() * self.options.delay_max_s)

    def _beyond(self, beacon: Beacon, now: float) -> list[FilterSet]:
        """What those want to whom the sender of this beacon is closer than this broker."""
        if self.options.carry is None or not self.options.carry.relay:
            return []
        others = [(hint, self.table.proximity(hint.broker, now)) for hint in beacon.hints]
        return [
            hint.wanted
            for hint, own in others
            if hint.broker != self.host.name and (own is None or hint.proximity < own)
        ]

    def _learn(self, message: Beacon | Data, now: float) -> bool:
        """Whether there was news among the hints."""
        told = [self.table.told(hint, now) for hint in message.hints if hint.broker != self.host.name]
        return any(told)

    def _hear_data(self, data: Data) -> None:
        event, now = data.event, self.host.now()
        self._learn(data, now)
        if event.id in self.seen:
            if self.options.suppress:
                self._cancel(event.id, data.destinations)
            return
        destinations = dict(data.destinations)
        self._take(event, destinations, now)
        closest = self._approach(event, destinations, now)
        credit = data.credit
        if closest is None and credit > 0 and not (self.options.thrifty and data.destinations):
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
            if self.traced:
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
            is_relayed = self.carrier.options.relay
            is_wanted = is_relayed or self.clients.summary.matches(data.event.values())
            self.carrier.keep(data, now, is_wanted=is_wanted)

    def _wait_s(self, proximity: int) -> float:
        longest, dice = self.options.delay_max_s, self.host.random
        if self.options.delay is Delay.RANDOM:
            return dice.random() * longest
        return longest * (proximity / FARTHEST + dice.random() * self.options.jitter)

    def _schedule(self, data: Data, wait_s: float) -> None:
        event = data.event.id
        if self.options.in_order:
            now = self.host.now()
            due_s = max(now + wait_s, self._due_s.get(event[0], 0.0) + STEP_S)
            self._due_s[event[0]] = due_s
            wait_s = due_s - now
        self.pending[event] = Pending(data, self.host.after(wait_s, lambda: self._send(event)))

    def _send(self, event: EventId) -> None:
        pending, now = self.pending[event], self.host.now()
        sent = self._broadcast(pending.data, now)
        self.pending[event] = Pending(sent, None, now)

    def _broadcast(self, data: Data, now: float) -> Data:
        most = self.options.destinations_max
        if most is not None and len(data.destinations) > most:
            closest = sorted(data.destinations.items(), key=lambda one: (one[1], one[0]))[:most]
            data = msgspec.structs.replace(data, destinations=dict(closest))
        if self.options.hints_in_data:
            hints = self.table.hints(now, len(data.destinations), data.destinations)
            data = Data(data.event, data.credit, data.destinations, hints, data.age_s)
        self.host.broadcast(data)
        return data

    def _cancel(self, event: EventId, listed: Mapping[NodeId, int]) -> None:
        """Another has sent it: whatever that copy lists, this broker's own is not needed, unless it is mindful."""
        pending = self.pending.get(event)
        if pending is None or (self.options.mindful and not _covers(listed, pending.data.destinations)):
            return
        del self.pending[event]
        if pending.timer is not None:
            pending.timer.cancel()
        elif self._withdraw is not None:
            self._withdraw(pending.data)


def _covers(listed: Mapping[NodeId, int], own: Mapping[NodeId, int]) -> bool:
    """Whether the one list brings the event at least as close to everybody on the other."""
    return all(listed.get(broker, FARTHEST + 1) <= proximity for broker, proximity in own.items())
