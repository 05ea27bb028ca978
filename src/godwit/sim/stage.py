"""A scenario on stage: its world built, its events and faults scheduled, and what has come of it so far."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import msgspec

from godwit.events import Event, Value
from godwit.protocols.adhoc.aodv import AodvNode, AodvOptions
from godwit.protocols.host import Core, Host, Message, NodeId, Record
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.protocols.routing.rules import HARDENED, THESIS
from godwit.protocols.topology.election import ElectionOptions
from godwit.protocols.topology.tree import Tree
from godwit.sim import scenario as described
from godwit.sim.faults import Faults
from godwit.sim.mobility import Mass, Model, Still, Walk, Waypoint
from godwit.sim.radio import CC2420, WIFI_TWO_RAY, Air, Disc, Radio
from godwit.sim.recorder import Trace
from godwit.sim.scenario import Loaded, Scenario
from godwit.sim.wired import Wired
from godwit.sim.world import Medium, Node, Traffic, World, kind_of

LOG_MAX = 10_000
"""Arrivals that are remembered until somebody looks."""


class Arrival(msgspec.Struct, frozen=True):
    """A message that reached a node."""

    time_s: float
    sender: NodeId
    to: NodeId
    kind: str


class WatchedWorld(World):
    """Remembers what arrived since somebody last looked; the run is the same as without."""

    def __init__(self, seed: int, medium: Callable[[World], Medium], recorder: Trace) -> None:
        super().__init__(seed, medium, recorder)
        self.arrivals: deque[Arrival] = deque(maxlen=LOG_MAX)

    def deliver(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.arrivals.append(Arrival(self.engine.now, sender, to, kind_of(message)))
        super().deliver(sender, to, message)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a run; pairs are (event, subscriber)."""

    time_s: float
    published: int
    matched: int
    """Pairs that some subscriber wanted, by its own filters: the honest denominator."""
    routed: int
    """Pairs that a broker knew of when the event came in; AODV, which is told whom to reach, has all of them."""
    delivered: int
    replayed: int
    duplicates: int
    queued: int
    """Events that wait in brokers at the end."""
    dropped: int
    sent: dict[str, int]
    sent_b: int
    received: int
    overflowed: int
    """Messages that found the queue of their own radio full."""
    migrations: int
    attachments: int
    digest: str


