"""How much travels over a link, and how fast it may."""

from __future__ import annotations

import msgspec

BURST_S = 0.25
"""A link that was silent may say so much at once."""
WAIT_S = 0.02
"""How often it is looked whether more may leave."""


class Traffic(msgspec.Struct):
    """With one peer, in bytes: on the wire without what TCP and TLS add, and before it was compressed."""

    wire_out: int = 0
    wire_in: int = 0
    plain_out: int = 0
    plain_in: int = 0


class Pace:
    """A bound on bytes a second: ask how many may leave, and say how many did."""

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self._most_b = max(1.0, bytes_per_s * BURST_S)
        self._left_b = self._most_b
        self._time_s: float | None = None

    def room_b(self, now_s: float) -> int:
        passed_s = 0.0 if self._time_s is None else now_s - self._time_s
        self._left_b = min(self._left_b + passed_s * self.bytes_per_s, self._most_b)
        self._time_s = now_s
        return int(self._left_b)

    def spend(self, size_b: int, now_s: float) -> None:
        self.room_b(now_s)
        self._left_b -= size_b
