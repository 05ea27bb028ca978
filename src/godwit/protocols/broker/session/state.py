"""Sessions: what the broker keeps of a client, connected or not."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from math import inf
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from godwit.filters.filters import FilterSet
from godwit.protocols.broker.api import ALL, DEFAULT, Grant, Outlet, Subscription, Will
from godwit.protocols.broker.messages import FIRST, Carried, Line, Name, Place, Stamp
from godwit.protocols.broker.publication import Digest, Publication
from godwit.protocols.broker.session.lifecycle import OURS, TRANSITIONS, Cause, State, refused
from godwit.protocols.broker.session.spill import Away, Page, label_of
from godwit.protocols.broker.vacant import VACANT, own
from godwit.protocols.host import NodeId, Timer

if TYPE_CHECKING:
    from godwit.protocols.broker.handoff.standby import Holding
    from godwit.protocols.broker.interest.subscribers import Group

GroupKey = tuple[str, str, str]
"""A shared group: its name, its topics and its condition."""

NUMBER_MAX = 65_535
SPREAD = 40_503
"""Odd, and no divisor of the numbers there are: epochs that follow one another lie far apart."""

PASSAGES_MAX = 4_096
"""So many that were in the air a session takes along; an older one that comes by another bridge may come again."""


_SIZES = tuple(range(4096))
"""One object for each size: a number of its own would cost each waiting delivery 32 bytes."""


class Body:
    """A publication that several sessions wait for, kept once."""

    __slots__ = ("number", "page", "refs")

    def __init__(self, number: int) -> None:
        self.number = number
        self.refs = 0
        self.page: Page | None = None
        """Where it waits for those whose sessions have no rows."""


class Storeroom(Protocol):
    """Where deliveries are that came together."""

    def unpack(self, chunk: Chunk) -> list[Item]:
        """All of them, with their content."""

    def put_away(self, item: Item) -> None:
        """Its content need not be in memory."""


class Chunk(Body):
    """Deliveries of one session that came together and wait in one row. Its number is the first of their positions."""

    __slots__ = ("count", "gone", "owner", "room", "since", "size_b", "stamp")

    def __init__(
        self, room: Storeroom, owner: str, first: int, count: int, size_b: int, stamp: Stamp | None, since: float
    ) -> None:
        super().__init__(first)
        self.refs = self.count = count
        self.room = room
        self.owner = owner
        self.size_b = size_b
        self.stamp = stamp
        self.since = since
        self.gone = 0
        """Which of them are not in it any more, as bits."""

    @property
    def row(self) -> int:
        """Under which number of the owner's it is."""
        return -2 * self.number


OVERHEAD_B = 64
"""What a delivery costs beside topic and payload, about."""


def size_of(publication: Publication) -> int:
    """What a delivery of it costs while it waits, about."""
    return len(publication.payload) + len(publication.topic) + OVERHEAD_B


def name_of(publication: Publication) -> Name:
    """The same in whichever site, and in the archive."""
    return (repr(publication.time), publication.publisher, publication.sequence)


