"""Which events somebody has, in few bytes: for each publisher one bit an event from the oldest on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

EventId = tuple[str, int]

SPAN_MAX = 4096
"""Sequence numbers one publisher's bits reach over; what is older than that is left out."""

SPAN_MIN = 64
"""Where room is short, publishers are left out rather than fewer numbers of each told."""


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

    @property
    def size_b(self) -> int:
        return len(msgspec.msgpack.encode(self))

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
    sequences = _by_publisher(events)
    kept = list(sequences)[-publishers_max:]
    return _digest(sequences, kept, SPAN_MAX)


def digest_within(events: Iterable[EventId], size_max_b: int, turn: int = 0) -> Digest:
    """One that is no longer than this, the newest of each publisher first. Where even so not all publishers fit, some
    are named, beginning with the one whose `turn` it is: count on by as many as there are in it."""
    sequences = _by_publisher(events)
    span = SPAN_MAX
    while span >= SPAN_MIN:
        digest = _digest(sequences, list(sequences), span)
        if digest.size_b <= size_max_b:
            return digest
        span //= 2
    names = sorted(sequences)
    start = turn % len(names)
    kept: list[str] = []
    for name in names[start:] + names[:start]:
        if _digest(sequences, [*kept, name], SPAN_MIN).size_b > size_max_b:
            break
        kept.append(name)
    return _digest(sequences, kept, SPAN_MIN)


def _by_publisher(events: Iterable[EventId]) -> dict[str, list[int]]:
    sequences: dict[str, list[int]] = {}
    for publisher, sequence in events:
        found = sequences.pop(publisher, [])
        found.append(sequence)
        sequences[publisher] = found
    return sequences


def _digest(sequences: dict[str, list[int]], publishers: list[str], span: int) -> Digest:
    complete = len(publishers) == len(sequences)
    runs = {}
    for publisher in publishers:
        newest = max(sequences[publisher])
        within = [sequence for sequence in sequences[publisher] if newest - sequence < span]
        complete = complete and len(within) == len(sequences[publisher])
        runs[publisher] = _run(within)
    return Digest(runs, complete)


def _run(sequences: list[int]) -> Run:
    first = min(sequences)
    bits = 0
    for sequence in sequences:
        bits |= 1 << sequence - first
    return Run(first, bits.to_bytes((bits.bit_length() + 7) // 8, "little"))
