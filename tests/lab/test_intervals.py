"""Intervals by Student's t, with the worlds that there are."""

from __future__ import annotations

import math

import pytest

from godwit.lab.intervals import Interval, difference, interval, of_worlds, student, welch


@pytest.mark.feature("proactive-handoff F35")
def test_five_runs_are_trusted_to_2_776_standard_errors() -> None:
    assert round(student(4), 3) == 2.776
    found = interval([1, 2, 3, 4, 5])
    assert found.mean == 3
    assert found.half == pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5), rel=1e-3)
    assert found.overlaps(4.9, 6)
    assert not found.overlaps(5.0, 6)


def test_one_run_says_nothing_about_its_spread_and_none_is_refused() -> None:
    assert math.isinf(interval([7]).half)
    assert str(interval([7])) == "7"
    with pytest.raises(ValueError, match="no runs"):
        interval([])


def test_a_limit_inside_the_interval_decides_nothing() -> None:
    assert Interval(1.0, 0.5, 5).is_positive is True
    assert Interval(-1.0, 0.5, 5).is_positive is False
    assert Interval(0.3, 0.5, 5).is_positive is None
    assert Interval(2.0, math.inf, 1).exceeds(0.0) is None
    assert Interval(2.0, 0.5, 5).within(1, 3) is True
    assert Interval(2.0, 0.5, 5).within(2.2, 3) is None
    assert Interval(2.0, 0.5, 5).within(3, 4) is False


def test_runs_of_one_seed_count_as_one_world() -> None:
    found = of_worlds([(1, 1.0), (1, 3.0), (2, 4.0), (2, 4.0), (3, 6.0)])
    assert found is not None
    assert found.runs == 3
    assert found == interval([2.0, 4.0, 6.0])
    assert of_worlds([]) is None


def test_the_same_worlds_are_paired_and_others_by_welch() -> None:
    paired = difference({1: 2.0, 2: 5.0, 3: 9.0}, {1: 1.0, 2: 4.0, 4: 0.0})
    assert paired == interval([1.0, 1.0])
    apart = welch([5.0, 6.0, 7.0], [1.0, 2.0, 3.0])
    assert apart.mean == 4
    assert apart.half == pytest.approx(student(4) * math.sqrt(2 / 3))
    assert math.isinf(welch([1.0], [2.0, 3.0]).half)
    assert welch([1.0, 1.0], [2.0, 2.0]).half == 0
