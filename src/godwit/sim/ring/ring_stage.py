"""A ring scenario at play: brokers own cells, phones drift over them, a sensor publishes, brokers join and crash.

Looking changes nothing: a run that is watched has the digest of one that is not.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import msgspec

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import generate, sites_of
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.gathering.space import Box, Point
from godwit.protocols.host import Message, NodeId, Record
from godwit.protocols.topology.pastry.keys import brief
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.mobility import Field, Mass
from godwit.sim.recorder import Trace
from godwit.sim.ring.gathering import Gathering
from godwit.sim.ring.underlay import kind_of
from godwit.sim.scenario import ScenarioError, Strict
from godwit.sim.streams import Streams

SIDE = 100.0
SPACE: Box = ((0.0, SIDE), (0.0, SIDE))
TOLD = frozenset({"attached", "absent", "handed over", "joined", "taken over", "refused"})
"""Facts worth a line of their own."""

QUIET = frozenset({"HopAck", "KeepAlive", "Replica", "NotifyAck", "Associated"})
"""Messages that would hide all others."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1, le=500)]


class Placed(Strict, frozen=True):
    name: NodeId
    at: tuple[float, float]


class Joining(Strict, frozen=True):
    name: NodeId
    at: tuple[float, float]
    time_s: Positive


class Crashing(Strict, frozen=True):
    name: NodeId
    time_s: Positive


class RingPart(Strict, frozen=True):
    """`brokers` stand where `places` says, in this order, or at random places."""

    brokers: Count = 12
    places: tuple[Placed, ...] = ()
    bits: int = 4
    exact: bool = False
    reach: Positive = 25.0
    """Of a broker's radio; the square is 100 wide."""
    joins: tuple[Joining, ...] = ()
    crashes: tuple[Crashing, ...] = ()


class PhonesPart(Strict, frozen=True):
    count: Count = 4
    speed: Positive = 1.0
    wants_radius: Positive = 40.0


class SensorPart(Strict, frozen=True):
    at: tuple[float, float] | None = None
    every_s: Positive = 5.0


class RingScenario(Strict, frozen=True):
    title: str = "Phones and sensors over a ring of brokers"
    duration_s: Positive = 120.0
    ring: RingPart = RingPart()
    phones: PhonesPart = PhonesPart()
    sensor: SensorPart = SensorPart()


class Arrow(msgspec.Struct, frozen=True, array_like=True):
    """A message that arrived."""

    time_s: float
    sender: NodeId
    to: NodeId
    kind: str


class CellSeen(msgspec.Struct, frozen=True, array_like=True):
    """A broker with its cell; `taken` are the prefixes that it serves for others."""

    name: NodeId
    prefix: str
    box: Box
    at: Point
    stored: int
    taken: tuple[str, ...]


class PhoneSeen(msgspec.Struct, frozen=True, array_like=True):
    name: NodeId
    at: Point
    broker: NodeId | None
    waiting: int


class RingSight(msgspec.Struct, frozen=True):
    time_s: float
    cells: tuple[CellSeen, ...]
    phones: tuple[PhoneSeen, ...]
    arrows: tuple[Arrow, ...]
    told: tuple[str, ...]


def is_ring(path: Path) -> bool:
    """Whether a scenario file is about a ring; what is wrong with it is said when it is loaded."""
    try:
        return "ring" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def load_ring(path: Path) -> RingScenario:
    try:
        scenario = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), RingScenario)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: {error}") from None
    _check(path, scenario)
    return scenario


def _check(path: Path, scenario: RingScenario) -> None:
    ring = scenario.ring
    if ring.bits not in (1, 2, 4):
        raise ScenarioError(f"{path}: ring.bits: {ring.bits}; a digit has 1, 2 or 4 bits")
    names = [one.name for one in ring.places] + [one.name for one in ring.joins]
    if len(set(names)) < len(names):
        raise ScenarioError(f"{path}: ring: a name is there twice; every broker needs its own")
    for key, x, y in [("places", *one.at) for one in ring.places] + [("joins", *one.at) for one in ring.joins]:
        if not (0 <= x <= SIDE and 0 <= y <= SIDE):
            raise ScenarioError(f"{path}: ring.{key}: ({x:g}, {y:g}) lies outside the square of {SIDE:g}")
    known = {*names, *(() if ring.places else _drawn_names(ring.brokers))}
    for one in ring.crashes:
        if one.name not in known:
            raise ScenarioError(
                f"{path}: ring.crashes: there is no broker {one.name!r}; there are {', '.join(sorted(known))}"
            )


def _drawn_names(count: int) -> list[NodeId]:
    return [f"b{at:0{len(str(count - 1))}d}" for at in range(count)]


