"""The other brokers and what each of them wants, as last heard. It survives a restart: what is published before the
tree has formed again is kept for those who wanted it."""

from __future__ import annotations

import msgspec

from godwit.filters.filters import Filter, attribute, filter_of, problem_of
from godwit.filters.predicates import Text, equ
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId

TABLE = "interests"


def marker(broker: NodeId, disk: int) -> Filter:
    """Heads every statement of a broker, so that it can be found though it wants nothing. Another disk, another marker:
    a broker that has lost its own counts its statements from the beginning."""
    return filter_of(attribute("$broker", equ(broker)), attribute("$disk", equ(str(disk))))


def disk_of(marker: Filter) -> int:
    """The disk that a marker names; 0 where it is none of ours."""
    names = [one.operand for own in marker if own.name == "$disk" for one in own.clause if isinstance(one, Text)]
    return int(names[0]) if len(names) == 1 and names[0].isdecimal() else 0


class Statement(msgspec.Struct, frozen=True, array_like=True):
    """The row at (broker, 0); `filters` begin with the marker."""

    statement: int
    """Its statement number."""
    filters: tuple[Filter, ...]


class Peer:
    __slots__ = ("filters", "heard_at_s", "marker", "statement")

    def __init__(self, said: Statement, heard_at_s: float) -> None:
        self.statement = said.statement
        self.marker = said.filters[0]
        self.filters = said.filters[1:]
        self.heard_at_s = heard_at_s


class Interests:
    """Nobody leaves it but by `forget`, however long a broker is away."""

    def __init__(self, store: Store, now_s: float) -> None:
        self.store = store
        self.peers: dict[NodeId, Peer] = {}
        self._forgotten: dict[NodeId, Statement] = {}
        self.healed: dict[NodeId, str] = {}
        """Brokers of which something was on the disk that cannot be, and what: it is not there any more."""
        for broker, _, value in list(store.load(TABLE)):
            self._load(broker, value, now_s)
        self._show()

    def _load(self, broker: NodeId, value: bytes, now_s: float) -> None:
        """A filter that would fail when it is asked is left out; the broker is known all the same."""
        try:
            said = msgspec.msgpack.decode(value, type=Statement)
            problems = [problem_of(one) for one in said.filters]
            if not said.filters or problems[0]:
                raise ValueError(problems[0] if problems else "no filters, not even the broker's own")
        except ValueError as error:
            self.healed[broker] = str(error)
            self.store.drop(TABLE, broker)
            return
        if any(problems):
            self.healed[broker] = next(filter(None, problems))
            kept = tuple(one for one, problem in zip(said.filters, problems, strict=True) if not problem)
            said = Statement(said.statement, kept)
            self.store.put(TABLE, broker, 0, msgspec.msgpack.encode(said))
        self.peers[broker] = Peer(said, now_s)

    def _show(self) -> None:
        self.wanted: dict[NodeId, tuple[Filter, ...]] = {name: peer.filters for name, peer in self.peers.items()}

    def hear(self, broker: NodeId, statement: int, filters: tuple[Filter, ...], now_s: float) -> bool:
        """A broker has been heard to want this; whether that is news."""
        said, old = Statement(statement, filters), self.peers.get(broker)
        if not filters or not _is_newer(said, old) or self._forgotten.get(broker) == said:
            return False
        self.peers[broker] = peer = Peer(said, now_s)
        self._forgotten.pop(broker, None)
        if old is None or old.marker != peer.marker or old.filters != peer.filters:
            self.store.put(TABLE, broker, 0, msgspec.msgpack.encode(said))
            self._show()
        return True

    def keep(self, broker: NodeId) -> None:
        """Where statements are not repeated the disk must know the number of the last."""
        peer = self.peers[broker]
        said = Statement(peer.statement, (peer.marker, *peer.filters))
        self.store.put(TABLE, broker, 0, msgspec.msgpack.encode(said))

    def forget(self, silent_since_s: float) -> list[NodeId]:
        """Give up whoever has said nothing since then."""
        gone = [name for name, peer in self.peers.items() if peer.heard_at_s < silent_since_s]
        for name in gone:
            peer = self.peers.pop(name)
            self._forgotten[name] = Statement(peer.statement, (peer.marker, *peer.filters))
            self.store.drop(TABLE, name)
        if gone:
            self._show()
        return gone


def _is_newer(said: Statement, old: Peer | None) -> bool:
    return old is None or said.statement > old.statement or said.filters[0] != old.marker
