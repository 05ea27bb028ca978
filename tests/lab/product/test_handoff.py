"""The deployed broker in the published evaluation."""

from __future__ import annotations

from godwit.lab.handoff.runs import Configuration, run


def test_the_product_loses_repeats_and_disorders_nothing_of_the_published_evaluation() -> None:
    result = run(Configuration(scheme="product", seed=1, subscribers=6, pattern="NBR", warmup_s=30.0, measure_s=40.0))
    assert result.due == result.unique + result.lost or result.due > 100
    assert (result.lost, result.duplication, result.disordered) == (0, 0.0, 0)
    assert result.handoffs > 0
    assert result.hits + result.misses > 0
