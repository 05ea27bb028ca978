"""A client may send its rate for ever, and a burst now and then."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.net.mqtt.options import Bucket


@given(st.integers(1, 100), st.integers(1, 5), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 300))))
def test_nobody_sends_more_than_rate_and_burst_allow(rate: int, burst_s: int, sent: list[tuple[int, int]]) -> None:
    """In any stretch of time that is allowed, what was sent is at most the burst and what trickled in."""
    bucket, now, allowed = Bucket(rate, burst_s, 0.0), 0, []
    for wait_s, amount in sent:
        now += wait_s
        if not bucket.take(amount, now):
            break
        allowed.append((now, amount))
    for first in range(len(allowed)):
        for last in range(first, len(allowed)):
            took_s = allowed[last][0] - allowed[first][0]
            assert sum(amount for _, amount in allowed[first : last + 1]) <= rate * (burst_s + took_s)


def test_a_steady_rate_goes_on_for_ever() -> None:
    bucket = Bucket(10, 1, 0.0)
    assert all(bucket.take(10, second) for second in range(1, 1000))
    assert bucket.take(10, 1001)
    assert not bucket.take(1, 1001)
