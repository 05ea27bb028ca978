"""Generated workloads have the published shape, and a seed decides all of them."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.filters.filters import TYPE_ATTRIBUTE, Filter
from godwit.filters.predicates import Hole, Interval
from godwit.lab.workloads import Predicates, Script, Workload, draw, interface_name
from godwit.sim.streams import Streams

pytestmark = pytest.mark.feature("content-routing F45")

PLAIN = Workload(filters=60, attributes_min=2, attributes_max=2, names=2, replacements=20, events=15)


def drawn(workload: Workload, seed: int = 1) -> Script:
    return draw(workload, Streams(seed))


def constraints(wanted: Filter) -> dict[str, object]:
    return {own.name: own.clause[0] for own in wanted if own.name != TYPE_ATTRIBUTE}


@st.composite
def workloads(draw_one: st.DrawFn) -> Workload:
    names = draw_one(st.integers(1, 4))
    most = draw_one(st.integers(1, names))
    return Workload(
        filters=draw_one(st.integers(1, 40)),
        attributes_min=draw_one(st.integers(1, most)),
        attributes_max=most,
        names=names,
        predicates=draw_one(st.sampled_from(Predicates)),
        schemas=draw_one(st.integers(1, 3)),
        value_max=draw_one(st.integers(0, 100)),
        interfaces=draw_one(st.none() | st.integers(1, 50)),
        replacements=draw_one(st.integers(0, 20)),
        events=draw_one(st.integers(0, 20)),
    )


@given(workloads(), st.integers())
def test_the_seed_decides_everything(workload: Workload, seed: int) -> None:
    assert drawn(workload, seed) == drawn(workload, seed)


def test_another_seed_draws_other_filters() -> None:
    assert drawn(PLAIN, 1).subscriptions != drawn(PLAIN, 2).subscriptions


@given(workloads(), st.integers(0, 9))
def test_filters_have_the_size_schema_names_and_values_asked_for(workload: Workload, seed: int) -> None:
    script = drawn(workload, seed)
    wishes = [one.wanted for one in script.subscriptions] + [one.wanted for one in script.replacements]
    for wanted in wishes:
        assert wanted.type in {f"schema{number}" for number in range(workload.schemas)}
        found = constraints(wanted)
        assert workload.attributes_min <= len(found) <= workload.attributes_max
        assert set(found) <= {f"a{number}" for number in range(workload.names)}


@given(workloads(), st.integers(0, 9))
def test_events_follow_a_schema_and_carry_every_attribute(workload: Workload, seed: int) -> None:
    script = drawn(workload, seed)
    assert len(script.events) == workload.events
    for event in script.events:
        assert set(event) == {"type", *(f"a{number}" for number in range(workload.names))}
        assert all(0 <= value <= workload.value_max for value in event.values() if isinstance(value, int))


@given(workloads(), st.integers(0, 9))
def test_interfaces_take_turns_and_replacements_stay_where_they_were(workload: Workload, seed: int) -> None:
    script = drawn(workload, seed)
    count = workload.interfaces or workload.filters
    assert [one.interface for one in script.subscriptions] == [
        interface_name(number % count) for number in range(workload.filters)
    ]
    assert len(script.replacements) == workload.replacements
    assert all(0 <= one.place < workload.filters for one in script.replacements)


@given(workloads(), st.integers(0, 9), st.integers(0, 20))
def test_a_longer_drawing_begins_with_the_shorter_one(workload: Workload, seed: int, more: int) -> None:
    short = drawn(workload, seed)
    longer = drawn(msgspec.structs.replace(workload, filters=workload.filters + more), seed)
    assert [one.wanted for one in longer.subscriptions][: workload.filters] == [
        one.wanted for one in short.subscriptions
    ]
    assert longer.events == short.events


def test_ranges_have_two_uniform_ends() -> None:
    script = drawn(msgspec.structs.replace(PLAIN, filters=2000))
    lows, highs = [], []
    for one in script.subscriptions:
        for clause in constraints(one.wanted).values():
            assert isinstance(clause, Interval)
            assert 0 <= clause.lo[0] <= clause.hi[0] <= 100
            lows.append(clause.lo[0])
            highs.append(clause.hi[0])
    # The smaller of two uniform draws is a third of the way up on average, the larger two thirds.
    assert sum(lows) / len(lows) == pytest.approx(100 / 3, rel=0.05)
    assert sum(highs) / len(highs) == pytest.approx(200 / 3, rel=0.05)


def test_mixed_predicates_take_each_of_the_seven_operators_as_often() -> None:
    workload = msgspec.structs.replace(PLAIN, filters=3500, predicates=Predicates.MIXED)
    shapes: Counter[str] = Counter()
    for one in drawn(workload).subscriptions:
        shapes.update(shape(clause) for clause in constraints(one.wanted).values())
    # 7000 constraints: 1000 of each operator, "half" being <, >, <= and >= together; a range of one value is a point.
    assert shapes["hole"] == pytest.approx(1000, rel=0.1)
    assert shapes["half"] == pytest.approx(4000, rel=0.1)
    assert shapes["range"] + shapes["point"] == pytest.approx(2000, rel=0.1)


def shape(clause: object) -> str:
    if isinstance(clause, Hole):
        return "hole"
    assert isinstance(clause, Interval)
    ends = [abs(end[0]) != float("inf") for end in (clause.lo, clause.hi)]
    if not all(ends):
        return "half"
    return "point" if clause.lo[0] == clause.hi[0] else "range"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"attributes_max": 3}, "no more than there are names"),
        ({"attributes_min": 0}, "at least one"),
        ({"interfaces": 0}, "at least one schema and one interface"),
        ({"schemas": 0}, "at least one schema and one interface"),
        ({"events": -1}, "no number below zero"),
        ({"filters": 0}, "nothing can be replaced"),
    ],
)
def test_a_workload_that_cannot_be_is_refused(changed: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        msgspec.structs.replace(PLAIN, **changed)
