"""A clock for ages: it goes on whatever becomes of the calendar.

The calendar of a machine may be wrong by days, and be set while a broker runs. How long something has waited, and when
it expires, must not hang on that. This clock shows what the calendar showed when the broker first started, and moves
with the host's own time since then. Only how long a broker was down nobody but the calendar knows.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from godwit.protocols.broker.store import Store
from godwit.protocols.host import Host

NOTED_S = 60.0
"""How often the disk is told what the two clocks show."""


class Note(msgspec.Struct, frozen=True, array_like=True):
    """What the two clocks showed at one moment."""

    steady: float
    calendar: float


class Steady:
    """Call `now`. Several on one host and store agree, if they are made in one turn and `keep` is called of one."""

    def __init__(self, host: Host, store: Store, calendar: Callable[[], float]) -> None:
        self._host = host
        self._store = store
        self._calendar = calendar
        self._base = self._begun() - host.now()

    def now(self) -> float:
        """Seconds; about those since 1970."""
        return self._base + self._host.now()

    def keep(self) -> None:
        """Note on the disk what the clocks show, now and every while from now on: after a crash in the first minute a
        calendar that was set back would count, too."""
        note = Note(self.now(), self._calendar())
        self._store.put("meta", "clock", 0, msgspec.msgpack.encode(note))
        self._host.after(NOTED_S, self.keep)

    def _begun(self) -> float:
        """A calendar that was set back says nothing of how long this broker was down."""
        for what, _, row in self._store.load("meta"):
            if what == "clock":
                note = msgspec.msgpack.decode(row, type=Note)
                return note.steady + max(0.0, self._calendar() - note.calendar)
        return self._calendar()
