"""The compiled index says what `Filter.matches` says, whatever was added and removed before."""

from __future__ import annotations

import math
import pickle
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.anything import Events, events, filters, wanteds

from godwit.events import Event, Place, Value
from godwit.filters.areas import Box, Circle
from godwit.filters.filters import Filter, FilterSet, attribute, filter_of
from godwit.filters.predicates import Kind, Outside, Text, TextOp, Within, equ, gr, like, neq, rng
from godwit.filters.text import parse
from godwit.tables.matching.batch import Batch
from godwit.tables.matching.index import Index, Matches

Wanted = Filter | FilterSet
matching = pytest.mark.feature("content-routing F4")


def index_of(wanted: dict[int, Wanted]) -> Index:
    index = Index()
    index.add_many(list(wanted), list(wanted.values()))
    return index


def expected(wanted: dict[int, Wanted], event: dict[str, Value]) -> list[int]:
    return sorted(number for number, one in wanted.items() if one.matches(event))


def check(index: Index, wanted: dict[int, Wanted], stream: Events) -> None:
    """Single events, a batch, and counts all agree with the filters themselves."""
    assert len(index) == len(wanted)
    answers = [expected(wanted, event) for event in stream]
    assert [sorted(index.match(event).tolist()) for event in stream] == answers
    batch = Batch.from_events(stream)
    for apart in (True, False):
        assert [sorted(ids.tolist()) for ids in matched(index, batch, apart=apart)] == answers
    assert index.count_batch(batch).tolist() == [len(answer) for answer in answers]


