"""What a broker serves beside its clients: figures for operators, and an archive of what was published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from godwit import __version__
from godwit.filters.filters import Filter
from godwit.net.address import Address
from godwit.net.config import STATUS_ANY, STATUS_DEFAULT, Archive, address
from godwit.net.host import Sink
from godwit.net.neighbors.files import neighbor_row, path_row
from godwit.net.neighbors.importer import LearningService
from godwit.net.ops.histogram import Histogram
from godwit.net.ops.report import (
    CLIENTS_SHOWN,
    FILTERS_SHOWN,
    CellRow,
    ClientRow,
    HandoffReport,
    PeerRow,
    Report,
    RingReport,
)
from godwit.net.ops.ring_watch import RingWatch
from godwit.net.ops.sys_topics import SysTopics
from godwit.net.server import MakeService, Parts, ServeError, Service, reason_of, tls_for_clients
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.fabric.ring.fabric import RingFabric
from godwit.protocols.broker.handoff.prediction import Totals
from godwit.protocols.broker.session.state import Session
from godwit.protocols.gathering.space import Box

if TYPE_CHECKING:
    from godwit.net.archive.log import FolderArchive
    from godwit.net.archive.past import PastReader
    from godwit.net.archive.server import ArchiveServer, Following
    from godwit.net.archive.writer import Roll
    from godwit.net.ops.status import Figures

QOS = ("qos 0", "qos 1", "qos 2")


class StatusService(Service):
    """`/metrics`, `/health` and `/status`."""

    def __init__(self, parts: Parts) -> None:
        # What makes metrics takes its time to load, and not every broker is asked for them.
        from godwit.net.ops.status import Facts, StatusServer

        told = parts.config.listen.status
        self._any = told == STATUS_ANY
        self.where = address(STATUS_DEFAULT if self._any else told, "listen.status")
        teller = Teller(parts)
        teller.time_matches()
        facts = Facts(
            counts=teller.counts,
            levels=teller.levels,
            timings=teller.timings,
            troubles=parts.troubles,
            status=teller.status,
        )
        self._server = StatusServer(facts, self.where.host, self.where.port)

    async def start(self) -> None:
        try:
            await self._server.start()
        except OSError as error:
            if not self._any:
                raise ServeError(f"listen.status: {self.where}: {reason_of(error, self.where)}") from None
            # Another broker of this machine has the usual port, and nobody has asked for it.
            self._server.port = 0
            await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()

    def addresses(self) -> list[tuple[str, str]]:
        return [("status", f"http://{self.where.host}:{self._server.port}")]


class Teller:
    """Reads the broker's figures when somebody asks; nothing is counted for this."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.started_s = time.monotonic()
        self._matches: Histogram | None = None

    def counts(self) -> Figures:
        parts = self.parts
        core, front, air = parts.broker.counts, parts.front.counts, parts.air
        streams = parts.linked.counts if parts.linked is not None else None
        return {
            "published": dict(zip(QOS, core.published, strict=True)),
            "delivered": dict(zip(QOS, core.delivered, strict=True)),
            "dropped": _sums(core.dropped, front.dropped),
            "refused": dict(core.refused),
            "forwarded": core.forwarded,
            "taken": core.taken,
            "moved": {"in": core.moved_in, "out": core.moved_out},
            "copies": {"made": core.copies_made, "used": core.copies_used, "refused": core.copies_refused},
            "handoffs": _handoffs(parts.neighbors.totals),
            "handoffs_missed": core.handoffs_missed,
            "late_duplicates": core.late_duplicates,
            "taken_over": core.taken_over,
            "redirected": parts.balance.redirected,
            "clients": {
                "let in": front.connected,
                "refused": front.refused,
                "malformed": front.malformed,
                "no TLS": front.handshakes_failed,
            },
            "client_bytes": {"in": front.bytes_in, "out": front.bytes_out},
            "client_packets": {"in": front.packets_in, "out": front.packets_out},
            "streams": {} if streams is None else {name: getattr(streams, name) for name in streams.__struct_fields__},
            "link_messages": {"sent": parts.links.sent, "received": parts.links.received},
            "link_drops": dict(parts.links.dropped),
            "store": {"commits": parts.store.commits, "changes": parts.store.changes},
            "failures": dict(parts.host.failures),
            **(air.counts() if air is not None else {}),
            **(parts.uplinks.counts() if parts.uplinks is not None else {}),
        }

    def levels(self) -> Figures:
        parts, core = self.parts, self.parts.broker.counts
        accuracy = parts.neighbors.accuracy()
        return {
            "sessions": core.sessions,
            "connected": core.connected,
            "subscriptions": core.subscriptions,
            "waiting": core.waiting,
            "shadows": core.shadows,
            "copies_held": core.copies,
            "copies_bytes": parts.broker.copies_bytes,
            "neighbors": parts.neighbors.shares(),
            "handoff_hit_rate": accuracy.hit_rate,
            "neighbors_false_negatives": accuracy.false_negatives,
            "neighbors_false_positives": accuracy.false_positives,
            "retained": parts.broker.retained_count,
            "connections": parts.front.counts.connections,
            "links": len(parts.links.up),
            "brokers": len(parts.linked.brokers) if parts.linked is not None else 0,
            "unconfirmed": dict(parts.linked.unconfirmed) if parts.linked is not None else {},
            "store_pending": parts.store.pending,
            "healthy": int(not parts.troubles()),
            "uptime_seconds": time.monotonic() - self.started_s,
            **(parts.air.levels() if parts.air is not None else {}),
            **(parts.uplinks.levels() if parts.uplinks is not None else {}),
            **(_ring_levels(parts.ring) if parts.ring is not None else {}),
        }

    def timings(self) -> Mapping[str, Histogram]:
        own = self.parts.front.timings
        took = {"delivery": own.delivery, "handoff": own.handoff, "commit": self.parts.store.took}
        return took if self._matches is None else {**took, "match": self._matches}

    def time_matches(self) -> None:
        """Measured from now on: it costs a little, and nobody else asks for it."""
        self._matches = Histogram()
        self.parts.broker.time_matches(time.perf_counter, self._matches.add)

    def status(self) -> Mapping[str, object]:
        report = self.report()
        return {name: getattr(report, name) for name in report.__struct_fields__}

    def report(self) -> Report:
        parts, core = self.parts, self.parts.broker.counts
        shadows = (shadow for epochs in parts.broker.shadows.values() for shadow in epochs.values())
        sessions = [*parts.broker.sessions.values(), *shadows]
        stated = parts.stated
        sessions.sort(key=lambda session: (-len(session.queue.waiting) - len(session.queue.flying), session.client))
        return Report(
            name=parts.identity.name,
            version=__version__,
            uptime_s=time.monotonic() - self.started_s,
            troubles=parts.troubles(),
            leader=parts.tree.leader if parts.tree is not None else "",
            hops=parts.tree.hops if parts.tree is not None else 0,
            air=parts.air.report() if parts.air is not None else None,
            site=parts.config.sites.site,
            uplinks=parts.uplinks.rows() if parts.uplinks is not None else [],
            bridges=[row for service in parts.services for row in service.bridges()],
            ring=_ring(parts.ring, _rivals(parts)) if parts.ring is not None else None,
            peers=[self._peer(name) for name in sorted(parts.fabric.sources(ANYTHING) | parts.links.up.keys())],
            sessions=core.sessions,
            connected=core.connected,
            subscriptions=core.subscriptions,
            handoff=self._handoff(),
            neighbors=[neighbor_row(one) for one in parts.neighbors.known()],
            paths=[path_row(one) for one in parts.neighbors.foreseen()],
            clients=[_client(session) for session in sessions[:CLIENTS_SHOWN]],
            interest=[_readable(one) for one in stated[:FILTERS_SHOWN]],
            interest_size=len(stated),
            counts={name: _plain(figure) for name, figure in self.counts().items()},
            http=parts.balance.address_http,
            websocket=self.websocket(),
        )

    def websocket(self) -> str:
        """Where web pages speak MQTT, as a URL; without a host where that is whichever the page knows."""
        told = self.parts.balance.address_wss or self.parts.balance.address_ws
        if told:
            return told
        found = [pair for service in self.parts.services for pair in service.addresses() if pair[0] in ("ws", "wss")]
        if not found:
            return ""
        kind, where = found[0]
        host, _, port = where.rpartition(":")
        return f"{kind}://{'' if host in ('0.0.0.0', '[::]') else host}:{port}/mqtt"

    def _handoff(self) -> HandoffReport:
        core, accuracy = self.parts.broker.counts, self.parts.neighbors.accuracy()
        return HandoffReport(
            scheme=self.parts.config.handoff,
            handoffs=accuracy.handoffs,
            hit_rate=accuracy.hit_rate,
            copies_each=accuracy.copies,
            false_negatives=accuracy.false_negatives,
            false_positives=accuracy.false_positives,
            copies_held=core.copies,
            copies_bytes=self.parts.broker.copies_bytes,
            copies_bytes_max=self.parts.config.copies.bytes_max,
            copies_made=core.copies_made,
            copies_used=core.copies_used,
            copies_refused=core.copies_refused,
        )

    def _peer(self, name: str) -> PeerRow:
        fabric, tree = self.parts.linked, self.parts.tree
        assert fabric is not None
        load = self.parts.balance.loads.get(name)
        return PeerRow(
            name=name,
            linked=name in self.parts.links.up,
            role="" if tree is None else "parent" if name == tree.parent else "child" if name in tree.children else "",
            filters=len(fabric.interests.get(name, ())),
            unconfirmed=fabric.unconfirmed.get(name, 0),
            clients=load.clients if load is not None else 0,
            events_per_s=load.events_per_s if load is not None else 0.0,
            http=load.address_http if load is not None else "",
        )


