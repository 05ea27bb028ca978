"""What a page says of its seeds and of the time that it takes."""

from __future__ import annotations

import pytest

from godwit.lab.studies import duration, spanned


@pytest.mark.parametrize(
    ("seeds", "told"),
    [([], ""), ([7], "7"), ([3, 1, 2], "1 to 3"), ([401, 402, 440, 435, 434], "401 to 402, 434 to 435, 440")],
)
def test_seeds_that_follow_one_another_are_told_by_their_ends(seeds: list[int], told: str) -> None:
    assert spanned(seeds) == told


@pytest.mark.parametrize(("seconds", "told"), [(3.4, "3 s"), (90.0, "2 min"), (5400.0, "1.5 h")])
def test_time_is_told_in_the_largest_unit_that_fits(seconds: float, told: str) -> None:
    assert duration(seconds) == told
