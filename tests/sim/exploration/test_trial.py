"""Random worlds keep their promises, and a plan always goes the same way."""

from __future__ import annotations

import pytest
from tests.sim.exploration.plans import small_plan

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import Crash, Full, Jump, Partition, Skew, Slow, Stall, Twice, Wipe
from godwit.sim.exploration.trial import Trial

SHORT = range(12)
LONG = range(1_000, 1_300)
SHORT_LASTING = range(210, 222)
LONG_LASTING = range(60, 260)


@pytest.mark.parametrize("seed", SHORT)
def test_a_random_world_keeps_its_promises(seed: int) -> None:
    verdict = Trial(drawn(seed)).run()
    assert verdict.findings == []


@pytest.mark.parametrize("seed", SHORT_LASTING)
def test_a_random_world_of_what_lasts_keeps_its_promises(seed: int) -> None:
    assert Trial(drawn(seed, worlds="lasting")).run().findings == []


@pytest.mark.explore
@pytest.mark.parametrize("seed", LONG_LASTING)
def test_many_random_worlds_of_what_lasts_keep_their_promises(seed: int) -> None:
    assert Trial(drawn(seed, worlds="lasting")).run().findings == []


@pytest.mark.explore
@pytest.mark.parametrize("seed", LONG)
def test_many_random_worlds_keep_their_promises(seed: int) -> None:
    assert Trial(drawn(seed)).run().findings == []


def test_a_plan_goes_the_same_way_each_time() -> None:
    one, other = Trial(drawn(5), watched=True), Trial(drawn(5), watched=True)
    assert one.run() == other.run()
    assert one.story == other.story
    assert one.story


def test_to_watch_changes_nothing() -> None:
    assert Trial(drawn(5), watched=True).run() == Trial(drawn(5)).run()


def test_every_kind_of_fault_really_happens() -> None:
    steps = (
        Slow(at_s=0.1, broker="b1", write_s=0.1, for_s=1.0),
        Full(at_s=0.2, broker="b2", for_s=0.5),
        Stall(at_s=0.3, a="b1", b="b2", for_s=0.5),
        Partition(at_s=1.2, side=("b1",), for_s=0.5),
        Skew(at_s=1.3, broker="b2", rate=2.0, for_s=1.0),
        Jump(at_s=1.4, broker="b1", by_s=-600.0),
        Twice(at_s=1.5, client="s1", first="b1", to="b2"),
        Crash(at_s=2.0, broker="b1", down_s=0.5),
    )
    verdict = Trial(small_plan(*steps)).run()
    assert verdict.findings == []
    assert {step.kind for step in steps} <= verdict.done.keys()


def test_a_broker_that_loses_its_disk_serves_again() -> None:
    verdict = Trial(small_plan(Wipe(at_s=1.5, broker="b2", down_s=0.5))).run()
    assert verdict.findings == []
    assert verdict.done["wipe"] == 1
