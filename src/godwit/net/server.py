"""One broker as it is run: disk, links, fabric, sessions and fronts put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from godwit.filters.filters import Filter
from godwit.net import rehearsal, tls
from godwit.net.access import Access, SecurityError
from godwit.net.address import Address
from godwit.net.config import SITES_PORT, Config, ConfigError, Fabric, address
from godwit.net.host import AsyncHost, boot_of_machine
from godwit.net.identity import Identity, identify
from godwit.net.logins import Remembered, key_in
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.listener import Listener
from godwit.net.mqtt.options import Options
from godwit.net.neighbors import files
from godwit.net.neighbors.files import read_sites
from godwit.net.ops import chronicle
from godwit.net.ops.report import BridgeRow
from godwit.net.peers.balance import WILDCARDS, advertise, balance_of, drain, steer_with
from godwit.net.peers.dialler import PORT, Dialler
from godwit.net.peers.links import Club, LinkOptions, Links
from godwit.net.preload import IndexLoader, ParserLoader
from godwit.net.sites.uplinks import Border, Uplinks, links_of
from godwit.net.store.sqlite import SqliteStore
from godwit.protocols.broker.api import ALL, Capacity, Grant, Limits
from godwit.protocols.broker.balance import Balance
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.adhoc import AdhocFabric
from godwit.protocols.broker.fabric.base import ANYTHING, Streamless
from godwit.protocols.broker.fabric.bridge import Bridge
from godwit.protocols.broker.fabric.gateway import Gateway, SiteOptions, ring_of
from godwit.protocols.broker.fabric.ring.fabric import RingFabric, RingOptions
from godwit.protocols.broker.fabric.tree import TreeFabric, TreeOptions
from godwit.protocols.broker.handoff.homes import CareOf
from godwit.protocols.broker.handoff.prediction import HABITS, Neighbors
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.streams import frames
from godwit.protocols.neighbors.graph import GraphOptions
from godwit.protocols.neighbors.nearness import closeness

if TYPE_CHECKING:
    from godwit.net.peers.mdns import Discovery
    from godwit.net.radio.node import Air

log = logging.getLogger("godwit.server")

GOODBYE_S = 3.0
"""How long clients may take to hear that the broker stops."""


class ServeError(Exception):
    """The broker cannot be started; the text says why, and what would be right."""


class Service:
    """Something that runs beside the broker's core."""

    is_there_for_all = False
    """Whether it must have started before the first client comes, and stop after the last has gone."""

    async def start(self) -> None:
        """`ServeError` where it cannot; the server then stops whatever has been started."""
        raise NotImplementedError

    async def stop(self) -> None:
        raise NotImplementedError

    def addresses(self) -> list[tuple[str, str]]:
        """What it is and where, as a user would want to read it."""
        return []

    def troubles(self) -> list[str]:
        """Why this broker should not be given more to do."""
        return []

    def bridges(self) -> list[BridgeRow]:
        """What it tells of MQTT brokers of others."""
        return []


@dataclass
class Asks:
    """What operators ask of the server as a whole; it puts its own in place of these."""

    stop: Callable[[], None] = lambda: None
    reload: Callable[[], str] = lambda: "not started"
    restart: bool = False
    """Whoever runs the server starts it again when it has stopped."""


AnyFabric = TreeFabric | RingFabric | Bridge | Streamless | Gateway


def _linked(fabric: AnyFabric) -> TreeFabric | RingFabric | None:
    """What has links and streams to other brokers; None where there is only air."""
    match fabric:
        case Gateway():
            return fabric.base
        case Bridge():
            return fabric.tree
        case Streamless():
            return None
    return fabric


