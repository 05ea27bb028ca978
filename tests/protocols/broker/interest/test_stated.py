"""The statement of a broker covers all that its sessions want, however much of it there is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.filters.filters import FilterSet
from godwit.filters.text import parse
from godwit.protocols.broker.interest import stated as wants
from godwit.protocols.broker.interest.stated import Wants
from godwit.protocols.broker.publication import topic_values
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.topics import meaning

CONDITIONS = [f"n = {n}" for n in range(6)]


def filters_of(topics: str, condition: int | None) -> FilterSet | None:
    return None if condition is None else wanted_filters(topics, parse(CONDITIONS[condition]))


asked = st.tuples(
    st.sampled_from(["a", "a/b", "a/#", "b/+", "+/b", "c/d", "d/e/f", "#", "$s/a", "e", "f/g"]),
    st.one_of(st.none(), st.integers(0, 5)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(asked, st.booleans()), max_size=40), st.data())
def test_what_is_stated_covers_what_is_wanted(
    changes: list[tuple[tuple[str, int | None], bool]], data: st.DataObject
) -> None:
    held: list[tuple[str, int | None]] = []
    stated = Wants()
    with small_limits():
        for one, removes in changes:
            if removes and held:
                gone = held.pop(data.draw(st.integers(0, len(held) - 1)))
                stated.remove(gone[0], filters_of(*gone))
            else:
                held.append(one)
                stated.add(one[0], filters_of(*one))
            if data.draw(st.booleans()):
                stated.review()
        stated.review()
    said = FilterSet(stated.filters())
    for topics, condition in held:
        wanted = filters_of(topics, condition) or wanted_filters(topics, None)
        assert said.covers(wanted) or _accepts_all(said, wanted), (held, said)
    if not held:
        assert said.filters == ()


def _accepts_all(said: FilterSet, wanted: FilterSet) -> bool:
    """Where covering cannot tell: all topics and contents there are in this small world."""
    levels = ("a", "b", "c", "d", "e", "f", "g", "$s")
    topics = [*levels, *(f"{x}/{y}" for x in levels for y in levels), "d/e/f", "a/b/c"]
    events = [{**topic_values(topic), "n": n} for topic in topics for n in range(7)]
    return all(said.matches(event) for event in events if wanted.matches(event))


class small_limits:  # noqa: N801
    """Let the widening begin early."""

    NAMES = ("CONDITIONS_MAX", "TOPICS_MAX", "FIRST_LEVELS_MAX")

    def __enter__(self) -> None:
        self.kept = [getattr(wants, name) for name in self.NAMES]
        for name in self.NAMES:
            setattr(wants, name, 3)

    def __exit__(self, *error: object) -> None:
        for name, value in zip(self.NAMES, self.kept, strict=True):
            setattr(wants, name, value)


def test_many_conditions_of_one_topic_filter_are_stated_as_the_topic_filter_until_few_are_left() -> None:
    stated = Wants()
    many = [wanted_filters("a/#", parse(f"n = {n} AND m = {n}")) for n in range(wants.CONDITIONS_MAX + 1)]
    for one in many:
        stated.add("a/#", one)
    assert stated.review()
    assert stated.filters() == (meaning("a/#"),)
    for one in many[: len(many) // 4]:
        stated.remove("a/#", one)
    assert not stated.review()
    for one in many[len(many) // 4 : -3]:
        stated.remove("a/#", one)
    assert stated.review()
    assert meaning("a/#") not in stated.filters()


def test_ten_thousand_topics_of_devices_are_stated_in_few_filters() -> None:
    stated = Wants()
    for n in range(10_000):
        stated.add(f"device/{n}/command", None)
    stated.review()
    assert stated.filters() == (meaning("device/#"),)


def test_very_many_first_levels_are_stated_as_everything_and_the_brokers_own_beside() -> None:
    stated = Wants()
    for n in range(1000):
        stated.add(f"d{n}/x", None)
    stated.add("$own/x", None)
    stated.review()
    assert set(stated.filters()) == {meaning("#"), meaning("$own/x")}
    for n in range(1000):
        stated.remove(f"d{n}/x", None)
    stated.review()
    assert stated.filters() == (meaning("$own/x"),)


def test_of_deep_topic_filters_the_first_levels_are_stated_and_never_less() -> None:
    told = Wants()
    levels = [str(number) for number in range(150)]
    plain, with_condition = "/".join(levels), "/".join(["b", *levels, "#"])
    told.add(plain, None)
    told.add(with_condition, wanted_filters(with_condition, parse("n > 3")))
    told.review()
    stated = FilterSet(told.filters())
    assert stated.covers(FilterSet((meaning(plain),)))
    assert stated.covers(wanted_filters(with_condition, parse("n > 3")))
    assert not stated.matches(topic_values("c/" + plain))
    assert not stated.matches({**topic_values("b/" + plain), "n": 1})
    assert max(len(one.attributes) for one in told.filters()) <= wants.LEVELS_STATED + 2
    told.remove(plain, None)
    told.remove(with_condition, wanted_filters(with_condition, parse("n > 3")))
    assert told.review()
    assert not told.filters()


def work(action: Callable[[], object]) -> int:
    """How many calls it makes: the same on every machine, however busy."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


SHAPES: dict[str, Callable[[int], tuple[str, str]]] = {
    "devices": lambda n: (f"fleet/{n}/speed", ""),
    "first levels": lambda n: (f"device-{n}/speed", ""),
    "any device": lambda n: (f"fleet/+/{n}", ""),
    "deep": lambda n: (f"a/b/{n // 50}/{n}/c/d/e", ""),
    "conditions of one topic": lambda n: ("fleet/speed", f"n = {n}"),
    "conditions of many topics": lambda n: (f"fleet/{n % 100}", f"n = {n}"),
}
CALLS_MAX = {"conditions of many topics": 6_000}
"""Those are stated one by one, and a new one is compared with those of its topic. With all others it was 72,000."""


@pytest.mark.parametrize("shape", SHAPES)
def test_one_more_subscription_is_about_the_same_work_beside_four_thousand(shape: str) -> None:
    stated, one = Wants(), SHAPES[shape]

    def add(number: int) -> None:
        topics, condition = one(number)
        stated.add(topics, wanted_filters(topics, parse(condition)) if condition else None)
        stated.review()
        stated.filters()

    few = 0
    for number in range(4_000):
        topics, condition = one(number)
        stated.add(topics, wanted_filters(topics, parse(condition)) if condition else None)
        if number == 400:
            stated.review()
            few = max(work(lambda: add(10_000)), work(lambda: add(10_001)))
    stated.review()
    many = max(work(lambda: add(20_000)), work(lambda: add(20_001)))
    assert many <= CALLS_MAX.get(shape, 1_000 + few)
