"""Which events somebody has, in few bytes: for each publisher one bit an event from the oldest on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

EventId = tuple[str, int]

SPAN_MAX = 4096
"""Sequence numbers one publisher's bits reach over; what is older than that is left out."""


class Run(msgspec.Struct, frozen=True, array_like=True):
    """Bit i, the lowest first, is whether `first + i` is there."""

    first: int
    bits: bytes

    def __contains__(self, sequence: int) -> bool:
        at = sequence - self.first
        return 0 <= at < 8 * len(self.bits) and bool(self.bits[at // 8] >> at % 8 & 1)


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """`(publisher, sequence) in digest` is exact for all that went into it.

    Not all of what is there need be in it: where it is not `complete`, silence about a publisher means nothing, and so
    does silence about an event before a run's first.
    """

    runs: dict[str, Run]
    complete: bool = True

    def __contains__(self, event: EventId) -> bool:
        run = self.runs.get(event[0])
        return run is not None and event[1] in run

    def lacks(self, event: EventId) -> bool:
        """Whether its owner surely does not have this event."""
        run = self.runs.get(event[0])
        if run is None:
            return self.complete
        return event[1] not in run and (self.complete or event[1] >= run.first)


def digest_of(events: Iterable[EventId], publishers_max: int) -> Digest:
    """Of events in the order in which they came; the publishers heard last are kept where there are too many."""
    sequences: dict[str, list[int]] = {}
    for publisher, sequence in events:
        found = sequences.pop(publisher, [])
        found.append(sequence)
        sequences[publisher] = found
    kept = list(sequences)[-publishers_max:]
    complete = len(kept) == len(sequences)
    runs = {}
    for publisher in kept:
        newest = max(sequences[publisher])
        within = [sequence for sequence in sequences[publisher] if newest - sequence < SPAN_MAX]
        complete = complete and len(within) == len(sequences[publisher])
        runs[publisher] = _run(within)
    return Digest(runs, complete)


def _run(sequences: list[int]) -> Run:
    first = min(sequences)
    bits = 0
    for sequence in sequences:
        bits |= 1 << sequence - first
    return Run(first, bits.to_bytes((bits.bit_length() + 7) // 8, "little"))
