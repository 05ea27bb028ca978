"""The plug-in interface: our own language, a predicate that it has never heard of, and the counting wrapper."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from godwit.filters.filters import Filter, attribute, conjunction, filter_of
from godwit.filters.language import FILTERS, Counted, Filters, Language
from godwit.filters.predicates import EXISTS, Absent, Kind, Predicate, Rate, Text, TextOp, Values, equ, gr, lt, neq, rng

pytestmark = pytest.mark.feature("content-routing F7")

PARENTS = {
    "godwit": "wader",
    "curlew": "wader",
    "wader": "bird",
    "swift": "bird",
    "bird": "animal",
    "cat": "animal",
    "animal": None,
}


def ancestors(concept: str | None) -> set[str]:
    return {concept, *ancestors(PARENTS.get(concept))} if concept else set()


class IsA(msgspec.Struct, frozen=True):
    """A semantic predicate (spec 1.8): the value names the concept or one below it."""

    concept: str

    def accepts(self, value: Any, values: Values) -> bool:
        return self.concept in ancestors(value)

    def covers(self, other: Predicate) -> bool:
        if isinstance(other, Text) and other.op is TextOp.EQU:
            return self.accepts(other.operand, {})
        return isinstance(other, IsA) and self.concept in ancestors(other.concept)

    def overlaps(self, other: Predicate) -> bool:
        if isinstance(other, IsA):
            return self.covers(other) or other.covers(self)
        return not isinstance(other, Absent)


def seen(concept: str, *more: Predicate) -> Filter:
    return filter_of(attribute("species", IsA(concept), *more, kind=Kind.STRING))


def test_a_predicate_of_your_own_matches_covers_and_overlaps_like_any_other() -> None:
    assert seen("bird").matches({"species": "godwit"})
    assert not seen("bird").matches({"species": "cat"})
    assert not seen("bird").matches({"species": 7})
    assert seen("bird").covers(seen("wader"))
    assert not seen("wader").covers(seen("bird"))
    assert seen("wader").overlaps(seen("bird"))
    assert not seen("wader").overlaps(seen("swift"))


def test_it_mixes_with_the_built_in_ones_and_takes_part_in_the_canonical_form() -> None:
    assert seen("bird", IsA("wader"), equ("swift")) == seen("bird")
    assert seen("wader", equ("cat")) == filter_of(
        attribute("species", equ("cat"), IsA("wader"), IsA("godwit"), kind=Kind.STRING)
    )
    assert seen("wader", equ("cat")).matches({"species": "cat"})
    assert seen("bird", EXISTS) == filter_of(attribute("species", EXISTS, kind=Kind.STRING))
    assert filter_of(attribute("species", EXISTS)).covers(seen("bird"))
    assert seen("wader").overlaps(filter_of(attribute("species", neq("cat"))))


def test_it_folds_in_conjunctions() -> None:
    assert conjunction([*seen("bird"), *seen("godwit")]) == seen("godwit")
    assert conjunction([*seen("swift"), *seen("wader")]) is None
    assert conjunction([*seen("bird"), attribute("species", equ("swift"))]) == filter_of(
        attribute("species", equ("swift"))
    )


def test_it_merges_by_covering_and_as_a_disjunct() -> None:
    assert FILTERS.merge(seen("bird"), seen("wader")) == seen("bird")
    merged = FILTERS.merge(seen("wader"), seen("swift"))
    assert merged == seen("wader", IsA("swift"))
    assert Filters(disjunctions=False).merge(seen("wader"), seen("swift")) is None


def limited(per_s: float, *predicates: Predicate) -> Filter:
    return filter_of(attribute("rate", Rate(per_s)), *([attribute("x", *predicates)] if predicates else []))


def test_twenty_a_second_cover_ten_a_second() -> None:
    assert FILTERS.covers(limited(20), limited(10))
    assert not FILTERS.covers(limited(10), limited(20))
    assert FILTERS.overlaps(limited(10), limited(20))
    assert FILTERS.covers(limited(20, gr(1)), limited(10, gr(2)))
    assert not FILTERS.covers(limited(10, gr(1)), limited(20, gr(2)))


def test_rates_merge_to_the_greater_one() -> None:
    assert FILTERS.merge(limited(20), limited(10)) == limited(20)
    assert Filters(imperfect=True).merge(limited(10, rng(0, 5)), limited(20, rng(3, 9))) == limited(20, rng(0, 9))
    assert FILTERS.merge(limited(10, rng(0, 5)), limited(20, rng(3, 9))) is None


def test_a_rate_is_no_condition_on_any_one_event() -> None:
    assert limited(0.1, gr(1)).matches({"x": 2})
    assert not limited(0.1, gr(1)).matches({"x": 1})


def test_the_counting_wrapper_answers_as_the_language_and_counts() -> None:
    counted: Language[Filter, Values] = Counted(FILTERS)
    low, high = filter_of(attribute("x", lt(5))), filter_of(attribute("x", gr(3)))
    assert not counted.covers(low, high)
    assert not counted.covers(high, low)
    assert counted.overlaps(low, high)
    assert counted.matches(low, {"x": 4})
    assert counted.merge(low, high) == filter_of(attribute("x", EXISTS, kind=Kind.NUMBER))
    assert counted.type_of(low) is None
    assert isinstance(counted, Counted)
    assert dict(counted.count) == {"covers": 2, "overlaps": 1, "matches": 1, "merge": 1}


@pytest.mark.feature("content-routing F8")
def test_the_language_names_the_partition_of_a_filter() -> None:
    assert FILTERS.type_of(filter_of(attribute("type", equ("reading")))) == "reading"
    assert FILTERS.type_of(filter_of(attribute("x", gr(3)))) is None
