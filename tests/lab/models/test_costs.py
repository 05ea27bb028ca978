from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.lab.models import costs, published
from godwit.lab.models.costs import CASES, Jumps, Sojourn


def as_printed(computed: float, printed: float, digits: int) -> bool:
    """A number on the edge of two roundings may have been printed as either."""
    return abs(computed - printed) <= 0.5 / float(10**digits) + 1e-12


CELLS = [(case, column) for case in CASES for column in range(5)]


@pytest.mark.feature("proactive-handoff F39", "proactive-handoff F45")
@pytest.mark.parametrize(("case", "column"), CELLS)
def test_r1_comes_out_digit_for_digit(case: int, column: int) -> None:
    computed = costs.r1(CASES[case], published.R1_CONNECTED_S, published.AWAY_S[column])
    assert as_printed(computed, published.R1[case][column], 4)


@pytest.mark.feature("proactive-handoff F39", "proactive-handoff F45")
@pytest.mark.parametrize(
    ("printed", "ratio", "stranger_s"),
    [
        (published.R2_WORST, 1.0, costs.REACTIVE_S),
        (published.R2_WORST_FITTED, 1.0, costs.MATCHING_WORST_S),
        (published.R2_BEST, 0.0, costs.MATCHING_BEST_S),
    ],
)
@pytest.mark.parametrize(("case", "column"), CELLS)
def test_r2_comes_out_digit_for_digit(
    case: int, column: int, printed: Mapping[int, tuple[float, ...]], ratio: float, stranger_s: float
) -> None:
    away_s = published.AWAY_S[column]
    computed = costs.r2(CASES[case], published.R2_CONNECTED_S, away_s, ratio, stranger_s)
    assert as_printed(computed, printed[case][column], 2)


@pytest.mark.feature("proactive-handoff F39", "proactive-handoff F45")
def test_caching_over_shipping_comes_out_digit_for_digit() -> None:
    for copies, row in published.CACHING_OVER_SHIPPING.items():
        for away_s, printed in zip(published.AWAY_S, row, strict=True):
            assert as_printed(costs.caching_over_shipping(copies, away_s), printed, 4)


@pytest.mark.feature("proactive-handoff F39")
def test_the_quoted_r2_does_not_follow_from_the_tabulated_time() -> None:
    at_30_s = [costs.r2(CASES[case], 60, 30, ratio) for ratio in (1.0, 0.0) for case in (1, 5)]
    assert [round(value, 2) for value in at_30_s] == [17.18, 5.78, 21.32, 6.07]


@pytest.mark.feature("proactive-handoff F39")
def test_case_5_needs_few_copies_and_its_published_limit_is_slightly_optimistic() -> None:
    for away_s in published.AWAY_S:
        bound = costs.r1(CASES[5], 600, away_s)
        assert costs.caching_over_shipping(1.7, away_s) < bound < costs.caching_over_shipping(2.0, away_s)
    assert costs.r1(CASES[5], 60, 10) < costs.caching_over_shipping(1.7, 10)


shares = st.tuples(*[st.integers(1, 20)] * 3).map(lambda parts: tuple(part / sum(parts) for part in parts))
means = st.floats(0.05, 600)


@pytest.mark.feature("proactive-handoff F39")
@given(shares, shares, st.tuples(means, means, means, means))
def test_the_closed_form_is_left_unchanged_by_the_chain(
    leave: tuple[float, ...], back: tuple[float, ...], stays: tuple[float, float, float, float]
) -> None:
    jumps = Jumps(*leave, *back)
    times = Sojourn(connected_s=stays[0], away_s=stays[1], neighbor_s=stays[2], stranger_s=stays[3])
    pi = np.array(costs.stationary(jumps, times))
    np.testing.assert_allclose(pi @ costs.transitions(jumps, times), pi, rtol=1e-9)
    assert pi.sum() == pytest.approx(1.0)


@pytest.mark.feature("proactive-handoff F39")
@pytest.mark.parametrize("case", CASES)
def test_the_bounds_are_where_the_average_costs_meet(case: int) -> None:
    """(3.13) and (3.14) say the same as the general cost (3.8)."""
    jumps, (connected_s, away_s) = CASES[case], (600.0, 30.0)
    proactive, reactive = costs.proactive(connected_s, away_s), costs.reactive(connected_s, away_s)
    ratio = costs.r1(jumps, connected_s, away_s)
    one = costs.average(jumps, proactive, costs.proactive_costs(caching=ratio, shipping=1.0))
    assert one == pytest.approx(costs.average(jumps, reactive, costs.reactive_costs(1.0)))
    ratio = costs.r2(jumps, connected_s, away_s, shipping_over_caching=1.0)
    one = costs.average(jumps, proactive, costs.proactive_costs(caching=ratio, shipping=ratio))
    assert one == pytest.approx(costs.average(jumps, proactive, costs.durable_costs(1.0)))


def test_impossible_chains_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        msgspec.structs.replace(CASES[1], a01=0.5)
    with pytest.raises(ValueError, match="away_s 0: must be more than 0"):
        costs.reactive(60, 0)


def test_a_few_copies_cost_less_than_storing_everywhere() -> None:
    assert costs.caching_over_storing(2.5, 2) == 1.25 < costs.r2(CASES[5], 60, 300, 1.0)