class Item(msgspec.Struct, eq=False):
    """A delivery above QoS 0 that one session waits for, or that is under way to its client. Each is itself, whatever
    it says; a struct, since millions are made."""

    label: Publication
    """The publication, or all but its content while that is not in memory."""
    qos: int
    retain: bool = False
    identifiers: tuple[int, ...] = ()
    number: int = 0
    """The packet identifier, 0 while it waits."""
    received: bool = False
    """The client has it and must still be told to forget the number (QoS 2)."""
    body: Body | None = None
    group: GroupKey | None = None
    stamp: Stamp | None = None
    """The broker from whose stream it came, and its number there."""
    since: float = 0.0
    """Since when it waits for the client, here and at brokers where the session was before, by the steady clock."""
    view: str = ""
    """The view that it tells a change of, where it is one."""
    pace: str = ""
    """The subscription that it came by, where that has a rate."""
    size_b: int = 0
    """What it costs while it waits, about."""
    away: Away | None = None
    """Where its content is while that is not in memory."""
    position: int = 0
    """Its place in the session's queue, by which the store knows it."""
    safe: bool = False
    """Its number is on the disk (QoS 2 of a durable session)."""
    sent: bool = False
    """It has left the broker over some connection."""
    out: bool = False
    """It is under way over the present connection."""

    def __post_init__(self) -> None:
        label = self.label
        size_b = len(label.payload) + len(label.topic) + OVERHEAD_B  # as `size_of`, without a call
        self.size_b = _SIZES[size_b] if size_b < len(_SIZES) else size_b
        if not self.since:
            self.since = self.label.time

    @property
    def publication(self) -> Publication:
        return self.label if self.away is None else self.away.fetch(self)

    @property
    def is_away(self) -> bool:
        return self.away is not None

    def put_away(self, where: Away) -> None:
        """It can be had from there, and is not kept in memory."""
        self.away, self.label = where, label_of(self.label)

    def bring_back(self) -> None:
        if self.away is not None:
            self._settle(self.away.fetch(self))

    def discard(self) -> None:
        """Nobody will ask for the content any more."""
        self._settle(self.label)

    def _settle(self, publication: Publication) -> None:
        away, self.away, self.label = self.away, None, publication
        if away is not None:
            away.release()

    @property
    def name(self) -> Name | None:
        """The same at every session that takes it, in whichever site. None: it is nobody else's, since it was dealt to
        a member of a group, or is retained; or it is done with."""
        if self.stamp is None or self.group is not None or self.received:
            return None
        return name_of(self.label)


class Sub:
    """A subscription of a session, as the broker holds it."""

    __slots__ = ("asked", "condition", "group", "inherited", "interval_s", "placed", "row", "session", "wanted")

    def __init__(
        self, session: Session, wanted: Subscription, condition: FilterSet | None, row: int, interval_s: float = 0.0
    ) -> None:
        self.session = session
        self.wanted = wanted
        self.condition = condition
        """Topics and condition together, where there is a condition."""
        self.row = row
        self.asked = 0
        """Its number among the conditions."""
        self.group: Group | None = None
        self.interval_s = interval_s
        """How long a thing, or a topic, of which was told must wait; 0: not at all."""
        self.inherited = False
        """An older session had it, and the client has not asked for it in this one."""
        self.placed = True
        """It was granted. In a ring one that is new waits for that, until all who may send something know of it."""


class Gate(msgspec.Struct):
    """How far a session that has moved here has come with one broker's publications (docs/broker.md, "A session
    moves")."""

    begun: bool = False
    """That broker has turned: what it sends here from now on is for this session."""
    through: bool = False
    """All that it sent before has been passed on by the old broker."""
    number: int = 0
    """Under which number of its stream it has turned."""


class Upstream(msgspec.Struct):
    """A way on which what was meant for a session elsewhere is passed on to it."""

    epoch: int
    source: NodeId
    """The broker that passes on."""
    chain: tuple[NodeId, ...]
    """The brokers before that one which may still collect."""
    origins: set[NodeId]
    """The brokers of whose publications more may come this way."""
    main: bool
    """The session itself came this way; else only what another one of the client had kept."""
    copy: bool = False
    """Only a copy came this way: the source has not said yet that the session is here."""
    had: set[NodeId] = msgspec.field(default_factory=set)
    """The brokers of whose publications nothing is news that comes this way."""
    born: Line = FIRST
    """The other session's."""
    lines: tuple[Line, ...] = (FIRST,)
    """Whose places brokers turn from."""
    forsaken: bool = False
    """A copy comes this way, and its original is here, into which the client was let in since: nothing of it is news.
    But what was dealt to it as a member of a group came to nobody else. Of a main one: the copy is here, and has
    yielded to its original; what comes this way is news only where the session would take it by itself."""


