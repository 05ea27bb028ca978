"""Where everybody is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.sim.mobility import Field, Leg, Mass, Model, Replay, Still, Walk, Waypoint
from godwit.sim.streams import Streams

SEEDS = st.integers(0, 10_000)
SPEEDS = st.tuples(st.floats(0.1, 5), st.floats(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def path(model: Model, seed: int, times_s: list[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    field = Field(Streams(seed))
    field.add("n", model)
    return np.array([[axis[0] for axis in field.positions(time)] for time in times_s])


def models(speed: tuple[float, float]) -> list[Model]:
    return [
        Waypoint(width_m=60, height_m=30, speed_mps=speed),
        Waypoint(width_m=60, height_m=30, speed_mps=speed, pause_s=2.0),
        Walk(width_m=60, height_m=30, speed_mps=speed),
        Mass(width_m=60, height_m=30, speed_mps=speed),
    ]


@pytest.mark.feature("mft-pubsub F29")
@given(SEEDS, SPEEDS)
def test_nobody_leaves_the_area_or_is_faster_than_allowed(seed: int, speed: tuple[float, float]) -> None:
    times = np.arange(0, 120, 0.5).tolist()
    for model in models(speed):
        walked = path(model, seed, times)
        assert (walked >= -1e-9).all()
        assert (walked <= [60 + 1e-9, 30 + 1e-9]).all()
        steps = np.hypot(*np.diff(walked, axis=0).T)
        assert (steps <= speed[1] * 0.5 + 1e-6).all()


@pytest.mark.feature("mft-pubsub F29")
@pytest.mark.parametrize("speed", [2.0, 4.0, 6.0, 8.0, 10.0])
def test_a_random_waypoint_goes_straight_at_its_speed_without_a_pause(speed: float) -> None:
    walked = path(Waypoint(width_m=60, height_m=60, speed_mps=(speed, speed)), 4, np.arange(0, 60, 0.01).tolist())
    steps = np.hypot(*np.diff(walked, axis=0).T)
    straight = np.isclose(steps, speed * 0.01)
    assert straight.mean() > 0.97  # a step that takes a corner is shorter
    assert (steps <= speed * 0.01 + 1e-9).all()


@pytest.mark.feature("mft-pubsub F29")
def test_a_random_waypoint_covers_the_area_and_a_random_walk_does_not() -> None:
    def visited(model: Model) -> float:
        walked = path(model, 1, np.arange(0, 2000, 1.0).tolist())
        cells = {(int(x // 20), int(y // 20)) for x, y in walked}
        return len(cells) / 25

    assert visited(Waypoint(width_m=100, height_m=100, speed_mps=(4, 4))) == 1.0
    assert visited(Walk(width_m=100, height_m=100, speed_mps=(0.5, 0.5))) < 0.7


def test_a_pause_comes_after_each_leg_and_lasts_as_said() -> None:
    walked = path(Waypoint(width_m=50, height_m=50, speed_mps=(5, 5), pause_s=3.0), 2, np.arange(0, 200, 0.1).tolist())
    rests = np.hypot(*np.diff(walked, axis=0).T) < 1e-9
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rests, [False]]).astype(int)))
    lengths = (edges[1::2] - edges[::2]) * 0.1
    assert not rests[0]
    assert len(lengths) > 5
    assert lengths[:-1] == pytest.approx(3.0, abs=0.25)


def test_a_mass_keeps_its_momentum_but_for_a_little_and_is_mirrored_at_the_edge() -> None:
    mass = Mass(width_m=1000, height_m=1000, speed_mps=(1, 1), turn_rad=0.1)
    walked = path(mass, 3, np.arange(0, 200, 1.0).tolist())
    headings = np.unwrap(np.arctan2(*np.diff(walked, axis=0).T[::-1]))
    assert np.abs(np.diff(headings)).max() < 0.6
    steady = Mass(width_m=10, height_m=1000, speed_mps=(1, 1), turn_rad=0.0)
    turned = np.diff(path(steady, 5, np.arange(0, 100, 0.1).tolist()), axis=0)
    inside = np.hypot(*turned.T) > 0.0999
    assert np.allclose(np.abs(turned[inside, 0]), abs(turned[0, 0]))
    assert {bool(sign) for sign in turned[inside, 0] > 0} == {True, False}


def test_the_still_stay_and_never_make_the_others_be_asked_for() -> None:
    field = Field(Streams(1))
    field.add("a", Still(3.0, 4.0))
    assert [axis.tolist() for axis in field.positions(1000.0)] == [[3.0], [4.0]]
    assert not field.moving
    field.add("b", Walk(width_m=9, height_m=9, speed_mps=(1, 1)))
    field.positions(1000.0)
    assert field.moving


RECORDING = Replay(times_s=(10.0, 20.0, 320.0, 700.0, 710.0), xs_m=(0, 10, 10, 50, 60), ys_m=(0, 20, 50, 5, 5))


@pytest.mark.parametrize(
    ("time_s", "place"),
    [
        (0.0, None),
        (9.99, None),
        (10.0, (0, 0)),
        (15.0, (5, 10)),
        (20.0, (10, 20)),
        (170.0, (10, 35)),  # five minutes between fixes can be bridged
        (320.0, None),  # more than five cannot
        (500.0, None),
        (700.0, (50, 5)),
        (705.0, (55, 5)),
        (710.0, None),
        (9999.0, None),
    ],
)
def test_a_replay_goes_straight_between_fixes_and_is_nowhere_in_gaps(
    time_s: float, place: tuple[float, float] | None
) -> None:
    (found,) = path(RECORDING, 1, [time_s]).tolist()
    if place is None:
        assert all(map(math.isnan, found))
    else:
        assert found == pytest.approx(place)


@given(st.lists(st.floats(0, 800), min_size=1, max_size=20).map(sorted))
def test_a_replay_is_the_same_however_often_it_is_looked_at(times: list[float]) -> None:
    looked = path(RECORDING, 1, times)
    assert np.allclose(looked[-1], path(RECORDING, 1, times[-1:])[0], equal_nan=True)


@pytest.mark.parametrize(
    "recording",
    [
        {"times_s": (), "xs_m": (), "ys_m": ()},
        {"times_s": (1.0, 2.0), "xs_m": (1.0,), "ys_m": (1.0, 2.0)},
        {"times_s": (2.0, 1.0), "xs_m": (1.0, 2.0), "ys_m": (1.0, 2.0)},
        {"times_s": (1.0, 1.0), "xs_m": (1.0, 2.0), "ys_m": (1.0, 2.0)},
        {"times_s": (1.0, math.nan), "xs_m": (1.0, 2.0), "ys_m": (1.0, 2.0)},
        {"times_s": (1.0, 2.0), "xs_m": (1.0, math.inf), "ys_m": (1.0, 2.0)},
        {"times_s": (1.0,), "xs_m": (1.0,), "ys_m": (1.0,), "gap_max_s": 0.0},
    ],
)
def test_a_bad_recording_is_refused(recording: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="recording"):
        Replay(**recording)  # type: ignore[arg-type]


def test_a_place_is_given_once_and_a_model_must_make_time_pass() -> None:
    class Stuck(Still, frozen=True):
        def next(self, *_: object) -> Leg:
            return Leg(0.0)

    field = Field(Streams(1))
    field.add("a", Stuck(0, 0))
    with pytest.raises(ValueError, match="place already"):
        field.add("a", Still(0, 0))
    with pytest.raises(ValueError, match="stand still in time"):
        field.positions(1.0)
