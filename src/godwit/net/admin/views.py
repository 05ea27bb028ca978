"""What one broker tells operators of itself: reads its parts when somebody asks; nothing is counted for this."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from godwit import __version__
from godwit.net.access import Role
from godwit.net.admin import certificates
from godwit.net.admin.moves import MoveLog
from godwit.net.admin.notices import Notices
from godwit.net.admin.rows import (
    ArchiveFile,
    ArchiveRow,
    BrokerRow,
    Certificate,
    Disk,
    FlowRow,
    Follower,
    Handoffs,
    LinkRow,
    Problems,
    UserRow,
    Users,
)
from godwit.net.neighbors import files
from godwit.net.ops.services import ArchiveService, Teller
from godwit.net.server import Parts

if TYPE_CHECKING:
    from godwit.net.access import AnonymousEntry, Granted, TokensEntry, UserEntry

MOVES_SHOWN = 200
EXPIRES_SOON_S = 30 * 24 * 3600.0
SILENT_SHOWN_S = 3.0
ARCHIVE_FILES_SHOWN = 50


class Views:
    """Of one broker."""

    def __init__(self, parts: Parts, notices: Notices, moves: MoveLog) -> None:
        self.parts = parts
        self.notices = notices
        self.moves = moves
        self._teller = Teller(parts)
        self._place = _place_of(parts)

    def broker(self, traced_until: float, draining: bool) -> BrokerRow:
        parts = self.parts
        status = self._teller.report()
        return BrokerRow(
            name=status.name,
            version=__version__,
            starts=parts.identity.incarnation,
            now=parts.broker.clock(),
            uptime_s=status.uptime_s,
            troubles=status.troubles,
            cordoned=parts.balance.cordoned or parts.balance.leaving,
            draining=draining,
            leader=status.leader,
            hops=status.hops,
            fabric=[str(one) for one in parts.config.fabrics],
            place=self._place or (list(reversed(status.ring.place)) if status.ring is not None else None),
            ring=status.ring,
            peers=status.peers,
            links=self.links(),
            addresses=[[kind, where] for one in parts.services for kind, where in one.addresses()],
            websocket=status.websocket,
            disk=self._disk(),
            certificates=list(self.certificates()),
            levels={name: _plain(figure) for name, figure in self._teller.levels().items()},
            counts=status.counts,
            handoff=status.handoff,
            neighbors=status.neighbors,
            traced_until=traced_until,
            users_file=str(parts.config.access.users or ""),
        )

    def _disk(self) -> Disk:
        folder = self.parts.config.folder
        usage = shutil.disk_usage(folder)
        return Disk(
            folder=str(folder),
            used_bytes=_size_of(folder),
            free_bytes=usage.free,
            total_bytes=usage.total,
            pending=self.parts.store.pending,
        )

    def links(self) -> list[LinkRow]:
        links = self.parts.links
        if not links.up:
            return []
        now_s = links.loop.time()
        return [
            LinkRow(peer=name, address=link.peer_address, silent_s=max(0.0, now_s - link.heard_s))
            for name, link in sorted(links.up.items())
        ]

    def certificates(self) -> Iterator[Certificate]:
        """Those that can be read; one that cannot would not have let the broker start."""
        config = self.parts.config
        named: list[tuple[str, Path | None]] = []
        if config.tls is not None:
            named += [
                ("tls.certificate", config.tls.certificate),
                ("tls.client_authority", config.tls.client_authority),
            ]
        if config.peers.tls is not None:
            named += [
                ("peers.tls.certificate", config.peers.tls.certificate),
                ("peers.tls.authority", config.peers.tls.authority),
            ]
        for key, path in named:
            if path is not None:
                try:
                    yield Certificate(key=key, path=str(path), expires=certificates.expiry_of(path))
                except (OSError, ValueError):
                    continue

    def problems(self, since: int) -> Problems:
        parts, counts, now = self.parts, self._teller.counts(), self.parts.broker.clock()
        known = parts.linked.brokers if parts.linked is not None else set()
        missing = sorted(name for name in self._gone() if name not in known)
        refused, dropped = counts["refused"], counts["dropped"]
        clients = counts["clients"]
        assert isinstance(refused, dict)
        assert isinstance(dropped, dict)
        assert isinstance(clients, dict)
        return Problems(
            serial=self.notices.serial,
            notices=self.notices.since(since),
            refused={**refused, "clients": clients["refused"], "malformed": clients["malformed"]},
            dropped=dict(dropped),
            taken_over=parts.broker.counts.taken_over,
            links=[link for link in self.links() if link.silent_s > SILENT_SHOWN_S],
            missing=missing,
            certificates=[one for one in self.certificates() if one.expires - now < EXPIRES_SOON_S],
            silence_s=parts.config.peers.idle_s,
        )

    def _gone(self) -> set[str]:
        """Brokers for which something is kept and that no link leads to."""
        linked = self.parts.linked
        return {name for name, count in linked.unconfirmed.items() if count} if linked is not None else set()

    def handoffs(self) -> Handoffs:
        parts = self.parts
        return Handoffs(
            report=self._teller.report().handoff,
            flows=[
                FlowRow(to=one.peer, uses=one.uses, weight=one.weight, copied=one.copied_share)
                for one in parts.neighbors.known()
            ],
            moves=self.moves.last(MOVES_SHOWN),
            seconds=self.moves.seconds(),
            unfinished={name: count for name, count in parts.broker.unfinished.items() if count},
        )

    def users(self) -> Users:
        access = self.parts.access
        entries = access.entries()
        owned: dict[str, int] = {}
        for client in self.parts.broker.sessions:
            user = client.partition("/")[0] if "/" in client else ""
            owned[user] = owned.get(user, 0) + 1
        rows = [_anonymous(entries.anonymous, owned.get("", 0))]
        rows += [_user(name, entry, owned.get(name, 0)) for name, entry in sorted(entries.users.items())]
        for table, signed in sorted(entries.tokens.items()):
            mine = sum(count for user, count in owned.items() if user.startswith(f"{table}:"))
            rows.append(_signed(table, signed, mine))
        return Users(file=str(access.path or ""), users=rows)

    def archive(self) -> ArchiveRow | None:
        told = self.parts.config.archive
        service = next((one for one in self.parts.services if isinstance(one, ArchiveService)), None)
        if told is None or service is None:
            return None
        found = [
            ArchiveFile(name=name, kind=kind, bytes=size, rows=rows)
            for kind in ("events", "traces")
            for name, size, rows in service.files(kind)
        ]
        return ArchiveRow(
            folder=str(told.folder),
            listens=next((where for _, where in service.addresses()), ""),
            bytes=sum(one.bytes for one in found),
            rows=sum(one.rows for one in found),
            files=found[-ARCHIVE_FILES_SHOWN:],
            followers=[
                Follower(
                    user=one.user,
                    address=one.address,
                    kind=one.kind,
                    file=one.file,
                    row=one.row,
                    behind=max(0, sum(f.rows for f in found if f.kind == one.kind and f.name >= one.file) - one.row),
                    seen=one.seen,
                )
                for one in service.followers()
            ],
            failure="; ".join(service.troubles()),
        )


def _plain(figure: object) -> float | dict[str, float]:
    return dict(figure) if isinstance(figure, dict) else figure  # type: ignore[return-value]


def _size_of(folder: Path) -> int:
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_size
        except OSError:
            continue  # gone meanwhile
    return total


def _place_of(parts: Parts) -> list[float] | None:
    if parts.config.copies.places is None:
        return None
    try:
        site = files.read_sites(parts.config.copies.places).get(parts.identity.name)
    except files.NeighborsError:
        return None
    return [site.lat, site.lon] if site is not None else None


def _listed(granted: Granted) -> list[str] | None:
    return granted if isinstance(granted, list) else None if granted else []


def _anonymous(entry: AnonymousEntry, sessions: int) -> UserRow:
    return UserRow(
        name="",
        role=str(entry.role),
        by=f"anybody from {entry.origin}",
        publish=_listed(entry.publish),
        subscribe=_listed(entry.subscribe),
        clients=None,
        sessions=sessions,
    )


def _signed(table: str, entry: TokensEntry, sessions: int) -> UserRow:
    return UserRow(
        name=f"{table}:{{user}}",
        role=str(Role.NONE),
        by=f"token for {entry.audience}; {len(entry.revoked)} revoked",
        publish=_listed(entry.publish),
        subscribe=_listed(entry.subscribe),
        clients=entry.clients,
        sessions=sessions,
    )


def _user(name: str, entry: UserEntry, sessions: int) -> UserRow:
    return UserRow(
        name=name,
        role=str(entry.role or Role.NONE),
        by=f"certificate {entry.certificate}" if entry.certificate else "password",
        publish=_listed(entry.publish),
        subscribe=_listed(entry.subscribe),
        clients=entry.clients,
        sessions=sessions,
    )
