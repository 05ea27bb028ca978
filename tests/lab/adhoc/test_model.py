"""The Markov model of expected distance: its laws, the numbers of the spec, and a walk that agrees (manet-cbr 3)."""

from __future__ import annotations

from random import Random

import pytest

from godwit.lab.adhoc.model import MOVES, Torus, expected_distances, simulated_distances, start, torus_of

TICKS = (0, 1, 2, 5, 10, 15, 20, 30, 50, 100, 200)
PRINTED = {
    (0.9, 0.10): (10.00, 10.91, 11.73, 13.79, 16.17, 14.94, 14.27, 14.78, 14.93, 15.22, 15.51),
    (0.9, 0.25): (10.00, 10.91, 11.73, 13.82, 16.38, 15.30, 14.69, 15.23, 15.42, 15.60, 15.65),
    (0.9, 0.50): (10.00, 10.91, 11.74, 13.90, 16.83, 15.96, 15.29, 15.61, 15.56, 15.56, 15.56),
    (0.9, 0.75): (10.00, 10.91, 11.74, 14.08, 17.55, 16.54, 15.37, 15.51, 15.41, 15.43, 15.43),
    (0.9, 0.90): (10.00, 10.91, 11.74, 14.35, 18.15, 16.39, 14.99, 15.51, 15.42, 15.35, 15.34),
    (0.5, 0.10): (10.00, 10.52, 10.79, 11.15, 11.46, 11.73, 11.99, 12.48, 13.31, 14.68, 15.71),
    (0.5, 0.25): (10.00, 10.52, 10.80, 11.39, 12.14, 12.77, 13.32, 14.17, 15.17, 15.91, 16.13),
    (0.5, 0.50): (10.00, 10.52, 10.81, 11.94, 13.27, 14.24, 14.89, 15.54, 15.92, 16.11, 16.16),
}


@pytest.mark.feature("manet-cbr F21", "manet-cbr F22")
@pytest.mark.parametrize(("beta", "speed"), PRINTED)
def test_the_expected_distance_is_as_printed(beta: float, speed: float) -> None:
    printed = PRINTED[beta, speed]
    last = max(TICKS) if beta == 0.5 and speed == 0.5 else 50
    found = expected_distances(torus_of(speed, beta), last)
    for ticks, value in zip(TICKS, printed, strict=True):
        if ticks <= last:
            assert found[ticks] == pytest.approx(value, abs=0.0101), ticks


@pytest.mark.feature("manet-cbr F21", "manet-cbr F22")
@pytest.mark.parametrize(("beta", "speed"), PRINTED)
def test_the_stationary_law_stays_and_chances_add_up(beta: float, speed: float) -> None:
    torus = torus_of(speed, beta)
    law = torus.stationary
    assert torus.speed == pytest.approx(speed)
    for after in MOVES:
        assert sum(law[before] * torus.next_move(before, after) for before in MOVES) == pytest.approx(law[after])
        assert sum(torus.next_move(after, m) for m in MOVES) == pytest.approx(1)
    assert sum(one[4] for one in start(torus)) == pytest.approx(1)


@pytest.mark.feature("manet-cbr F21")
@pytest.mark.parametrize(
    ("half_side", "reach", "speed", "beta"), [(8, 4, 0.5, 0.7), (6, 2, 0.3, 0.5), (9, 5, 0.8, 0.9)]
)
def test_walking_agrees_with_the_solution_for_other_inputs(
    half_side: int, reach: int, speed: float, beta: float
) -> None:
    torus = torus_of(speed, beta, half_side=half_side, reach=reach)
    exact = expected_distances(torus, 12)
    walked = simulated_distances(torus, 12, 2000, Random(1))
    assert exact[0] == pytest.approx(reach)
    assert walked == pytest.approx(exact, abs=0.12)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"alpha": 1.0, "beta": 0.5}, "alpha 1"), ({"alpha": 0.5, "beta": 0.5, "reach": 20}, "reach 20")],
)
def test_impossible_inputs_are_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Torus(**wrong)  # type: ignore[arg-type]