@dataclass(frozen=True)
class Parts:
    """What a broker is made of, for whoever serves something from it."""

    config: Config
    identity: Identity
    store: SqliteStore
    links: Links
    dialler: Dialler
    host: AsyncHost
    fabric: AnyFabric
    broker: Broker
    neighbors: Neighbors
    balance: Balance
    access: Access
    front: Front
    services: list[Service]
    """Those that were started, in their order."""
    uplinks: Uplinks | None = None
    """Of a gateway."""
    asks: Asks = field(default_factory=Asks)

    @property
    def tree(self) -> TreeFabric | None:
        """None where this broker is in the air only, or in a ring."""
        linked = _linked(self.fabric)
        return linked if isinstance(linked, TreeFabric) else None

    @property
    def ring(self) -> RingFabric | None:
        """None where this broker owns no part of the globe."""
        return ring_of(self.fabric)

    @property
    def linked(self) -> TreeFabric | RingFabric | None:
        """What has links and streams to other brokers; None where this broker is in the air only."""
        return _linked(self.fabric)

    @property
    def air(self) -> Air | None:
        """None where this broker has links only."""
        fabric = self.fabric.inner if isinstance(self.fabric, Gateway) else self.fabric
        if isinstance(fabric, TreeFabric | RingFabric):
            return None
        from godwit.net.radio.node import air_of

        medium = fabric.air if isinstance(fabric, Bridge) else fabric.medium
        assert isinstance(medium, AdhocFabric)
        return air_of(self.config, medium)

    @property
    def stated(self) -> list[Filter]:
        """What this broker has told the others that it wants."""
        if self.linked is not None:
            return self.linked.stated
        return self.air.fabric.stated if self.air is not None else []

    def rights_of(self, session: str) -> tuple[Grant, Limits] | None:
        """What the owner of a session may do now. Bridges are the broker's own, and may do what their table says."""
        return (ALL, limits(self.config)) if is_bridge(session) else self.access.rights_of(session)

    def troubles(self) -> list[str]:
        """Why this broker should not be given more to do; none where it is healthy."""
        failure = self.store.failure
        own = [] if failure is None else [f"store: {failure}"]
        if self.ring is not None and self.ring.membership.leaving:
            own.append(f"ring: {self.ring.membership.problem or 'this broker leaves the ring'}: drain it, and stop it")
        elif self.ring is not None and not self.ring.is_member:
            own.append(f"ring: this broker has no cell yet: {self.ring.membership.problem}")
        if self.balance.leaving:
            own.append("stopping: clients are sent to other brokers")
        own += self.front.troubles()
        return own + [trouble for service in self.services for trouble in service.troubles()]


class Fronts(Service):
    """The addresses that clients connect to. Stopping says goodbye to them."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.listeners: list[tuple[str, Listener]] = []

    async def start(self) -> None:
        listen = self.parts.config.listen
        context = tls_for_clients(self.parts.config)
        for kind, texts in (("mqtt", listen.mqtt), ("mqtts", listen.mqtts), ("ws", listen.ws), ("wss", listen.wss)):
            for text in texts:
                where = address(text, f"listen.{kind}")
                secure, websocket = kind in ("mqtts", "wss"), kind in ("ws", "wss")
                listener = Listener(
                    self.parts.front, where.host, where.port, tls=context if secure else None, websocket=websocket
                )
                await _bound(listener.open(), f"listen.{kind}", where)
                self.listeners.append((kind, listener))
        found = [(kind, Address(listener.host, listener.port)) for kind, listener in self.listeners]
        advertise(self.parts.balance, self.parts.config, found)

    async def stop(self) -> None:
        for _, listener in self.listeners:
            await listener.close()
        front = self.parts.front
        front.end()
        waited_until = asyncio.get_running_loop().time() + GOODBYE_S
        while front.connections and asyncio.get_running_loop().time() < waited_until:
            await asyncio.sleep(0.01)

    def addresses(self) -> list[tuple[str, str]]:
        return [(kind, str(Address(listener.host, listener.port))) for kind, listener in self.listeners]


class PeerService(Service):
    """The other brokers: listens for them, dials them, and looks for them where that is asked for."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._listens = ""
        self._discovery: Discovery | None = None

    async def start(self) -> None:
        peers, links, dialler = self.parts.config.peers, self.parts.links, self.parts.dialler
        if self.parts.linked is None:
            return
        where: Address | None = None
        if peers.listen:
            asked = address(peers.listen, "peers.listen", PORT)
            port = await _bound(links.listen(asked.host, asked.port), "peers.listen", asked)
            where = Address(asked.host, port)
            self._listens = str(where)
            links.address = peers.advertise or (f":{port}" if where.host in WILDCARDS else str(where))
        dialler.start()
        for text in peers.connect:
            dialler.dial(text)
        if peers.mdns and where is not None:
            await self._discover(where)

    async def _discover(self, where: Address) -> None:
        """A network without multicast is no reason not to serve."""
        # Brokers that do not look for others this way start faster without what it needs.
        from godwit.net.peers.mdns import Discovery

        name, cluster = self.parts.identity.name, self.parts.config.peers.cluster
        self._discovery = Discovery(name, cluster, self.parts.dialler.learn)
        try:
            await self._discovery.start(where.host, where.port)
        except OSError as error:
            log.warning("peers.mdns: %s; brokers on this network are not found", error)

    async def stop(self) -> None:
        if self._discovery is not None:
            await self._discovery.stop()
        await self.parts.dialler.stop()
        await self.parts.links.close()

    def addresses(self) -> list[tuple[str, str]]:
        return [("peers", self._listens)] if self._listens else []


