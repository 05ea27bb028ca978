"""Filters: one form, matching as the spec says it, covering that never lies and overlap that never misses."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from itertools import permutations, product
from random import Random

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import worlds

from godwit.events import Value
from godwit.filters.areas import Circle
from godwit.filters.clauses import AttributeFilter
from godwit.filters.errors import FilterError
from godwit.filters.filters import EVERYTHING, Filter, FilterSet, alternatives, attribute, conjunction, filter_of
from godwit.filters.predicates import (
    ABSENT,
    EXISTS,
    Interval,
    Kind,
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
    lt,
    lte,
    neq,
    rng,
    stw,
)

Values = dict[str, Value]


class Said(msgspec.Struct, frozen=True):
    """One disjunct in the words of the spec, and an opinion of its own about what they mean."""

    operator: str
    operands: tuple[Value, ...]

    def made(self) -> Predicate:
        return MAKE[self.operator](*self.operands)

    def holds(self, value: Value) -> bool:
        return isinstance(value, str) == isinstance(self.operands[0], str) and MEANS[self.operator](
            value, *self.operands
        )


MAKE: dict[str, Callable[..., Predicate]] = {
    "=": equ,
    "<>": neq,
    ">": gr,
    ">=": gre,
    "<": lt,
    "<=": lte,
    "in": rng,
    "starts": stw,
    "ends": end,
    "contains": contains,
    "lacks": lacks,
}
MEANS: dict[str, Callable[..., bool]] = {
    "=": lambda v, a: v == a,
    "<>": lambda v, a: v != a,
    ">": lambda v, a: v > a,
    ">=": lambda v, a: v >= a,
    "<": lambda v, a: v < a,
    "<=": lambda v, a: v <= a,
    "in": lambda v, a, b: a <= v <= b,
    "starts": lambda v, a: v[: len(a)] == a,
    "ends": lambda v, a: v[-len(a) :] == a,
    "contains": lambda v, a: len(v.split(a)) > 1,
    "lacks": lambda v, a: len(v.split(a)) == 1,
}

said_of_numbers = st.one_of(
    st.builds(Said, st.sampled_from(["=", "<>", ">", ">=", "<", "<="]), st.tuples(worlds.whole)),
    st.builds(Said, st.just("in"), st.tuples(worlds.whole, worlds.whole).map(lambda ends: tuple(sorted(ends)))),
)
said_of_strings = st.builds(
    Said, st.sampled_from(["=", "<>", "starts", "ends", "contains", "lacks"]), st.tuples(worlds.words)
)
Sentence = dict[str, list[Said]]
sentences: st.SearchStrategy[Sentence] = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys("xy", st.lists(said_of_numbers, min_size=1, max_size=3)),
        **dict.fromkeys("st", st.lists(said_of_strings, min_size=1, max_size=3)),
    },
)
plain_values: st.SearchStrategy[Values] = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys("xyz", st.sampled_from(worlds.NUMBERS) | worlds.whole),
        **dict.fromkeys("st", st.text("abc", max_size=4)),
    },
)


def spoken(sentence: Sentence) -> Filter:
    return filter_of(*(attribute(name, *(said.made() for said in any_of)) for name, any_of in sentence.items()))


@pytest.mark.feature("content-routing F4", "content-routing F3")
@given(sentences, plain_values)
def test_matching_agrees_with_an_independent_reading_of_the_spec(sentence: Sentence, values: Values) -> None:
    wanted = all(
        name in values and any(said.holds(values[name]) for said in any_of) for name, any_of in sentence.items()
    )
    assert spoken(sentence).matches(values) == wanted


@pytest.mark.feature("content-routing F4")
def test_the_empty_filter_matches_and_covers_everything() -> None:
    anything = filter_of(attribute("x", gr(3)))
    assert EVERYTHING.matches({})
    assert EVERYTHING.matches({"x": math.nan})
    assert EVERYTHING.covers(anything)
    assert EVERYTHING.covers(EVERYTHING)
    assert not anything.covers(EVERYTHING)
    assert EVERYTHING.overlaps(anything)


@pytest.mark.feature("content-routing F4")
def test_attributes_that_nobody_asked_about_are_ignored() -> None:
    wanted = filter_of(attribute("x", gr(3)))
    assert wanted.matches({"x": 4, "y": "whatever", "z": math.nan})


@pytest.mark.feature("content-routing F2")
@given(st.lists(worlds.attribute_filters(), max_size=4))
def test_a_filter_has_one_form_whatever_the_order_and_the_repetitions(attributes: list[AttributeFilter]) -> None:
    forms = {conjunction(order) for order in permutations(attributes)}
    forms.add(conjunction([*attributes, *attributes]))
    assert len(forms) == 1
    made = forms.pop()
    if made is not None:
        assert conjunction(made) == made


@pytest.mark.feature("content-routing F2")
@given(st.lists(worlds.attribute_filters(), max_size=3), worlds.value_maps())
def test_a_conjunction_matches_what_all_of_its_parts_match(attributes: list[AttributeFilter], values: Values) -> None:
    made = conjunction(attributes)
    assert (made is not None and made.matches(values)) == all(one.matches(values) for one in attributes)


@pytest.mark.feature("content-routing F2")
def test_the_order_of_conditions_on_one_attribute_is_forgotten() -> None:
    has_b = attribute("s", contains("b"))
    first = attribute("s", stw("a"), equ("zb"))
    second = attribute("s", stw("c"), equ("zb"))
    assert {conjunction(order) for order in permutations([has_b, first, second])} == {
        filter_of(attribute("s", equ("zb")))
    }


@pytest.mark.feature("content-routing F2")
def test_filters_that_say_the_same_are_one_key_of_a_table() -> None:
    one = filter_of(attribute("y", rng(2, 2), rng(1, 3)), attribute("x", equ("b"), equ("a")))
    same = filter_of(attribute("x", equ("a"), equ("b"), equ("a")), attribute("y", rng(1, 3.0)))
    assert one == same
    assert {one: "kept"}[same] == "kept"
    assert [own.name for own in one] == ["x", "y"]


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (
            [attribute("x", gre(3)), attribute("x", lte(8)), attribute("x", neq(3))],
            [attribute("x", Interval((3, 1), (8, 1)))],
        ),
        ([attribute("x", gre(3)), attribute("x", lte(3))], [attribute("x", equ(3))]),
        ([attribute("x", EXISTS), attribute("x", equ("a"))], [attribute("x", equ("a"))]),
        ([attribute("x", EXISTS, ABSENT), attribute("x", equ("a"))], [attribute("x", equ("a"))]),
        ([attribute("s", stw("a")), attribute("s", equ("ab"), equ("b"))], [attribute("s", equ("ab"))]),
        ([attribute("rate", Rate(20)), attribute("rate", Rate(10))], [attribute("rate", Rate(10))]),
    ],
)
def test_several_conditions_on_one_attribute_become_one(
    parts: list[AttributeFilter], whole: list[AttributeFilter]
) -> None:
    folded = filter_of(*parts)
    assert folded == filter_of(*whole)
    assert len(folded.attributes) == 1


@pytest.mark.feature("content-routing F2")
def test_what_no_single_clause_can_say_stays_side_by_side() -> None:
    both = filter_of(attribute("s", stw("a")), attribute("s", end("b")))
    assert len(both.attributes) == 2
    assert both.matches({"s": "axb"})
    assert not both.matches({"s": "ax"})
    assert both.covers(filter_of(attribute("s", equ("acb"))))
    assert filter_of(attribute("s", stw("a"))).covers(both)
    assert not both.covers(filter_of(attribute("s", stw("a"))))


CONTRADICTIONS = [
    [attribute("x", gr(3)), attribute("x", lt(3))],
    [attribute("x", gr(3)), attribute("x", equ("3"))],
    [attribute("x", equ(True)), attribute("x", equ(1))],
    [attribute("x", ABSENT), attribute("x", equ(1))],
    [attribute("x", ABSENT), attribute("x", EXISTS)],
    [attribute("s", stw("a")), attribute("s", stw("b"))],
    [attribute("s", lacks("a")), attribute("s", equ("cab"), end("ba"))],
    [attribute("x", gr(math.inf))],
    [attribute("x")],
]


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize("parts", CONTRADICTIONS)
def test_a_contradiction_is_no_filter(parts: list[AttributeFilter]) -> None:
    assert conjunction(parts) is None
    with pytest.raises(FilterError, match="contradict each other"):
        filter_of(*parts)


@pytest.mark.feature("content-routing F2", "content-routing F7")
def test_a_rate_and_a_value_of_the_same_name_have_nothing_to_do_with_each_other() -> None:
    limited = filter_of(attribute("rate", Rate(5)))
    measured = filter_of(attribute("rate", gr(5)))
    both = filter_of(*limited, *measured)
    assert both.matches({"rate": 6})
    assert limited.overlaps(measured)
    assert measured.overlaps(limited)
    assert not filter_of(attribute("rate", EXISTS)).covers(limited)
    assert measured.covers(both)
    assert limited.covers(both)


@pytest.mark.feature("content-routing F2")
@pytest.mark.parametrize(
    ("disjuncts", "kind", "complaint"),
    [
        ([equ(1), equ("a")], None, "cannot mix kinds: number, string"),
        ([ABSENT, equ(1)], None, "cannot mix kinds: any, number"),
        ([equ("a")], Kind.NUMBER, "is not for values of kind number"),
        ([ABSENT], Kind.NUMBER, "is not for values of kind number"),
        ([equ(1)], Kind.ANY, "is not for values of kind any"),
        ([EXISTS], Kind.RATE, "is not for values of kind rate"),
        ([Versus(VersusOp.GR, "y")], Kind.STRING, "is not for values of kind string"),
    ],
)
def test_a_clause_holds_predicates_of_its_kind_only(
    disjuncts: list[Predicate], kind: Kind | None, complaint: str
) -> None:
    with pytest.raises(FilterError, match=complaint):
        attribute("x", *disjuncts, kind=kind)


@pytest.mark.feature("content-routing F5")
def test_example_of_spec_1_5_4() -> None:
    f1, f2, f3 = (filter_of(attribute("x", p)) for p in (lt(10), rng(5, 9), rng(8, 15)))
    assert f1.covers(f2)
    assert not f1.covers(f3)
    assert not f2.covers(f3)
    assert not f3.covers(f2)
    assert f1.overlaps(f2)
    assert f1.overlaps(f3)
    assert f2.overlaps(f3)


@pytest.mark.feature("content-routing F5")
def test_fewer_conditions_are_more_general() -> None:
    one = filter_of(attribute("x", gr(3)))
    two = filter_of(attribute("x", gr(3)), attribute("y", gr(3)))
    assert one.covers(two)
    assert not two.covers(one)


@pytest.mark.feature("content-routing F5")
@pytest.mark.parametrize("predicate", [equ(1), equ("a"), equ(True), Versus(VersusOp.EQU, "y")])
def test_presence_of_any_kind_covers_every_value_and_absence_none(predicate: Predicate) -> None:
    wanted = filter_of(attribute("x", predicate))
    assert filter_of(attribute("x", EXISTS)).covers(wanted)
    assert not filter_of(attribute("x", ABSENT)).covers(wanted)
    assert not filter_of(attribute("x", ABSENT)).overlaps(wanted)
    assert not wanted.overlaps(filter_of(attribute("x", ABSENT)))
    assert not filter_of(attribute("y", EXISTS)).covers(wanted)


@pytest.mark.feature("content-routing F5", "content-routing F6")
def test_kinds_never_cross() -> None:
    kinds = [filter_of(attribute("x", EXISTS, kind=kind)) for kind in (Kind.NUMBER, Kind.STRING, Kind.BOOL)]
    for one, other in permutations(kinds, 2):
        assert not one.covers(other)
        assert not one.overlaps(other)


@pytest.mark.feature("content-routing F5")
def test_a_place_is_not_an_attribute_of_its_long_name() -> None:
    near = filter_of(attribute("lat,lon", Within(Circle(0, 0, 1000))))
    named = filter_of(attribute("lat,lon", EXISTS))
    assert not named.covers(near)
    assert near.matches({"lat": 0, "lon": 0})
    assert not named.matches({"lat": 0, "lon": 0})


@pytest.mark.feature("content-routing F5", "content-routing F46")
@given(worlds.filters(), worlds.filters(), worlds.value_maps())
def test_covering_never_lies_and_overlap_never_misses(one: Filter, other: Filter, values: Values) -> None:
    if one.covers(other):
        assert one.matches(values) or not other.matches(values)
    if not one.overlaps(other):
        assert not (one.matches(values) and other.matches(values))
    assert one.overlaps(other) == other.overlaps(one)


@pytest.mark.feature("content-routing F5", "content-routing F6")
@given(worlds.filters(), worlds.filters(), worlds.filters())
def test_covering_is_a_preorder_and_keeps_overlap(one: Filter, other: Filter, third: Filter) -> None:
    assert one.covers(one)
    assert one.overlaps(one)
    if one.covers(other):
        assert one.overlaps(other)
        assert not other.overlaps(third) or one.overlaps(third)
        assert not other.covers(third) or one.covers(third)


@pytest.mark.feature("content-routing F5")
@given(worlds.filters(), worlds.filters())
def test_a_filter_covers_itself_with_more_conditions(one: Filter, other: Filter) -> None:
    both = conjunction([*one, *other])
    assume(both is not None)
    assert both is not None
    assert one.covers(both)
    assert other.covers(both)
    assert one.overlaps(other)


CELLS: list[Values] = [dict(zip("xy", cell, strict=True)) for cell in product(worlds.NUMBERS, repeat=2)]


@pytest.mark.feature("content-routing F5", "content-routing F6", "content-routing F46")
@given(worlds.range_filters(), worlds.range_filters())
def test_for_ranges_over_dense_numbers_covering_and_overlap_are_exact(one: Filter, other: Filter) -> None:
    mine = {at for at, cell in enumerate(CELLS) if one.matches(cell)}
    theirs = {at for at, cell in enumerate(CELLS) if other.matches(cell)}
    assert one.covers(other) == (mine >= theirs)
    assert one.overlaps(other) == bool(mine & theirs)


@pytest.mark.feature("content-routing F6")
def test_attributes_of_one_filter_alone_never_prevent_overlap() -> None:
    assert filter_of(attribute("x", gr(3))).overlaps(filter_of(attribute("y", lt(3))))
    assert not filter_of(attribute("x", gr(3)), attribute("y", equ(1))).overlaps(
        filter_of(attribute("x", gr(5)), attribute("y", equ(2)))
    )


@pytest.mark.feature("content-routing F6", "content-routing F8")
def test_filters_of_different_event_types_do_not_overlap() -> None:
    reading, alarm = (filter_of(attribute("type", equ(name)), attribute("x", gr(3))) for name in ("reading", "alarm"))
    assert not reading.overlaps(alarm)
    assert not reading.covers(alarm)


@pytest.mark.feature("content-routing F8")
@pytest.mark.parametrize(
    ("wanted", "type_"),
    [
        (filter_of(attribute("type", equ("reading")), attribute("x", gr(3))), "reading"),
        (filter_of(attribute("type", equ(""))), ""),
        (filter_of(attribute("x", gr(3))), None),
        (filter_of(attribute("type", equ("a"), equ("b"))), None),
        (filter_of(attribute("type", stw("r"))), None),
        (filter_of(attribute("type", EXISTS)), None),
        (filter_of(attribute("type", equ(7))), None),
        (filter_of(attribute("type", stw("r")), attribute("type", end("g")), attribute("type", equ("rag"))), "rag"),
        (EVERYTHING, None),
    ],
)
def test_a_filter_belongs_to_the_partition_of_its_one_type_or_to_none(wanted: Filter, type_: str | None) -> None:
    assert wanted.type == type_


@pytest.mark.feature("content-routing F8")
@given(worlds.filters(), st.sampled_from(["a", "ab", "b"]), worlds.value_maps())
def test_an_event_is_only_wanted_by_its_own_partition_and_the_open_one(
    wanted: Filter, type_: str, values: Values
) -> None:
    typed = filter_of(*wanted, attribute("type", equ(type_)))
    assert typed.type == type_
    assert not typed.matches({**values, "type": type_ + "?"})
    assert typed.matches({**values, "type": type_}) == wanted.matches(values)


@pytest.mark.feature("content-routing F5")
def test_a_set_covers_what_single_members_cover() -> None:
    low, high, wide = (filter_of(attribute("x", rng(*ends))) for ends in ((0, 5), (5, 10), (3, 7)))
    pair = alternatives([low, high])
    assert pair.covers(FilterSet((low,)))
    assert pair.covers(pair)
    assert not pair.covers(FilterSet((wide,))), "the practical rule looks for one member that covers"
    assert pair.covers(FilterSet())
    assert not FilterSet().covers(pair)
    assert pair.overlaps(FilterSet((wide,)))
    assert not FilterSet().overlaps(pair)


@pytest.mark.feature("content-routing F5")
@given(st.lists(worlds.filters(), max_size=3), st.lists(worlds.filters(), max_size=3), worlds.value_maps())
def test_sets_match_by_any_member_and_cover_soundly(some: list[Filter], more: list[Filter], values: Values) -> None:
    one, other = alternatives(some), alternatives(more)
    assert one.matches(values) == any(f.matches(values) for f in some)
    if one.covers(other):
        assert one.matches(values) or not other.matches(values)
    assert one.overlaps(other) or not (one.matches(values) and other.matches(values))
    assert alternatives([*some, *more]).covers(one)


@pytest.mark.feature("content-routing F2")
@given(st.lists(worlds.range_filters(), max_size=4), st.randoms(use_true_random=False))
def test_a_set_has_one_form_and_no_member_covers_another(some: list[Filter], random: Random) -> None:
    made = alternatives(some)
    shuffled = [*some, *some]
    random.shuffle(shuffled)
    assert alternatives(shuffled) == made
    assert hash(alternatives(shuffled)) == hash(made)
    assert not any(a.covers(b) for a, b in permutations(made, 2))


@pytest.mark.feature("content-routing F2")
@given(worlds.filters())
def test_filters_come_back_from_the_wire_and_from_pickle_as_they_were(wanted: Filter) -> None:
    for back in (
        msgspec.msgpack.decode(msgspec.msgpack.encode(wanted), type=Filter),
        pickle.loads(pickle.dumps(wanted)),
    ):
        assert back == wanted
        assert hash(back) == hash(wanted)
