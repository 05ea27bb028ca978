"""Brokers in a row, links of one second each, and everything they say to one another as lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import Message, NodeId
from godwit.protocols.relocation.broker import RelocationBroker
from godwit.protocols.relocation.messages import OUT_OF_BAND, Late, Transfer, TransferRequest
from godwit.protocols.relocation.rules import Rules
from godwit.protocols.routing.covering.broker import Broker
from godwit.protocols.routing.covering.messages import Published, RootSet, Stated
from godwit.protocols.routing.covering.router import Router
from godwit.protocols.routing.covering.scopes import Scope
from godwit.protocols.topology.graphs import Adjacent, adjacent, next_hops
from godwit.sim.overlay import Overlay
from godwit.sim.world import Node, World

MakeScope = Callable[[NodeId, Adjacent], Scope]


class Row:
    """A graph of brokers, by default a row of those named; `said` is what has arrived since somebody last looked."""

    def __init__(
        self,
        names: str,
        scope: MakeScope,
        *,
        edges: Iterable[str] | None = None,
        rules: Rules | None = None,
        direct_s: float = 0.5,
        core: Callable[[Node, Router], Broker] = Broker,
    ) -> None:
        pairs = [(edge[0], edge[1]) for edge in edges] if edges is not None else list(pairwise(names))
        self.graph = adjacent(names, pairs)
        self.hops = next_hops(self.graph)
        self.rules = rules
        self.core = core
        self.scope = scope
        self.log: list[str] = []
        self.got: list[tuple[str, int]] = []
        self.ready: list[tuple[str, NodeId]] = []
        row = self

        class Heard(World):
            def deliver(self, sender: NodeId, to: NodeId, message: Message) -> None:
                row.log.append(f"{sender}>{to} {told(message)}")
                super().deliver(sender, to, message)

        self.world = Heard(1, lambda world: Overlay(world, lambda a, b: direct_s, OUT_OF_BAND))
        self.brokers: dict[NodeId, RelocationBroker] = {}
        for name in names:
            self.world.add(name, self._start)
        for a, b in pairs:
            self.world.medium.connect(a, b, 1.0)  # type: ignore[attr-defined]

    def _start(self, node: Node) -> Broker:
        router = Router(self.graph[node.name], self.scope(node.name, self.graph))
        broker: Broker = self.core(node, router)
        if self.rules is not None:
            broker = RelocationBroker(node, router, self.hops[node.name], self.rules)
            broker.on_ready = lambda client, to: self.ready.append((client, to))
        broker.on_notify = lambda client, event: self.got.append((client, event.sequence))
        self.brokers[node.name] = broker  # type: ignore[assignment]
        return broker

    def __getitem__(self, name: NodeId) -> RelocationBroker:
        return self.brokers[name]

    def rest(self) -> list[str]:
        """Until nothing moves; what was said."""
        self.world.engine.run()
        said, self.log = self.log, []
        return said

    def run(self, for_s: float) -> list[str]:
        self.world.engine.run(self.world.engine.now + for_s)
        said, self.log = self.log, []
        return said


def event(sequence: int, x: int, publisher: str = "p", kind: str = "t") -> Event:
    return Event(publisher, sequence, type=kind, attributes={"x": x})


def told(message: Message) -> str:
    match message:
        case Stated():
            parts = [
                *(f"-adv {name(one)}" for one in message.unadvertised),
                *(f"+adv {name(one)}" for one in message.advertised),
                *(f"-sub {name(one)}" for one in message.unsubscribed),
                *(f"+sub {name(one)}" for one in message.subscribed),
                *(f"<{one.kind} {one.client}#{one.hop} to {one.to}>" for one in message.markers),
            ]
            return " ".join(parts)
        case Published(event, kind):
            return f"pub {event.sequence}" + (f" as {kind}" if kind != event.type else "")
        case RootSet(filters):
            return f"roots {' '.join(map(name, filters))}"
        case Transfer(client, hop, events):
            return f"transfer {client}#{hop} {[one.sequence for one in events]}"
        case TransferRequest(client, hop):
            return f"request {client}#{hop}"
        case Late(client, hop, event):
            return f"late {client}#{hop} {event.sequence}"
    return type(message).__name__


def name(wanted: Filter) -> str:
    """`3-6` of type t, `u3-6` of another; of a handover, its type."""
    kind = wanted.type or ""
    accepted = [x for x in range(20) if wanted.matches({"type": kind, "x": x})]
    return f"{kind if kind != 't' else ''}{accepted[0]}-{accepted[-1]}" if accepted else kind
