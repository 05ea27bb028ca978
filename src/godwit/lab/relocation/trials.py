"""Random trees, random moves, messages that take random times: which ways to move lose events (spec 6.4, second check)?

Every trial is a small world of its own. Clients subscribe and publishers advertise; the network comes to rest; then
clients move, also before an earlier move has ended, while events are published all the time. Links keep their order,
and nothing else does. Afterwards every subscriber must have had every event that it wanted, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.lab.relocation.networks import VALUES, exponential, random_tree, wants
from godwit.protocols.host import NodeId
from godwit.protocols.relocation import rules as named
from godwit.protocols.relocation.audits import Flaw, flaws
from godwit.protocols.relocation.broker import RelocationBroker
from godwit.protocols.relocation.messages import OUT_OF_BAND
from godwit.protocols.relocation.rules import Rules
from godwit.protocols.routing.covering.router import Router
from godwit.protocols.routing.covering.scopes import Advertised, Everywhere, Rendezvous, Scope
from godwit.protocols.topology.graphs import adjacent, next_hops
from godwit.sim.overlay import Overlay
from godwit.sim.world import Node, World

MOVES = 8
BUSY_S = 15.0
EVENTS = 30
BROKERS = (3, 8)
SUBSCRIBERS, PUBLISHERS = 3, 2
LINGER_S = 400.0
"""Messages take exponential times of mean 1: no way of eight brokers ever takes half of this."""


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A way to move; `lost` is in how many of how many runs the spec's trial lost events."""

    rules: Rules = Rules()
    scope: str = "advertised"
    who: str = "subscribers"
    make_before_break: str = ""
    """Empty for break before make, else `trigger` or `one direction`."""
    safe: bool = True
    published: str = ""


SAFE = "0 of 1,500"
VARIANTS: Mapping[str, Variant] = {
    "acyclic, in-band marker": Variant(published=SAFE),
    "acyclic, in-band marker, both move": Variant(who="both", published=SAFE),
    "acyclic, publishers": Variant(who="publishers", published=SAFE),
    "acyclic, flooded by content": Variant(
        rules=msgspec.structs.replace(named.INCOMPLETE, limit_s=LINGER_S), published="not run"
    ),
    "acyclic, covering out of band": Variant(rules=named.COMPLETE_ADDRESSED, safe=False, published="278 of 1,500"),
    "acyclic, covering lingering": Variant(
        rules=msgspec.structs.replace(named.LINGERING, linger_s=LINGER_S), published="not run"
    ),
    "rendezvous, in band": Variant(rules=named.RENDEZVOUS, scope="rendezvous", published=SAFE),
    "rendezvous, in band, both move": Variant(rules=named.RENDEZVOUS, scope="rendezvous", who="both", published=SAFE),
    "rendezvous, publishers": Variant(rules=named.RENDEZVOUS, scope="rendezvous", who="publishers", published=SAFE),
    "rendezvous, direct notice": Variant(
        rules=named.RENDEZVOUS_DIRECT, scope="rendezvous", safe=False, published="277 of 1,500"
    ),
    "ping/pong, subscriptions": Variant(
        rules=msgspec.structs.replace(named.PING_PONG, ping_s=2.0), scope="everywhere", published="0 of 1,000"
    ),
    "ping/pong, adverts": Variant(rules=msgspec.structs.replace(named.PING_PONG, ping_s=2.0), published="not run"),
    "make before break, trigger, subscribers": Variant(make_before_break="trigger", published="0 of 800"),
    "make before break, trigger, publishers": Variant(
        make_before_break="trigger", who="publishers", published="0 of 800"
    ),
    "make before break, one direction, subscribers": Variant(
        make_before_break="one direction", safe=False, published="73 of 800"
    ),
    "make before break, one direction, publishers": Variant(
        make_before_break="one direction", who="publishers", safe=False, published="261 of 800"
    ),
}


class Mobile(msgspec.Struct):
    """A client as itself knows it."""

    name: str
    filters: tuple[Filter, ...]
    at: NodeId
    hop: int = 0
    away: bool = False
    going: NodeId = ""
    """Make before break: where a place is being prepared."""
    waiting: list[Event] = msgspec.field(default_factory=list)


