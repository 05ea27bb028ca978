"""What a broker tells of itself: the answer of `/status`, read by `godwit top`."""

from __future__ import annotations

import msgspec

CLIENTS_SHOWN = 200
FILTERS_SHOWN = 50


class ClientRow(msgspec.Struct, kw_only=True):
    client: str
    connected: bool
    address: str = ""
    subscriptions: int = 0
    waiting: int = 0
    """Deliveries above QoS 0 that it has not taken."""
    under_way: int = 0
    dropped: int = 0
    """What was to wait for it and was beyond the bounds of size or age."""
    moved_to: str = ""
    """Where its session has gone; what still comes for it here is passed on."""


class PeerRow(msgspec.Struct, kw_only=True):
    """Another broker."""

    name: str
    linked: bool
    """There is a link to it; others are reached through somebody."""
    role: str = ""
    """In the tree: parent, child, or nothing."""
    filters: int = 0
    """How many filters it takes to say what it wants."""
    unconfirmed: int = 0
    """What was sent to it and is kept until it says that it has it."""
    clients: int = 0
    """As it said last, and those that were sent there since."""
    events_per_s: float = 0.0
    http: str = ""
    """Where its operators log in, as a URL."""


class NeighborRow(msgspec.Struct, kw_only=True):
    """A broker that clients go to from here."""

    peer: str
    share: float
    """Of all moves, the newer weighing more."""
    uses: int = 0
    weight: float = 0.0
    """The uses, faded until the last one."""
    last_used: float = 0.0
    """Seconds since 1970."""
    copied: bool = False
    """It gets copies of sessions that rest here, if only of some."""
    copied_share: float = 0.0
    """Of how many of them, by where they came from."""
    before: dict[str, float] = {}
    """How much of the weight is of clients that had come from there; this broker itself: from nowhere else."""


class OnwardRow(msgspec.Struct, kw_only=True):
    """A broker that clients may go on to."""

    peer: str
    share: float
    copied: bool = False


class PathRow(msgspec.Struct, kw_only=True):
    """Where those go on to who came from one broker, or (the broker itself) had not been elsewhere."""

    before: str
    share: float
    """Of all who left."""
    onward: list[OnwardRow] = []
    """The likeliest first."""


class HandoffReport(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions follow their clients; the shares are of the last hour."""

    scheme: str = ""
    handoffs: int = 0
    """Sessions that left."""
    hit_rate: float = 0.0
    """Of these, those that found a copy where they went."""
    copies_each: float = 0.0
    false_negatives: float = 0.0
    false_positives: float = 0.0
    copies_held: int = 0
    copies_bytes: int = 0
    """What those held take, of what they may."""
    copies_bytes_max: int = 0
    copies_made: int = 0
    copies_used: int = 0
    copies_refused: int = 0


class AirRow(msgspec.Struct, kw_only=True):
    """Another node without infrastructure."""

    name: str
    heard: bool
    """By this node itself; of others it was told."""
    proximity: float
    """0 where it has missed no beacon, 1 where it will soon be forgotten."""
    filters: int = 0


class AirReport(msgspec.Struct, kw_only=True):
    where: str
    sealed: bool
    """With a key; else anybody may speak."""
    nodes: list[AirRow] = []
    carried: int = 0
    """Events kept for nodes that may still be met."""


class UplinkRow(msgspec.Struct, kw_only=True):
    """A gateway of another site (docs/sites.md)."""

    peer: str
    up: bool
    acts: bool = True
    """Events cross here, and not at another gateway of this site."""
    cycle: str = ""
    """Why it carries nothing: the way on which it leads back here."""
    wanted: int = 0
    """Filters that say what the other side wants of this one."""
    stated: int = 0
    """Those that say what this side wants."""
    waiting: int = 0
    waiting_bytes: int = 0
    dropped: int = 0
    """What was to wait and was beyond the bounds of size or age."""
    events_out: int = 0
    events_in: int = 0
    wire_out: int = 0
    """Bytes, as they travelled."""
    wire_in: int = 0
    plain_out: int = 0
    """Bytes before they were compressed."""
    plain_in: int = 0


class BridgeRow(msgspec.Struct, kw_only=True):
    """An MQTT broker of others."""

    name: str
    address: str
    up: bool
    waiting: int = 0
    events_out: int = 0
    events_in: int = 0
    refused: int = 0
    """What came back from where it went, or did not meet the condition."""


class CellRow(msgspec.Struct, kw_only=True):
    """A part of the globe that a broker owns."""

    prefix: str
    term: int
    box: list[list[float]]
    """Longitudes, then latitudes, each from and to."""


class RingReport(msgspec.Struct, kw_only=True):
    place: tuple[float, ...] = ()
    """Longitude and latitude."""
    cells: list[CellRow] = []
    owners: dict[str, str] = {}
    """By cell, as far as this broker knows."""
    book: int = 0
    """Filters of other brokers that are matched here."""
    book_brokers: int = 0
    homes: int = 0
    """Clients whose whereabouts are known here for others."""
    custody: int = 0
    """Publications that wait for a matching broker."""
    holders: list[str] = []
    """Who keeps this broker's book, and may stand in for it."""
    keeps: list[str] = []
    """Whose books this broker keeps."""
    problem: str = ""


class Report(msgspec.Struct, kw_only=True):
    name: str
    version: str
    uptime_s: float
    troubles: list[str] = []
    leader: str = ""
    hops: int = 0
    peers: list[PeerRow] = []
    air: AirReport | None = None
    site: str = ""
    uplinks: list[UplinkRow] = []
    bridges: list[BridgeRow] = []
    ring: RingReport | None = None
    sessions: int = 0
    connected: int = 0
    subscriptions: int = 0
    handoff: HandoffReport = HandoffReport()
    neighbors: list[NeighborRow] = []
    """The most used first."""
    paths: list[PathRow] = []
    """By where clients came from, the commonest first."""
    clients: list[ClientRow] = []
    """The most burdened ones, at most so many as anybody would look at."""
    interest: list[str] = []
    interest_size: int = 0
    counts: dict[str, float | dict[str, float]] = {}
    http: str = ""
    """Where operators log in, as a URL; empty: nowhere."""
    websocket: str = ""
    """Where web pages speak MQTT with this broker, as a URL; empty: nowhere."""
