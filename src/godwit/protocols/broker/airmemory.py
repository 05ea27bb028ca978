"""What came from the air, on the disk: else a broker that restarts would be given again all that others still carry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from godwit.protocols.broker.store import Store

TABLE = "air"

Passage = tuple[str, int]


class AirMemory:
    """One row each, written in the turn in which the broker took it, and gone after `age_max_s` by `clock`."""

    def __init__(self, store: Store, age_max_s: float, clock: Callable[[], float]) -> None:
        self.store = store
        self.age_max_s = age_max_s
        self.clock = clock
        rows = [(float(value), line, number) for line, number, value in store.load(TABLE)]
        self._rows = deque(sorted(rows))
        self.forget()

    def __iter__(self) -> Iterator[Passage]:
        """The oldest first."""
        return ((line, number) for _, line, number in self._rows)

    def add(self, passage: Passage) -> None:
        now = self.clock()
        self._rows.append((now, *passage))
        self.store.put(TABLE, *passage, str(now).encode())

    def forget(self) -> None:
        """Also what a clock that went back made too young to be true."""
        now = self.clock()
        while self._rows and not now - self.age_max_s <= self._rows[0][0] <= now + self.age_max_s:
            _, line, number = self._rows.popleft()
            self.store.delete(TABLE, line, number)
