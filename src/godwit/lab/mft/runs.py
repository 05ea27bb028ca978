"""One run of the published evaluation: so many nodes walking about for 700 s, and what came of every event.

A run is decided by its `Configuration`. Mobility and publications depend on the seed and the node names alone, so that
all protocols see the same world.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.adhoc.aodv import AodvNode, AodvOptions
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.courier import Courier, Numbered
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.piggyback import Carrying
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules
from godwit.protocols.topology.election import Choice, ElectionOptions
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import CC2420, Profile
from godwit.sim.radios.energy import MeteredRadio, Rhythm
from godwit.sim.recorder import Trace
from godwit.sim.world import Node, World

SIDES_M = {2: 35.0, 4: 45.0, 8: 60.0, 16: 80.0, 32: 110.0}
"""C2 to C32: so many subscribers and as many brokers, two publishers, at about 200 m2 a node."""

PUBLISHERS = 2
PATIENT = 2.5
"""Periods that a broker waits for an acknowledgement which itself waits for a heartbeat."""
ACKNOWLEDGED = ("every hop", "subscriber")
AODV = {
    "hello routes": {},
    "neighbors only": {"hello_routes": False},
    "no sequence numbers": {"sequence_numbers": False},
}
"""Readings of the baseline, of which the text gives a summary."""
ROLES = {"b": "broker", "s": "subscriber", "p": "publisher"}


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    size: int
    speed_mps: float
    seed: int
    protocol: str = "mft"
    """mft as published, hardened, or aodv."""
    workload: str = "unicast"
    side_m: float = 0.0
    publish_s: float = 500.0
    drain_s: float = 200.0
    period_s: float = 1.0
    choice: Choice = Choice.FIRST
    hold_s: float = 0.0
    patience_s: float = 0.0
    refresh_s: float = 10.0
    retry_s: float = 1.0
    """How often a broker looks at its queues, and at most how often it asks about subscribers it doubts (H10); 0, as
    published: never."""
    without: tuple[str, ...] = ()
    """Hardened rules that are left out, by their names in `Rules`."""
    payload_b: int = 16
    expanding_ring: bool = True
    acknowledge: str = "every hop"
    """Who acknowledges an event of MFT: every hop, as ours, or the subscriber only, as the text says."""
    aodv: str = "hello routes"
    """How AODV is read: hellos install routes, hellos only find neighbors, or routes without sequence numbers."""
    range_m: float = 0.0
    """The median range of the radio; 0: the 46 m of 0 dBm. The CC2420 has steps near 28 m (-5 dBm) and 18 m (-10)."""
    awake: float = 1.0
    """For which share of each heartbeat period radios are awake (F38); as published: always."""
    carry: bool = False
    """Whether heartbeats carry other messages (F38)."""

    def __post_init__(self) -> None:
        if self.size not in SIDES_M and not self.side_m:
            raise ValueError(f"size {self.size}: give side_m, or one of {', '.join(map(str, SIDES_M))}")
        if self.protocol not in ("mft", "hardened", "aodv"):
            raise ValueError(f"protocol {self.protocol!r}: mft, hardened or aodv")
        if self.workload not in ("unicast", "multicast"):
            raise ValueError(f"workload {self.workload!r}: unicast or multicast")
        if unknown := set(self.without) - set(Rules.__struct_fields__):
            raise ValueError(f"no rule is called {', '.join(sorted(unknown))}: {', '.join(Rules.__struct_fields__)}")
        for name, choices in (("acknowledge", ACKNOWLEDGED), ("aodv", tuple(AODV))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} {getattr(self, name)!r}: one of {', '.join(choices)}")
        if self.carry and self.protocol == "aodv":
            raise ValueError("carry: AODV has no rounds of heartbeats that could carry anything")
        for name in ("size", "speed_mps", "publish_s", "period_s", "refresh_s"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0")
        for name in ("side_m", "drain_s", "hold_s", "patience_s", "payload_b", "retry_s", "range_m"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must not be negative")

    @property
    def width_m(self) -> float:
        return self.side_m or SIDES_M[self.size]

    @property
    def rhythm(self) -> Rhythm:
        return Rhythm(cycle_s=self.period_s, awake=self.awake)

    @property
    def rules(self) -> Rules:
        rules = HARDENED if self.protocol == "hardened" else THESIS
        return msgspec.structs.replace(rules, **dict.fromkeys(self.without, False))


class Result(msgspec.Struct, kw_only=True):
    """What the spec's metrics are made of (3.3), for one run."""

    published: int
    wanted: int
    """(event, subscriber) pairs that somebody wanted: the honest denominator."""
    routed: int
    """Pairs that a broker knew of when the event came in: the published denominator. AODV: all of them."""
    delivered: int
    """Pairs that arrived, each counted once."""
    delivered_routed: int
    """Those that count in the published rate: a broker further on may know a subscriber that the first did not."""
    replayed: int
    duplicates: int
    delay_mean_s: float
    delay_direct_mean_s: float
    delay_replayed_mean_s: float
    hops_mean: float
    messages_per_node: float
    messages_per_node_without_beacons: float
    bytes_per_node: float
    messages_by_role: dict[str, float]
    messages_by_type: dict[str, int]
    """Acknowledged messages by what they carry, repetitions included."""
    repeated_by_type: dict[str, int]
    messages_by_depth: dict[str, float]
    """What a broker so many hops from its leader sends in a heartbeat period, heartbeats left out."""
    beats_by_depth: dict[str, int]
    migrations_per_min: float
    attachments_per_min: float
    dropped: dict[str, int]
    receptions: int
    wall_s: float
    cpu_s: float
    """Of this process: what a run costs whatever else the machine does."""
    digest: str
    power_mw: float = 0.0
    """What a radio takes, in the mean over all nodes and the whole run."""
    battery_days: float = 0.0
    """So long two AA cells last at that power."""
    battery_days_first: float = 0.0
    """Until the first node of all is without."""

    @property
    def rate(self) -> float:
        """Events received over events routed, as published: what no broker knew of is nobody's loss."""
        return self.delivered_routed / self.routed if self.routed else 0.0

    @property
    def honest_rate(self) -> float:
        """Events received over events that somebody wanted."""
        return self.delivered / self.wanted if self.wanted else 0.0


