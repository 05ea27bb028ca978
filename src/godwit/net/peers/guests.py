"""How often strangers may have a broker take part in a key exchange, by where they come from."""

from __future__ import annotations

from collections import OrderedDict

BURST, PER_S = 24.0, 2.0
"""Greetings of one address: so many at once, as when a machine with brokers comes back, and then so many a second."""
WRONG = 4.0
"""What a wrong proof counts: whoever guesses secrets tries one every two seconds."""
HOSTS_MAX = 4_096


class Guests:
    """What is left to each address. An address of which nothing is known has all of it."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """How many greetings, and when that was."""

    def may_greet(self, host: str, now: float) -> bool:
        left = self._now(host, now)
        self._note(host, max(left - 1, 0.0), now)
        return left >= 1

    def was_wrong(self, host: str, now: float) -> None:
        self._note(host, max(self._now(host, now) - WRONG + 1, 1 - WRONG), now)

    def _now(self, host: str, now: float) -> float:
        left, then = self._left.get(host, (BURST, now))
        return min(left + (now - then) * PER_S, BURST)

    def _note(self, host: str, left: float, now: float) -> None:
        self._left[host] = (left, now)
        self._left.move_to_end(host)
        if len(self._left) > HOSTS_MAX:
            self._left.popitem(last=False)
