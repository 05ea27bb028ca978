"""What a broker tells operators who have logged in: one struct for each answer, from which the API's page is made."""

from __future__ import annotations

from typing import Any

import msgspec

from godwit.net.ops.report import HandoffReport, NeighborRow, PeerRow, RingReport

Figure = float | dict[str, float]


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what that one may do here."""

    broker: str
    user: str
    """Empty: nobody in particular, as the broker's users file allows."""
    role: str


class Disk(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    used_bytes: int
    """By this broker."""
    free_bytes: int
    total_bytes: int
    pending: int
    """Changes that are not written yet."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    """Of the configuration."""
    path: str
    expires: float
    """Seconds since 1970."""


class LinkRow(msgspec.Struct, frozen=True, kw_only=True):
    """A link with another broker."""

    peer: str
    address: str
    silent_s: float
    """Since when nothing was heard."""


class BrokerRow(msgspec.Struct, frozen=True, kw_only=True):
    """All of a broker that fits on one card."""

    name: str
    version: str
    starts: int
    """How often it has started from its disk."""
    now: float
    uptime_s: float
    troubles: list[str]
    cordoned: bool
    draining: bool
    leader: str
    hops: int
    fabric: list[str]
    place: list[float] | None
    """Latitude and longitude, where the configuration says where brokers stand."""
    ring: RingReport | None
    """Its cells of the globe, where brokers are a ring."""
    peers: list[PeerRow]
    links: list[LinkRow]
    addresses: list[list[str]]
    """What listens where: kind and address."""
    websocket: str
    """Where web pages speak MQTT with it; empty: nowhere."""
    disk: Disk
    certificates: list[Certificate]
    levels: dict[str, Figure]
    counts: dict[str, Figure]
    handoff: HandoffReport
    neighbors: list[NeighborRow]
    traced_until: float
    """0: publications and deliveries are not recorded."""
    users_file: str


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client as a list shows it."""

    client: str
    state: str
    """connected, away, or moved where only a shadow of its session is here."""
    address: str = ""
    since: float = 0.0
    """Connected since then; seconds since 1970."""
    version: int = 0
    over: str = ""
    subscriptions: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    under_way: int = 0
    oldest_s: float = 0.0
    """So long the first of them has waited."""
    dropped: int = 0
    moved_to: str = ""


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    """How many there are that were asked for; the rows may be fewer."""
    rows: list[SessionRow]


class SubscriptionRow(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    topics: str
    condition: str
    group: str
    qos: int


class AreaRow(msgspec.Struct, frozen=True, kw_only=True):
    """Where somebody wants to know something: a circle, or a box in degrees."""

    client: str
    text: str
    circle: list[float] | None = None
    """lat, lon, metres"""
    box: list[float] | None = None
    """south, west, north, east"""


class MoveRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client that came to this broker from another one."""

    time: float
    client: str
    source: str
    seconds: float
    """From when the broker knew who it is until it was in."""


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True):
    event: str
    topic: str
    qos: int
    age_s: float
    bytes: int


class SessionDetail(msgspec.Struct, frozen=True, kw_only=True):
    row: SessionRow
    user: str
    expiry_s: float | None
    """How long the session outlives its connection; null: for ever."""
    copies: list[str]
    """Brokers that hold a copy of it."""
    came_from: str
    subscriptions: list[SubscriptionRow]
    areas: list[AreaRow]
    moves: list[MoveRow]
    queue: list[WaitingRow]
    """The first of what waits."""
    dropped: dict[str, int]
    publish: list[str] | None
    """What it may publish; null: everything."""
    subscribe: list[str] | None


class Areas(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    areas: list[AreaRow]
    interest: list[AreaRow]
    """What the broker as a whole has told the others that it wants: its cells."""


class Thing(msgspec.Struct, frozen=True, array_like=True):
    """Something that said where it is."""

    name: str
    lat: float
    lon: float
    time: float
    topic: str
    publisher: str


class Things(msgspec.Struct, frozen=True, kw_only=True):
    serial: int
    """Ask with `since` for what has changed from here on."""
    total: int
    skipped: int
    """Publications that were not looked at, because there were too many in a second."""
    things: list[Thing]


class AttributeRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kinds: dict[str, int]
    low: float | None
    high: float | None
    common: list[tuple[str, int]]
    """The commonest values."""
    topics: list[str]


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    seen: int
    skipped: int
    since: float
    attributes: list[AttributeRow]


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """A publication as it was seen."""

    event: str
    """publisher:sequence, as traces name it"""
    time: float
    topic: str
    publisher: str
    retained: bool
    values: dict[str, Any]


class Events(msgspec.Struct, frozen=True, kw_only=True):
    events: list[EventRow]


class TakerRow(msgspec.Struct, frozen=True, kw_only=True):
    client: str
    state: str
    key: str
    condition: str
    shared: bool


class Wanting(msgspec.Struct, frozen=True, kw_only=True):
    """Who would get a publication that was made here."""

    total: int
    takers: list[TakerRow]
    brokers: list[str]
    problem: str = ""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong, or that an operator should know."""

    serial: int
    time: float
    kind: str
    level: str
    text: str
    client: str = ""
    count: int = 1
    """How often the same was said within a short time."""


class Problems(msgspec.Struct, frozen=True, kw_only=True):
    serial: int
    notices: list[Notice]
    refused: dict[str, float]
    dropped: dict[str, float]
    taken_over: float
    links: list[LinkRow]
    missing: list[str]
    """Brokers that are known and cannot be reached over any link."""
    certificates: list[Certificate]
    silence_s: float
    """A link that is silent for longer is given up."""


class TraceRow(msgspec.Struct, frozen=True, kw_only=True):
    time: float
    kind: str
    client: str
    peer: str
    note: str


class SubscriptionTrial(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    condition: str
    topic_fits: bool
    fits: bool
    because: str
    """Which condition fails, and what the event has there."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker knows of a client and an event."""

    broker: str
    now: float
    traced_since: float
    """0: nothing was recorded here."""
    event: EventRow | None
    trace: list[TraceRow]
    """What happened to the event for this client here, and to the client itself about then."""
    state: str
    """Of the client's session here; empty: there is none."""
    moved_to: str
    waiting: bool
    """The event is in its queue."""
    subscriptions: list[SubscriptionTrial]
    permitted: bool
    """Its user may see the event."""
    wanted_by: dict[str, bool] | None
    """Other brokers, and whether what they said they want includes it, as of now; null: this broker need not know."""


class FlowRow(msgspec.Struct, frozen=True, kw_only=True):
    to: str
    uses: int
    weight: float
    copied: float


class Handoffs(msgspec.Struct, frozen=True, kw_only=True):
    report: HandoffReport
    flows: list[FlowRow]
    """From this broker."""
    moves: list[MoveRow]
    """To this broker, the newest first."""
    seconds: list[float]
    """How long each of the last clients that came waited, sorted."""
    unfinished: dict[str, int]


class UserRow(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    role: str
    by: str
    """password or certificate; for anonymous clients, from where."""
    publish: list[str] | None
    """null: everything"""
    subscribe: list[str] | None
    clients: list[str] | None
    sessions: int


class Users(msgspec.Struct, frozen=True, kw_only=True):
    file: str
    users: list[UserRow]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """May this user do that?"""

    may: bool
    because: str


class ArchiveFile(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    bytes: int
    rows: int


class Follower(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    address: str
    kind: str
    file: str
    row: int
    behind: int
    """Rows that it has not asked for yet."""
    seen: float


class ArchiveRow(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    listens: str
    bytes: int
    rows: int
    files: list[ArchiveFile]
    followers: list[Follower]
    failure: str


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    time: float
    user: str
    address: str
    action: str
    target: str
    result: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    rows: list[AuditRow]


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What an action needs to know."""

    client: str = ""
    seconds: float = 0.0
    confirm: bool = False
    """Said by whoever means it."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    action: str
    result: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A publication that is only thought of."""

    topic: str
    payload: str = ""
