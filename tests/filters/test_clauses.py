"""Clauses: unions and intersections that accept exactly what they should, in one form, and covering between them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import worlds

from godwit.events import Value
from godwit.filters import clauses
from godwit.filters.clauses import ALWAYS, NEVER, AttributeFilter, Clause
from godwit.filters.errors import FilterError
from godwit.filters.filters import attribute
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    AnyPredicate,
    Flag,
    Hole,
    Interval,
    Kind,
    Rate,
    Versus,
    VersusOp,
    contains,
    end,
    equ,
    gr,
    gre,
    lacks,
    like,
    lt,
    lte,
    neq,
    rng,
    stw,
)

NUMBERS: list[Value] = [*worlds.NUMBERS, -math.inf, math.inf]
STRINGS: list[Value] = ["".join(letters) for length in range(6) for letters in product("abc", repeat=length)]
DOMAINS: dict[Kind, list[Value]] = {Kind.NUMBER: NUMBERS, Kind.STRING: STRINGS, Kind.BOOL: [True, False]}

Drawn = tuple[Kind, list[AnyPredicate]]
Pair = tuple[Kind, list[AnyPredicate], list[AnyPredicate]]

numbers = st.lists(worlds.number_predicates(), max_size=4)
strings = st.lists(worlds.text_predicates() | worlds.pattern_predicates(), max_size=3)
flags: st.SearchStrategy[list[AnyPredicate]] = st.lists(st.booleans().map(equ), max_size=3)
drawn: st.SearchStrategy[Drawn] = st.one_of(
    st.tuples(st.just(Kind.NUMBER), numbers),
    st.tuples(st.just(Kind.STRING), strings),
    st.tuples(st.just(Kind.BOOL), flags),
)
pairs: st.SearchStrategy[Pair] = st.one_of(
    st.tuples(st.just(Kind.NUMBER), numbers, numbers),
    st.tuples(st.just(Kind.STRING), strings, strings),
    st.tuples(st.just(Kind.BOOL), flags, flags),
)


def accepted(disjuncts: Iterable[AnyPredicate], domain: list[Value]) -> list[Value]:
    disjuncts = list(disjuncts)
    return [value for value in domain if any(p.accepts(value, {}) for p in disjuncts)]


@pytest.mark.feature("content-routing F2", "content-routing F26")
@given(drawn)
def test_a_union_accepts_exactly_what_its_disjuncts_accept(given_disjuncts: Drawn) -> None:
    kind, disjuncts = given_disjuncts
    assert accepted(clauses.union(kind, disjuncts), DOMAINS[kind]) == accepted(disjuncts, DOMAINS[kind])


@pytest.mark.feature("content-routing F2")
@given(drawn, st.randoms(use_true_random=False))
def test_a_clause_has_one_form_whatever_the_order_and_the_repetitions(given_disjuncts: Drawn, random: Random) -> None:
    kind, disjuncts = given_disjuncts
    clause = clauses.union(kind, disjuncts)
    again = [*disjuncts, *disjuncts]
    random.shuffle(again)
    assert clauses.union(kind, again) == clause
    assert hash(clauses.union(kind, again)) == hash(clause)
    assert clauses.union(kind, clause) == clause


@pytest.mark.feature("content-routing F2", "content-routing F26")
@given(drawn)
def test_no_disjunct_of_a_clause_covers_another(given_disjuncts: Drawn) -> None:
    clause = clauses.union(*given_disjuncts)
    assert not any(a.covers(b) for a, b in product(clause, repeat=2) if a is not b)


@pytest.mark.feature("content-routing F2")
@given(numbers, numbers)
def test_number_clauses_that_accept_the_same_are_the_same(one: list[AnyPredicate], other: list[AnyPredicate]) -> None:
    same = accepted(one, NUMBERS) == accepted(other, NUMBERS)
    assert (clauses.union(Kind.NUMBER, one) == clauses.union(Kind.NUMBER, other)) == same


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize(
    ("kind", "disjuncts", "clause"),
    [
        (Kind.NUMBER, [rng(3, 3)], (equ(3),)),
        (Kind.NUMBER, [rng(0, 5), EXISTS], ALWAYS),
        (Kind.NUMBER, [rng(0, 5), rng(1, 2), rng(0, 5)], (rng(0, 5),)),
        (Kind.NUMBER, [gre(-math.inf)], ALWAYS),
        (Kind.NUMBER, [gr(math.inf)], NEVER),
        (Kind.NUMBER, [lt(-math.inf), equ(4)], (equ(4),)),
        (Kind.NUMBER, [neq(math.inf)], (lt(math.inf),)),
        (Kind.NUMBER, [Versus(VersusOp.EQU, "a"), EXISTS], ALWAYS),
        (Kind.STRING, [equ("ab"), stw("a")], (stw("a"),)),
        (Kind.STRING, [equ("b"), equ("a"), equ("b")], (equ("a"), equ("b"))),
        (Kind.STRING, [contains("a"), lacks("a")], ALWAYS),
        (Kind.STRING, [stw("x"), EXISTS], ALWAYS),
        (Kind.BOOL, [equ(True), equ(False)], ALWAYS),
        (Kind.BOOL, [neq(True)], (Flag(False),)),
        (Kind.ANY, [ABSENT, EXISTS, ABSENT], (ABSENT, EXISTS)),
        (Kind.RATE, [Rate(10), Rate(20), Rate(5)], (Rate(20),)),
        (Kind.NUMBER, [], NEVER),
        (Kind.RATE, [], NEVER),
    ],
)
def test_worked_examples_of_canonical_clauses(kind: Kind, disjuncts: list[AnyPredicate], clause: Clause) -> None:
    assert clauses.union(kind, disjuncts) == clause


@pytest.mark.feature("content-routing F5", "content-routing F46")
@given(pairs)
def test_covering_between_disjunctions_is_sound(given_pair: Pair) -> None:
    kind, wide, narrow = given_pair
    if clauses.covers(clauses.union(kind, wide), clauses.union(kind, narrow)):
        assert set(accepted(narrow, DOMAINS[kind])) <= set(accepted(wide, DOMAINS[kind]))


@pytest.mark.feature("content-routing F5", "content-routing F46")
@given(pairs)
def test_theorem_a1_each_disjunct_covered_by_some_disjunct_is_enough(given_pair: Pair) -> None:
    kind, wide, narrow = given_pair
    if all(any(a.covers(b) for a in wide) for b in narrow):
        assert clauses.covers(clauses.union(kind, wide), clauses.union(kind, narrow))


@pytest.mark.feature("content-routing F5")
@given(numbers, numbers)
def test_covering_between_number_clauses_is_exact(wide: list[AnyPredicate], narrow: list[AnyPredicate]) -> None:
    exact = set(accepted(narrow, NUMBERS)) <= set(accepted(wide, NUMBERS))
    assert clauses.covers(clauses.union(Kind.NUMBER, wide), clauses.union(Kind.NUMBER, narrow)) == exact


@pytest.mark.feature("content-routing F5")
def test_touching_ranges_cover_what_lies_across_them() -> None:
    two = clauses.union(Kind.NUMBER, [rng(0, 5), rng(5, 10)])
    assert clauses.covers(two, (rng(3, 7),))


@pytest.mark.feature("content-routing F6")
@given(pairs)
def test_overlap_between_disjunctions_is_never_missed(given_pair: Pair) -> None:
    kind, one, other = given_pair
    common = set(accepted(one, DOMAINS[kind])) & set(accepted(other, DOMAINS[kind]))
    found = clauses.overlaps(clauses.union(kind, one), clauses.union(kind, other))
    assert found or not common
    if kind is Kind.NUMBER:
        assert found == bool(common)


many_numbers: st.SearchStrategy[list[AnyPredicate]] = st.lists(
    st.builds(lambda low, length: rng(low, low + length), st.integers(0, 90), st.integers(0, 3)), max_size=40
)
many_strings: st.SearchStrategy[list[AnyPredicate]] = st.lists(
    st.one_of(*(st.text("abcd", min_size=1, max_size=4).map(make) for make in (equ, equ, equ, stw, end))), max_size=40
)


@pytest.mark.feature("content-routing F5", "content-routing F6")
@given(st.booleans(), st.data())
def test_long_clauses_answer_as_short_ones_do(of_numbers: bool, data: st.DataObject) -> None:
    kind, many = (Kind.NUMBER, many_numbers) if of_numbers else (Kind.STRING, many_strings)
    some, more = data.draw(many), data.draw(many)
    one, other = clauses.union(kind, some), clauses.union(kind, more)
    both = clauses.union(kind, [*some, *more])
    assert clauses.covers(both, one)
    assert clauses.covers(both, other)
    assert clauses.covers(one, other) == all(any(a.covers(b) for a in one) for b in other)
    assert clauses.overlaps(one, other) == any(a.overlaps(b) for a in one for b in other)


@pytest.mark.feature("content-routing F2")
@given(pairs)
def test_an_intersection_accepts_exactly_what_both_accept(given_pair: Pair) -> None:
    kind, one, other = given_pair
    both = clauses.intersection(kind, clauses.union(kind, one), clauses.union(kind, other))
    if both is None:
        assert kind is Kind.STRING, "numbers and truth values can always be said by one clause"
    else:
        domain = DOMAINS[kind]
        assert set(accepted(both, domain)) == set(accepted(one, domain)) & set(accepted(other, domain))


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize(
    ("kind", "one", "other", "both"),
    [
        (Kind.NUMBER, (gr(3),), (lt(3),), NEVER),
        (Kind.NUMBER, (gr(3),), (lte(8),), (Interval((3, 1), (8, 1)),)),
        (Kind.NUMBER, (neq(3),), (gre(3),), (gr(3),)),
        (Kind.STRING, (equ("a"),), (equ("b"),), NEVER),
        (Kind.STRING, (stw("a"),), (stw("b"),), NEVER),
        (Kind.STRING, (stw("a"),), (stw("ab"),), (stw("ab"),)),
        (Kind.STRING, (stw("a"),), (end("b"),), None),
        (Kind.STRING, (equ("ab"), equ("cd")), (contains("b"),), (equ("ab"),)),
        (Kind.BOOL, (Flag(True),), (Flag(False),), NEVER),
        (Kind.ANY, (EXISTS,), (ABSENT,), NEVER),
        (Kind.RATE, (Rate(20),), (Rate(10),), (Rate(10),)),
        (Kind.NUMBER, (Versus(VersusOp.GR, "a"),), (gr(3),), None),
    ],
)
def test_worked_examples_of_intersections(kind: Kind, one: Clause, other: Clause, both: Clause | None) -> None:
    assert clauses.intersection(kind, one, other) == both
    assert clauses.intersection(kind, other, one) == both


@pytest.mark.feature("content-routing F3")
@given(drawn)
def test_a_value_satisfies_a_predicate_or_its_complement(given_disjuncts: Drawn) -> None:
    kind, disjuncts = given_disjuncts
    for predicate in disjuncts:
        opposite = clauses.complement(kind, predicate)
        for value in DOMAINS[kind]:
            assert predicate.accepts(value, {}) != any(p.accepts(value, {}) for p in opposite)


@pytest.mark.feature("content-routing F3")
def test_presence_and_absence_are_opposites_only_where_no_kind_is_asked_for() -> None:
    assert clauses.complement(Kind.ANY, EXISTS) == (ABSENT,)
    assert clauses.complement(Kind.ANY, ABSENT) == ALWAYS
    assert clauses.complement(Kind.STRING, EXISTS) == NEVER


@pytest.mark.feature("content-routing F3")
@pytest.mark.parametrize("op", VersusOp)
def test_the_opposite_of_a_placeholder_still_needs_its_operand(op: VersusOp) -> None:
    placeholder = Versus(op, "a")
    (opposite,) = clauses.complement(Kind.ANY, placeholder)
    values: list[Value] = [1, 2, "a", "ab"]
    for value, operand in product(values, repeat=2):
        said = {placeholder.accepts(value, {"a": operand}), opposite.accepts(value, {"a": operand})}
        assert said in ({True, False}, {False}), "never both"
    for value in values:
        assert not opposite.accepts(value, {})


@pytest.mark.feature("content-routing F7")
def test_a_rate_has_no_opposite() -> None:
    with pytest.raises(FilterError, match="opposite of Rate"):
        clauses.complement(Kind.RATE, Rate(5))


@pytest.mark.feature("content-routing F26")
@given(st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 6)), max_size=5))
def test_on_whole_numbers_neighboring_ranges_join(spans: list[tuple[int, int]]) -> None:
    # Quarters as ends: whole numbers inside are what counts, wherever between them a range ends.
    ranges = [rng(low / 4, (low + length) / 4) for low, length in spans]
    joined = clauses.union(Kind.NUMBER, ranges, integers=True)
    whole: list[Value] = list(range(-5, 6))
    assert accepted(joined, whole) == accepted(ranges, whole)
    assert all(_gap(a, b) for a, b in pairwise(joined))


def _gap(one: AnyPredicate, other: AnyPredicate) -> bool:
    assert isinstance(one, Interval)
    assert isinstance(other, Interval)
    return math.floor(one.hi[0]) + 1 < math.ceil(other.lo[0])


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(
    ("disjuncts", "joined"),
    [
        ([rng(0, 2), rng(3, 5)], (rng(0, 5),)),
        ([rng(0, 2), equ(3)], (rng(0, 3),)),
        ([lte(4), gre(5)], ALWAYS),
        ([lt(5), gr(4)], ALWAYS),
        ([lt(5), gr(5)], (Hole(5),)),
        ([rng(0, 2), rng(4, 5)], (rng(0, 2), rng(4, 5))),
        ([lte(4.5), gre(5.5)], (lte(4.5), gre(5.5))),
        ([equ(-math.inf), equ(5)], (equ(-math.inf), equ(5))),
    ],
)
def test_worked_examples_on_whole_numbers(disjuncts: list[AnyPredicate], joined: Clause) -> None:
    assert clauses.union(Kind.NUMBER, disjuncts, integers=True) == joined


@pytest.mark.feature("content-routing F4")
@pytest.mark.parametrize(
    ("wanted", "values", "matches"),
    [
        (attribute("x", equ(1)), {"x": 1.0}, True),
        (attribute("x", equ(1)), {"x": True}, False),
        (attribute("x", equ(1)), {"x": "1"}, False),
        (attribute("x", equ(1)), {}, False),
        (attribute("x", neq(1)), {}, False),
        (attribute("x", neq(1)), {"x": "1"}, False),
        (attribute("x", neq("1")), {"x": 1}, False),
        (attribute("x", equ(True)), {"x": 1}, False),
        (attribute("x", EXISTS), {"x": ""}, True),
        (attribute("x", EXISTS), {}, False),
        (attribute("x", EXISTS, kind=Kind.NUMBER), {"x": ""}, False),
        (attribute("x", ABSENT), {}, True),
        (attribute("x", ABSENT), {"x": 0}, False),
        (attribute("x", ABSENT), {"x": math.nan}, False),
        (attribute("x", ABSENT, EXISTS), {"x": 0}, True),
        (attribute("x", equ(1), equ(3)), {"x": 3}, True),
        (attribute("x", equ(1), equ(3)), {"x": 2}, False),
        (attribute("x", Versus(VersusOp.EQU, "y")), {"x": "a", "y": "a"}, True),
        (attribute("x", Versus(VersusOp.EQU, "y")), {"x": 1, "y": 1.0}, True),
        (attribute("x", like("a_c")), {"x": "abc"}, True),
        (attribute("rate", Rate(3)), {}, True),
    ],
)
def test_an_attribute_filter_wants_a_value_of_its_kind(
    wanted: AttributeFilter, values: dict[str, Value], matches: bool
) -> None:
    assert wanted.matches(values) is matches
