"""Between a front (MQTT, a simulated client) and the broker: what is asked, what is answered, who is called."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import msgspec

from godwit.filters.filters import FilterSet
from godwit.protocols.broker.publication import Publication

if TYPE_CHECKING:
    from godwit.protocols.broker.session.state import Session


class Reason(IntEnum):
    """Why something was refused or ended. The numbers are MQTT's, which everybody knows."""

    OK = 0
    NO_SUBSCRIPTION = 17
    UNSPECIFIED = 128
    PROTOCOL_ERROR = 130
    IMPLEMENTATION_SPECIFIC = 131
    CLIENT_ID_NOT_VALID = 133
    BAD_USER_NAME_OR_PASSWORD = 134
    NOT_AUTHORIZED = 135
    SERVER_BUSY = 137
    SERVER_SHUTTING_DOWN = 139
    SESSION_TAKEN_OVER = 142
    TOPIC_FILTER_INVALID = 143
    TOPIC_NAME_INVALID = 144
    PACKET_ID_NOT_FOUND = 146
    RECEIVE_MAX_EXCEEDED = 147
    MESSAGE_RATE_TOO_HIGH = 150
    QUOTA_EXCEEDED = 151
    ADMINISTRATIVE_ACTION = 152
    PAYLOAD_FORMAT_INVALID = 153
    USE_ANOTHER_SERVER = 156


class RefusedError(Exception):
    """The client asked for something it cannot have; nothing has changed."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class RetainHandling(IntEnum):
    ALWAYS = 0
    IF_NEW = 1
    NEVER = 2


class Lasting(IntEnum):
    """Whether a subscription is told what is, and what changes (docs/lasting.md). A thing that is a subspace, and no
    point, matches where it has something in common with what is wanted, or only where all of it is wanted."""

    NO = 0
    OVERLAP = 1
    COVER = 2


class Subscription(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a client wants: a topic filter, and perhaps a condition on the content.

    `key` names it within the session: subscribing under the same key replaces, unsubscribing names it. For MQTT that is
    the topic filter as the client wrote it.
    """

    key: str
    topics: str = "#"
    condition: str = ""
    """The text of a filter; empty: all content. It is parsed once, by `Broker.subscribe`."""
    group: str = ""
    """Members of a group with the same topics and condition share its events: each goes to one of them."""
    qos: int = 2
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: RetainHandling = RetainHandling.ALWAYS
    identifier: int = 0
    lasting: Lasting = Lasting.NO
    quiet: bool = False
    """Of a lasting one: that something which matches has changed, and still matches, is not told."""
    since: float | None = None
    """What was published since then is wanted too, in seconds since 1970: it comes first (docs/lasting.md)."""


class Will(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    publication: Publication
    delay_s: float = 0.0


class Grant(msgspec.Struct, frozen=True):
    """What a client may do; None: everything. A subscription must be covered, a publication matched."""

    publish: FilterSet | None = None
    subscribe: FilterSet | None = None


ALL = Grant()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may cost; what it sends beyond is refused with a reason."""

    subscriptions_max: int = 1_000
    filter_bytes_max: int = 4_096
    levels_max: int = 16_000
    """Levels of topic filters that go deeper than 16: each level takes memory of its own."""
    queue_max: int = 100_000
    """Deliveries that wait for one session; beyond it the oldest is dropped and counted."""
    queue_bytes_max: int = 64 * 1024 * 1024
    queue_memory_max: int = 1024 * 1024
    """What of them is kept in memory, about; the rest is on the disk until its turn comes."""
    queue_age_max_s: float = 7 * 24 * 3600.0
    view_max: int = 10_000
    """Things that a client may know of one lasting subscription; others wait until one of them has left."""


DEFAULT = Limits()
"""One for all of whom nothing else is said."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What all clients together may cost; what would be more is refused with a reason, and counted."""

    sessions_max: int = 250_000
    retained_max: int = 250_000
    """Topics with a retained publication."""
    retained_bytes_max: int = 256 * 1024 * 1024


TOKEN = "godwit-token"
"""The user property by which an MQTT client is given a token, and shows it."""

HANDOFF_WAIT = "godwit-handoff-wait-s"
"""The user property by which it is told how long brokers wait for each other."""

BACK = "the client has connected again"
AWAY = "the client has connected at another broker"
"""Why a connection ends that another one of its client takes over."""

UNSURE = "?"
"""Before a token: the client has asked to be let in since it was given it, and had no answer."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A client that wants in, known to be who it says."""

    client: str
    clean: bool = True
    expiry_s: float = 0.0
    """How long the session outlives the connection; infinity: until the client comes back."""
    inflight_max: int = 65_535
    """How many deliveries above QoS 0 the client wants unacknowledged at most."""
    will: Will | None = None
    previous: str = ""
    """The broker where the client was before, if it says so; it saves nothing where places are known, and helps where
    they are not."""
    token: str = ""
    """What the session's `token` was when the client was in last, wherever that was: it says where the session is, and
    proves that nothing can have happened to it since then, so that a copy of it is good. A client that has asked to be
    let in since then and had no answer puts `UNSURE` before it."""
    grant: Grant = ALL
    limits: Limits = Limits()


class Delivery(msgspec.Struct, frozen=True):
    """One publication on its way to one client."""

    publication: Publication
    qos: int
    retain: bool = False
    identifiers: tuple[int, ...] = ()
    number: int = 0
    """The packet identifier; 0 at QoS 0."""
    again: bool = False
    """It was sent before, over a connection that is gone."""
    view: str = ""
    """The view that it tells a change of, where it is one; what change that is stands in its user properties."""


class Outlet(Protocol):
    """A connection, as the broker sees it. The broker calls; none of these calls back into the broker at once."""

    def opened(self, session: Session, present: bool) -> None:
        """The client is in; `present` where its session was kept. May come long after `Broker.open`: the session may
        have to be fetched from another broker. Deliveries follow this call."""

    def refused(self, reason: Reason, text: str) -> None:
        """The client is not let in."""

    def takes_more(self) -> bool:
        """False where what was delivered has not left yet: the broker then waits with what is above QoS 0, until it is
        called with `Broker.go_on`."""

    def deliver(self, delivery: Delivery) -> None: ...

    def release(self, number: int) -> None:
        """QoS 2, third step: the client may forget the number (PUBREL)."""

    def accepted(self, number: int, qos: int, reason: Reason) -> None:
        """A publication of this client is safe (PUBACK, PUBREC), or refused."""

    def completed(self, number: int) -> None:
        """A number that the client released is free again (PUBCOMP)."""

    def closed(self, reason: Reason, text: str) -> None:
        """The broker has done with this connection: say why and hang up."""
