"""Moves so fast that messages overtake them: what each set of rules loses, repeats and leaves behind (spec 2.10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from math import inf
from random import Random

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import gre
from godwit.lab.handoff.roaming import Instant
from godwit.lab.models.topology import complete, six_brokers
from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.lifecycle import Life
from godwit.protocols.handoff_schemes.messages import Deliver, Publish
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.handoff_schemes.rules import HARDENED, Rules
from godwit.protocols.host import Message, NodeId, Record
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.sim.world import Node, World

ALL: Filter = filter_of(attribute("value", gre(0)))
CONNECT, DISCONNECT, HANDOFF = 1.0, 0.3, 0.1
"""Mean stays; the mean connect time is the unit of all times here."""
DETECTION = (0.02, 0.15)
LENGTH = 20.7
PUBLISH_EVERY = LENGTH / 980


def mild(dice: Random) -> float:
    return dice.expovariate(1 / 0.005)


def harsh(dice: Random) -> float:
    """Mean 0.03, but every tenth 0.5."""
    return 0.5 if dice.random() < 0.1 else dice.expovariate(1 / 0.03)


DELAYS: dict[str, Callable[[Random], float]] = {"mild": mild, "harsh": harsh}


class Race(msgspec.Struct, frozen=True, kw_only=True):
    """One run, decided by this."""

    seed: int
    rules: Rules = HARDENED
    delay: str = "harsh"
    neighbors: bool = True
    """Moves between neighbors of the testbed; else to any broker."""
    edge_timeout: float = 0.0
    """Edges age after so long; 0: never."""
    subscribers: int = 6
    length: float = LENGTH


class Outcome(msgspec.Struct):
    due: int = 0
    lost: int = 0
    repeated: int = 0
    disordered: int = 0
    orphans: int = 0
    stuck: int = 0
    cut_off: int = 0
    handoffs: int = 0
    hits: int = 0

    @property
    def left_behind(self) -> int:
        return self.orphans + self.stuck + self.cut_off

    def plus(self, other: Outcome) -> Outcome:
        return Outcome(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class Source:
    """The publisher: only sends."""

    def receive(self, sender: NodeId, message: Message) -> None:
        raise AssertionError("nobody answers a publisher here")


class Course:
    """The world of one race."""

    def __init__(self, race: Race) -> None:
        self.race = race
        self.outcome = Outcome()
        self.world = World(race.seed, Instant, self)
        assert isinstance(self.world.medium, Instant)
        self.medium = self.world.medium
        self.motion = six_brokers() if race.neighbors else complete([f"B{i}" for i in range(1, 7)])
        graph = GraphOptions(edge_timeout_s=race.edge_timeout or inf)
        self.options = HandoffOptions(timeout_s=inf, guard_s=inf, rules=race.rules, graph=graph)
        self.brokers: dict[NodeId, ProActive] = {}
        self.clients: dict[NodeId, MobileClient] = {}
        self.got: dict[NodeId, list[int]] = {}
        self.published = 0
        self.end_s = race.length
        self._build()

    def _build(self) -> None:
        for name in self.motion:
            self.world.add(name, self._broker)
        self.source = self.world.add("P", lambda node: Source())
        nodes = ["P", *self.motion]
        for i, a in enumerate(nodes):
            for b in nodes[i + 1 :]:
                self.medium.connect(a, b, DELAYS[self.race.delay])
        for i in range(self.race.subscribers):
            self.world.add(f"s{i}", self._client)

    def _broker(self, node: Node) -> ProActive:
        broker = self.brokers[node.name] = ProActive(node, self.options)
        return broker

    def _client(self, node: Node) -> MobileClient:
        got = self.got[node.name] = []

        def listen(event: Event, delivery: Deliver) -> None:
            got.append(event.sequence)

        client = MobileClient(node, {"all": ALL}, node.disk, listen)
        self.clients[node.name] = self.medium.clients[node.name] = client
        return client

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        self.outcome.hits += record.note == "hit"

    def publish(self) -> None:
        event = Event("P", self.published, attributes={"value": 1})
        self.published += 1
        for name in self.brokers:
            self.source.send(name, Publish(event))

    def leave(self, name: NodeId, detected_after: float) -> None:
        """Vanish; some time later the broker notices, unless the client is back there."""
        client = self.clients[name]
        broker, number = client.broker, client.number
        client.vanish()

        def notice() -> None:
            if not (client.broker == broker and client.number > number):
                self.brokers[broker].lost(name)

        self.world.engine.after(detected_after, notice)

    def judge(self, gone: set[NodeId]) -> Outcome:
        """After the drain; `gone` have unsubscribed."""
        outcome = self.outcome
        for name in self.clients:
            if name not in gone:
                self._judge_received(self.got[name])
                self._judge_place(name)
        for broker in self.brokers.values():
            outcome.orphans += sum(record.subscriber in gone for record in broker.records.values())
        return outcome

    def _judge_received(self, got: list[int]) -> None:
        counts = Counter(got)
        self.outcome.due += self.published
        self.outcome.lost += self.published - len(counts)
        self.outcome.repeated += len(got) - len(counts)
        furthest = list(accumulate(got, max))
        self.outcome.disordered += sum(now < before for now, before in zip(got[1:], furthest, strict=False))

    def _judge_place(self, name: NodeId) -> None:
        own = self.clients[name].broker
        record = self.brokers[own].records.get(name)
        whole = record is not None and record.is_real and record.life is Life.CONNECTED and record.whole
        self.outcome.cut_off += not whole
        for place, broker in self.brokers.items():
            other = broker.records.get(name)
            if place != own and other is not None:
                self.outcome.stuck += other.is_active
                self.outcome.orphans += other.is_real


def run(race: Race) -> Outcome:
    course = Course(race)
    engine, dice = course.world.engine, course.world.streams.stream("moves")
    _start(course)
    for i in range(round(race.length / PUBLISH_EVERY)):
        engine.at(0.01 + i * PUBLISH_EVERY, course.publish)
    if race.edge_timeout:
        _sweep_while(course, race)
    engine.run(race.length + 0.01)
    for name in course.clients:
        bring_home(course, name, dice)
    engine.run(race.length + 0.05)
    gone = {name for i, name in enumerate(course.clients) if i % 3 == 2}
    for name in gone:
        course.clients[name].unsubscribe()
    engine.run()
    return course.judge(gone)


def _start(course: Course) -> None:
    names = list(course.motion)
    for i, name in enumerate(course.clients):
        course.clients[name].connect(names[i % len(names)])
        stay(course, name, course.world.streams.stream("moves", name))


def stay(course: Course, name: NodeId, dice: Random) -> None:
    course.world.engine.after(dice.expovariate(1 / CONNECT), lambda: _depart(course, name, dice))


def _depart(course: Course, name: NodeId, dice: Random) -> None:
    """From connect: half disconnect, half handoff; from disconnect: half back, half handoff (4.3)."""
    if course.world.engine.now > course.end_s:
        return
    here = course.clients[name].broker
    course.leave(name, dice.uniform(*DETECTION))
    wait_s, target = 0.0, here
    back = False
    if dice.random() < 0.5:
        wait_s += dice.expovariate(1 / DISCONNECT)
        back = dice.random() < 0.5
    if not back:
        wait_s += dice.expovariate(1 / HANDOFF)
        target = dice.choice(course.motion[here])

    def appear() -> None:
        if course.clients[name].broker:
            return
        _connect(course, name, target)
        stay(course, name, dice)

    course.world.engine.after(wait_s, appear)


def _connect(course: Course, name: NodeId, target: NodeId) -> None:
    client = course.clients[name]
    if client.log.previous != target:
        course.outcome.handoffs += 1
    client.connect(target)


def bring_home(course: Course, name: NodeId, dice: Random) -> None:
    if not course.clients[name].broker:
        _connect(course, name, dice.choice(list(course.motion)))


def _sweep_while(course: Course, race: Race) -> None:
    def sweep() -> None:
        for broker in course.brokers.values():
            broker.sweep()
        if course.world.engine.now < race.length:
            course.world.engine.after(race.edge_timeout / 10, sweep)

    course.world.engine.after(race.edge_timeout / 10, sweep)
