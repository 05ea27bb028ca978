"""One predicate for all that a broker's clients want (spec manet-cbr F3), short enough for a beacon.

`Interest` reduces it by covering and exact merging, which changes nothing; where that is still too long it is widened
until it fits. It then lets more events through, which costs traffic and never a delivery: what reaches a client is
always checked against its own filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

import msgspec

from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import EVERYTHING, TYPE_ATTRIBUTE, Filter, FilterSet, alternatives
from godwit.filters.merging import imperfect

ALL = FilterSet((EVERYTHING,))


def size_b(part: FilterSet | Filter | AttributeFilter) -> int:
    return len(msgspec.msgpack.encode(part))


SIZE_MIN_B = size_b(ALL)


@lru_cache(maxsize=1_024)
def fitted(wanted: FilterSet, size_max_b: int) -> FilterSet:
    """The set itself where it fits into so many bytes, else one that does and accepts whatever it accepts.

    The widest accepts everything, and a bound below its size is refused.
    """
    if size_max_b < SIZE_MIN_B:
        raise ValueError(f"a summary of {size_max_b} bytes cannot be: at least {SIZE_MIN_B}")
    while size_b(wanted) > size_max_b:
        wanted = _wider(wanted)
    return wanted


def _wider(wanted: FilterSet) -> FilterSet:
    """Half as many filters where that is shorter, else the longest one without its longest demand."""
    halved = alternatives(_halved(wanted.filters))
    if size_b(halved) < size_b(wanted):
        return halved
    longest = max(wanted.filters, key=size_b)
    others = [one for one in wanted.filters if one is not longest]
    return alternatives([*others, _relaxed(longest)])


def _halved(filters: Sequence[Filter]) -> list[Filter]:
    """Filters that ask about the same things, joined two by two; neighbors in the canonical order are most alike."""
    joined: list[Filter] = []
    for _, group in groupby(sorted(filters, key=_subject), key=_subject):
        waiting = list(group)
        while len(waiting) > 1:
            one, other = waiting.pop(), waiting.pop()
            merger = imperfect(other, one)
            joined += [one, other] if merger is None else [merger]
        joined += waiting
    return joined


def _subject(one: Filter) -> tuple[tuple[str, str, str], ...]:
    """The attributes asked about; types are never merged, so that each is a subject of its own."""
    return tuple((a.name, a.kind, repr(a.clause) if a.name == TYPE_ATTRIBUTE else "") for a in one)


def _relaxed(one: Filter) -> Filter:
    """Without its longest demand; that for a type goes last, since it says most."""
    dropped = max(one, key=lambda a: (a.name != TYPE_ATTRIBUTE, size_b(a)))
    return Filter(tuple(a for a in one if a is not dropped))
