"""The published ways to move a subscriber, by name, and which of them lose events (spec 2.11.4 to 2.11.7)."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Covering(StrEnum):
    """What a destination does where subscribing changes nothing because all of it is covered there already."""

    IGNORED = "ignored"
    """The update goes its way all the same: safe."""
    OUT_OF_BAND = "out of band"
    """It asks the source directly, as published. The request overtakes events in flight: events are lost."""
    LINGERING = "lingering"
    """It asks directly, and the source sends after it what still comes within `linger_s`: safe where delays have an
    upper bound and `linger_s` is at least that of the longest way."""


class Notice(StrEnum):
    """How a rendezvous point tells the source."""

    IN_BAND = "in band"
    DIRECT = "direct"
    """As published: overtakes events in flight and the subscription itself: events are lost."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`rendezvous`: updates go by way of the point of the subscription's type. `pings`: generic mobility.

    `addressed`: an update finds its way by the source's name. Otherwise it is flooded by content: towards adverts that
    it meets, and from there back along subscriptions that cover it.

    `limit_s`: a destination that has waited so long asks the source directly; None waits for ever.
    """

    covering: Covering = Covering.IGNORED
    addressed: bool = True
    rendezvous: bool = False
    notice: Notice = Notice.IN_BAND
    pings: bool = False
    ping_s: float = 0.1
    linger_s: float = 0.0
    limit_s: float | None = None

    @property
    def safe(self) -> bool:
        return self.covering is not Covering.OUT_OF_BAND and self.notice is Notice.IN_BAND


PING_PONG = Rules(pings=True)
ADDRESSED = Rules()
"""The safe one: an in-band marker behind the subscription, hop by hop to the source."""
INCOMPLETE = Rules(addressed=False)
COMPLETE = Rules(addressed=False, covering=Covering.OUT_OF_BAND)
COMPLETE_ADDRESSED = Rules(covering=Covering.OUT_OF_BAND)
LINGERING = Rules(covering=Covering.LINGERING)
RENDEZVOUS = Rules(rendezvous=True)
RENDEZVOUS_COMPLETE = Rules(rendezvous=True, covering=Covering.OUT_OF_BAND)
RENDEZVOUS_DIRECT = Rules(rendezvous=True, notice=Notice.DIRECT)
