"""What brokers, phones and sensors tell each other (spec data-gathering 2.12), by who says it to whom.

Between brokers everything travels in a `Hop` and is confirmed hop by hop; `docs/ring.md` has the table.
"""

from __future__ import annotations

import msgspec

from godwit.protocols.gathering.areas import Area
from godwit.protocols.gathering.space import Cell, Point
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.peers import Peer

ClientId = str
Scalar = bool | int | float | str
ItemId = tuple[ClientId, int]
"""Publisher and number: one event, however often it arrives."""


class Condition(msgspec.Struct, frozen=True, array_like=True):
    """An attribute of the event compared with a value; `op` is one of = != < <= > >= in prefix."""

    attribute: str
    value: Scalar | tuple[Scalar, ...]
    op: str = "="


class Subscription(msgspec.Struct, frozen=True):
    """Events of one type inside an area. `source` is where notices go: the client's broker at `epoch`."""

    sid: str
    event_type: str
    area: Area
    client: ClientId
    conditions: tuple[Condition, ...] = ()
    source: Key = b""
    epoch: int = 0
    ttl_s: float | None = None


class Item(msgspec.Struct, frozen=True):
    """An event: `event_type` is the type that subscriptions name."""

    item: ItemId
    event_type: str
    place: Point
    time_s: float
    data: dict[str, Scalar] = {}


class Notice(msgspec.Struct, frozen=True):
    """An item on its way to clients; `matcher` is the broker that matched it, `chain` how often it was redirected."""

    item: Item
    matcher: Key
    chain: int = 0


# Clients and their broker, over the radio


class Associate(Message, frozen=True):
    """Sent on every connection. `tried`: brokers asked since the last answer, which may hold things for the client."""

    client: ClientId
    epoch: int
    last: Key = b""
    tried: tuple[Key, ...] = ()


class Associated(Message, frozen=True):
    broker: Key
    epoch: int


class Subscribe(Message, frozen=True):
    subscription: Subscription


class Unsubscribe(Message, frozen=True):
    sid: str
    area: Area
    client: ClientId


class Publish(Message, frozen=True):
    item: Item


class Notify(Message, frozen=True):
    """To the client, with those of its subscriptions that matched."""

    item: Item
    sids: tuple[str, ...] = ()


class Subscribed(Message, frozen=True):
    """The subscription is wherever its area is, and so are copies of it; or not everywhere yet, where that took too
    long."""

    sid: str
    complete: bool = True


class NotifyAck(Message, frozen=True):
    client: ClientId
    item: ItemId


# Located messages: they go where an area or a point is. `level` cuts are resolved, `prefix` names the region meant.


class Sub(Message, frozen=True):
    subscription: Subscription
    level: int = 0
    prefix: str = ""
    hops: int = 0


class Unsub(Message, frozen=True):
    sid: str
    area: Area
    client: ClientId
    level: int = 0
    prefix: str = ""
    hops: int = 0


class Pub(Message, frozen=True):
    item: Item
    level: int = 0
    prefix: str = ""
    hops: int = 0


class Locate(Message, frozen=True):
    """A newcomer looks for the owner of the place where it stands."""

    newcomer: NodeId
    place: Point
    level: int = 0
    prefix: str = ""
    hops: int = 0


Located = Sub | Unsub | Pub | Locate


# Between brokers, to keys


class Matched(Message, frozen=True):
    """NOTIFY: to the brokers that the matched subscriptions name; the clients stand beside each key."""

    notice: Notice


class Forward(Message, frozen=True):
    """A notice for one client that has moved on."""

    notice: Notice
    client: ClientId
    sids: tuple[str, ...] = ()


class Register(Message, frozen=True):
    """To the client's homes: it is at this broker since this epoch."""

    client: ClientId
    broker: Key
    epoch: int


class Registered(Message, frozen=True):
    client: ClientId
    epoch: int


class Lookup(Message, frozen=True):
    client: ClientId
    reply_to: Key


class LookupAnswer(Message, frozen=True):
    """`broker` is empty where the home knows nothing."""

    client: ClientId
    broker: Key = b""
    epoch: int = 0


class Handover(Message, frozen=True):
    client: ClientId
    broker: Key
    epoch: int


class HandoverAnswer(Message, frozen=True):
    """How many items follow; `stale` where the old broker has had the client later than that."""

    client: ClientId
    epoch: int
    count: int = 0
    stale: bool = False


class Update(Message, frozen=True):
    """Send to this broker from now on."""

    client: ClientId
    broker: Key
    epoch: int
    reply_to: Key


class UpdateAnswer(Message, frozen=True):
    client: ClientId
    epoch: int


# Joining and standing in


class CareOf(msgspec.Struct, frozen=True, array_like=True):
    client: ClientId
    broker: Key
    epoch: int


class Pointer(msgspec.Struct, frozen=True, array_like=True):
    client: ClientId
    broker: Key
    epoch: int


class Waiting(msgspec.Struct, frozen=True):
    """A client's profile as it is copied: what waits for it, oldest first."""

    client: ClientId
    epoch: int
    notices: tuple[tuple[Notice, tuple[str, ...]], ...]


class Assigned(Message, frozen=True):
    """SPLIT: the newcomer's name and cell, and the subscriptions that touch it so far."""

    owner: Peer
    key: Key
    cell: Cell
    subscriptions: tuple[Subscription, ...] = ()


class Ready(Message, frozen=True):
    """The newcomer is on the ring: the owner may give up its half."""

    newcomer: Peer


class State(Message, frozen=True):
    """What has changed in the newcomer's cell since it was assigned; from now on the cell is its own."""

    added: tuple[Subscription, ...]
    removed: tuple[str, ...]
    tombstones: tuple[str, ...] = ()


class Refused(Message, frozen=True):
    """The split has been given up or is impossible; the newcomer starts again, or elsewhere."""

    reason: str
    final: bool = False


class Stored(Message, frozen=True):
    """To the broker that a subscription names: it is kept for this cell, and by those who would stand in."""

    sid: str
    cell: Cell


class CareOfMoved(Message, frozen=True):
    """Registrations whose homes the receiver is now."""

    entries: tuple[CareOf, ...]


class Replica(Message, frozen=True):
    """All that a stand-in needs of one region, from the broker that serves it now."""

    region: Key
    server: Peer
    cell: Cell
    subscriptions: tuple[Subscription, ...]
    care_of: tuple[CareOf, ...] = ()
    profiles: tuple[Waiting, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    number: int = 0
    """Of the last change that it contains."""


class Change(Message, frozen=True):
    """One change of a region's book, for those who would stand in; `base` comes along where they have no copy yet."""

    region: Key
    server: Peer
    number: int
    added: Subscription | None = None
    removed: str = ""
    base: Replica | None = None


class Copied(Message, frozen=True):
    """The answer: it is in my copy; or I have none of that region (`whole` is false)."""

    number: int
    whole: bool = True


class Entrusted(Message, frozen=True):
    """A region whose broker failed goes to the node that is in charge of its key now."""

    replica: Replica


Body = (
    Sub
    | Unsub
    | Pub
    | Locate
    | Matched
    | Forward
    | Register
    | Registered
    | Lookup
    | LookupAnswer
    | Handover
    | HandoverAnswer
    | Update
    | UpdateAnswer
    | Assigned
    | Ready
    | State
    | Refused
    | CareOfMoved
    | Replica
    | Entrusted
    | Stored
    | Change
    | Copied
)
