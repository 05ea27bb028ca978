"""What came of all that was published: lost, twice, out of order, how late, and how soon after each move."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import fmean, median, quantiles

import msgspec

Event = tuple[int, int]
"""The publisher's number, and the event's among its own."""


class Heard(msgspec.Struct, frozen=True, array_like=True):
    time_s: float
    publisher: int
    number: int


class Move(msgspec.Struct, frozen=True, array_like=True):
    """`asked_s` is when the client began to connect, `let_in_s` when the broker had its session ready."""

    asked_s: float
    let_in_s: float
    known: bool
    """Whether the broker knew the session."""


class Story(msgspec.Struct):
    """Of one subscriber."""

    wanted: Collection[Event]
    heard: list[Heard]
    moves: list[Move]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    owed: int
    received: int
    """All arrivals, repetitions too."""
    lost: int
    duplicated: int
    out_of_order: int
    unwanted: int
    moves: int
    unknown: int
    """Moves to a broker that did not know the session."""
    let_in_s: Sequence[float]
    first_s: Sequence[float]
    """From asking to be let in to the first event, for each move that was followed by one."""
    first_due_s: Sequence[float]
    """The same from when it was published, where that was later: who wants one in a hundred waits for that one."""
    delays_s: Mapping[str, float]

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_order or self.unwanted)


def outcome(stories: Sequence[Story], published_s: Mapping[Event, float]) -> Outcome:
    lost = duplicated = out_of_order = unwanted = 0
    let_in_s: list[float] = []
    first_s: list[float] = []
    first_due_s: list[float] = []
    delays_s: list[float] = []
    for story in stories:
        seen: set[Event] = set()
        newest: dict[int, int] = {}
        for heard in story.heard:
            event = heard.publisher, heard.number
            if event in seen:
                duplicated += 1
                continue
            seen.add(event)
            out_of_order += heard.number < newest.get(heard.publisher, -1)
            newest[heard.publisher] = max(heard.number, newest.get(heard.publisher, -1))
            delays_s.append(heard.time_s - published_s[event])
        wanted = set(story.wanted)
        lost += len(wanted - seen)
        unwanted += len(seen - wanted)
        let_in_s += [move.let_in_s - move.asked_s for move in story.moves]
        for move, first in firsts(story):
            first_s.append(first.time_s - move.asked_s)
            first_due_s.append(first.time_s - max(move.asked_s, published_s[first.publisher, first.number]))
    return Outcome(
        owed=sum(len(story.wanted) for story in stories),
        received=sum(len(story.heard) for story in stories),
        lost=lost,
        duplicated=duplicated,
        out_of_order=out_of_order,
        unwanted=unwanted,
        moves=sum(len(story.moves) for story in stories),
        unknown=sum(not move.known for story in stories for move in story.moves),
        let_in_s=let_in_s,
        first_s=first_s,
        first_due_s=first_due_s,
        delays_s={"mean": mean(delays_s), "median": middle(delays_s), "95 %": late(delays_s)},
    )


def firsts(story: Story) -> list[tuple[Move, Heard]]:
    """Each move and the first event that came after it; not where the next move was sooner."""
    found, at = [], 0
    for number, move in enumerate(story.moves):
        until_s = story.moves[number + 1].asked_s if number + 1 < len(story.moves) else float("inf")
        while at < len(story.heard) and story.heard[at].time_s < move.asked_s:
            at += 1
        if at < len(story.heard) and story.heard[at].time_s < until_s:
            found.append((move, story.heard[at]))
    return found


def mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def middle(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def late(values: Sequence[float]) -> float:
    """What 95 of 100 stay below."""
    return quantiles(values, n=20)[-1] if len(values) > 1 else middle(values)