class Stage:
    """`run(until)` plays the scenario up to a time; `summary` may be asked for at any moment."""

    def __init__(self, loaded: Loaded, seed: int, *, watched: bool = False) -> None:
        self.loaded = loaded
        self.trace = Trace()
        self.published = 0
        world = WatchedWorld if watched else World
        self.world: World = world(seed, medium_of(loaded.scenario), self.trace)
        for key, group, members in loaded.scenario.groups():
            for number, name in enumerate(members):
                self._add(key.partition("[")[0], group, number, name)
        if isinstance(self.world.medium, Wired):
            connect(self.world.medium, loaded.scenario.medium)
        self._schedule_events()
        self._schedule_faults()

    @property
    def scenario(self) -> Scenario:
        return self.loaded.scenario

    def run(self, until_s: float) -> None:
        self.world.run(until_s)

    def summary(self) -> Summary:
        counts, medium = self.trace.counts, self.world.medium
        assert isinstance(medium, Traffic)
        pairs = {kind: {row[3:6] for row in self.trace.of(kind)} for kind in ("matched", "routed", "delivered")}
        aodv = isinstance(self.scenario.protocol, described.Aodv)
        sent: Counter[str] = Counter()
        for (_, kind), count in medium.sent.items():
            sent[kind] += count
        return Summary(
            time_s=self.world.engine.now,
            published=self.published,
            matched=len(pairs["matched"]),
            routed=len(pairs["matched" if aodv else "routed"]),
            delivered=len(pairs["delivered"]),
            replayed=sum(row[10] == "replayed" for row in self.trace.of("delivered")),
            duplicates=counts["duplicate"],
            queued=sum(len(queue) for broker in self.brokers().values() for queue in broker.queues.values()),
            dropped=counts["dropped"],
            sent=dict(sent.most_common()),
            sent_b=medium.sent_b.total(),
            received=medium.received,
            overflowed=medium.dropped.total() if isinstance(medium, Radio) else 0,
            migrations=counts["migrated"],
            attachments=counts["attached"],
            digest=self.trace.digest,
        )

    def brokers(self) -> dict[NodeId, MftBroker]:
        """Those that are up."""
        cores = {name: node.core for name, node in self.world.nodes.items()}
        return {
            name: core.router
            for name, core in cores.items()
            if isinstance(core, BrokerProcess) and isinstance(core.router, MftBroker)
        }

    def _add(self, role: str, group: described.Group, number: int, name: NodeId) -> None:
        if isinstance(self.world.medium, Air):
            recorded = self.loaded.recordings.get(name)
            self.world.medium.place(name, recorded or model_of(self.scenario, group, number))
        self.world.add(name, partial(start, self.loaded, role, name))

    def _schedule_events(self) -> None:
        for _, group, members in self.scenario.groups():
            if isinstance(group, described.Publishers):
                for name in members:
                    dice = self.world.streams.stream("workload", name)
                    self._schedule_event(group, name, dice, group.from_s + dice.random() * group.every_s, 0)

    def _schedule_event(
        self, group: described.Publishers, name: NodeId, dice: Random, time_s: float, sequence: int
    ) -> None:
        """One event of a publisher, which schedules the next."""
        end_s = self.scenario.duration_s if group.until_s is None else group.until_s
        if time_s >= end_s:
            return
        subscribers = list(self.loaded.wanted)
        values = {key: drawn(value, dice, subscribers) for key, value in group.event.items()}
        event = Event(name, sequence, attributes=values, time=time_s, payload=bytes(group.payload_b))

        def publish() -> None:
            self._publish(name, event)
            self._schedule_event(group, name, dice, time_s + group.every_s, sequence + 1)

        self.world.engine.at(time_s, publish)

    def _publish(self, name: NodeId, event: Event) -> None:
        node, values = self.world.nodes[name], event.values()
        if not node.alive:
            return
        self.published += 1
        matched = [s for s, filters in self.loaded.wanted.items() if any(f.matches(values) for f in filters)]
        for subscriber in matched:
            node.trace(Record("matched", event.id, client=subscriber))
        if isinstance(node.core, Publisher):
            node.core.publish(event)
        elif isinstance(node.core, AodvNode):
            for subscriber in matched:
                node.core.publish(event, subscriber)

    def _schedule_faults(self) -> None:
        faults = Faults(self.world)
        for fault in self.scenario.faults:
            self.world.engine.at(fault.at_s, partial(happen, faults, fault))


def medium_of(scenario: Scenario) -> Callable[[World], Medium]:
    match scenario.medium:
        case described.Wires():
            return Wired
        case described.IdealDisc(range_m=range_m, bits_per_s=bits_per_s):
            return partial(Disc, range_m=range_m, bits_per_s=bits_per_s)
        case described.Cc2420(sigma_db=sigma, one_way_sigma_db=one_way, mtu_b=mtu):
            profile = msgspec.structs.replace(CC2420, sigma_db=sigma, one_way_sigma_db=one_way, mtu_b=mtu)
            return partial(Radio, profile=profile)
        case described.TwoRay():
            return partial(Radio, profile=WIFI_TWO_RAY)


def connect(wired: Wired, wires: object) -> None:
    assert isinstance(wires, described.Wires)
    latency, spread = wires.latency_s, wires.latency_spread_s
    for here, there in wires.links:
        drawn_latency = (lambda dice: latency + dice.expovariate(1 / spread)) if spread else latency
        wired.connect(here, there, drawn_latency, wires.bytes_per_s)
        for link in (wired.links[here][there], wired.links[there][here]):
            link.loss, link.duplication = wires.loss, wires.duplication


