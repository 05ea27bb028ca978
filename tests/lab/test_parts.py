"""A claim is all of its parts: each is above zero, is not, or cannot be told."""

from __future__ import annotations

from godwit.lab.claims import Claim, Verdict
from godwit.lab.intervals import Interval
from godwit.lab.parts import Part, all_hold, decided, least_margin

CLAIM = Claim("E1", "so")
YES, NO, OPEN = Part("a", Interval(2, 1, 5)), Part("b", Interval(-2, 1, 5)), Part("c", Interval(0.5, 1, 5))


def test_all_parts_must_hold_and_one_that_fails_is_enough() -> None:
    assert decided(CLAIM, [YES, YES]).verdict is Verdict.REPRODUCED
    assert decided(CLAIM, [YES, NO, OPEN]).verdict is Verdict.NOT_REPRODUCED
    close = decided(CLAIM, [YES, OPEN], cost="1 h")
    assert close.told == "not decidable: 1 of 2 parts are too close to tell with 5 worlds (1 h)"
    assert close.numbers == "a 2 ± 1; c 0.5 ± 1"
    assert decided(CLAIM, [YES, Part("d", None)], cost="1 h").told == "not decidable: not run: d (1 h)"
    assert decided(CLAIM, []).verdict is Verdict.NOT_DECIDABLE
    assert all_hold([]) is None


def test_an_effect_that_is_surely_too_small_to_speak_of_is_none() -> None:
    assert Part("a", Interval(0.001, 0.002, 50), least=0.01).holds is False
    assert Part("a", Interval(0.001, 0.02, 5), least=0.01).holds is None


def test_the_margin_of_a_claim_is_that_of_its_weakest_part() -> None:
    assert least_margin([YES, OPEN]) == 0.5
    assert least_margin([YES, Part("d", None)]) is None
