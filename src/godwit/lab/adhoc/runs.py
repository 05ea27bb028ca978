"""One run of the published evaluation (spec manet-cbr 4.1): nodes that walk about, some publish, some subscribe.

A run is decided by its `Configuration`. Movement, ranges, roles and publications depend on the seed and the node names
alone, so that all protocols see the same world.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable
from functools import partial
from random import Random
from typing import Any

import msgspec

from godwit.events import Event
from godwit.filters.filters import FilterSet, attribute, filter_of
from godwit.filters.predicates import equ
from godwit.protocols.adhoc.gossip import GossipBroker, GossipOptions
from godwit.protocols.adhoc.options import Adaptive, Carry, Delay, Options
from godwit.protocols.adhoc.proximity import ProximityBroker
from godwit.protocols.adhoc.table import Estimate
from godwit.protocols.host import Message, NodeId
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import WIFI_TWO_RAY, Air, Disc, Radio
from godwit.sim.radios.dcf import SlottedRadio
from godwit.sim.recorder import Trace
from godwit.sim.world import Node, World

PROTOCOLS = ("proximity", "gossip")
RADIOS = ("per node", "all alike", "no capture", "ideal disc", "slots")
"""One after the other: ranges drawn once a node, 100 to 200 m; 150 m for all; ranges per node, and any overlap is a
loss. Then 150 m for all, and nobody disturbs anybody; ranges per node and the slots of 802.11, in which neighbors can
collide."""

RANGE_M = (100.0, 200.0)
EVERYBODY = FilterSet((filter_of(attribute("colour", equ("black"))),))
"""All events interest all subscribers."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults are the published ones and, where the text is silent, the spec's."""

    seed: int
    protocol: str = "proximity"
    nodes: int = 100
    side_m: float = 1000.0
    speed_min_mps: float = 10.0
    speed_max_mps: float = 20.0
    publishers: int = 2
    rate_per_s: float = 0.5
    subscribers: int = 10
    period_s: float = 5.0
    credits: int = 0
    probability: float = 0.5
    warm_s: float = 100.0
    measure_s: float = 300.0
    drain_s: float = 60.0
    payload_b: int = 400
    radio: str = "per node"
    gossip_jitter_s: float = 0.01
    """The longest wait before an event is gossiped on; the text has none, and sensing on this radio takes no time."""
    delay_max_s: float = 0.3
    jitter: float = 0.1
    beacon_when_empty: bool = False
    publish_to_nobody: bool = True
    withdraw: bool = True
    suppress: bool = True
    delay: Delay = Delay.PROXIMITY
    estimate: Estimate = Estimate.MISSED
    hints_max: int = 0
    hints_in_data: bool = False
    adaptive: bool = False
    carry_s: float = 0.0
    """How long events are carried; 0: not at all."""

    def __post_init__(self) -> None:
        for name, known in (("protocol", PROTOCOLS), ("radio", RADIOS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} {getattr(self, name)!r}: one of {', '.join(known)}")
        if self.publishers + self.subscribers > self.nodes:
            raise ValueError(f"{self.nodes} nodes are too few for {self.publishers + self.subscribers} roles")
        for name in ("nodes", "side_m", "speed_max_mps", "rate_per_s", "measure_s", "subscribers", "publishers"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} {getattr(self, name):g}: must be more than 0")

    @property
    def end_s(self) -> float:
        """Of publications; what is on its way then has the drain."""
        return self.warm_s + self.measure_s

    def options(self) -> Options:
        carry = Carry(age_max_s=self.carry_s) if self.carry_s else None
        return Options(
            period_s=self.period_s,
            credits=self.credits,
            delay_max_s=self.delay_max_s,
            jitter=self.jitter,
            beacon_when_empty=self.beacon_when_empty,
            publish_to_nobody=self.publish_to_nobody,
            withdraw=self.withdraw,
            suppress=self.suppress,
            delay=self.delay,
            estimate=self.estimate,
            hints_max=self.hints_max,
            hints_in_data=self.hints_in_data,
            adaptive=Adaptive() if self.adaptive else None,
            carry=carry,
            seen_s=max(60.0, self.carry_s + 30.0),
        )


class Result(msgspec.Struct, kw_only=True):
    """The spec's metrics (4.2) for one run; pairs are (event, subscriber).

    Events count that were published in the measured time, and their deliveries until the end of the drain; packets
    count that were sent in the measured time, when as many are under way at its end as were at its beginning.
    """

    published: int
    wanted: int
    delivered: int
    delivered_1s: int
    """Within a second of their publication: what nobody had to carry."""
    duplicates: int
    data_sent: int
    beacons_sent: int
    sent_b: int
    delay_mean_s: float
    delay_p95_s: float
    period_mean_s: float
    """From beacon to beacon."""
    wall_s: float
    cpu_s: float
    digest: str

    @property
    def delivery(self) -> float:
        return self.delivered / self.wanted if self.wanted else 0.0

    @property
    def overhead(self) -> float:
        """Packets on the air for each delivery, beacons included; none without deliveries."""
        return (self.data_sent + self.beacons_sent) / self.delivered if self.delivered else math.inf

    @property
    def beacon_share(self) -> float:
        """Beacons for each delivery."""
        return self.beacons_sent / self.delivered if self.delivered else math.inf


def reaching_dbm(radio: Radio, range_m: float) -> float:
    """The power with which an undisturbed frame is heard up to this range."""
    return float(radio.profile.sensitivity_dbm + radio.path_loss_db(range_m))  # type: ignore[arg-type]


def run(configuration: Configuration) -> Result:
    started, busy = time.perf_counter(), time.process_time()
    world, trace = build(configuration)
    counts = []
    for until_s in (configuration.warm_s, configuration.end_s, configuration.end_s + configuration.drain_s):
        world.run(until_s)
        counts.append(_sent(world))
    beacons = counts[1]["Beacon"] - counts[0]["Beacon"]
    senders = configuration.nodes if configuration.beacon_when_empty else configuration.subscribers
    return Result(
        **_deliveries(configuration, trace),
        data_sent=counts[1]["Data"] - counts[0]["Data"],
        beacons_sent=beacons,
        sent_b=counts[1]["bytes"] - counts[0]["bytes"],
        period_mean_s=configuration.measure_s * senders / beacons if beacons else 0.0,
        wall_s=time.perf_counter() - started,
        cpu_s=time.process_time() - busy,
        digest=trace.digest,
    )


def _sent(world: World) -> Counter[str]:
    assert isinstance(world.medium, Air)
    counted: Counter[str] = Counter()
    for (_, kind), count in world.medium.sent.items():
        counted[kind] += count
    counted["bytes"] = world.medium.sent_b.total()
    return counted


def build(configuration: Configuration) -> tuple[World, Trace]:
    """The world before its first moment, everybody in place and everything that will be published scheduled."""
    trace = Trace(frozenset({"published", "delivered"}))
    world = World(configuration.seed, partial(_medium, configuration), trace)
    names = [f"n{i:03d}" for i in range(configuration.nodes)]
    publishers = names[: configuration.publishers]
    subscribers = names[len(publishers) : len(publishers) + configuration.subscribers]
    for name in names:
        _place(configuration, world, name)
        world.add(name, partial(_start, configuration, name in subscribers))
    for name in publishers:
        _schedule(configuration, world, name)
    return world, trace


def _medium(configuration: Configuration, world: World) -> Disc | Radio:
    if configuration.radio == "ideal disc":
        return Disc(world, range_m=sum(RANGE_M) / 2, bits_per_s=WIFI_TWO_RAY.bits_per_s)
    capture = 1000.0 if configuration.radio == "no capture" else WIFI_TWO_RAY.capture
    profile = msgspec.structs.replace(WIFI_TWO_RAY, capture=capture)
    return SlottedRadio(world, profile) if configuration.radio == "slots" else Radio(world, profile)


def _place(configuration: Configuration, world: World, name: NodeId) -> None:
    side = configuration.side_m
    speeds = (configuration.speed_min_mps, configuration.speed_max_mps)
    walk = Waypoint(width_m=side, height_m=side, speed_mps=speeds)
    if isinstance(world.medium, Radio):
        drawn = world.streams.stream("range", name).uniform(*RANGE_M)
        range_m = sum(RANGE_M) / 2 if configuration.radio == "all alike" else drawn
        world.medium.place(name, walk, tx_dbm=reaching_dbm(world.medium, range_m))
    else:
        assert isinstance(world.medium, Disc)
        world.medium.place(name, walk)


def _start(configuration: Configuration, subscribes: bool, node: Node) -> ProximityBroker | GossipBroker:
    broker: ProximityBroker | GossipBroker
    if configuration.protocol == "gossip":
        options = GossipOptions(probability=configuration.probability, jitter_s=configuration.gossip_jitter_s)
        broker = GossipBroker(node, options)
    else:
        broker = ProximityBroker(node, configuration.options(), withdraw=partial(_withdraw, node))
    if subscribes:
        broker.subscribe(EVERYBODY, node.name)
    return broker


def _withdraw(node: Node, message: Message) -> None:
    if isinstance(node.world.medium, Radio):
        node.world.medium.withdraw(node.name, message)


def _schedule(configuration: Configuration, world: World, publisher: NodeId) -> None:
    """At a constant rate from a random phase on, from the beginning: tables and buffers are then as they always are."""
    dice: Random = world.streams.stream("workload", publisher)
    every_s = 1 / configuration.rate_per_s
    at_s, sequence = dice.random() * every_s, 0
    payload = bytes(configuration.payload_b)
    while at_s < configuration.end_s:
        event = Event(publisher, sequence, attributes={"colour": "black"}, payload=payload)
        world.engine.at(at_s, partial(_publish, world, publisher, event))
        at_s, sequence = at_s + every_s, sequence + 1


def _publish(world: World, publisher: NodeId, event: Event) -> None:
    core = world.nodes[publisher].core
    assert isinstance(core, ProximityBroker | GossipBroker)
    core.publish(event)


def _deliveries(configuration: Configuration, trace: Trace) -> dict[str, Any]:
    born = {row[3:5]: row[0] for row in trace.of("published") if row[0] >= configuration.warm_s}
    arrived: dict[tuple[Any, ...], float] = {}
    duplicates = 0
    for row in trace.of("delivered"):
        if row[3:5] in born:
            duplicates += row[3:6] in arrived
            arrived.setdefault(row[3:6], row[0] - born[row[3:5]])
    delays = sorted(arrived.values())
    return {
        "published": len(born),
        "wanted": len(born) * configuration.subscribers,
        "delivered": len(delays),
        "delivered_1s": sum(delay <= 1.0 for delay in delays),
        "duplicates": duplicates,
        "delay_mean_s": _mean(delays),
        "delay_p95_s": delays[int(0.95 * (len(delays) - 1))] if delays else 0.0,
    }


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.fmean(known) if known else 0.0
