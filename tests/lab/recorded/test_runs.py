from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.recorded.rings import a_ring, configured

from godwit.lab.recorded.moves import RecordedError
from godwit.lab.recorded.runs import SCHEMES, run


@pytest.mark.parametrize("scheme", [one for one in SCHEMES if one != "durable"])
def test_nothing_is_lost_twice_or_out_of_order_on_the_ring(scheme: str, tmp_path: Path) -> None:
    result = run(configured(a_ring(tmp_path), scheme=scheme, disk=True))
    assert result.due > 500
    assert result.handoffs > 90
    assert (result.lost, result.disordered) == (0, 0)
    assert result.twice == 0 or scheme == "reactive"


@pytest.mark.feature("proactive-handoff F28")
def test_durable_subscriptions_at_each_broker_repeat_and_disorder(tmp_path: Path) -> None:
    result = run(configured(a_ring(tmp_path), scheme="durable", disk=True))
    assert result.twice > 0
    assert result.disordered > 0


@pytest.mark.feature("proactive-handoff F11")
def test_foresight_needs_half_the_stand_ins_at_the_same_hit_rate(tmp_path: Path) -> None:
    ring = a_ring(tmp_path)
    everywhere = run(configured(ring, scheme="neighbors"))
    foreseen = run(configured(ring, scheme="foreseen", mass=0.9))
    assert everywhere.copies / everywhere.handoffs == pytest.approx(2.0, rel=0.1)
    assert foreseen.copies / foreseen.handoffs == pytest.approx(1.0, rel=0.1)
    assert foreseen.hits / foreseen.handoffs >= everywhere.hits / everywhere.handoffs - 0.02
    assert foreseen.latency_median_s == 0.0


def test_the_same_configuration_gives_the_same_result(tmp_path: Path) -> None:
    one = configured(a_ring(tmp_path), disk=True)
    assert run(one) == run(one)


def test_a_folder_without_visits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match="visits"):
        run(configured(tmp_path))


def test_a_time_in_which_nobody_moves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match="nobody"):
        run(configured(a_ring(tmp_path), begin_s=90_000.0))
