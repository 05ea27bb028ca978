"""Brokers are killed with kill -9 under load, and nobody who was promised anything notices.

`python -m tests.net.killing --seeds 20` does it more often.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.net.killing import Plan, killed


@pytest.mark.parametrize(("seed", "kills"), [(1, 2), (2, 1)])
def test_nothing_acknowledged_is_lost_or_comes_twice_or_out_of_order_when_brokers_are_killed(
    seed: int, kills: int, tmp_path: Path
) -> None:
    plan = Plan(seed=seed, seconds=2.0, kills=kills, subscribers=4)
    outcome = asyncio.run(killed(plan, tmp_path))
    assert outcome.kills >= plan.kills
    assert outcome.is_clean, f"python -m tests.net.killing --seed {seed}: {outcome}; {outcome.missing}"