class Counting(MeteredRadio):
    """A radio that also counts what acknowledged messages carry, which of them are repetitions, and who sends how deep.

    A broker sends one heartbeat a round, so `beats_by_depth` is how many broker-rounds were spent at each depth.
    """

    def __init__(self, world: World, configuration: Configuration) -> None:
        super().__init__(world, reaching(configuration.range_m), configuration.rhythm)
        self.by_type: Counter[str] = Counter()
        self.repeated: Counter[str] = Counter()
        self.by_depth: Counter[int] = Counter()
        self.beats_by_depth: Counter[int] = Counter()
        self._numbers: set[tuple[NodeId, int]] = set()

    def count(self, sender: NodeId, message: Message) -> int:
        inner = message.message if isinstance(message, Numbered) else message
        kind = type(inner).__name__
        self.by_type[kind] += 1
        if isinstance(message, Numbered):
            key = (sender, message.serial)
            self.repeated[kind] += key in self._numbers
            self._numbers.add(key)
        core = inside(self.world.nodes[sender].core)
        if isinstance(core, BrokerProcess):
            counts = self.beats_by_depth if kind in ("Heartbeat", "Laden") else self.by_depth
            counts[core.election.hops] += 1
        return super().count(sender, message)


def reaching(range_m: float) -> Profile:
    """The published radio, at the power with which half of all places so far away hear it."""
    if not range_m:
        return CC2420
    loss_db = CC2420.path_loss_db + 10 * CC2420.path_loss_exponent * math.log10(range_m)
    return msgspec.structs.replace(CC2420, tx_dbm=CC2420.sensitivity_dbm + loss_db)


def wants(configuration: Configuration, subscriber: NodeId) -> Filter:
    """Unicast: each subscriber wants what names it. Multicast: all want the same."""
    name = subscriber if configuration.workload == "unicast" else "everybody"
    return filter_of(attribute("to", equ(name)))


