"""What a routing table needs from a filter language, and nothing more (spec 1.8).

Tables and protocols are written against `Language`. `FILTERS` is the language of this package; another one, or this one
with counters around it, plugs in without any change to them.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, Protocol, TypeVar

from godwit.filters import merging
from godwit.filters.filters import Filter
from godwit.filters.predicates import Values

F = TypeVar("F")
F_contra = TypeVar("F_contra", contravariant=True)
N_contra = TypeVar("N_contra", contravariant=True)
N = TypeVar("N")


class Language(Protocol[F, N_contra]):
    """Filters must be hashable and equal when they are the same in canonical form."""

    def covers(self, wide: F, narrow: F, /) -> bool: ...
    def overlaps(self, one: F, other: F, /) -> bool: ...
    def matches(self, wanted: F, event: N_contra, /) -> bool: ...
    def merge(self, one: F, other: F, /) -> F | None: ...
    def type_of(self, wanted: F, /) -> str | None: ...


class Filters:
    """Conjunctive filters over events given as mappings from name to value; perfect merging unless told otherwise."""

    def __init__(self, *, imperfect: bool = False, disjunctions: bool = True, integers: bool = False) -> None:
        self.imperfect = imperfect
        self.disjunctions = disjunctions
        self.integers = integers

    def covers(self, wide: Filter, narrow: Filter, /) -> bool:
        return wide.covers(narrow)

    def overlaps(self, one: Filter, other: Filter, /) -> bool:
        return one.overlaps(other)

    def matches(self, wanted: Filter, event: Values, /) -> bool:
        return wanted.matches(event)

    def merge(self, one: Filter, other: Filter, /) -> Filter | None:
        """A filter that covers both, or None where the rules join none."""
        combine = merging.imperfect if self.imperfect else merging.perfect
        return combine(one, other, disjunctions=self.disjunctions, integers=self.integers)

    def type_of(self, wanted: Filter, /) -> str | None:
        return wanted.type


FILTERS = Filters()


class Counted(Generic[F, N]):
    """A language that counts what is asked of it: the measure of the structure experiments."""

    def __init__(self, language: Language[F, N]) -> None:
        self.language = language
        self.count: Counter[str] = Counter()

    def covers(self, wide: F, narrow: F, /) -> bool:
        self.count["covers"] += 1
        return self.language.covers(wide, narrow)

    def overlaps(self, one: F, other: F, /) -> bool:
        self.count["overlaps"] += 1
        return self.language.overlaps(one, other)

    def matches(self, wanted: F, event: N, /) -> bool:
        self.count["matches"] += 1
        return self.language.matches(wanted, event)

    def merge(self, one: F, other: F, /) -> F | None:
        self.count["merge"] += 1
        return self.language.merge(one, other)

    def type_of(self, wanted: F, /) -> str | None:
        return self.language.type_of(wanted)
