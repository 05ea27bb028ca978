"""Joins amid everything else: a newcomer that waits for STATE misses nothing (spec 2.3, step 5)."""

from __future__ import annotations

import pytest

from godwit.lab.gathering.windows import Window, run

pytestmark = [pytest.mark.feature("data-gathering F8"), pytest.mark.feature("data-gathering F43")]


def test_in_random_delay_windows_no_match_is_missed_and_no_subscription_comes_back() -> None:
    seen = [run(Window(seed=seed)) for seed in range(25)]
    assert all(one.joined for one in seen)
    assert (sum(one.missed for one in seen), sum(one.resurrected for one in seen)) == (0, 0)
    assert sum(one.events for one in seen) > 500


def test_a_newcomer_that_serves_from_split_on_misses_matches() -> None:
    assert any(run(Window(seed=seed, ready=False)).missed for seed in range(40))