def run(configuration: Configuration) -> Result:
    started, busy = time.perf_counter(), time.process_time()
    world, radio, trace = build(configuration)
    world.run(configuration.publish_s + configuration.drain_s)
    return Result(
        **_deliveries(configuration, trace),
        **_costs(configuration, world, radio, trace),
        wall_s=time.perf_counter() - started,
        cpu_s=time.process_time() - busy,
        digest=trace.digest,
    )


def build(configuration: Configuration) -> tuple[World, Counting, Trace]:
    """The world before its first moment, with all nodes in place and everything that will be published scheduled."""
    trace = Trace(frozenset({"published", "routed", "delivered", "duplicate"}))
    world = World(configuration.seed, partial(Counting, configuration=configuration), trace)
    radio = world.medium
    assert isinstance(radio, Counting)
    subscribers = [f"s{i:02d}" for i in range(configuration.size)]
    brokers = [f"b{i:02d}" for i in range(configuration.size)]
    publishers = [f"p{i}" for i in range(PUBLISHERS)]
    width = configuration.width_m
    walk = Waypoint(width_m=width, height_m=width, speed_mps=(configuration.speed_mps, configuration.speed_mps))
    start = _carrying(configuration) if configuration.carry else _starter(configuration)
    for name in (*brokers, *subscribers, *publishers):
        radio.place(name, walk)
        world.add(name, partial(start, name))
    _schedule(configuration, world, publishers, subscribers)
    return world, radio, trace


def _starter(configuration: Configuration) -> Callable[[NodeId, Any], Any]:
    rules = configuration.rules
    period = configuration.period_s
    election = ElectionOptions(
        period_s=period,
        leader_timeout_s=3 * period,
        child_timeout_s=3 * period,
        choice=configuration.choice,
        hold_s=configuration.hold_s,
        patience_s=configuration.patience_s,
    )
    client = ClientOptions(
        timeout_s=3 * period,
        sticky_s=configuration.hold_s,
        patience_s=configuration.patience_s,
        refresh_s=configuration.refresh_s if rules.refresh else None,
        acknowledge=rules.acknowledge_control,
    )

    def start(name: NodeId, node: Any) -> Any:
        if configuration.protocol == "aodv":
            return AodvNode(node, AodvOptions(expanding_ring=configuration.expanding_ring, **AODV[configuration.aodv]))
        if name.startswith("b"):
            disk = _disk(node)
            disk["boots"] = disk.get("boots", 0) + 1
            router = partial(_router, rules=rules, configuration=configuration)
            return BrokerProcess(node, router, election, incarnation=disk["boots"])
        if name.startswith("s"):
            return Subscriber(node, [wants(configuration, name)], client, disk=_disk(node))
        return Publisher(node, client)

    return start


def _disk(host: Any) -> dict[str, Any]:
    """What survives a crash of this node, whatever stands between it and its core."""
    node = host.host if isinstance(host, Carrying) else host
    assert isinstance(node, Node)
    return node.disk


def _carrying(configuration: Configuration) -> Callable[[NodeId, Any], Any]:
    """Brokers hold back what they send until their next heartbeat; clients only unpack what they hear."""
    start = _starter(configuration)

    def wrapped(name: NodeId, node: Any) -> Any:
        hold_s = PATIENT * configuration.period_s if name.startswith("b") else 0.0
        return Carrying(node, partial(start, name), hold_s=hold_s)

    return wrapped


def inside(core: Any) -> Any:
    """The core itself, where something stands between it and its world."""
    return core.core if isinstance(core, Carrying) else core


def _router(host: Any, tree: Any, *, rules: Rules, configuration: Configuration) -> MftBroker:
    patient = Courier(host, timeout_s=PATIENT * configuration.period_s) if configuration.carry else None
    return MftBroker(
        host,
        tree,
        rules,
        acknowledge=True,
        acknowledge_brokers=configuration.acknowledge == "every hop",
        retry_s=configuration.retry_s,
        replay_batch=4,
        courier=patient,
    )


