"""A bound on bytes a second holds over any while, and all leaves in the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.net.peers.pace import BURST_S, Pace


@given(st.integers(1, 20_000), st.lists(st.floats(0, 0.5), min_size=1, max_size=60))
def test_no_more_leaves_than_the_bound_allows_and_all_of_that(size: int, pauses: list[float]) -> None:
    pace, now, sent = Pace(1_000.0), 0.0, 0
    for pause in pauses:
        leaves = min(pace.room_b(now), size - sent)
        pace.spend(leaves, now)
        sent += leaves
        assert sent <= 1_000.0 * (now + BURST_S) + 1
        now += pause
    while sent < size:
        now += 0.02
        leaves = min(pace.room_b(now), size - sent)
        pace.spend(leaves, now)
        sent += leaves
    assert now <= sum(pauses) + size / 1_000.0 + 1
