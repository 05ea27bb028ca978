"""Messages that do not fit into a frame: cut into parts, and put together again within bounds of memory and time."""

from __future__ import annotations

from collections import Counter, OrderedDict
from struct import Struct

from godwit.protocols.host import NodeId

HEAD = Struct(">IBB")
"""The message's number at its sender, which part this is, and of how many."""

PARTS_MAX = 255
WAIT_S = 5.0
"""How long a message may be incomplete."""


def cut(message: bytes, number: int, room_b: int) -> list[bytes]:
    """Parts of at most `room_b` bytes; `ValueError` where there would be too many."""
    size_b = room_b - HEAD.size
    count = -(-len(message) // size_b)
    if count > PARTS_MAX:
        raise ValueError(f"{len(message):,} bytes do not fit into {PARTS_MAX} parts of {size_b:,}")
    starts = range(0, len(message), size_b)
    return [
        HEAD.pack(number & 0xFFFF_FFFF, index, count) + message[at : at + size_b] for index, at in enumerate(starts)
    ]


class Incomplete:
    __slots__ = ("begun_s", "bytes", "count", "parts")

    def __init__(self, count: int, begun_s: float) -> None:
        self.count = count
        self.begun_s = begun_s
        self.parts: dict[int, bytes] = {}
        self.bytes = 0


class Assembly:
    """`bytes_max` for all that is incomplete; the oldest goes first. `dropped` counts messages, by reason."""

    def __init__(self, bytes_max: int, dropped: Counter[str]) -> None:
        self.bytes_max = bytes_max
        self.dropped = dropped
        self.bytes = 0
        self._open: OrderedDict[tuple[NodeId, int], Incomplete] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, sender: NodeId, part: bytes, now_s: float) -> bytes | None:
        """The message, where this was its last missing part."""
        self._forget(now_s)
        if len(part) <= HEAD.size:
            self.dropped["malformed"] += 1
            return None
        number, index, count = HEAD.unpack_from(part)
        found = self._open.get((sender, number))
        if found is None:
            found = self._open[sender, number] = Incomplete(count, now_s)
        if index >= found.count or count != found.count:
            self.dropped["malformed"] += 1
            self._close(sender, number)
            return None
        if index not in found.parts:
            found.parts[index] = part[HEAD.size :]
            found.bytes += len(part)
            self.bytes += len(part)
        if len(found.parts) == found.count:
            self._close(sender, number)
            return b"".join(found.parts[at] for at in range(found.count))
        while self.bytes > self.bytes_max:
            self._drop_oldest()
        return None

    def _forget(self, now_s: float) -> None:
        while self._open and now_s - next(iter(self._open.values())).begun_s > WAIT_S:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self.dropped["incomplete"] += 1
        self._close(*next(iter(self._open)))

    def _close(self, sender: NodeId, number: int) -> None:
        self.bytes -= self._open.pop((sender, number)).bytes
