"""A bounded memory forgets the oldest, and nothing before its time (spec manet-cbr F10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.adhoc.seen import Recent


@pytest.mark.feature("manet-cbr F10")
@given(st.lists(st.floats(0, 30)), st.integers(1, 8), st.floats(1, 60))
def test_the_last_so_many_and_young_enough_are_known(gaps_s: list[float], count_max: int, age_max_s: float) -> None:
    recent: Recent[int] = Recent(count_max, age_max_s)
    now, came, gone = 0.0, [], []
    for number, gap in enumerate(gaps_s):
        now += gap
        came.append((now, number))
        gone += recent.add(("p", number), number, now)
    expected = [number for at, number in came if now - at <= age_max_s][-count_max:]
    assert [sequence for _, sequence in recent] == expected
    assert sorted(gone + expected) == [number for _, number in came]
    assert len(recent) == len(expected)
    for number in expected:
        assert ("p", number) in recent
        assert recent.get(("p", number)) == number
    recent.forget(now + age_max_s + 1)
    assert len(recent) == 0
    assert recent.get(("p", 0)) is None
