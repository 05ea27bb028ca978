from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.recorded.rings import RING, a_ring, write

from godwit.lab.recorded.moves import RecordedError, habits, read_sites, read_stays, span_s


def test_habits_are_what_each_site_saw_of_those_who_left_it(tmp_path: Path) -> None:
    learned = habits(read_stays(a_ring(tmp_path), 0.0, 1800.0))
    at = learned["r2"]
    assert set(at.uses) == {"r1", "r3"}
    assert set(at.moves["r1"]) == {"r3"}
    assert set(at.moves["r3"]) == {"r1"}


def test_a_recording_knows_its_sites_and_its_time(tmp_path: Path) -> None:
    folder = a_ring(tmp_path)
    assert set(read_sites(folder)) == {f"r{at}" for at in range(RING)}
    first, last = span_s(folder)
    assert first == 0.0
    assert 3500 < last < 3600


def test_a_table_without_a_column_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "visits", ("subscriber", "site"), [("a", "b")])
    with pytest.raises(RecordedError, match="entered_s"):
        span_s(tmp_path)
