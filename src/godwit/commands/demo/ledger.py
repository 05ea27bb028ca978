"""The account of a run: what was published, who wanted it, who got it, when and in which order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import median, quantiles

import msgspec

from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.protocols.host import Record

Fact = tuple[float, str, Record]
"""Seconds, the node that tells it, and what: the rows of every trace."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    published: int
    matched: int
    """Deliveries owed: one for each event and each subscriber that wanted it."""
    delivered: int
    lost: int
    duplicated: int
    out_of_order: int
    unwanted: int
    handoffs: int
    handoff_median_s: float | None
    handoff_95_s: float | None

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.out_of_order or self.unwanted)


class Ledger:
    """Keeps the facts of a run as a trace, and the content of each event."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.contents: dict[tuple[str, int], Mapping[str, Value]] = {}

    def published(self, time_s: float, publisher: str, sequence: int, values: Mapping[str, Value]) -> None:
        self.contents[publisher, sequence] = values
        self.facts.append((time_s, publisher, Record("published", (publisher, sequence), client=publisher)))

    def delivered(self, time_s: float, subscriber: str, publisher: str, sequence: int) -> None:
        self.facts.append((time_s, subscriber, Record("delivered", (publisher, sequence), client=subscriber)))

    def left(self, time_s: float, subscriber: str, broker: str) -> None:
        """`time_s` is when it comes within reach of another broker: being out of reach is no part of a handoff."""
        self.facts.append((time_s, subscriber, Record("detached", client=subscriber, peer=broker)))

    def arrived(self, time_s: float, subscriber: str, broker: str) -> None:
        self.facts.append((time_s, subscriber, Record("attached", client=subscriber, peer=broker)))


def judged(
    facts: Iterable[Fact], contents: Mapping[tuple[str, int], Mapping[str, Value]], wishes: Mapping[str, FilterSet]
) -> Verdict:
    """What the facts come to. Every subscriber must have wanted its wish before the first event was published."""
    owed = {
        (name, event) for event, values in contents.items() for name, wish in wishes.items() if wish.matches(values)
    }
    got: Counter[tuple[str, tuple[str, int]]] = Counter()
    out_of_order = 0
    newest: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    away_since: dict[str, float] = {}
    handoffs_s = []
    for time_s, _, record in facts:
        match record.kind:
            case "delivered" if record.event is not None:
                publisher, sequence = record.event
                got[record.client, record.event] += 1
                out_of_order += sequence < newest[record.client, publisher]
                newest[record.client, publisher] = max(sequence, newest[record.client, publisher])
            case "detached":
                away_since[record.client] = time_s
            case "attached" if record.client in away_since:
                handoffs_s.append(time_s - away_since.pop(record.client))
    return Verdict(
        published=len(contents),
        matched=len(owed),
        delivered=len(got),
        lost=len(owed - got.keys()),
        duplicated=sum(count - 1 for count in got.values()),
        out_of_order=out_of_order,
        unwanted=len(got.keys() - owed),
        handoffs=len(handoffs_s),
        handoff_median_s=median(handoffs_s) if handoffs_s else None,
        handoff_95_s=quantiles(handoffs_s, n=20)[-1] if len(handoffs_s) > 1 else None,
    )
