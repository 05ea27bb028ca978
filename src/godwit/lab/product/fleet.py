"""Deployed brokers and their clients, for experiments that were made for the published schemes.

Brokers take no time to think here; disks and links do. Everything else is the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import msgspec

from godwit.protocols.broker.api import Reason, Subscription
from godwit.protocols.broker.messages import Forwarded
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.mesh import LINKS_LEAST, lot, near
from godwit.sim.brokers.client import Connection
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Roamer, Said
from godwit.sim.wired import Latency

TOPIC = "values"
LEAD_S = 10.0
"""Until brokers know each other: nothing is measured before."""
MESH_MAX = 8
"""So many brokers are all linked with all; more stand in a ring, each linked with the next two."""


class Fleet:
    """A `Scene` whose clients report what they get to whoever asked."""

    def __init__(
        self,
        names: list[NodeId],
        seed: int,
        options: StationOptions,
        *,
        latency_s: Latency,
        write_s: float = 0.0005,
        on_taken: Callable[[str, Said], None],
        edges: list[tuple[NodeId, NodeId]] | None = None,
    ) -> None:
        self.said: dict[int, Said] = {}
        self.on_taken = on_taken
        self.passed_on = 0
        """Events that one broker has sent to another for a session that is or may come there."""
        edges = links(names) if edges is None else edges
        self.cluster = Cluster(names, edges, seed, options, latency_s=latency_s, write_s=write_s)
        self.cluster.cables.spy = self._overhear
        self.cluster.run(LEAD_S)

    def subscriber(self, name: NodeId, condition: str, delay_s: float = 0.0) -> Phone:
        wish = Subscription(TOPIC, TOPIC, condition, qos=2)
        return Phone(Roamer(self, name, {TOPIC: wish}, delay_s=delay_s))

    def publisher(self, name: NodeId, at: NodeId, on_accepted: Callable[[], None] | None = None) -> Loud:
        loud = Loud(self, name, {}, delay_s=0.0)
        loud.heard = on_accepted or (lambda: None)
        loud.come(at)
        self.cluster.run(0.5)
        return loud

    @property
    def hits(self) -> int:
        return sum(machine.broker.counts.copies_used for machine in self.cluster.sites.values())

    @property
    def misses(self) -> int:
        return sum(machine.broker.counts.handoffs_missed for machine in self.cluster.sites.values())

    @property
    def copies(self) -> int:
        return sum(machine.broker.counts.copies_made for machine in self.cluster.sites.values())

    @property
    def sent(self) -> Counter[str]:
        counted: Counter[str] = Counter()
        for (_, kind), count in self.cluster.cables.sent.items():
            counted[kind] += count
        return counted

    def _overhear(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if isinstance(message, Parcels) and message.origin == sender:
            items = [item for run in message.runs for item in decode_items(run)]
            self.passed_on += sum(isinstance(item.content, Forwarded) for item in items)

    # A `Scene`; nobody judges here, so that nothing needs an excuse.

    def note(self, who: str, to: str, text: str) -> None: ...

    follows = True

    def disturbed(self, since_s: float) -> bool:
        return False

    def admitted(self, roamer: Roamer, at: NodeId) -> None: ...

    def taken(self, roamer: Roamer, said: Said) -> None:
        self.on_taken(roamer.name, said)


class Loud(Roamer):
    """A publisher that knows when it is heard."""

    heard: Callable[[], None]

    def on_accepted(self, connection: Connection, number: int, qos: int, reason: Reason) -> None:
        super().on_accepted(connection, number, qos, reason)
        self.heard()

    def tell(self, value: int, size_b: int = 0) -> Said | None:
        attributes: Mapping[str, Any] = {"value": value, "filling": "x" * size_b} if size_b else {"value": value}
        return self.speak(TOPIC, attributes, 2)


class Trail(msgspec.Struct):
    previous: NodeId = ""


class Phone:
    """A client of the product as the experiments know clients of the schemes."""

    def __init__(self, roamer: Roamer) -> None:
        self.roamer = roamer
        self.number = 0
        self.log = Trail()

    @property
    def broker(self) -> NodeId:
        return self.roamer.goal or ""

    def connect(self, broker: NodeId) -> None:
        self.number += 1
        self.log.previous = broker
        self.roamer.come(broker)

    def vanish(self, detected_after_s: float | None = None) -> None:
        self.roamer.vanish(detected_after_s)


def links(names: list[NodeId]) -> list[tuple[NodeId, NodeId]]:
    if len(names) <= MESH_MAX:
        return list(combinations(names, 2))
    count = len(names)
    return [(names[at], names[(at + step) % count]) for at in range(count) for step in (1, 2)]


def meshed(names: list[NodeId]) -> list[tuple[NodeId, NodeId]]:
    """The links that deployed brokers keep with one another where nobody is away."""
    pairs = set()
    for me in names:
        others = sorted((name for name in names if name != me), key=lambda name: lot(me, name), reverse=True)
        beside = near(me, names)
        wanted = [*sorted(beside), *(name for name in others if name not in beside)][: max(LINKS_LEAST, len(beside))]
        pairs |= {(min(me, other), max(me, other)) for other in wanted}
    return sorted(pairs)


def between(low: int, high: int) -> str:
    return f"value BETWEEN {low} AND {high}"
