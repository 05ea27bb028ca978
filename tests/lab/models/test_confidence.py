from __future__ import annotations

import math

import pytest

from godwit.lab.models.confidence import interval, student


@pytest.mark.feature("proactive-handoff F35")
def test_five_runs_are_trusted_to_2_776_standard_errors() -> None:
    assert round(student(4), 3) == 2.776
    found = interval([1, 2, 3, 4, 5])
    assert found.mean == 3
    assert found.half == pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5), rel=1e-3)
    assert found.overlaps(4.9, 6)
    assert not found.overlaps(5.0, 6)


def test_one_run_says_nothing_about_its_spread_and_none_is_refused() -> None:
    assert math.isinf(interval([7]).half)
    assert str(interval([7])) == "7"
    with pytest.raises(ValueError, match="no runs"):
        interval([])
