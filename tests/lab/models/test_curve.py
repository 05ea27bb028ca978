from __future__ import annotations

import pytest

from godwit.lab.models.curve import PUBLISHED, fit


@pytest.mark.feature("proactive-handoff F42", "proactive-handoff F45")
def test_the_published_curve_gives_the_published_throughput() -> None:
    assert f"{PUBLISHED(29.5358):.3f}" == "218.983"


@pytest.mark.feature("proactive-handoff F42")
def test_a_fit_finds_the_cubic_it_was_given() -> None:
    x = [float(i) for i in range(40)]
    found = fit(x, [PUBLISHED(i) for i in x])
    assert [found.c3, found.c2, found.c1, found.c0] == pytest.approx([0.0019, -0.2256, 12.362, 1.7111])
    assert found.r_squared == pytest.approx(1.0)
    assert (found.extrapolates(39.0), found.extrapolates(39.5)) == (False, True)
    assert PUBLISHED.extrapolates(60)


@pytest.mark.feature("proactive-handoff F42")
def test_noise_lowers_r_squared_and_too_few_points_are_refused() -> None:
    x = [float(i) for i in range(20)]
    noisy = fit(x, [i + (10 if i % 2 else -10) for i in x])
    assert 0 <= noisy.r_squared < 0.7
    with pytest.raises(ValueError, match="3 different points do not determine 4 coefficients"):
        fit([1, 2, 3, 3, 3], [1, 2, 3, 4, 5])


@pytest.mark.feature("proactive-handoff F44")
def test_the_refined_fit_tells_subscribers_and_stand_ins_apart() -> None:
    x = [float(i % 10) for i in range(60)]
    dummies = [float(i // 10) for i in range(60)]
    found = fit(x, [PUBLISHED(a) - 1.5 * b for a, b in zip(x, dummies, strict=True)], dummies)
    assert found.dummy == pytest.approx(-1.5)
    assert found(5.0, 2.0) == pytest.approx(PUBLISHED(5.0) - 3.0)
