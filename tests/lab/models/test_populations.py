from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.lab.models import published
from godwit.lab.models.populations import (
    Population,
    Stays,
    active_dummies,
    long_run_shares,
    neighbor_places,
    random_generator,
    random_places,
    random_shares,
)
from godwit.lab.models.topology import complete, graph_of, six_brokers


@pytest.mark.feature("proactive-handoff F40", "proactive-handoff F45")
def test_the_random_pattern_comes_out_digit_for_digit() -> None:
    shares = random_shares(6, Stays())
    assert [f"{x:.6f}" for x in (shares.broker, shares.handoff, shares.disconnect)] == [
        "0.147679",
        "0.025316",
        "0.088608",
    ]


@pytest.mark.feature("proactive-handoff F40")
@given(st.integers(2, 12), st.floats(1, 300), st.floats(1, 300), st.floats(0.1, 30))
def test_the_closed_form_is_the_null_space(brokers: int, connect: float, disconnect: float, handoff: float) -> None:
    stays = Stays(connect, disconnect, handoff)
    shares = random_shares(brokers, stays)
    expected = [shares.handoff, shares.disconnect, *[shares.broker] * brokers]
    assert list(long_run_shares(random_generator(brokers, stays))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.feature("proactive-handoff F40", "proactive-handoff F45")
@pytest.mark.parametrize("layout", ["a", "b"])
def test_the_neighboring_pattern_comes_out_digit_for_digit_in_both_layouts(layout: str) -> None:
    places = neighbor_places(six_brokers(layout), Stays())
    assert {name: f"{share:.6f}" for name, share in places.connected.items()} == {
        name: f"{share:.6f}" for name, share in published.NEIGHBOR_SHARES.items()
    }
    assert sum(map(places.away, places.connected)) == pytest.approx(0.120879, abs=5e-7)


@pytest.mark.feature("proactive-handoff F40")
@given(st.sets(st.tuples(st.integers(0, 6), st.integers(7, 9)), min_size=1), st.integers(1, 5))
def test_on_any_connected_graph_time_goes_with_the_number_of_neighbors(
    edges: set[tuple[int, int]], connect_min: int
) -> None:
    spine = [(f"n{i}", f"n{i + 1}") for i in range(9)]
    graph = graph_of([*spine, *((f"n{a}", f"n{b}") for a, b in edges)])
    stays = Stays(connect_s=60.0 * connect_min)
    share = (4 / 3) * stays.connect_s / stays.cycle_s / sum(map(len, graph.values()))
    places = neighbor_places(graph, stays)
    assert places.connected == pytest.approx({name: len(others) * share for name, others in graph.items()}, rel=1e-6)


def test_a_graph_in_pieces_or_with_a_dead_end_has_no_long_run() -> None:
    with pytest.raises(ValueError, match="fall into pieces"):
        neighbor_places(graph_of([("a", "b"), ("c", "d")]), Stays())
    with pytest.raises(ValueError, match="c has no neighbor"):
        neighbor_places({"a": ("b",), "b": ("a",), "c": ()}, Stays())


@pytest.mark.feature("proactive-handoff F41")
def test_populations_are_binomial_and_say_when_their_bounds_apply() -> None:
    fifty = Population(50, random_shares(6, Stays()).broker)
    assert fifty.applicable
    low, high = fifty.mean - 2 * fifty.deviation, fifty.mean + 2 * fifty.deviation
    assert (round(low, 2), round(high, 2)) == (2.37, 12.40)
    b5 = Population(50, published.NEIGHBOR_SHARES["B5"])
    assert round(b5.mean - 2 * b5.deviation, 2) == -0.48
    assert not b5.applicable
    assert not Population(10, 0.147679).applicable


@pytest.mark.feature("proactive-handoff F44")
def test_wakeful_stand_ins_are_fewer_where_neighbors_are_few() -> None:
    graph = six_brokers()
    nbr = active_dummies(neighbor_places(graph, Stays()), graph, 200)
    rnd = active_dummies(random_places(list(graph), Stays()), complete(list(graph)), 200)
    assert min(nbr, key=nbr.__getitem__) == "B5"
    assert sum(nbr.values()) < sum(rnd.values()) == pytest.approx(5 * 200 * (0.025316 + 0.088608), rel=1e-4)


def test_a_round_takes_91_seconds() -> None:
    assert Stays().cycle_s == pytest.approx(91)
    assert Stays(connect_s=150).cycle_s == pytest.approx(211)
    with pytest.raises(ValueError, match="handoff_s 0"):
        Stays(handoff_s=0)