class UplinkService(Service):
    """Gateways of other sites: listens for them and dials them."""

    def __init__(self, uplinks: Uplinks) -> None:
        self.uplinks = uplinks

    async def start(self) -> None:
        listen = self.uplinks.config.sites.listen
        if listen:
            where = address(listen, "sites.listen", SITES_PORT)
            await _bound(self.uplinks.start(), "sites.listen", where)
        else:
            await self.uplinks.start()

    async def stop(self) -> None:
        await self.uplinks.stop()

    def addresses(self) -> list[tuple[str, str]]:
        return [("sites", self.uplinks.listens)] if self.uplinks.listens else []


def _uplinks(parts: Parts) -> Service | None:
    return UplinkService(parts.uplinks) if parts.uplinks is not None else None


BRIDGE = "/bridge-"
"""Begins the names of bridges' sessions. No client's begins so and has no other slash (`access.session_name`)."""


def is_bridge(session: str) -> bool:
    return session.startswith(BRIDGE) and session.count("/") == 1


T = TypeVar("T")

MakeService = Callable[[Parts], Service | None]
"""Makes a service, or none where the configuration does not ask for it."""


class Server:
    """`start` it, wait until it is `asked` to stop, and `stop` it.

    `extras` are started last and stopped first, but for those that must be there for all clients.
    """

    def __init__(
        self, config: Config, extras: tuple[MakeService, ...] = (), again: Callable[[], Config] | None = None
    ) -> None:
        self.config = config
        self.extras = extras
        self.again = again or (lambda: config)
        """Reads the configuration again."""
        self.parts: Parts | None = None
        self._store: SqliteStore | None = None
        self._asked = asyncio.Event()

    async def start(self) -> None:
        """Returns when clients can connect. Where it cannot be, nothing is left running and the error says why."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        self._store = SqliteStore(self.config.folder, self.config.sync)
        parts = self.parts = await build(self.config, self._store)
        parts.asks.stop, parts.asks.reload = self.ask_to_stop, self.reload
        # What the fabric numbers may be seen by others only once the disk knows that it may have been used.
        await self._store.flushed()
        makers: tuple[MakeService, ...] = (_ring_watch, PeerService, _radio, _uplinks, Fronts, _sensors, *self.extras)
        made = [service for make in makers if (service := make(parts)) is not None]
        for service in sorted(made, key=lambda one: not one.is_there_for_all):
            parts.services.append(service)
            await service.start()

    async def stop(self) -> None:
        """Clients are told, what was taken is written, and the directory is free when this returns."""
        services = self.parts.services if self.parts is not None else []
        if self.parts is not None and self.config.balance.drain_s and any(isinstance(one, Fronts) for one in services):
            await drain(self.parts.balance, self.parts.front, self.config.balance.drain_s)
        while services:
            service = services.pop()
            try:
                await service.stop()
            except Exception:
                log.exception("%s did not stop as it should", type(service).__name__)
            if isinstance(service, Fronts) and self._store is not None:
                await self._written(self._store)
        if self.parts is not None:
            self.parts.host.stop()
        if self._store is not None:
            await self._store.close()
            self._store = None

    async def _written(self, store: SqliteStore) -> None:
        """Before the links go: what others wait for may still be said."""
        try:
            async with asyncio.timeout(GOODBYE_S):
                await store.flushed()
        except Exception as error:
            log.error("stopping, not everything could be written: %s", error)

    def ask_to_stop(self) -> None:
        self._asked.set()

    async def asked(self) -> None:
        """Wait until somebody has asked to stop."""
        await self._asked.wait()

    def addresses(self) -> list[tuple[str, str]]:
        """What listens where: clients first."""
        services = self.parts.services if self.parts is not None else []
        found = [pair for service in services for pair in service.addresses()]
        return sorted(found, key=lambda pair: pair[0] in ("archive", "peers", "status", "http", "console"))

    def reload(self) -> str:
        """Read users, certificates and limits again; what is wrong changes nothing, and the answer says why."""
        if self.parts is None:
            return "not started"
        return "; ".join(filter(None, (self._reload_bounds(self.parts), self._reload_users(self.parts))))

    def _reload_bounds(self, parts: Parts) -> str:
        """Certificates, and `[limits]`, `[backlog]` and `[capacity]`; everything else is for the next start."""
        try:
            told = self.again()
            options, bounds, most = front_options(told), limits(told), capacity(told)
            tables = (self.config.tls, self.config.peers.tls)
            tls.read_again([(one.certificate, one.key) for one in tables if one is not None])
        except ConfigError as error:
            log.error("certificates and limits stay as they were: %s", error)
            return str(error)
        parts.front.options, parts.access.limits = options, bounds
        parts.broker.bound(most)
        log.info("certificates and limits are read again, and hold for clients that connect from now on")
        return ""

    def _reload_users(self, parts: Parts) -> str:
        try:
            parts.access.reload()
            parts.broker.review(parts.rights_of)
            _offer(parts.broker, parts.fabric, parts.access)
        except SecurityError as error:
            log.error("users and grants stay as they were: %s", error)
            return str(error)
        log.info("users and grants are read again, and hold for whoever is connected or away")
        return ""

    def troubles(self) -> list[str]:
        return self.parts.troubles() if self.parts is not None else ["not started"]


async def build(config: Config, store: SqliteStore) -> Parts:
    """Everything but the sockets that others connect to."""
    identity = await identify(store, config.name, made_up_name)
    options = LinkOptions(
        heartbeat_s=config.peers.heartbeat_s, idle_s=config.peers.idle_s, queue_b_max=config.peers.queue_bytes_max
    )
    links = Links(identity, club(config), options, encode=frames.encode, decode=frames.decode)
    uplinks = Uplinks(config, links_of(config, identity)) if config.sites.site else None
    host = AsyncHost(identity.name, links if uplinks is None else Border(links, uplinks.links), chronicle.write)
    store.run = host.run
    fabric = fabric_of(config, host, store)
    host.core = fabric
    parser = ParserLoader()

    def linked(peer: str) -> None:
        parser.begin()
        host.run(partial(fabric.linked, peer))

    links.on_linked = linked
    links.on_unlinked = lambda peer: host.run(partial(fabric.unlinked, peer))
    traced = bool(config.telemetry.endpoint) or (config.archive is not None and config.archive.traces)
    neighbors = Neighbors(identity.name, store, time.time, habits(config, identity.name), fabric.is_known)
    ring, woven = ring_of(fabric), _linked(fabric)
    broker = Broker(
        host,
        store,
        fabric,
        time.time,
        session_wait_s=config.handoff_wait_s,
        handoff=config.handoff,
        neighbors=neighbors,
        copies_bytes_max=config.copies.bytes_max,
        limits=limits(config),
        capacity=capacity(config),
        tracing=traced,
        boot=boot_of_machine(),
        directory=CareOf(host, ring, ring) if ring is not None else None,
    )
    broker.tell_bounds(_tell_bound)
    if not fabric.sources(ANYTHING):
        # Whoever has never heard of others states nothing by itself, and two such brokers would wait for each other.
        fabric.want(())
    broker.prepare_with(IndexLoader().prepared)
    remembered = Remembered(key_in(config.folder), store) if config.access.remember else None
    access = Access(config.access.users, limits(config), remembered)
    if woven is not None:
        woven.streams.sender.on_restored = _tell_restored
    if uplinks is not None and isinstance(fabric, Gateway):
        fabric.retained = broker.shelf
        uplinks.attach(fabric, host)
    _offer(broker, fabric, access)
    front = Front(broker, front_options(config), access.admit)
    # What others said, and what is on the disk now, may have made something to say to clients.
    links.on_read = store.after = front.flush
    if uplinks is not None:
        uplinks.links.on_read = front.flush
    balance = balance_of(config, host, broker, links)
    steer_with(balance, front)
    return Parts(
        config,
        identity,
        store,
        links,
        Dialler(links, store, is_known=fabric.is_known),
        host,
        fabric,
        broker,
        neighbors,
        balance,
        access,
        front,
        [],
        uplinks,
    )


def _offer(broker: Broker, fabric: object, access: Access) -> None:
    """What users may publish here is what the site offers to others."""
    offers = access.publishable()
    broker.offer(offers)
    if isinstance(fabric, Gateway):
        fabric.offer(offers)


def fabric_of(config: Config, host: AsyncHost, store: SqliteStore) -> AnyFabric:
    """Over these links, over a radio, or over both; with uplinks where this broker is a gateway."""
    inner, sites = _fabric_inside(config, host, store), config.sites
    if not sites.site or isinstance(inner, Streamless):
        return inner
    options = SiteOptions(site=sites.site, gateways=sites.gateways, takeover_s=sites.takeover_s)
    return Gateway(inner, store, options)


def _fabric_inside(
    config: Config, host: AsyncHost, store: SqliteStore
) -> TreeFabric | RingFabric | Bridge | Streamless:
    if Fabric.DHT in config.fabrics:
        first = config.ring.found or not (config.peers.connect or config.peers.mdns)
        return RingFabric(host, store, RingOptions(place=config.ring.point(), located=config.ring.located, first=first))
    if Fabric.ADHOC not in config.fabrics:
        return TreeFabric(host, store, TreeOptions(incarnation=int(time.time())))
    # Most brokers are in no air, and start faster without what it needs.
    from godwit.net.radio.node import in_the_air

    air = in_the_air(config, host.name, store)
    if Fabric.TREE not in config.fabrics:
        return Streamless(air)
    return Bridge(TreeFabric(host, store, TreeOptions(incarnation=int(time.time()))), air)


def _radio(parts: Parts) -> Service | None:
    if parts.air is None:
        return None
    from godwit.net.radio.node import RadioService

    return RadioService(parts.air)


def _ring_watch(parts: Parts) -> Service | None:
    if parts.ring is None:
        return None
    from godwit.net.ops.ring_watch import RingWatch

    return RingWatch(parts, parts.ring)


def _sensors(parts: Parts) -> Service | None:
    if not parts.config.sn.listen:
        return None
    # Most brokers have no sensors, and start faster without what they need.
    from godwit.net.sn.service import SnService

    return SnService(parts)


def check(config: Config) -> None:
    """What `load` cannot see without touching the machine: certificates, users, neighbors, and in `rehearsal` ports,
    names and folders. `ConfigError`, `SecurityError` or `ServeError`."""
    club(config)
    tls_for_clients(config)
    Access(config.access.users)
    if config.copies.neighbors is not None:
        try:
            files.read(config.copies.neighbors)
        except files.NeighborsError as error:
            raise ConfigError(f"copies.neighbors: {error}") from None
    near(config, "")
    for key, where in rehearsal.listening(config):
        try:
            rehearsal.listen(where)
        except OSError as error:
            raise ServeError(f"{key}: {where}: {reason_of(error, where)}") from None
    rehearsal.look_up(config)


def club(config: Config) -> Club:
    peers, secret = config.peers, config.secret()
    fabric, located = (Fabric.DHT, config.ring.located) if Fabric.DHT in config.fabrics else (Fabric.TREE, ())
    if peers.tls is None:
        return Club(cluster=peers.cluster, secret=secret, insecure=peers.insecure, fabric=str(fabric), located=located)
    clients = config.tls.client_authority if config.tls is not None else None
    open_to_clients = clients is not None and tls.shared_authority(clients, peers.tls.authority)
    if open_to_clients and not secret and not peers.tls.names:
        raise ConfigError(
            "peers.tls.authority signs the certificates of clients too (tls.client_authority), so that any client could"
            " join as a broker; give peers.secret_file, peers.tls.names, or an authority of the brokers' own"
        )
    serving, dialling = tls.for_peers(peers.tls)
    return Club(
        cluster=peers.cluster,
        secret=secret,
        serving=serving,
        dialling=dialling,
        problem_of=partial(tls.problem_of, peers.tls),
        fabric=str(fabric),
        located=located,
    )


def tls_for_clients(config: Config) -> ssl.SSLContext | None:
    return tls.for_clients(config.tls) if config.tls is not None else None


def front_options(config: Config) -> Options:
    limits = config.limits
    told = {name: getattr(limits, name) for name in limits.__struct_fields__}
    if Fabric.ADHOC in config.fabrics:
        # Clients of MQTT 5 are told, and others hear it when they try: the air carries no more.
        told["packet_bytes_max"] = min(limits.packet_bytes_max, config.adhoc.event_bytes_max)
    return Options(**told, origins=config.listen.origins, handoff_wait_s=config.handoff_wait_s)


def limits(config: Config) -> Limits:
    """Of clients for whom the users file says nothing."""
    backlog = config.backlog
    return Limits(
        queue_max=backlog.messages_max,
        queue_bytes_max=backlog.bytes_max,
        queue_memory_max=backlog.memory_bytes_max,
        queue_age_max_s=backlog.age_max_s,
    )


def capacity(config: Config) -> Capacity:
    table = config.capacity
    return Capacity(**{name: getattr(table, name) for name in table.__struct_fields__})


def habits(config: Config, name: str) -> GraphOptions:
    copies = config.copies
    return msgspec.structs.replace(
        HABITS,
        mass=copies.mass,
        degree_max=copies.neighbors_max,
        foresight=copies.foresight,
        closeness=near(config, name),
        edge_timeout_s=copies.edge_timeout_s,
        half_life_s=copies.half_life_s,
    )


def near(config: Config, name: str) -> dict[str, float]:
    """How near others are to the broker of this name, where it is said where they stand."""
    if config.copies.places is None:
        return {}
    try:
        sites = read_sites(config.copies.places)
    except files.NeighborsError as error:
        raise ConfigError(f"copies.places: {error}") from None
    if name and name not in sites:
        log.warning("copies.places: %s does not say where %s stands, so nobody is near it", config.copies.places, name)
    return closeness(name, sites, config.copies.near_m)


def _tell_restored(peer: str, numbers: int) -> None:
    log.warning(
        "%s has had more from this broker than its disk knows (%d numbers): the disk is a copy of an earlier one."
        " What this broker took since the copy was made, and had not sent, is lost; everything else goes on",
        peer,
        numbers,
    )


def _tell_bound(session: Session, reason: str) -> None:
    """Once for each session and reason: the counts tell how much it is."""
    limits = session.limits
    bound = {
        "queue": f"more than {limits.queue_max} messages or {limits.queue_bytes_max} bytes",
        "age": f"something for more than {limits.queue_age_max_s:g} s",
    }[reason]
    extra = {"client": session.client, "bound": reason}
    log.warning("for client %r waits %s; the oldest is dropped ([backlog])", session.client, bound, extra=extra)


def made_up_name() -> str:
    """Of the machine, with something by chance: there may be two brokers on one, and two machines of one name."""
    machine = "".join(c for c in socket.gethostname().partition(".")[0] if c.isprintable() and c != "/")
    return f"{machine or 'broker'}-{secrets.token_hex(3)}"


async def _bound(opening: Coroutine[Any, Any, T], key: str, where: Address) -> T:
    """Open something at an address; what may go wrong there is told in words."""
    try:
        return await opening
    except OSError as error:
        raise ServeError(f"{key}: {where}: {reason_of(error, where)}") from None


def reason_of(error: OSError, where: Address) -> str:
    """Why nothing can listen there, and what would be right."""
    match error.errno:
        case errno.EADDRINUSE:
            return "something else listens there already; name another port, or end it"
        case errno.EACCES:
            return f"this user may not listen at port {where.port}; name one above 1023"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; name one of its own, or 0.0.0.0 for all"
    return f"{error.strerror or error}; name an address of this machine"
