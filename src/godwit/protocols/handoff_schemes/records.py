"""What a broker keeps of a subscriber: its own, or a copy of another broker's."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from godwit.events import Event
from godwit.protocols.handoff_schemes.lifecycle import Life, Step, after
from godwit.protocols.handoff_schemes.marks import Marks
from godwit.protocols.handoff_schemes.messages import Control, CtxRequest, Moved, Wishes
from godwit.protocols.host import NodeId, Timer


class Kind(Enum):
    REAL = auto()
    """The subscriber is attached here, or was last."""
    DUMMY = auto()


class Mode(Enum):
    ACTIVE = auto()
    PASSIVE = auto()


REAL, ACTIVE = Kind.REAL, Mode.ACTIVE
"""Asked of every record for every event; a member of an enumeration takes longer to find."""


class Record:
    """One subscriber at one broker. `attached` is what the broker believes; it may not have noticed yet."""

    def __init__(self, subscriber: NodeId, wishes: Wishes, kind: Kind, mode: Mode, epoch: int = 0) -> None:
        self.subscriber = subscriber
        self.wishes = wishes
        self.kind = kind
        self.mode = mode
        self.epoch = epoch
        self.controller: NodeId = ""
        self.propagated_from: NodeId = ""
        self.marks: Marks = {}
        self.sent: Marks = {}
        """Up to here it was passed on to the attached subscriber, acknowledged or not."""
        self.life = Life.START
        self.attached = False
        self.came_from: NodeId = ""
        """The broker that the subscriber named when it came here last."""
        self.timeout: Timer | None = None
        self.fetches: dict[int, NodeId] = {}
        """Contexts under way to here: the attachment they were asked for, and who was asked."""
        self.fallbacks: dict[int, list[NodeId]] = {}
        """For the same attachments: who else may have the context, if that one does not know it."""
        self.forwarded: Marks = {}
        self.woken_for = 0
        """The attachment on whose behalf this copy was woken last."""
        self.catching_up = False
        """The catch-up of that attachment has begun and its end has not come."""
        self.held_for = 0
        """The attachment that took over before that end: nothing above `forwarded` is delivered. 0: none."""
        self.guard: Timer | None = None
        self.holders: tuple[NodeId, ...] = ()
        """Pooled memory: all who collect for this subscriber, as told when they were woken."""
        self.recalls: set[tuple[NodeId, int]] = set()
        """Who was asked for events that gave way here, and for which attachment. Nothing is delivered before."""
        self.called_in: list[Event] = []
        """What has come of them; it goes out with the backlog, however small the memory."""
        self.untold: list[tuple[NodeId, int]] = []
        """Who hears of which move when those events have come, since then they may be thrown away."""
        self.moved: tuple[NodeId, Moved] | None = None
        """The subscriber is elsewhere; this record goes as soon as nobody needs it."""
        self.requests: list[tuple[NodeId, CtxRequest]] = []
        self.queued: list[tuple[NodeId, Control]] = []

    @property
    def is_real(self) -> bool:
        return self.kind is REAL

    @property
    def is_active(self) -> bool:
        return self.mode is ACTIVE

    @property
    def held(self) -> bool:
        return self.held_for > 0 or bool(self.recalls)

    @property
    def whole(self) -> bool:
        """Nothing of its context is still under way."""
        return not self.fetches and not self.held

    def matches(self, event: Event) -> bool:
        values = event.values()
        return any(wish.matches(values) for wish in self.wishes.values())

    def step(self, step: Step) -> None:
        self.life = after(self.life, step)

    def gone(self) -> None:
        """Through the steps of the table to where the subscriber is elsewhere."""
        for life, step in (
            (Life.MOVE_IN, Step.READY),
            (Life.CONNECTED, Step.NO_REPLY),
            (Life.DISCONNECTED, Step.MOVED),
        ):
            if self.life is life:
                self.step(step)

    def arrive(self) -> None:
        """From elsewhere; its context may still be under way."""
        self.gone()
        self.step(Step.ARRIVE)

    def keep(self) -> None:
        """It will not be given up for its subscriber's absence."""
        if self.timeout is not None:
            self.timeout.cancel()
            self.timeout = None

    def quiet(self) -> None:
        """No timer of this record fires any more."""
        self.keep()
        if self.guard is not None:
            self.guard.cancel()
            self.guard = None


class CatchUp:
    """Forwarding to a neighbor that was told to wake up, on behalf of one attachment."""

    __slots__ = ("began", "epoch", "marks", "peer", "subscriber", "up_to", "wants")

    def __init__(
        self, subscriber: NodeId, peer: NodeId, epoch: int, marks: Marks, wants: Callable[[Event], bool]
    ) -> None:
        self.subscriber = subscriber
        self.peer = peer
        self.epoch = epoch
        self.marks = marks
        self.wants = wants
        self.up_to: Marks | None = None
        """Where it ends; None until the neighbor has answered."""
        self.began = False
        """Whether anything was sent after; who may have it all already is asked first."""