class Packed(deque["Item"]):
    """Deliveries that wait for a client, in their order, where some came together: those are one object, and their
    content is on the disk only, until somebody looks at one of them."""

    __slots__ = ("_chunks", "_more")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        super().__init__(items)
        self._chunks = 0
        """How many of the parts are several deliveries."""
        self._more = 0
        """How many deliveries there are beyond the number of parts."""

    def __len__(self) -> int:
        return super().__len__() + self._more

    def __iter__(self) -> Iterator[Item]:
        """Whoever looks at all of them wants to know what they are, and seldom what they say."""
        if self._chunks:
            unpacked = [self._unpacked(part, at == 0) for at, part in enumerate(super().__iter__())]
            self.clear()
            self.extend(item for items in unpacked for item in items)
        return super().__iter__()

    def popleft(self) -> Item:
        first = super().popleft()
        if not isinstance(first, Chunk):
            return first
        self._chunks -= 1
        self._more -= first.count - 1
        leaving, *others = first.room.unpack(first)
        self.extendleft(reversed(others))
        return leaving

    def add(self, chunk: Chunk) -> None:
        """Deliveries that came together, none of which has left it."""
        self.append(cast("Item", chunk))  # nobody sees it as such: it has been unpacked by then
        self._chunks += 1
        self._more += chunk.count - 1

    def clear(self) -> None:
        super().clear()
        self._chunks = self._more = 0

    @staticmethod
    def _unpacked(part: Item | Chunk, leaves: bool) -> list[Item]:
        """With its content where it leaves next; else that stays where it is."""
        if not isinstance(part, Chunk):
            return [part]
        items = part.room.unpack(part)
        for item in () if leaves else items:
            part.room.put_away(item)
        return items


class _Nobody(deque["Item"]):
    """Stands for a queue in which nothing is, of all sessions: an empty one takes 760 bytes, and most are empty."""

    def append(self, item: Item) -> None:
        raise TypeError("put it into a queue of its own")

    def extend(self, items: Iterable[Item]) -> None:
        raise TypeError("put them into a queue of their own")


_NOBODY: deque[Item] = _Nobody()


class Queue:
    """What waits for the client, what is under way to it, and what came from it and is not done with."""

    __slots__ = (
        "doubted",
        "dropped",
        "flying",
        "incoming",
        "launching",
        "number",
        "position",
        "settling",
        "unsent",
        "waiting",
        "waiting_b",
        "window",
        "window_b",
    )

    def __init__(self) -> None:
        self.waiting = _NOBODY
        """To look at and to take from; `wait` adds to it."""
        self.waiting_b = 0
        self.unsent = _NOBODY
        """Those that have a number and must go over the present connection, again or for the first time."""
        self.flying: dict[int, Item] = VACANT
        """By packet identifier; `fly` adds to it."""
        self.doubted: dict[int, Item] = VACANT
        """Those that have left, of which it is not known whether they are for the client: it may have had them in
        another session. Either it acknowledges them, or another session still has them; else they are not."""
        self.window = 0
        """How many are under way over the present connection."""
        self.window_b = 0
        self.launching = 0
        """How many of them wait for the disk before they leave."""
        self.number = 0
        self.position = 0
        self.incoming: dict[int, Digest | None] = VACANT
        """QoS 2 packet identifiers taken from the client and not released yet, and of what; None: not known."""
        self.settling = 0
        """Acknowledgements to the client that wait for the disk."""
        self.dropped: dict[str, int] = VACANT
        """What the bounds of its limits cost it here, by reason."""

    def fly(self, item: Item) -> None:
        """It has a number, and is under way or about to be."""
        if self.flying is VACANT:
            self.flying = {}
        self.flying[item.number] = item

    def take_in(self, number: int, digest: Digest | None) -> None:
        """At QoS 2 from the client, until it is released."""
        if self.incoming is VACANT:
            self.incoming = {}
        self.incoming[number] = digest

    def take_over(self, numbers: Sequence[int], digests: Sequence[Digest | None]) -> None:
        """What was taken where the session was before; a broker of an earlier version says no digests."""
        self.incoming = dict(zip_longest(numbers, digests[: len(numbers)]))

    def is_repeated(self, number: int, publication: Publication) -> bool:
        """Whether it has been taken under this identifier, which is not released yet (MQTT 5, 4.3.3). A client that had
        another session since may have finished there what it had begun here, and have given the identifier to something
        else: that says something else."""
        if number not in self.incoming:
            return False
        digest = self.incoming[number]
        return digest is None or digest == publication.digest

    @property
    def digests(self) -> tuple[Digest | None, ...]:
        """Of what was taken under the identifiers in `incoming`, in their order."""
        return tuple(self.incoming[number] for number in sorted(self.incoming))

    def wait(self, items: Iterable[Item]) -> None:
        """Last of those that wait."""
        if self.waiting is _NOBODY:
            self.waiting = deque()
        self.waiting.extend(items)

    def wait_together(self, chunk: Chunk) -> None:
        if not isinstance(self.waiting, Packed):
            self.waiting = Packed(self.waiting)
        self.waiting.add(chunk)
        self.waiting_b += chunk.size_b

    def names(self) -> dict[Name, None]:
        """Of all that the client has yet to take."""
        items = (*self.flying.values(), *self.waiting)
        return {name: None for item in items if (name := item.name) is not None}

    def count_from(self, epoch: int) -> None:
        """Number packets from a place of its own, which is far from those of other epochs: a client that takes two
        sessions for one must not take a packet identifier of the one for that of the other."""
        self.number = epoch * SPREAD % NUMBER_MAX

    def clear(self) -> None:
        self.flying, self.waiting_b = VACANT, 0
        self.waiting = self.unsent = _NOBODY


