"""The five verdicts, and what each of them must say beside its name."""

from __future__ import annotations

import pytest

from godwit.lab.claims import (
    Claim,
    Finding,
    Missing,
    Point,
    Verdict,
    along,
    arithmetic,
    fair,
    judged,
    region,
    undecided,
)

CLAIM = Claim("E7", "More is better.")


def curve(*holds: bool | None) -> list[Point]:
    return [Point(f"{i} s", one) for i, one in enumerate(holds, 1)]


def test_what_holds_fails_or_cannot_be_told_is_said_so() -> None:
    assert judged(CLAIM, True, "3").told == "reproduced"
    assert judged(CLAIM, False, "3").told == "not reproduced"
    assert judged(CLAIM, None, "C32 was not run", "2 h").told == "not decidable: C32 was not run (2 h)"


def test_digits_that_follow_are_arithmetic_and_digits_that_do_not_are_an_error_of_the_source() -> None:
    assert arithmetic(CLAIM, True, "20 of 20").verdict is Verdict.ARITHMETIC
    assert arithmetic(CLAIM, False, "19 of 20").verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        ((False, False, True, True), "from 3 s on"),
        ((True, False, False), "up to 1 s"),
        ((False, True, False), "at 2 s"),
        ((True, None, False, True), "at 1 s, 4 s"),
    ],
)
def test_a_claim_that_hangs_on_a_parameter_says_where_it_holds(holds: tuple[bool | None, ...], told: str) -> None:
    finding = along(CLAIM, "the period", curve(*holds), "n")
    assert finding.told == f"depends on the period: holds {told}"
    assert finding.depends is not None
    assert len(finding.depends.curve) == len(holds)
    assert region(curve(*holds)) == told


def test_a_parameter_that_changes_nothing_is_not_what_it_depends_on() -> None:
    assert along(CLAIM, "p", curve(True, None, True), "n").verdict is Verdict.REPRODUCED
    assert along(CLAIM, "p", curve(False, False), "n").verdict is Verdict.NOT_REPRODUCED
    assert along(CLAIM, "p", curve(None, None), "n").verdict is Verdict.NOT_DECIDABLE


def test_a_quick_plan_never_refutes() -> None:
    refuted = judged(CLAIM, False, "0.1 ± 0.3")
    assert fair(refuted, quick=False, cost="1 h") is refuted
    lenient = fair(refuted, quick=True, cost="1 h")
    assert lenient.missing == Missing("the quick plan did not see it, and has not the power to refute it", "1 h")
    assert lenient.numbers == "0.1 ± 0.3"
    seen = judged(CLAIM, True, "1")
    assert fair(seen, quick=True, cost="1 h") is seen


def test_a_verdict_without_what_it_must_say_is_refused() -> None:
    with pytest.raises(ValueError, match="says what is missing"):
        Finding(CLAIM, Verdict.NOT_DECIDABLE, "")
    with pytest.raises(ValueError, match="says on what"):
        Finding(CLAIM, Verdict.DEPENDS, "")
    assert undecided(CLAIM, "the size").missing is not None
