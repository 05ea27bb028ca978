"""What the study makes of a screening and of two readings at size: each claim with each of its verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from godwit.lab.claims import Claim, Finding, Verdict, judged
from godwit.lab.intervals import interval
from godwit.lab.mft.runs import Configuration
from godwit.lab.mft.screening import JUDGED, Margins
from godwit.lab.mft.study import PLANS, screened
from godwit.lab.parts import Part, decided

pytestmark = pytest.mark.feature("mft-pubsub F34")

Setting = dict[str, Any]


def margins(margin: Callable[[int, Setting], float]) -> Margins:
    """The same for every claim: by the number of the setting and the setting."""
    made = Margins([])
    made.by_claim = {name: [margin(i, setting) for i, setting in enumerate(made.settings)] for name in JUDGED}
    return made


def at_size(text: bool | None, ours: bool | None) -> dict[str, Finding]:
    return {name: judged(Claim("E", "."), holds, "n") for name, holds in (("text", text), ("ours", ours))}


def by_dice(i: int, setting: Setting) -> float:
    """The sign is nobody's: as often one as the other at every value of every factor."""
    return 1.0 if (i * 2654435761) % 1000 < 500 else -1.0


def by_period(i: int, setting: Setting) -> float:
    return 1.0 if setting["period_s"] >= 5 else -1.0


def by_two(i: int, setting: Setting) -> float:
    """Neither factor alone turns it: half of the settings with each value of one hang on the other."""
    return 1.0 if setting["period_s"] >= 5 and setting["acknowledge"] == "every hop" else -1.0


TABLE: dict[str, tuple[Callable[[int, Setting], float], bool | None, bool | None, Verdict]] = {
    "everywhere": (lambda i, s: 1.0, True, None, Verdict.REPRODUCED),
    "nowhere": (lambda i, s: -1.0, None, False, Verdict.NOT_REPRODUCED),
    "everywhere in one world, and nothing at size": (lambda i, s: 1.0, None, None, Verdict.NOT_DECIDABLE),
    "nowhere in one world, and nothing at size": (lambda i, s: -1.0, None, None, Verdict.NOT_DECIDABLE),
    "from a period on": (by_period, None, None, Verdict.DEPENDS),
    "by two factors": (by_two, None, None, Verdict.DEPENDS),
    "by dice, and both readings hold": (by_dice, True, True, Verdict.REPRODUCED),
    "by dice, and one fails": (by_dice, False, None, Verdict.NOT_REPRODUCED),
    "by dice, and readings differ": (by_dice, True, False, Verdict.DEPENDS),
    "everywhere in one world, and readings differ": (lambda i, s: 1.0, True, False, Verdict.DEPENDS),
    "from a period on, and readings differ": (by_period, True, False, Verdict.DEPENDS),
    "by dice, and nothing at size": (by_dice, None, None, Verdict.NOT_DECIDABLE),
}


@pytest.mark.parametrize("case", TABLE)
@pytest.mark.parametrize("name", JUDGED)
def test_each_verdict_is_said_where_it_should_be(name: str, case: str) -> None:
    margin, text, ours, verdict = TABLE[case]
    assert screened(name, margins(margin), at_size(text, ours), quick=False).verdict is verdict


def test_a_quick_plan_refutes_nothing_and_a_missing_screening_decides_nothing() -> None:
    nowhere = margins(lambda i, setting: -1.0)
    assert screened("E5", nowhere, at_size(None, None), quick=True).verdict is Verdict.NOT_DECIDABLE
    assert screened("E5", Margins([]), at_size(True, True), quick=False).verdict is Verdict.NOT_DECIDABLE


def test_the_threshold_is_told_and_readings_that_differ_are_named() -> None:
    found = screened("E5", margins(by_period), at_size(None, None), quick=False)
    assert found.told == "depends on the heartbeat period: holds from 5 s on"
    for margin in (by_dice, by_period, lambda i, setting: 1.0):
        split = screened("E9", margins(margin), at_size(True, False), quick=False)
        assert split.told == "depends on the reading of acknowledgements and retries: holds with text"


@pytest.mark.parametrize(
    ("worlds", "told"), [(1, "one world, which tells nothing"), (3, "too close to tell with 3 worlds")]
)
def test_a_reading_that_is_open_at_size_says_how_many_worlds_it_has(worlds: int, told: str) -> None:
    close = decided(Claim("E", "."), [Part("lead", interval([1.0, -1.0, 0.5][:worlds]))])
    found = screened("E5", margins(lambda i, setting: 1.0), {"text": close, "ours": close}, quick=False)
    assert found.numbers.endswith(f"At size, text: {told}; ours: {told}")


def test_what_three_claims_hang_on_is_run_before_the_rest_of_the_grids() -> None:
    def is_early(run: Configuration) -> bool:
        return run.size == 16 and run.speed_mps in (2.0, 6.0, 10.0)

    grid = [run for run in PLANS["published"].runs() if run.publish_s == 500.0 and not run.side_m]
    early = [is_early(run) for run in grid[:80]]
    assert all(early)
    assert [run.seed for run in grid[:80]] == sorted(run.seed for run in grid[:80])