class Inflow:
    """From whom publications come to a session that has moved, and what must wait for others."""

    __slots__ = ("gates", "held", "upstreams")

    def __init__(self) -> None:
        self.gates: dict[NodeId, Gate] = VACANT
        """The brokers whose publications do not simply go to this session; empty unless it has moved here lately."""
        self.held: dict[NodeId, list[Item]] = VACANT
        """What came from such a broker and must wait for what it sent before."""
        self.upstreams: tuple[Upstream, ...] = ()

    def close_gate(self, origin: NodeId) -> None:
        """What comes from that broker does not simply go to the session any more."""
        self.gates = own(self.gates)
        self.gates[origin] = Gate()

    def hold(self, origin: NodeId, item: Item) -> None:
        """It waits for what that broker sent before, or for whatever goes by that name."""
        self.held = own(self.held)
        self.held.setdefault(origin, []).append(item)

    @property
    def is_unconfirmed(self) -> bool:
        """It came as a copy, and some source has not said yet that it is the session."""
        return any(way.copy for way in self.upstreams)


class Standing(msgspec.Struct):
    """Whose the session is: its state and epochs, who holds copies of it, and where it went. It stays at this broker
    and is on the disk as it is, but for what is known of single brokers. Its sets are replaced, not changed: an empty
    one of its own would cost each idle client 216 bytes."""

    epoch: int
    entered: int
    """The epoch at which it moved here."""
    state: State = State.START
    left: float | None = None
    """When the connection ended, by the broker's steady clock; None while there is one."""
    will: Will | None = None
    announced: bool = False
    """The other brokers know that it is here."""
    answered: bool = False
    """The client has acknowledged something here, so that it knows that it is in."""
    came_from: NodeId = ""
    """The broker where the client was before; empty where it was at none, or has been here for long."""
    reserved_for: NodeId = ""
    """Who holds a copy and may have let the client in: nobody else gets the session before that one has said."""
    moved_to: NodeId = ""
    """Where it went, of a shadow."""
    next_epoch: int = 0
    handed: int = 0
    """The stream number under which all of it went there; 0 where that had it as a copy."""
    copied: int = 0
    """The epoch of the last copies made of it."""
    copies: dict[NodeId, set[NodeId]] = msgspec.field(default_factory=lambda: VACANT)
    """Who holds such a copy, and which brokers' publications come to it there by themselves."""
    open_origins: frozenset[NodeId] = frozenset()
    """A shadow's: the brokers that have not turned from it yet."""
    owed: frozenset[NodeId] = frozenset()
    """A shadow's: the brokers of which it has not said yet that all is passed on."""
    arriving: NodeId = ""
    """The gateway of another site from which it comes, until that has said `Crossed`."""
    crossings: int | None = None
    """Of what bridges and gateways bring, how much its broker had taken before it began to take all that this does.
    What came after that is read from the fabric (`Fabric.crossed`)."""
    fresh: frozenset[str] = frozenset()
    """Its subscriptions of which the site that it comes from has not heard: nobody there passes on what they want."""
    abroad: bool = False
    """A shadow's: it went to another site. It takes all that comes until that one takes it itself."""
    marked: int = 0
    """Of such a one: the outlook of the other site that must be known before it ends; 0: there was no marker yet."""
    in_vain: bool = False
    """It was taken up out of a copy and gave way, and the source has not said yet what it was. A shadow keeps what it
    has until then: if it was the session, nobody else has that."""
    void: bool = False
    """A shadow's: the source of the copy that it was has said that it was not the session. It tells those after it."""
    claimed: tuple[NodeId, Place] | None = None
    """Which broker says that it has the session, while its client may still object to that."""
    came_under: Line | None = None
    """Its line when it moved here, by which brokers turn to this place: it may hear afterwards that it need not
    remember anything, and then has another."""
    left_under: Line | None = None
    """A shadow's: its line when it moved on, by which brokers turn to the next place."""
    joined: frozenset[str] = frozenset()
    """Subscriptions of older sessions that came here from another site and went into it. No broker is asked to turn
    from those, so that what they want, and is not this one's by itself, is the older ones'."""


