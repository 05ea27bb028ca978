"""From the text of a subscription to the filters that it means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet, alternatives, conjunction
from godwit.filters.predicates import Kind
from godwit.protocols.broker.api import Limits, Subscription
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.broker.topics import meaning


def wanted_filters(topics: str, condition: FilterSet | None) -> FilterSet:
    """A topic filter, and a condition on the content, as one set of filters; nothing where they contradict."""
    levels = meaning(topics)
    if condition is None:
        return FilterSet((levels,))
    both = (conjunction((*levels, *one)) for one in condition)
    return alternatives(one for one in both if one is not None)


def filters_of(subs: Iterable[Sub]) -> Iterator[Filter]:
    """What these subscriptions want together."""
    for sub in subs:
        yield from sub.condition if sub.condition is not None else (meaning(sub.wanted.topics),)


def understood(wanted: Subscription, limits: Limits) -> FilterSet | None:
    """Topics and condition as filters, None without a condition; `FilterError` where it is none or asks too much."""
    if not wanted.condition:
        return None
    size_b = len(wanted.condition.encode("utf-8", "surrogatepass"))
    if size_b > limits.filter_bytes_max:
        raise FilterError(f"filter: {size_b} bytes are too long; at most {limits.filter_bytes_max}")
    return wanted_filters(wanted.topics, _parsed(wanted.condition, limits.filter_bytes_max))


def remembered(session: Session, wanted: Subscription, row: int) -> Sub | None:
    """A subscription that some broker has granted, whatever the limits here; None where this one cannot read it, which
    the client hears when it subscribes again."""
    try:
        condition = understood(wanted, _GRANTED)
    except FilterError:
        return None
    return Sub(session, wanted, condition, row)


_GRANTED = Limits(filter_bytes_max=1_000_000)


@lru_cache(maxsize=4_096)
def _parsed(text: str, bytes_max: int) -> FilterSet:
    from godwit.filters.text import DEFAULT, parse  # sqlglot takes a while to load

    condition = parse(text, msgspec.structs.replace(DEFAULT, characters=bytes_max))
    if any(own.kind is Kind.RATE for one in condition for own in one):
        raise FilterError("filter: rate(...) is not offered to subscribers of a broker; it would drop deliveries")
    return condition