class Telling:
    """Keeps the trace, and what is worth telling since the last look."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.told: list[str] = []

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        self.trace.record(time_s, node, record)
        if record.kind in TOLD:
            what = " ".join(part for part in (record.client, record.kind, record.note) if part)
            self.told.append(f"{time_s:8.2f}  {node}: {what}")


class RingStage:
    """`run` plays up to a time, `look` says what there is to see."""

    def __init__(self, scenario: RingScenario, seed: int) -> None:
        self.scenario = scenario
        self.telling = Telling()
        part = scenario.ring
        ring = RingOptions(bits=part.bits, silence_s=3.0)
        rules = Rules(exact=part.exact, replicate_s=2.0, recheck_s=10.0, ack_s=0.5, tries=2, ring=ring)
        self.gathering = Gathering(seed, rules, recorder=self.telling)
        self.gathering.underlay.watch = self._arrived
        self.arrows: list[Arrow] = []
        self.relocations = 0
        self._deploy(seed)
        self._add_clients(seed)
        for second in range(math.ceil(scenario.duration_s)):
            self.gathering.world.engine.at(float(second), self._move)

    def _deploy(self, seed: int) -> None:
        part, engine = self.scenario.ring, self.gathering.world.engine
        places = [(one.name, one.at) for one in part.places]
        drawn = generate(part.brokers, Streams(seed).stream("map"), phones=0).sites
        self.gathering.deploy(sites_of(places) if places else drawn)
        for joining in part.joins:
            engine.at(joining.time_s, lambda one=joining: self._join(one))  # type: ignore[misc]
        for crash in part.crashes:
            engine.at(crash.time_s, lambda one=crash: self._crash(one.name))  # type: ignore[misc]

    def _join(self, one: Joining) -> None:
        self.gathering.join(one.name, one.at, *sorted(self.gathering.brokers)[:3])

    def _crash(self, name: NodeId) -> None:
        if name in self.gathering.brokers:
            self.telling.told.append(f"{self.gathering.world.engine.now:8.2f}  {name}: crashed")
            self.gathering.crash(name)

    def _add_clients(self, seed: int) -> None:
        phones = self.scenario.phones
        self.field = Field(Streams(seed).child("drift"))
        self.names = [f"phone{at + 1}" for at in range(phones.count)]
        for name in self.names:
            drift = Mass(
                width_m=SIDE,
                height_m=SIDE,
                speed_mps=(phones.speed, phones.speed),
                change_s=(20.0, 40.0),
                turn_rad=math.pi / 6,
                uniform=True,
            )
            self.field.add(name, drift)
            self.gathering.phone(name)
        at = self.scenario.sensor.at or (SIDE / 2, SIDE / 2)
        self.sensor_at: Point = at
        self.sensor = self.gathering.phone("sensor")
        count = int(self.scenario.duration_s / self.scenario.sensor.every_s)
        for number in range(1, count):
            self.gathering.world.engine.at(number * self.scenario.sensor.every_s, self._publish)

    def _publish(self) -> None:
        if self.sensor.broker is not None:
            self.sensor.publish("reading", self.sensor_at)

    def _nearest(self, place: Point) -> tuple[float, NodeId]:
        members = [(name, broker) for name, broker in self.gathering.brokers.items() if broker.is_member]
        return min(((math.dist(broker.place, place), name) for name, broker in members), default=(math.inf, ""))

    def _move(self) -> None:
        """Every second: who is out of range is absent; who is absent takes the nearest broker in range."""
        self._attend("sensor", self.sensor_at, math.inf)
        for name, place in self._places().items():
            self._attend(name, place, self.scenario.ring.reach)

    def _places(self) -> dict[NodeId, Point]:
        xs, ys = self.field.positions(self.gathering.world.engine.now)
        return dict(zip(self.names, zip(xs.tolist(), ys.tolist(), strict=True), strict=True))

    def _attend(self, name: NodeId, place: Point, reach: float) -> None:
        phone = self.gathering.phones[name]
        there = None if phone.broker is None else self.gathering.brokers.get(phone.broker)
        if there is not None and math.dist(there.place, place) <= reach:
            return
        if phone.broker is not None:
            self.gathering.detach(name)
        far, nearest = self._nearest(place)
        if far <= reach:
            self.relocations += phone.last not in (b"", self.gathering.brokers[nearest].key)
            self.gathering.attach(name, nearest)
            if not phone.subscriptions and name != "sensor":
                phone.subscribe("reading", Disc(self.sensor_at, self.scenario.phones.wants_radius))

    def _arrived(self, sender: NodeId, to: NodeId, message: Message) -> None:
        kind = kind_of(message)
        if kind not in QUIET:
            self.arrows.append(Arrow(round(self.gathering.world.engine.now, 3), sender, to, kind))

    def run(self, until_s: float) -> None:
        self.gathering.run(until_s)

    def look(self) -> RingSight:
        cells = tuple(
            CellSeen(
                name,
                brief(broker.key) if not broker.cell.prefix else broker.cell.prefix,
                _clipped(broker.cell.box()),
                broker.place,
                len(broker.store),
                tuple(cell.prefix for cell in broker.takeover.cells()),
            )
            for name, broker in self.gathering.brokers.items()
            if broker.is_member
        )
        sight = RingSight(
            self.gathering.world.engine.now, cells, self._phones(), tuple(self.arrows), tuple(self.telling.told)
        )
        self.arrows.clear()
        self.telling.told.clear()
        return sight

    def _phones(self) -> tuple[PhoneSeen, ...]:
        waiting: Counter[NodeId] = Counter()
        for broker in self.gathering.brokers.values():
            for profile in broker.profiles:
                waiting[profile.client] += len(profile.buffer)
        places = {**self._places(), "sensor": self.sensor_at}
        phones = self.gathering.phones
        return tuple(PhoneSeen(name, at, phones[name].broker, waiting[name]) for name, at in places.items())

    def summary(self) -> dict[str, Any]:
        phones = [self.gathering.phones[name] for name in self.names]
        sent = self.gathering.underlay.sent
        rows: dict[str, Any] = {
            "brokers": len(self.gathering.brokers),
            "events published": sent["Publish"],
            "notices received": sum(len(phone.history()) for phone in phones),
            "waiting in brokers": sum(b.profiles.buffered_total() for b in self.gathering.brokers.values()),
            "relocations": self.relocations,
            "transmissions": sum(sent.values()),
        }
        return rows | {f"  {kind}": count for kind, count in sent.most_common()}


def _clipped(box: Box) -> Box:
    return tuple((max(low, 0.0), min(high, SIDE)) for low, high in box)
