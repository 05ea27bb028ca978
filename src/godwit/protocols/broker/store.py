"""What survives a crash: a few tables of small rows, written together.

A broker writes as it goes and asks with `settled` to be called once all of that is safe; acknowledgements leave only
then. Rows are keyed by an owner and a number, which is enough for everything that a broker keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

TABLES = (
    "meta",  # identity, incarnation, reserved numbers: (what, 0)
    "sessions",  # (client, 0); a shadow is (client NUL epoch, 0), what came as a copy (client NUL copy epoch, 0)
    "subscriptions",  # (client, n)
    "bodies",  # publications that somebody still waits for, once each: ("", n)
    "queues",  # deliveries waiting or under way: (client, position)
    "incoming",  # QoS 2 packet ids taken and not yet released, and a digest of each: (client, packet id)
    "retained",  # (topic, 0)
    "outbox",  # what other brokers have not confirmed: ("", number), and up to where each has: (broker, 0)
    "marks",  # how far another broker's stream has come: (broker, 0)
    "places",  # which broker has whose session: (client, 0); turns not made yet: (client, n)
    "peers",  # (address, 0)
    "interests",  # what other brokers want, as last heard: (broker, 0)
    "neighbors",  # where clients go from here, and how often: (broker, 0)
    "air",  # what came from brokers without infrastructure: (where it entered, number there)
    "logins",  # how to recognise a password that was right: (user, 0)
    "gates",  # what a session that moves, or is copied, knows of single brokers: (client, n), shadows as in sessions
    "wills",  # of clients whose sessions end with the connection: (client, 0)
    "spilled",  # publications that wait for slow clients and are not in memory, of this start only: ("", n)
    "ring",  # cells and their owners, what was stated to whom, publications without matching broker: (what, n)
    "passages",  # what came from other sites or bridges, so that it is not taken again: (line, number)
)


class Store(Protocol):
    """All rows written in one turn (one call from the world into a core) become durable at once: a crash leaves all of
    them or none. Turns become durable in their order."""

    on_write: Callable[[], None]
    """Called between two turns, before what they wrote goes to the disk: rows that are put then go with it."""

    def touch(self) -> None:
        """There is something to write, and `on_write` will put it: whoever asks with `settled` waits for that too."""

    def put(self, table: str, owner: str, number: int, value: bytes) -> None: ...

    def delete(self, table: str, owner: str, number: int) -> None: ...

    def drop(self, table: str, owner: str) -> None:
        """Delete all rows of an owner."""

    def load(self, table: str) -> Iterable[tuple[str, int, bytes]]:
        """All rows, by owner and number: for a broker that starts."""

    def get(self, table: str, owner: str, number: int) -> bytes | None:
        """One row, as it was put last."""

    def settled(self, then: Callable[[], None]) -> None:
        """Call `then`, later, once everything written before this is durable; calls keep their order."""


Disk = dict[str, dict[tuple[str, int], bytes]]
"""What is left after a crash: the rows of each table."""


Changes = list[tuple[str, str, int, bytes | None]]
"""Table, owner, number and the row, or None where it goes."""


class MemoryStore:
    """A store for simulation: what was not settled is lost by a crash, as another `MemoryStore` on the disk shows.

    `later(call)` runs the call after a while: once until the disk begins to write, so that a turn is never cut in two,
    and once until it has written. Give it a timer of the host.
    """

    def __init__(self, disk: Disk, later: Callable[[Callable[[], None]], object]) -> None:
        self.disk = disk
        self.later = later
        self._rows = {table: dict(disk.get(table, {})) for table in TABLES}
        self._written: Changes = []
        self._waiting: list[Callable[[], None]] = []
        self._writing = False
        self._touched = False
        self.on_write: Callable[[], None] = _nothing

    def touch(self) -> None:
        self._touched = True
        self._begin()

    def put(self, table: str, owner: str, number: int, value: bytes) -> None:
        self._rows[table][owner, number] = value
        self._written.append((table, owner, number, value))
        self._begin()

    def delete(self, table: str, owner: str, number: int) -> None:
        self._rows[table].pop((owner, number), None)
        self._written.append((table, owner, number, None))
        self._begin()

    def drop(self, table: str, owner: str) -> None:
        for key in [key for key in self._rows[table] if key[0] == owner]:
            self.delete(table, *key)

    def load(self, table: str) -> Iterable[tuple[str, int, bytes]]:
        return [(owner, number, value) for (owner, number), value in sorted(self._rows[table].items())]

    def get(self, table: str, owner: str, number: int) -> bytes | None:
        return self._rows[table].get((owner, number))

    def settled(self, then: Callable[[], None]) -> None:
        self._waiting.append(then)
        self._begin()

    def _begin(self) -> None:
        """Write before long, whether anybody waits for it or not."""
        if not self._writing:
            self._writing = True
            self.later(self._write)

    def _gathered(self) -> tuple[Changes, list[Callable[[], None]]]:
        """All that is to be written now, and who waits for it."""
        if self._touched:
            self._touched = False
            self.on_write()
        written, self._written = self._written, []
        waiting, self._waiting = self._waiting, []
        return written, waiting

    @property
    def _has_more(self) -> bool:
        return bool(self._waiting or self._written or self._touched)

    def _write(self) -> None:
        written, waiting = self._gathered()

        def done() -> None:
            for table, owner, number, value in written:
                rows = self.disk.setdefault(table, {})
                if value is None:
                    rows.pop((owner, number), None)
                else:
                    rows[owner, number] = value
            self._writing = False
            if self._has_more:
                self._begin()
            for then in waiting:
                then()

        self.later(done)


def _nothing() -> None: ...