def _schedule(configuration: Configuration, world: World, publishers: list[NodeId], subscribers: list[NodeId]) -> None:
    """Each publisher, once a second: one event to one subscriber, or to all. The dice are the workload's own."""
    payload = bytes(configuration.payload_b)
    for publisher in publishers:
        dice = world.streams.stream("workload", publisher)
        phase = dice.random()
        for sequence in range(int(configuration.publish_s)):
            target = dice.choice(subscribers)
            at = sequence + phase
            aim = "everybody" if configuration.workload == "multicast" else target
            event = Event(publisher, sequence, attributes={"to": aim}, time=at, payload=payload)
            world.engine.at(at, partial(_publish, world, publisher, event, aim, subscribers))


def _publish(world: World, publisher: NodeId, event: Event, aim: str, subscribers: list[NodeId]) -> None:
    core = inside(world.nodes[publisher].core)
    if isinstance(core, Publisher):
        core.publish(event)
    elif isinstance(core, AodvNode):
        for subscriber in subscribers if aim == "everybody" else [aim]:
            core.publish(event, subscriber)


def _deliveries(configuration: Configuration, trace: Trace) -> dict[str, Any]:
    """What became of every event, by the definitions of spec 3.3."""
    aodv = configuration.protocol == "aodv"
    events = PUBLISHERS * int(configuration.publish_s)
    wanted = events * (configuration.size if configuration.workload == "multicast" else 1)
    routed = {(row[3], row[4], row[5]) for row in trace.of("routed")}
    delivered = trace.of("delivered")
    arrived = {(row[3], row[4], row[5]) for row in delivered}
    born = {(row[3], row[4]): row[0] for row in trace.of("published")}
    delays = [(row[0] - born[row[3], row[4]], row[10]) for row in delivered]
    return {
        "published": events,
        "wanted": wanted,
        "routed": wanted if aodv else len(routed),
        "delivered": len(arrived),
        "delivered_routed": len(arrived if aodv else arrived & routed),
        "replayed": sum(how == "replayed" for _, how in delays),
        "duplicates": trace.counts["duplicate"],
        "delay_mean_s": _mean(delay for delay, _ in delays),
        "delay_direct_mean_s": _mean(delay for delay, how in delays if how == "direct"),
        "delay_replayed_mean_s": _mean(delay for delay, how in delays if how == "replayed"),
        "hops_mean": _mean(row[9] for row in delivered),
    }


def _costs(configuration: Configuration, world: World, radio: Counting, trace: Trace) -> dict[str, Any]:
    """What it took: messages, bytes, and changes of the tree."""
    by_role: Counter[str] = Counter()
    for (name, _), count in radio.sent.items():
        by_role[ROLES[name[0]]] += count
    nodes = len(world.nodes)
    total, beacons = radio.by_type.total(), radio.by_type["Heartbeat"] + radio.by_type["Hello"]
    roles = Counter(ROLES[name[0]] for name in world.nodes)
    minutes = (configuration.publish_s + configuration.drain_s) / 60
    rounds = sorted(radio.beats_by_depth.items())
    powers_mw = [radio.power_mw(name, 60 * minutes) for name in world.nodes]
    return {
        "power_mw": statistics.fmean(powers_mw),
        "battery_days": radio.battery_days(statistics.fmean(powers_mw)),
        "battery_days_first": radio.battery_days(max(powers_mw)),
        "messages_per_node": total / nodes,
        "messages_per_node_without_beacons": (total - beacons) / nodes,
        "bytes_per_node": sum(radio.sent_b.values()) / nodes,
        "messages_by_role": {role: by_role[role] / count for role, count in roles.items()},
        "messages_by_type": dict(radio.by_type),
        "repeated_by_type": dict(radio.repeated),
        "messages_by_depth": {str(depth): radio.by_depth[depth] / n for depth, n in rounds},
        "beats_by_depth": {str(depth): n for depth, n in rounds},
        "migrations_per_min": trace.counts["migrated"] / minutes,
        "attachments_per_min": trace.counts["attached"] / minutes,
        "dropped": dict(radio.dropped),
        "receptions": radio.received,
    }


def _mean(values: Any) -> float:
    known = list(values)
    return statistics.fmean(known) if known else 0.0