class Session:
    """One client's. It outlives connections as long as the client asked for.

    `queue` is the deliveries', `inflow` and `standing` the handoff's; `carried` is what goes along when it moves.
    """

    __slots__ = (
        "carried",
        "client",
        "copy",
        "durable",
        "expiry_timer",
        "grant",
        "inflight_max",
        "inflow",
        "is_proven",
        "kept_back",
        "let_in_under",
        "limits",
        "outlet",
        "owner",
        "queue",
        "row",
        "sequence",
        "standing",
        "subscriptions",
        "untold",
        "will_timer",
    )

    def __init__(self, client: str, epoch: int, carried: Carried | None = None) -> None:
        self.client = client
        self.owner = client
        """Whose rows it has in the store. A client may have a session and shadows of earlier ones at one broker."""
        self.carried = carried or Carried()
        self.queue = Queue()
        self.queue.count_from(self.carried.age[0])  # wherever it comes from, another broker or the disk
        self.inflow = Inflow()
        self.standing = Standing(epoch, epoch)
        self.copy: Copy | None = None
        """What it is only a copy of."""
        self.durable = False
        """It has rows on the disk. A copy that nobody has asked for is in memory only."""

        self.outlet: Outlet | None = None
        self.is_proven = False
        """Its client has shown a secret of this session when it was let in last."""
        self.let_in_under = 0
        """The epoch in the token that its client was given then, if it had shown one that is no higher: it was at no
        later place. Else 0."""
        self.grant: Grant = ALL
        self.limits = DEFAULT
        self.inflight_max = NUMBER_MAX
        self.sequence = 0
        self.subscriptions: dict[str, Sub] = VACANT
        self.untold = False
        """The answer that its session is new has not left: it waits for the disk, or its client went before that."""
        self.row = 0
        self.kept_back: tuple[tuple[Publication, int], ...] = ()
        """What the client says while others have not heard all that it said elsewhere; it is not acknowledged."""
        self.expiry_timer: Timer | None = None
        self.will_timer: Timer | None = None

    def want(self, sub: Sub) -> None:
        """In place of an older subscription of its key."""
        self.subscriptions = own(self.subscriptions)
        self.subscriptions[sub.wanted.key] = sub

    @property
    def state(self) -> State:
        return self.standing.state

    @property
    def epoch(self) -> int:
        return self.standing.epoch

    def become(self, cause: Cause) -> None:
        """The next step of its life; `LocalError` where it cannot take that, and nothing has changed."""
        state = TRANSITIONS[self.standing.state].get(cause)
        self.standing.state = state if state is not None else refused(self.standing.state, cause)
        self.durable = _has_rows(self)

    def outlive(self, expiry_s: float) -> None:
        """It stays so long when its client has left."""
        self.carried.expiry_s = expiry_s
        self.durable = _has_rows(self)

    @property
    def ends_with_connection(self) -> bool:
        """It has one, and nothing of it may outlive that: whoever comes next under its name gets nothing of it."""
        return self.outlet is not None and self.carried.expiry_s == 0

    @property
    def plain(self) -> bool:
        """Whatever is published and wanted is simply for this session, here and nowhere else."""
        return self.is_settled and not self.standing.copies

    @property
    def is_settled(self) -> bool:
        """It takes all that its broker does, and has had all that this has taken since it is here."""
        standing = self.standing
        if self.inflow.gates or standing.arriving:
            return False
        return self.carried.memory is None and standing.state in OURS

    @property
    def line(self) -> Line:
        """Tells its places from those of other sessions of the client."""
        memory = self.carried.memory
        return memory.born if memory is not None else FIRST

    def goes_under(self, lines: Collection[Line]) -> bool:
        """Whether one of these is its own, now or when brokers were asked to turn to this place."""
        memory = self.carried.memory
        own = {self.line} if memory is None else {self.line, *memory.continued}
        return self.standing.came_under in lines or not own.isdisjoint(lines)

    def passes(self, passage: tuple[str, int]) -> bool:
        """Whether it is the first of its name that this session takes; it is remembered."""
        passages = self.carried.passages = own(self.carried.passages)
        if passage in passages:
            return False
        passages[passage] = None
        if len(passages) > PASSAGES_MAX:
            del passages[next(iter(passages))]
        return True

    @property
    def said_under(self) -> tuple[int, bool] | None:
        """See `Publication`."""
        return (self.let_in_under, self.carried.hasty) if self.let_in_under else None

    def next_sequence(self) -> int:
        """The number of this client's next publication."""
        self.sequence += 1
        return self.sequence

    def next_sequences(self, count: int) -> range:
        """Those of its next ones."""
        first = self.sequence + 1
        self.sequence += count
        return range(first, first + count)

    def expires_after(self, now: float) -> float:
        """How long it has left without a connection."""
        expiry_s, left = self.carried.expiry_s, self.standing.left
        return expiry_s if left is None else max(0.0, left + expiry_s - now)

    @property
    def everlasting(self) -> bool:
        return self.carried.expiry_s == inf


