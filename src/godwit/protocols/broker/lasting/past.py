"""What was published at this broker before now: how others ask for it, and how it answers (docs/lasting.md, "Replay").

Whoever answers keeps nothing of the question: whoever asks says how far it has come. So neither a crash here nor a move
of the client needs anything from this broker.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.protocols.broker.fabric.base import Fabric
from godwit.protocols.broker.messages import Position, Recall, Recalled
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import condition_of, wanted_filters
from godwit.protocols.host import NodeId

BEGINNING: Position = ("", 0)


class Stretch(msgspec.Struct, frozen=True):
    """Some of what is wanted, and how far has been read for it."""

    rows: tuple[tuple[int, Publication], ...]
    """Each with how many rows of the file are before what follows it."""
    position: Position
    until: float = 0.0
    """By the calendar: nothing else was published up to then; 0 where there is more behind the position."""
    is_all: bool = False
    """Nothing that is wanted was published before this moment and is not here. Only where that was asked for; the rows
    need no places then."""
    lost: str = ""
    """What was asked for and is not there any more."""


class Past(Protocol):
    """An archive, as its broker sees it."""

    def read(
        self, since: float, position: Position, wanted: FilterSet, final: bool, then: Callable[[Stretch], None]
    ) -> None:
        """Some rows behind the position that were published since then and are wanted. `then` follows later, in a turn
        of the broker of its own. With `final`: all, where they are few, what is not yet on the disk among them."""


class Recollection:
    """Answers those who ask what was published here. `past` is set where there is an archive."""

    def __init__(self, name: NodeId, fabric: Fabric, clock: Callable[[], float]) -> None:
        self.name = name
        self.fabric = fabric
        self.clock = clock
        self.past: Past | None = None
        self.is_foreseen = False
        """Whether who asks for the rest has made sure before that all who match know what it wants: in a ring."""

    def recall(self, by: NodeId, asked: Recall, tell: Callable[[Recalled], None]) -> None:
        """`tell` follows, now or later; what is published at this broker behind it, and wanted, comes to whoever asked
        by itself where it says so."""
        # Statements are only followed by newer ones: what is known when it is read is known when it is told.
        knows = self.is_foreseen or by == self.name or self.fabric.heard(by) >= asked.statement
        final = asked.final and knows
        try:
            wanted = _wanted(asked)
        except FilterError:
            wanted = None  # another broker understood it
        if self.past is None or wanted is None:
            tell(_told(asked, Stretch((), asked.position, self.clock(), final)))
        else:
            self.past.read(asked.since, asked.position, wanted, final, lambda found: tell(_told(asked, found)))

    def on_recall(self, origin: NodeId, asked: Recall) -> None:
        self.recall(origin, asked, partial(self._send, origin))

    def _send(self, to: NodeId, told: Recalled) -> None:
        """It may be lost: then it is asked for again, and read again."""
        if self.fabric.is_known(to):
            self.fabric.send((to,), told, durable=False)


def _wanted(asked: Recall) -> FilterSet:
    return condition_of(asked.topics, asked.condition) if asked.condition else wanted_filters(asked.topics, None)


def _told(asked: Recall, found: Stretch) -> Recalled:
    return Recalled(
        asked.client, asked.key, asked.serial, found.rows, found.position, found.until, found.is_all, found.lost
    )
