"""The shared buffer: one per broker, one copy of each event, the oldest giving way (spec proactive-handoff 2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from math import inf

from godwit.events import Event
from godwit.protocols.handoff.marks import Marks, above, ordered

EventId = tuple[str, int]


class Entry:
    __slots__ = ("event", "moved", "on_disk", "wanted_by")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.wanted_by: set[str] = set()
        self.moved: set[str] = set()
        """For whom it came by way of another broker."""
        self.on_disk = False


class SharedBuffer:
    """Bounded in bytes of payload. `lost` counts by subscriber what was overwritten while still wanted.

    With a disk below nothing is lost: what gives way in memory goes there, and counts no more.
    """

    def __init__(
        self,
        capacity_b: float = inf,
        on_lost: Callable[[str, Event], None] | None = None,
        *,
        disk: bool = False,
    ) -> None:
        self.capacity_b = capacity_b
        self.disk = disk
        self.used_b = 0
        self.lost: Counter[str] = Counter()
        self.on_lost = on_lost
        self._entries: dict[EventId, Entry] = {}
        self._memory: dict[EventId, None] = {}
        """Those that count, in order of arrival."""
        self._by_key: dict[str, dict[EventId, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, event: Event, keys: Collection[str], *, moved: bool = False) -> None:
        """Keep it for these subscribers; a second copy only adds them. What cannot fit at all is lost at once."""
        if not keys:
            return
        entry = self._entries.get(event.id) or self._inserted(event, keys)
        if entry is None:
            return
        for key in keys:
            if key not in entry.wanted_by:
                entry.wanted_by.add(key)
                if moved:
                    entry.moved.add(key)
                self._by_key.setdefault(key, {})[event.id] = None

    def peek(self, key: str, after: Marks) -> list[Event]:
        """All above the marks, as published."""
        found = (self._entries[name].event for name in self._by_key.get(key, ()))
        return ordered(event for event in found if above(event, after))

    def take(self, key: str, after: Marks) -> list[Event]:
        """The same, and the key wants nothing here any more."""
        found = self.peek(key, after)
        self.purge(key)
        return found

    def was_moved(self, key: str, event: Event) -> bool:
        entry = self._entries.get(event.id)
        return entry is not None and key in entry.moved

    def drop(self, key: str, up_to: Marks) -> None:
        """The key has everything up to the marks."""
        wanted = self._by_key.get(key, {})
        self._release(key, [name for name in wanted if name[1] <= up_to.get(name[0], -1)])

    def purge(self, key: str) -> None:
        self._release(key, list(self._by_key.get(key, ())))

    def _release(self, key: str, names: Iterable[EventId]) -> None:
        for name in names:
            del self._by_key[key][name]
            entry = self._entries[name]
            entry.wanted_by.discard(key)
            if not entry.wanted_by:
                self._remove(name)
        if key in self._by_key and not self._by_key[key]:
            del self._by_key[key]

    def _inserted(self, event: Event, keys: Collection[str]) -> Entry | None:
        size_b = len(event.payload)
        if size_b > self.capacity_b and not self.disk:
            self._count_lost(event, keys)
            return None
        while self._memory and self.used_b + size_b > self.capacity_b:
            self._evict(next(iter(self._memory)))
        self.used_b += size_b
        self._memory[event.id] = None
        entry = self._entries[event.id] = Entry(event)
        return entry

    def _evict(self, name: EventId) -> None:
        self._free(name)
        if self.disk:
            return
        entry = self._entries.pop(name)
        for key in entry.wanted_by:
            del self._by_key[key][name]
        self._count_lost(entry.event, entry.wanted_by)

    def _count_lost(self, event: Event, keys: Iterable[str]) -> None:
        for key in keys:
            self.lost[key] += 1
            if self.on_lost is not None:
                self.on_lost(key, event)

    def _free(self, name: EventId) -> None:
        entry = self._entries[name]
        if not entry.on_disk:
            entry.on_disk = True
            del self._memory[name]
            self.used_b -= len(entry.event.payload)

    def _remove(self, name: EventId) -> None:
        self._free(name)
        del self._entries[name]
