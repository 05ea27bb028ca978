"""How far somebody has come with each publisher: the vector form of the spec's message IDs (A13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from godwit.events import Event

Marks = Mapping[str, int]
"""The last sequence number by publisher; who is not there has said nothing yet."""

NOTHING: Marks = {}


def above(event: Event, marks: Marks) -> bool:
    return event.sequence > marks.get(event.publisher, -1)


def merged(one: Marks, other: Marks) -> dict[str, int]:
    """The further of the two, publisher by publisher."""
    both = dict(one)
    for publisher, sequence in other.items():
        if sequence > both.get(publisher, -1):
            both[publisher] = sequence
    return both


def raised(marks: Marks, publisher: str, sequence: int) -> Marks:
    """With one publisher at least so far; the same marks where it is."""
    return marks if sequence <= marks.get(publisher, -1) else {**marks, publisher: sequence}


def reaches(one: Marks, other: Marks) -> bool:
    """Whether the first is at least as far with everybody."""
    return all(one.get(publisher, -1) >= sequence for publisher, sequence in other.items())


def ordered(events: Iterable[Event]) -> list[Event]:
    """As published; between publishers there is no order but a fixed one."""
    return sorted(events, key=lambda event: (event.sequence, event.publisher))
