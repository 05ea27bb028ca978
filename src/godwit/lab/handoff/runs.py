"""One run of the published evaluation: so many subscribers moving among brokers, and what came of every event.

A run is decided by its `Configuration`. Movement and events depend on the seed and the names alone, so that all schemes
see the same moves; how fast events follow each other depends on the brokers, since the publisher waits for them (4.2).
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import rng
from godwit.lab.handoff.bed import Air, Channel, Costs, Server, Testbed
from godwit.lab.models.topology import Graph, complete, six_brokers
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.durable import Durable
from godwit.protocols.handoff_schemes.home import Home
from godwit.protocols.handoff_schemes.messages import Deliver, Publish
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.handoff_schemes.reactive import Reactive
from godwit.protocols.handoff_schemes.rules import CHECKED, HARDENED, OURS
from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.sim.world import Node, World

SCHEMES = (
    *("durable", "reactive", "proactive", "ours", "memory", "literal"),
    *("home", "prefetch", "announced", "oracle"),
    "product",
)
"""`proactive` follows all race rules. `ours` has the disk below its buffer, remembers the latest events, and its
clients say what they have seen; `memory` is the same without the disk, with pooled memory instead. `literal` is the
text with its own options and Z2. The four after it are the extra baselines of F30: a home broker, prefetching
at disconnect, announced moves, and a prediction that is always right. `product` is the deployed broker."""
OWN = ("ours", "memory")
LATEST_SHARE = 0.1
"""Of the buffer, for the latest events."""
PATTERNS = ("RND", "NBR")
CHANNELS = ("cell", "shared")
VALUES, SPAN = 100, 20
SIZE_B = 2400
"""Of a message; unknown (4.2), so it is fitted to the durable scheme together with `bed.Costs`."""
WEAKER = {"B3": 1.1, "B4": 1.1}
"""Two machines of the testbed were weaker; by how much is not known."""
POSITIVE = (
    *("subscribers", "bandwidth_mbps", "queue_mb", "disconnect_s", "connect_s", "handoff_s", "measure_s"),
    *("size_b", "stored"),
)
PATIENT_S = 3600.0
"""T_timeout of ours; in the published schemes it is five mean disconnect times (2.17)."""
PUBLISHER = "P"
SETTLE_S = 10.0
FIRST_MOVES = 10
"""So many moves show what a graph without edges misses (Q22). A mean over brokers took idle ones for all-knowing."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    scheme: str
    seed: int
    subscribers: int = 200
    pattern: str = "RND"
    sleep_s: float = 0.0
    bandwidth_mbps: float = 11.0
    queue_mb: float = 1.0
    disconnect_s: float = 12.0
    connect_s: float = 60.0
    handoff_s: float = 3.0
    size_b: int = SIZE_B
    moving: bool = True
    warmup_s: float = 120.0
    measure_s: float = 300.0
    detection_s: float = 0.2
    layout: str = "a"
    skew: float = 0.0
    """Neighbors are not equally likely: each is so much less likely than the one before it, by name."""
    strays: float = 0.0
    """So many moves lead to any other broker: who vanished may surface anywhere (2.5)."""
    mass: float = 1.0
    """Copies go to the most used neighbors that make up this share of the moves (2.11); 1: to all."""
    channel: str = "cell"
    """A channel for each broker's cell, or one that all share: the text speaks of total available bandwidth."""
    stored: float = 1.0
    """Durable: how many times its size a stored event occupies in the queue; how Sun's broker counted is not known."""
    notice_s: float = -1.0
    standin_s: float = -1.0
    moved_event_s: float = -1.0
    """What the durable scheme never does, as in `bed.Costs`; negative: put together from what it does."""

    def __post_init__(self) -> None:
        for name, known in (("scheme", SCHEMES), ("pattern", PATTERNS), ("channel", CHANNELS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} {getattr(self, name)!r}: one of {', '.join(known)}")
        for name in POSITIVE:
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0 and finite")
        for name in ("skew", "strays"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} {getattr(self, name):g}: must be from 0 to less than 1")

    @property
    def options(self) -> HandoffOptions:
        """A context of a published scheme goes event by event, one of ours in larger pieces."""
        buffer_b = self.queue_mb * 1e6 / (self.stored if self.scheme == "durable" else 1.0)
        graph = GraphOptions(mass=self.mass)
        if self.scheme not in OWN:
            return HandoffOptions(
                buffer_b=buffer_b,
                timeout_s=5 * self.disconnect_s,
                rules=CHECKED if self.scheme == "literal" else HARDENED,
                chunk=1,
                prefetch=self.scheme == "prefetch",
                graph=graph,
            )
        return HandoffOptions(
            buffer_b=buffer_b,
            disk=self.scheme == "ours",
            pool=self.scheme == "memory",
            latest_b=LATEST_SHARE * buffer_b,
            timeout_s=PATIENT_S,
            rules=OURS,
            graph=graph,
        )


class Result(msgspec.Struct, kw_only=True):
    """The metrics of 4.4 for one run; dictionaries are by broker."""

    published: int
    due: int
    lost: int
    received: int
    """All arrivals in the measured time; `unique` of them were the first of their kind."""
    unique: int
    redelivered: int
    disordered: int
    throughput_per_s: float
    """T_s by unique events, as compared with the published tables (G17)."""
    loss: float
    duplication: float
    delay_s: float
    latency_s: float
    """H."""
    latency_q60_s: float
    handoffs: int
    hits: int
    misses: int
    transfer_share: float
    copies_per_handoff: float
    """Subscriptions stored, stand-ins woken and events sent after, for each handoff."""
    peer_mb: float
    evicted: int
    false_negatives_first: float
    false_negatives_last: float
    broker_throughput_per_s: dict[str, float]
    broker_processing_s: dict[str, float]
    population: dict[str, float]
    dummies: dict[str, float]
    control: dict[str, int]
    latency_deciles_s: dict[str, float]


SCHEME_CLASSES: dict[str, Callable[[Host, HandoffOptions], HandoffBroker]] = {
    "durable": Durable,
    "reactive": Reactive,
    "proactive": ProActive,
    "ours": ProActive,
    "memory": ProActive,
    "literal": ProActive,
    "home": Home,
    "prefetch": ProActive,
    "announced": ProActive,
    "oracle": ProActive,
}


def selectors(seed_dice: Random, count: int) -> list[tuple[int, int]]:
    """A random contiguous fifth of the values for each subscriber, without wrap-around."""
    starts = [seed_dice.randint(0, VALUES - SPAN) for _ in range(count)]
    return [(start, start + SPAN - 1) for start in starts]


def wish(low: int, high: int) -> Filter:
    return filter_of(attribute("value", rng(low, high)))


class Tally:
    """What one subscriber has had."""

    __slots__ = ("arrived_at_s", "got", "last")

    def __init__(self) -> None:
        self.got: set[int] = set()
        self.last = -1
        self.arrived_at_s: float | None = None
        """When it asked to be let in at a new broker, until the first event there."""


class Publisher:
    """A closed loop: the next event goes out when the slowest broker has accepted the last one."""

    def __init__(self, run: Run, node: Node) -> None:
        self.run = run
        self.node = node
        self.dice = node.world.streams.stream("values")
        self.payload = bytes(run.configuration.size_b)
        self.times_s: list[float] = []
        self.values: list[int] = []
        self.outstanding = 0
        self.stopped = False

    def receive(self, sender: NodeId, message: Message) -> None:
        raise AssertionError("brokers accept by themselves")

    def publish(self) -> None:
        if self.stopped:
            return
        value = self.dice.randrange(VALUES)
        event = Event(PUBLISHER, len(self.times_s), attributes={"value": value}, payload=self.payload)
        self.times_s.append(self.node.world.engine.now)
        self.values.append(value)
        self.outstanding = len(self.run.servers)
        for name in self.run.servers:
            self.node.send(name, Publish(event))

    def accepted(self, broker: NodeId) -> None:
        self.outstanding -= 1
        if not self.outstanding:
            self.node.world.engine.after(self.run.configuration.sleep_s + 0.0005, self.publish)


class Run:
    """The world of one configuration."""

    def __init__(self, configuration: Configuration, costs: Costs | None = None) -> None:
        self.configuration = configuration
        self.costs = costs or Costs(
            notice_s=configuration.notice_s,
            standin_s=configuration.standin_s,
            moved_event_s=configuration.moved_event_s,
        )
        self.world = World(configuration.seed, Testbed, self)
        assert isinstance(self.world.medium, Testbed)
        self.bed = self.world.medium
        self.bed.air = Air(bits_per_s=configuration.bandwidth_mbps * 1e6)
        names = [f"B{i}" for i in range(1, 7)]
        self.motion: Graph = six_brokers(configuration.layout) if configuration.pattern == "NBR" else complete(names)
        self.servers: dict[NodeId, Server] = {}
        self.clients: dict[NodeId, MobileClient] = {}
        self.tallies: dict[NodeId, Tally] = {}
        self.ranges: dict[NodeId, tuple[int, int]] = {}
        self.measuring = False
        self.delays_s: list[float] = []
        self.handoffs_s: list[float] = []
        self.handoffs = self.received = self.unique = self.transferred = self.disordered = 0
        self.hits = self.misses = self.evicted = 0
        self.populations: dict[NodeId, list[int]] = {name: [] for name in names}
        self.dummies: dict[NodeId, list[int]] = {name: [] for name in names}
        self.missed: list[bool] = []
        """Of every move to another broker, from the first on, whether the graph had not foreseen it."""
        self.moving = configuration.moving
        self.next_places: dict[NodeId, NodeId] = {}
        self.sent: Counter[tuple[NodeId, str]] = Counter()
        self.sent_b: Counter[NodeId] = Counter()
        self.sent_after = 0
        self.publisher: Publisher
        self._build(names)

    def _build(self, names: list[NodeId]) -> None:
        self.world.add(PUBLISHER, self._publisher)
        shared = Channel()
        for name in names:
            self.bed.cells[name] = shared if self.configuration.channel == "shared" else Channel()
            self.world.add(name, self._server)
        nodes = [PUBLISHER, *names]
        for i, a in enumerate(nodes):
            for b in nodes[i + 1 :]:
                self.bed.connect(a, b, 0.0003, 100e6 / 8)
        ranges = selectors(self.world.streams.stream("selectors"), self.configuration.subscribers)
        for i, span in enumerate(ranges):
            self.ranges[f"s{i}"] = span
            self.world.add(f"s{i}", self._client)

    def _publisher(self, node: Node) -> Publisher:
        self.publisher = Publisher(self, node)
        return self.publisher

    def _server(self, node: Node) -> Server:
        core = SCHEME_CLASSES[self.configuration.scheme](node, self.configuration.options)
        if self.configuration.scheme == "oracle" and isinstance(core, ProActive):
            core.oracle = self.next_places.__getitem__
        slowness = WEAKER.get(node.name, 1.0)
        express = self.configuration.scheme in OWN
        server = Server(node, core, self.costs, slowness, self.bed, self.publisher.accepted, express=express)
        self.servers[node.name] = server
        return server

    def _client(self, node: Node) -> MobileClient:
        tally = self.tallies[node.name] = Tally()

        def listen(event: Event, delivery: Deliver) -> None:
            self._heard(tally, event, delivery)

        wishes = {"w": wish(*self.ranges[node.name])}
        client = MobileClient(node, wishes, node.disk, listen, drop_seen=self.configuration.scheme in OWN)
        self.clients[node.name] = self.bed.clients[node.name] = client
        return client

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        if record.note in ("hit", "miss"):
            self.missed.append(record.note == "miss")
        if self.measuring:
            self.hits += record.note == "hit"
            self.misses += record.note == "miss"
            self.evicted += record.kind == "dropped"

    def _heard(self, tally: Tally, event: Event, delivery: Deliver) -> None:
        now = self.world.engine.now
        sequence = event.sequence
        if tally.arrived_at_s is not None:
            if self.measuring:
                self.handoffs_s.append(now - tally.arrived_at_s)
            tally.arrived_at_s = None
        new = sequence not in tally.got
        tally.got.add(sequence)
        if self.measuring:
            self.received += 1
            self.unique += new
            self.transferred += delivery.transferred
            self.delays_s.append(now - self.published_at_s(sequence))
            self.disordered += new and sequence < tally.last
        tally.last = max(tally.last, sequence)

    def published_at_s(self, sequence: int) -> float:
        return self.publisher.times_s[sequence]

    def published_value(self, sequence: int) -> int:
        return self.publisher.values[sequence]

    def execute(self) -> Result:
        configuration, engine = self.configuration, self.world.engine
        self._start()
        self._sample()
        engine.run(configuration.warmup_s)
        first = len(self.publisher.times_s)
        self.measuring = True
        before, sent, sent_b = self._forwarded(), Counter(self.bed.sent), Counter(self.bed.sent_b)
        sent_after = self.bed.sent_after
        for server in self.servers.values():
            server.publications, server.sojourn_s = 0, 0.0
        engine.run(configuration.warmup_s + configuration.measure_s)
        self.measuring = False
        self.moving = False
        self.publisher.stopped = True
        result_until = len(self.publisher.times_s)
        after = self._forwarded()
        self.sent, self.sent_b = Counter(self.bed.sent) - sent, Counter(self.bed.sent_b) - sent_b
        self.sent_after = self.bed.sent_after - sent_after
        self._drain()
        return self._result(first, result_until, {name: after[name] - before[name] for name in after})

    def _start(self) -> None:
        names = list(self.servers)
        if self.configuration.scheme == "durable":
            for server in self.servers.values():
                assert isinstance(server.core, Durable)
                for name, client in self.clients.items():
                    server.core.provide(name, client.wishes)
        for i, name in enumerate(self.clients):
            self._appear(name, names[i % len(names)], self.world.streams.stream("moves", name))
        self.world.engine.after(1.0, self.publisher.publish)

    def _drain(self) -> None:
        """Nobody leaves any more, everybody who is away comes, and what waits is handed out."""
        engine = self.world.engine
        end_s = engine.now + 30 * self.configuration.disconnect_s
        while any(not client.broker for client in self.clients.values()) and engine.now < end_s:
            engine.run(engine.now + 1.0)
        engine.run(engine.now + SETTLE_S)

    def _appear(self, name: NodeId, broker: NodeId, dice: Random) -> None:
        client, tally = self.clients[name], self.tallies[name]
        if client.log.previous and client.log.previous != broker:
            tally.arrived_at_s = self.world.engine.now
            self.handoffs += self.measuring
        client.connect(broker)
        stay_s = dice.expovariate(1 / self.configuration.connect_s)
        self.world.engine.after(stay_s, lambda: self._depart(name, dice))

    def _depart(self, name: NodeId, dice: Random) -> None:
        """4.3: half disconnect, half handoff; of the disconnected half return to the same broker."""
        if not self.moving:
            return
        configuration = self.configuration
        here = target = self.clients[name].broker
        away_s = 0.0
        back = False
        if dice.random() < 0.5:
            away_s = dice.expovariate(1 / configuration.disconnect_s)
            back = dice.random() < 0.5
        if not back:
            away_s += dice.expovariate(1 / configuration.handoff_s)
            target = self._next_place(here, dice)
        self.next_places[name] = target
        self._vanish(name)
        self.world.engine.after(away_s, lambda: self._appear(name, target, dice))

    def _next_place(self, here: NodeId, dice: Random) -> NodeId:
        configuration = self.configuration
        if configuration.strays and dice.random() < configuration.strays:
            return dice.choice([name for name in self.servers if name != here])
        near = self.motion[here]
        if not configuration.skew:
            return dice.choice(near)
        return dice.choices(near, [(1 - configuration.skew) ** i for i in range(len(near))])[0]

    def _vanish(self, name: NodeId) -> None:
        client = self.clients[name]
        broker, number = client.broker, client.number
        if self.configuration.scheme == "announced":
            client.leave(self.next_places[name])
        client.vanish()
        self.tallies[name].arrived_at_s = None

        def notice() -> None:
            if not (client.broker == broker and client.number > number):
                self.servers[broker].core.lost(name)

        self.world.engine.after(self.configuration.detection_s, notice)

    def _sample(self) -> None:
        """Every second: who is where, how many stand-ins are awake, how well the graph foresees."""
        engine = self.world.engine
        if self.measuring:
            for name, server in self.servers.items():
                self.populations[name].append(sum(c.broker == name for c in self.clients.values()))
                self.dummies[name].append(sum(not r.is_real and r.is_active for r in server.core.records.values()))
        if self.moving:
            engine.after(1.0, self._sample)

    def _forwarded(self) -> dict[NodeId, int]:
        return {name: server.forwarded for name, server in self.servers.items()}

    def _result(self, first: int, last: int, forwarded: dict[NodeId, int]) -> Result:
        due, lost = self._losses(first, last)
        measure_s = self.configuration.measure_s
        sent: Counter[str] = Counter()
        for (_, kind), count in self.sent.items():
            sent[kind] += count
        del sent["Publish"]
        copies = self.sent_after + sent["Activate"] + sent["StoreSub"]
        return Result(
            published=last - first,
            due=due,
            lost=lost,
            received=self.received,
            unique=self.unique,
            redelivered=self.bed.redelivered,
            disordered=self.disordered,
            throughput_per_s=self.unique / measure_s,
            loss=lost / due if due else 0.0,
            duplication=1 - self.unique / self.received if self.received else 0.0,
            delay_s=_mean(self.delays_s),
            latency_s=_mean(self.handoffs_s),
            latency_q60_s=quantile(self.handoffs_s, 0.6),
            handoffs=self.handoffs,
            hits=self.hits,
            misses=self.misses,
            transfer_share=self.transferred / self.received if self.received else 0.0,
            copies_per_handoff=copies / self.handoffs if self.handoffs else 0.0,
            peer_mb=sum(self.sent_b[name] for name in self.servers) / 1e6,
            evicted=self.evicted,
            false_negatives_first=_mean([float(missed) for missed in self.missed[:FIRST_MOVES]]),
            false_negatives_last=_mean([float(missed) for missed in self.missed[-len(self.missed) // 4 :]]),
            broker_throughput_per_s={name: n / measure_s for name, n in forwarded.items()},
            broker_processing_s={name: server.processing_s for name, server in self.servers.items()},
            population={name: _mean([float(n) for n in numbers]) for name, numbers in self.populations.items()},
            dummies={name: _mean([float(n) for n in numbers]) for name, numbers in self.dummies.items()},
            control=dict(sent),
            latency_deciles_s={f"{q}": quantile(self.handoffs_s, q / 10) for q in range(1, 10)},
        )

    def _losses(self, first: int, last: int) -> tuple[int, int]:
        """Of all that was published in the measured time: what was wanted, and what of it never came."""
        by_value: dict[int, list[NodeId]] = {value: [] for value in range(VALUES)}
        for name, (low, high) in self.ranges.items():
            for value in range(low, high + 1):
                by_value[value].append(name)
        due = lost = 0
        for sequence in range(first, last):
            wanted = by_value[self.published_value(sequence)]
            due += len(wanted)
            lost += sum(sequence not in self.tallies[name].got for name in wanted)
        return due, lost


def _mean(values: list[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def run(configuration: Configuration) -> Result:
    if configuration.scheme == "product":
        from godwit.lab.product.handoff import ProductRun  # it is made of this

        return ProductRun(configuration).execute()
    return Run(configuration).execute()
