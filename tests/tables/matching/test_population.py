"""Which things answer a question, as brute force over `Filter.matches` says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.anything import Events, events, wanteds

from godwit.events import Value
from godwit.filters.filters import Filter, FilterSet
from godwit.tables.matching.population import FEW, Population

Values = dict[str, Value]


Truth = dict[int, Values]


def answering(things: Truth, wanted: Filter | FilterSet) -> set[int]:
    return {number for number, values in things.items() if wanted.matches(values)}


@given(
    pool=st.lists(events, min_size=1, max_size=8),
    wanted=st.lists(wanteds, min_size=1, max_size=8),
    seed=st.integers(0, 2**32),
)
def test_things_that_come_change_and_go_are_found_by_what_they_say_now(
    pool: Events, wanted: list[Filter | FilterSet], seed: int
) -> None:
    dice, population, truth = Random(seed), Population(), Truth()
    for _ in range(40):
        number = dice.randrange(6)
        if number in truth and dice.random() < 0.3:
            population.remove(number)
            del truth[number]
        else:
            truth[number] = dice.choice(pool)
            population.put(number, truth[number])
        one = dice.choice(wanted)
        assert set(population.find(one)) == answering(truth, one)


@given(pool=st.lists(events, min_size=4, max_size=20), wanted=st.lists(wanteds, min_size=4, max_size=20))
def test_what_is_found_is_what_matches_and_nothing_comes_twice(pool: Events, wanted: list[Filter | FilterSet]) -> None:
    population = Population()
    for number, values in enumerate(pool):
        population.put(number, values)
    for one in wanted:
        found = population.find(one)
        assert len(found) == len(set(found))
        assert set(found) == {number for number, values in enumerate(pool) if one.matches(values)}


def test_many_things_that_move_are_found_where_they_are() -> None:
    """So many that columns are sorted several times, with changes and departures between."""
    from godwit.filters.text import parse

    dice, population, truth = Random(3), Population(), Truth()
    questions = [
        parse(f"x BETWEEN {low} AND {low + 7} AND y > {high}")
        for low, high in ((dice.uniform(0, 100), dice.uniform(0, 100)) for _ in range(20))
    ]
    questions += [parse("within(lat, lon, 10, 20, 200km)"), parse("kind = 'van' AND x < 3"), parse("x <> 5")]
    for step in range(5 * FEW):
        number = dice.randrange(2 * FEW)
        if number in truth and dice.random() < 0.2:
            population.remove(number)
            del truth[number]
        else:
            truth[number] = {
                "x": dice.choice((dice.uniform(0, 100), dice.randrange(10), "none")),
                "y": dice.uniform(0, 100),
                "kind": dice.choice(("van", "bus")),
                "lat": dice.uniform(5, 15),
                "lon": dice.choice((dice.uniform(15, 25), dice.uniform(190, 350))),
            }
            population.put(number, truth[number])
        if step % 500 == 0:
            for one in questions:
                assert set(population.find(one)) == answering(truth, one)
    assert len(population) == len(truth)
    assert set(population) == set(truth)


def test_things_that_crowd_together_drift_away_and_vanish_are_found_by_their_numbers() -> None:
    """Columns are divided anew again and again; many numbers are equal, and some are no numbers. Against numpy."""
    from godwit.filters.text import parse

    dice, population = np.random.default_rng(5), Population()
    count, places = 12_000, np.full((12_000, 2), np.nan)
    for step in range(6):
        moved = dice.permutation(count)[: count // 2 if step else count]
        places[moved] = dice.normal(100 * step, 30, (len(moved), 2))
        crowd = moved[: len(moved) // 4]
        places[crowd, 0] = 100.0 * step
        places[moved[-50:]] = np.nan, np.inf
        for thing in moved.tolist():
            x, y = places[thing].tolist()
            population.put(thing, {"y": y} if np.isnan(x) else {"x": x, "y": y})
        gone = moved[::7]
        for thing in gone.tolist():
            population.remove(thing)
        places[gone] = np.nan
        x, y = places.T
        for low in (*dice.uniform(-50, 600, 20).tolist(), 100.0 * step):
            found = population.find(parse(f"x >= {low} AND x < {low + 20} AND y > {low}"))
            assert sorted(found) == np.flatnonzero((x >= low) & (x < low + 20) & (y > low)).tolist()
            assert sorted(population.find(parse(f"x = {low}"))) == np.flatnonzero(x == low).tolist()


def test_what_is_not_there_is_an_error() -> None:
    population = Population()
    population.put(1, {"x": 1})
    with pytest.raises(KeyError):
        population.remove(2)
    with pytest.raises(KeyError):
        population.values(2)
    assert list(population) == [1]
