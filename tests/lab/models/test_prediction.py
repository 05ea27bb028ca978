from __future__ import annotations

import pytest

from godwit.lab.models import published
from godwit.lab.models.curve import PUBLISHED
from godwit.lab.models.populations import Stays, active_dummies, neighbor_places, random_places
from godwit.lab.models.prediction import difference, overall, predict
from godwit.lab.models.topology import six_brokers

GRAPH = six_brokers()
RND, NBR = random_places(list(GRAPH), Stays()), neighbor_places(GRAPH, Stays())


@pytest.mark.feature("proactive-handoff F43", "proactive-handoff F45")
@pytest.mark.parametrize("subscribers", published.MODEL_RND)
def test_overall_predictions_come_out_digit_for_digit(subscribers: int) -> None:
    assert round(overall(predict(RND, subscribers, PUBLISHED)), 1) == published.MODEL_RND[subscribers]
    assert round(overall(predict(NBR, subscribers, PUBLISHED)), 1) == published.MODEL_NBR[subscribers]


@pytest.mark.feature("proactive-handoff F43")
def test_brokers_one_by_one_with_their_bounds() -> None:
    rnd, nbr = predict(RND, 200, PUBLISHED), predict(NBR, 200, PUBLISHED)
    assert {round(one.throughput_per_s, 1) for one in rnd.values()} == {219.0}
    low, high = rnd["B1"].bounds or (0, 0)
    assert (round(low, 1), round(high, 1)) == (172.2, 254.7)
    assert [round(one.throughput_per_s, 1) for one in nbr.values()] == [184.6, 232.1, 270.6, 184.6, 112.8, 270.6]
    assert predict(NBR, 10, PUBLISHED)["B5"].bounds is None
    assert not nbr["B3"].extrapolated
    assert predict(NBR, 400, PUBLISHED)["B3"].extrapolated


@pytest.mark.feature("proactive-handoff F43")
def test_differences_are_relative_to_what_was_measured() -> None:
    model = overall(predict(RND, 200, PUBLISHED)), overall(predict(NBR, 200, PUBLISHED))
    assert f"{difference(model[0], published.MEASURED_RND[200]):+.1%}" == "+12.0%"
    assert f"{difference(model[1], published.MEASURED_NBR[200]):+.1%}" == "-11.6%"


@pytest.mark.feature("proactive-handoff F44")
def test_the_published_curve_does_not_see_stand_ins() -> None:
    dummies = active_dummies(NBR, GRAPH, 200)
    assert overall(predict(NBR, 200, PUBLISHED, dummies)) == overall(predict(NBR, 200, PUBLISHED))
