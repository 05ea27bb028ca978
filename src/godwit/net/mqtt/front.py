"""What all connections of a broker share: its options and counts, who gets what straight away, one flush, one clock."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from godwit.net.host import LoopTurns
from godwit.net.mqtt.encode import Forms
from godwit.net.mqtt.options import Authenticate, Counts, Options, admit_all
from godwit.net.mqtt.routes import FEW, Routes
from godwit.net.ops.histogram import Histogram
from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.interest.subscribers import Taker
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.streams.frames import Transport

if TYPE_CHECKING:
    from godwit.net.mqtt.connection import Connection

log = logging.getLogger("godwit.mqtt")

Steer = Callable[[str, bool, Transport], tuple[Reason, str] | None]
"""`steer(client, follows, over)`: why a client is not let in though it is who it says. Where it should go instead is
told only to one that `follows`."""


class Arrival(msgspec.Struct, frozen=True):
    """A client that was let in."""

    session: Session
    came: bool
    """Its session was not here when it knocked, and is now: it came from another broker."""
    waited_s: float
    """From when the broker knew who it is until it was in."""


TICK_S = 0.5

"""How exactly silence is measured: one timer looks after all connections."""

TROUBLED_S = 60.0
"""So long after a publication has failed the broker says that it is not well."""

NO_ROOM = "no file descriptors are left, and clients that knock are turned away; allow the broker more (LimitNOFILE)"

SHARE_S, TURN_S = 0.002, 0.004
"""What one client may cost in one turn of the loop, and what all together may of whom something was left over. Whoever
floods the broker waits for itself, and nobody else waits longer than about a turn."""


HELD_S = 0.02
"""So long what is for many may wait for more, while its publisher has said more than could be looked at: to write to a
socket costs as much as to find out who wants an event."""


class Timings:
    """How long clients wait, for operators."""

    def __init__(self) -> None:
        self.delivery = Histogram()
        self.handoff = Histogram()
        self.skipped = 0
        """Deliveries since one was timed."""


SAMPLED = 16
"""Of so many deliveries one is timed: it costs what the others need not pay."""


class Front:
    """One per broker, for all its listeners. Call `begin` in the running loop, and `end` before it stops."""

    def __init__(self, broker: Broker, options: Options | None = None, authenticate: Authenticate = admit_all) -> None:
        self.broker = broker
        self.options = options or Options()
        self.authenticate = authenticate
        self.counts = Counts()
        self.timings = Timings()
        self.steer: Steer = lambda client, follows, over: None
        self.on_opened: Callable[[Arrival], None] = lambda arrival: None
        self.connections: set[Connection] = set()
        self.forms = Forms(broker.steady)
        self.tick = 0
        self.output_share_bytes = self.options.output_bytes_max
        """What may wait for a client that does not read, as many as there are of them now."""
        self._slow = 0
        self.turns = LoopTurns(TURN_S)
        """Of who has more to be looked at than fits into its share: others first, then it again."""
        self.routes = Routes(broker, self.connections)
        self.reading = False
        """What a client said is looked at: answers and deliveries need not wait for another turn of the loop."""
        self._written: list[Connection] = []
        self._flushing = False
        self._holding: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failed_s, self._failure = 0.0, ""
        self._crowded = False

    def publish(self, session: Session, offered: Sequence[tuple[Publication, int]]) -> None:
        """As the broker does; where that fails the broker is not well, whoever was concerned."""
        with self._noting_failure():
            self.broker.publish(session, offered)

    def hand(
        self, session: Session, publications: Sequence[Publication], takers: Sequence[Taker], then: Callable[[], None]
    ) -> list[list[int]]:
        """The same for what the broker need not look at."""
        with self._noting_failure():
            return self.broker.hand(session, publications, takers, then)

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._failed_s, self._failure = self.loop.time(), f"{type(error).__name__}: {error}"
            raise

    def troubles(self) -> list[str]:
        """Why nobody should publish here."""
        lately = self._failure and self.loop.time() - self._failed_s < TROUBLED_S
        found = [f"publishing failed: {self._failure}"] if lately else []
        return [*found, NO_ROOM] if self._crowded else found

    def _look_for_room(self) -> None:
        """The loop turns away who knocks when there are no descriptors left, and tells nobody."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
            crowded = False
        except OSError as error:
            crowded = error.errno in (errno.EMFILE, errno.ENFILE)
        if crowded and not self._crowded:
            log.error("%s", NO_ROOM, extra={"connections": self.counts.connections})
        elif self._crowded and not crowded:
            log.warning("there are file descriptors again", extra={"connections": self.counts.connections})
        self._crowded = crowded

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "call begin() first"
        return self._loop

    def begin(self) -> None:
        """Start the clock; calling it again does nothing."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(TICK_S, self._look_around)

    def end(self, reason: Reason = Reason.SERVER_SHUTTING_DOWN, text: str = "the broker is shutting down") -> None:
        """Say goodbye to all clients."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections):
            connection.closed(reason, text)

    def later(self, call: Callable[..., object], *arguments: object) -> None:
        self.loop.call_soon(call, *arguments)

    def keep(self, task: asyncio.Future[None]) -> None:
        """The loop holds tasks only weakly."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def flush_soon(self, connection: Connection) -> None:
        """One write for each connection, at the end of what is read now, or of this turn of the loop."""
        if not self.reading and (not self._written or self._holding is not None):
            self._flush_in_turn()
        self._written.append(connection)

    def flush_read(self, more: bool = False) -> None:
        """What came from one client is looked at; whoever set `reading` calls this. What is for few leaves now. What is
        for many waits for the end of this turn: others who have said something may have more for the same ones. Where
        the client itself has `more` for many it waits for that, unless anybody else is to be told something."""
        self.reading = False
        if len(self._written) <= FEW:
            self.flush()
        elif not more:
            self._flush_in_turn()
        elif self._holding is None and not self._flushing:
            self._holding = self.loop.call_later(HELD_S, self.flush)

    @property
    def is_holding(self) -> bool:
        """Whether what is for many waits for more of its publisher."""
        return self._holding is not None

    def _flush_in_turn(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what was said."""
        self._flushing = False
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None
        if not self._written:
            return
        written, self._written = self._written, []
        self.forms.forget()
        for connection in written:
            connection.flush()

    def one_slower(self, change: int) -> None:
        """One more client does not read as fast as it is written to (1), or one less (-1): they share what may wait."""
        self._slow += change
        options = self.options
        share = options.backlog_bytes_max // max(self._slow, 1)
        self.output_share_bytes = min(options.output_bytes_max, share)

    def _look_around(self) -> None:
        self.tick += 1
        self._look_for_room()
        self._timer = self.loop.call_later(TICK_S, self._look_around)
        for connection in list(self.connections):
            if connection.patience and self.tick - connection.heard > connection.patience:
                connection.lose_patience()
            elif connection.paused:
                connection.look_at_output()
