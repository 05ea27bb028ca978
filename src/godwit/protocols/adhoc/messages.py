"""What brokers without infrastructure say to whoever hears them (spec manet-cbr 2.3): that they are there and what they
want, and events with the brokers they are meant for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from godwit.events import Event
from godwit.filters.filters import FilterSet
from godwit.protocols.adhoc.digest import Digest
from godwit.protocols.host import Message, NodeId

CLOSEST, FARTHEST = 0, 100

Proximity = Annotated[int, msgspec.Meta(ge=CLOSEST, le=FARTHEST)]
"""Hundredths: the published tenths are its multiples of ten, finer estimates fit between, and each is one byte."""

Credit = Annotated[int, msgspec.Meta(ge=0, le=255)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Age = Annotated[float, msgspec.Meta(ge=0)]


class Hint(msgspec.Struct, frozen=True, array_like=True):
    """Somebody else whom I have met, how close I believe it to be, and what it wants."""

    broker: NodeId
    proximity: Proximity
    period_s: Seconds
    wanted: FilterSet


class Beacon(Message, frozen=True):
    """I am here, and this covers all I want. Without filters: nothing any more.

    The other fields are beyond the published beacon, and absent unless their rule is on: when to expect the next
    beacon, where everybody has a period of its own; which events I have, so that carriers know what I lack; whom else I
    have met.
    """

    wanted: FilterSet
    period_s: Seconds | None = None
    have: Digest | None = None
    hints: tuple[Hint, ...] = ()


class Data(Message, frozen=True):
    """An event, and how close anybody who sent this copy has been to each broker believed to want it.

    A message with credit may be sent on by a broker that is no closer to anybody, which costs one. Hints and `age_s`,
    how long others have carried the event, each by its own clock, are beyond the published message.
    """

    event: Event
    credit: Credit = 0
    destinations: dict[NodeId, Proximity] = msgspec.field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    age_s: Age = 0.0


Frame = Beacon | Data
"""All that is on the air."""
