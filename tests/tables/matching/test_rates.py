"""Rate limits and monitoring, with a clock in the test's hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.predicates import Rate, Values, rng
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.matching.rates import RATED, RateControl, Skip, rate_of

both_skips = pytest.mark.parametrize("skip", Skip)


def limited(low: int, high: int, per_s: float | None = None) -> Filter:
    demands = [attribute("x", rng(low, high))]
    if per_s is not None:
        demands.append(attribute("limit", Rate(per_s)))
    return filter_of(*demands)


def control(*wanted: Filter, skip: Skip = Skip.SPENT, interval_s: float = 1.0) -> RateControl[Filter, Values]:
    """Each filter wanted by an interface of its own, named by its place."""
    rates = RateControl(Forest[Filter, Values](rules=RATED), rate_of, interval_s=interval_s, skip=skip)
    for place, one in enumerate(wanted):
        rates.add(one, str(place))
    return rates


@both_skips
@pytest.mark.feature("content-routing F25")
def test_each_interval_has_its_limit(skip: Skip) -> None:
    rates = control(limited(0, 9, 2), skip=skip)
    assert [rates.match({"x": 1}, now_s=0.1 * step) for step in range(4)] == [{"0"}, {"0"}, set(), set()]
    assert rates.match({"x": 1}, now_s=1.0) == {"0"}


@both_skips
@pytest.mark.feature("content-routing F25")
def test_a_filter_without_a_limit_has_no_limit(skip: Skip) -> None:
    rates = control(limited(0, 9), limited(0, 9, 1), skip=skip)
    assert [rates.match({"x": 1}, now_s=0.0) for _ in range(3)] == [{"0", "1"}, {"0"}, {"0"}]


@pytest.mark.feature("content-routing F25")
@given(limits=st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True), events=st.integers(0, 12))
def test_filters_that_differ_in_their_limit_alone_may_be_skipped_together(limits: list[int], events: int) -> None:
    """The condition under which the published rule holds."""
    wanted = [limited(0, 9, limit) for limit in limits]
    corrected, published = control(*wanted), control(*wanted, skip=Skip.SUBTREE)
    for number in range(events):
        due = {str(place) for place, limit in enumerate(limits) if number < limit}
        assert corrected.match({"x": 1}, now_s=0.0) == published.match({"x": 1}, now_s=0.0) == due


@pytest.mark.feature("content-routing F25")
def test_the_published_rule_lets_a_busy_filter_starve_what_it_covers() -> None:
    """The erratum: the counters do not advance together, for the upper filter also counts what the lower refuses."""
    for skip, due in ((Skip.SUBTREE, set()), (Skip.SPENT, {"1"})):
        rates = control(limited(0, 9, 3), limited(5, 9, 2), skip=skip)
        for _ in range(3):
            assert rates.match({"x": 1}, now_s=0.0) == {"0"}
        assert rates.match({"x": 7}, now_s=0.0) == due


@pytest.mark.feature("content-routing F25")
@given(
    wanted=st.lists(
        st.builds(limited, st.integers(0, 4), st.integers(4, 8), st.sampled_from([None, 1, 2, 3])), max_size=7
    ),
    events=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), max_size=25),
)
def test_every_filter_delivers_the_first_events_of_each_interval_that_it_accepts(
    wanted: list[Filter], events: list[tuple[int, int]]
) -> None:
    wanted = list(dict.fromkeys(wanted))
    rates = control(*wanted)
    taken: dict[tuple[int, int], int] = {}
    for x, second in sorted(events, key=lambda event: event[1]):
        due = set()
        for place, one in enumerate(wanted):
            limit = rate_of(one)
            if one.matches({"x": x}) and (limit is None or taken.get((place, second), 0) < limit):
                taken[place, second] = taken.get((place, second), 0) + 1
                due.add(str(place))
        assert rates.match({"x": x}, now_s=float(second)) == due


@pytest.mark.feature("content-routing F25")
def test_a_spent_tree_is_not_looked_at_until_somebody_joins_it() -> None:
    rates = control(limited(0, 9, 1), limited(0, 5, 1))
    assert rates.match({"x": 1}, now_s=0.0) == {"0", "1"}
    assert rates.match({"x": 1}, now_s=0.0) == set()
    rates.add(limited(1, 2, 1), "new")
    assert rates.match({"x": 1}, now_s=0.0) == {"new"}
    assert rates.match({"x": 1}, now_s=0.0) == set()


@pytest.mark.feature("content-routing F25")
def test_a_limit_below_one_an_interval_is_served_now_and_then() -> None:
    rates = control(limited(0, 9, 0.5))
    served = [bool(rates.match({"x": 1}, now_s=second)) for second in range(8)]
    assert served == [False, True] * 4


@pytest.mark.feature("content-routing F25")
def test_limits_scale_with_the_interval() -> None:
    rates = control(limited(0, 9, 2), interval_s=10.0)
    assert sum(bool(rates.match({"x": 1}, now_s=second / 10)) for second in range(100)) == 20


@both_skips
@pytest.mark.feature("content-routing F25")
def test_roots_are_counted_beyond_their_limit(skip: Skip) -> None:
    """Monitoring: both roots cover what the common filter wants, and all three limits are reached at once."""
    left, right, common = limited(0, 6, 1), limited(4, 9, 1), limited(4, 6, 1)
    rates = control(left, right, common, skip=skip)
    for _ in range(5):
        rates.match({"x": 5}, now_s=0.0)
    rates.match({"x": 0}, now_s=0.0)
    assert (rates.accepted(left), rates.accepted(right)) == (6, 5)
    assert [rates.delivered(one) for one in (left, right, common)] == [1, 1, 1]


@pytest.mark.feature("content-routing F25")
def test_counters_are_archived_and_reset_when_an_interval_ends() -> None:
    root = limited(0, 9)
    rates = RateControl(Forest[Filter, Values](rules=LOCAL), rate_of, interval_s=2.0, intervals_kept=3)
    rates.add(root, "a")
    assert rates.average_per_s(root) == 0
    for now_s in (1000.0, 1000.5, 1001.9, 1001.0, 1002.0):
        rates.match({"x": 1}, now_s)
    assert rates.accepted(root) == 1
    assert rates.average_per_s(root) == 4 / 2
    rates.advance(1004.0)
    assert rates.average_per_s(root) == (4 + 1) / 4
    rates.advance(1008.0)
    assert rates.average_per_s(root) == (1 + 0 + 0) / 6
    rates.advance(9e9)
    assert rates.average_per_s(root) == 0


@pytest.mark.feature("content-routing F25")
def test_what_is_removed_takes_its_counters_along() -> None:
    wanted = limited(0, 9, 1)
    rates = control(wanted)
    rates.match({"x": 1}, now_s=0.0)
    assert rates.remove(wanted, "0")
    assert not rates.remove(wanted, "0")
    assert rates.match({"x": 1}, now_s=0.0) == set()
    rates.add(wanted, "0")
    assert rates.match({"x": 1}, now_s=0.0) == {"0"}


@pytest.mark.feature("content-routing F25")
def test_an_interval_takes_time() -> None:
    with pytest.raises(ValueError, match="longer than nothing"):
        RateControl(Forest[Filter, Values](), rate_of, interval_s=0)


@pytest.mark.feature("content-routing F25")
def test_a_filter_goes_under_the_closest_limit() -> None:
    def corner(x: int, y: int, per_s: float) -> Filter:
        return filter_of(attribute("x", rng(0, x)), attribute("y", rng(0, y)), attribute("limit", Rate(per_s)))

    forest: Forest[Filter, Values] = Forest(rules=RATED)
    for x, limit in ((7, 90.0), (8, 6.0), (9, 20.0)):
        forest.add(corner(x, 20 - x, limit), str(x))
    forest.add(corner(1, 1, 5.0), "new")
    assert forest.parent(corner(1, 1, 5.0)) == corner(8, 12, 6.0)
