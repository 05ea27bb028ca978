"""A clock for ages: it goes on whatever becomes of the calendar.

The calendar of a machine may be wrong by days, and be set while a broker runs. How long something has waited, and when
it expires, must not hang on that. This clock shows what the calendar showed when the broker first started, and moves
with the host's own time since then. How long a broker was down the host's time tells too, as long as the machine was
not started again meanwhile; after that nobody knows but the calendar.
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
    host: float = 0.0
    boot: str = ""
    """The start of the machine since which the host's time counts; empty where that is not known."""


class Steady:
    """Call `now`. Several on one host and store agree, if they are made in one turn and `keep` is called of one.
    `boot` names the start of the machine, where the host's time goes on from one start of the broker to the next."""

    def __init__(self, host: Host, store: Store, calendar: Callable[[], float], boot: str = "") -> None:
        self._host = host
        self._store = store
        self._calendar = calendar
        self._boot = boot
        self._base = self._begun() - host.now()

    def now(self) -> float:
        """Seconds; about those since 1970."""
        return self._base + self._host.now()

    def keep(self) -> None:
        """Note on the disk what the clocks show, now and every while from now on: after a crash in the first minute a
        calendar that was set back would count, too."""
        note = Note(self.now(), self._calendar(), self._host.now(), self._boot)
        self._store.put("meta", "clock", 0, msgspec.msgpack.encode(note))
        self._host.after(NOTED_S, self.keep)

    def _begun(self) -> float:
        """A calendar that was set back says nothing of how long this broker was down."""
        for what, _, row in self._store.load("meta"):
            if what == "clock":
                note = msgspec.msgpack.decode(row, type=Note)
                if self._boot and note.boot == self._boot:
                    return note.steady + max(0.0, self._host.now() - note.host)
                return note.steady + max(0.0, self._calendar() - note.calendar)
        return self._calendar()
