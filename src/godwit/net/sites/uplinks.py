"""The uplinks of a gateway over TCP: who is dialled and let in, how fast it is spoken to, and what that costs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from math import inf
from random import Random

import msgspec

from godwit.net import tls
from godwit.net.address import Address
from godwit.net.config import SITES_PORT, Config, UplinkTable, address
from godwit.net.host import AsyncHost
from godwit.net.identity import Identity
from godwit.net.ops.report import UplinkRow
from godwit.net.peers.handshake import SpareError
from godwit.net.peers.links import Club, Link, LinkOptions, Links
from godwit.net.peers.pace import Pace, Traffic
from godwit.protocols.broker.fabric.border import inbound, known_as, outbound, site_of
from godwit.protocols.broker.fabric.gateway import Gateway
from godwit.protocols.broker.fabric.uplink import Uplink
from godwit.protocols.broker.streams import frames
from godwit.protocols.host import Message, NodeId, RemoteError

log = logging.getLogger("godwit.sites")

CLUSTER = "godwit sites"
AGAIN_S, AGAIN_MAX_S = 0.5, 30.0
PATIENCE_S = 20.0
"""How long a greeting may take over a slow uplink."""


def links_of(config: Config, identity: Identity) -> Links:
    """To gateways of other sites; the peers' own club has no part in it."""
    sites = config.sites
    serving, dialling = tls.for_peers(sites.tls) if sites.tls is not None else (None, None)
    packs = ("zstd",) if any(one.compress for one in sites.uplinks.values()) else ()
    options = LinkOptions(
        heartbeat_s=sites.heartbeat_s, idle_s=sites.idle_s, connect_s=PATIENCE_S, greeting_s=PATIENCE_S, packs=packs
    )
    return Links(
        Identity(known_as(sites.site, identity.name), identity.disk, identity.incarnation),
        Club(cluster=CLUSTER, secret=sites.key(), serving=serving, dialling=dialling),
        options,
        encode=frames.encode,
        decode=frames.decode,
    )


class Border:
    """A `Carrier` to brokers of the site and to gateways of others, each over its own links."""

    def __init__(self, inside: Links, outside: Links) -> None:
        self.inside = inside
        self.outside = outside

    def send(self, to: NodeId, message: Message) -> None:
        if "/" in to:
            self.outside.send(to, outbound(message, to))
        else:
            self.inside.send(to, message)

    def broadcast(self, message: Message) -> None:
        self.inside.broadcast(message)

    def drop(self, peer: NodeId, reason: str) -> None:
        (self.outside if "/" in peer else self.inside).drop(peer, reason)


