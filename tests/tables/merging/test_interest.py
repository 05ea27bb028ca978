"""The interest of a broker: few filters that mean exactly what all clients want, and small changes of them."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import acceptance
from tests.worlds import NUMBERS, range_filters

from godwit.filters.filters import Filter, FilterSet, alternatives, attribute, filter_of
from godwit.filters.language import FILTERS
from godwit.filters.predicates import equ, rng
from godwit.tables.forests import ranges
from godwit.tables.merging.interest import DISJUNCTS_MAX, Concise, Interest
from godwit.tables.merging.merging import Update

PAIRS = [{"x": x, "y": y} for x, y in product(NUMBERS, NUMBERS)]
accepts = acceptance(FILTERS, PAIRS)

filter_sets = st.lists(range_filters(), min_size=1, max_size=3).map(alternatives)
steps = st.lists(st.tuples(st.sampled_from(["ann", "bob", "cy"]), filter_sets, st.integers(0, 3)), max_size=12)


def wants(*ranges: tuple[int, int]) -> FilterSet:
    return alternatives(filter_of(attribute("x", rng(*ends))) for ends in ranges)


@pytest.fixture(params=[1, ranges.MANY])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """From how many roots on their ranges are compared."""
    monkeypatch.setattr(ranges, "MANY", request.param)


@pytest.mark.usefixtures("many")
@pytest.mark.feature("content-routing F31")
@given(steps)
def test_the_interest_means_exactly_what_all_clients_hold(steps: list[tuple[str, FilterSet, int]]) -> None:
    interest = Interest()
    held: Counter[tuple[str, FilterSet]] = Counter()
    told: set[Filter] = set()
    for client, wanted, choice in steps:
        if choice == 0:
            update = interest.drop(client)
            held = Counter({key: count for key, count in held.items() if key[0] != client})
        elif choice == 1 and held:
            client, wanted = sorted(held, key=repr)[0]
            update = interest.remove(wanted, client)
            held = +(held - Counter([(client, wanted)]))
        else:
            update = interest.add(wanted, client)
            held[client, wanted] += 1
        assert told.issuperset(update.removed)
        assert told.isdisjoint(update.added)
        told = (told - set(update.removed)) | set(update.added)
        assert told == set(interest.filters())
        assert accepts(told) == accepts(f for _, wanted in held for f in wanted)
        assert len(told) <= len({f for _, wanted in held for f in wanted})


@pytest.mark.feature("content-routing F31")
def test_what_another_client_already_wants_changes_nothing() -> None:
    interest = Interest()
    assert interest.add(wants((0, 10)), "ann").added == tuple(wants((0, 10)))
    assert not interest.add(wants((0, 10)), "bob")
    assert not interest.add(wants((2, 3)), "cy")
    assert not interest.drop("ann"), "bob still wants it"
    assert interest.drop("bob") == Update(tuple(wants((0, 10))), tuple(wants((2, 3))))


@pytest.mark.feature("content-routing F31")
def test_neighboring_wishes_of_two_clients_are_one_filter_until_one_leaves() -> None:
    interest = Interest()
    interest.add(wants((0, 10)), "ann")
    interest.add(wants((8, 20)), "bob")
    assert interest.filters() == wants((0, 20))
    assert interest.remove(wants((0, 10)), "ann") == Update(tuple(wants((0, 20))), tuple(wants((8, 20))))


def test_a_client_removes_a_filter_set_as_often_as_it_added_it() -> None:
    interest = Interest()
    interest.add(wants((0, 1)), "ann")
    interest.add(wants((0, 1)), "ann")
    assert not interest.remove(wants((0, 1)), "ann")
    assert interest.clients() == ["ann"]
    assert interest.remove(wants((0, 1)), "ann").removed == tuple(wants((0, 1)))
    assert not interest.remove(wants((0, 1)), "ann"), "it is not there any more"
    assert not interest.clients()


def test_filter_sets_that_share_a_filter_share_it_until_both_are_gone() -> None:
    interest = Interest()
    interest.add(wants((0, 1), (5, 6)), "ann")
    interest.add(wants((5, 6), (9, 9)), "ann")
    interest.remove(wants((0, 1), (5, 6)), "ann")
    assert accepts(interest.filters()) == accepts(wants((5, 6), (9, 9)))


def test_replacing_a_filter_set_is_one_change() -> None:
    interest = Interest()
    interest.add(wants((0, 4)), "ann")
    update = interest.change("ann", added=[wants((0, 3))], removed=[wants((0, 4))])
    assert update == Update(tuple(wants((0, 4))), tuple(wants((0, 3))))
    assert not interest.change("ann", added=[wants((0, 3))], removed=[wants((0, 3))])


def test_mergers_stay_short_so_that_a_newcomer_costs_little_however_many_there_are() -> None:
    interest = Interest()
    for number in range(100):
        name = f"device-{number}"
        update = interest.add(alternatives([filter_of(attribute("device", equ(name)))]), name)
        assert sum(len(a.clause) for f in (*update.removed, *update.added) for a in f) <= 2 * DISJUNCTS_MAX
    assert len(interest.filters().filters) == 7
    for number in range(100):
        update = interest.drop(f"device-{number}")
        assert len(update.removed) + len(update.added) <= 6
    assert interest.filters() == FilterSet()


@given(range_filters(), range_filters(), st.booleans())
def test_filters_that_merge_have_a_key_in_common(one: Filter, other: Filter, imperfect: bool) -> None:
    language = Concise(imperfect=imperfect)
    if language.merge(one, other) is not None and not one.covers(other) and not other.covers(one):
        assert set(language.keys(one)) & set(language.keys(other))


def test_a_full_clause_takes_part_in_no_merger() -> None:
    language = Concise(disjuncts_max=2)
    one, two = (filter_of(attribute("x", *map(equ, values))) for values in ((1,), (2, 3)))
    assert language.merge(one, two) is None
    assert not list(language.keys(two))


def test_a_language_that_merges_generously_makes_fewer_filters_that_accept_more() -> None:
    exact, generous = Interest(), Interest(Concise(imperfect=True))
    for low in (0, 4):
        wanted = alternatives([filter_of(attribute("x", rng(low, low + 1)), attribute("y", rng(low, low + 1)))])
        exact.add(wanted, "ann")
        generous.add(wanted, "ann")
    assert len(exact.filters().filters) == 2
    assert len(generous.filters().filters) == 1
    assert accepts(generous.filters()) > accepts(exact.filters())
