"""From the text of a subscription to the filters that it means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet, alternatives, conjunction
from godwit.filters.predicates import Kind, Rate
from godwit.protocols.broker.api import Lasting, Limits, Subscription
from godwit.protocols.broker.session.near import anchors_of, anywhere
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.broker.topics import meaning


def wanted_filters(topics: str, condition: FilterSet | None) -> FilterSet:
    """A topic filter, and a condition on the content, as one set of filters; nothing where they contradict."""
    levels = meaning(topics)
    if condition is None:
        return FilterSet((levels,))
    both = (conjunction((*levels, *one)) for one in condition)
    return alternatives(one for one in both if one is not None)


def are_matched(subs: Iterable[Sub]) -> bool:
    """Whether only brokers that match something for these send it. What a group deals out and what lasts may come from
    anywhere."""
    return not any(sub.wanted.group or sub.wanted.lasting for sub in subs)


def filters_of(subs: Iterable[Sub], *, lasting: bool = False) -> Iterator[Filter]:
    """What these subscriptions want together of all that is published; with `lasting` also what they want of what is
    retained, which does not come by streams that a session waits for."""
    for sub in subs:
        if sub.wanted.lasting and not lasting:
            continue
        yield from sub.condition if sub.condition is not None else (meaning(sub.wanted.topics),)


def understood(wanted: Subscription, limits: Limits) -> FilterSet | None:
    """Topics and condition as filters, None without a condition; `FilterError` where it is none or asks too much."""
    if not wanted.condition:
        return None
    size_b = len(wanted.condition.encode("utf-8", "surrogatepass"))
    if size_b > limits.filter_bytes_max:
        raise FilterError(f"filter: {size_b} bytes are too long; at most {limits.filter_bytes_max}")
    text = wanted.condition
    if wanted.lasting is not Lasting.NO and anchors_of(text):
        text = anywhere(text)
    condition, per_s = _parsed(text, limits.filter_bytes_max)
    if per_s and (wanted.group or wanted.since is not None):
        raise FilterError("filter: rate(...) leaves out what is not the newest; not of a shared group, nor with since")
    return wanted_filters(wanted.topics, condition)


def condition_of(topics: str, text: str) -> FilterSet:
    """Of a text that was granted."""
    return wanted_filters(topics, _parsed(text, _GRANTED.filter_bytes_max)[0])


def interval_of(wanted: Subscription) -> float:
    """How long a thing, or a topic, of which was told must wait; 0: not at all."""
    if "rate" not in wanted.condition.lower():
        return 0.0
    text = anywhere(wanted.condition) if wanted.lasting is not Lasting.NO else wanted.condition
    per_s = _parsed(text, _GRANTED.filter_bytes_max)[1]
    return 1 / per_s if per_s else 0.0


def remembered(session: Session, wanted: Subscription, row: int) -> Sub | None:
    """A subscription that some broker has granted, whatever the limits here; None where this one cannot read it, which
    the client hears when it subscribes again."""
    try:
        condition = understood(wanted, _GRANTED)
    except FilterError:
        return None
    return Sub(session, wanted, condition, row, interval_of(wanted))


_GRANTED = Limits(filter_bytes_max=1_000_000)


@lru_cache(maxsize=4_096)
def _parsed(text: str, bytes_max: int) -> tuple[FilterSet, float]:
    """What it asks for, and how often a second at most; 0: as often as it likes."""
    from godwit.filters.text import DEFAULT, parse  # sqlglot takes a while to load

    condition = parse(text, msgspec.structs.replace(DEFAULT, characters=bytes_max))
    rates = [[p.per_s for own in one for p in own.clause if isinstance(p, Rate)] for one in condition]
    if not any(rates):
        return condition, 0.0
    if len({min(each, default=0.0) for each in rates}) > 1:
        raise FilterError("filter: a rate is for all of a subscription; write it once, as in (... OR ...) AND rate(1)")
    plain = (conjunction(own for own in one if own.kind is not Kind.RATE) for one in condition)
    return alternatives(one for one in plain if one is not None), min(rates[0])
