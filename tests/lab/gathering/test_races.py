"""Moves faster than messages: what is published loses and loops, what is corrected does not (spec 6.2-H)."""

from __future__ import annotations

import pytest

from godwit.lab.gathering.races import PUBLISHED_BAD, VARIANTS, Race, run

pytestmark = [pytest.mark.feature("data-gathering F30"), pytest.mark.feature("data-gathering F43")]

SEEDS = range(1, 5)


def test_without_epochs_something_is_lost_or_loops() -> None:
    assert any(run(Race(variant="as published", seed=seed)).is_bad for seed in range(1, 20))


@pytest.mark.parametrize(
    "variant",
    [
        "epochs, pending handovers by epoch",
        "the same, 12 brokers, 2 pointers",
        "lost answers: with tried",
        "lost answers: with the re-check alone",
        "late duplicates: guard and tried",
        "all at once, 12 brokers, 2 pointers: all rules",
    ],
)
def test_with_the_rules_that_the_world_needs_nothing_is_lost_and_nothing_loops(variant: str) -> None:
    outcomes = [run(Race(variant=variant, seed=seed)) for seed in SEEDS]
    assert [one.wanted - one.received for one in outcomes] == [0] * len(SEEDS)
    assert not any(one.dead_letters for one in outcomes)


@pytest.mark.parametrize("variant", ["lost answers: epochs, no chase", "late duplicates: without the guard"])
def test_each_rule_repairs_something(variant: str) -> None:
    assert any(run(Race(variant=variant, seed=seed)).is_bad for seed in SEEDS)


def test_every_row_of_the_table_has_the_spec_beside_it() -> None:
    assert list(VARIANTS) == list(PUBLISHED_BAD)
