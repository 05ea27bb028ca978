"""Random trees of brokers whose clients come, change and go, beside flooding as the oracle (spec 6.4, first check).

At rest every client gets exactly what flooding would give it, and each link holds what theorem T13 says. Before that,
while everything changes at once, a client that has wanted the same all along misses nothing of a publisher that has
offered it all along: that is what atomic updates are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import cast

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import equ, rng
from godwit.protocols.host import Host, NodeId
from godwit.protocols.routing.covering.broker import Broker, TypeBroker
from godwit.protocols.routing.covering.configurations import PUBLISHED, Configuration
from godwit.protocols.routing.covering.router import Router
from godwit.protocols.routing.covering.scopes import (
    Advertised,
    Everywhere,
    Flooded,
    Hierarchical,
    Rendezvous,
    Scope,
)
from godwit.protocols.routing.covering.strategies import Strategy, Structure
from godwit.protocols.topology.graphs import Edge, adjacent, next_hops
from godwit.sim.overlay import Overlay
from godwit.sim.world import Node, World

VALUES = 10
KINDS = "tu"
CALLS_MAX = 4_000
"""A network that has not come to rest by then never does."""

Cores = Callable[[Host, Router], Broker]


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """What kind of network: who is told, how much, and by which tables."""

    scope: str = "everywhere"
    configuration: Configuration = Configuration()
    turned: bool | None = None
    """Of type-based rendezvous, which rule; None for other networks."""
    reports: bool = False
    """Of a hierarchy, whether root sets are replaced whole."""

    @property
    def advertising(self) -> bool:
        return self.scope in ("advertised", "rendezvous")


def _everywhere(strategy: Strategy, structure: Structure = Structure.POSET) -> Wiring:
    scope = "flooded" if strategy is Strategy.FLOODING else "everywhere"
    return Wiring(scope=scope, configuration=Configuration(strategy=strategy, structure=structure))


WIRINGS: Mapping[str, Wiring] = {
    **{f"subscriptions, {strategy}": _everywhere(strategy) for strategy in Strategy},
    "subscriptions, covering, forest": _everywhere(Strategy.COVERING, Structure.FOREST),
    "subscriptions, covering, approximate forest": _everywhere(Strategy.COVERING, Structure.APPROXIMATE),
    **{
        f"adverts, {strategy}": Wiring(scope="advertised", configuration=Configuration(strategy=strategy))
        for strategy in (Strategy.SIMPLE, Strategy.IDENTITY, Strategy.COVERING, Strategy.MERGING)
    },
    "hierarchy": Wiring(scope="hierarchical", configuration=PUBLISHED["4.13c"]),
    "hierarchy, merging": Wiring(scope="hierarchical", configuration=PUBLISHED["8.2b"]),
    "hierarchy, root sets replaced": Wiring(
        scope="hierarchical", configuration=Configuration(structure=Structure.REDUNDANT), reports=True
    ),
    "rendezvous, types and attributes": Wiring(scope="rendezvous", configuration=PUBLISHED["RP"]),
    "rendezvous, types, turned at the point": Wiring(scope="types", turned=True),
    "rendezvous, types, served on the way": Wiring(scope="types", turned=False),
}


class Network:
    """Brokers in a tree, whose messages take random times, in order on each link."""

    def __init__(
        self,
        edges: Iterable[Edge],
        wiring: Wiring,
        seed: int,
        *,
        supertypes: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.wiring = wiring
        self.supertypes = supertypes
        self.edges = list(edges)
        self.names = sorted({name for edge in self.edges for name in edge})
        self.graph = adjacent(self.names, self.edges)
        self.hops = next_hops(self.graph)
        self.world = World(seed, lambda world: Overlay(world, lambda a, b: exponential))
        self.overlay = cast(Overlay, self.world.medium)
        self.dice = self.world.streams.stream("script")
        self.got: dict[str, list[tuple[str, int]]] = {}
        self.wishes: dict[str, tuple[NodeId, dict[Filter, None]]] = {}
        self.offers: dict[str, tuple[NodeId, dict[Filter, None]]] = {}
        self.published = 0
        for name in self.names:
            self.world.add(name, self._start)
        for a, b in self.edges:
            self.overlay.connect(a, b, exponential)

    def _start(self, node: Node) -> Broker:
        router = Router(self.graph[node.name], self._scope(node.name), self.wiring.configuration)
        if self.wiring.turned is None:
            broker = Broker(node, router, supertypes=self.supertypes)
        else:
            broker = TypeBroker(node, router, supertypes=self.supertypes, turned=self.wiring.turned)
        broker.on_notify = lambda client, event: self.got.setdefault(client, []).append(event.id)
        return broker

    def _scope(self, name: NodeId) -> Scope:
        near = self.graph[name]
        if self.wiring.scope == "hierarchical":
            return Hierarchical(self.hops[name].get(self.names[0]))
        if self.wiring.scope in ("rendezvous", "types"):
            attributes = self.wiring.scope == "rendezvous"
            return Rendezvous(name, near, self.names, self.hops[name], attributes=attributes)
        return {"everywhere": Everywhere, "flooded": Flooded, "advertised": Advertised}[self.wiring.scope](near)

    def broker(self, name: NodeId) -> Broker:
        return cast(Broker, self.world.nodes[name].core)

    def router(self, name: NodeId) -> Router:
        return self.broker(name).router

    def settle(self) -> bool:
        """Whether it came to rest."""
        if self.world.engine.run(calls=CALLS_MAX):
            return False
        if self.wiring.reports:
            # From the farthest up: a master reports what its slaves have just reported.
            for name in sorted(self.names, key=lambda one: -self._depth(one)):
                self.broker(name).report()
                self.world.engine.run()
        return True

    def _depth(self, name: NodeId) -> int:
        return 0 if name == self.names[0] else 1 + self._depth(self.hops[name][self.names[0]])

    def run(self, for_s: float) -> None:
        self.world.engine.run(self.world.engine.now + for_s, calls=CALLS_MAX)

    def subscribe(self, client: str, at: NodeId, wanted: Filter) -> None:
        self.wishes.setdefault(client, (at, {}))[1][wanted] = None
        self.broker(at).subscribe(client, wanted)

    def unsubscribe(self, client: str, wanted: Filter) -> None:
        at, held = self.wishes[client]
        del held[wanted]
        self.broker(at).unsubscribe(client, wanted)

    def advertise(self, client: str, at: NodeId, offered: Filter) -> None:
        self.offers.setdefault(client, (at, {}))[1][offered] = None
        self.broker(at).advertise(client, offered)

    def unadvertise(self, client: str, offered: Filter) -> None:
        at, held = self.offers[client]
        del held[offered]
        self.broker(at).unadvertise(client, offered)

    def publish(self, client: str, at: NodeId, x: int, kind: str = KINDS[0]) -> tuple[str, int]:
        self.published += 1
        event = Event(client, self.published, type=kind, attributes={"x": x})
        self.broker(at).publish(client, event)
        return event.id

    def flooded(self, x: int, kind: str) -> list[str]:
        """Who gets an event by flooding, now."""
        kinds = (kind, *(self.supertypes or {}).get(kind, ()))
        return sorted(
            client
            for client, (_, held) in self.wishes.items()
            if any(wanted.matches({"type": one, "x": x}) for wanted in held for one in kinds)
        )

    def who_got(self, event: tuple[str, int]) -> list[str]:
        return sorted(client for client, events in self.got.items() for one in events if one == event)

    def change(self) -> None:
        """Some client takes up a wish or drops one, or some publisher an offer."""
        if self.wiring.advertising and self.dice.random() < 0.5:
            self._toggle(self.offers, ".p", self.advertise, self.unadvertise)
        else:
            self._toggle(self.wishes, self.dice.choice([".c", ".d"]), self.subscribe, self.unsubscribe)

    def _toggle(
        self,
        said: Mapping[str, tuple[NodeId, dict[Filter, None]]],
        suffix: str,
        take: Callable[[str, NodeId, Filter], None],
        drop: Callable[[str, Filter], None],
    ) -> None:
        at = self.dice.choice(self.names)
        client = at + suffix
        held = said[client][1] if client in said else {}
        if held and self.dice.random() < 0.45:
            drop(client, self.dice.choice(list(held)))
        else:
            take(client, at, self.any_filter())

    def any_filter(self) -> Filter:
        low = self.dice.randrange(VALUES)
        width = self.dice.choice([0, 1, 2, 4, VALUES])
        return wants(low, min(VALUES - 1, low + width), self.dice.choice(KINDS))

    def may_publish(self, client: str, x: int, kind: str) -> bool:
        if not self.wiring.advertising:
            return True
        held = self.offers[client][1] if client in self.offers else {}
        return any(offered.matches({"type": kind, "x": x}) for offered in held)

    def wrong_deliveries(self) -> int:
        """Events at rest, one after the other from everywhere, that did not come to exactly whom flooding serves."""
        wrong = 0
        for at in self.names:
            for kind in KINDS:
                for x in range(VALUES):
                    if self.may_publish(f"{at}.p", x, kind):
                        event = self.publish(f"{at}.p", at, x, kind)
                        self.world.engine.run()
                        wrong += self.who_got(event) != self.flooded(x, kind)
        return wrong

    def wrong_links(self) -> int:
        """Links whose far end holds other filters than the near end believes (T13)."""
        wrong = 0
        for here, there in ((a, b) for edge in self.edges for a, b in (edge, edge[::-1])):
            if there in self.router(here).scope.told:
                wrong += self._held(here, there) != sorted(self._told(here, there), key=repr)
        return wrong

    def _held(self, here: NodeId, there: NodeId) -> list[Filter]:
        table = self.router(there).wanted.table
        return sorted((one for one in table if here in table.interfaces(one)), key=repr)

    def _told(self, here: NodeId, there: NodeId) -> set[Filter]:
        return set(self.router(here).wanted.statements.told(there))

    @property
    def messages(self) -> int:
        return sum(self.overlay.sent.values())


class Routed(msgspec.Struct, frozen=True):
    """What came of one tree. `missed` counts events that a lasting client did not get while everything changed."""

    rested: bool
    wrong: int = 0
    wrong_links: int = 0
    missed: int = 0
    messages: int = 0

    @property
    def bad(self) -> bool:
        return not self.rested or bool(self.wrong or self.wrong_links or self.missed)


OPERATIONS = 60


def routed(wiring: Wiring, seed: int) -> Routed:
    """One random tree of 3 to 8 brokers, 60 operations at any time, events meanwhile and afterwards."""
    dice = Random(seed)
    network = Network(random_tree(dice.randint(3, 8), dice), wiring, seed)
    lasting, at = wants(3, 6), network.dice.choice(network.names)
    source = network.dice.choice(network.names)
    network.subscribe("lasting", at, lasting)
    if wiring.advertising:
        network.advertise("source", source, lasting)
    network.settle()
    due = []
    for _ in range(OPERATIONS):
        network.change()
        due.append(network.publish("source", source, network.dice.randint(3, 6)))
        network.run(network.dice.expovariate(1.0))
    if not network.settle():
        return Routed(False)
    messages = network.messages
    missed = len(set(due) - set(network.got.get("lasting", ())))
    merged = wiring.configuration.merge_inside
    return Routed(True, network.wrong_deliveries(), 0 if merged else network.wrong_links(), missed, messages)


def wants(low: int, high: int, kind: str = KINDS[0]) -> Filter:
    return filter_of(attribute("type", equ(kind)), attribute("x", rng(low, high)))


def random_tree(size: int, dice: Random) -> list[Edge]:
    return [(f"b{dice.randrange(node)}", f"b{node}") for node in range(1, size)]


def exponential(dice: Random) -> float:
    """Mostly short and sometimes very long: what is said on one link often overtakes what is said on others."""
    return dice.expovariate(1.0)
