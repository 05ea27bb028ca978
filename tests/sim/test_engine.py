"""The engine: time order, then schedule order, and nothing else."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.sim.engine import Engine

TIMES = st.lists(st.integers(0, 5).map(float), max_size=30)


@given(TIMES)
def test_calls_run_by_time_and_at_the_same_time_in_the_order_scheduled(times: list[float]) -> None:
    engine, ran = Engine(), list[tuple[float, int]]()
    for number, time in enumerate(times):
        engine.at(time, partial(ran.append, (time, number)))
    assert engine.run() is False
    assert ran == sorted(ran)
    assert len(ran) == len(times)


@given(TIMES, st.lists(st.floats(0, 6), max_size=5).map(sorted))
def test_a_run_in_pieces_is_the_same_run(times: list[float], stops: list[float]) -> None:
    whole, pieces = Engine(), Engine()
    ran: dict[Engine, list[tuple[float, int]]] = {whole: [], pieces: []}
    for engine, log in ran.items():
        for number, time in enumerate(times):
            engine.at(time, partial(log.append, (time, number)))
    whole.run(10)
    for stop in stops:
        pieces.run(stop)
        assert pieces.now == stop
        assert all(time <= stop for time, _ in ran[pieces])
    pieces.run(10)
    assert ran[whole] == ran[pieces]
    assert whole.now == pieces.now == 10


def test_what_a_call_schedules_for_now_runs_now_and_after_what_was_there() -> None:
    engine, ran = Engine(), list[str]()

    def first() -> None:
        ran.append("first")
        engine.at(1.0, lambda: ran.append("third"))

    engine.at(1.0, first)
    engine.at(1.0, lambda: ran.append("second"))
    engine.run(1.0)
    assert ran == ["first", "second", "third"]


def test_a_cancelled_timer_never_fires_and_cancelling_again_or_too_late_does_nothing() -> None:
    engine, ran = Engine(), list[str]()
    cancelled = engine.after(1.0, lambda: ran.append("cancelled"))
    kept = engine.after(2.0, lambda: ran.append("kept"))
    cancelled.cancel()
    cancelled.cancel()
    assert not cancelled.pending
    assert kept.pending
    engine.run()
    kept.cancel()
    assert ran == ["kept"]
    assert not kept.pending


def test_a_timer_may_cancel_another_due_at_the_same_time() -> None:
    engine, ran = Engine(), list[str]()
    engine.at(1.0, lambda: later.cancel())
    later = engine.after(1.0, lambda: ran.append("later"))
    engine.run()
    assert ran == []


@pytest.mark.parametrize("delay_s", [-0.001, math.nan, math.inf, -math.inf])
def test_the_past_and_never_are_refused(delay_s: float) -> None:
    engine = Engine()
    engine.run(5.0)
    with pytest.raises(ValueError, match="cannot schedule"):
        engine.after(delay_s, lambda: None)


def test_a_run_can_be_limited_by_calls_and_says_whether_work_remains() -> None:
    engine, ran = Engine(), list[int]()
    for number in range(5):
        engine.at(1.0, partial(ran.append, number))
    assert engine.run(calls=2) is True
    assert ran == [0, 1]
    assert engine.executed == 2
    assert engine.run(3.0, calls=1) is True
    assert engine.now == 1.0  # not 3: two calls are still due before that
    assert engine.run(3.0) is False
    assert engine.now == 3.0
