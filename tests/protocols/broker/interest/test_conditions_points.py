"""What is found by a value, against asking every condition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worlds import filters, value_maps

from godwit.events import Value
from godwit.filters.filters import FilterSet
from godwit.filters.text import parse
from godwit.protocols.broker.interest.conditions import CROWDED, Points

NAMING = [
    "x = 3",
    "x IN (1, 3, 5)",
    "s = 'a'",
    "s IN ('', 'b') AND x > 2",
    "x = 1 OR s = 'ab'",
    "x = 1 AND s LIKE 'a%'",
    "b = true AND x = 4",
]
"""Conditions that name values, which drawn ones seldom do."""

conditions = st.lists(filters(), max_size=2).map(lambda some: FilterSet(tuple(some))) | st.sampled_from(
    [parse(text) for text in NAMING]
)


@settings(max_examples=50)
@given(
    wanted=st.lists(conditions, max_size=6),
    events=st.lists(value_maps(), min_size=1, max_size=4),
    leaving=st.sets(st.integers(0, 5)),
)
def test_what_is_taken_is_found_by_the_events_that_meet_it_and_by_no_others(
    wanted: list[FilterSet], events: list[dict[str, Value]], leaving: set[int]
) -> None:
    points = Points()
    taken = {number: one for number, one in enumerate(wanted) if points.take(number, one)}

    def check() -> None:
        for event in events:
            assert sorted(points.find(event)) == [number for number, one in taken.items() if one.matches(event)]

    check()
    for number in leaving & taken.keys():
        points.remove(number)
        del taken[number]
    check()
    assert len(points) == len(taken)


def test_only_conditions_that_name_values_are_taken() -> None:
    points = Points()
    assert all(points.take(number, parse(text)) for number, text in enumerate(NAMING))
    assert not any(points.take(9, parse(text)) for text in ("x > 3", "s LIKE 'a%'", "x = 1 OR x > 3", "b = true"))


def test_a_value_that_many_name_is_left_to_others_and_another_attribute_is_taken_instead() -> None:
    points = Points()
    taken = [points.take(number, parse("kind = 'reading'")) for number in range(CROWDED + 5)]
    assert taken == [True] * CROWDED + [False] * 5
    assert points.take(100, parse("kind = 'reading' AND station = 7"))
    assert points.find({"kind": "reading", "station": 7}) == [*range(CROWDED), 100]
    points.remove(3)
    assert points.take(101, parse("kind = 'reading'"))
