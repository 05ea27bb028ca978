"""Few nodes in a large area: where half of what is delivered at the usual density is lost."""

from __future__ import annotations

import msgspec
import pytest
from tests.lab.mft.made import Figures, rows

from godwit.lab.claims import Verdict
from godwit.lab.mft.area import AreaPlan, finding, table
from godwit.lab.mft.runs import Configuration

pytestmark = pytest.mark.feature("mft-pubsub F34")

PLAN = AreaPlan(seeds=3)


def thin(run: Configuration) -> Figures:
    share = 900 if run.side_m <= 60 else 700 if run.side_m == 85 else 100
    return {"wanted": 1000, "delivered": share + run.seed % 2}


def test_the_claim_holds_from_the_side_on_where_half_is_lost() -> None:
    found = finding(PLAN, rows(PLAN.runs(), thin))
    assert found.told == "depends on how large the area is: holds from 110 m on"


def test_half_of_the_usual_delivery_is_lost_on_every_side_that_is_run_or_on_all_larger_ones() -> None:
    everywhere = rows(PLAN.runs(), lambda run: {"wanted": 1000, "delivered": 900 if run.side_m <= 35 else 9})
    assert finding(PLAN, everywhere).told == "depends on how large the area is: holds from 60 m on"
    larger = msgspec.structs.replace(PLAN, sides_m=PLAN.sides_m[1:])
    assert finding(larger, everywhere).verdict is Verdict.REPRODUCED


def test_where_nothing_is_lost_it_fails_and_without_runs_nothing_is_said() -> None:
    dense = finding(PLAN, rows(PLAN.runs(), lambda run: {"wanted": 1000, "delivered": 900 + run.seed % 2}))
    assert dense.verdict is Verdict.NOT_REPRODUCED
    assert finding(PLAN, []).verdict is Verdict.NOT_DECIDABLE


def test_the_table_has_all_sides_and_ranges() -> None:
    made = table(PLAN, rows(PLAN.runs(), thin))
    assert [row[0] for row in made.rows] == ["35", "60", "85", "110", "160", "220"]
    assert len(made.header) == 1 + 3 * 2
