"""AODV, the baseline (spec mft-pubsub 4): routes are searched when needed, kept while used, and nothing is stored.

Every node relays for everybody; only those that publish ever search. Figures and rules are those of RFC 3561, without
what it leaves open: local repair, gratuitous replies, acknowledged replies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from godwit.events import Event
from godwit.protocols.host import Host, Message, NodeId, Record


class AodvOptions(msgspec.Struct, frozen=True, kw_only=True):
    hello_s: float = 1.0
    hello_losses: int = 2
    active_route_s: float = 3.0
    my_route_s: float = 6.0
    net_diameter: int = 35
    node_traversal_s: float = 0.04
    rreq_retries: int = 2
    rreq_per_s: int = 10
    rerr_per_s: int = 10
    ttl_start: int = 1
    ttl_increment: int = 2
    ttl_threshold: int = 7
    timeout_buffer: int = 2
    expanding_ring: bool = True
    """False searches the whole network at once, as the published runs seem to have done."""
    jitter_s: float = 0.01
    buffer_max: int = 64
    hello_routes: bool = True
    """A hello installs a route to its sender (RFC 3561, 6.9). The published summary says only that hellos detect
    neighbors and broken links: False."""
    sequence_numbers: bool = True
    """False: of several routes the shortest is used, however old, as the published summary has it. Routes may then run
    in circles, and an event is given up after `net_diameter` hops."""

    @property
    def net_traversal_s(self) -> float:
        return 2 * self.node_traversal_s * self.net_diameter

    @property
    def path_discovery_s(self) -> float:
        return 2 * self.net_traversal_s

    @property
    def delete_s(self) -> float:
        return 5 * max(self.active_route_s, self.hello_s)


class Hello(Message, frozen=True):
    sequence: int

    @property
    def size_b(self) -> int:
        return 20


class Rreq(Message, frozen=True):
    """Who knows the way to `destination`? `hops` from the originator so far."""

    originator: NodeId
    originator_sequence: int
    number: int
    destination: NodeId
    destination_sequence: int | None
    hops: int
    ttl: int

    @property
    def size_b(self) -> int:
        return 24


class Rrep(Message, frozen=True):
    """I do: `hops` from here. Goes back hop by hop to `originator`."""

    originator: NodeId
    destination: NodeId
    destination_sequence: int
    hops: int
    lifetime_s: float

    @property
    def size_b(self) -> int:
        return 20


class Rerr(Message, frozen=True):
    """These destinations cannot be reached through me any more."""

    lost: tuple[tuple[NodeId, int], ...]

    @property
    def size_b(self) -> int:
        return 4 + 8 * len(self.lost)


class AodvData(Message, frozen=True, tag="Data"):
    event: Event
    originator: NodeId
    destination: NodeId
    hops: int

    @property
    def size_b(self) -> int:
        return 11 + len(self.event.payload)


@dataclass(slots=True)
class Route:
    """A way to a destination. Broken or expired it stays for a while, for the number that a fresher one must reach."""

    hop: NodeId
    hops: int
    sequence: int | None
    expires_s: float
    valid: bool = True
    precursors: set[NodeId] = field(default_factory=set)


@dataclass(slots=True)
class Search:
    """A discovery under way, and what waits for it."""

    ttl: int
    tries_left: int
    waiting: list[Event] = field(default_factory=list)


class AodvNode:
    """One node of whatever role. `publish` is the only verb that starts a search."""

    def __init__(self, host: Host, options: AodvOptions = AodvOptions()) -> None:  # noqa: B008
        self.host = host
        self.options = options
        self.sequence = 0
        self.routes: dict[NodeId, Route] = {}
        self.searches: dict[NodeId, Search] = {}
        self._number = 0
        self._seen: dict[tuple[NodeId, int], float] = {}
        self._heard: dict[NodeId, float] = {}
        self._recent: dict[str, list[float]] = {"rreq": [], "rerr": []}
        self._got: set[tuple[str, int]] = set()
        host.after(host.random.uniform(0, options.hello_s), self._tick)

    def publish(self, event: Event, destination: NodeId) -> None:
        self.host.trace(Record("published", event.id, client=destination))
        route = self._valid(destination)
        if route is not None:
            self._forward(AodvData(event, self.host.name, destination, 0), route, self.host.name)
        else:
            self._search(destination, event)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        self._heard[sender] = self.host.now()
        match message:
            case Hello(sequence) if self.options.hello_routes:
                self._hear(sender, self.options.hello_losses * self.options.hello_s, sequence)
            case Rreq():
                self._requested(sender, message)
            case Rrep():
                self._replied(sender, message)
            case Rerr(lost):
                self._unreachable({d: s for d, s in lost if self._goes_through(d, sender)}, set())
            case AodvData():
                self._data(sender, message)

    def _tick(self) -> None:
        now, options = self.host.now(), self.options
        self.host.broadcast(Hello(self.sequence))
        for neighbor in [n for n, t in self._heard.items() if now - t > options.hello_losses * options.hello_s]:
            del self._heard[neighbor]
            self._lose([d for d, r in self.routes.items() if r.valid and r.hop == neighbor], set())
        self._lose([d for d, r in self.routes.items() if r.valid and r.expires_s <= now], set())
        for name in [d for d, r in self.routes.items() if r.expires_s + options.delete_s < now]:
            del self.routes[name]
        for key in [k for k, t in self._seen.items() if t + options.path_discovery_s < now]:
            del self._seen[key]
        self.host.after(options.hello_s * self.host.random.uniform(0.95, 1.0), self._tick)

    def _valid(self, destination: NodeId) -> Route | None:
        route = self.routes.get(destination)
        return route if route is not None and route.valid and route.expires_s > self.host.now() else None

    def _goes_through(self, destination: NodeId, neighbor: NodeId) -> bool:
        route = self.routes.get(destination)
        return route is not None and route.valid and route.hop == neighbor

    def _hear(self, neighbor: NodeId, lifetime_s: float, sequence: int | None = None) -> None:
        """A neighbor is one hop away whatever was known; its number never goes back."""
        old = self.routes.get(neighbor)
        expires, precursors = self.host.now() + lifetime_s, set[NodeId]()
        if old is not None:
            sequence = max((n for n in (old.sequence, sequence) if n is not None), default=None)
            expires, precursors = max(expires, old.expires_s), old.precursors
        self.routes[neighbor] = Route(neighbor, 1, sequence, expires, True, precursors)

    def _learn(self, destination: NodeId, hop: NodeId, hops: int, sequence: int, lifetime_s: float) -> bool:
        """Take a fresher route, of equally fresh ones a shorter one or one for a lost one (6.2); whether it was taken.

        A number below the known one is refused even for a route that is lost: that is what keeps routes from circling.
        """
        now, old = self.host.now(), self.routes.get(destination)
        expires = now + lifetime_s
        if not self.options.sequence_numbers:
            better = self._valid(destination) is None or old is None or hops < old.hops
        elif old is None or old.sequence is None or sequence > old.sequence:
            better = True
        else:
            better = sequence == old.sequence and (self._valid(destination) is None or hops < old.hops)
        if better:
            precursors = old.precursors if old is not None else set()
            self.routes[destination] = Route(hop, hops, sequence, expires, True, precursors)
        elif old is not None and old.valid and (old.hop, old.sequence) == (hop, sequence):
            old.expires_s = max(old.expires_s, expires)
        return better

    def _search(self, destination: NodeId, event: Event) -> None:
        search = self.searches.get(destination)
        if search is None:
            options = self.options
            known = self.routes.get(destination)
            ring = options.ttl_start if known is None else min(known.hops + options.ttl_increment, options.net_diameter)
            ttl = ring if options.expanding_ring else options.net_diameter
            search = self.searches[destination] = Search(ttl, options.rreq_retries)
            self._request(destination, search)
        search.waiting.append(event)
        if len(search.waiting) > self.options.buffer_max:
            self._drop(search.waiting.pop(0), destination, "buffer full")

    def _request(self, destination: NodeId, search: Search) -> None:
        options = self.options
        if self._allowed("rreq", options.rreq_per_s):
            self.sequence += 1
            self._number += 1
            self._seen[self.host.name, self._number] = self.host.now()
            known = self.routes.get(destination)
            sequence = known.sequence if known is not None else None
            self.host.broadcast(Rreq(self.host.name, self.sequence, self._number, destination, sequence, 0, search.ttl))
        wait = 2 * options.node_traversal_s * (search.ttl + options.timeout_buffer)
        if search.ttl >= options.net_diameter:
            wait = options.net_traversal_s * 2 ** (options.rreq_retries - search.tries_left)
        self.host.after(wait, lambda: self._search_again(destination, search))

    def _search_again(self, destination: NodeId, search: Search) -> None:
        if self.searches.get(destination) is not search:
            return
        options = self.options
        if search.ttl < options.ttl_threshold and options.expanding_ring:
            search.ttl += options.ttl_increment
        elif search.ttl < options.net_diameter:
            search.ttl = options.net_diameter
        elif search.tries_left > 0:
            search.tries_left -= 1
        else:
            del self.searches[destination]
            for event in search.waiting:
                self._drop(event, destination, "no route")
            return
        self._request(destination, search)

    def _requested(self, sender: NodeId, message: Rreq) -> None:
        options, key = self.options, (message.originator, message.number)
        self._hear(sender, options.active_route_s)
        if key in self._seen or message.originator == self.host.name:
            return
        self._seen[key] = self.host.now()
        hops = message.hops + 1
        lifetime = 2 * options.net_traversal_s - 2 * hops * options.node_traversal_s
        self._learn(message.originator, sender, hops, message.originator_sequence, lifetime)
        if message.destination == self.host.name:
            self.sequence = max(self.sequence, message.destination_sequence or 0)
            self.host.send(sender, Rrep(message.originator, self.host.name, self.sequence, 0, options.my_route_s))
        elif not self._answered(sender, message) and message.ttl > 1:
            self._pass_on(message)

    def _answered(self, sender: NodeId, message: Rreq) -> bool:
        """Whether this node knows a way fresh enough for whoever asks, and has said so."""
        route, wanted = self._valid(message.destination), message.destination_sequence
        if route is None or route.sequence is None:
            return False
        if self.options.sequence_numbers and wanted is not None and route.sequence < wanted:
            return False
        route.precursors.add(sender)
        self.routes[message.originator].precursors.add(route.hop)
        left = route.expires_s - self.host.now()
        self.host.send(sender, Rrep(message.originator, message.destination, route.sequence, route.hops, left))
        return True

    def _pass_on(self, message: Rreq) -> None:
        known, wanted = self.routes.get(message.destination), message.destination_sequence
        if known is not None and known.sequence is not None:
            wanted = max(known.sequence, wanted or 0)
        onward = msgspec.structs.replace(
            message, hops=message.hops + 1, ttl=message.ttl - 1, destination_sequence=wanted
        )
        self.host.after(self.host.random.uniform(0, self.options.jitter_s), lambda: self.host.broadcast(onward))

    def _replied(self, sender: NodeId, message: Rrep) -> None:
        self._hear(sender, self.options.active_route_s)
        destination, hops = message.destination, message.hops + 1
        is_new = self._learn(destination, sender, hops, message.destination_sequence, message.lifetime_s)
        if message.originator == self.host.name:
            self._found(destination)
            return
        back = self._valid(message.originator)
        if is_new and back is not None:
            self.routes[destination].precursors.add(back.hop)
            self.routes[sender].precursors.add(back.hop)
            back.expires_s = max(back.expires_s, self.host.now() + self.options.active_route_s)
            self.host.send(back.hop, msgspec.structs.replace(message, hops=hops))

    def _found(self, destination: NodeId) -> None:
        route = self._valid(destination)
        if route is not None and (search := self.searches.pop(destination, None)) is not None:
            for event in search.waiting:
                self._forward(AodvData(event, self.host.name, destination, 0), route, self.host.name)

    def _data(self, sender: NodeId, message: AodvData) -> None:
        if message.destination == self.host.name:
            kind = "duplicate" if message.event.id in self._got else "delivered"
            self._got.add(message.event.id)
            self.host.trace(Record(kind, message.event.id, client=self.host.name, hops=message.hops, note="direct"))
            return
        route = self._valid(message.destination)
        if not self.options.sequence_numbers and message.hops >= self.options.net_diameter:
            self._drop(message.event, message.destination, "went in circles")
        elif route is not None:
            route.precursors.add(sender)
            self._forward(message, route, sender)
        else:
            self._drop(message.event, message.destination, "route lost")
            self._lose([message.destination], {sender})

    def _forward(self, message: AodvData, route: Route, previous: NodeId) -> None:
        until = self.host.now() + self.options.active_route_s
        for name in (message.destination, message.originator, route.hop, previous):
            used = self.routes.get(name)
            if used is not None and used.valid:
                used.expires_s = max(used.expires_s, until)
        self.host.send(route.hop, msgspec.structs.replace(message, hops=message.hops + 1))

    def _lose(self, destinations: list[NodeId], users: set[NodeId]) -> None:
        """These ways have broken or expired; whoever wants one again must find a fresher one."""
        lost = {}
        for destination in destinations:
            route = self.routes.get(destination)
            known = route.sequence if route is not None else None
            lost[destination] = 0 if known is None else known + 1
        self._unreachable(lost, users)

    def _unreachable(self, lost: dict[NodeId, int], users: set[NodeId]) -> None:
        told = set(users)
        for destination, sequence in lost.items():
            route = self.routes.get(destination)
            if route is not None:
                route.valid = False
                route.sequence = None if route.sequence is None else max(route.sequence, sequence)
                route.expires_s = self.host.now()
                told |= route.precursors
                route.precursors = set()
        self._tell_unreachable(lost, told)

    def _tell_unreachable(self, lost: dict[NodeId, int], users: set[NodeId]) -> None:
        if lost and users and self._allowed("rerr", self.options.rerr_per_s):
            self.host.broadcast(Rerr(tuple(sorted(lost.items()))))

    def _allowed(self, what: str, per_s: int) -> bool:
        now = self.host.now()
        recent = self._recent[what] = [t for t in self._recent[what] if now - t < 1.0]
        if len(recent) >= per_s:
            return False
        recent.append(now)
        return True

    def _drop(self, event: Event, destination: NodeId, why: str) -> None:
        self.host.trace(Record("dropped", event.id, client=destination, note=why))
