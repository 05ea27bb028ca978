from __future__ import annotations

import pytest

from godwit.lab.handoff.races import Outcome, Race, run
from godwit.protocols.handoff_schemes.rules import CHECKED, HARDENED, LITERAL


def total(races: list[Race]) -> Outcome:
    found = Outcome()
    for race in races:
        found = found.plus(run(race))
    return found


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F14", "proactive-handoff F22")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("column", [{"delay": "mild"}, {}, {"neighbors": False}, {"edge_timeout": 2.0}], ids=str)
def test_with_all_rules_nothing_is_lost_repeated_disordered_or_left_behind(
    seed: int, column: dict[str, object]
) -> None:
    outcome = run(Race(seed=seed, length=8.0, **column))  # type: ignore[arg-type]
    assert outcome.due > 1000
    assert outcome.handoffs > 10
    assert (outcome.lost, outcome.repeated, outcome.disordered, outcome.left_behind) == (0, 0, 0, 0)


@pytest.mark.feature("proactive-handoff F47")
def test_the_text_and_its_own_options_fail_under_harsh_delays() -> None:
    literal = total([Race(seed=seed, rules=LITERAL, length=8.0) for seed in range(2)])
    assert literal.lost > literal.due / 100
    assert literal.repeated > 0
    assert total([Race(seed=seed, rules=CHECKED, length=8.0) for seed in range(2)]).lost > 0


@pytest.mark.feature("proactive-handoff F14")
@pytest.mark.parametrize("rule", ["ack_high_water", "gap_safe"])
def test_without_either_half_of_the_catch_up_events_are_lost_but_never_repeated(rule: str) -> None:
    outcome = total([Race(seed=seed, rules=HARDENED.without(rule), length=8.0) for seed in range(3)])
    assert outcome.lost > 0
    assert (outcome.repeated, outcome.disordered, outcome.left_behind) == (0, 0, 0)


def test_a_race_is_decided_by_its_seed() -> None:
    assert run(Race(seed=5, length=4.0)) == run(Race(seed=5, length=4.0))
    assert run(Race(seed=5, length=4.0)) != run(Race(seed=6, length=4.0))
