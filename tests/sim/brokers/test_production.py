"""A scenario may be played by the broker that people deploy."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.sim.brokers.production import Production
from godwit.sim.scenario import ScenarioError, load
from godwit.sim.sight import look

ROAMING = Path(__file__).resolve().parents[3] / "examples" / "scenarios" / "roaming.toml"


@pytest.fixture(scope="module")
def played() -> Production:
    stage = Production(load(ROAMING), 3, watched=True)
    stage.run(120.0)
    return stage


def test_roaming_subscribers_get_everything_once_though_a_broker_crashes(played: Production) -> None:
    summary = played.summary()
    assert summary.delivered == summary.matched > 100
    assert summary.duplicates == summary.queued == 0
    assert summary.attachments > 20


def test_a_scenario_with_the_product_goes_the_same_way_each_time_and_watched_or_not(played: Production) -> None:
    again = Production(load(ROAMING), 3)
    again.run(60.0)
    again.run(120.0)
    assert again.summary().digest == played.summary().digest


def test_a_look_shows_the_tree_and_where_clients_are(played: Production) -> None:
    sight = look(played, "b1")
    seen = {node.name: node for node in sight.nodes}
    assert sum(node.leads for node in seen.values()) == 1
    assert {seen[name].up for name in ("s1", "s2", "s3")} <= {"b1", "b2", "b3", "b4", None}  # None: on its way
    assert {arrival.kind for arrival in sight.arrivals} >= {"Parcels", "Taken"}
    assert sight.tables is not None
    assert {peer for _, _, peer in sight.tables.routes} <= {"b2", "b3", "b4"}


@pytest.mark.parametrize(
    ("instead", "of", "said"),
    [
        ("latency_s = 0.005\nloss = 0.1", "latency_s = 0.005", "lose and repeat nothing"),
        ('["p1", "s1"]', '["p1", "b1"]', "p1 has no link to a broker"),
        ('do = "skew"\nnode = "s1"\nrate = 2.0', 'do = "crash"\nnode = "b2"', "only clocks of brokers"),
        ('kind = "protocol"', 'kind = "product"', "roam_every_s"),
        ('handoff = "teleport"', 'handoff = "proactive"', "brokers"),
    ],
)
def test_what_the_product_cannot_play_is_refused_by_name(instead: str, of: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(ROAMING.read_text().replace(of, instead, 1))
    with pytest.raises(ScenarioError, match=said):
        load(path)
