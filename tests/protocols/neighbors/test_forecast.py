from __future__ import annotations

import pytest

from godwit.protocols.neighbors.forecast import Forecast
from godwit.protocols.neighbors.graph import GraphOptions, NeighborGraph, worthwhile


def likely(forecast: Forecast, before: str = "", mass: float = 0.9) -> set[str]:
    return set(worthwhile(forecast.weights(before), GraphOptions(mass=mass)))


def on_a_road(moves: int = 50) -> Forecast:
    """From here everybody goes on in the direction in which they came."""
    forecast = Forecast()
    for _ in range(moves):
        forecast.learn("west", "east")
        forecast.learn("east", "west")
    return forecast


def test_who_comes_from_the_west_goes_on_to_the_east() -> None:
    forecast = on_a_road()
    assert likely(forecast, "west") == {"east"}
    assert likely(forecast, "east") == {"west"}


def test_of_somebody_from_elsewhere_all_moves_tell() -> None:
    assert likely(on_a_road(), "north") == {"east", "west"}
    assert likely(on_a_road()) == {"east", "west"}


def test_few_moves_of_a_kind_do_not_outweigh_all_others() -> None:
    forecast = on_a_road()
    forecast.learn("north", "north")
    assert likely(forecast, "north") == {"north", "east", "west"}


def test_where_nothing_was_counted_yet_the_near_ones_are_likely() -> None:
    forecast = Forecast({"near": 10.0, "nearer": 20.0, "far": 0.1})
    assert likely(forecast) == {"near", "nearer"}
    assert Forecast().weights() == {}


def test_old_habits_fade() -> None:
    forecast = on_a_road(100)
    for _ in range(10):
        forecast.fade(0.5)
        forecast.learn("west", "south", 10)
    assert likely(forecast, "west") == {"south"}


def test_who_is_gone_is_not_expected_any_more() -> None:
    forecast = on_a_road()
    forecast.forget("east")
    assert likely(forecast, "west") == {"west"}
    assert "east" not in forecast.moves


@pytest.mark.feature("proactive-handoff F11")
def test_a_graph_with_foresight_wakes_fewer_at_the_same_hit_rate() -> None:
    options = GraphOptions(foresight=True, mass=0.9)
    graph = NeighborGraph("here", options)
    for place in ("east", "west", "south"):
        graph.touch(place, 0.0)
    for _ in range(50):
        graph.learn("west", "east")
        graph.learn("east", "west")
    assert graph.targets("west") == ["east"]
    assert set(graph.targets()) == {"east", "west"}
