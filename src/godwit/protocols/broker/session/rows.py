"""Sessions on the disk: what is written of them, and how they are read back.

A session that ends with its connection has no rows. Of any other, a waiting delivery is one row, with the publication
in it where nobody else waits for it, else with the number of a body that all of them share. A copy that becomes a
session while its client waits has all its deliveries in one row, until the first of them is done with. So have those
at QoS 1 that came together, until all of them are: beside it is a row that says which are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from godwit.protocols.broker.api import Subscription, Will
from godwit.protocols.broker.messages import Carried, Kept, Stamp
from godwit.protocols.broker.publication import Digest, Publication
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import remembered
from godwit.protocols.broker.session.spill import Shelf, fetched
from godwit.protocols.broker.session.state import (
    Body,
    Chunk,
    Gate,
    GroupKey,
    Item,
    Session,
    Standing,
    Sub,
    Upstream,
    size_of,
)
from godwit.protocols.broker.store import Store
from godwit.protocols.broker.vacant import own
from godwit.protocols.host import NodeId


class SessionRow(msgspec.Struct, frozen=True, array_like=True):
    """What is known of single brokers is in rows of their own: when one of many has turned, only its row changes."""

    standing: Standing
    carried: Carried
    upstreams: tuple[Upstream, ...]


class OriginRow(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """How far a session has come with one broker's publications."""

    origin: NodeId
    gate: Gate | None = None
    ways: tuple[int, ...] = ()
    """The upstreams by which more of it may come, by their place among the session's."""
    is_open: bool = False
    """Of a shadow: it has not turned yet."""
    is_owed: bool = False
    """Of a shadow: not all of it is passed on."""
    turned_to: tuple[NodeId, ...] = ()
    """The holders of copies that get it by themselves."""


