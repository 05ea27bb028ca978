"""A ring scenario at play: what can be seen is what is, and looking changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.sim.ring.ring_stage import RingStage, is_ring, load_ring
from godwit.sim.scenario import ScenarioError

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "ring.toml"

pytestmark = pytest.mark.feature("data-gathering F45")


def played(seed: int = 1, looks: int = 40, until_s: float = 120.0) -> tuple[RingStage, list[str]]:
    stage = RingStage(load_ring(EXAMPLE), seed)
    told: list[str] = []
    for look in range(1, looks + 1):
        stage.run(look * until_s / looks)
        told += stage.look().told
    return stage, told


def test_the_example_shows_a_join_a_crash_a_takeover_and_relocations() -> None:
    stage, told = played()
    for what in ("newcomer: joined", "b04: crashed", "taken over", "handed over"):
        assert any(what in line for line in told), what
    sight = stage.look()
    names = {cell.prefix for cell in sight.cells}
    taken = {prefix for cell in sight.cells for prefix in cell.taken}
    assert sum(2.0 ** -len(prefix) for prefix in names | taken) == 1.0
    assert stage.summary()["notices received"] > 100


def test_looking_more_often_changes_nothing() -> None:
    often, seldom, other = (
        played(seed, looks, 30.0)[0].telling.trace.digest for seed, looks in ((1, 20), (1, 3), (2, 3))
    )
    assert often == seldom != other


def test_only_a_file_with_a_ring_in_it_is_one() -> None:
    assert is_ring(EXAMPLE)
    assert not is_ring(EXAMPLE.parent / "scenarios" / "c8.toml")
    assert not is_ring(EXAMPLE.parent / "nothing.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ring]\nbits = 3", "1, 2 or 4 bits"),
        ("[ring]\nbrokers = 0", "brokers"),
        ('[ring]\nplaces = [{name = "a", at = [1.0, 200.0]}]', "outside the square"),
        ('[ring]\ncrashes = [{name = "zeno", time_s = 5.0}]', "there is no broker 'zeno'"),
        (
            '[ring]\nplaces = [{name = "a", at = [1.0, 2.0]}, {name = "a", at = [3.0, 2.0]}]',
            "twice",
        ),
        ("[ring]\nspeed = 1", "unknown field"),
        ("[ring", "Expected"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_said(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=told):
        load_ring(path)
