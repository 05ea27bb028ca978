"""A scenario with deployed brokers: the counterpart of `godwit.sim.stage` where `[[brokers]] kind = "product"`.

Clients are MQTT clients, connected to one of the brokers that a link joins them to. Where that one is out of reach they
go to another; those that roam do so anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

from godwit.filters.filters import FilterSet
from godwit.filters.text import to_text
from godwit.protocols.broker.api import Subscription
from godwit.protocols.host import Message, NodeId, Record
from godwit.sim import scenario as described
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Roamer, Said
from godwit.sim.recorder import Trace
from godwit.sim.scenario import Loaded, Scenario
from godwit.sim.stage import LOG_MAX, Arrival, Summary, drawn
from godwit.sim.world import World, kind_of

TOPIC = "events"
SETTLE_S = 0.5
"""How often a client that is out of reach looks for another broker."""


class Production:
    """`run(until)` plays the scenario up to a time; `summary` may be asked for at any moment."""

    def __init__(self, loaded: Loaded, seed: int, *, watched: bool = False) -> None:
        self.loaded = loaded
        self.trace = Trace()
        self.said: dict[int, Said] = {}
        self.arrivals: list[Arrival] = []
        self._matched: Counter[str] = Counter()
        self._cut: set[frozenset[NodeId]] = set()
        self._near: dict[NodeId, list[NodeId]] = {}
        brokers = {name for name, (role, _) in loaded.names.items() if role == "brokers"}
        links = self._links(brokers)
        wires, product = loaded.scenario.medium, loaded.scenario.brokers[0]
        assert isinstance(wires, described.Wires)
        self.cluster = Cluster(
            sorted(brokers),
            links,
            seed,
            StationOptions(handoff=product.handoff, session_wait_s=product.session_wait_s),
            latency_s=wires.latency_s + wires.latency_spread_s,
            recorder=self.trace,
        )
        if watched:
            self.cluster.cables.spy = self._overhear
        self.roamers: dict[NodeId, Roamer] = {}
        self._filters = {name: FilterSet(filters) for name, filters in loaded.wanted.items()}
        for _, group, members in loaded.scenario.groups():
            if not isinstance(group, described.Brokers):
                for name in members:
                    self._add(name, group)
        self._schedule_faults()

    @property
    def scenario(self) -> Scenario:
        return self.loaded.scenario

    @property
    def world(self) -> World:
        return self.cluster.world

    def run(self, until_s: float) -> None:
        self.world.run(until_s)

    def _links(self, brokers: set[NodeId]) -> list[tuple[NodeId, NodeId]]:
        """Those between brokers; the others say whom each client can reach."""
        between = []
        assert isinstance(self.scenario.medium, described.Wires)
        for a, b in self.scenario.medium.links:
            if a in brokers and b in brokers:
                between.append((a, b))
            else:
                client, broker = (b, a) if a in brokers else (a, b)
                self._near.setdefault(client, []).append(broker)
        return between

    def _add(self, name: NodeId, group: described.Group) -> None:
        wires = self.scenario.medium
        assert isinstance(wires, described.Wires)
        assert isinstance(group, described.Subscribers | described.Publishers)
        wishes = {
            f"{TOPIC}/#{number}": Subscription(f"{TOPIC}/#{number}", f"{TOPIC}/#", to_text(one), qos=2)
            for number, one in enumerate(self.loaded.wanted.get(name, ()))
        }
        roamer = self.roamers[name] = Roamer(self, name, wishes, delay_s=2 * wires.latency_s + wires.latency_spread_s)
        dice = self.cluster.streams.stream("roaming", name)
        self.cluster.engine.after(0.0, partial(self._begin, roamer, group, dice))
        if isinstance(group, described.Publishers):
            workload = self.cluster.streams.stream("workload", name)
            self._publish_at(group, roamer, workload, group.from_s + workload.random() * group.every_s)

    # Clients.

    def _begin(self, roamer: Roamer, group: described.Subscribers | described.Publishers, dice: Random) -> None:
        roamer.come(self._near[roamer.name][0])
        self._look_after(roamer)
        if group.roam_every_s is not None:
            self._roam_later(roamer, group.roam_every_s, group.away_s, dice)

    def _look_after(self, roamer: Roamer) -> None:
        """Whoever is cut off from its broker, or has one that is down, tries the next."""
        self.cluster.engine.after(SETTLE_S, partial(self._look_after, roamer))
        goal = roamer.goal
        if goal is not None and not self._reaches(roamer.name, goal):
            if roamer.connection is not None:
                roamer.drop(notice_s=SETTLE_S)
            others = [name for name in self._near[roamer.name] if self._reaches(roamer.name, name)]
            if others:
                roamer.come(others[0])

    def _reaches(self, client: NodeId, broker: NodeId) -> bool:
        return self.cluster.sites[broker].up and frozenset((client, broker)) not in self._cut

    def _roam_later(self, roamer: Roamer, every_s: float, away_s: float, dice: Random) -> None:
        self.cluster.engine.after(dice.expovariate(1 / every_s), partial(self._leave, roamer, every_s, away_s, dice))

    def _leave(self, roamer: Roamer, every_s: float, away_s: float, dice: Random) -> None:
        near = [name for name in self._near[roamer.name] if name != roamer.goal] or self._near[roamer.name]
        to = dice.choice(near)
        roamer.vanish(notice_s=SETTLE_S)

        def arrive() -> None:
            roamer.come(to)
            self._roam_later(roamer, every_s, away_s, dice)

        self.cluster.engine.after(dice.expovariate(1 / away_s) if away_s else 0.0, arrive)

    def _publish_at(self, group: described.Publishers, roamer: Roamer, dice: Random, time_s: float) -> None:
        """One event of a publisher, which schedules the next."""
        end_s = self.scenario.duration_s if group.until_s is None else group.until_s
        if time_s >= end_s:
            return
        values = {key: drawn(value, dice, list(self.loaded.wanted)) for key, value in group.event.items()}

        def publish() -> None:
            self._publish(roamer, values)
            self._publish_at(group, roamer, dice, time_s + group.every_s)

        self.cluster.engine.at(time_s, publish)

    def _publish(self, roamer: Roamer, values: Mapping[str, Any]) -> None:
        said = roamer.speak(f"{TOPIC}/{roamer.name}", values, 2)
        if said is None:
            return
        self._record(roamer.name, Record("published", event=(roamer.name, said.n), client=roamer.name))
        for name, wanted in self._filters.items():
            if wanted.matches(values):
                self._matched[name] += 1
                self._record(roamer.name, Record("matched", event=(roamer.name, said.n), client=name))

    def _record(self, node: NodeId, record: Record) -> None:
        self.trace.record(self.cluster.engine.now, node, record)

    # What clients tell: a `Scene`.

    follows = True

    def note(self, who: str, to: str, text: str) -> None: ...

    def disturbed(self, since_s: float) -> bool:
        return True  # nobody judges here: nothing needs an excuse

    def admitted(self, roamer: Roamer, at: NodeId) -> None:
        self._record(at, Record("attached", client=roamer.name, peer=at))

    def taken(self, roamer: Roamer, said: Said) -> None:
        again = roamer.counts[said.n] > 1
        kind = "duplicate" if again else "delivered"
        self._record(roamer.name, Record(kind, event=(said.publisher, said.n), client=roamer.name))

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.arrivals.append(Arrival(self.cluster.engine.now, sender, to, kind_of(message)))
        del self.arrivals[:-LOG_MAX]

    # Faults and figures.

    def _schedule_faults(self) -> None:
        for fault in self.scenario.faults:
            self.cluster.engine.at(fault.at_s, partial(self._happen, fault))

    def _happen(self, fault: described.AnyFault) -> None:
        match fault:
            case described.Crash(node=node) if node in self.cluster.sites:
                self.cluster.crash(node)
            case described.Crash(node=node):
                self.roamers[node].vanish()
            case described.Restart(node=node, keep_disk=keep_disk) if node in self.cluster.sites:
                if self.cluster.sites[node].up:
                    self.cluster.crash(node)
                self.cluster.start(node, keep_disk=keep_disk)
            case described.Restart(node=node):
                self.roamers[node].come(self._near[node][0])
            case described.Skew(node=node, rate=rate):
                self.cluster.skew(node, rate)
            case described.Partition(sides=sides):
                self._between(sides, cut=True)
            case described.Merge(sides=sides):
                self._between(sides, cut=False)

    def _between(self, sides: tuple[tuple[NodeId, ...], ...], *, cut: bool) -> None:
        for at, side in enumerate(sides):
            for a in side:
                for b in [other for later in sides[at + 1 :] for other in later]:
                    if b in self.cluster.cables.links.get(a, {}):
                        (self.cluster.cut if cut else self.cluster.heal)(a, b)
                    (self._cut.add if cut else self._cut.discard)(frozenset((a, b)))

    def summary(self) -> Summary:
        counts, cables = self.trace.counts, self.cluster.cables
        sent: Counter[str] = Counter()
        for (_, kind), count in cables.sent.items():
            sent[kind] += count
        return Summary(
            time_s=self.cluster.engine.now,
            published=counts["published"],
            matched=counts["matched"],
            routed=counts["matched"],
            delivered=counts["delivered"],
            replayed=0,
            duplicates=counts["duplicate"],
            queued=self.queued(),
            dropped=0,
            sent=dict(sent.most_common()),
            sent_b=cables.sent_b.total(),
            received=cables.received,
            overflowed=0,
            migrations=0,
            attachments=counts["attached"],
            digest=self.trace.digest,
        )

    def queued(self, broker: NodeId | None = None) -> int:
        """Deliveries that wait in a broker, or in all of them."""
        some = [machine for name, machine in self.cluster.sites.items() if broker in (None, name) and machine.up]
        return sum(machine.broker.counts.waiting for machine in some)
