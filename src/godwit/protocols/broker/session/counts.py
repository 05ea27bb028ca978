"""What a broker has done so far, for whoever draws curves of it."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Plain numbers that only grow, and a few that say how things are now. A front that passes publications straight
    on counts them here too."""

    published: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0])
    """By QoS, from clients of this broker."""
    delivered: list[int] = msgspec.field(default_factory=lambda: [0, 0, 0])
    """By QoS, to clients of this broker, repetitions not counted."""
    repeated: int = 0
    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    """Deliveries that were not made, by reason: queue, expired, age, offline, ended, closed."""
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    """Publications and subscriptions that were not taken, by the name of the reason."""
    forwarded: int = 0
    """Publications sent to other brokers, counted once each."""
    taken: int = 0
    """Publications that came from other brokers."""
    moved_in: int = 0
    moved_out: int = 0
    taken_over: int = 0
    overtaken: int = 0
    """How often a client that had moved was not kept waiting longer for all to have what it said before."""
    copies_made: int = 0
    """Copies of resting sessions given to other brokers, where their clients may appear next."""
    copies_used: int = 0
    """Clients that came here and found a copy that was good."""
    copies_refused: int = 0
    """Copies that other brokers offered and for which there was no room here."""
    handoffs_missed: int = 0
    """Clients that came here from another broker and found no copy that was good."""
    late_duplicates: int = 0
    """What an old session kept and the new one of the same client had taken already: dropped when the two met."""

    sessions: int = 0
    connected: int = 0
    subscriptions: int = 0
    waiting: int = 0
    """Deliveries above QoS 0 that wait or are under way."""
    shadows: int = 0
    copies: int = 0
    """Copies of other brokers' sessions that are held here."""

    def drop(self, reason: str, count: int = 1) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + count

    def refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