class Uplinks:
    """Keeps them: call `attach` before anything can happen, then `start` and `stop`."""

    def __init__(self, config: Config, links: Links) -> None:
        self.config = config
        self.links = links
        self.gateway: Gateway | None = None
        self.listens = ""
        self._paces: dict[str, Pace] = {
            site: Pace(one.bytes_per_s) for site, one in config.sites.uplinks.items() if one.bytes_per_s != inf
        }
        self._tasks: list[asyncio.Task[None]] = []
        self._dice = Random()

    def attach(self, gateway: Gateway, host: AsyncHost) -> None:
        links, self.gateway = self.links, gateway
        links.on_message = lambda peer, message: host.deliver(peer, inbound(message, peer))
        links.on_linked = lambda peer: host.run(partial(self._linked, gateway, peer))
        links.on_unlinked = lambda peer: host.run(partial(gateway.unreached, peer))
        links.refusal = self._refusal
        links.pace_of = lambda peer: self._paces.get(site_of(peer))
        gateway.on_refused = self._tell_cycle
        for peer in list(gateway.uplinks):
            if site_of(peer) not in self.config.sites.uplinks:
                log.warning("uplink to %s is not configured any more; what was kept for it is dropped", peer)
                gateway.forget(peer)
            else:
                self._bound(gateway, peer)

    def _linked(self, gateway: Gateway, peer: NodeId) -> None:
        gateway.reached(peer)
        self._bound(gateway, peer)

    def _bound(self, gateway: Gateway, peer: NodeId) -> None:
        table = self._table(peer)
        lane = gateway.base.streams.sender.outbox.lane(peer)
        lane.bytes_max, lane.age_max_s = table.queue_bytes_max, table.queue_age_max_s

    def _table(self, peer: NodeId) -> UplinkTable:
        return self.config.sites.uplinks[site_of(peer)]

    def _refusal(self, link: Link) -> str:
        here, there = self.config.sites.site, site_of(link.peer.name)
        if there == here:
            return f"both are of site {here!r}; gateways of one site are joined by [peers]"
        if there not in self.config.sites.uplinks:
            return f"site {here!r} has no uplink to {there!r}; [sites.uplinks.{there}] there would make one"
        return ""

    @staticmethod
    def _tell_cycle(site: str, cycle: tuple[str, ...]) -> None:
        if cycle:
            log.error("the uplink to %s carries nothing: it closes a cycle, %s", site, " - ".join(cycle))
        else:
            log.info("the uplink to %s closes no cycle any more, and carries events", site)

    async def start(self, bound: Callable[[Address], object] | None = None) -> None:
        sites = self.config.sites
        if sites.listen:
            where = address(sites.listen, "sites.listen", SITES_PORT)
            port = await self.links.listen(where.host, where.port)
            self.listens = str(Address(where.host, port))
        for site, uplink in sites.uplinks.items():
            for text in uplink.connect:
                where = address(text, f"sites.uplinks.{site}.connect", SITES_PORT)
                self._tasks.append(asyncio.create_task(self._keep(where), name=f"uplink {site} {where}"))

    async def _keep(self, where: Address) -> None:
        """A link to whoever is there, however long it is away."""
        failures = 0
        while True:
            try:
                link = await self.links.connect(where.host, where.port, str(where))
                await link.admitted
                failures = 0
                await link.closed.wait()
            except SpareError:
                failures += 1
            except (OSError, RemoteError, UnicodeError) as error:
                failures += 1
                self.links.tell(str(where), str(error))
            longest = min(AGAIN_S * 2.0 ** min(failures, 16), AGAIN_MAX_S)
            await asyncio.sleep(self._dice.uniform(longest / 2, longest))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.links.close()

    # What it costs.

    def counts(self) -> dict[str, dict[str, int]]:
        """What only grows, for each uplink."""
        found: dict[str, dict[str, int]] = {}
        for peer, uplink in self._known().items():
            traffic = self._traffic(peer)
            for what in traffic.__struct_fields__:
                found.setdefault(f"uplink_{what}_bytes", {})[peer] = getattr(traffic, what)
            for what in uplink.counts.__struct_fields__:
                found.setdefault(f"uplink_{what}", {})[peer] = getattr(uplink.counts, what)
            found.setdefault("uplink_dropped", {})[peer] = self._dropped(peer)
        return found

    def levels(self) -> dict[str, dict[str, int]]:
        return {
            "uplink_up": {peer: int(one.up) for peer, one in self._known().items()},
            "uplink_waiting": {peer: self._waiting(peer)[0] for peer in self._known()},
            "uplink_waiting_bytes": {peer: self._waiting(peer)[1] for peer in self._known()},
        }

    def rows(self) -> list[UplinkRow]:
        return [self._row(peer, uplink) for peer, uplink in sorted(self._known().items())]

    def _row(self, peer: NodeId, uplink: Uplink) -> UplinkRow:
        traffic, (waiting, waiting_bytes) = self._traffic(peer), self._waiting(peer)
        return UplinkRow(
            peer=peer,
            up=uplink.up,
            acts=uplink.acts,
            cycle=" - ".join(uplink.cycle) if uplink.is_refused else "",
            wanted=len(uplink.heard.wanted),
            stated=len(uplink.told.wanted),
            waiting=waiting,
            waiting_bytes=waiting_bytes,
            dropped=self._dropped(peer),
            events_out=uplink.counts.events_out,
            events_in=uplink.counts.events_in,
            **msgspec.structs.asdict(traffic),
        )

    def _known(self) -> dict[NodeId, Uplink]:
        return self.gateway.uplinks if self.gateway is not None else {}

    def _traffic(self, peer: NodeId) -> Traffic:
        return self.links.traffic.get(peer, Traffic())

    def _waiting(self, peer: NodeId) -> tuple[int, int]:
        assert self.gateway is not None
        lane = self.gateway.base.streams.sender.outbox.lanes.get(peer)
        return (len(lane.parcels), lane.bytes) if lane is not None else (0, 0)

    def _dropped(self, peer: NodeId) -> int:
        assert self.gateway is not None
        lane = self.gateway.base.streams.sender.outbox.lanes.get(peer)
        return lane.dropped if lane is not None else 0
