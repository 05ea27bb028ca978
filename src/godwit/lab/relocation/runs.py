"""One run of the published evaluation (spec content-routing 4.1, E6 to E9): a script of moves, replayed by a protocol.

The script comes first and hangs on the seed alone, so that every protocol sees the same topology, the same clients and
the same moves. A client is away for half an hour, and the network is at rest whenever somebody moves. An event during
each absence and one after it show that nothing is lost and nothing comes twice.
"""

from __future__ import annotations

import statistics
import time
from functools import partial
from random import Random
from typing import cast

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.lab.relocation.networks import WIRINGS, routed, wants
from godwit.lab.relocation.topologies import Topology, generate
from godwit.lab.relocation.trials import VARIANTS, bad
from godwit.protocols.host import Message, NodeId, Record
from godwit.protocols.relocation import rules as named
from godwit.protocols.relocation.audits import flaws, incompleteness
from godwit.protocols.relocation.broker import RelocationBroker
from godwit.protocols.relocation.messages import OUT_OF_BAND, PING, PONG
from godwit.protocols.relocation.rules import Rules
from godwit.protocols.routing.covering.messages import Published, Stated
from godwit.protocols.routing.covering.router import Router
from godwit.protocols.routing.covering.scopes import Advertised, Rendezvous, Scope
from godwit.sim.overlay import Overlay
from godwit.sim.streams import Streams
from godwit.sim.world import Node, World

BROKERS = 100
PROCESSING_S = 0.002
AWAY_S = 1800.0
PING_S = 0.1
SPAN = 100
BATCH = 50
"""Trials of one run."""
MOBILITY = ("border", "full")
FILTERS = ("one", "ranges")
"""What subscribers want: all the same, or each a random range. The source does not say."""


class Protocol(msgspec.Struct, frozen=True):
    rules: Rules
    rendezvous: bool = False
    checked: bool = False
    """Whether completeness up to the rendezvous point is asked for before each move."""


PROTOCOLS = {
    "ping/pong": Protocol(msgspec.structs.replace(named.PING_PONG, ping_s=PING_S)),
    "ping/pong RP": Protocol(msgspec.structs.replace(named.PING_PONG, ping_s=PING_S), rendezvous=True),
    "incomplete acyclic": Protocol(named.INCOMPLETE),
    "incomplete acyclic RP": Protocol(named.RENDEZVOUS, rendezvous=True, checked=True),
    "complete acyclic": Protocol(named.COMPLETE),
    "complete acyclic RP": Protocol(named.RENDEZVOUS_COMPLETE, rendezvous=True),
    "incomplete, addressed": Protocol(named.ADDRESSED),
    "complete, addressed": Protocol(named.COMPLETE_ADDRESSED),
    "incomplete acyclic RP, joined": Protocol(named.ADDRESSED, rendezvous=True, checked=True),
    "complete acyclic RP, joined": Protocol(named.COMPLETE_ADDRESSED, rendezvous=True),
}
"""The eight variants, two of them by overlay addresses (spec 6.3, reading 11), and another reading of two: that an
update leaves the way to the rendezvous point where the source's way joins it."""

