"""The message catalogue of spec proactive-handoff 2.4. `epoch` is the number of the attachment a message is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.handoff_schemes.marks import NOTHING, Marks
from godwit.protocols.host import Message, NodeId

Whole = Annotated[int, msgspec.Meta(ge=0)]
Wishes = Mapping[str, Filter]
"""Subscriptions of one subscriber by name."""
NO_WISHES: Wishes = {}

HEADER_B = 64
"""What a control message weighs; a filter as much again."""


class Control(Message, frozen=True):
    """About one subscriber."""

    subscriber: NodeId
    epoch: Whole = 0

    @property
    def size_b(self) -> int:
        return HEADER_B * (1 + len(getattr(self, "wishes", ())))


class Connect(Control, frozen=True):
    """A client comes; `previous` is the last broker that accepted it, empty at first. `marks` is what it has seen, and
    where `sure` is set, all that it wants is above them. `tried` are brokers that it has called since `previous`, the
    last first, without hearing whether it was let in."""

    previous: NodeId = ""
    wishes: Wishes = NO_WISHES
    marks: Marks = NOTHING
    sure: bool = False
    tried: tuple[NodeId, ...] = ()
    home: NodeId = ""
    """The first broker that let the client in (home-broker scheme)."""


class Connected(Control, frozen=True):
    """The broker accepts: from now on it is the client's last one. At first contact `since` says where it begins."""

    since: Marks | None = None


class Unsubscribe(Control, frozen=True):
    pass


class Leaving(Control, frozen=True):
    """An announced departure (JEDI's moveOut); `to` is the next broker, empty where the client does not know."""

    to: NodeId = ""


class Visit(Control, frozen=True):
    """Home-broker scheme: the subscriber is with the sender; what comes for it goes there."""


class Ping(Control, frozen=True):
    pass


class Pong(Control, frozen=True):
    pass


class Publish(Message, frozen=True):
    event: Event

    @property
    def size_b(self) -> int:
        return HEADER_B + len(self.event.payload)


class Deliver(Control, frozen=True):
    """`transferred`: it came here by way of another broker, not by the flood."""

    event: Event = msgspec.field(default_factory=lambda: Event("-", 0))
    transferred: bool = False

    @property
    def size_b(self) -> int:
        return HEADER_B + len(self.event.payload)


class Ack(Control, frozen=True):
    """AUTO acknowledgement: the event and all of its publisher before it are consumed."""

    publisher: str = ""
    sequence: int = 0


class StoreSub(Control, frozen=True):
    wishes: Wishes = NO_WISHES


class Activate(Control, frozen=True):
    """With `wishes` it brings the whole context to a neighbor that had no copy."""

    marks: Marks = NOTHING
    wishes: Wishes = NO_WISHES
    holders: tuple[NodeId, ...] = ()
    """Pooled memory: all who collect for this subscriber now, in one order for everybody."""


class Recall(Control, frozen=True):
    """Pooled memory: the subscriber is here, and these events are with the receiver."""

    events: tuple[tuple[str, int], ...] = ()


class Recalled(Control, frozen=True):
    """What of them was still there."""

    events: tuple[Event, ...] = ()

    @property
    def size_b(self) -> int:
        return HEADER_B + sum(len(event.payload) + HEADER_B for event in self.events)


class ActivateAck(Control, frozen=True):
    """`complete`: the neighbor had by itself all that came before it woke."""

    seen: Marks = NOTHING
    complete: bool = False


class ActivateMiss(Control, frozen=True):
    pass


class FwdMsg(Control, frozen=True):
    event: Event = msgspec.field(default_factory=lambda: Event("-", 0))

    @property
    def size_b(self) -> int:
        return HEADER_B + len(self.event.payload)


class FwdMsgs(Control, frozen=True):
    """Many at once, which the published schemes do not know."""

    events: tuple[Event, ...] = ()

    @property
    def size_b(self) -> int:
        return HEADER_B + sum(len(event.payload) + HEADER_B for event in self.events)


class FwdEnd(Control, frozen=True):
    pass


class Deactivate(Control, frozen=True):
    pass


class Delete(Control, frozen=True):
    privileged: bool = False


class Moved(Control, frozen=True):
    """`place` is the new broker, where that is not the sender."""

    neighbors: frozenset[NodeId] = frozenset()
    place: NodeId = ""


class MovedAck(Control, frozen=True):
    neighbors: frozenset[NodeId] = frozenset()


class CtxRequest(Control, frozen=True):
    """`place` is where the answer goes, where that is not the sender; `after` is the last attachment known to those who
    have passed it on, so that it never goes in a circle."""

    seen: Marks = NOTHING
    place: NodeId = ""
    after: int = -1


class CtxResponse(Control, frozen=True):
    """A piece of a context. `unknown`: there is none, it timed out or was lost."""

    wishes: Wishes = NO_WISHES
    marks: Marks = NOTHING
    events: tuple[Event, ...] = ()
    last: bool = True
    unknown: bool = False

    @property
    def size_b(self) -> int:
        return HEADER_B * (1 + len(self.wishes)) + sum(len(event.payload) + HEADER_B for event in self.events)


class NbrList(Message, frozen=True):
    neighbors: frozenset[NodeId] = frozenset()

    @property
    def size_b(self) -> int:
        return HEADER_B