def _rivals(parts: Parts) -> str:
    watches = (one for one in parts.services if isinstance(one, RingWatch))
    return "; ".join(problem for watch in watches for problem in watch.problems())


def _ring(ring: RingFabric, rivals: str) -> RingReport:
    """The part of the globe that a broker owns, and what it keeps for others."""
    return RingReport(
        place=ring.options.place,
        cells=[CellRow(prefix=one.prefix, term=one.term, box=_bounded(one.cell.box())) for one in ring.regions],
        owners={one.prefix: one.owner for one in ring.atlas.regions.values()},
        book=sum(map(len, ring.interests.values())),
        book_brokers=len(ring.interests),
        homes=ring.homes_kept,
        custody=len(ring.routes.custody),
        holders=list(ring.replicas.holders),
        keeps=sorted(ring.standins.held),
        problem="; ".join(filter(None, (ring.membership.problem, rivals))),
    )


def _bounded(box: Box) -> list[list[float]]:
    """Cells at the edge of the globe have none of their own, which JSON cannot say."""
    return [[max(low, -limit), min(high, limit)] for (low, high), limit in zip(box, (180.0, 90.0), strict=True)]


def _ring_levels(ring: RingFabric) -> Figures:
    return {
        "ring_cells": len(ring.regions),
        "ring_cells_known": len(ring.atlas.regions),
        "ring_book": sum(map(len, ring.interests.values())),
        "ring_homes": ring.homes_kept,
        "ring_custody": len(ring.routes.custody),
        "ring_holders": len(ring.replicas.holders),
        "ring_replicas": len(ring.standins.held),
    }


