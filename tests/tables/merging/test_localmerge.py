"""Local merging against enumeration, with senders that behave as the mechanism demands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import Sender, acceptance
from tests.worlds import NUMBERS, SMALL, Sets, range_filters, small_sets, span

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.tables.forests.forest import NRF, Forest
from godwit.tables.forests.poset import Poset
from godwit.tables.matching.naive import Naive
from godwit.tables.merging.localmerge import LocalMerging
from godwit.tables.merging.merging import Rules, local_merger
from godwit.tables.table import Table

PAIRS = [{"x": x, "y": y} for x, y in product(NUMBERS, NUMBERS)]

steps = st.lists(st.tuples(st.sampled_from("ab"), small_sets()), max_size=30)
"""An interface and a filter that it wishes for when it does not yet, and drops when it does."""


NonRedundant = partial(Forest, rules=NRF)


def merging(rules: Rules = Rules.CORRECTED) -> LocalMerging[frozenset[int], int]:
    return LocalMerging(Naive(Sets()), Sets(), rules=rules)


@pytest.mark.feature("content-routing F29")
@pytest.mark.parametrize("make_table", [Naive, Poset, NonRedundant])
@given(steps=steps)
def test_each_interface_gets_exactly_what_it_wishes(
    make_table: Callable[[Sets], Table[frozenset[int], int]], steps: list[tuple[str, frozenset[int]]]
) -> None:
    table = LocalMerging(make_table(Sets()), Sets())
    senders = {name: Sender(Sets()) for name in "ab"}
    for name, wanted in steps:
        table.apply(senders[name].toggle(wanted), name)
        for event in SMALL:
            assert table.match(event) == {n for n, s in senders.items() if any(event in w for w in s.wishes)}


@pytest.mark.feature("content-routing F29")
@given(steps)
def test_nothing_is_forgotten_that_the_sender_counts_on_and_nothing_kept_that_it_superseded(
    steps: list[tuple[str, frozenset[int]]],
) -> None:
    table = merging()
    senders = {name: Sender(Sets()) for name in "ab"}
    for name, wanted in steps:
        table.apply(senders[name].toggle(wanted), name)
        for interface, sender in senders.items():
            assert sorted(map(sorted, table.wanted(interface))) == sorted(map(sorted, sender.told()))
            for one, merger in table.mergers(interface).items():
                assert one == frozenset().union(*merger.components)
                assert all(one >= hidden for hidden in merger.covered)
                assert interface in table.interfaces(one)


@pytest.mark.feature("content-routing F29")
@given(steps)
def test_the_merged_table_is_never_larger_than_the_plain_one(steps: list[tuple[str, frozenset[int]]]) -> None:
    table = merging()
    senders = {name: Sender(Sets()) for name in "ab"}
    for name, wanted in steps:
        table.apply(senders[name].toggle(wanted), name)
        assert len(table) <= sum(len(sender.told()) for sender in senders.values())


@pytest.mark.feature("content-routing F29")
@given(steps)
def test_imperfect_mergers_lose_nothing(steps: list[tuple[str, frozenset[int]]]) -> None:
    language = Sets(imperfect=True)
    table = LocalMerging(Naive(language), language)
    senders = {name: Sender(language) for name in "ab"}
    for name, wanted in steps:
        table.apply(senders[name].toggle(wanted), name)
        for event in SMALL:
            assert table.match(event) >= {n for n, s in senders.items() if any(event in w for w in s.wishes)}


@pytest.mark.feature("content-routing F29")
@given(st.lists(range_filters(), max_size=14))
def test_real_filters_keep_their_meaning_inside_the_table(steps: list[Filter]) -> None:
    table = LocalMerging(Naive(FILTERS), FILTERS)
    accepts = acceptance(FILTERS, PAIRS)
    sender = Sender(FILTERS)
    for wanted in steps:
        table.apply(sender.toggle(wanted), "a")
        assert accepts(table) == accepts(sender.wishes)


@pytest.mark.feature("content-routing F29")
def test_two_filters_of_one_interface_become_one_entry_and_come_apart_again() -> None:
    table = merging()
    table.add(span(0, 3), "a")
    table.add(span(3, 6), "a")
    assert list(table) == [span(0, 6)]
    assert table.remove(span(0, 3), "a")
    assert list(table) == [span(3, 6)]


@pytest.mark.feature("content-routing F29")
def test_filters_of_different_interfaces_never_merge() -> None:
    table = merging()
    table.add(span(0, 3), "a")
    table.add(span(3, 6), "b")
    assert list(table) == [span(0, 3), span(3, 6)]


@pytest.mark.feature("content-routing F29")
def test_a_filter_below_a_merger_waits_there_and_stays_when_the_merger_falls() -> None:
    table = merging()
    for wanted in (span(0, 3), span(3, 6), span(2, 4)):
        assert table.add(wanted, "a")
    assert list(table) == [span(0, 6)], "rule 3"
    table.remove(span(3, 6), "a")
    assert list(table) == [span(0, 4)], "rule 5, and the survivors merged again"


@pytest.mark.feature("content-routing F29")
def test_a_merger_that_grows_over_another_takes_over_what_that_stood_for() -> None:
    table = merging()
    for low in (0, 4):
        table.add(frozenset({low, low + 1}), "a")
        table.add(frozenset({low + 1, low + 2}), "a")
    table.add(frozenset({0, 4, 5, 6}), "a")
    assert list(table) == [frozenset({0, 1, 2, 4, 5, 6})], "rule 4"
    assert table.remove(frozenset({0, 4, 5, 6}), "a")
    assert [event for event in SMALL if table.match(event)] == [0, 1, 2]


@pytest.mark.feature("content-routing F29")
def test_a_filter_that_covers_a_merger_ends_it_with_all_that_it_stands_for() -> None:
    table = merging()
    for wanted in (span(0, 3), span(3, 6), span(2, 4), span(0, 7)):
        table.add(wanted, "a")
    assert table.wanted("a") == [span(0, 7)], "rules 2 and 6"
    table.remove(span(0, 7), "a")
    assert not list(table)


@pytest.mark.feature("content-routing F29")
def test_a_filter_that_covers_a_component_supersedes_it() -> None:
    """The sender never withdraws span(0, 1), so only span(1, 4) and what it uncovers may stay."""
    table = merging()
    table.add(span(0, 1), "a")
    table.add(span(1, 4), "a")
    table.add(frozenset({0, 1, 6}), "a")
    table.remove(frozenset({0, 1, 6}), "a")
    assert [event for event in SMALL if table.match(event)] == [1, 2, 3, 4]


@pytest.mark.feature("content-routing F29")
def test_removing_what_was_never_added_changes_nothing() -> None:
    table = merging()
    assert not table.remove(span(0, 3), "a")
    table.add(span(0, 3), "a")
    assert not table.add(span(0, 3), "a")
    assert not table.remove(span(0, 2), "a")
    assert list(table) == [span(0, 3)]


@pytest.mark.feature("content-routing F29")
def test_the_published_order_of_rule_5_loses_the_survivors() -> None:
    literal, corrected = merging(Rules.LITERAL), merging()
    for table in (literal, corrected):
        table.add(span(0, 3), "a")
        table.add(span(3, 6), "a")
        table.remove(span(0, 3), "a")
    assert not literal.match(4)
    assert corrected.match(4) == {"a"}


@pytest.mark.feature("content-routing F29")
def test_published_rules_lose_events_on_random_walks_and_corrected_rules_lose_none() -> None:
    lost, needless = wrong_steps(Rules.LITERAL, walks=40, steps=50)
    assert lost > 0
    assert needless > 0, "published elimination does not look into mergers"
    assert wrong_steps(Rules.CORRECTED, walks=40, steps=50) == (0, 0)


def wrong_steps(rules: Rules, walks: int, steps: int) -> tuple[int, int]:
    """Steps after which some wanted event is not matched, and after which some unwanted one is."""
    lost = needless = 0
    for seed in range(walks):
        random = Random(seed)
        table = LocalMerging(Naive(Sets()), Sets(), rules=rules)
        senders = {name: Sender(Sets()) for name in "abc"}
        for _ in range(steps):
            name = random.choice("abc")
            wishes = list(senders[name].wishes)
            if wishes and random.random() < 0.5:
                update = senders[name].unwish(random.choice(wishes))
            else:
                low = random.randrange(20)
                update = senders[name].wish(span(low, min(19, low + random.randrange(8))))
            table.apply(update, name)
            got = {(event, i) for event in range(20) for i in table.match(event)}
            meant = {(event, n) for n, s in senders.items() for wish in s.wishes for event in wish}
            lost += bool(meant - got)
            needless += bool(got - meant)
    return lost, needless


@pytest.mark.feature("content-routing F29")
def test_filters_are_locally_mergeable_when_one_interface_asked_for_both() -> None:
    table: Table[frozenset[int], int] = Naive(Sets())
    for interface in "ab":
        table.add(span(0, 3), interface)
    for interface in "bc":
        table.add(span(3, 6), interface)
    table.add(span(6, 7), "c")
    assert local_merger(Sets(), table, span(0, 3), span(3, 6)) == (span(0, 6), frozenset("b"))
    assert local_merger(Sets(), table, span(0, 3), span(6, 7)) is None
    assert local_merger(Sets(), table, span(3, 6), span(6, 7)) == (span(3, 7), frozenset("c"))
