"""The shared buffer: one per broker, one copy of each event, the oldest giving way (spec proactive-handoff 2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from math import inf

from godwit.events import Event
from godwit.protocols.handoff_schemes.marks import Marks, above, ordered

EventId = tuple[str, int]
LATEST = ""
"""Nobody's name: under it the latest events are kept, whoever wants them."""


class Entry:
    __slots__ = ("event", "kept", "moved", "on_disk", "wanted_by")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.wanted_by: set[str] = set()
        self.moved: set[str] = set()
        """For whom it came by way of another broker."""
        self.kept = False
        """Others rely on this broker for it: it gives way after all that others keep."""
        self.on_disk = False


class SharedBuffer:
    """Bounded in bytes of payload. `lost` counts by subscriber what was overwritten while still wanted.

    With a disk below nothing is lost: what gives way in memory goes there, and counts no more. `latest_b` of the
    capacity are for the latest events, so that who appears soon after leaving elsewhere finds what it has missed.
    """

    def __init__(
        self,
        capacity_b: float = inf,
        on_lost: Callable[[str, Event], None] | None = None,
        *,
        disk: bool = False,
        latest_b: float = 0.0,
        keeps: Callable[[str, Event], bool] | None = None,
    ) -> None:
        self.capacity_b = capacity_b
        self.latest_b = latest_b
        self._latest_used_b = 0
        self._floor: dict[str, int] = {}
        """By publisher: up to here its events are not remembered, or were never seen."""
        self.disk = disk
        self.used_b = 0
        self.lost: Counter[str] = Counter()
        self.on_lost = on_lost
        self._entries: dict[EventId, Entry] = {}
        self._memory: dict[EventId, None] = {}
        """Those that count, in order of arrival."""
        self._kept: dict[EventId, None] = {}
        """Those that others rely on, which count as well."""
        self.keeps = keeps
        """Pooled memory: whether this broker is the one to keep an event for a subscriber."""
        self.missing: dict[str, dict[EventId, None]] = {}
        """Pooled memory: what gave way here and may be elsewhere, by subscriber."""
        self._by_key: dict[str, dict[EventId, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, event: EventId) -> bool:
        return event in self._entries

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
                if self.keeps is not None and key != LATEST and self.keeps(key, event):
                    self._keep(event.id)

    def remember(self, event: Event) -> None:
        """Keep it as one of the latest, in the order of arrival."""
        self._floor.setdefault(event.publisher, event.sequence - 1)
        self._latest_used_b += len(event.payload)
        self.put(event, [LATEST])
        while self._latest_used_b > self.latest_b:
            self._release(LATEST, [next(iter(self._by_key[LATEST]))])

    def recall(self, after: Marks) -> list[Event] | None:
        """All above the marks, whoever wanted them; None where some are not remembered any more."""
        if any(after.get(publisher, -1) < floor for publisher, floor in self._floor.items()):
            return None
        return self.peek(LATEST, after)

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

    def discard(self, key: str, unwanted: Callable[[Event], bool]) -> None:
        names = [name for name in self._by_key.get(key, ()) if unwanted(self._entries[name].event)]
        self._release(key, names)

    def purge(self, key: str) -> None:
        self.missing.pop(key, None)
        self._release(key, list(self._by_key.get(key, ())))

    def _release(self, key: str, names: Iterable[EventId]) -> None:
        for name in names:
            del self._by_key[key][name]
            entry = self._entries[name]
            entry.wanted_by.discard(key)
            if key == LATEST:
                self._unremember(entry.event)
            if not entry.wanted_by:
                self._remove(name)
        if key in self._by_key and not self._by_key[key]:
            del self._by_key[key]

    def _inserted(self, event: Event, keys: Collection[str]) -> Entry | None:
        size_b = len(event.payload)
        if size_b > self.capacity_b and not self.disk:
            self._count_lost(event, keys)
            if LATEST in keys:
                self._unremember(event)
            return None
        while (self._memory or self._kept) and self.used_b + size_b > self.capacity_b:
            self._evict(next(iter(self._memory or self._kept)))
        self.used_b += size_b
        self._memory[event.id] = None
        entry = self._entries[event.id] = Entry(event)
        return entry

    def keep_all(self, key: str) -> None:
        """Nobody else has to have what waits for this one."""
        for name in self._by_key.get(key, ()):
            self._keep(name)

    def _keep(self, name: EventId) -> None:
        entry = self._entries[name]
        if not entry.kept and not entry.on_disk:
            entry.kept = True
            del self._memory[name]
            self._kept[name] = None

    def found(self, names: Iterable[EventId]) -> tuple[Event, ...]:
        """Those of them that are here, for whomever they were kept."""
        return tuple(self._entries[name].event for name in names if name in self._entries)

    def _evict(self, name: EventId) -> None:
        self._free(name)
        if self.disk:
            return
        entry = self._entries.pop(name)
        for key in entry.wanted_by:
            del self._by_key[key][name]
            if self.keeps is not None and key != LATEST:
                self.missing.setdefault(key, {})[name] = None
        if LATEST in entry.wanted_by:
            self._unremember(entry.event)
        self._count_lost(entry.event, entry.wanted_by)

    def _count_lost(self, event: Event, keys: Iterable[str]) -> None:
        for key in keys:
            if key == LATEST:
                continue
            self.lost[key] += 1
            if self.on_lost is not None:
                self.on_lost(key, event)

    def _unremember(self, event: Event) -> None:
        self._latest_used_b -= len(event.payload)
        self._floor[event.publisher] = max(self._floor[event.publisher], event.sequence)

    def _free(self, name: EventId) -> None:
        entry = self._entries[name]
        if not entry.on_disk:
            entry.on_disk = True
            del (self._kept if entry.kept else self._memory)[name]
            self.used_b -= len(entry.event.payload)

    def _remove(self, name: EventId) -> None:
        self._free(name)
        del self._entries[name]
