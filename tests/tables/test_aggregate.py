"""Aggregate merging against enumeration: every neighbour holds what all the others want, whatever was merged."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import ClosedForm, acceptance, uncovered
from tests.worlds import NUMBERS, Sets, range_filters, small_sets, span

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import FILTERS
from godwit.filters.predicates import gre, lt, rng
from godwit.tables.aggregate import Aggregate, Mergeable
from godwit.tables.merging import Rules, Update, remote_merger
from godwit.tables.table import Interface

NEIGHBOURS = ("1", "2", "3")
INTERFACES = (*NEIGHBOURS, "local")

Small = frozenset[int]

steps = st.lists(st.tuples(small_sets(), st.sampled_from(INTERFACES)), max_size=25)
"""A filter that comes from an interface when it has not yet, and goes when it has."""


class Link:
    """A neighbour that does what a router does: applies updates, and drops what something of the same sender covers."""

    def __init__(self) -> None:
        self.held: list[Small] = []

    def take(self, update: Update[Small]) -> None:
        self.held = [f for f in self.held if f not in update.removed]
        self.held = uncovered(Sets(), [*update.added, *self.held])


def aggregate(
    mergeable: Mergeable = Mergeable.EQUAL,
    rules: Rules = Rules.CORRECTED,
    eager: bool = False,
    imperfect: bool = False,
    neighbours: Iterable[Interface] = NEIGHBOURS,
) -> tuple[ClosedForm[Small, int], Aggregate[Small, int]]:
    language = Sets(imperfect=imperfect)
    table = ClosedForm(language, neighbours)
    return table, Aggregate(table, language, mergeable=mergeable, rules=rules, eager=eager)


def toggle(
    table: ClosedForm[Small, int], merged: Aggregate[Small, int], wanted: Small, interface: Interface
) -> dict[Interface, Update[Small]]:
    change = merged.remove if interface in table.interfaces(wanted) else merged.add
    return change(wanted, interface)


def union(filters: Iterable[Small]) -> Small:
    return frozenset().union(*filters)


@pytest.mark.feature("content-routing F32")
@given(steps, st.sampled_from(Mergeable), st.booleans())
def test_each_neighbour_holds_exactly_what_all_the_others_want(
    steps: list[tuple[Small, Interface]], mergeable: Mergeable, eager: bool
) -> None:
    table, merged = aggregate(mergeable, eager=eager)
    links = {neighbour: Link() for neighbour in NEIGHBOURS}
    for wanted, interface in steps:
        for neighbour, update in toggle(table, merged, wanted, interface).items():
            links[neighbour].take(update)
        for neighbour, link in links.items():
            beyond = table.wanted_beyond(neighbour)
            assert union(link.held) == union(beyond)
            assert set(link.held) == set(merged.told(neighbour))
            assert len(link.held) <= len(beyond)


@pytest.mark.feature("content-routing F32")
@given(steps, st.sampled_from(Mergeable))
def test_imperfect_mergers_withhold_nothing_from_a_neighbour(
    steps: list[tuple[Small, Interface]], mergeable: Mergeable
) -> None:
    table, merged = aggregate(mergeable, imperfect=True)
    for wanted, interface in steps:
        toggle(table, merged, wanted, interface)
        for neighbour in NEIGHBOURS:
            assert union(merged.told(neighbour)) >= union(table.wanted_beyond(neighbour))
            assert len(merged.told(neighbour)) <= len(table.wanted_beyond(neighbour))


@pytest.mark.feature("content-routing F32")
@given(steps)
def test_a_root_goes_where_no_merger_above_it_goes(steps: list[tuple[Small, Interface]]) -> None:
    """Equation 8.1."""
    table, merged = aggregate()
    for wanted, interface in steps:
        toggle(table, merged, wanted, interface)
        told = {f for neighbour in NEIGHBOURS for f in merged.told(neighbour)}
        mergers = told - set(table)
        for root in table.roots():
            above = [merged.forwards(m) for m in mergers if m >= root]
            assert merged.forwards(root) == table.forwards(root) - frozenset().union(*above)


@pytest.mark.feature("content-routing F32")
@given(steps)
def test_only_roots_that_go_the_same_ways_merge(steps: list[tuple[Small, Interface]]) -> None:
    table, merged = aggregate()
    for wanted, interface in steps:
        toggle(table, merged, wanted, interface)
        together: dict[frozenset[Interface], list[Small]] = {}
        for root in table.roots():
            together.setdefault(table.forwards(root), []).append(root)
        for neighbour in NEIGHBOURS:
            for merger in set(merged.told(neighbour)) - set(table):
                assert any(
                    neighbour in ways and merger == union(root for root in roots if merger >= root)
                    for ways, roots in together.items()
                )


@pytest.mark.feature("content-routing F32")
@given(st.lists(st.tuples(range_filters(), st.sampled_from(INTERFACES)), max_size=10), st.sampled_from(Mergeable))
def test_real_filters_keep_their_meaning_on_the_way_out(
    steps: list[tuple[Filter, Interface]], mergeable: Mergeable
) -> None:
    accepts = acceptance(FILTERS, [{"x": x, "y": y} for x, y in product(NUMBERS, NUMBERS)])
    table = ClosedForm(FILTERS, NEIGHBOURS)
    merged = Aggregate(table, FILTERS, mergeable=mergeable)
    for wanted, interface in steps:
        merged.add(wanted, interface)
    for wanted, interface in steps[: len(steps) // 2]:
        merged.remove(wanted, interface)
        for neighbour in NEIGHBOURS:
            beyond = table.wanted_beyond(neighbour)
            assert accepts(merged.told(neighbour)) == accepts(beyond)
            assert len(merged.told(neighbour)) <= len(beyond)


@pytest.mark.feature("content-routing F32")
def test_what_a_merger_covered_on_both_levels_comes_back_when_it_falls() -> None:
    """The vector of spec 2.10.5: without h to neighbour 3, events 6 and 7 published behind it are lost for 1."""
    _, merged = aggregate()
    r, h, f, g = span(3, 8), span(3, 7), span(0, 5), span(4, 10)
    merged.add(r, "3")
    merged.add(h, "1")
    merged.add(f, "local")
    merged.add(g, "local")
    m = span(0, 10)
    assert {n: merged.told(n) for n in NEIGHBOURS} == {n: [m] for n in NEIGHBOURS}
    updates = merged.remove(g, "local")
    assert {n: (u.removed, set(u.added)) for n, u in updates.items()} == {
        "1": ((m,), {f, r}),
        "2": ((m,), {f, r}),
        "3": ((m,), {f, h}),
    }


@pytest.mark.feature("content-routing F32")
def test_four_filters_that_cover_nothing_of_each_other_are_told_as_one() -> None:
    table: ClosedForm[Filter, dict[str, float]] = ClosedForm(FILTERS, ["up"])
    merged = Aggregate(table, FILTERS)
    for clause in (lt(10), gre(5), rng(0, 20), rng(3, 30)):
        merged.add(filter_of(attribute("x", clause)), "local")
    assert len(table.wanted_beyond("up")) == 4
    (only,) = merged.told("up")
    assert all(only.matches({"x": x}) for x in (-1e9, 0, 5, 1e9))


@pytest.mark.feature("content-routing F32")
def test_a_second_sender_of_a_root_changes_its_ways_and_so_its_merger() -> None:
    _, merged = aggregate()
    merged.add(span(0, 3), "1")
    merged.add(span(3, 6), "1")
    assert merged.forwards(span(0, 6)) == {"2", "3"}
    updates = merged.add(span(0, 3), "2")
    assert merged.forwards(span(0, 3)) == {"1", "2", "3"}
    assert merged.forwards(span(3, 6)) == {"2", "3"}
    assert set(updates) == {"1", "2", "3"}
    merged.remove(span(0, 3), "2")
    assert merged.forwards(span(0, 6)) == {"2", "3"}


@pytest.mark.feature("content-routing F32")
def test_a_new_neighbour_gets_everything_and_one_that_left_nothing() -> None:
    table, merged = aggregate()
    merged.add(span(0, 3), "local")
    merged.add(span(3, 6), "1")
    table.neighbours = frozenset({"1", "4"})
    updates = merged.refresh()
    assert set(updates) == {"4"}
    assert updates["4"].added == (span(0, 3), span(3, 6))
    assert not merged.refresh()


@pytest.mark.feature("content-routing F32")
def test_a_change_that_concerns_no_neighbour_sends_nothing() -> None:
    _, merged = aggregate()
    merged.add(span(0, 5), "local")
    assert not merged.add(span(0, 5), "local")
    assert not merged.add(span(1, 2), "local")
    assert not merged.remove(span(7, 7), "local")
    assert not merged.remove(span(1, 2), "local")


@pytest.mark.feature("content-routing F30")
def test_filters_are_remotely_mergeable_for_the_neighbours_that_both_go_to() -> None:
    table, merged = aggregate(Mergeable.INTERSECTING)
    one, other, apart = span(0, 3), span(3, 6), span(5, 5)
    merged.add(one, "local")
    merged.add(other, "3")
    assert remote_merger(Sets(), table, one, other) == (span(0, 6), frozenset({"1", "2"}))
    assert merged.forwards(span(0, 6)) == {"1", "2"}
    assert merged.forwards(one) == {"3"}
    merged.add(apart, "3")
    assert remote_merger(Sets(), table, one, apart) is None, "covered by the other: it goes nowhere"


@pytest.mark.feature("content-routing F30")
@given(steps)
def test_a_remote_merger_goes_only_where_both_its_filters_go(steps: list[tuple[Small, Interface]]) -> None:
    table, merged = aggregate(Mergeable.INTERSECTING)
    for wanted, interface in steps:
        toggle(table, merged, wanted, interface)
    for neighbour in NEIGHBOURS:
        going = [f for f in table if neighbour in table.forwards(f)]
        for merger in set(merged.told(neighbour)) - set(going):
            assert merger == union(f for f in going if merger >= f)


@pytest.mark.feature("content-routing F32")
def test_leaving_out_the_second_level_as_published_loses_events() -> None:
    lost, states = lost_links(Rules.LITERAL, walks=30, steps=50)
    assert 0.01 < lost / states < 0.3
    assert lost_links(Rules.CORRECTED, walks=10, steps=50)[0] == 0


def lost_links(rules: Rules, walks: int, steps: int) -> tuple[int, int]:
    """How many states of links do not accept all that is wanted beyond them, on random walks of ranges; and of all."""
    lost = states = 0
    for seed in range(walks):
        random = Random(seed)
        table, merged = aggregate(rules=rules, neighbours=("1", "2", "3", "4"))
        for _ in range(steps):
            held = [(f, i) for f, senders in table.senders.items() for i in sorted(senders)]
            if held and random.random() < 0.45:
                merged.remove(*random.choice(held))
            else:
                low = random.randrange(20)
                merged.add(span(low, min(19, low + random.randrange(8))), random.choice(("1", "2", "3", "4", "local")))
            for neighbour in sorted(table.neighbours):
                states += 1
                lost += union(merged.told(neighbour)) != union(table.wanted_beyond(neighbour))
    return lost, states
