from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from tests.lab.handoff.test_verdicts import as_published

from godwit.lab.handoff import calibration
from godwit.lab.handoff.calibration import CURRENT, Guess, Plan, errors, fitted, table
from godwit.lab.handoff.runs import Configuration, Result

PLAN = Plan(subscribers=(10, 200))


@pytest.mark.feature("proactive-handoff F32")
def test_the_published_numbers_themselves_are_no_error_and_twice_is_as_far_off_as_half() -> None:
    cells = {cell: as_published(published(*cell)) for cell in PLAN.cells}
    assert np.allclose(errors(cells), 0)
    double, half = (
        {cell: msgspec.structs.replace(r, throughput_per_s=r.throughput_per_s * f) for cell, r in cells.items()}
        for f in (2, 0.5)
    )
    assert np.allclose(errors(double), -errors(half))


def published(subscribers: int, pattern: str) -> Configuration:
    return Configuration(scheme="durable", seed=1, subscribers=subscribers, pattern=pattern)


@pytest.mark.feature("proactive-handoff F32")
def test_a_fit_finds_costs_that_were_hidden_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A testbed whose numbers are plain functions of its costs, so that the right answer is known."""
    truth = CURRENT.scaled([0.2, -0.1, 0.15, 0.1, -0.2])

    def measured(plan: Plan, guess: Guess) -> dict[tuple[int, str], Result]:
        found = {}
        for size, pattern in plan.cells:
            result = as_published(published(size, pattern))
            busy = [load(g, size, pattern) for g in (guess, truth)]
            found[size, pattern] = msgspec.structs.replace(
                result,
                throughput_per_s=result.throughput_per_s * busy[1] / busy[0],
                loss=result.loss * guess.size_b / truth.size_b,
                duplication=result.duplication * truth.size_b / guess.size_b,
                latency_s=result.latency_s * (guess.connect_s + busy[0]) / (truth.connect_s + busy[1]),
            )
        return found

    def load(guess: Guess, size: int, pattern: str) -> float:
        live = 0.2 * size * (0.22 if pattern == "NBR" else 0.15)
        return guess.accept_s + live * guess.deliver_s + (0.2 * size - live) * guess.store_s

    monkeypatch.setattr(calibration, "measured", measured)
    told: list[float] = []
    found = fitted(PLAN, CURRENT, 4, lambda guess, error: told.append(error))
    assert told[-1] < told[0] / 5
    for name in ("accept_s", "size_b"):
        assert math.isclose(getattr(found, name), getattr(truth, name), rel_tol=0.1)


def test_the_fit_stands_beside_what_was_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        calibration, "measured", lambda plan, guess: {cell: as_published(published(*cell)) for cell in plan.cells}
    )
    assert "| K=200, RND | D | 17.05 | 17.1 |" in table(PLAN, CURRENT)
