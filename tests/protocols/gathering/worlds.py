"""Small worlds of brokers on a ring, and what is true in them by brute force."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from godwit.protocols.gathering.areas import Area
from godwit.protocols.gathering.broker import Overlay
from godwit.protocols.gathering.maps import Map, generate
from godwit.protocols.gathering.messages import Item, Pub, Sub, Subscription
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.gathering.space import Box, Point
from godwit.protocols.host import NodeId, Record
from godwit.protocols.topology.pastry.node import PastryNode, RingOptions
from godwit.sim.ring.gathering import Gathering

QUIET = Rules(recheck_s=0.0)
MORTAL = Rules(recheck_s=0.0, replicate_s=5.0, ack_s=0.5, tries=2, ring=RingOptions(silence_s=9.0))
"""Brokers that copy their state and watch each other."""


class Facts:
    """What cores told of themselves."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, NodeId, Record]] = []

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        self.rows.append((time_s, node, record))

    def nodes(self, kind: str) -> list[NodeId]:
        return [node for _, node, record in self.rows if record.kind == kind]

    def clear(self) -> None:
        self.rows.clear()


def chart(brokers: int, seed: int, space: Box | None = None) -> Map:
    dice = Random(seed)
    return generate(brokers, dice) if space is None else generate(brokers, dice, space)


def world(brokers: int, seed: int, rules: Rules = QUIET, overlay: Overlay = PastryNode) -> tuple[Gathering, Facts]:
    facts = Facts()
    gathering = Gathering(seed, rules, recorder=facts, overlay=overlay)
    gathering.deploy(chart(brokers, seed).sites)
    return gathering, facts


def grown(brokers: int, seed: int, rules: Rules = QUIET) -> tuple[Gathering, Facts]:
    """The same places, but every broker joins through a random one that is there already."""
    facts = Facts()
    gathering = Gathering(seed, rules, recorder=facts)
    dice = Random(seed)
    first, *others = [(site.name, site.place) for site in chart(brokers, seed).sites]
    gathering.add(*first).begin()
    for name, place in others:
        gathering.join(name, place, dice.choice(sorted(gathering.brokers)))
        gathering.run_for(5.0)
    return gathering, facts


def touched(gathering: Gathering, area: Area) -> set[NodeId]:
    """By brute force: all brokers whose box the area meets."""
    dimensions = len(next(iter(gathering.brokers.values())).place)
    return {name for name, broker in gathering.brokers.items() if area.meets(broker.cell.box(dimensions=dimensions))}


def owners(gathering: Gathering, point: Point) -> list[NodeId]:
    return [name for name, broker in gathering.brokers.items() if broker.cell.owns_all(point)]


def install(gathering: Gathering, start: NodeId, area: Area, sid: str = "c#1", settle_s: float = 5.0) -> None:
    source = gathering.brokers[start].key
    gathering.brokers[start].dissemination.take(Sub(Subscription(sid, "t", area, "c", source=source)))
    gathering.run_for(settle_s)


def publish(gathering: Gathering, start: NodeId, place: Point, number: int = 1, settle_s: float = 5.0) -> None:
    gathering.brokers[start].dissemination.take(Pub(Item(("p", number), "t", place, 0.0)))
    gathering.run_for(settle_s)


def holders(gathering: Gathering, sid: str = "c#1") -> set[NodeId]:
    return {name for name, broker in gathering.brokers.items() if sid in broker.store}


def stored(facts: Facts, sid: str = "c#1") -> list[NodeId]:
    """Who stored it, once for each time that a copy arrived."""
    return [node for _, node, record in facts.rows if record.kind == "stored" and record.note == sid]


def received(gathering: Gathering, phones: Iterable[NodeId]) -> dict[NodeId, int]:
    return {name: len(gathering.phones[name].history()) for name in phones}