def model_of(scenario: Scenario, group: described.Group, number: int) -> Model:
    if group.mobility is None:
        return Still(*group.places[number])
    assert scenario.area is not None
    width, height = scenario.area.width_m, scenario.area.height_m
    match group.mobility:
        case described.ByWaypoint(speed_mps=speed, pause_s=pause):
            return Waypoint(width_m=width, height_m=height, speed_mps=speed, pause_s=pause)
        case described.ByWalk(speed_mps=speed, tick_s=tick):
            return Walk(width_m=width, height_m=height, speed_mps=speed, tick_s=tick)
        case described.ByMass(speed_mps=speed, change_s=change, turn_rad=turn):
            return Mass(width_m=width, height_m=height, speed_mps=speed, change_s=change, turn_rad=turn)
        case described.ByReplay():
            raise AssertionError("recordings are models themselves")


def start(loaded: Loaded, role: str, name: NodeId, node: Node) -> Core:
    """The core of a node, at first boot and after every restart."""
    protocol = loaded.scenario.protocol
    if isinstance(protocol, described.Aodv):
        return AodvNode(node, AodvOptions(expanding_ring=protocol.expanding_ring))
    if role == "brokers":
        # A broker that lost its disk must not be taken for an echo of itself: time grows too.
        boots = node.disk["boots"] = max(node.disk.get("boots", 0), int(node.world.engine.now)) + 1
        return BrokerProcess(node, partial(router, protocol), election(protocol), incarnation=boots)
    options = ClientOptions(
        timeout_s=3 * protocol.period_s,
        sticky_s=protocol.hold_s,
        patience_s=protocol.patience_s,
        refresh_s=protocol.refresh_s if protocol.rules == "hardened" else None,
    )
    if role == "subscribers":
        return Subscriber(node, loaded.wanted[name], options, disk=node.disk)
    return Publisher(node, options)


def router(protocol: described.Mft, host: Host, tree: Tree) -> MftBroker:
    rules = HARDENED if protocol.rules == "hardened" else THESIS
    return MftBroker(
        host,
        tree,
        rules,
        acknowledge=protocol.acknowledge,
        retry_s=protocol.period_s,
        replay_batch=4,
        queue_max=protocol.queue_max,
    )


def election(protocol: described.Mft) -> ElectionOptions:
    return ElectionOptions(
        period_s=protocol.period_s,
        leader_timeout_s=3 * protocol.period_s,
        child_timeout_s=3 * protocol.period_s,
        choice=protocol.choice,
        hold_s=protocol.hold_s,
        patience_s=protocol.patience_s,
    )


def drawn(value: Value | tuple[Value, ...] | described.Between, dice: Random, subscribers: Sequence[NodeId]) -> Value:
    if isinstance(value, tuple):
        value = dice.choice(value)
    if isinstance(value, described.Between):
        if isinstance(value.low, int) and isinstance(value.high, int):
            return dice.randint(value.low, value.high)
        return round(dice.uniform(value.low, value.high), 3)
    if isinstance(value, str) and "{subscriber}" in value:
        return value.replace("{subscriber}", dice.choice(subscribers))
    return value


def happen(faults: Faults, fault: described.AnyFault) -> None:
    match fault:
        case described.Crash(node=node):
            faults.crash(node)
        case described.Restart(node=node, keep_disk=keep_disk):
            faults.restart(node, keep_disk=keep_disk)
        case described.Skew(node=node, rate=rate, offset_s=offset_s):
            faults.skew(node, rate=rate, offset_s=offset_s)
        case described.Lose(link=(here, there), loss=loss, duplication=duplication):
            faults.lose(here, there, loss=loss, duplication=duplication)
        case described.Partition(sides=sides):
            faults.partition(*sides)
        case described.Merge(sides=sides):
            faults.merge(*sides)
