"""What docs/scenarios.md shows can be played, and it knows every key there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.pages import blocks, page

from godwit.sim import scenario as described
from godwit.sim.scenario import load
from godwit.sim.stage import Stage

PAGE = page("docs/scenarios.md")


def test_the_scenario_on_the_page_delivers_across_its_partition(tmp_path: Path) -> None:
    path = tmp_path / "shown.toml"
    path.write_text(blocks(PAGE, "toml")[0])
    stage = Stage(load(path), 1)
    stage.run(stage.scenario.duration_s)
    summary = stage.summary()
    assert summary.replayed > 0
    assert summary.delivered == summary.routed > 0


TABLES: list[Any] = [
    *(described.Scenario, described.Area, described.Brokers, described.Subscribers, described.Publishers),
    *(described.Between, described.Wires, described.IdealDisc, described.Cc2420, described.TwoRay),
    *(described.Mft, described.Aodv, described.ByWaypoint, described.ByWalk, described.ByMass, described.ByReplay),
    *(described.Crash, described.Restart, described.Skew, described.Lose, described.Partition, described.Merge),
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_every_key_of_a_scenario_is_on_the_page(table: type[msgspec.Struct]) -> None:
    prose = re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    quoted = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert set(table.__struct_fields__) - quoted == set()
    tag = table.__struct_config__.tag
    assert tag is None or f"`{tag}`" in PAGE
