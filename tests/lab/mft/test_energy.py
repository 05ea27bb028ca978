"""Battery life by protocol and rhythm, in the same worlds."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.lab.mft.made import result

from godwit.lab.mft.energy import VARIANTS, EnergyPlan, table
from godwit.lab.mft.results import Row
from godwit.lab.mft.runs import Configuration, run

pytestmark = pytest.mark.feature("mft-pubsub F38")


def test_aodv_has_no_heartbeats_to_carry_anything() -> None:
    plan = EnergyPlan(seeds=2)
    assert len(plan.runs()) == 2 * (2 * len(VARIANTS) + len([v for v in VARIANTS.values() if not v.get("carry")]))
    with pytest.raises(ValueError, match="no rounds of heartbeats"):
        Configuration(size=2, speed_mps=2.0, seed=1, protocol="aodv", carry=True)


def test_sleeping_radios_live_longer_and_carrying_heartbeats_save_messages_and_still_deliver() -> None:
    plain = EnergyPlan(size=4, speed_mps=2.0, publish_s=20.0).cell("hardened", "always on, as published")[0]
    asleep, carried = (run(structs.replace(plain, awake=0.2, carry=carry)) for carry in (False, True))
    on = run(plain)
    assert on.battery_days == pytest.approx(3.5, abs=0.05)
    assert asleep.battery_days > 4 * on.battery_days
    assert carried.messages_per_node < 0.7 * asleep.messages_per_node
    assert min(on.honest_rate, carried.honest_rate) > 0.8


def test_the_table_has_days_beside_what_they_cost() -> None:
    plan = EnergyPlan(seeds=2, protocols=("mft",))
    made = table(plan, [Row(one, result(battery_days=3.5 / one.awake)) for one in plan.runs()])
    lines = {line[1]: line[2] for line in made.rows}
    assert lines["always on, as published"] == "3.5 ± 0"
    assert lines["awake for a tenth, heartbeats carry"] == "35.0 ± 0"
