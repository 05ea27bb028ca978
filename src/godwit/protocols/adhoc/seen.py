"""A bounded memory of events: who has it recognises a copy, as long as it is young and not too much came since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from godwit.protocols.adhoc.digest import EventId

Kept = TypeVar("Kept")


class Recent(Generic[Kept]):
    """The last `count_max` events with what is kept of each, none older than `age_max_s`. Times must not go back."""

    def __init__(self, count_max: int, age_max_s: float) -> None:
        self.count_max = count_max
        self.age_max_s = age_max_s
        self._kept: dict[EventId, tuple[float, Kept]] = {}

    def __contains__(self, event: EventId) -> bool:
        return event in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[EventId]:
        """The oldest first."""
        return iter(self._kept)

    def get(self, event: EventId) -> Kept | None:
        found = self._kept.get(event)
        return None if found is None else found[1]

    def add(self, event: EventId, kept: Kept, now_s: float) -> list[Kept]:
        """Remember an event that is not there yet; what had to go for it."""
        gone = self.forget(now_s)
        if len(self._kept) >= self.count_max:
            gone.append(self.drop_oldest())
        self._kept[event] = (now_s, kept)
        return gone

    def forget(self, now_s: float) -> list[Kept]:
        """Drop what is too old, and say what that was."""
        gone = []
        while self._kept and now_s - next(iter(self._kept.values()))[0] > self.age_max_s:
            gone.append(self.drop_oldest())
        return gone

    def drop_oldest(self) -> Kept:
        return self._kept.pop(next(iter(self._kept)))[1]
