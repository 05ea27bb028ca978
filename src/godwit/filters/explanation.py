"""What a filter means: in its canonical form, in Spark SQL, beside another filter, and for one event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.spark import to_spark
from godwit.filters.text import to_text

VALUE_MAX = 60
"""Characters of a value that are shown."""


class Relation(msgspec.Struct, frozen=True):
    """How a filter stands to another. `covers` is certain where true, `overlaps` where false."""

    filter: list[str]
    covers: bool
    covered: bool
    overlaps: bool
    sentence: str


class Alternative(msgspec.Struct, frozen=True, omit_defaults=True):
    """One filter of a set tried on an event: the first of its conditions that failed, and what the event has there."""

    filter: str
    matches: bool
    failed: str | None = None
    because: str | None = None


class Trial(msgspec.Struct, frozen=True):
    event: dict[str, Value]
    matches: bool
    alternatives: list[Alternative]


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    canonical: list[str]
    spark: str | None
    against: Relation | None = None
    event: Trial | None = None


def explanation(filters: FilterSet, other: FilterSet | None, event: dict[str, Value] | None) -> Explanation:
    return Explanation(
        canonical=lines_of(filters),
        spark=_spark(filters),
        against=None if other is None else relation(filters, other),
        event=None if event is None else trial(filters, event),
    )


def lines_of(filters: FilterSet) -> list[str]:
    """One text for each alternative."""
    return [to_text(FilterSet((one,))) for one in filters]


def relation(filters: FilterSet, other: FilterSet) -> Relation:
    covers, covered, overlaps = filters.covers(other), other.covers(filters), filters.overlaps(other)
    return Relation(lines_of(other), covers, covered, overlaps, _RELATIONS[covers, covered, overlaps])


_SAME = "The two say the same: what matches one matches the other."
_COVERS = "It covers the other: whatever matches the other matches it too."
_COVERED = "The other covers it: whatever matches it matches the other too."
_OVERLAP = "Some events may match both, and neither is known to cover the other."
_APART = "No event can match both."

_RELATIONS = {
    (True, True, True): _SAME,
    (True, True, False): _SAME,
    (True, False, True): _COVERS,
    (True, False, False): "It covers the other, which nothing can match.",
    (False, True, True): _COVERED,
    (False, True, False): "The other covers it, because nothing can match it.",
    (False, False, True): _OVERLAP,
    (False, False, False): _APART,
}


def trial(filters: FilterSet, event: dict[str, Value]) -> Trial:
    return Trial(event, filters.matches(event), [_alternative(one, event) for one in filters])


def _alternative(one: Filter, event: Mapping[str, Value]) -> Alternative:
    text = to_text(FilterSet((one,)))
    for attribute in one:
        if not attribute.matches(event):
            failed = to_text(FilterSet((Filter((attribute,)),)))
            return Alternative(text, False, failed, "; ".join(_found(attribute, event)))
    return Alternative(text, True)


def _found(attribute: AttributeFilter, event: Mapping[str, Value]) -> Iterator[str]:
    """What the event has for each attribute that the condition speaks of."""
    for name in dict.fromkeys(attribute.names()):
        if name not in event:
            yield f"there is no {name}"
        else:
            value = msgspec.json.encode(event[name]).decode()
            yield f"{name} is {value if len(value) <= VALUE_MAX else value[: VALUE_MAX - 1] + '…'}"


def _spark(filters: FilterSet) -> str | None:
    try:
        return to_spark(filters)
    except FilterError:
        return None