class Trial:
    """`run` gives the flaws; the same seed always gives the same."""

    def __init__(self, variant: Variant, seed: int) -> None:
        self.variant = variant
        self.world = World(seed, lambda world: Overlay(world, lambda a, b: exponential, OUT_OF_BAND))
        self.overlay = cast(Overlay, self.world.medium)
        self.dice = self.world.streams.stream("trial")
        edges = random_tree(self.dice.randint(*BROKERS), self.dice)
        self.names = sorted({name for edge in edges for name in edge})
        self.graph = adjacent(self.names, edges)
        self.hops = next_hops(self.graph)
        self.got: dict[str, list[tuple[str, int]]] = {}
        self.published: list[Event] = []
        for name in self.names:
            self.world.add(name, self._start)
        for a, b in edges:
            self.overlay.connect(a, b, exponential)
        self.subscribers = [self._mobile(f"s{i}") for i in range(SUBSCRIBERS)]
        self.publishers = [self._mobile(f"p{i}") for i in range(PUBLISHERS)]

    def _start(self, node: Node) -> RelocationBroker:
        router = Router(self.graph[node.name], self._scope(node.name))
        broker = RelocationBroker(node, router, self.hops[node.name], self.variant.rules)
        broker.on_notify = lambda client, event: self.got.setdefault(client, []).append(event.id)
        broker.on_ready = self._ready
        return broker

    def _scope(self, name: NodeId) -> Scope:
        if self.variant.scope == "everywhere":
            return Everywhere(self.graph[name])
        if self.variant.scope == "rendezvous":
            return Rendezvous(name, self.graph[name], self.names, self.hops[name])
        return Advertised(self.graph[name])

    def _mobile(self, name: str) -> Mobile:
        low = self.dice.randrange(VALUES)
        return Mobile(name, (wants(low, low + self.dice.choice([1, 3, 6])),), self.dice.choice(self.names))

    def broker(self, name: NodeId) -> RelocationBroker:
        return cast(RelocationBroker, self.world.nodes[name].core)

    def run(self) -> list[Flaw]:
        self._install()
        at_s = self.world.engine.now
        for _ in range(EVENTS):
            self.world.engine.at(
                at_s + self.dice.uniform(0, BUSY_S), partial(self._publish, self.dice.choice(self.publishers))
            )
        for _ in range(MOVES):
            self.world.engine.at(
                at_s + self.dice.uniform(0, BUSY_S), partial(self._move, self.dice.choice(self._movers()))
            )
        self.world.engine.run()
        self._at_rest()
        wanted = {one.name: one.filters for one in self.subscribers}
        return list(flaws(self.published, wanted, self.got))

    def _install(self) -> None:
        for one in self.publishers:
            self.broker(one.at).publishers.open(one.name, one.filters)
        for one in self.subscribers:
            self.broker(one.at).subscribers.open(one.name, one.filters)
        self.world.engine.run()

    def _movers(self) -> list[Mobile]:
        groups = {"subscribers": self.subscribers, "publishers": self.publishers}
        return groups.get(self.variant.who, [*self.subscribers, *self.publishers])

    def _publish(self, one: Mobile) -> None:
        """Only what it has advertised; who is away publishes when it is back."""
        low, high = span(one.filters[0])
        event = Event(one.name, len(self.published), type="t", attributes={"x": self.dice.randint(low, high)})
        self.published.append(event)
        if one.away:
            one.waiting.append(event)
        else:
            self.broker(one.at).publishers.publish(one.name, one.hop, event)

    def _move(self, one: Mobile) -> None:
        if one.away or one.going:
            return
        to = self.dice.choice(self.names)
        if self.variant.make_before_break:
            self._prepare(one, to)
            return
        one.away = True
        if one in self.subscribers:
            self.broker(one.at).subscribers.leave(one.name, one.hop)
        self.world.engine.after(self.dice.expovariate(1.0), partial(self._arrive, one, to))

    def _arrive(self, one: Mobile, to: NodeId) -> None:
        source, one.at, one.away, one.going = one.at, to, False, ""
        one.hop += 1
        if one in self.subscribers:
            self.broker(to).subscribers.come(one.name, one.hop, one.filters, source)
            return
        announced = bool(self.variant.make_before_break)
        self.broker(to).publishers.come(one.name, one.hop, one.filters, source, announced=announced)
        for event in one.waiting:
            self.broker(to).publishers.publish(one.name, one.hop, event)
        one.waiting = []

    def _prepare(self, one: Mobile, to: NodeId) -> None:
        part = self.broker(one.at).subscribers if one in self.subscribers else self.broker(one.at).publishers
        if to != one.at and self._served(one):
            one.going = to
            part.move_out(one.name, one.hop, to, one_direction=self.variant.make_before_break == "one direction")

    def _served(self, one: Mobile) -> bool:
        broker = self.broker(one.at)
        if one in self.subscribers:
            return broker.subscribers.is_served(one.name, one.hop)
        return broker.publishers.is_served(one.name, one.hop)

    def _ready(self, client: str, to: NodeId) -> None:
        one = next(one for one in (*self.subscribers, *self.publishers) if one.name == client)
        if one.going != to:
            return
        one.away = True
        if one in self.subscribers:
            self.broker(one.at).subscribers.leave(one.name, one.hop)
        self.world.engine.after(self.dice.expovariate(1.0), partial(self._arrive, one, to))

    def _at_rest(self) -> None:
        """No session may be stuck: everybody is served where it is, and nowhere else is anything kept for it."""
        for one in self.subscribers:
            stays = [
                n for n in self.names for s in self.broker(n).subscribers.sessions.values() if s.client == one.name
            ]
            if stays != [one.at] or not self._served(one):
                self.got.setdefault(one.name, [])
                self.stuck = True

    stuck = False


def span(wanted: Filter) -> tuple[int, int]:
    """The values that a filter of `wants` accepts."""
    accepted = [x for x in range(2 * VALUES) if wanted.matches({"type": "t", "x": x})]
    return accepted[0], accepted[-1]


def bad(variant: Variant, seed: int) -> bool:
    """Whether a run lost, repeated or stuck anything."""
    trial = Trial(variant, seed)
    return bool(trial.run()) or trial.stuck
