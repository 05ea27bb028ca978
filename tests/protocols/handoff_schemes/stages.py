"""Brokers whose messages are delivered one by one, in whatever order a test wants."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import rng
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.messages import Deliver, Publish
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.host import Message, NodeId, Record, RemoteError


def between(low: int, high: int) -> Filter:
    return filter_of(attribute("value", rng(low, high)))


ALL = between(0, 99)
UNBOUNDED = HandoffOptions(timeout_s=inf, guard_s=inf)


class Alarm:
    def __init__(self, due_s: float, call: Callable[[], None]) -> None:
        self.due_s = due_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Desk:
    """A host whose mail lies on the stage until it is carried."""

    def __init__(self, stage: Stage, name: NodeId) -> None:
        self.stage = stage
        self.name = name
        self.random = Random(name)

    def now(self) -> float:
        return self.stage.now_s

    def send(self, to: NodeId, message: Message) -> None:
        self.stage.post(self.name, to, message)

    def broadcast(self, message: Message) -> None:
        raise AssertionError("nobody broadcasts here")

    def after(self, delay_s: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(self.stage.now_s + delay_s, call)
        self.stage.alarms.append(alarm)
        return alarm

    def trace(self, record: Record) -> None:
        self.stage.facts.append((self.name, record))


class Stage:
    """`carry(a, b)` delivers the next message from a to b; mail between a client and its broker goes by itself."""

    def __init__(
        self,
        names: str = "ABC",
        options: HandoffOptions = UNBOUNDED,
        scheme: Callable[[Desk, HandoffOptions], HandoffBroker] = ProActive,
    ) -> None:
        self.now_s = 0.0
        self.alarms: list[Alarm] = []
        self.facts: list[tuple[NodeId, Record]] = []
        self.mail: dict[tuple[NodeId, NodeId], deque[Message]] = {}
        self.brokers: dict[NodeId, Any] = {name: scheme(Desk(self, name), options) for name in names}
        self.clients: dict[NodeId, MobileClient] = {}
        self.disks: dict[NodeId, dict[str, Any]] = {}
        self.got: dict[NodeId, list[int]] = {}
        self.published = 0
        self.publishers: list[str] = []
        """Of each event."""
        self.lossy: set[NodeId] = set()
        """Clients whose acknowledgements are lost on the air."""
        self.deaf: set[NodeId] = set()
        """Clients that are gone before anything reaches them."""

    def client(self, name: NodeId, at: NodeId = "", wish: Filter = ALL, *, drop_seen: bool = False) -> MobileClient:
        got = self.got.setdefault(name, [])

        def listen(event: Event, delivery: Deliver) -> None:
            got.append(event.sequence)

        disk = self.disks.setdefault(name, {})
        client = self.clients[name] = MobileClient(Desk(self, name), {"w": wish}, disk, listen, drop_seen=drop_seen)
        if at:
            client.connect(at)
        return client

    def post(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if sender in self.clients or to in self.clients:
            self._on_the_air(sender, to, message)
        else:
            self.mail.setdefault((sender, to), deque()).append(message)

    def _on_the_air(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """At once: brokers act before they send, so that an answer finds them settled."""
        if to in self.clients:
            if self.clients[to].broker == sender and to not in self.deaf:
                self.clients[to].receive(sender, message)
        elif self.clients[sender].broker == to and not (sender in self.lossy and type(message).__name__ == "Ack"):
            self.brokers[to].receive(sender, message)

    def publish(self, value: int = 1, to: str = "", *, publisher: str = "P") -> Event:
        """To these brokers at once, to the others when `carry` says so."""
        event = Event(publisher, self.published, attributes={"value": value}, payload=b".")
        self.published += 1
        self.publishers.append(publisher)
        for name in self.brokers:
            self.mail.setdefault((publisher, name), deque()).append(Publish(event))
        for name in to:
            self.carry(publisher, name)
        return event

    def waiting(self, a: NodeId, b: NodeId) -> list[str]:
        return [type(message).__name__ for message in self.mail.get((a, b), ())]

    def carry(self, a: NodeId, b: NodeId, count: int = 1) -> None:
        for _ in range(count):
            message = self.mail[a, b].popleft()
            try:
                self.brokers[b].receive(a, message)
            except RemoteError as error:
                raise AssertionError(str(error)) from error

    def carry_all(self, a: NodeId, b: NodeId) -> None:
        while self.mail.get((a, b)):
            self.carry(a, b)

    def settle(self) -> None:
        """Everything arrives, and whatever that causes."""
        while routes := [route for route, queue in self.mail.items() if queue]:
            for route in routes:
                self.carry_all(*route)

    def pass_time(self, seconds: float) -> None:
        self.now_s += seconds
        for alarm in [alarm for alarm in self.alarms if alarm.due_s <= self.now_s]:
            self.alarms.remove(alarm)
            if alarm.call is not None:
                alarm.call()

    def vanish(self, name: NodeId, *, noticed: bool = True) -> None:
        broker = self.clients[name].broker
        self.clients[name].vanish()
        if noticed:
            self.brokers[broker].lost(name)

    def move(self, name: NodeId, to: NodeId, *, noticed: bool = True) -> None:
        self.vanish(name, noticed=noticed)
        self.clients[name].connect(to)

    def notes(self, kind: str) -> list[str]:
        return [record.note for _, record in self.facts if record.kind == kind]


def joined(names: str, *edges: str, options: HandoffOptions = UNBOUNDED) -> Stage:
    """A stage whose neighbor graph is known already: learned from somebody who walked each edge and unsubscribed."""
    stage = Stage(names, options)
    for i, edge in enumerate(edges):
        a, b = edge[0], edge[1]
        scout = stage.client(f"scout{i}", a)
        stage.settle()
        stage.move(f"scout{i}", b)
        stage.settle()
        scout.unsubscribe()
        stage.settle()
    stage.facts.clear()
    return stage
