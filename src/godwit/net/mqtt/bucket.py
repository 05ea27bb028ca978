"""How much a client may send: tokens trickle into a bucket, and everything it sends takes some out."""

from __future__ import annotations


class Bucket:
    """Holds what comes in `burst_s` seconds; full at first."""

    __slots__ = ("_left", "_most", "_rate_per_s", "_time")

    def __init__(self, rate_per_s: float, burst_s: float, now: float) -> None:
        self._rate_per_s = rate_per_s
        self._most = self._left = rate_per_s * burst_s
        self._time = now

    def take(self, amount: float, now: float) -> bool:
        """False where there was not enough."""
        left = min(self._left + (now - self._time) * self._rate_per_s, self._most) - amount
        self._left, self._time = left, now
        return left >= 0
