"""Sessions on the disk: what is written of them, and how they are read back.

A session that ends with its connection has no rows. Of any other, a waiting delivery is one row, with the publication
in it where nobody else waits for it, else with the number of a body that all of them share. A copy that becomes a
session while its client waits has all its deliveries in one row, until the first of them is done with.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from godwit.protocols.broker.api import Subscription, Will
from godwit.protocols.broker.messages import Claim, Memory
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import remembered
from godwit.protocols.broker.session.state import Body, Gate, GroupKey, Item, Session, Sub, Upstream
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId


class SessionRow(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    expiry_s: float
    left: float | None
    will: Will | None
    announced: bool
    clean: bool
    entered: int
    gates: dict[NodeId, Gate]
    upstreams: list[Upstream]
    state: State
    moved_to: NodeId
    next_epoch: int
    open_origins: set[NodeId]
    owed: set[NodeId]
    unheard: set[tuple[int, NodeId]] = msgspec.field(default_factory=set)
    token: str = ""
    copied: int = 0
    copies: dict[NodeId, set[NodeId]] = msgspec.field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    memory: Memory | None = None
    started: int = 0
    came_from: NodeId = ""
    reserved_for: NodeId = ""
    passages: tuple[tuple[str, int], ...] = ()
    answered: bool = False
    strange: bool = False


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


class Bundle(msgspec.Struct, frozen=True, array_like=True):
    """Many deliveries at (owner, 0), where none has its own place. One that has a row of its own is as that says."""

    first: int
    """The position of the first; the others follow."""
    rows: tuple[ItemRow, ...]


DONE_WITH = Publication("", 0, "")
"""Stands for a publication that the client has and the broker need not keep."""

_encode = msgspec.msgpack.Encoder().encode
_session_row = msgspec.msgpack.Decoder(SessionRow).decode
_item_row = msgspec.msgpack.Decoder(ItemRow).decode
_bundle = msgspec.msgpack.Decoder(Bundle).decode
_subscription = msgspec.msgpack.Decoder(Subscription).decode
_publication = msgspec.msgpack.Decoder(Publication).decode


class Ledger:
    """Writes what changes. `writes` grows with every row, so that a caller can tell whether it must wait for any."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.writes = 0
        self._bodies = 0
        self._bundled: dict[Session, dict[int, tuple[Item, NodeId]]] = {}
        """By position: those deliveries of a session that have no row but the one they share."""

    def body(self) -> Body:
        """For a publication that several may wait for; it is written when the first of them is."""
        self._bodies += 1
        return Body(self._bodies)

    def put_session(self, session: Session) -> None:
        row = SessionRow(
            session.epoch,
            session.expiry_s,
            session.left,
            session.will,
            session.announced,
            session.clean,
            session.entered,
            session.gates,
            session.upstreams,
            session.state,
            session.moved_to,
            session.next_epoch,
            session.open_origins,
            session.owed,
            session.unheard,
            session.token,
            session.copied,
            session.copies,
            session.claims,
            session.memory,
            session.started,
            session.came_from,
            session.reserved_for,
            tuple(session.passages),
            session.answered,
            session.strange,
        )
        self._put("sessions", session.owner, 0, _encode(row))

    def put_sub(self, sub: Sub) -> None:
        self._put("subscriptions", sub.session.owner, sub.row, _encode(sub.wanted))

    def delete_sub(self, sub: Sub) -> None:
        self._delete("subscriptions", sub.session.owner, sub.row)

    def put_item(self, session: Session, item: Item, held: NodeId = "") -> None:
        """Write it, or write it anew."""
        body = item.body
        if item.position == 0:
            session.position += 1
            item.position = session.position
            if body is not None:
                body.refs += 1
                if body.refs == 1:
                    self._put("bodies", "", body.number, _encode(None if item.received else item.publication))
        if self._bundled:
            self._bundled.get(session, {}).pop(item.position, None)
        self._put("queues", session.owner, item.position, _encode(_row_of(item, held)))

    def delete_item(self, session: Session, item: Item) -> None:
        if item.position:
            if self._bundled:
                self._unbundle(session, item)
            self._delete("queues", session.owner, item.position)
            item.position = 0
            self.let_go(item)

    def let_go(self, item: Item) -> None:
        """The publication itself is needed no longer by this one."""
        body, item.body = item.body, None
        if body is not None and body.refs:
            body.refs -= 1
            if not body.refs:
                self._delete("bodies", "", body.number)

    def put_incoming(self, session: Session, number: int) -> None:
        self._put("incoming", session.owner, number, b"")

    def delete_incoming(self, session: Session, number: int) -> None:
        self._delete("incoming", session.owner, number)

    def save(self, session: Session) -> None:
        """Write all of a session that had no rows, or had them under another owner."""
        self.put_session(session)
        for sub in session.subscriptions.values():
            self.put_sub(sub)
        for item in (*session.flying.values(), *session.waiting):
            self.put_item(session, item)
        for origin, items in session.held.items():
            for item in items:
                self.put_item(session, item, origin)
        for number in session.incoming:
            self.put_incoming(session, number)

    def save_together(self, session: Session) -> None:
        """As `save`, for one that never had rows, in a tenth of the time where much waits."""
        self.put_session(session)
        for sub in session.subscriptions.values():
            self.put_sub(sub)
        for number in session.incoming:
            self.put_incoming(session, number)
        items = [(item, "") for item in (*session.flying.values(), *session.waiting)]
        items += [(item, origin) for origin, held in session.held.items() for item in held]
        if not items:
            return
        first = session.position + 1
        session.position += len(items)
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
        """Delete all its rows; in memory it stays as it is."""
        self._bundled.pop(session, None)
        for item in items_of(session):
            self.delete_item(session, item)
        owner = session.owner
        for table in ("sessions", "subscriptions", "queues", "incoming"):
            self.store.drop(table, owner)
        self.writes += 1

    def load(self) -> list[Session]:
        """All sessions and shadows as they were. Subscriptions are in them, and not yet known to anybody else."""
        sessions = {owner: _session_of(owner, _session_row(row)) for owner, _, row in self.store.load("sessions")}
        for owner, number, row in self.store.load("subscriptions"):
            if owner in sessions:
                _add_subscription(sessions[owner], number, _subscription(row))
        for owner, number, _ in self.store.load("incoming"):
            if owner in sessions:
                sessions[owner].incoming.add(number)
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
                _add_item(sessions[owner], position, row, publication, body)
        for number, (body, _) in bodies.items():
            if not body.refs:
                self._delete("bodies", "", number)

    def _queues(self) -> dict[str, dict[int, ItemRow]]:
        """By owner and position. What shares a row gets one of its own."""
        found: dict[str, dict[int, ItemRow]] = {}
        bundles: dict[str, Bundle] = {}
        for owner, position, encoded in self.store.load("queues"):
            if position:
                found.setdefault(owner, {})[position] = _item_row(encoded)
            else:
                bundles[owner] = _bundle(encoded)
        for owner, bundle in bundles.items():
            rows = found.setdefault(owner, {})
            self._delete("queues", owner, 0)
            for position, row in enumerate(bundle.rows, bundle.first):
                if position not in rows:
                    rows[position] = row
                    self._put("queues", owner, position, _encode(row))
        return found

    def _put(self, table: str, owner: str, number: int, value: bytes) -> None:
        self.writes += 1
        self.store.put(table, owner, number, value)

    def _delete(self, table: str, owner: str, number: int) -> None:
        self.writes += 1
        self.store.delete(table, owner, number)


