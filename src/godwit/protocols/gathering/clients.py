"""What a broker keeps of clients (spec 2.9 to 2.11, 2.14): profiles with buffers, pointers, care-of addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from hashlib import sha1

import msgspec

from godwit.protocols.gathering.messages import CareOf, ClientId, ItemId, Notice, Pointer
from godwit.protocols.host import NodeId, Timer
from godwit.protocols.topology.pastry.keys import BYTES, Key


class Presence(StrEnum):
    ATTACHED = "attached"
    ABSENT = "absent"


class Cause(StrEnum):
    ASSOCIATED = "associated"
    CONFIRMED = "confirmed"
    SILENT = "silent"


LIFE: dict[Presence, dict[Cause, Presence]] = {
    Presence.ATTACHED: {
        Cause.ASSOCIATED: Presence.ATTACHED,
        Cause.CONFIRMED: Presence.ATTACHED,
        Cause.SILENT: Presence.ABSENT,
    },
    Presence.ABSENT: {
        Cause.ASSOCIATED: Presence.ATTACHED,
        # A late confirmation takes its item off the buffer, but it was under way when the client left.
        Cause.CONFIRMED: Presence.ABSENT,
    },
}
"""A profile's life. It begins with an association and ends with a handover, or when its time to live is over."""


class Buffered(msgspec.Struct):
    """A notice that the client has not confirmed, with the subscriptions of its that matched."""

    notice: Notice
    sids: tuple[str, ...]
    sent: bool = False


class Profile:
    """An attached or absent client: everything that it has not confirmed, oldest first."""

    def __init__(self, client: ClientId, address: NodeId, epoch: int) -> None:
        self.client = client
        self.address = address
        self.epoch = epoch
        self.presence = Presence.ATTACHED
        self.buffer: dict[ItemId, Buffered] = {}
        self.fails = 0
        self.dropped = 0
        self.timer: Timer | None = None
        self.absent_since_s: float | None = None

    def become(self, cause: Cause) -> None:
        self.presence = LIFE[self.presence][cause]

    def push(self, notice: Notice, sids: tuple[str, ...], buffer_max: int | None = None) -> bool:
        """Whether it is new. A full buffer drops its oldest, and counts it."""
        if notice.item.item in self.buffer:
            return False
        self.buffer[notice.item.item] = Buffered(notice, sids)
        if buffer_max is not None and len(self.buffer) > buffer_max:
            del self.buffer[next(iter(self.buffer))]
            self.dropped += 1
        return True

    def ack(self, item: ItemId) -> bool:
        return self.buffer.pop(item, None) is not None

    def drain(self) -> list[Buffered]:
        drained, self.buffer = list(self.buffer.values()), {}
        return drained


class ProfileStore:
    def __init__(self) -> None:
        self._profiles: dict[ClientId, Profile] = {}

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._profiles.values())

    def __len__(self) -> int:
        return len(self._profiles)

    def get(self, client: ClientId) -> Profile | None:
        return self._profiles.get(client)

    def has(self, client: ClientId) -> bool:
        return client in self._profiles

    def open_or_refresh(self, client: ClientId, address: NodeId, epoch: int) -> Profile:
        profile = self._profiles.get(client)
        if profile is None:
            profile = self._profiles[client] = Profile(client, address, epoch)
        profile.address, profile.epoch, profile.fails, profile.absent_since_s = address, epoch, 0, None
        profile.become(Cause.ASSOCIATED)
        return profile

    def close(self, client: ClientId) -> None:
        profile = self._profiles.pop(client, None)
        if profile is not None and profile.timer is not None:
            profile.timer.cancel()

    def count_attached(self) -> int:
        return sum(profile.presence is Presence.ATTACHED for profile in self._profiles.values())

    def buffered_total(self) -> int:
        return sum(len(profile.buffer) for profile in self._profiles.values())


class PointerTable:
    """A fixed number of pointers after clients that left; the one changed longest ago gives way."""

    def __init__(self, capacity: int, *, epochs: bool = True) -> None:
        self.capacity = capacity
        self.epochs = epochs
        self.evictions = 0
        self._pointers: dict[ClientId, Pointer] = {}

    def __len__(self) -> int:
        return len(self._pointers)

    def __iter__(self) -> Iterator[Pointer]:
        return iter(self._pointers.values())

    def put(self, client: ClientId, broker: Key, epoch: int) -> bool:
        """Ignores what is not newer than the pointer that is there."""
        there = self._pointers.get(client)
        if self.epochs and there is not None and there.epoch >= epoch:
            return False
        self._pointers.pop(client, None)
        if self.capacity <= 0:
            return False
        if len(self._pointers) >= self.capacity:
            del self._pointers[next(iter(self._pointers))]
            self.evictions += 1
        self._pointers[client] = Pointer(client, broker, epoch)
        return True

    def get(self, client: ClientId) -> Pointer | None:
        return self._pointers.get(client)

    def has(self, client: ClientId) -> bool:
        return client in self._pointers

    def remove(self, client: ClientId) -> None:
        self._pointers.pop(client, None)


class CareOfStore:
    """Where clients are, for those whose home this broker is; the higher epoch wins."""

    def __init__(self, *, epochs: bool = True) -> None:
        self.epochs = epochs
        self._entries: dict[ClientId, CareOf] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[CareOf]:
        return iter(self._entries.values())

    def put(self, client: ClientId, broker: Key, epoch: int) -> bool:
        there = self._entries.get(client)
        if self.epochs and there is not None and there.epoch >= epoch:
            return False
        self._entries[client] = CareOf(client, broker, epoch)
        return True

    def get(self, client: ClientId) -> CareOf | None:
        return self._entries.get(client)

    def remove(self, client: ClientId) -> None:
        self._entries.pop(client, None)

    def transfer(self, wanted: Callable[[ClientId], bool]) -> list[CareOf]:
        return [entry for entry in self._entries.values() if wanted(entry.client)]


def home_key(client: ClientId, index: int) -> Key:
    return sha1(client.encode() + b"\0" + bytes((index,)), usedforsecurity=False).digest()[:BYTES]


def home_keys(client: ClientId, count: int) -> tuple[Key, ...]:
    return tuple(home_key(client, index) for index in range(count))