def matched(index: Index, batch: Batch, *, apart: bool) -> Matches:
    """The way that it goes of itself depends on how much there is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(index._matcher, "_are_few", lambda n, cuts: apart)
        return index.match_batch(batch)


@matching
@given(st.lists(wanteds, max_size=12), st.lists(events, max_size=8))
def test_an_index_says_what_the_filters_say(found: list[Wanted], stream: Events) -> None:
    wanted = {10 * number - 30: one for number, one in enumerate(found)}
    check(index_of(wanted), wanted, stream)


@matching
@given(st.data(), st.lists(events, min_size=1, max_size=5))
def test_adding_and_removing_between_events_changes_exactly_the_answers_it_should(
    data: st.DataObject, stream: Events
) -> None:
    index = Index()
    wanted: dict[int, Wanted] = {}
    for _ in range(data.draw(st.integers(1, 25))):
        if len(wanted) and data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(wanted)))
            index.remove(gone)
            del wanted[gone]
        else:
            number = data.draw(st.integers(-(2**63), 2**63 - 1).filter(lambda n: n not in wanted))
            wanted[number] = data.draw(wanteds)
            index.add(number, wanted[number])
        event = data.draw(st.sampled_from(stream))
        assert sorted(index.match(event).tolist()) == expected(wanted, event)
    check(index, wanted, stream)
    for number in list(wanted):
        index.remove(number)
    check(index, {}, stream)


@matching
@given(st.lists(wanteds, max_size=10), st.lists(events, min_size=1, max_size=6), st.integers(1, 700))
def test_the_size_of_a_batch_changes_nothing(found: list[Wanted], stream: Events, size: int) -> None:
    wanted = dict(enumerate(found))
    index = index_of(wanted)
    repeated = [stream[at % len(stream)] for at in range(size)]
    answers = [expected(wanted, event) for event in stream]
    for apart in (True, False):
        matches = matched(index, Batch.from_events(repeated), apart=apart)
        assert len(matches) == size
        for at in range(size):
            assert sorted(matches[at].tolist()) == answers[at % len(stream)]


@matching
def test_few_events_that_reach_little_go_one_after_the_other_and_many_that_reach_all_as_a_slice() -> None:
    lows = np.random.default_rng(1).permutation(20_000).tolist()
    apart: dict[int, Wanted] = {low: filter_of(attribute("x", rng(low, low + 2))) for low in lows}
    alike: dict[int, Wanted] = {low: filter_of(attribute("x", rng(-low, low + 2))) for low in lows}
    stream: Events = [{"x": 500.5 * at} for at in range(40)]
    for wanted, is_apart in ((apart, True), (alike, False)):
        index = index_of(wanted)
        matches = index.match_batch(Batch.from_events(stream))
        assert index._matcher._are_few(40, 40_000) is is_apart
        assert [sorted(ids.tolist()) for ids in matches] == [expected(wanted, event) for event in stream]


@given(st.lists(st.lists(st.integers(0, 40), unique=True), min_size=1), st.integers(1, 7))
def test_matches_by_group_are_those_by_event(found: list[list[int]], groups: int) -> None:
    """A group comes once, with what any of its ids wants, in order."""
    wanted: dict[int, dict[int, None]] = {}
    for at, numbers in enumerate(found):
        for number in numbers:
            wanted.setdefault(number % groups, {})[at] = None
    parted = matches_of(found).parted(array("i", (number % groups for number in range(41))))
    assert parted is not None
    assert {group: list(events) for group, events in wanted.items()} == dict(parted)
    assert len(parted) == len(wanted)


@pytest.mark.parametrize("number", [-1, 1, 2])
def test_ids_without_a_group_cannot_be_told_by_group(number: int) -> None:
    assert matches_of([[0], [number]]).parted(array("i", [0, -1])) is None


def matches_of(found: list[list[int]]) -> Matches:
    ids = np.array([number for numbers in found for number in numbers], np.int64)
    return Matches(np.cumsum([0, *map(len, found)]), ids)


@matching
@given(st.lists(wanteds, max_size=10), st.lists(events, max_size=5), st.lists(wanteds, max_size=5))
def test_a_pickled_copy_answers_alike_and_goes_its_own_way(
    found: list[Wanted], stream: Events, more: list[Wanted]
) -> None:
    wanted = dict(enumerate(found))
    index = index_of(wanted)
    copy = pickle.loads(pickle.dumps(index))
    check(copy, wanted, stream)
    grown = wanted | {100 + number: one for number, one in enumerate(more)}
    copy.add_many([100 + number for number in range(len(more))], more)
    for number in list(wanted)[::2]:
        copy.remove(number)
        del grown[number]
    check(copy, grown, stream)
    check(index, wanted, stream)


@given(st.lists(filters, min_size=1, max_size=8))
def test_an_emptied_index_holds_nothing_of_what_went_through_it(found: list[Filter]) -> None:
    index = Index()
    for _ in range(3):
        index.add_many(range(len(found)), found)
        for number in range(len(found)):
            index.remove(number)
    assert len(index) == 0
    assert index.match({"a": 1, "b": "x", "lat": 1.0, "lon": 2.0}).tolist() == []


def test_an_id_is_used_once_and_removed_once() -> None:
    index = index_of({5: Filter()})
    with pytest.raises(KeyError, match="5"):
        index.add(5, Filter())
    with pytest.raises(KeyError, match="5"):
        index.add_many([6, 5], [Filter(), Filter()])
    with pytest.raises(KeyError, match="7"):
        index.add_many([7, 7], [Filter(), Filter()])
    assert 6 not in index
    assert 5 in index
    index.remove(5)
    with pytest.raises(KeyError, match="5"):
        index.remove(5)
    assert 5 not in index
    assert "5" not in index


def test_ids_and_filters_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="2 ids"):
        Index().add_many([1, 2], [Filter()])


@matching
def test_each_alternative_may_match_but_the_id_comes_once() -> None:
    both = FilterSet((filter_of(attribute("x", gr(1))), filter_of(attribute("x", gr(2)))))
    index = index_of({1: both, 2: Filter()})
    assert sorted(index.match({"x": 3}).tolist()) == [1, 2]
    assert index.count_batch(Batch.from_events([{"x": 3}, {"x": 2}, {"x": 1}, {}])).tolist() == [2, 2, 1, 1]


@matching
def test_whole_numbers_and_floats_meet_exactly_at_the_edge_of_precision() -> None:
    index = index_of({at: filter_of(attribute("x", equ(2**53 + at))) for at in range(3)})
    stream = [{"x": 2**53 + at} for at in range(3)] + [{"x": float(2**53)}, {"x": float(2**53 + 2)}]
    matches = index.match_batch(Batch.from_events(stream))
    assert [ids.tolist() for ids in matches] == [[0], [1], [2], [0], [2]]


@matching
def test_events_show_their_place_type_and_time() -> None:
    near = filter_of(attribute("lat,lon", Within(Circle(60.17, 24.94, 1000.0))))
    index = index_of({1: near, 2: filter_of(attribute("type", equ("reading"))), 3: filter_of(attribute("time", gr(5)))})
    event = Event("p", 1, type="reading", place=Place(60.171, 24.941), time=6.0)
    assert [sorted(ids.tolist()) for ids in index.match_batch(Batch.from_events([event]))] == [[1, 2, 3]]


@matching
@given(st.integers(0, 2**32), st.integers(1, 4))
def test_circles_decide_as_their_own_contains_does_to_the_last_bit(seed: int, scale: int) -> None:
    """Places are put on the very rim, where one wrong rounding shows."""
    dice = np.random.default_rng(seed)
    wanted: dict[int, Wanted] = {}
    stream: Events = []
    for number in range(30):
        lat, lon = float(dice.uniform(-90, 90)), float(dice.uniform(-180, 180))
        radius = float(10 ** dice.uniform(0, 1.5 * scale))
        inside = Within(Circle(lat, lon, radius))
        wanted[number] = filter_of(attribute("lat,lon", inside if number % 3 else Outside(inside.area)))
        north = min(90.0, lat + radius / 111_195.08)
        stream += [
            {"lat": north, "lon": lon},
            {"lat": lat, "lon": lon},
            {"lat": float(np.nextafter(north, 0)), "lon": lon},
        ]
    check(index_of(wanted), wanted, stream)


@matching
def test_a_crowd_of_ranges_and_areas_is_split_and_still_exact() -> None:
    dice = np.random.default_rng(5)
    wanted: dict[int, Wanted] = {}
    for number in range(3000):
        low, lat, lon = (float(v) for v in dice.uniform(0, 100, 3))
        match number % 3:
            case 0:
                wanted[number] = filter_of(attribute("x", rng(low, low + 1.0)))
            case 1:
                wanted[number] = filter_of(attribute("lat,lon", Within(Circle(lat * 0.9, lon, 50_000.0))))
            case _:
                box = Box(lat * 0.9, lon, min(90.0, lat * 0.9 + 1), lon + 1)
                wanted[number] = filter_of(attribute("lat,lon", Within(box)), attribute("x", gr(low)))
    index = index_of(wanted)
    stream: Events = [
        {"x": float(x), "lat": float(lat), "lon": float(lon)} for x, lat, lon in dice.uniform(0, 90, (40, 3))
    ]
    check(index, wanted, stream)
    for number in range(0, 3000, 2):
        index.remove(number)
        del wanted[number]
    check(index, wanted, stream)


@matching
def test_long_lists_of_values_and_many_patterns_stay_exact() -> None:
    dice = np.random.default_rng(6)
    words = ["".join(dice.choice(list("abc"), dice.integers(1, 7))) for _ in range(400)]
    wanted: dict[int, Wanted] = {}
    for number, word in enumerate(words):
        other = words[number // 2]
        wanted[number] = filter_of(
            attribute("w", [equ(word), like(f"%{word}%"), like(f"{word[0]}%_{other}"), neq(word)][number % 4])
        )
    wanted[1000] = filter_of(attribute("w", *map(equ, words)))
    wanted[1001] = FilterSet(tuple(filter_of(attribute("n", equ(number))) for number in range(300)))
    wanted[1002] = filter_of(attribute("n", *(rng(10 * n, 10 * n + 4) for n in range(100))), attribute("w", equ("a")))
    stream: Events = [{"w": word, "n": number} for number, word in enumerate(words[::7])]
    check(index_of(wanted), wanted, stream)


def test_the_memory_that_an_index_reports_grows_and_shrinks_with_it() -> None:
    empty = Index().nbytes
    index = index_of({number: filter_of(attribute("x", equ(number))) for number in range(5000)})
    assert index.nbytes > empty + 5000 * 20


def test_patterns_with_lone_surrogates_are_texts_like_others() -> None:
    odd = "a\ud800"
    wanted: dict[int, Wanted] = {1: Filter((filter_of(attribute("w", equ(odd))).attributes[0],))}
    wanted[2] = filter_of(attribute("w", Text(TextOp.LIKE, "a_"), kind=Kind.STRING))
    check(index_of(wanted), wanted, [{"w": odd}, {"w": "a"}, {"w": "a\ud83d"}])


NEAR = [1.0, 1.0 + 2**-40, 1.0 + 2**-52, 1.0 - 2**-53, -1.0, -1.0 - 2**-45, 0.0, -0.0, 5e-324, -5e-324]
FAR = [1.7e308, -1.7e308, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1]
"""Numbers whose keys share their upper half with another's, and those at the ends of what there is."""
STRANGE: list[Value] = [math.inf, -math.inf, math.nan, "1", True]

numbers = st.sampled_from(NEAR + FAR)
sides = st.builds("{0} {1} {2!r}".format, st.sampled_from("ab"), st.sampled_from(["<", "<=", ">", ">="]), numbers)
ends = st.lists(numbers, min_size=2, max_size=2).map(sorted)
spans = st.builds(lambda name, two: "{} BETWEEN {!r} AND {!r}".format(name, *two), st.sampled_from("ab"), ends)
edges = st.fixed_dictionaries({}, optional={name: st.sampled_from([*NEAR, *FAR, *STRANGE]) for name in "ab"})


@given(st.lists(st.lists(sides | spans, min_size=1, max_size=3).map(" AND ".join), max_size=12), st.lists(edges))
def test_at_the_edge_of_a_range_events_are_judged_as_the_filter_judges_them(texts: list[str], stream: Events) -> None:
    """Upper halves of keys decide most ranges for single events, and must never decide between equal halves."""
    wanted: dict[int, Wanted] = {number: parse(text) for number, text in enumerate(texts)}
    check(index_of(wanted), wanted, stream)
