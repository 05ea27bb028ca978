"""What can be seen of a stage at one moment: who is where and under whom, what has just arrived, and a broker's tables.

Looking changes nothing: a run that is watched has the digest of one that is not.
"""

from __future__ import annotations

import math

import msgspec

from godwit.filters.text import to_text
from godwit.protocols.adhoc.aodv import AodvNode
from godwit.protocols.host import Core, NodeId
from godwit.protocols.routing.clients import Publisher, Subscriber
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.process import BrokerProcess
from godwit.sim import scenario as described
from godwit.sim.brokers.production import Production
from godwit.sim.radio import Air
from godwit.sim.stage import Arrival, Stage, WatchedWorld
from godwit.sim.wired import Wired


class Seen(msgspec.Struct, frozen=True):
    """A node: `up` is its parent in the tree, or the broker of a client; a place that is NaN is nowhere."""

    name: NodeId
    role: str
    x_m: float
    y_m: float
    alive: bool
    leads: bool
    up: NodeId | None
    queued: int


class Tables(msgspec.Struct, frozen=True):
    """R, T and Q of one broker, as rows of text; AODV's routes are its R."""

    broker: NodeId
    routes: list[tuple[str, str, str]]
    """(filter, next hop, subscriber), or (validity, next hop, destination)."""
    known: list[tuple[str, int, int]]
    """(subscriber, t, h)."""
    queues: list[tuple[str, int]]
    """(subscriber, events that wait)."""


class Sight(msgspec.Struct, frozen=True):
    time_s: float
    nodes: tuple[Seen, ...]
    arrivals: tuple[Arrival, ...]
    """Since the last look, oldest first."""
    cuts: tuple[tuple[NodeId, NodeId], ...]
    """Links that are down."""
    tables: Tables | None


def look(stage: Stage | Production, inspected: NodeId | None = None) -> Sight:
    """The stage as it is now. Arrivals are there if it was built to be watched."""
    if isinstance(stage, Production):
        return _look_at_product(stage, inspected)
    world = stage.world
    places, brokers = places_of(stage), stage.brokers()
    nodes = tuple(_seen(stage, name, places[name], brokers.get(name)) for name in world.nodes)
    arrivals: tuple[Arrival, ...] = ()
    if isinstance(world, WatchedWorld):
        arrivals = tuple(world.arrivals)
        world.arrivals.clear()
    tables = tables_of(stage, inspected) if inspected is not None else None
    return Sight(world.engine.now, nodes, arrivals, cuts_of(stage), tables)


def _look_at_product(stage: Production, inspected: NodeId | None) -> Sight:
    places = places_of(stage)
    nodes = tuple(_seen_product(stage, name, role, places[name]) for name, (role, _) in stage.loaded.names.items())
    arrivals = tuple(stage.arrivals)
    stage.arrivals.clear()
    tables = tables_of(stage, inspected) if inspected is not None else None
    return Sight(stage.world.engine.now, nodes, arrivals, cuts_of(stage), tables)


def _seen_product(stage: Production, name: NodeId, role: str, place: tuple[float, float]) -> Seen:
    if role != "brokers":
        roamer = stage.roamers[name]
        at = roamer.connection.site.name if roamer.connection is not None and roamer.inside else None
        return Seen(name, role, *place, roamer.goal is not None, False, at, 0)
    machine = stage.cluster.sites[name]
    if not machine.up:
        return Seen(name, role, *place, False, False, None, 0)
    fabric = machine.station.tree
    return Seen(name, role, *place, True, fabric.leader == name, fabric.parent, stage.queued(name))


def places_of(stage: Stage | Production) -> dict[NodeId, tuple[float, float]]:
    medium = stage.world.medium
    if isinstance(medium, Air):
        x, y = medium.field.positions(stage.world.engine.now)
        return dict(zip(medium.field.names, zip(x.tolist(), y.tolist(), strict=True), strict=True))
    given = {}
    for _, group, members in stage.scenario.groups():
        given.update(dict(zip(members, group.places, strict=False)))
    return _in_a_ring([name for name in stage.loaded.names if name not in given]) | given


def _in_a_ring(names: list[NodeId]) -> dict[NodeId, tuple[float, float]]:
    """Where a scenario on wires says no places, a circle shows every link."""
    turn = 2 * math.pi / max(len(names), 1)
    return {n: (50 + 45 * math.sin(turn * i), 50 - 45 * math.cos(turn * i)) for i, n in enumerate(names)}


def cuts_of(stage: Stage | Production) -> tuple[tuple[NodeId, NodeId], ...]:
    medium = stage.world.medium
    if not isinstance(medium, Wired):
        return ()
    return tuple((a, b) for a, links in medium.links.items() for b, link in links.items() if a < b and not link.up)


def _seen(stage: Stage, name: NodeId, place: tuple[float, float], broker: MftBroker | None) -> Seen:
    core, role = stage.world.nodes[name].core, stage.loaded.names[name][0]
    queued = sum(map(len, broker.queues.values())) if broker is not None else 0
    leads = isinstance(core, BrokerProcess) and core.election.leader == name
    return Seen(name, role, *place, core is not None, leads, _up(core), queued)


def _up(core: Core | None) -> NodeId | None:
    match core:
        case BrokerProcess():
            return core.election.parent
        case Subscriber() | Publisher():
            return core.attachment.broker
    return None


def tables_of(stage: Stage | Production, name: NodeId) -> Tables:
    """What a broker believes now; nothing while it is down."""
    if isinstance(stage, Production):
        return _tables_of_product(stage, name)
    broker, core = stage.brokers().get(name), stage.world.nodes[name].core
    if broker is not None:
        return Tables(
            name,
            sorted((to_text(row.wanted), row.hop, row.subscriber) for row in broker.routes),
            sorted((subscriber, t, h) for subscriber, (t, h) in broker.known.items()),
            sorted((subscriber, len(queue)) for subscriber, queue in broker.queues.items()),
        )
    if isinstance(core, AodvNode):
        rows = [("valid" if route.valid else "lost", route.hop, to) for to, route in core.routes.items()]
        return Tables(name, sorted(rows), [], [(to, len(s.waiting)) for to, s in sorted(core.searches.items())])
    return Tables(name, [], [], [])


def _tables_of_product(stage: Production, name: NodeId) -> Tables:
    """What each other broker wants and the way there, the number of its statement, and what waits for each client."""
    machine = stage.cluster.sites.get(name)
    if machine is None or not machine.up:
        return Tables(name, [], [], [])
    fabric, sessions = machine.station.tree, machine.broker.sessions
    routes = [(to_text(one), fabric.way(peer) or "", peer) for peer, some in fabric.interests.items() for one in some]
    known = [(peer, fabric.heard(peer), 0) for peer in fabric.brokers]
    queues = [(client, len(session.queue.flying) + len(session.queue.waiting)) for client, session in sessions.items()]
    return Tables(name, sorted(routes), sorted(known), sorted(queues))


def frame_of(stage: Stage | Production, sights: list[Sight]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what a picture must show."""
    if stage.scenario.area is not None and not isinstance(stage.scenario.medium, described.Wires):
        return 0.0, 0.0, stage.scenario.area.width_m, stage.scenario.area.height_m
    xs = [node.x_m for sight in sights for node in sight.nodes if not math.isnan(node.x_m)] or [0.0, 1.0]
    ys = [node.y_m for sight in sights for node in sight.nodes if not math.isnan(node.y_m)] or [0.0, 1.0]
    return min(xs), min(ys), max(max(xs), min(xs) + 1), max(max(ys), min(ys) + 1)
