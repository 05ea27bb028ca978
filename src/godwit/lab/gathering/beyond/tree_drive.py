"""The same taxis, stations and brokers on the fabric that people run today: deployed brokers on a tree.

Every broker knows where every session is and what every other one wants, so a handoff costs durable items in proportion
to the number of brokers. That bounds what can be simulated: see `BROKERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec

from godwit.lab.gathering.beyond.recorded import (
    AREA_KM,
    BAD_AIR,
    EAST_KM,
    KM_PER_DEGREE,
    ORIGIN,
    Drive,
    Driven,
)
from godwit.lab.product.fleet import LEAD_S
from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.fabric.tree import TreeFabric
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.streams.frames import Parcels, Run, decode_items
from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.messages import Ack
from godwit.protocols.routing.process import Enclosed
from godwit.protocols.topology.election import Heartbeat
from godwit.protocols.topology.mesh import LINKS_LEAST, lot, near
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Roamer, Said

TOPIC = "reading"
BROKERS = 64
"""Of all 549, every handoff would write 2,743 durable items, and half an hour of taxis 32 million."""
MINUTES = 5.0


def meshed(names: list[NodeId]) -> list[tuple[NodeId, NodeId]]:
    """The links that deployed brokers keep with one another where nobody is away."""
    pairs = set()
    for me in names:
        others = sorted((name for name in names if name != me), key=lambda name: lot(me, name), reverse=True)
        beside = near(me, names)
        wanted = [*sorted(beside), *(name for name in others if name not in beside)][: max(LINKS_LEAST, len(beside))]
        pairs |= {(min(me, other), max(me, other)) for other in wanted}
    return sorted(pairs)


@lru_cache(maxsize=65_536)
def _moving(items: bytes) -> int:
    """How many items of a run are about sessions that move."""
    return sum(not isinstance(item.content, Publication) for item in decode_items(Run((), msgspec.Raw(items))))


class TreeNet:
    """A `Scene` for its clients: reactive handoffs, QoS 2, and nobody judges."""

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        names = [site.name for site in drive.sites]
        self.said: dict[int, Said] = {}
        options = StationOptions(handoff="reactive", session_wait_s=1e6)
        self.cluster = Cluster(names, meshed(names), drive.recording.seed, options, latency_s=0.005, write_s=0.0005)
        self.cluster.cables.spy = self._overhear
        self.roamers: dict[NodeId, Roamer] = {}
        self.speakers: dict[NodeId, Roamer] = {}
        self.goals: dict[NodeId, NodeId] = {}
        self.items = self.item_hops = self.stating = 0
        self.path_hops: list[int] = []

    def begin(self) -> None:
        self.cluster.run(LEAD_S)
        for name in self.drive.stations:
            speaker = self.speakers[name] = Roamer(self, name, {}, delay_s=0.001)
            speaker.come(self.drive.station_broker(name))
        self.cluster.run(LEAD_S)

    def count(self) -> None:
        self.items = self.item_hops = self.stating = 0

    def later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.cluster.engine.after(delay_s, call)

    def run_for(self, seconds: float) -> None:
        self.cluster.run(seconds)

    def attach(self, taxi: NodeId, broker: NodeId) -> None:
        self.goals[taxi] = broker
        if taxi in self.roamers:
            self.roamers[taxi].come(broker)

    def detach(self, taxi: NodeId) -> None:
        if taxi in self.roamers:
            self.roamers[taxi].vanish()

    def subscribe(self, taxi: NodeId, area: Disc) -> None:
        east, north = area.center
        lon, lat = ORIGIN[0] + east / EAST_KM, ORIGIN[1] + north / KM_PER_DEGREE
        condition = f"pm25 > {BAD_AIR} AND within(lat, lon, {lat:.9f}, {lon:.9f}, {AREA_KM:g}km)"
        roamer = self.roamers[taxi] = Roamer(
            self, taxi, {TOPIC: Subscription(TOPIC, TOPIC, condition, qos=2)}, delay_s=0.001
        )
        roamer.come(self.goals[taxi])

    def publish(self, station: NodeId, place: Point, value: float, wanting: list[NodeId]) -> None:
        lon, lat = ORIGIN[0] + place[0] / EAST_KM, ORIGIN[1] + place[1] / KM_PER_DEGREE
        spoken = self.speakers[station].speak(TOPIC, {"pm25": value, "lat": lat, "lon": lon}, 2)
        assert spoken is not None, f"{station} is not connected"
        for taxi in wanting:
            if taxi in self.drive.attached:
                self.path_hops.append(self._hops(spoken.at, self.drive.sites[self.drive.attached[taxi]].name))

    def _hops(self, here: NodeId, there: NodeId) -> int:
        hops = 0
        while here != there and hops < len(self.drive.sites):
            fabric = self.cluster.sites[here].station.tree
            way = fabric.way(there)
            if way is None:
                break
            here, hops = way, hops + 1
        return hops

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Enclosed):
            self.stating += not isinstance(message.message, Heartbeat | Ack)
        elif isinstance(message, Parcels):
            for run in message.runs:
                moving = _moving(bytes(run.items))
                self.item_hops += moving
                if message.origin == sender:
                    self.items += moving * len(run.legs)

    def measured(self) -> Driven:
        drive = self.drive
        fabrics = [machine.station.tree for machine in self.cluster.sites.values()]
        known = [_known(fabric) for fabric in fabrics]
        waiting = sum(machine.broker.counts.waiting for machine in self.cluster.sites.values())
        return Driven(
            brokers=len(drive.sites),
            taxis=len(drive.taxis),
            sensors=len(drive.stations),
            events=drive.events,
            wanted=drive.wanted,
            received=sum(len(roamer.counts) for roamer in self.roamers.values()),
            buffered=waiting,
            handoffs=drive.handoffs,
            absences=drive.absences,
            hops=sum(self.path_hops) / max(1, len(self.path_hops)),
            handover_sent=self.item_hops / max(1, drive.handoffs),
            register_sent=self.stating / max(1, drive.handoffs),
            stored_mean=sum(known) / len(known),
            items=self.items / max(1, drive.handoffs),
        )

    # A `Scene`

    def note(self, who: str, to: str, text: str) -> None: ...

    follows = True

    def disturbed(self, since_s: float) -> bool:
        return False

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None: ...


def _known(fabric: TreeFabric) -> int:
    """Subscriptions that a broker keeps in mind: its own, and what the others have stated."""
    return len(fabric.stated) + sum(len(filters) for filters in fabric.interests.values())
