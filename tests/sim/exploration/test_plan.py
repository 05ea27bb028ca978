"""Plans are data: what was saved is what is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sim.exploration.plans import CRASH, small_plan

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import PlanError, load, save


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_survives_its_file(seed: int, tmp_path: Path) -> None:
    plan = drawn(seed)
    save(plan, tmp_path / "plan.json")
    assert load(tmp_path / "plan.json") == plan


def test_what_a_plan_has_is_told_by_kind() -> None:
    assert small_plan(*CRASH).kinds == ("strike", "slow", "come")


@pytest.mark.parametrize(("text", "said"), [("{", "not a plan"), ('{"seed": 1}', "not a plan"), (None, "No such file")])
def test_a_file_that_is_no_plan_is_refused_by_name(text: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PlanError, match=said) as error:
        load(path)
    assert str(path) in str(error.value)
