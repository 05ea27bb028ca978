"""Means and differences are those of the same worlds, and lines are read where they rise."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.lab.adhoc.made import PLAN, result

from godwit.lab.adhoc.evidence import Evidence, between, crossing, delivery
from godwit.lab.results import Row


@pytest.mark.feature("manet-cbr F19")
def test_differences_are_taken_seed_by_seed() -> None:
    plain, credit = PLAN.cell(), PLAN.cell(credits=1)
    rows = [Row(structs.replace(plain, seed=seed), result(0.1 * seed, 2.0)) for seed in (1, 2, 3)]
    rows += [Row(structs.replace(credit, seed=seed), result(0.1 * seed + 0.05, 2.0)) for seed in (1, 2)]
    evidence = Evidence(PLAN, rows)
    lead = evidence.difference(delivery, credit, plain)
    assert lead is not None
    assert lead.mean == pytest.approx(0.05)
    assert lead.runs == 2
    assert lead.half == pytest.approx(0.0, abs=1e-9)
    mean = evidence.mean(delivery, plain)
    assert mean is not None
    assert mean.mean == pytest.approx(0.2)
    assert evidence.means(delivery, [plain, PLAN.cell(credits=5)]) is None
    assert evidence.difference(delivery, plain, PLAN.cell(credits=5)) is None


def test_a_line_is_read_where_it_last_rises() -> None:
    xs, ys = [0.1, 0.2, 0.3, 0.5], [5.0, 2.0, 3.0, 7.0]
    assert crossing(xs, ys, 2.5) == pytest.approx(0.25)
    assert crossing(xs, ys, 5.0) == pytest.approx(0.4)
    assert crossing(xs, ys, 8.0) is None
    assert crossing(xs, ys, 1.0) is None
    assert between(xs, ys, 0.4) == pytest.approx(5.0)
    with pytest.raises(ValueError, match="outside"):
        between(xs, ys, 0.6)
