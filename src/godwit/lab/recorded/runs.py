"""One scheme on recorded movement, and what came of every event.

Brokers stand at the sites, processing takes no time, and clients are next to their broker: what is measured is what the
scheme itself costs in messages and in round trips between brokers. All schemes see the same moves and events.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections import Counter
from functools import partial
from math import inf
from random import Random

import msgspec

from godwit.events import Event
from godwit.lab.handoff.roaming import Instant
from godwit.lab.handoff.runs import PUBLISHER, VALUES, selectors, wish
from godwit.lab.recorded.moves import Habits, Movement, Stay, Stays, read
from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions
from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.handoff_schemes.durable import Durable
from godwit.protocols.handoff_schemes.messages import CtxResponse, Deliver, Publish
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.handoff_schemes.reactive import Reactive
from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.protocols.neighbors.nearness import closeness
from godwit.sim.world import Node, World

SCHEMES = ("durable", "reactive", "neighbors", "weighted", "foreseen", "product")
"""The three after reactive are pro-active. They have stand-ins at all learned neighbors, as published; at the most used
ones; and where the subscriber is likely to go. The last goes by where it came from and by how near that is, and places
them when it vanishes and not before. `product` is the deployed broker."""
SETTLE_S = 5.0
STAY_MIN_S = 0.5


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """`recording` is a folder that `godwit pipeline mobility` wrote; times are those of its fixes."""

    recording: str
    learn_from_s: float
    begin_s: float
    """Up to here brokers learn; from here on is measured."""
    skip_s: float = 0.0
    """Between the two."""
    measure_s: float = 7200.0
    scheme: str
    seed: int = 1
    rate_per_s: float = 2.0
    size_b: int = 3500
    away_s: float = 3.0
    """Mean time between leaving a broker and appearing at the next, exponential."""
    latency_s: float = 0.005
    """Between two brokers, one way."""
    detection_s: float = 0.2
    buffer_mb: float = 1.0
    disk: bool = False
    """Below the buffer; who is away is then never given up."""
    mass: float = 0.99
    """The share of all moves that the chosen neighbors should meet; of `weighted` and `foreseen`."""

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme {self.scheme!r}: one of {', '.join(SCHEMES)}")
        for name in ("rate_per_s", "away_s", "latency_s", "buffer_mb"):
            if not 0 < getattr(self, name) < inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0 and finite")

    def options(self, graph: GraphOptions) -> HandoffOptions:
        timeout_s = inf if self.disk else 600.0
        prefetch = self.scheme == "foreseen"
        return HandoffOptions(
            buffer_b=self.buffer_mb * 1e6, disk=self.disk, timeout_s=timeout_s, prefetch=prefetch, graph=graph
        )


class Result(msgspec.Struct, kw_only=True):
    handoffs: int
    hits: int
    misses: int
    due: int
    lost: int
    twice: int
    disordered: int
    copies: int
    """Stand-ins woken."""
    events_sent: int
    """From broker to broker, to stand-ins and by fetching."""
    messages: int
    """Between brokers, publications not counted."""
    peer_mb: float
    latency_mean_s: float
    """From asking a new broker to the first event, where something had come meanwhile."""
    latency_median_s: float
    latency_p99_s: float

    @property
    def hit_rate(self) -> float:
        return self.hits / max(1, self.hits + self.misses)


class Streets(Instant):
    """Counts what brokers send to one another."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.fetched = 0

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if isinstance(message, CtxResponse):
            self.fetched += len(message.events)
        super().send(sender, to, message)


class Walker:
    """A subscriber, its recorded way, and what it has had."""

    __slots__ = (
        "arrived_at_s",
        "client",
        "dice",
        "from_sequence",
        "got",
        "last",
        "left_at_s",
        "low",
        "stays",
        "step",
        "twice",
    )

    def __init__(self, stays: list[Stay], low: int, dice: Random) -> None:
        self.stays = stays
        self.low = low
        self.dice = dice
        self.client: MobileClient
        self.step = 0
        self.got: set[int] = set()
        self.last = -1
        self.twice = 0
        self.from_sequence = 0
        self.left_at_s = 0.0
        self.arrived_at_s: float | None = None