DEPLOYED = {"deployed": "tree", "deployed ring": "dht"}
"""The product's own handoff, over the same tree, and in a ring over the same network; by the name of the fabric."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    protocol: str
    mobility: str = "border"
    subscribers: int = 50
    publishers: int = 1
    handovers: int = 100
    filters: str = "one"
    brokers: int = BROKERS
    variant: str = ""
    """Of a batch of trials, which one; then nothing else but the seed counts."""

    def __post_init__(self) -> None:
        if self.variant:
            if self.variant not in (*VARIANTS, *WIRINGS):
                raise ValueError(f"variant {self.variant!r}: one of {', '.join((*VARIANTS, *WIRINGS))}")
            return
        if self.protocol not in (*PROTOCOLS, *DEPLOYED):
            raise ValueError(f"protocol {self.protocol!r}: one of {', '.join((*PROTOCOLS, *DEPLOYED))}")
        if self.mobility not in MOBILITY or self.filters not in FILTERS:
            raise ValueError(f"{self.mobility}, {self.filters}: one of {MOBILITY} and one of {FILTERS}")


class Move(msgspec.Struct, frozen=True):
    client: int
    to: NodeId


class Script(msgspec.Struct, frozen=True):
    """Everything that is decided before a protocol runs."""

    topology: Topology
    subscribers: tuple[tuple[NodeId, Filter], ...]
    publishers: tuple[NodeId, ...]
    moves: tuple[Move, ...]


def script(configuration: Configuration) -> Script:
    streams = Streams(configuration.seed)
    topology = generate(configuration.brokers, streams.stream("topology"))
    dice = streams.stream("script", configuration.mobility)
    places = topology.border if configuration.mobility == "border" else list(topology.names)
    wanted = streams.stream("filters")
    subscribers = [
        (dice.choice(places), _wanted(configuration.filters, wanted)) for _ in range(configuration.subscribers)
    ]
    publishers = [streams.stream("publisher", at).choice(topology.names) for at in range(configuration.publishers)]
    at = [place for place, _ in subscribers]
    moves = []
    for number in range(configuration.handovers):
        client = number % len(at)
        at[client] = dice.choice([place for place in places if place != at[client]])
        moves.append(Move(client, at[client]))
    return Script(topology, tuple(subscribers), tuple(publishers), tuple(moves))


def _wanted(filters: str, dice: Random) -> Filter:
    if filters == "one":
        return wants(0, SPAN)
    low, high = sorted((dice.randint(0, SPAN), dice.randint(0, SPAN)))
    return wants(low, high)


class Result(msgspec.Struct, kw_only=True):
    """Means are over handovers. `signalling` leaves out withdrawals, what was kept, and events themselves."""

    moved: int = 0
    """Handovers."""
    signalling: float = 0.0
    withdrawals: float = 0.0
    transfers: float = 0.0
    signalling_max: int = 0
    latency_s: float = 0.0
    latency_std_s: float = 0.0
    path: float = 0.0
    """Brokers between source and destination."""
    direct: float = 0.0
    """Share of handovers in which no broker in between had anything to do."""
    flaws: int = 0
    incomplete: int = 0
    """Subscriptions and adverts that were not complete after the warm-up."""
    longest: int = 0
    """Brokers on the longest way to the rendezvous point."""
    trials: int = 0
    bad: int = 0
    """Trials in which something was lost, came twice or waits for ever."""
    messages: int = 0
    """Of all trials of a batch."""
    wall_s: float = 0.0


def label(message: Message) -> str:
    """Under which name a message is counted."""
    if isinstance(message, OUT_OF_BAND):
        return "transfer"
    if isinstance(message, Published):
        return "signalling" if message.event.type in (PING, PONG) else "event"
    if isinstance(message, Stated) and not (message.advertised or message.subscribed or message.markers):
        return "withdrawal"
    return "signalling"


class Arrivals:
    """A recorder that only keeps when clients were served again."""

    def __init__(self) -> None:
        self.at_s: dict[str, float] = {}

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        if record.kind == "attached":
            self.at_s[record.client] = time_s


class Replay:
    """A script played by one of the published protocols."""

    def __init__(self, configuration: Configuration, played: Script) -> None:
        self.script = played
        self.protocol = PROTOCOLS[configuration.protocol]
        topology = played.topology
        self.graph = topology.graph
        self.arrivals = Arrivals()
        self.world = World(configuration.seed, self._medium, self.arrivals)
        self.overlay = cast(Overlay, self.world.medium)
        self.got: dict[str, list[tuple[str, int]]] = {}
        self.published: list[Event] = []
        for name in topology.names:
            self.world.add(name, self._start)
        for (a, b), delay_s in topology.delays_s.items():
            self.overlay.connect(a, b, delay_s + PROCESSING_S)

    def _medium(self, world: World) -> Overlay:
        direct = self.script.topology.direct_s
        return Overlay(world, lambda a, b: direct[a][b] + PROCESSING_S, OUT_OF_BAND, label)

    def _start(self, node: Node) -> RelocationBroker:
        router = Router(self.graph[node.name], self._scope(node.name))
        broker = RelocationBroker(node, router, self.script.topology.hops[node.name], self.protocol.rules)
        broker.on_notify = lambda client, event: self.got.setdefault(client, []).append(event.id)
        return broker

    def _scope(self, name: NodeId) -> Scope:
        topology = self.script.topology
        if self.protocol.rendezvous:
            return Rendezvous(name, self.graph[name], topology.inner, topology.hops[name])
        return Advertised(self.graph[name])

    def broker(self, name: NodeId) -> RelocationBroker:
        return cast(RelocationBroker, self.world.nodes[name].core)

    def install(self) -> int:
        """The warm-up: adverts, then subscriptions, until nothing moves; what is not complete then."""
        for number, at in enumerate(self.script.publishers):
            self.broker(at).publishers.open(f"p{number}", [wants(0, SPAN)])
        self.world.engine.run()
        for number, (at, wanted) in enumerate(self.script.subscribers):
            self.broker(at).subscribers.open(f"s{number}", [wanted])
        self.world.engine.run()
        if self.protocol.rendezvous:
            return 0
        return len(incompleteness({name: self.broker(name).router for name in self.script.topology.names}))

    def move(self, client: int, hop: int, source: NodeId, to: NodeId) -> tuple[dict[str, int], float]:
        """One handover: messages by label, and how long the client waited at its destination."""
        name, wanted = f"s{client}", self.script.subscribers[client][1]
        before = self._counts()
        leaving = self.broker(source)
        leave = partial(leaving.subscribers.leave, name, hop)
        if self.protocol.checked:
            leaving.checks.ask(wanted, leave)
        else:
            leave()
        self._publish()
        self.world.engine.run(self.world.engine.now + AWAY_S)
        came_s = self.world.engine.now
        self.broker(to).subscribers.come(name, hop + 1, [wanted], source)
        self.world.engine.run()
        after = self._counts()
        self._publish()
        self.world.engine.run()
        return {kind: after[kind] - before[kind] for kind in after}, self.arrivals.at_s[name] - came_s

    def _publish(self) -> None:
        event = Event("p0", len(self.published), type="t", attributes={"x": len(self.published) % (SPAN + 1)})
        self.published.append(event)
        self.broker(self.script.publishers[0]).publishers.publish("p0", 0, event)

    def _counts(self) -> dict[str, int]:
        found = dict.fromkeys(("signalling", "withdrawal", "transfer"), 0)
        for (_, kind), count in self.overlay.sent.items():
            if kind in found:
                found[kind] += count
        return found

    def run(self) -> Result:
        incomplete = self.install()
        at = [(place, 0) for place, _ in self.script.subscribers]
        counts, latencies, paths = [], [], []
        for move in self.script.moves:
            source, hop = at[move.client]
            count, latency_s = self.move(move.client, hop, source, move.to)
            at[move.client] = (move.to, hop + 1)
            counts.append(count)
            latencies.append(latency_s)
            paths.append(self.script.topology.between(source, move.to))
        wanted = {f"s{number}": [one] for number, (_, one) in enumerate(self.script.subscribers)}
        return Result(
            moved=len(counts),
            signalling=statistics.fmean(one["signalling"] for one in counts),
            withdrawals=statistics.fmean(one["withdrawal"] for one in counts),
            transfers=statistics.fmean(one["transfer"] for one in counts),
            signalling_max=max(one["signalling"] for one in counts),
            latency_s=statistics.fmean(latencies),
            latency_std_s=statistics.pstdev(latencies),
            path=statistics.fmean(paths),
            direct=statistics.fmean(one["signalling"] == 0 for one in counts),
            flaws=sum(1 for _ in flaws(self.published, wanted, self.got)),
            incomplete=incomplete,
            longest=self._longest(),
        )

    def _longest(self) -> int:
        topology = self.script.topology
        if not self.protocol.rendezvous:
            return 0
        point = Rendezvous("", (), topology.inner, {}).place("t")
        return max(topology.between(name, point) for name in topology.names)


def run(configuration: Configuration) -> Result:
    started = time.perf_counter()
    result = _run(configuration)
    result.wall_s = time.perf_counter() - started
    return result


def _run(configuration: Configuration) -> Result:
    if configuration.variant in VARIANTS:
        return _tried(configuration)
    if configuration.variant:
        return _routed(configuration)
    played = script(configuration)
    if configuration.protocol in DEPLOYED:
        from godwit.lab.relocation.deployed import replayed

        return replayed(configuration.seed, played, DEPLOYED[configuration.protocol])
    return Replay(configuration, played).run()


def _seeds(configuration: Configuration) -> range:
    return range((configuration.seed - 1) * BATCH, configuration.seed * BATCH)


def _tried(configuration: Configuration) -> Result:
    variant = VARIANTS[configuration.variant]
    return Result(trials=BATCH, bad=sum(bad(variant, seed) for seed in _seeds(configuration)))


def _routed(configuration: Configuration) -> Result:
    wiring = WIRINGS[configuration.variant]
    found = [routed(wiring, seed) for seed in _seeds(configuration)]
    return Result(trials=BATCH, bad=sum(one.bad for one in found), messages=sum(one.messages for one in found))
