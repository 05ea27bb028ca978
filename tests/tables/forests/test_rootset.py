"""Root-set merging against enumeration: what is propagated accepts what the roots accept, after every step."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import acceptance, uncovered
from tests.worlds import NUMBERS, SMALL, Sets, range_filters, small_sets, span

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import FILTERS, Counted, Filters
from godwit.filters.merging import best_partner
from godwit.filters.predicates import gre, lt, rng
from godwit.tables.forests.rootset import MergedRoots
from godwit.tables.merging.merging import Merger, Rules, add_components, minimal_cover

PAIRS = [{"x": x, "y": y} for x, y in product(NUMBERS, NUMBERS)] + [{"x": x} for x in NUMBERS]

toggles = st.lists(small_sets(), max_size=30)
"""Each set comes when it is not there and goes when it is."""


def toggle(wanted: dict[frozenset[int], None], one: frozenset[int]) -> None:
    if one in wanted:
        del wanted[one]
    else:
        wanted[one] = None


@pytest.mark.feature("content-routing F31")
@given(toggles, st.booleans())
def test_the_propagated_filters_accept_exactly_what_the_roots_accept(steps: list[frozenset[int]], eager: bool) -> None:
    merged = MergedRoots(Sets(), eager=eager)
    wanted: dict[frozenset[int], None] = {}
    for step in steps:
        toggle(wanted, step)
        roots = uncovered(Sets(), wanted)
        merged.follow(roots)
        assert frozenset().union(*merged.propagated()) == frozenset().union(*wanted)
        assert len(merged.propagated()) <= len(roots)
        assert uncovered(Sets(), merged.propagated()) == merged.propagated()


@pytest.mark.feature("content-routing F31")
@given(toggles, st.booleans())
def test_imperfect_mergers_accept_all_that_the_roots_accept(steps: list[frozenset[int]], eager: bool) -> None:
    merged = MergedRoots(Sets(imperfect=True), eager=eager)
    wanted: dict[frozenset[int], None] = {}
    for step in steps:
        toggle(wanted, step)
        roots = uncovered(Sets(), wanted)
        merged.follow(roots)
        assert frozenset().union(*merged.propagated()) >= frozenset().union(*wanted)
        assert len(merged.propagated()) <= len(roots)


@pytest.mark.feature("content-routing F31")
@given(toggles, st.booleans(), st.booleans())
def test_a_merger_hides_exactly_the_roots_below_it_and_no_root_makes_two_mergers(
    steps: list[frozenset[int]], eager: bool, imperfect: bool
) -> None:
    language = Sets(imperfect=imperfect)
    merged = MergedRoots(language, eager=eager)
    wanted: dict[frozenset[int], None] = {}
    for step in steps:
        toggle(wanted, step)
        merged.follow(uncovered(language, wanted))
        for one, merger in merged.mergers.items():
            assert set(merger.hidden()) == {root for root in merged.roots if one >= root}
            assert len(merger.components) >= 2
            assert imperfect or one == frozenset().union(*merger.components)
        components = [f for merger in merged.mergers.values() for f in merger.components]
        assert len(components) == len(set(components))


@pytest.mark.feature("content-routing F31")
@given(toggles, st.booleans())
def test_the_updates_applied_in_turn_give_what_is_propagated(steps: list[frozenset[int]], eager: bool) -> None:
    merged = MergedRoots(Sets(), eager=eager)
    wanted: dict[frozenset[int], None] = {}
    held: set[frozenset[int]] = set()
    for step in steps:
        toggle(wanted, step)
        update = merged.follow(uncovered(Sets(), wanted))
        assert held.issuperset(update.removed)
        assert held.isdisjoint(update.added)
        held = (held - set(update.removed)) | set(update.added)
        assert held == set(merged.propagated())


@pytest.mark.feature("content-routing F31")
@given(st.lists(range_filters(), max_size=14), st.booleans(), st.booleans())
def test_real_filters_keep_their_meaning_when_merged(steps: list[Filter], eager: bool, imperfect: bool) -> None:
    language = Filters(imperfect=imperfect)
    accepts = acceptance(language, PAIRS)
    merged = MergedRoots(language, eager=eager)
    wanted: dict[Filter, None] = {}
    for step in steps:
        if step in wanted:
            del wanted[step]
        else:
            wanted[step] = None
        roots = uncovered(language, wanted)
        merged.follow(roots)
        if imperfect:
            assert accepts(merged.propagated()) >= accepts(wanted)
        else:
            assert accepts(merged.propagated()) == accepts(wanted)
        assert len(merged.propagated()) <= len(roots)


@pytest.mark.feature("content-routing F31")
@given(toggles, st.booleans())
def test_knowing_that_merging_is_perfect_saves_work_and_changes_nothing(
    steps: list[frozenset[int]], eager: bool
) -> None:
    language: Counted[frozenset[int], int] = Counted(Sets())
    spared: Counted[frozenset[int], int] = Counted(Sets())
    plain, perfect = MergedRoots(language, eager=eager), MergedRoots(spared, eager=eager, perfect=True)
    wanted: dict[frozenset[int], None] = {}
    for step in steps:
        toggle(wanted, step)
        roots = uncovered(Sets(), wanted)
        assert plain.follow(roots) == perfect.follow(roots)
    assert spared.count["covers"] <= language.count["covers"]


@pytest.mark.feature("content-routing F31")
def test_the_partner_may_be_chosen_by_what_comes_out() -> None:
    def box(x: tuple[int, int], *y: tuple[int, int]) -> Filter:
        return filter_of(attribute("x", rng(*x)), attribute("y", *(rng(*ends) for ends in y)))

    first, best = MergedRoots(FILTERS), MergedRoots(FILTERS, partner=best_partner)
    for merged in (first, best):
        merged.follow([box((0, 1), (5, 6)), box((1, 3), (0, 1))])
    assert first.add(box((0, 1), (0, 1))).added == (box((0, 1), (0, 1), (5, 6)),)
    assert best.add(box((0, 1), (0, 1))).added == (box((0, 3), (0, 1)),)


@pytest.mark.feature("content-routing F31")
def test_what_merged_with_a_removed_root_is_told_again() -> None:
    merged = MergedRoots(Sets())
    merged.add(span(0, 3))
    assert merged.add(span(3, 6)).added == (span(0, 6),)
    update = merged.remove(span(3, 6))
    assert (update.removed, update.added) == ((span(0, 6),), (span(0, 3),))


@pytest.mark.feature("content-routing F31")
def test_a_root_that_covers_a_merger_takes_its_place() -> None:
    merged = MergedRoots(Sets())
    merged.follow([span(0, 3), span(3, 5)])
    update = merged.follow([span(0, 7)])
    assert (update.removed, update.added) == ((span(0, 5),), (span(0, 7),))
    assert not merged.mergers


@pytest.mark.feature("content-routing F31")
def test_a_root_below_a_merger_comes_and_goes_without_a_word() -> None:
    merged = MergedRoots(Sets())
    merged.follow([span(0, 3), span(3, 5)])
    assert not merged.add(span(2, 4))
    assert not merged.remove(span(2, 4))
    assert not merged.add(span(2, 4)), "known again"


@pytest.mark.feature("content-routing F31")
def test_survivors_merge_at_once_only_where_merging_is_eager() -> None:
    lazy, eager = MergedRoots(Sets()), MergedRoots(Sets(), eager=True)
    for merged in (lazy, eager):
        merged.follow([span(0, 2), span(2, 4), span(4, 6)])
        assert merged.propagated() == [span(0, 6)]
        merged.remove(span(4, 6))
    assert lazy.propagated() == [span(0, 2), span(2, 4)]
    assert eager.propagated() == [span(0, 4)]
    lazy.add(span(4, 5))
    assert len(lazy.propagated()) == 2, "a later arrival finds one of the survivors"


@pytest.mark.feature("content-routing F31")
def test_a_kept_merger_falls_when_it_has_cost_too_many_unwanted_events() -> None:
    merged = MergedRoots(Sets(), false_positives_max=2)
    merged.follow([span(0, 2), span(2, 4), span(4, 6)])
    assert not merged.remove(span(4, 6)), "the merger is kept"
    assert not merged.unwanted(7), "no merger asked for this one"
    assert not merged.unwanted(5)
    assert not merged.unwanted(6)
    assert merged.unwanted(5).added == (span(0, 4),)


@pytest.mark.feature("content-routing F31")
def test_a_filter_that_returns_below_a_kept_merger_costs_no_message() -> None:
    merged = MergedRoots(Sets(), false_positives_max=2)
    merged.follow([span(0, 2), span(2, 4)])
    assert not merged.remove(span(2, 4))
    assert not merged.add(span(2, 4))
    assert merged.remove(span(0, 2)).added == (span(2, 4),), "without any component nothing speaks for keeping it"


@pytest.mark.feature("content-routing F31")
@given(st.lists(st.one_of(small_sets(), st.sampled_from(SMALL)), max_size=40), st.integers(0, 3))
def test_kept_mergers_lose_nothing_and_their_cost_is_bounded(steps: list[frozenset[int] | int], limit: int) -> None:
    merged = MergedRoots(Sets(), false_positives_max=limit)
    wanted: dict[frozenset[int], None] = {}
    for step in steps:
        if isinstance(step, int):
            if not any(step in one for one in wanted):
                merged.unwanted(step)
        else:
            toggle(wanted, step)
            merged.follow(uncovered(Sets(), wanted))
        assert frozenset().union(*merged.propagated()) >= frozenset().union(*wanted)
        assert len(merged.propagated()) <= len(merged.roots)
    needless = sorted(frozenset().union(*merged.propagated()) - frozenset().union(*wanted))
    for event in needless * (limit + 1):
        merged.unwanted(event)
    assert frozenset().union(*merged.propagated()) == frozenset().union(*wanted)


@pytest.mark.feature("content-routing F31")
def test_the_published_component_set_leaves_mergers_that_are_too_wide() -> None:
    """Spec 2.10.4: the merger that grows becomes a component and swallows the component whose leaving matters."""
    literal, corrected = MergedRoots(Sets(), rules=Rules.LITERAL), MergedRoots(Sets())
    for merged in (literal, corrected):
        merged.follow([span(0, 2), span(2, 4), span(4, 6)])
        merged.remove(span(0, 2))
    assert literal.propagated() == [span(0, 6)]
    assert corrected.propagated() == [span(2, 4), span(4, 6)]


@pytest.mark.feature("content-routing F31")
def test_published_rules_go_stale_but_lose_nothing_and_corrected_rules_do_neither() -> None:
    counts = {rules: stale_and_lost(rules, walks=20, steps=150) for rules in Rules}
    assert counts[Rules.CORRECTED] == (0, 0)
    assert counts[Rules.LITERAL][0] > 0
    assert counts[Rules.LITERAL][1] == 0


def stale_and_lost(rules: Rules, walks: int, steps: int) -> tuple[int, int]:
    """Steps after which the propagated filters accept too much, and too little, on random walks of sets."""
    stale = lost = 0
    for seed in range(walks):
        random = Random(seed)
        merged = MergedRoots(Sets(), rules=rules)
        wanted: dict[frozenset[int], None] = {}
        for _ in range(steps):
            if wanted and random.random() < 0.5:
                del wanted[random.choice(list(wanted))]
            else:
                wanted[frozenset(random.sample(range(12), random.randint(1, 3)))] = None
            merged.follow(uncovered(Sets(), wanted))
            told, meant = frozenset().union(*merged.propagated()), frozenset().union(*wanted)
            stale += bool(told - meant)
            lost += bool(meant - told)
    return stale, lost


@pytest.mark.feature("content-routing F31")
def test_four_filters_that_cover_nothing_of_each_other_become_one() -> None:
    """The example of spec 2.10.5: x < 10 and x >= 5 are any x; [0, 20] and [3, 30] are [0, 30]."""
    filters = [filter_of(attribute("x", p)) for p in (lt(10), gre(5), rng(0, 20), rng(3, 30))]
    assert uncovered(FILTERS, filters) == filters
    merged = MergedRoots(FILTERS)
    merged.follow(filters)
    (only,) = merged.propagated()
    assert all(only.matches({"x": x}) for x in (-1e9, 0, 5, 1e9))
    assert not only.matches({"y": 1})


@given(st.lists(small_sets(), max_size=8))
def test_the_minimal_cover_has_no_member_too_many_and_none_too_few(filters: list[frozenset[int]]) -> None:
    assert minimal_cover(Sets(), filters) == uncovered(Sets(), dict.fromkeys(filters))


def test_a_component_is_added_unless_covered_and_replaces_what_it_covers() -> None:
    merger: Merger[frozenset[int]] = Merger({}, {})
    add_components(Sets(), merger.components, [span(1, 2), span(5, 6), span(1, 1), span(0, 3)])
    assert list(merger.components) == [span(5, 6), span(0, 3)]