class Run:
    """The world of one configuration."""

    def __init__(self, configuration: Configuration, movement: Movement) -> None:
        self.configuration = configuration
        self.sites = movement.sites
        self.learned = movement.learned
        self.world = World(configuration.seed, Streets, self)
        assert isinstance(self.world.medium, Streets)
        self.streets = self.world.medium
        self.begin_s = configuration.begin_s + configuration.skip_s
        self.end_s = configuration.measure_s
        self.brokers: dict[NodeId, HandoffBroker] = {}
        self.walkers: dict[NodeId, Walker] = {}
        self.times_s: list[float] = []
        self.values: list[int] = []
        self.latencies_s: list[float] = []
        self.handoffs = self.hits = self.misses = self.disordered = 0
        self.payload = bytes(configuration.size_b)
        self.dice = self.world.streams.stream("values")
        self._build(movement.stays)

    def _build(self, stays: Stays) -> None:
        world, latency_s = self.world, self.configuration.latency_s
        self.publisher = world.add(PUBLISHER, lambda node: _Silent())
        names = list(self.sites)
        for name in names:
            world.add(name, self._broker)
        for at, name in enumerate([PUBLISHER, *names]):
            for other in [PUBLISHER, *names][at + 1 :]:
                self.streets.connect(name, other, latency_s)
        spans = selectors(world.streams.stream("selectors"), len(stays))
        for (name, some), (low, _) in zip(sorted(stays.items()), spans, strict=True):
            self.walkers[name] = Walker(some, low, world.streams.stream("moves", name))
            world.add(name, self._client)

    def _broker(self, node: Node) -> HandoffBroker:
        core = self._core(node, node.name)
        self.brokers[node.name] = core
        return core

    def _core(self, host: Host, name: NodeId) -> HandoffBroker:
        scheme = self.configuration.scheme
        if scheme in ("durable", "reactive"):
            kind = Durable if scheme == "durable" else Reactive
            return kind(host, self.configuration.options(GraphOptions()))
        graph = GraphOptions(edge_timeout_s=inf)
        if scheme != "neighbors":
            foresight = scheme == "foreseen"
            near = closeness(name, self.sites) if foresight else {}
            graph = GraphOptions(
                edge_timeout_s=inf, directed=True, mass=self.configuration.mass, foresight=foresight, closeness=near
            )
        core = ProActive(host, self.configuration.options(graph))
        self._teach(core, name)
        return core

    def _teach(self, core: ProActive, name: NodeId) -> None:
        """What the brokers have learned on the days before."""
        known = self.learned.get(name, Habits({}))
        for before, moves in known.moves.items():
            for to, count in moves.items():
                core.graph.touch(to, 0.0, left=True, weight=count)
                core.graph.forecast.learn(before, to, count)
        for to in core.graph.options.closeness:
            core.graph.touch(to, 0.0, left=True, weight=0.0)

    def _client(self, node: Node) -> MobileClient:
        walker = self.walkers[node.name]

        def listen(event: Event, delivery: Deliver) -> None:
            self._heard(walker, event)

        wishes = {"w": wish(walker.low, walker.low + VALUES // 5 - 1)}
        client = MobileClient(node, wishes, node.disk, listen)
        walker.client = self.streets.clients[node.name] = client
        return client

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        self.hits += record.note == "hit"
        self.misses += record.note == "miss"

    def _heard(self, walker: Walker, event: Event) -> None:
        sequence = event.sequence
        if walker.arrived_at_s is not None:
            self.latencies_s.append(self.world.engine.now - walker.arrived_at_s)
            walker.arrived_at_s = None
        walker.twice += sequence in walker.got
        walker.got.add(sequence)
        self.disordered += sequence < walker.last
        walker.last = max(walker.last, sequence)

    def execute(self) -> Result:
        engine = self.world.engine
        for name, walker in self.walkers.items():
            engine.at(walker.stays[0].entered_s - self.begin_s, partial(self._appear, name))
        engine.after(1 / self.configuration.rate_per_s, self._publish)
        engine.run(self.end_s)
        self._gather()
        return self._result()

    def _gather(self) -> None:
        """Nobody moves any more, and who is away comes back to where it was last."""
        engine = self.world.engine
        for walker in self.walkers.values():
            walker.step = len(walker.stays)
            client = walker.client
            if not client.broker and client.log.previous:
                client.connect(client.log.previous)
        engine.run(engine.now + SETTLE_S)

    def _publish(self) -> None:
        engine = self.world.engine
        if engine.now >= self.end_s:
            return
        value = self.dice.randrange(VALUES)
        event = Event(PUBLISHER, len(self.times_s), attributes={"value": value}, payload=self.payload)
        self.times_s.append(engine.now)
        self.values.append(value)
        for name in self.brokers:
            self.publisher.send(name, Publish(event))
        engine.after(1 / self.configuration.rate_per_s, self._publish)

    def _appear(self, name: NodeId) -> None:
        walker, engine = self.walkers[name], self.world.engine
        if walker.step >= len(walker.stays):
            return
        stay, client = walker.stays[walker.step], walker.client
        if not client.number:
            walker.from_sequence = len(self.times_s)
        elif client.log.previous != stay.site:
            self.handoffs += 1
            walker.arrived_at_s = engine.now if self._missed_something(walker) else None
        client.connect(stay.site)
        engine.at(max(engine.now + STAY_MIN_S, self._leaves_at_s(walker)), lambda: self._vanish(name))

    def _missed_something(self, walker: Walker) -> bool:
        """Whether an event that it wants reached all brokers while it was away."""
        latency_s = self.configuration.latency_s
        first = bisect_left(self.times_s, walker.left_at_s)
        last = bisect_left(self.times_s, self.world.engine.now - latency_s)
        return any(walker.low <= self.values[at] < walker.low + VALUES // 5 for at in range(first, last))

    def _leaves_at_s(self, walker: Walker) -> float:
        """Half way between the last time it was heard here and the first time elsewhere; into a gap, at once."""
        stay = walker.stays[walker.step]
        if not stay.handoff or walker.step + 1 == len(walker.stays):
            return stay.last_s - self.begin_s
        return (stay.last_s + walker.stays[walker.step + 1].entered_s) / 2 - self.begin_s

    def _vanish(self, name: NodeId) -> None:
        walker, engine = self.walkers[name], self.world.engine
        if walker.step >= len(walker.stays):
            return
        stay = walker.stays[walker.step]
        self._leave(name, walker)
        walker.left_at_s, walker.arrived_at_s = engine.now, None
        walker.step += 1
        if walker.step < len(walker.stays):
            away_s = walker.dice.expovariate(1 / self.configuration.away_s)
            soonest_s = walker.stays[walker.step].entered_s - self.begin_s if not stay.handoff else 0.0
            engine.at(max(engine.now + away_s, soonest_s), lambda: self._appear(name))

    def _leave(self, name: NodeId, walker: Walker) -> None:
        """Without a word; some time later the broker notices, unless the client is back there."""
        client = walker.client
        broker, number = client.broker, client.number
        client.vanish()

        def notice() -> None:
            if not (client.broker == broker and client.number > number):
                self.brokers[broker].lost(name)

        self.world.engine.after(self.configuration.detection_s, notice)

    def _result(self) -> Result:
        due, lost = self._losses()
        sent: Counter[str] = Counter()
        for (_, kind), count in self.streets.sent.items():
            sent[kind] += count
        del sent["Publish"]
        return Result(
            handoffs=self.handoffs,
            hits=self.hits,
            misses=self.misses,
            due=due,
            lost=lost,
            twice=sum(walker.twice for walker in self.walkers.values()),
            disordered=self.disordered,
            copies=sent["Activate"],
            events_sent=sent["FwdMsg"] + self.streets.fetched,
            messages=sum(sent.values()),
            peer_mb=sum(self.streets.sent_b[name] for name in self.brokers) / 1e6,
            latency_mean_s=statistics.fmean(self.latencies_s) if self.latencies_s else 0.0,
            latency_median_s=quantile(self.latencies_s, 0.5),
            latency_p99_s=quantile(self.latencies_s, 0.99),
        )

    def _losses(self) -> tuple[int, int]:
        """Of all that was published since a subscriber came: what it wanted, and what of it never came."""
        due = lost = 0
        for walker in self.walkers.values():
            low, high = walker.low, walker.low + VALUES // 5
            wanted = [at for at in range(walker.from_sequence, len(self.values)) if low <= self.values[at] < high]
            if walker.client.number:
                due += len(wanted)
                lost += sum(at not in walker.got for at in wanted)
        return due, lost


class _Silent:
    """The publisher hears nothing."""

    def receive(self, sender: NodeId, message: Message) -> None:
        raise AssertionError(f"{sender} sends {type(message).__name__} to the publisher")


def run(configuration: Configuration) -> Result:
    one = configuration
    begin_s = one.begin_s + one.skip_s
    movement = read(one.recording, (one.learn_from_s, one.begin_s), (begin_s, begin_s + one.measure_s))
    if one.scheme == "product":
        from godwit.lab.product.recorded import RecordedProduct  # it is made of this

        return RecordedProduct(configuration, movement).execute()
    return Run(configuration, movement).execute()


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
