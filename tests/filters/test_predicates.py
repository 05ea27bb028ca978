"""Predicates against the tables of the spec, cell by cell, and against domains small enough to enumerate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import worlds
from tests.filters import spec_tables as spec

from godwit.events import INT_MAX, INT_MIN, Value
from godwit.filters.errors import FilterError
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    VERSUS_KIND,
    AnyPredicate,
    Flag,
    Hole,
    Interval,
    Kind,
    Rate,
    Text,
    TextOp,
    Versus,
    VersusOp,
    contains,
    end,
    equ,
    gr,
    gre,
    kind_of,
    lacks,
    like,
    lt,
    lte,
    negation,
    neq,
    number,
    rng,
    stw,
    unlike,
)

WHOLE = range(-2, 8)
HALVES = [Fraction(n, 2) for n in range(-4, 15)]
STRINGS = ["".join(letters) for length in range(6) for letters in product("abc", repeat=length)]
# Two operands of three letters may need six to stand side by side.
STRINGS += ["".join(letters) for letters in product("ab", repeat=6)]


def accepted(predicate: AnyPredicate, domain: Iterable[object]) -> int:
    """The accepted part of a domain as a bit mask, so that a subset test is one operation."""
    return sum(1 << at for at, value in enumerate(domain) if predicate.accepts(value, {}))


def pairs(operators: Iterable[str]) -> list[tuple[str, str]]:
    known = list(operators)
    return [(row, column) for row in known for column in known]


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize(("row", "column"), pairs(spec.NUMBER_COVERING))
def test_every_cell_of_the_number_covering_table_is_ours(row: str, column: str) -> None:
    condition = spec.NUMBER_COVERING[row].get(column)
    for mine, theirs in product(spec.number_operands(row), spec.number_operands(column)):
        wide, narrow = spec.NUMBER_MAKERS[row](*mine), spec.NUMBER_MAKERS[column](*theirs)
        assert wide.covers(narrow) == (condition is not None and condition(*mine, *theirs)), (mine, theirs)


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize(("row", "column"), pairs(spec.STRING_COVERING))
def test_every_cell_of_the_string_covering_table_is_ours(row: str, column: str) -> None:
    condition = spec.STRING_COVERING[row].get(column)
    for mine, theirs in product(spec.string_operands(row), spec.string_operands(column)):
        wide, narrow = spec.STRING_MAKERS[row](*mine), spec.STRING_MAKERS[column](*theirs)
        assert wide.covers(narrow) == (condition is not None and condition(*mine, *theirs)), (mine, theirs)


@pytest.mark.feature("content-routing F5", "content-routing F46")
def test_number_covering_is_sound_on_whole_numbers_and_exact_on_dense_ones() -> None:
    made = [(p, accepted(p, WHOLE), accepted(p, HALVES)) for _, _, p in spec.number_instances()]
    for (wide, wide_whole, wide_dense), (narrow, narrow_whole, narrow_dense) in product(made, repeat=2):
        covers = wide.covers(narrow)
        assert not covers or narrow_whole | wide_whole == wide_whole, (wide, narrow)
        assert covers == (narrow_dense | wide_dense == wide_dense), (wide, narrow)


@pytest.mark.feature("content-routing F5", "content-routing F46")
def test_string_covering_is_sound_and_complete_over_three_letters() -> None:
    made = [(p, accepted(p, STRINGS)) for _, _, p in spec.string_instances()]
    for (wide, all_wide), (narrow, all_narrow) in product(made, repeat=2):
        assert wide.covers(narrow) == (all_narrow | all_wide == all_wide), (wide, narrow)


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize("column", spec.UNSOUND_NIN)
def test_the_four_published_cells_that_lose_events_are_never_taken(column: str) -> None:
    fooled = [
        (lacks(a), spec.STRING_MAKERS[column](b))
        for (a,), (b,) in product(spec.STRING_OPERANDS, repeat=2)
        if spec.UNSOUND_NIN[column](a, b)
    ]
    assert fooled
    for wide, narrow in fooled:
        lost = [text for text in STRINGS if narrow.accepts(text, {}) and not wide.accepts(text, {})]
        assert lost, "the published cell would be right here"
        assert not wide.covers(narrow)


@pytest.mark.feature("content-routing F5")
def test_covering_is_reflexive_and_transitive() -> None:
    numbers = [p for _, _, p in spec.number_instances()]
    assert all(p.covers(p) for p in numbers)
    for a, b, c in product(numbers[::2], numbers[::2], numbers[::2]):
        assert not (a.covers(b) and b.covers(c)) or a.covers(c)


@pytest.mark.feature("content-routing F2")
def test_a_range_of_one_number_is_an_equality() -> None:
    assert rng(3, 3) == equ(3)
    assert hash(rng(3, 3.0)) == hash(equ(3))
    assert equ(3).covers(rng(3, 3))


@pytest.mark.feature("content-routing F3")
@pytest.mark.parametrize(
    ("predicate", "wanted", "refused"),
    [
        (equ("ab"), ["ab"], ["", "a", "abc", "AB"]),
        (neq("ab"), ["", "a", "abc", "AB"], ["ab"]),
        (contains("ab"), ["ab", "xabx"], ["", "ba", "a b"]),
        (lacks("ab"), ["", "ba"], ["ab", "xabx"]),
        (stw("ab"), ["ab", "abx"], ["", "a", "xab"]),
        (end("ab"), ["ab", "xab"], ["", "b", "abx"]),
        (like("a_c%"), ["abc", "axcd"], ["ac", "xabc"]),
        (unlike("a_c%"), ["ac", "xabc"], ["abc", "axcd"]),
        (equ(3), [3, 3.0], [2, 3.5]),
        (neq(3), [2, 3.5, math.inf], [3, 3.0]),
        (gr(3), [3.5, 4, math.inf], [3, 2]),
        (gre(3), [3, 4], [2.5]),
        (lt(3), [2.5, -math.inf], [3]),
        (lte(3), [3, 2], [3.5]),
        (rng(2, 4), [2, 3.5, 4], [1.5, 4.5]),
        (equ(True), [True], [False]),
        (neq(True), [False], [True]),
        (EXISTS, [0, "", False], []),
        (ABSENT, [], [0, "", False]),
    ],
)
def test_predicates_mean_what_their_names_say(
    predicate: AnyPredicate, wanted: list[Value], refused: list[Value]
) -> None:
    assert [value for value in wanted if not predicate.accepts(value, {})] == []
    assert [value for value in refused if predicate.accepts(value, {})] == []


def overlap_condition(table: spec.Table, row: str, column: str) -> spec.Condition:
    """The cell of the unordered pair, as a function of the operands of the row and then of the column."""
    if column in table[row]:
        return table[row][column]
    mirrored = table[column][row]
    ours = 2 if row == "Rng" else 0 if row == "Exists" else 1
    return lambda *operands: mirrored(*operands[ours:], *operands[:ours])


@pytest.mark.feature("content-routing F6")
@pytest.mark.parametrize(("row", "column"), pairs(spec.NUMBER_OVERLAP))
def test_every_cell_of_the_number_overlap_table_is_ours(row: str, column: str) -> None:
    condition = overlap_condition(spec.NUMBER_OVERLAP, row, column)
    for mine, theirs in product(spec.number_operands(row), spec.number_operands(column)):
        one, other = spec.NUMBER_MAKERS[row](*mine), spec.NUMBER_MAKERS[column](*theirs)
        assert one.overlaps(other) == condition(*mine, *theirs), (mine, theirs)


@pytest.mark.feature("content-routing F6")
@pytest.mark.parametrize(("row", "column"), pairs(spec.STRING_OVERLAP))
def test_every_cell_of_the_string_overlap_table_is_ours(row: str, column: str) -> None:
    condition = overlap_condition(spec.STRING_OVERLAP, row, column)
    for mine, theirs in product(spec.string_operands(row), spec.string_operands(column)):
        one, other = spec.STRING_MAKERS[row](*mine), spec.STRING_MAKERS[column](*theirs)
        assert one.overlaps(other) == condition(*mine, *theirs), (mine, theirs)


@pytest.mark.feature("content-routing F6")
def test_overlap_is_exact_for_single_predicates_over_dense_numbers() -> None:
    made = [(p, accepted(p, HALVES)) for _, _, p in spec.number_instances()]
    for (one, all_one), (other, all_other) in product(made, repeat=2):
        assert one.overlaps(other) == bool(all_one & all_other), (one, other)


@pytest.mark.feature("content-routing F6")
def test_overlap_is_exact_for_single_predicates_over_strings() -> None:
    made = [(p, accepted(p, STRINGS)) for _, _, p in spec.string_instances()]
    for (one, all_one), (other, all_other) in product(made, repeat=2):
        assert one.overlaps(other) == bool(all_one & all_other), (one, other)


@pytest.mark.feature("content-routing F6")
def test_overlap_is_not_transitive() -> None:
    low, middle, high = rng(0, 3), rng(2, 6), rng(5, 8)
    assert low.overlaps(middle)
    assert middle.overlaps(high)
    assert not low.overlaps(high)


SHAPES = ["".join(letters) for length in range(4) for letters in product("ab_%", repeat=length)]


@pytest.mark.feature("content-routing F5", "content-routing F6")
def test_like_and_not_like_of_any_shape_cover_and_overlap_exactly() -> None:
    made = {p for shape in SHAPES for p in (like(shape), unlike(shape)) if p is not None}
    masks = [(p, accepted(p, STRINGS)) for p in made]
    for (one, all_one), (other, all_other) in product(masks, repeat=2):
        assert one.covers(other) == (all_one | all_other == all_one), (one, other)
        assert one.overlaps(other) == bool(all_one & all_other), (one, other)


@pytest.mark.feature("content-routing F3")
@given(worlds.text_predicates() | worlds.pattern_predicates())
def test_the_negation_of_a_text_predicate_accepts_the_other_strings(predicate: AnyPredicate) -> None:
    if isinstance(predicate, Text):
        everything = (1 << len(STRINGS)) - 1
        assert accepted(negation(predicate), STRINGS) == everything ^ accepted(predicate, STRINGS)
        opposite = negation(predicate)
        assert isinstance(opposite, Text)
        assert negation(opposite) == predicate


near_edges = st.sampled_from([0, 2**53, -(2**53), 2**62, 2**63 - 2**10, -(2**63) + 2**10]).flatmap(
    lambda edge: st.integers(edge - 3, edge + 3)
)
edge_numbers: st.SearchStrategy[int | float] = st.one_of(
    near_edges, near_edges.map(float), st.sampled_from([INT_MIN, INT_MAX, 2.0**63, -(2.0**63), 2.0**64, 0.5, 1e300])
)


@pytest.mark.feature("content-routing F1", "content-routing F5")
@given(edge_numbers, edge_numbers)
def test_whole_numbers_and_floats_compare_exactly_whatever_their_size(value: int | float, operand: int | float) -> None:
    exact, other = Fraction(value), Fraction(operand)
    assert equ(operand).accepts(value, {}) == (exact == other)
    assert neq(operand).accepts(value, {}) == (exact != other)
    assert gr(operand).accepts(value, {}) == (exact > other)
    assert lte(operand).accepts(value, {}) == (exact <= other)
    assert gre(value).covers(gre(operand)) == (exact <= other)
    assert lt(value).covers(equ(operand)) == (exact > other)
    assert equ(value).overlaps(equ(operand)) == (exact == other)
    assert (equ(value) == equ(operand)) == (exact == other)


@pytest.mark.feature("content-routing F1")
def test_neighbors_at_the_edge_of_float_precision_are_told_apart() -> None:
    assert not equ(2**53 + 1).accepts(2.0**53, {})
    assert gr(2.0**53).accepts(2**53 + 1, {})
    assert not equ(2.0**63).accepts(INT_MAX, {})
    assert lt(2.0**63).accepts(INT_MAX, {})
    assert not rng(2**53, 2**53 + 1).covers(rng(2**53, 2**53 + 2))


@pytest.mark.feature("content-routing F2")
def test_an_operand_has_one_form_however_it_was_written() -> None:
    assert repr(number(5.0)) == repr(number(5)) == "5"
    assert repr(number(-0.0)) == "0"
    assert repr(number(2.0**63)) == repr(2.0**63)


@pytest.mark.feature("content-routing F1")
@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, Kind.BOOL), (1, Kind.NUMBER), (1.5, Kind.NUMBER), ("1", Kind.STRING), (math.nan, None), (b"", None)],
)
def test_each_value_has_one_kind_and_nan_has_none(value: object, kind: Kind | None) -> None:
    assert kind_of(value) is kind


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize(
    "predicate", [equ(1), neq(1), gr(1), equ("a"), neq("a"), stw("a"), equ(True), Versus(VersusOp.EQU, "a")]
)
def test_exists_covers_whatever_needs_the_attribute_and_absent_only_itself(predicate: AnyPredicate) -> None:
    assert EXISTS.covers(predicate)
    assert EXISTS.overlaps(predicate)
    assert predicate.overlaps(EXISTS)
    assert not predicate.covers(EXISTS)
    assert not ABSENT.covers(predicate)
    assert not predicate.covers(ABSENT)
    assert not ABSENT.overlaps(predicate)
    assert not predicate.overlaps(ABSENT)


@pytest.mark.feature("content-routing F5")
def test_exists_and_absent_exclude_each_other() -> None:
    assert EXISTS.covers(EXISTS)
    assert ABSENT.covers(ABSENT)
    assert not EXISTS.covers(ABSENT)
    assert not ABSENT.covers(EXISTS)
    assert not EXISTS.overlaps(ABSENT)
    assert not ABSENT.overlaps(EXISTS)


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize(
    ("one", "other"), [(equ(1), equ("1")), (neq(1), equ("a")), (neq("a"), equ(1)), (equ(True), equ(1))]
)
def test_predicates_of_different_kinds_never_cover_each_other(one: AnyPredicate, other: AnyPredicate) -> None:
    assert not one.covers(other)
    assert not other.covers(one)


VERSUS_OF = {
    "Equ": VersusOp.EQU,
    "Neq": VersusOp.NEQ,
    "Gr": VersusOp.GR,
    "Gre": VersusOp.GRE,
    "Lt": VersusOp.LT,
    "Lte": VersusOp.LTE,
    "In": VersusOp.IN,
    "Nin": VersusOp.NIN,
    "Stw": VersusOp.STW,
    "End": VersusOp.END,
}


def equal_operands(row: str, column: str) -> bool:
    """Spec 1.4.1: the cell of either covering table as if both operands were the same."""
    tables: list[tuple[spec.Table, int | str]] = [(spec.NUMBER_COVERING, 3), (spec.STRING_COVERING, "ab")]
    return any(row in table and column in table[row] and table[row][column](same, same) for table, same in tables)


@pytest.mark.feature("content-routing F3", "content-routing F5")
@pytest.mark.parametrize(("row", "column"), pairs(VERSUS_OF))
def test_identical_placeholders_cover_by_the_tables_with_equal_operands(row: str, column: str) -> None:
    wide, narrow = Versus(VERSUS_OF[row], "a"), Versus(VERSUS_OF[column], "a")
    assert wide.covers(narrow) == equal_operands(row, column)
    assert not wide.covers(Versus(VERSUS_OF[column], "b"))


VALUES_OF: dict[Kind, list[Value]] = {
    Kind.NUMBER: [0, 1, 1.0, 2.5, -math.inf],
    Kind.STRING: ["", "a", "ab", "ba", "aba"],
    Kind.BOOL: [True, False],
}


@pytest.mark.feature("content-routing F3", "content-routing F5")
def test_placeholder_covering_is_sound_for_every_kind_that_both_operators_are_for() -> None:
    for wide, narrow, kind in product(VersusOp, VersusOp, VALUES_OF):
        if VERSUS_KIND.get(wide, kind) is kind and Versus(wide, "a").covers(Versus(narrow, "a")):
            for value, operand in product(VALUES_OF[kind], repeat=2):
                event = {"a": operand}
                assert not Versus(narrow, "a").accepts(value, event) or Versus(wide, "a").accepts(value, event)


@pytest.mark.feature("content-routing F3", "content-routing F5", "content-routing F6")
@pytest.mark.parametrize("op", VersusOp)
@pytest.mark.parametrize(
    "constant", [equ(1), neq(1), gr(1), rng(1, 2), equ("a"), neq("a"), contains("a"), lacks("a"), equ(True)]
)
def test_a_placeholder_and_a_constant_never_cover_and_always_may_overlap(op: VersusOp, constant: AnyPredicate) -> None:
    placeholder = Versus(op, "a")
    assert not placeholder.covers(constant)
    assert not constant.covers(placeholder)
    assert placeholder.overlaps(constant)
    assert constant.overlaps(placeholder)
    assert placeholder.overlaps(Versus(VersusOp.NEQ, "b"))


@pytest.mark.feature("content-routing F3", "content-routing F4")
@pytest.mark.parametrize("op", VersusOp)
def test_a_placeholder_without_a_value_of_the_same_kind_accepts_nothing(op: VersusOp) -> None:
    strange: list[tuple[Value, dict[str, Value]]] = [
        (1, {}),
        (1, {"a": "1"}),
        (1, {"a": True}),
        (1, {"a": math.nan}),
        ("a", {"a": 1}),
        ("a", {"b": "a"}),
        (True, {"a": 1}),
    ]
    assert not any(Versus(op, "a").accepts(value, values) for value, values in strange)


@pytest.mark.feature("content-routing F3", "content-routing F4")
@pytest.mark.parametrize(
    ("op", "value", "operand", "wanted"),
    [
        (VersusOp.EQU, 2, 2.0, True),
        (VersusOp.EQU, "a", "a", True),
        (VersusOp.NEQ, True, False, True),
        (VersusOp.NEQ, 2, 2, False),
        (VersusOp.GR, 3, 2, True),
        (VersusOp.GR, 2, 2, False),
        (VersusOp.GRE, 2, 2, True),
        (VersusOp.LT, 1, 2, True),
        (VersusOp.LTE, 2, 2, True),
        (VersusOp.IN, "xab", "ab", True),
        (VersusOp.NIN, "xab", "ab", False),
        (VersusOp.STW, "abx", "ab", True),
        (VersusOp.END, "xab", "ab", True),
        (VersusOp.GR, "b", "a", False),
        (VersusOp.GR, True, False, False),
        (VersusOp.IN, 12, 1, False),
        (VersusOp.STW, True, True, False),
    ],
)
def test_a_placeholder_compares_two_values_of_one_event(
    op: VersusOp, value: Value, operand: Value, wanted: bool
) -> None:
    assert Versus(op, "a").accepts(value, {"a": operand}) is wanted


@pytest.mark.feature("content-routing F3")
@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: rng(5, 4), "range 5 to 4 is upside down"),
        (lambda: rng(math.nan, 4), "NaN"),
        (lambda: equ(math.nan), "NaN matches nothing"),
        (lambda: neq(math.nan), "NaN matches nothing"),
        (lambda: equ(2**63), "does not fit 64 bits"),
        (lambda: gr(True), "True is not a number"),
        (lambda: lacks(""), "nothing would match"),
        (lambda: Rate(0), "must be above 0"),
        (lambda: Rate(math.nan), "must be above 0"),
        (lambda: Interval((5, 0), (4, 1)), "upside down"),
        (lambda: Interval((math.nan, 0), (4, 1)), "NaN"),
        (lambda: Hole(math.nan), "NaN"),
    ],
)
def test_operands_that_cannot_be_are_refused_with_the_reason(make: object, complaint: str) -> None:
    with pytest.raises(FilterError) as refused:
        make()  # type: ignore[operator]
    assert complaint in str(refused.value)


@pytest.mark.feature("content-routing F2")
def test_what_says_the_same_is_the_same_predicate() -> None:
    assert stw("") == end("") == contains("") == like("%") == like("%%") == EXISTS
    assert like("ab") == equ("ab")
    assert like("ab%") == stw("ab")
    assert like("%ab") == end("ab")
    assert like("%ab%") == contains("ab")
    assert like("%_") == like("_%") == neq("")
    assert unlike("_%") == equ("")
    assert unlike("%ab%") == lacks("ab")
    assert unlike("ab") == neq("ab")
    assert like(r"100\%") == equ("100%")
    assert like("_%_") == like("%__") == Text(TextOp.LIKE, "__%")
    assert unlike("%") is None
    assert neq(True) == Flag(False)


@pytest.mark.feature("content-routing F2")
@given(worlds.number_predicates() | worlds.text_predicates() | worlds.pattern_predicates() | worlds.place_predicates())
def test_predicates_come_back_from_the_wire_as_they_were(predicate: AnyPredicate) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(predicate), type=AnyPredicate) == predicate


@pytest.mark.feature("content-routing F2")
def test_a_forged_interval_does_not_pass_the_wire() -> None:
    honest = msgspec.to_builtins(rng(1, 2))
    for forged in ([3, 0], [math.nan, 0]):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode({**honest, "lo": forged}), type=AnyPredicate)