class ItemRow(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    qos: int
    number: int = 0
    received: bool = False
    publication: Publication | None = None
    body: int = 0
    retain: bool = False
    identifiers: tuple[int, ...] = ()
    group: GroupKey | None = None
    held: NodeId = ""
    """The origin for whose earlier publications it must wait."""
    stamp: tuple[NodeId, int] | None = None
    since: float = 0.0
    view: str = ""
    pace: str = ""


class Bundle(msgspec.Struct, frozen=True, array_like=True):
    """Many deliveries at (owner, 0), where none has its own place. One that has a row of its own is as that says."""

    first: int
    """The position of the first; the others follow."""
    rows: tuple[ItemRow, ...]


CHUNK_MAX, CHUNK_BYTES_MAX = 256, 256 * 1024
"""So many deliveries wait in one row, of so many bytes together."""


class ChunkRow(msgspec.Struct, frozen=True, array_like=True):
    """Deliveries at QoS 1 that came together, at (owner, -2 * first position): their positions follow one another. At
    (owner, -2 * first position - 1) is which of them are no longer here, as the bits of a number."""

    stamp: Stamp | None
    since: float
    publications: tuple[Publication, ...]


Written = dict[NodeId, tuple[int, bytes]]
"""By origin: the number of its row, and what the disk has there."""

DONE_WITH = Publication("", 0, "")
"""Stands for a publication that the client has and the broker need not keep."""

_encode = msgspec.msgpack.Encoder().encode
_session_row = msgspec.msgpack.Decoder(SessionRow).decode
_origin_row = msgspec.msgpack.Decoder(OriginRow).decode
_item_row = msgspec.msgpack.Decoder(ItemRow).decode
_bundle = msgspec.msgpack.Decoder(Bundle).decode
_chunk_row = msgspec.msgpack.Decoder(ChunkRow).decode
_subscription = msgspec.msgpack.Decoder(Subscription).decode
_will = msgspec.msgpack.Decoder(Will).decode
_digest = msgspec.msgpack.Decoder(Digest).decode
_publication = msgspec.msgpack.Decoder(Publication).decode


class OwnRows:
    """Waiting publications are in the rows of their deliveries."""

    __slots__ = ("owner", "store")

    def __init__(self, store: Store, owner: str) -> None:
        self.store = store
        self.owner = owner

    def fetch(self, item: Item) -> Publication:
        row = self.store.get("queues", self.owner, item.position)
        assert row is not None, f"no delivery ({self.owner!r}, {item.position})"
        return _item_row(row).publication or DONE_WITH

    def release(self) -> None: ...


class Bodies:
    """They are in rows that all who wait for one share."""

    __slots__ = ("store",)

    def __init__(self, store: Store) -> None:
        self.store = store

    def fetch(self, item: Item) -> Publication:
        assert item.body is not None
        return fetched(self.store, "bodies", "", item.body.number)

    def release(self) -> None: ...


class Chunks:
    """They are in rows with others that came together. The one that was read last stays: the next to leave is in it."""

    __slots__ = ("_last", "_publications", "store")

    def __init__(self, store: Store) -> None:
        self.store = store
        self._last: Chunk | None = None
        self._publications: tuple[Publication, ...] = ()

    def fetch(self, item: Item) -> Publication:
        chunk = item.body
        assert isinstance(chunk, Chunk)
        return self._read(chunk)[item.position - chunk.number]

    def unpack(self, chunk: Chunk) -> list[Item]:
        stamp, since = chunk.stamp, chunk.since
        items = [Item(one, 1, body=chunk, stamp=stamp, since=since) for one in self._read(chunk)]
        for position, item in enumerate(items, chunk.number):
            item.position = position
        return items

    def put_away(self, item: Item) -> None:
        item.put_away(self)

    def _read(self, chunk: Chunk) -> tuple[Publication, ...]:
        if chunk is not self._last:
            row = self.store.get("queues", chunk.owner, chunk.row)
            assert row is not None, f"no deliveries ({chunk.owner!r}, {chunk.row})"
            self._last, self._publications = chunk, _chunk_row(row).publications
        return self._publications

    def release(self) -> None: ...


class Ledger:
    """Writes what changes. `writes` grows with every row, so that a caller can tell whether it must wait for any."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writes = 0
        self._bodies = 0
        self._bundled: dict[Session, dict[int, tuple[Item, NodeId]]] = {}
        """By position: those deliveries of a session that have no row but the one they share."""
        self._changed: dict[Session, None] = {}
        """Sessions whose rows are written when the store writes next."""
        self._written: dict[Session, Written] = {}
        self._wills: set[str] = set()
        self._shelf, self._shared, self._own = Shelf(store), Bodies(store), OwnRows(store, "")
        self._chunks = Chunks(store)
        store.on_write = self._write_changed

    def body(self) -> Body:
        """For a publication that several may wait for; it is written when the first of them is."""
        self._bodies += 1
        return Body(self._bodies)

    def is_changed(self, session: Session) -> bool:
        """Whether its row is still to be written."""
        return session in self._changed

    def put_session(self, session: Session) -> None:
        """If it is durable when the disk is ready for it, its row is written: once, with all that has changed."""
        self.writes += 1
        self._changed[session] = None
        self.store.touch()

    def _write_changed(self) -> None:
        changed, self._changed = self._changed, {}
        for session in changed:
            if session.durable:
                self._write_session(session)
                self._write_origins(session)

    def _write_session(self, session: Session) -> None:
        standing = session.standing
        bare = msgspec.structs.replace(
            standing, copies={holder: set() for holder in standing.copies}, open_origins=frozenset(), owed=frozenset()
        )
        ways = tuple(msgspec.structs.replace(way, origins=set()) for way in session.inflow.upstreams)
        self._put("sessions", session.owner, 0, _encode(SessionRow(bare, session.carried, ways)))

    def _write_origins(self, session: Session) -> None:
        """Those that are not on the disk as they are."""
        origins, written = _origins(session), self._written.pop(session, {})
        for origin in written.keys() - origins.keys():
            self._delete("gates", session.owner, written.pop(origin)[0])
        if not origins:
            return
        self._written[session] = written
        last = max((number for number, _ in written.values()), default=0)
        for origin, row in origins.items():
            (number, before), encoded = written.get(origin, (last + 1, b"")), _encode(row)
            last = max(last, number)
            if encoded != before:
                written[origin] = (number, encoded)
                self._put("gates", session.owner, number, encoded)

    def put_sub(self, sub: Sub) -> None:
        self._put("subscriptions", sub.session.owner, sub.row, _encode(sub.wanted))

    def delete_sub(self, sub: Sub) -> None:
        self._delete("subscriptions", sub.session.owner, sub.row)

    def put_item(self, session: Session, item: Item, held: NodeId = "") -> None:
        """Write it, or write it anew."""
        if isinstance(item.body, Chunk):
            item.bring_back()
            self.let_go(item)
        body = item.body
        if item.position == 0:
            session.queue.position += 1
            item.position = session.queue.position
            if body is not None:
                body.refs += 1
                if body.refs == 1:
                    self._put("bodies", "", body.number, _encode(None if item.received else item.publication))
        if self._bundled:
            self._bundled.get(session, {}).pop(item.position, None)
        self._put("queues", session.owner, item.position, _encode(_row_of(item, held)))

    def put_together(
        self, session: Session, publications: Sequence[Publication], stamp: Stamp | None, since: float
    ) -> list[Chunk]:
        """Write deliveries at QoS 1 that came together, for which only this session waits, in few rows."""
        found, part, part_b = list[Chunk](), list[Publication](), 0
        for one in publications:
            size_b = size_of(one)
            if part and (len(part) >= CHUNK_MAX or part_b + size_b > CHUNK_BYTES_MAX):
                found.append(self._put_chunk(session, part, part_b, stamp, since))
                part, part_b = [], 0
            part.append(one)
            part_b += size_b
        found.append(self._put_chunk(session, part, part_b, stamp, since))
        return found

    def _put_chunk(
        self, session: Session, part: list[Publication], size_b: int, stamp: Stamp | None, since: float
    ) -> Chunk:
        queue = session.queue
        chunk = Chunk(self._chunks, session.owner, queue.position + 1, len(part), size_b, stamp, since)
        queue.position += len(part)
        self._put("queues", session.owner, chunk.row, _encode(ChunkRow(stamp, since, tuple(part))))
        return chunk

    def spill(self, session: Session, item: Item) -> None:
        """Its publication waits on the disk only."""
        if item.away is not None or session in self._bundled:
            return
        if not item.position:
            item.put_away(self._shelf.put(item.label, item.body))
        elif isinstance(item.body, Chunk):
            item.put_away(self._chunks)
        elif item.body is not None:
            item.put_away(self._shared)
        else:
            if self._own.owner != session.owner:
                self._own = OwnRows(self.store, session.owner)
            item.put_away(self._own)

    def delete_item(self, session: Session, item: Item) -> None:
        if item.away is not None:
            item.discard()
        if item.position:
            if self._bundled:
                self._unbundle(session, item)
            if not isinstance(item.body, Chunk):
                self._delete("queues", session.owner, item.position)
            self.let_go(item)
            item.position = 0

    def let_go(self, item: Item) -> None:
        """The publication itself is needed no longer by this one."""
        body, item.body = item.body, None
        if isinstance(body, Chunk):
            self._leave(body, item.position)
        elif body is not None and body.refs:
            body.refs -= 1
            if not body.refs:
                self._delete("bodies", "", body.number)

    def _leave(self, chunk: Chunk, position: int) -> None:
        """It has a row of its own from now on, or none any more."""
        first_to_go = not chunk.gone
        chunk.gone |= 1 << (position - chunk.number)
        chunk.refs -= 1
        if chunk.refs:
            self._put("queues", chunk.owner, chunk.row - 1, chunk.gone.to_bytes(CHUNK_MAX // 8, "little"))
            return
        self._delete("queues", chunk.owner, chunk.row)
        if not first_to_go:
            self._delete("queues", chunk.owner, chunk.row - 1)

    def put_will(self, client: str, will: Will | None) -> None:
        """The will of a client whose session has no rows; None: it has none any more."""
        if will is not None:
            self._wills.add(client)
            self._put("wills", client, 0, _encode(will))
        elif client in self._wills:
            self._wills.discard(client)
            self._delete("wills", client, 0)

    def orphans(self) -> list[tuple[str, Will]]:
        """Wills of clients that were connected when the broker crashed. Their rows stay until `put_will` says so."""
        found = [(client, _will(row)) for client, _, row in self.store.load("wills")]
        self._wills.update(client for client, _ in found)
        return found

    def put_incoming(self, session: Session, number: int) -> None:
        digest = session.queue.incoming[number]
        self._put("incoming", session.owner, number, b"" if digest is None else _encode(digest))

    def delete_incoming(self, session: Session, number: int) -> None:
        self._delete("incoming", session.owner, number)

    def save(self, session: Session) -> None:
        """Write all of a session that had no rows, or had them under another owner."""
        self.put_session(session)
        for sub in session.subscriptions.values():
            self.put_sub(sub)
        for item in (*session.queue.flying.values(), *session.queue.waiting):
            self.put_item(session, item)
        for origin, items in session.inflow.held.items():
            for item in items:
                self.put_item(session, item, origin)
        for number in session.queue.incoming:
            self.put_incoming(session, number)

    def save_together(self, session: Session) -> None:
        """As `save`, for one that never had rows, in a tenth of the time where much waits."""
        self.put_session(session)
        for sub in session.subscriptions.values():
            self.put_sub(sub)
        for number in session.queue.incoming:
            self.put_incoming(session, number)
        items = [(item, "") for item in (*session.queue.flying.values(), *session.queue.waiting)]
        items += [(item, origin) for origin, held in session.inflow.held.items() for item in held]
        if not items:
            return
        first = session.queue.position + 1
        session.queue.position += len(items)
        for position, (item, _) in enumerate(items, first):
            # Others may wait for the same publication and share its row; here it is written once more.
            item.position, item.body = position, None
        self._bundled[session] = dict(enumerate(items, first))
        bundle = Bundle(first, tuple(_row_of(item, held) for item, held in items))
        self._put("queues", session.owner, 0, _encode(bundle))

    def _unbundle(self, session: Session, done: Item) -> None:
        """One of them is done with: those that need it still get rows of their own."""
        left = self._bundled.pop(session, None)
        if left is None:
            return
        left.pop(done.position, None)
        for item, held in left.values():
            self._put("queues", session.owner, item.position, _encode(_row_of(item, held)))
        self._delete("queues", session.owner, 0)

    def forget(self, session: Session) -> None:
        """Delete all its rows; in memory it stays as it is, unless it has ended."""
        self._bundled.pop(session, None)
        self._changed.pop(session, None)
        self._written.pop(session, None)
        has_ended = session.standing.state is State.ENDED
        for item in items_of(session):
            if item.away is not None and (item.group is not None or not has_ended):
                item.bring_back()
            self.delete_item(session, item)
        owner = session.owner
        for table in ("sessions", "gates", "subscriptions", "queues", "incoming"):
            self.store.drop(table, owner)
        self.writes += 1

    def load(self) -> list[Session]:
        """All sessions and shadows as they were. Subscriptions are in them, and not yet known to anybody else."""
        sessions: dict[str, Session] = {}
        for owner, _, row in self.store.load("sessions"):
            sessions[owner] = _session_of(owner, _session_row(row))
        for owner, number, row in self.store.load("gates"):
            if owner in sessions:
                known = _origin_row(row)
                _add_origin(sessions[owner], known)
                self._written.setdefault(sessions[owner], {})[known.origin] = (number, row)
        for owner, number, row in self.store.load("subscriptions"):
            if owner in sessions:
                _add_subscription(sessions[owner], number, _subscription(row))
        for owner, number, row in self.store.load("incoming"):
            if owner in sessions:
                sessions[owner].queue.take_in(number, _digest(row) if row else None)
        self._load_items(sessions)
        return list(sessions.values())

    def _load_items(self, sessions: dict[str, Session]) -> None:
        bodies = {number: (Body(number), _publication(row)) for _, number, row in self.store.load("bodies")}
        self._bodies = max(bodies, default=0)
        for owner, rows in self._queues().items():
            for position in sorted(rows):
                row = rows[position]
                if owner not in sessions or (row.body and row.body not in bodies):
                    self._delete("queues", owner, position)
                    continue
                body, publication = bodies[row.body] if row.body else (None, row.publication or DONE_WITH)
                if body is not None:
                    body.refs += 1
                session = sessions[owner]
                item = _add_item(session, position, row, publication, body)
                if session.queue.waiting_b > session.limits.queue_memory_max and not row.held and not row.number:
                    self.spill(session, item)
        for number, (body, _) in bodies.items():
            if not body.refs:
                self._delete("bodies", "", number)

    def _queues(self) -> dict[str, dict[int, ItemRow]]:
        """By owner and position. What shares a row gets one of its own."""
        found: dict[str, dict[int, ItemRow]] = {}
        bundles: dict[str, Bundle] = {}
        chunks: dict[str, dict[int, bytes]] = {}
        for owner, position, encoded in self.store.load("queues"):
            if position > 0:
                found.setdefault(owner, {})[position] = _item_row(encoded)
            elif position < 0:
                chunks.setdefault(owner, {})[position] = encoded
            else:
                bundles[owner] = _bundle(encoded)
        for owner, parts in chunks.items():
            self._take_apart(owner, parts, found.setdefault(owner, {}))
        for owner, bundle in bundles.items():
            rows = found.setdefault(owner, {})
            self._delete("queues", owner, 0)
            for position, row in enumerate(bundle.rows, bundle.first):
                if position not in rows:
                    rows[position] = row
                    self._put("queues", owner, position, _encode(row))
        return found

    def _take_apart(self, owner: str, parts: dict[int, bytes], rows: dict[int, ItemRow]) -> None:
        """Give what came together rows of its own, where it is still here."""
        for number, encoded in parts.items():
            self._delete("queues", owner, number)
            if number % 2:
                continue
            chunk, gone = _chunk_row(encoded), int.from_bytes(parts.get(number - 1, b""), "little")
            for at, publication in enumerate(chunk.publications):
                if not gone >> at & 1:
                    row = ItemRow(1, publication=publication, stamp=chunk.stamp, since=chunk.since)
                    rows[-number // 2 + at] = row
                    self._put("queues", owner, -number // 2 + at, _encode(row))

    def _put(self, table: str, owner: str, number: int, value: bytes) -> None:
        self.writes += 1
        self.store.put(table, owner, number, value)

    def _delete(self, table: str, owner: str, number: int) -> None:
        self.writes += 1
        self.store.delete(table, owner, number)


def _row_of(item: Item, held: NodeId) -> ItemRow:
    whole = item.label if item.away is None else item.publication
    publication = None if item.received or item.body is not None else whole
    return ItemRow(
        item.qos,
        item.number,
        item.received,
        publication,
        item.body.number if item.body is not None else 0,
        item.retain,
        item.identifiers,
        item.group,
        held,
        item.stamp,
        item.since,
        item.view,
        item.pace,
    )


def items_of(session: Session) -> Iterator[Item]:
    yield from list(session.queue.flying.values())
    yield from list(session.queue.waiting)
    for items in session.inflow.held.values():
        yield from items


def _session_of(owner: str, row: SessionRow) -> Session:
    session = Session(owner.partition("\0")[0], row.standing.epoch, row.carried)
    session.owner = owner
    session.standing = row.standing
    session.outlive(row.carried.expiry_s)
    session.inflow.upstreams = row.upstreams
    return session


def _origins(session: Session) -> dict[NodeId, OriginRow]:
    """Of all brokers of which there is anything to say."""
    gates, ways, standing = session.inflow.gates, session.inflow.upstreams, session.standing
    names = {*gates, *standing.open_origins, *standing.owed}
    names.update(*(way.origins for way in ways), *standing.copies.values())
    return {
        name: OriginRow(
            name,
            gates.get(name),
            tuple(at for at, way in enumerate(ways) if name in way.origins),
            name in standing.open_origins,
            name in standing.owed,
            tuple(holder for holder, turned in standing.copies.items() if name in turned),
        )
        for name in sorted(names)
    }


def _add_origin(session: Session, row: OriginRow) -> None:
    standing, name = session.standing, row.origin
    if row.gate is not None:
        session.inflow.gates = own(session.inflow.gates)
        session.inflow.gates[name] = row.gate
    for at in row.ways:
        session.inflow.upstreams[at].origins.add(name)
    if row.is_open:
        standing.open_origins |= {name}
    if row.is_owed:
        standing.owed |= {name}
    for holder in row.turned_to:
        standing.copies[holder].add(name)


def _add_subscription(session: Session, number: int, wanted: Subscription) -> None:
    session.row = max(session.row, number)
    sub = remembered(session, wanted, number)
    if sub is not None:
        session.want(sub)


def _add_item(session: Session, position: int, row: ItemRow, publication: Publication, body: Body | None) -> Item:
    item = Item(
        publication,
        row.qos,
        row.retain,
        row.identifiers,
        number=row.number,
        received=row.received,
        body=body,
        group=row.group,
        stamp=row.stamp,
        since=row.since,
        view=row.view,
        pace=row.pace,
    )
    item.position = position
    session.queue.position = max(session.queue.position, position)
    if row.held:
        session.inflow.hold(row.held, item)
    elif row.number:
        item.safe = item.sent = True
        session.queue.fly(item)
        session.queue.number = max(session.queue.number, row.number)
    else:
        session.queue.wait((item,))
        session.queue.waiting_b += item.size_b
    return item


def kept_of(item: Item) -> Kept:
    publication = DONE_WITH if item.received else item.publication
    return Kept(
        publication,
        item.qos,
        item.retain,
        item.identifiers,
        item.number,
        item.received,
        item.group,
        item.stamp,
        item.since,
        item.view,
        item.pace,
    )


def item_of(kept: Kept, *, under_way: bool) -> Item:
    item = Item(
        kept.publication,
        kept.qos,
        kept.retain,
        kept.identifiers,
        number=kept.number if under_way else 0,
        received=kept.received and under_way,
        group=kept.group,
        stamp=kept.stamp,
        since=kept.since,
        view=kept.view,
        pace=kept.pace,
    )
    # The old broker has the number on its disk until this one has: it comes again from there after a crash.
    item.safe = item.sent = under_way
    return item
