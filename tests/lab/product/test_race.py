"""The deployed broker in races that messages lose."""

from __future__ import annotations

import pytest

from godwit.lab.handoff.races import LENGTH, Race
from godwit.lab.product.race import run


@pytest.mark.parametrize("delay", ["mild", "harsh"])
def test_the_product_loses_no_race(delay: str) -> None:
    outcome = run(Race(seed=2, delay=delay, subscribers=3, length=LENGTH / 4))
    assert outcome.due > 500
    assert outcome.handoffs > 3
    assert (outcome.lost, outcome.repeated, outcome.disordered, outcome.left_behind) == (0, 0, 0, 0)
