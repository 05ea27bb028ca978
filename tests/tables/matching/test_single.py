"""Single events are laid out by their form, and mean the same as value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.anything import events

from godwit.events import EventError, Value
from godwit.filters.text import parse
from godwit.tables.matching.index import Index
from godwit.tables.matching.single import FORMS_MAX, SingleEvent


def asked(*texts: str) -> Index:
    index = Index()
    index.add_many(range(len(texts)), map(parse, texts))
    return index


def wanted(index: Index, event: Mapping[str, Value]) -> list[int]:
    return sorted(index.match(event).tolist())


class Each(SingleEvent):
    """Lays out every event value by value."""

    def take(self, values: Mapping[str, Value]) -> None:
        self._take_each(values)
        self._take_rest(values)


TEXTS = ("a = 5", "a > 4.5", "b = 'x'", "b = 'ö'", "a = TRUE", "c < 0", "b LIKE '%y'", "c IS NULL")


@given(st.lists(events, max_size=12))
def test_an_event_of_a_form_means_the_same_as_value_by_value(stream: list[dict[str, Value]]) -> None:
    by_form, by_value = asked(*TEXTS), asked(*TEXTS)
    by_value._matcher._event = Each(by_value._names, by_value._outer)
    for event in stream:
        assert wanted(by_form, event) == wanted(by_value, event)


def test_the_same_names_with_values_of_other_types_are_another_form() -> None:
    index = asked("a = 1", "a = '1'", "a = TRUE")
    for event, found in (({"a": 1}, [0]), ({"a": 1.0}, [0]), ({"a": "1"}, [1]), ({"a": True}, [2])):
        assert wanted(index, event) == found
        assert wanted(index, event) == found


def test_an_attribute_that_is_asked_for_later_is_seen_in_events_of_a_known_form() -> None:
    index = asked("a = 1")
    assert wanted(index, {"a": 1, "b": 2}) == [0]
    index.add(7, parse("b = 2"))
    assert wanted(index, {"a": 1, "b": 2}) == [0, 7]


def test_numbers_at_the_edges_of_64_bits_are_told_apart_and_larger_ones_refused() -> None:
    edges = (-(2**63), -(2**53) - 1, 2**53 + 1, 2**63 - 1)
    index = asked(*(f"a = {edge}" for edge in edges), f"a > {2**63 - 1}")
    for place, edge in enumerate((*edges, 2**63, 2**64 - 1)):
        assert wanted(index, {"a": edge, "b": 1}) == [min(place, 4)]
    for beyond in (-(2**63) - 1, 2**64):
        with pytest.raises(EventError, match="does not fit 64 bits"):
            index.match({"a": beyond, "b": 1})
    assert wanted(index, {"a": edges[0], "b": 1}) == [0]


def test_what_is_no_number_fulfils_no_condition_on_numbers() -> None:
    index = asked("a > 0", "a <= 0", "b = 1")
    assert wanted(index, {"a": math.nan, "b": 1}) == [2]
    assert wanted(index, {"a": 1.0, "b": 1}) == [0, 2]


def test_texts_that_are_not_ascii_stand_where_others_do() -> None:
    index = asked("a = 'é'", "b = 'plain'", "c = '漢字'")
    assert wanted(index, {"a": "é", "b": "plain", "c": "漢字"}) == [0, 1, 2]
    assert wanted(index, {"a": "e", "b": "plain", "c": ""}) == [1]


def test_of_events_that_are_all_different_only_some_forms_are_kept() -> None:
    index = asked("a = 1")
    for number in range(3 * FORMS_MAX):
        assert wanted(index, {"a": 1, f"b{number}": number}) == [0]
    assert len(index._matcher._event._forms) <= FORMS_MAX + 1