def _row_of(item: Item, held: NodeId) -> ItemRow:
    publication = None if item.received or item.body is not None else item.publication
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
    )


def items_of(session: Session) -> Iterator[Item]:
    yield from list(session.flying.values())
    yield from list(session.waiting)
    for items in session.held.values():
        yield from items


def _session_of(owner: str, row: SessionRow) -> Session:
    session = Session(owner.partition("\0")[0], row.epoch)
    session.owner = owner
    session.expiry_s = row.expiry_s
    session.left = row.left
    session.will = row.will
    session.announced = row.announced
    session.clean = row.clean
    session.entered = row.entered
    session.gates = row.gates
    session.upstreams = row.upstreams
    session.state = row.state
    session.moved_to = row.moved_to
    session.next_epoch = row.next_epoch
    session.open_origins = row.open_origins
    session.owed = row.owed
    session.unheard = row.unheard
    session.token = row.token
    session.copied = row.copied
    session.copies = row.copies
    session.claims = row.claims
    session.memory = row.memory
    session.started = row.started
    session.came_from = row.came_from
    session.reserved_for = row.reserved_for
    session.passages = dict.fromkeys(row.passages)
    session.answered, session.strange = row.answered, row.strange
    session.review()
    return session


def _add_subscription(session: Session, number: int, wanted: Subscription) -> None:
    session.row = max(session.row, number)
    sub = remembered(session, wanted, number)
    if sub is not None:
        session.subscriptions[wanted.key] = sub


def _add_item(session: Session, position: int, row: ItemRow, publication: Publication, body: Body | None) -> None:
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
    )
    item.position = position
    session.position = max(session.position, position)
    if row.held:
        session.held.setdefault(row.held, []).append(item)
    elif row.number:
        item.safe = item.sent = True
        session.flying[row.number] = item
        session.number = max(session.number, row.number)
    else:
        session.waiting.append(item)
        session.waiting_b += size_b(item)


def size_b(item: Item) -> int:
    """What a waiting delivery costs, about."""
    return len(item.publication.payload) + len(item.publication.topic) + 64
