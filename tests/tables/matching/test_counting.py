"""The counting matcher against testing every filter."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.histories import Step, entries, histories, play
from tests.worlds import filters, range_filters, value_maps, words

from godwit.events import Value
from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import EVERYTHING, Filter, attribute, filter_of
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    AnyPredicate,
    Kind,
    Predicate,
    Rate,
    Values,
    Versus,
    VersusOp,
    Within,
    contains,
    end,
    equ,
    gr,
    like,
    neq,
    rng,
    stw,
)
from godwit.tables.matching.counting import Counting
from godwit.tables.matching.naive import Naive


@pytest.mark.feature("content-routing F24")
@given(steps=histories(filters()), events=st.lists(value_maps(), min_size=4, max_size=8))
def test_counting_finds_what_testing_finds(steps: list[Step], events: list[Values]) -> None:
    counting = Counting()
    naive: Naive[Filter, Values] = Naive()
    for _ in play(steps, naive, counting):
        assert entries(counting) == entries(naive)
    for event in events:
        assert counting.match(event) == naive.match(event)
    for f, interface in entries(naive):
        assert counting.remove(f, interface)
    assert len(counting) == 0
    assert not any(counting.match(event) for event in events)


@pytest.mark.feature("content-routing F24")
@given(wanted=st.lists(range_filters(), max_size=10))
def test_its_roots_are_the_minimal_cover(wanted: list[Filter]) -> None:
    counting = Counting()
    naive: Naive[Filter, Values] = Naive()
    for f in wanted:
        counting.add(f, "a")
        naive.add(f, "a")
    assert set(counting.roots()) == set(naive.roots())


def matches(wanted: Filter, event: dict[str, Value]) -> bool:
    counting = Counting()
    counting.add(wanted, "a")
    return counting.match(event) == {"a"}


@pytest.mark.feature("content-routing F24")
def test_a_disjunctive_attribute_filter_counts_once() -> None:
    """The value starts with, ends with and contains what is asked for; the other attribute does not hold."""
    wanted = filter_of(attribute("s", stw("ab"), end("ba"), contains("aba")), attribute("x", gr(5)))
    assert not matches(wanted, {"s": "aba", "x": 1})
    assert matches(wanted, {"s": "aba", "x": 6})


@pytest.mark.feature("content-routing F24")
def test_two_demands_on_one_attribute_count_separately() -> None:
    wanted = filter_of(attribute("s", stw("a")), attribute("s", end("b")))
    assert not matches(wanted, {"s": "aa"})
    assert not matches(wanted, {"s": "bb"})
    assert matches(wanted, {"s": "ab"})


@pytest.mark.feature("content-routing F24")
def test_a_filter_without_demands_always_matches() -> None:
    assert matches(EVERYTHING, {})
    assert matches(filter_of(attribute("limit", Rate(5.0))), {"x": 1})


@pytest.mark.feature("content-routing F24")
def test_presence_and_absence_are_of_any_kind() -> None:
    assert matches(filter_of(attribute("x", EXISTS)), {"x": "text"})
    assert matches(filter_of(attribute("x", ABSENT)), {"y": 1})
    assert not matches(filter_of(attribute("x", ABSENT)), {"x": float("nan")})
    assert not matches(filter_of(attribute("x", EXISTS, kind=Kind.NUMBER)), {"x": "text"})


@pytest.mark.feature("content-routing F24")
def test_placeholders_and_patterns_are_tried_one_by_one() -> None:
    assert matches(filter_of(attribute("x", Versus(VersusOp.GR, "y"), kind=Kind.NUMBER)), {"x": 2, "y": 1})
    assert not matches(filter_of(attribute("x", Versus(VersusOp.GR, "y"), kind=Kind.NUMBER)), {"x": 2})
    assert matches(filter_of(attribute("s", like("a_%c"))), {"s": "abbc"})


class Even(msgspec.Struct, frozen=True):
    """A predicate from outside of the package."""

    def accepts(self, value: int, values: Values) -> bool:
        return value % 2 == 0

    def covers(self, other: Predicate) -> bool:
        return isinstance(other, Even)

    def overlaps(self, other: Predicate) -> bool:
        return True


@pytest.mark.feature("content-routing F24")
def test_a_predicate_of_your_own_is_matched_too() -> None:
    wanted = Filter((AttributeFilter("x", Kind.NUMBER, (Even(),)),))  # type: ignore[arg-type]
    assert matches(wanted, {"x": 4})
    assert not matches(wanted, {"x": 5})


@pytest.mark.feature("content-routing F24")
def test_areas_across_the_date_line_and_around_a_pole() -> None:
    fiji = filter_of(attribute("lat,lon", Within(Circle(-17.0, 179.9, 50_000))))
    assert matches(fiji, {"lat": -17.0, "lon": -179.9})
    assert matches(fiji, {"lat": -17.0, "lon": 180.1})
    assert not matches(fiji, {"lat": -17.0, "lon": 178.0})
    pole = filter_of(attribute("lat,lon", Within(Circle(89.9, 0.0, 50_000))))
    assert matches(pole, {"lat": 89.95, "lon": 180.0})
    pacific = filter_of(attribute("lat,lon", Within(Box(-10, 170, 10, -170)), Within(Box(-1, 0, 1, 1))))
    assert matches(pacific, {"lat": 0, "lon": 190})
    assert matches(pacific, {"lat": 0, "lon": 0.5})
    assert not matches(pacific, {"lat": 0, "lon": 160})
    assert not matches(pacific, {"lat": 0})


@pytest.mark.feature("content-routing F24")
@given(operands=st.lists(words, min_size=30, max_size=60), value=st.text("ab", max_size=5))
def test_many_string_operands_are_found_by_the_parts_of_the_value(operands: list[str], value: str) -> None:
    """With more operands than the value has parts the lookup turns round; the answer does not."""
    counting = Counting()
    naive: Naive[Filter, Values] = Naive()
    for number, operand in enumerate(operands):
        for make in (stw, end, contains, equ, neq):
            counting.add(filter_of(attribute("s", make(operand))), f"{make.__name__} {number}")
            naive.add(filter_of(attribute("s", make(operand))), f"{make.__name__} {number}")
    assert counting.match({"s": value}) == naive.match({"s": value})


@pytest.mark.feature("content-routing F24")
def test_an_interface_leaves_with_its_last_subscription() -> None:
    counting = Counting()
    wanted = filter_of(attribute("x", rng(0, 5)))
    assert counting.add(wanted, "a", subscription=1)
    assert counting.add(wanted, "a", subscription=2)
    assert not counting.add(wanted, "a", subscription=2)
    assert counting.add(wanted, "b")
    assert counting.subscriptions({"x": 3}) == {"a": {1, 2}, "b": {None}}
    assert counting.remove(wanted, "a", subscription=1)
    assert not counting.remove(wanted, "a", subscription=1)
    assert counting.match({"x": 3}) == {"a", "b"}
    assert counting.remove(wanted, "a", subscription=2)
    assert counting.match({"x": 3}) == {"b"}
    assert not counting.remove(filter_of(attribute("x", rng(0, 6))), "b")


@pytest.mark.feature("content-routing F24")
@given(disjuncts=st.lists(st.integers(0, 9).map(equ), min_size=1, max_size=5), value=st.integers(0, 9))
def test_a_long_list_of_alternatives_is_one_demand(disjuncts: list[AnyPredicate], value: int) -> None:
    wanted = filter_of(attribute("x", *disjuncts), attribute("y", EXISTS))
    assert matches(wanted, {"x": value, "y": 0}) == any(p.accepts(value, {}) for p in disjuncts)
    assert not matches(wanted, {"x": value})
