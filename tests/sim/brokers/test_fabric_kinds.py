"""Each fabric joins deployed brokers: what is published at one reaches a subscriber at another."""

from __future__ import annotations

import msgspec
import pytest
from tests.sim.exploration.plans import small_plan

from godwit.sim.brokers.fabric_kinds import FABRICS
from godwit.sim.exploration.plan import Publish
from godwit.sim.exploration.trial import Trial


@pytest.mark.parametrize("fabric", FABRICS)
def test_what_one_broker_takes_reaches_the_clients_of_another(fabric: str) -> None:
    plan = msgspec.structs.replace(small_plan(), fabric=fabric)
    steps = tuple(step for step in plan.steps if isinstance(step, Publish))
    trial = Trial(msgspec.structs.replace(plan, steps=steps))
    assert trial.run().findings == []
    assert len(trial.roamers["s1"].counts) > len(steps)


def test_where_sessions_stay_each_broker_keeps_one_for_a_client() -> None:
    plan = msgspec.structs.replace(small_plan(), fabric="adhoc")
    trial = Trial(plan)
    assert trial.run().findings == []
    assert set(trial.roamers["s1"].bonds) == {"b1", "b2"}
    assert all("s1" in trial.cluster.sites[name].broker.sessions for name in ("b1", "b2"))
