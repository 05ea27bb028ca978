"""Seeds make plans that differ, and together have everything."""

from __future__ import annotations

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import FAULTS, MOVES


def test_a_seed_is_one_plan() -> None:
    assert drawn(11) == drawn(11)
    assert drawn(11) != drawn(12)


def test_brokers_are_joined_whatever_the_seed() -> None:
    for seed in range(60):
        plan = drawn(seed)
        reached, waiting = {plan.brokers[0]}, [plan.brokers[0]]
        while waiting:
            here = waiting.pop()
            near = {other for link in plan.links if here in link for other in link} - reached
            reached |= near
            waiting += near
        assert reached == set(plan.brokers)


def test_a_few_hundred_seeds_have_every_kind_of_fault_and_move() -> None:
    found = {kind for seed in range(300) for kind in drawn(seed).kinds}
    assert found == {*FAULTS, *MOVES}
