"""Merging against every rule that the spec prints, and against enumerated domains: nothing is lost, ever."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import worlds
from tests.filters import spec_tables as spec

from godwit.events import Value
from godwit.filters import clauses
from godwit.filters.areas import Box, Circle
from godwit.filters.clauses import ALWAYS, AttributeFilter
from godwit.filters.filters import EVERYTHING, Filter, attribute, conjunction, filter_of
from godwit.filters.merging import best_partner, first_partner, imperfect, perfect
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    AnyPredicate,
    Kind,
    Outside,
    Predicate,
    Rate,
    Versus,
    VersusOp,
    Within,
    contains,
    end,
    equ,
    gr,
    gre,
    lacks,
    like,
    lt,
    neq,
    rng,
    stw,
)

Values = dict[str, Value]

WHOLE: list[Value] = [*range(-2, 8)]
HALVES: list[Value] = [n / 2 for n in range(-4, 15)]
STRINGS: list[Value] = ["".join(letters) for length in range(5) for letters in product("abc", repeat=length)]


def on(name: str, *disjuncts: Predicate) -> Filter:
    return filter_of(attribute(name, *disjuncts))


def accepted(predicates: Iterable[AnyPredicate], domain: list[Value]) -> int:
    predicates = list(predicates)
    return sum(1 << at for at, value in enumerate(domain) if any(p.accepts(value, {}) for p in predicates))


def number_pairs(first: str, second: str) -> Iterable[tuple[spec.Operands, AnyPredicate, AnyPredicate]]:
    for mine, theirs in product(spec.number_operands(first), spec.number_operands(second)):
        yield mine + theirs, spec.NUMBER_MAKERS[first](*mine), spec.NUMBER_MAKERS[second](*theirs)


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(("first", "second", "condition"), spec.EXISTENCE_RULES)
def test_every_existence_rule_gives_exists_exactly_under_its_condition(
    first: str, second: str, condition: spec.Condition
) -> None:
    for operands, one, other in number_pairs(first, second):
        assert (clauses.union(Kind.NUMBER, [one, other]) == ALWAYS) == condition(*operands), operands


@pytest.mark.feature("content-routing F26")
def test_there_are_twenty_one_existence_rules() -> None:
    assert len({(first, second) for first, second, _ in spec.EXISTENCE_RULES}) == 21
    assert clauses.union(Kind.NUMBER, [lt(10), neq(7)]) == ALWAYS


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(("first", "second", "condition", "result"), spec.MODIFICATION_RULES)
def test_every_modification_rule_gives_its_predicate(
    first: str, second: str, condition: spec.Condition, result: spec.Maker
) -> None:
    for operands, one, other in number_pairs(first, second):
        if condition(*operands):
            assert clauses.union(Kind.NUMBER, [one, other]) == (result(*operands),), operands
            assert clauses.union(Kind.NUMBER, [other, one], integers=True) == (result(*operands),), operands


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(("first", "second", "condition", "result"), spec.INTEGER_RULES)
def test_the_rules_for_whole_numbers_hold_only_where_they_are_promised(
    first: str, second: str, condition: spec.Condition, result: spec.Maker
) -> None:
    for operands, one, other in number_pairs(first, second):
        if condition(*operands):
            assert clauses.union(Kind.NUMBER, [one, other], integers=True) == (result(*operands),), operands
            assert len(clauses.union(Kind.NUMBER, [one, other])) == 2, "a half lies between"


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(("first", "second", "condition"), spec.STRING_RULES)
def test_every_string_rule_gives_exists_under_its_condition(first: str, second: str, condition: spec.Condition) -> None:
    for (a,), (b,) in product(spec.STRING_OPERANDS, repeat=2):
        one, other = spec.STRING_MAKERS[first](a), spec.STRING_MAKERS[second](b)
        if condition(a, b):
            assert clauses.union(Kind.STRING, [one, other]) == ALWAYS, (a, b)
            assert clauses.union(Kind.STRING, [other, one]) == ALWAYS, (a, b)


@pytest.mark.feature("content-routing F26", "content-routing F27", "content-routing F46")
def test_merged_number_predicates_accept_exactly_the_union() -> None:
    instances = [p for _, _, p in spec.number_instances()]
    masks = {p: (accepted([p], HALVES), accepted([p], WHOLE)) for p in instances}
    sayable = {mask for mask, _ in masks.values()}
    for one, other in product(instances, repeat=2):
        dense, whole = (a | b for a, b in zip(masks[one], masks[other], strict=True))
        joined = clauses.union(Kind.NUMBER, [one, other])
        assert accepted(joined, HALVES) == dense, (one, other)
        assert accepted(clauses.union(Kind.NUMBER, [one, other], integers=True), WHOLE) == whole, (one, other)
        assert len(joined) == 1 or dense not in sayable, "one predicate would have said it"


@pytest.mark.feature("content-routing F26", "content-routing F27", "content-routing F46")
def test_merged_string_predicates_accept_exactly_the_union() -> None:
    # Operands of up to two letters, of which two fit side by side into four.
    instances = [p for _, operands, p in spec.string_instances() if len("".join(map(str, operands))) < 3]
    masks = {p: accepted([p], STRINGS) for p in instances}
    for one, other in product(instances, repeat=2):
        joined = clauses.union(Kind.STRING, [one, other])
        assert accepted(joined, STRINGS) == masks[one] | masks[other], (one, other)
        assert len(joined) == 1 or masks[one] | masks[other] not in masks.values()


@pytest.mark.feature("content-routing F26")
@pytest.mark.parametrize(("one", "other"), list(product(VersusOp, repeat=2)))
def test_no_rule_ever_touches_a_placeholder(one: VersusOp, other: VersusOp) -> None:
    first, second = Versus(one, "a"), Versus(other, "a")
    wide = first if first.covers(second) else second if second.covers(first) else None
    joined = clauses.union(Kind.STRING, [first, second])
    assert set(joined) == ({wide} if wide else {first, second})


@pytest.mark.feature("content-routing F26")
def test_equal_or_different_to_a_placeholder_is_not_exists() -> None:
    either = perfect(on("x", Versus(VersusOp.EQU, "a")), on("x", Versus(VersusOp.NEQ, "a")))
    assert either is not None
    assert either.matches({"x": 1, "a": 1})
    assert either.matches({"x": 1, "a": 2})
    assert not either.matches({"x": 1})


@pytest.mark.feature("content-routing F27")
def test_identical_filters_merge_to_either_and_covered_ones_to_the_covering() -> None:
    wide, narrow = on("x", gr(3)), filter_of(attribute("x", gr(5)), attribute("y", equ(1)))
    for merge in (perfect, imperfect):
        assert merge(wide, wide) == wide
        assert merge(wide, narrow) == merge(narrow, wide) == wide
        assert merge(EVERYTHING, narrow) == EVERYTHING


@pytest.mark.feature("content-routing F27")
def test_perfect_merging_joins_filters_that_differ_in_one_attribute() -> None:
    base = [attribute("type", equ("A")), attribute("y", equ(1))]
    one, other = filter_of(*base, attribute("x", rng(0, 20))), filter_of(*base, attribute("x", rng(30, 40)))
    assert perfect(one, other) == filter_of(*base, attribute("x", rng(0, 20), rng(30, 40)))
    assert perfect(one, other, disjunctions=False) is None
    across = filter_of(*base, attribute("x", rng(15, 40)))
    assert perfect(one, across, disjunctions=False) == filter_of(*base, attribute("x", rng(0, 40)))
    after = filter_of(*base, attribute("x", rng(21, 40)))
    assert perfect(one, after, disjunctions=False) is None
    assert perfect(one, after, disjunctions=False, integers=True) == filter_of(*base, attribute("x", rng(0, 40)))


@pytest.mark.feature("content-routing F27")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([attribute("x", rng(0, 5)), attribute("y", equ(1))], [attribute("x", rng(3, 9)), attribute("y", equ(2))]),
        ([attribute("x", rng(0, 5))], [attribute("y", rng(3, 9))]),
        ([attribute("x", rng(0, 5))], [attribute("x", equ("a"))]),
        ([attribute("x", rng(0, 5))], [attribute("x", ABSENT)]),
        ([attribute("x", rng(0, 5)), attribute("y", equ(1))], [attribute("x", rng(3, 9))]),
        ([attribute("type", equ("A"))], [attribute("type", equ("B"))]),
    ],
)
def test_perfect_merging_leaves_the_rest_alone(one: list[AttributeFilter], other: list[AttributeFilter]) -> None:
    assert perfect(filter_of(*one), filter_of(*other)) is None


@pytest.mark.feature("content-routing F27")
def test_conditions_side_by_side_on_one_attribute_merge_where_one_of_them_differs() -> None:
    one = filter_of(attribute("s", stw("a")), attribute("s", end("b")))
    other = filter_of(attribute("s", stw("a")), attribute("s", end("c")))
    merged = perfect(one, other)
    assert merged == filter_of(attribute("s", stw("a")), attribute("s", end("b"), end("c")))


@pytest.mark.feature("content-routing F27", "content-routing F46")
@given(worlds.filters(2), worlds.attribute_filters(), worlds.attribute_filters(), st.lists(worlds.value_maps()))
def test_a_perfect_merger_covers_both_and_accepts_nothing_else(
    base: Filter, one: AttributeFilter, other: AttributeFilter, events: list[Values]
) -> None:
    # Two filters that share most of what they say, so that a rule applies often enough.
    first, second = conjunction([*base, one]), conjunction([*base, other])
    merged = perfect(first, second) if first is not None and second is not None else None
    if first is not None and second is not None and merged is not None:
        assert merged.covers(first)
        assert merged.covers(second)
        for values in events:
            assert merged.matches(values) == (first.matches(values) or second.matches(values))


@pytest.mark.feature("content-routing F27", "content-routing F46")
@given(worlds.range_filters(), worlds.range_filters(), st.booleans())
def test_perfect_merging_of_ranges_is_exact_on_a_dense_plane(one: Filter, other: Filter, disjunctions: bool) -> None:
    merged = perfect(one, other, disjunctions=disjunctions)
    assert merged == perfect(other, one, disjunctions=disjunctions)
    if merged is not None:
        for x, y in product(worlds.NUMBERS, repeat=2):
            values = {"x": x, "y": y}
            assert merged.matches(values) == (one.matches(values) or other.matches(values))


@pytest.mark.feature("content-routing F28")
def test_imperfect_merging_joins_every_attribute() -> None:
    one = filter_of(attribute("type", equ("A")), attribute("x", rng(0, 5)), attribute("s", equ("a")))
    other = filter_of(attribute("type", equ("A")), attribute("x", rng(3, 9)), attribute("s", equ("b")))
    merged = imperfect(one, other)
    assert merged == filter_of(
        attribute("type", equ("A")), attribute("x", rng(0, 9)), attribute("s", equ("a"), equ("b"))
    )
    assert imperfect(one, other, disjunctions=False) is None
    assert merged is not None
    assert merged.matches({"type": "A", "x": 1, "s": "b"}), "which neither wanted"


@pytest.mark.feature("content-routing F28")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([attribute("type", equ("A")), attribute("x", equ(1))], [attribute("type", equ("B")), attribute("x", equ(1))]),
        ([attribute("x", equ(1)), attribute("y", equ(1))], [attribute("x", equ(2))]),
        ([attribute("x", equ(1)), attribute("y", equ(1))], [attribute("x", equ(2)), attribute("z", equ(1))]),
        ([attribute("x", equ(1))], [attribute("x", equ("1"))]),
    ],
)
def test_imperfect_merging_asks_for_the_same_structure_and_the_same_type(
    one: list[AttributeFilter], other: list[AttributeFilter]
) -> None:
    assert imperfect(filter_of(*one), filter_of(*other)) is None


@pytest.mark.feature("content-routing F28", "content-routing F46")
@given(worlds.filters(), worlds.filters(), st.booleans(), worlds.value_maps())
def test_an_imperfect_merger_covers_both(one: Filter, other: Filter, disjunctions: bool, values: Values) -> None:
    merged = imperfect(one, other, disjunctions=disjunctions)
    if merged is not None:
        assert merged.covers(one)
        assert merged.covers(other)
        assert merged.matches(values) or not (one.matches(values) or other.matches(values))


@pytest.mark.feature("content-routing F28")
@given(worlds.filters(), worlds.filters(), st.booleans())
def test_where_perfect_merging_succeeds_imperfect_merging_does_too(
    one: Filter, other: Filter, disjunctions: bool
) -> None:
    exact, loose = (merge(one, other, disjunctions=disjunctions) for merge in (perfect, imperfect))
    assert exact is None or exact == loose


@pytest.mark.feature("content-routing F26", "content-routing F28")
def test_rates_merge_to_the_greater_and_absence_stays_a_disjunct() -> None:
    slow, fast = (filter_of(attribute("rate", Rate(r)), attribute("x", equ(r))) for r in (10, 20))
    assert imperfect(slow, fast) == filter_of(attribute("rate", Rate(20)), attribute("x", equ(10), equ(20)))
    assert perfect(slow, fast) is None
    either = perfect(on("x", ABSENT), on("x", EXISTS))
    assert either == on("x", ABSENT, EXISTS)
    assert perfect(on("x", ABSENT), on("x", EXISTS), disjunctions=False) is None


NEAR, FAR = Circle(0, 0, 50e3), Circle(0, 9, 50e3)
AROUND = Box(-2, -2, 2, 2)


@pytest.mark.feature("content-routing F26", "content-routing F27")
def test_areas_merge_by_covering_and_otherwise_stand_side_by_side() -> None:
    near, far, around = (on("lat,lon", Within(area)) for area in (NEAR, FAR, AROUND))
    assert perfect(near, around) == around
    assert perfect(near, far) == on("lat,lon", Within(NEAR), Within(FAR))
    assert perfect(near, far, disjunctions=False) is None
    everywhere = filter_of(attribute("lat,lon", EXISTS, kind=Kind.PLACE))
    assert perfect(around, on("lat,lon", Outside(NEAR))) == everywhere
    assert perfect(on("lat,lon", Outside(NEAR)), on("lat,lon", Outside(FAR))) == everywhere
    assert perfect(near, on("lat,lon", Outside(AROUND)), disjunctions=False) is None


@pytest.mark.feature("content-routing F26", "content-routing F27")
def test_example_at_the_end_of_spec_2_10_5() -> None:
    typed = attribute("type", equ("A"))
    four = [filter_of(typed, attribute("x", p)) for p in (lt(10), gre(5), rng(0, 20), rng(3, 30))]
    assert not any(a.covers(b) for a, b in product(four, repeat=2) if a is not b)
    first, last = perfect(four[0], four[1]), perfect(four[2], four[3])
    assert first == filter_of(typed, attribute("x", EXISTS, kind=Kind.NUMBER))
    assert last == filter_of(typed, attribute("x", rng(0, 30)))
    assert first is not None
    assert last is not None
    assert perfect(last, first) == first, "four filters, one propagated"


@pytest.mark.feature("content-routing F27")
def test_the_first_partner_is_the_first_that_merges() -> None:
    one = on("x", rng(0, 10))
    candidates = [on("y", equ(1)), on("x", rng(30, 40)), on("x", rng(5, 15))]
    assert first_partner(candidates, one, perfect) == (candidates[1], on("x", rng(0, 10), rng(30, 40)))
    assert first_partner([on("y", equ(1))], one, perfect) is None


@pytest.mark.feature("content-routing F27")
def test_the_best_partner_gives_the_most_general_merger_or_else_the_shortest() -> None:
    one = on("x", rng(0, 10))
    candidates = [on("x", rng(30, 40)), on("x", rng(5, 15)), on("x", rng(10, 25)), on("x", rng(-3, 2))]
    assert best_partner(candidates[:2], one, perfect) == (candidates[1], on("x", rng(0, 15)))
    assert best_partner(candidates, one, perfect) == (candidates[2], on("x", rng(0, 25)))
    assert best_partner([], one, perfect) is None


@pytest.mark.feature("content-routing F26")
def test_like_patterns_merge_by_covering_and_by_what_is_left_over() -> None:
    assert perfect(on("s", like("a_%")), on("s", like("a_b%"))) == on("s", like("a_%"))
    assert perfect(on("s", neq("ab")), on("s", like("a_"))) == filter_of(attribute("s", EXISTS, kind=Kind.STRING))
    assert clauses.union(Kind.STRING, [contains("a"), lacks("aa")]) == ALWAYS
    assert perfect(on("s", contains("a")), on("s", stw("b")), disjunctions=False) is None
