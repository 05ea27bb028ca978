from __future__ import annotations

import pytest

from godwit.lab.models import overhead


def covers(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[0] and b[1] <= a[1]


@pytest.mark.feature("proactive-handoff F38")
def test_every_subscription_goes_to_every_neighbor_unless_an_earlier_one_covers_it() -> None:
    assert overhead.propagation(3, 5) == 15
    assert overhead.propagation_covered([(0, 50), (10, 20), (40, 60)], 5, covers) == 10
    assert overhead.propagation_covered([(10, 20), (0, 50), (40, 60)], 5, covers) == 15


@pytest.mark.feature("proactive-handoff F38")
def test_caching_is_paid_where_a_subscription_is_not_covered() -> None:
    nowhere = [[False] * 4, [False] * 4]
    assert overhead.caching(nowhere, rate_per_s=10, away_s=3) == 10 * 3 * 8
    assert overhead.caching([[True, False, False, True], [True] * 4], 10, 3) == 10 * 3 * 2
    assert overhead.total(overhead.propagation(2, 4), overhead.caching(nowhere, 10, 3)) == 248


@pytest.mark.feature("proactive-handoff F38", "proactive-handoff F10")
def test_a_cold_graph_misses_every_move_and_a_warm_one_none() -> None:
    assert overhead.false_negatives(additions=12, handoffs=12) == 1.0
    assert overhead.false_negatives(additions=0, handoffs=12) == 0.0
    assert overhead.false_negatives(additions=0, handoffs=0) == 0.0


@pytest.mark.feature("proactive-handoff F38", "proactive-handoff F10")
def test_an_edge_that_was_never_used_again_was_wasted_for_its_whole_timeout() -> None:
    assert overhead.false_positives(removals=1, edge_timeout_s=30, residence_s=[30]) == 1.0
    assert overhead.false_positives(removals=1, edge_timeout_s=30, residence_s=[30, 90]) == 0.25
    assert overhead.false_positives(removals=0, edge_timeout_s=30, residence_s=[]) == 0.0
