"""What a broker serves beside its clients: figures for operators, and an archive of what was published."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from godwit import __version__
from godwit.filters.filters import Filter
from godwit.net.address import Address
from godwit.net.config import STATUS_ANY, STATUS_DEFAULT, Archive, address
from godwit.net.neighbors.files import neighbor_row, path_row
from godwit.net.neighbors.importer import LearningService
from godwit.net.ops.report import (
    CLIENTS_SHOWN,
    FILTERS_SHOWN,
    ClientRow,
    HandoffReport,
    PeerRow,
    Report,
)
from godwit.net.server import MakeService, Parts, ServeError, Service, reason_of, tls_for_clients
from godwit.protocols.broker.fabric.base import ANYTHING
from godwit.protocols.broker.handoff.prediction import Totals
from godwit.protocols.broker.session.state import Session

if TYPE_CHECKING:
    from godwit.net.archive.server import ArchiveServer
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
        facts = Facts(counts=teller.counts, levels=teller.levels, troubles=parts.troubles, status=teller.status)
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

    def counts(self) -> Figures:
        parts = self.parts
        core, front, air = parts.broker.counts, parts.front.counts, parts.air
        streams = parts.tree.counts if parts.tree is not None else None
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
            "clients": {"let in": front.connected, "refused": front.refused, "malformed": front.malformed},
            "client_bytes": {"in": front.bytes_in, "out": front.bytes_out},
            "client_packets": {"in": front.packets_in, "out": front.packets_out},
            "streams": {} if streams is None else {name: getattr(streams, name) for name in streams.__struct_fields__},
            "link_messages": {"sent": parts.links.sent, "received": parts.links.received},
            "link_drops": dict(parts.links.dropped),
            "store": {"commits": parts.store.commits, "changes": parts.store.changes},
            "failures": dict(parts.host.failures),
            **(air.counts() if air is not None else {}),
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
            "brokers": len(parts.tree.brokers) if parts.tree is not None else 0,
            "unconfirmed": dict(parts.tree.unconfirmed) if parts.tree is not None else {},
            "store_pending": parts.store.pending,
            "healthy": int(not parts.troubles()),
            "uptime_seconds": time.monotonic() - self.started_s,
            **(parts.air.levels() if parts.air is not None else {}),
        }

    def status(self) -> Mapping[str, object]:
        parts, core = self.parts, self.parts.broker.counts
        shadows = (shadow for epochs in parts.broker.shadows.values() for shadow in epochs.values())
        sessions = [*parts.broker.sessions.values(), *shadows]
        stated = parts.stated
        sessions.sort(key=lambda session: (-len(session.queue.waiting) - len(session.queue.flying), session.client))
        report = Report(
            name=parts.identity.name,
            version=__version__,
            uptime_s=time.monotonic() - self.started_s,
            troubles=parts.troubles(),
            leader=parts.tree.leader if parts.tree is not None else "",
            hops=parts.tree.hops if parts.tree is not None else 0,
            air=parts.air.report() if parts.air is not None else None,
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
        )
        return {name: getattr(report, name) for name in report.__struct_fields__}

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
        fabric = self.parts.tree
        assert fabric is not None
        load = self.parts.balance.loads.get(name)
        return PeerRow(
            name=name,
            linked=name in self.parts.links.up,
            role="parent" if name == fabric.parent else "child" if name in fabric.children else "",
            filters=len(fabric.interests.get(name, ())),
            unconfirmed=fabric.unconfirmed.get(name, 0),
            clients=load.clients if load is not None else 0,
            events_per_s=load.events_per_s if load is not None else 0.0,
        )


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
        self._server: ArchiveServer | None = None

    async def start(self) -> None:
        # Arrow takes its time to load, and few brokers keep an writer.
        from godwit.net.archive import writer

        told = self.parts.config.archive
        assert told is not None
        options = writer.ArchiveOptions(file_bytes=told.file_bytes, file_s=told.file_s, batch_s=told.batch_s)
        try:
            if told.events:
                events = writer.events(told.folder, self.parts.identity.name, options)
                self._rolls.append(events)
                self.parts.broker.on_published = events.add
            if told.traces:
                traces = writer.traces(told.folder, options)
                self._rolls.append(traces)
                self.parts.host.sink = lambda time_s, node, record: traces.add((time_s, node, record))
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
        self.parts.broker.on_published = None
        self.parts.host.sink = None
        for roll in self._rolls:
            await asyncio.to_thread(roll.stop)

    def troubles(self) -> list[str]:
        return [f"archive: {roll.failure}" for roll in self._rolls if roll.failure is not None]


def status(parts: Parts) -> Service | None:
    return StatusService(parts) if parts.config.listen.status else None


def archive(parts: Parts) -> Service | None:
    return ArchiveService(parts) if parts.config.archive is not None else None


ALL: tuple[MakeService, ...] = (LearningService, archive, status)
