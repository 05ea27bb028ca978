"""A claim is all of its parts: each is above zero, is not, or cannot be told."""

from __future__ import annotations

import math

from godwit.lab.claims import Claim, Verdict
from godwit.lab.intervals import Interval
from godwit.lab.parts import Part, all_hold, decided, least_margin

CLAIM = Claim("E1", "so")
YES, NO, OPEN = Part("a", Interval(2, 1, 5)), Part("b", Interval(-2, 1, 5)), Part("c", Interval(0.5, 1, 5))


def test_all_parts_must_hold_and_one_that_fails_is_enough() -> None:
    assert decided(CLAIM, [YES, YES]).verdict is Verdict.REPRODUCED
    assert decided(CLAIM, [YES, NO, OPEN]).verdict is Verdict.NOT_REPRODUCED
    close = decided(CLAIM, [YES, OPEN], cost="1 h")
    assert close.told == "not decidable: 1 of 2 parts are too close to tell with 5 worlds, about 20 might (1 h)"
    assert close.numbers == "a 2 ± 1; c 0.5 ± 1"
    assert decided(CLAIM, [YES, Part("d", None)], cost="1 h").told == "not decidable: not run: d (1 h)"
    assert decided(CLAIM, []).verdict is Verdict.NOT_DECIDABLE
    assert all_hold([]) is None


def test_an_effect_that_is_surely_too_small_to_speak_of_is_none() -> None:
    assert Part("a", Interval(0.001, 0.002, 50), least=0.01).holds is False
    assert Part("a", Interval(0.001, 0.02, 5), least=0.01).holds is None


def test_how_many_worlds_would_decide_is_foreseen_from_the_spread() -> None:
    assert OPEN.worlds == 5 * (1 / 0.5) ** 2
    assert Part("a", Interval(1, 20, 10), least=11).worlds == 40  # to refute it is nearer than to show it
    assert Part("a", Interval(0.0, 1.0, 5)).worlds is None
    assert Part("a", Interval(1.0, math.inf, 1)).worlds is None
    far = Part("b", Interval(0.1, 1, 5))
    assert ", about 500 might" in decided(CLAIM, [OPEN, far]).told  # both must hold
    assert ", about 20 might" in decided(CLAIM, [far, Part("c", Interval(-0.5, 1, 5))]).told  # one that fails is enough
    unknown = decided(CLAIM, [OPEN, Part("a", Interval(1.0, math.inf, 1))], cost="1 h")
    assert unknown.told == "not decidable: 2 of 2 parts are too close to tell with 5 worlds (1 h)"


def test_the_margin_of_a_claim_is_that_of_its_weakest_part() -> None:
    assert least_margin([YES, OPEN]) == 0.5
    assert least_margin([YES, Part("d", None)]) is None


def test_a_point_of_a_curve_knows_by_how_much_each_part_holds_there() -> None:
    points = [decided(CLAIM, parts).at("2 s") for parts in ([YES], [YES, NO], [YES, OPEN])]
    assert [point.holds for point in points] == [True, False, None]
    assert [(margin.of, margin.by.mean) for margin in points[1].margins] == [("a", 2), ("b", -2)]
