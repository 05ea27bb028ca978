"""A plan that fails is shrunk to what it takes to fail."""

from __future__ import annotations

import msgspec
import pytest
from tests.sim.exploration.plans import PLANTED, small_plan

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import Crash, Plan, Publish
from godwit.sim.exploration.reduction import reduced
from godwit.sim.exploration.trial import Trial


def test_steps_that_do_not_matter_are_left_out() -> None:
    plan = drawn(7)
    needed = [step for step in plan.steps if isinstance(step, Publish)][3:5]

    def judge(candidate: Plan) -> frozenset[str]:
        moved = [msgspec.structs.replace(step, at_s=0.0) for step in candidate.steps]
        return frozenset({"lost"} if all(msgspec.structs.replace(one, at_s=0.0) in moved for one in needed) else ())

    small = reduced(plan, frozenset({"lost"}), judge)
    assert [msgspec.structs.replace(step, at_s=0.0) for step in small.steps] == [
        msgspec.structs.replace(step, at_s=0.0) for step in needed
    ]
    assert small.steps[0].at_s == 0.0
    assert {card.name for card in small.clients} == {needed[0].client}


def test_one_kind_of_failure_is_not_traded_for_another() -> None:
    plan = small_plan(Crash(at_s=0.1, broker="b1", down_s=0.2))
    judge = lambda one: frozenset({"lost"} if len(one.steps) > 3 else {"twice"})  # noqa: E731
    assert len(reduced(plan, frozenset({"lost"}), judge).steps) == 4


def test_the_search_ends() -> None:
    tries: list[int] = []

    def judge(plan: Plan) -> frozenset[str]:
        tries.append(len(plan.steps))
        return frozenset()

    reduced(drawn(3), frozenset({"lost"}), judge, tries=5)
    assert len(tries) == 5


@pytest.mark.parametrize("fault", ["repeats deliveries", "fails"])
def test_a_planted_fault_needs_one_publication_and_no_more(fault: str) -> None:
    tamper, kind = PLANTED[fault]

    def judge(plan: Plan) -> frozenset[str]:
        return frozenset(finding.kind for finding in Trial(plan, tamper=tamper).run().findings)

    small = reduced(small_plan(), frozenset({kind}), judge)
    assert len(small.steps) <= 1  # the probe at the end says something too