def _has_rows(session: Session) -> bool:
    state = session.standing.state
    return state is State.SHADOW or (session.carried.expiry_s > 0 and state not in (State.STANDBY, State.ENDED))


class Copy:
    """A session of another broker, held here in case its client comes. Until the source is asked for the session this
    is only in memory; from then on it has rows, and waits for the answer."""

    __slots__ = (
        "asked_epoch",
        "bytes",
        "epoch",
        "expiry_timer",
        "holding",
        "kept",
        "lasts_s",
        "reserved",
        "session",
        "source",
    )

    def __init__(self, holding: Holding, session: Session, source: NodeId, epoch: int, lasts_s: float) -> None:
        self.holding = holding
        """Who keeps the account of all copies."""
        self.session = session
        self.source = source
        self.epoch = epoch
        self.lasts_s = lasts_s
        self.bytes = 0
        """What it costs, about."""
        self.asked_epoch = 0
        """At which the session was asked for."""
        self.kept = False
        """It is on the disk."""
        self.reserved = False
        """The source gives the session to nobody else."""
        self.expiry_timer: Timer | None = None


def shadow_owner(client: str, epoch: int) -> str:
    """A client's name cannot contain NUL."""
    return f"{client}\0{epoch}"


def copy_owner(client: str, epoch: int) -> str:
    return f"{client}\0copy {epoch}"
