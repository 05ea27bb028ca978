from __future__ import annotations

import msgspec
import pytest

from godwit.lab.capacity.runs import Configuration, path, run

SMALL = Configuration(seed=1, clients=10, away=0.25, levels=3, events=200, round_events=50)


def test_a_way_through_the_tree_goes_up_to_where_both_meet() -> None:
    assert path(3, 3) == []
    assert sorted(path(3, 4)) == [3, 4]
    assert sorted(path(3, 6)) == [1, 2, 3, 6]
    assert sorted(path(0, 6)) == [2, 6]


def test_nobody_who_stays_costs_anything() -> None:
    still = run(msgspec.structs.replace(SMALL, mobile=0.0))
    assert (still.stored, still.control) == (0, 0)
    assert still.factor == still.factor_busiest == 1.0


def test_who_is_never_away_has_nothing_stored_and_who_is_away_longer_has_more() -> None:
    never, some, long = (run(msgspec.structs.replace(SMALL, away=away)) for away in (0.0, 0.25, 1.0))
    assert never.stored == 0
    assert 0 < some.stored < long.stored
    assert never.control == some.control == long.control
    assert never.carried == some.carried, "where an event is stored it has gone before"


def test_an_event_crosses_no_link_twice_on_its_way_to_everybody() -> None:
    all_want = run(msgspec.structs.replace(SMALL, interest=1.0, mobile=0.0))
    assert all_want.carried == SMALL.events * (SMALL.brokers - 1)


def test_the_same_seed_gives_the_same_run() -> None:
    one, again, other = (msgspec.structs.asdict(run(msgspec.structs.replace(SMALL, seed=seed))) for seed in (1, 1, 2))
    for found in (one, again, other):
        del found["cpu_s"]
    assert one == again
    assert one != other


def test_a_share_beyond_one_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"away 1\.5: a share, from 0 to 1"):
        msgspec.structs.replace(SMALL, away=1.5)