def _readable(wanted: Filter) -> str:
    from godwit.filters.text import to_text  # takes a while to load, and few ask

    return to_text(wanted)


def _client(session: Session) -> ClientRow:
    return ClientRow(
        client=session.client,
        connected=session.outlet is not None,
        subscriptions=len(session.subscriptions),
        waiting=len(session.queue.waiting),
        under_way=len(session.queue.flying),
        dropped=sum(session.queue.dropped.values()),
        moved_to=session.standing.moved_to or "",
    )


def _handoffs(totals: Totals) -> dict[str, int]:
    return {"hit": totals.hits, "missed": totals.misses, "copies unused": totals.unused}


def _sums(*figures: Mapping[str, int]) -> dict[str, int]:
    return {name: sum(one.get(name, 0) for one in figures) for name in {name for one in figures for name in one}}


def _plain(figure: float | Mapping[str, float]) -> float | dict[str, float]:
    return dict(figure) if isinstance(figure, Mapping) else figure


class ArchiveService(Service):
    """Keeps what clients of this broker publish, and what is traced, as Parquet."""

    is_there_for_all = True

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._rolls: list[Roll] = []
        self._folders: dict[str, FolderArchive] = {}
        self._server: ArchiveServer | None = None
        self._traced: Sink | None = None
        self._past: PastReader | None = None

    async def start(self) -> None:
        told = self.parts.config.archive
        assert told is not None
        if find_spec("pyarrow") is None:
            raise ServeError("archive.folder: an archive needs pyarrow: pip install 'godwit[arrow]'")
        # Arrow takes its time to load, and few brokers keep an archive.
        from godwit.net.archive import past, writer

        options = writer.ArchiveOptions(file_bytes=told.file_bytes, file_s=told.file_s, batch_s=told.batch_s)
        try:
            if told.events:
                events = writer.events(told.folder, self.parts.identity.name, options)
                self._rolls.append(events)
                self.parts.broker.on_published = events.add
                self._past = past.PastReader(told.folder, events, self.parts.broker.clock)
                self._past.start()
                self.parts.broker.past = self._past
                self.parts.broker.pace_replays(told.replay_per_s)
            if told.traces:
                traces = writer.traces(told.folder, options)
                self._rolls.append(traces)
                self._traced = lambda time_s, node, record: traces.add((time_s, node, record))
                self.parts.host.sinks.append(self._traced)
        except OSError as error:
            raise ServeError(f"archive.folder: {told.folder}: {error.strerror}; name one to write to") from None
        if told.listen:
            await self._serve(told)

    async def _serve(self, told: Archive) -> None:
        """To readers elsewhere, over TLS where clients are served so."""
        from godwit.net.archive.server import ArchiveServer

        where = address(told.listen, "archive.listen")
        self._server = ArchiveServer(
            told.folder, self.parts.access, where.host, where.port, tls=tls_for_clients(self.parts.config)
        )
        try:
            await self._server.start()
        except OSError as error:
            raise ServeError(f"archive.listen: {where}: {reason_of(error, where)}") from None

    def addresses(self) -> list[tuple[str, str]]:
        if self._server is None:
            return []
        scheme = "godwit" if self.parts.config.tls is None else "godwits"
        return [("archive", f"{scheme}://{Address(self._server.host, self._server.port)}")]

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
        self.parts.broker.on_published = self.parts.broker.past = None
        if self._past is not None:
            await self._past.stop()
        if self._traced is not None:
            self.parts.host.sinks.remove(self._traced)
            self._traced = None
        for roll in self._rolls:
            await asyncio.to_thread(roll.stop)

    def files(self, kind: str) -> list[tuple[str, int, int]]:
        """Name, bytes and rows of each file; it takes a while: let a thread do it."""
        from godwit.net.archive.log import FolderArchive

        assert self.parts.config.archive is not None
        folder = self._folders.setdefault(kind, FolderArchive(self.parts.config.archive.folder, kind))
        return [(file.name, folder.bytes_of(file.name), file.rows) for file in folder.files()]

    def followers(self) -> list[Following]:
        """Who reads along, and how far it has come."""
        return self._server.followers() if self._server is not None else []

    def troubles(self) -> list[str]:
        return [f"archive: {roll.failure}" for roll in self._rolls if roll.failure is not None]


def bridges(parts: Parts) -> Service | None:
    """MQTT brokers of others, where there are some."""
    if not parts.config.sites.bridges:
        return None
    from godwit.net.sites.bridge import BridgeService

    return BridgeService(parts)


def status(parts: Parts) -> Service | None:
    return StatusService(parts) if parts.config.listen.status else None


def archive(parts: Parts) -> Service | None:
    return ArchiveService(parts) if parts.config.archive is not None else None


def telemetry(parts: Parts) -> Service | None:
    if not parts.config.telemetry.endpoint:
        return None
    if find_spec("opentelemetry.sdk") is None:
        raise ServeError("telemetry.endpoint: traces need OpenTelemetry: pip install 'godwit[otel]'")
    from godwit.net.ops.spans import SpanService

    return SpanService(parts)


def portal(parts: Parts) -> Service | None:
    if not parts.config.listen.http:
        return None
    from godwit.net.admin.portal import PortalService  # it tells what this module does, and more

    return PortalService(parts)


ALL: tuple[MakeService, ...] = (LearningService, archive, telemetry, status, portal, bridges, SysTopics)
