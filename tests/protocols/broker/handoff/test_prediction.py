from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.broker.taxis import first_day, sites, trails

from godwit.protocols.broker.handoff.prediction import HABITS, RETURN_WEIGHT, TABLE, Learned, Neighbors
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.neighbors.graph import GraphOptions, NeighborGraph
from godwit.protocols.neighbors.nearness import closeness

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """A broker's neighbors, its disk and its clock. Everything is on the disk at once."""

    def __init__(self, options: GraphOptions = HABITS, **changed: Any) -> None:
        self.options = msgspec.structs.replace(options, **changed)
        self.disk: Disk = {}
        self.clock = Clock()
        self.gone: set[str] = set()
        self.neighbors = self.started()

    def started(self) -> Neighbors:
        store = MemoryStore(self.disk, _at_once)
        self.neighbors = Neighbors("own", store, self.clock, self.options, lambda peer: peer not in self.gone)
        return self.neighbors

    def leave(self, *names: str, before: str = "") -> None:
        for name in names:
            self.neighbors.went(name, self.neighbors.likely(before), before)


def _at_once(call: Callable[[], None]) -> None:
    call()


def test_while_nothing_is_known_nobody_is_likely() -> None:
    desk = Desk()
    assert desk.neighbors.likely() == ()
    assert desk.neighbors.known() == []
    assert desk.neighbors.accuracy().hit_rate == 0


@pytest.mark.feature("proactive-handoff F8")
def test_both_who_leaves_and_who_comes_teach() -> None:
    desk = Desk()
    desk.leave("east")
    desk.neighbors.came("west")
    assert desk.neighbors.likely() == ("east", "west")


def test_where_clients_went_to_weighs_more_than_where_they_came_from() -> None:
    desk = Desk()
    for _ in range(3):
        desk.neighbors.came("behind")
    desk.leave("ahead")
    assert desk.neighbors.likely()[0] == "ahead"
    shares = {one.peer: one.share for one in desk.neighbors.known()}
    assert shares["behind"] == pytest.approx(3 * RETURN_WEIGHT / (1 + 3 * RETURN_WEIGHT))


@pytest.mark.feature("proactive-handoff F11")
def test_the_rare_ways_get_no_copies() -> None:
    desk = Desk(mass=0.95)
    desk.leave(*("a",) * 80, *("b",) * 16, *("c",) * 4)
    assert desk.neighbors.likely() == ("a", "b")
    assert [one.copied for one in desk.neighbors.known()] == [True, True, False]


@pytest.mark.feature("proactive-handoff F11")
def test_no_more_neighbors_than_allowed_get_copies() -> None:
    desk = Desk(degree_max=2)
    desk.leave("a", "b", "c", "d", "d")
    assert desk.neighbors.likely() == ("d", "a")


@pytest.mark.feature("proactive-handoff F11")
@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=200), st.floats(0.05, 1.0))
def test_the_chosen_make_up_the_mass_and_none_of_them_could_be_spared(moves: list[str], mass: float) -> None:
    desk = Desk(mass=mass, degree_max=0)
    desk.leave(*moves)
    shares = {name: moves.count(name) / len(moves) for name in set(moves)}
    chosen = desk.neighbors.likely()
    assert sum(shares[name] for name in chosen) >= mass - 1e-9
    assert sum(shares[name] for name in chosen[:-1]) < mass
    assert min(shares[name] for name in chosen) >= max((shares[name] for name in shares.keys() - chosen), default=0)


def test_old_habits_fade() -> None:
    desk = Desk(half_life_s=DAY_S)
    desk.leave(*("school",) * 8)
    desk.clock.now += 3 * DAY_S
    desk.leave("beach", "beach")
    assert desk.neighbors.likely()[0] == "beach"
    assert [one.share for one in desk.neighbors.known()] == pytest.approx([2 / 3, 1 / 3])


def test_time_alone_changes_no_share() -> None:
    desk = Desk()
    desk.leave("a", "a", "b")
    before = {one.peer: one.share for one in desk.neighbors.known()}
    desk.clock.now += 5 * DAY_S
    assert {one.peer: one.share for one in desk.neighbors.known()} == before


@pytest.mark.feature("proactive-handoff F9")
def test_an_unused_neighbor_is_forgotten_on_the_disk_too() -> None:
    desk = Desk(edge_timeout_s=DAY_S)
    desk.leave("old")
    desk.clock.now += DAY_S - 1
    assert desk.neighbors.likely() == ("old",)
    desk.leave("new")
    desk.clock.now += 1
    assert desk.neighbors.likely() == ("new",)
    assert [one.peer for one in desk.started().known()] == ["new"]


def test_only_brokers_that_are_there_get_copies_and_they_make_up_the_mass() -> None:
    desk = Desk(mass=0.95)
    desk.leave(*("gone",) * 97, "a", "b", "a")
    assert desk.neighbors.likely() == ("gone",)
    desk.gone.add("gone")
    assert desk.neighbors.likely() == ("a", "b")
    assert [one.copied for one in desk.neighbors.known()] == [False, True, True]
    desk.gone.clear()
    assert desk.neighbors.likely() == ("gone",)


def test_what_was_learned_outlives_a_restart() -> None:
    desk = Desk()
    desk.leave("a", "b", "a")
    desk.neighbors.came("c")
    before = desk.neighbors.known()
    assert desk.started().known() == before


def test_a_clock_that_was_ahead_does_not_stop_time_for_ever() -> None:
    desk = Desk(half_life_s=HOUR_S)
    desk.clock.now += 1000 * DAY_S
    desk.leave("wrong", "wrong", "wrong")
    desk.clock.now -= 1000 * DAY_S
    desk.started()
    desk.clock.now += 2 * HOUR_S
    desk.leave("right")
    assert desk.neighbors.likely()[0] == "right"


def test_a_clock_that_goes_back_does_no_harm() -> None:
    desk = Desk()
    desk.leave("a")
    desk.clock.now -= HOUR_S
    desk.leave("b", "b")
    assert desk.neighbors.likely() == ("b", "a")


@pytest.mark.feature("proactive-handoff F10")
def test_hits_misses_and_copies_for_nothing_are_counted() -> None:
    desk = Desk(mass=1.0)
    desk.leave("a", "b", "a", "a")
    assert msgspec.structs.asdict(desk.neighbors.totals) == {"hits": 2, "misses": 2, "unused": 3}
    seen = desk.neighbors.accuracy()
    assert (seen.handoffs, seen.hit_rate, seen.copies) == (4, 0.5, 5 / 4)
    assert seen.false_negatives == 0.5


@pytest.mark.feature("proactive-handoff F10")
def test_accuracy_is_of_the_last_hour_and_totals_of_all_time() -> None:
    desk = Desk(window_s=HOUR_S)
    desk.leave("a")
    desk.clock.now += HOUR_S / 2
    desk.leave("a")
    assert desk.neighbors.accuracy().hit_rate == 0.5
    desk.clock.now += HOUR_S * 3 / 4
    assert desk.neighbors.accuracy().hit_rate == 1.0
    desk.clock.now += HOUR_S
    assert desk.neighbors.accuracy().handoffs == 0
    assert desk.neighbors.totals.misses == 1


@pytest.mark.feature("proactive-handoff F10")
def test_an_edge_that_only_waited_for_its_removal_is_a_false_positive() -> None:
    desk = Desk(edge_timeout_s=100, window_s=1000)
    desk.leave("once")
    desk.clock.now += 100
    desk.neighbors.likely()
    assert desk.neighbors.accuracy().false_positives == 1.0


def test_what_others_learned_replaces_what_was_known() -> None:
    desk = Desk()
    desk.leave("mine")
    desk.neighbors.take(
        [Learned(peer="a", weight=3, uses=3), Learned(peer="b", weight=1), Learned(peer="own", weight=9)]
    )
    assert [(one.peer, one.share) for one in desk.neighbors.known()] == [("a", 0.75), ("b", 0.25)]
    assert [one.peer for one in desk.started().known()] == ["a", "b"]


def test_an_old_trace_is_meant_to_hold_today() -> None:
    desk = Desk(half_life_s=DAY_S)
    years_ago = 1_211_958_000.0
    desk.neighbors.take(
        [
            Learned(peer="a", weight=4, last_used=years_ago - DAY_S),
            Learned(peer="b", weight=3, last_used=years_ago),
            Learned(peer="c", weight=9, last_used=years_ago - 30 * DAY_S),
        ]
    )
    assert [one.peer for one in desk.neighbors.known()] == ["b", "a"]
    assert [one.share for one in desk.neighbors.known()] == pytest.approx([3 / 5, 2 / 5])


def test_what_one_broker_has_learned_another_goes_on_with() -> None:
    desk, other = Desk(), Desk()
    desk.leave("a", "a", "b")
    desk.clock.now += DAY_S
    desk.leave("b")
    other.clock.now += 9 * DAY_S
    known = desk.neighbors.known()
    other.neighbors.take(Learned(peer=one.peer, weight=one.weight, last_used=one.last_used) for one in known)
    assert [(one.peer, one.share) for one in other.neighbors.known()] == [(one.peer, one.share) for one in known]


def test_what_was_given_is_learned_on() -> None:
    desk = Desk()
    desk.neighbors.take([Learned(peer="a", weight=3)])
    desk.leave(*("b",) * 4)
    assert desk.neighbors.likely() == ("b", "a")


def test_a_session_that_comes_back_from_here_teaches_nothing() -> None:
    desk = Desk()
    desk.neighbors.came("own")
    assert desk.neighbors.likely() == ()


def crossroads(**changed: Any) -> Desk:
    """Everybody goes on in the direction in which they came, but for those who set out from here."""
    desk = Desk(**changed)
    for _ in range(50):
        desk.leave("east", before="west")
        desk.leave("west", before="east")
        desk.leave("south")
    return desk


@pytest.mark.feature("proactive-handoff F11")
def test_copies_go_where_those_went_who_came_from_the_same_broker() -> None:
    desk = crossroads(mass=0.9)
    assert desk.neighbors.likely("west") == ("east",)
    assert desk.neighbors.likely("east") == ("west",)
    assert desk.neighbors.likely() == ("south",)


@pytest.mark.feature("proactive-handoff F11")
def test_of_somebody_from_where_nobody_came_all_moves_tell() -> None:
    assert set(crossroads(mass=0.9).neighbors.likely("north")) == {"east", "west", "south"}


def test_without_foresight_use_alone_decides() -> None:
    desk = crossroads(mass=0.9, foresight=False)
    assert desk.neighbors.likely("west") == desk.neighbors.likely() == ("east", "south", "west")


def test_where_clients_came_from_outlives_a_restart() -> None:
    desk = crossroads(mass=0.9)
    desk.clock.now += HOUR_S
    before = {one.peer: one.before for one in desk.neighbors.known()}
    assert {one.peer: one.before for one in desk.started().known()} == before
    assert desk.neighbors.likely("west") == ("east",)


def test_near_brokers_are_likely_while_nobody_has_gone_anywhere_and_less_so_later() -> None:
    desk = Desk(mass=0.9, closeness={"near": 1.0, "nearer": 2.0, "far": 0.01})
    assert desk.neighbors.likely() == ("nearer", "near")
    desk.gone.add("nearer")
    assert desk.neighbors.likely() == ("near",)
    desk.leave(*("far",) * 40)
    assert desk.neighbors.likely() == ("far",)


def test_paths_fade_as_moves_do() -> None:
    desk = Desk(mass=0.9, half_life_s=DAY_S, edge_timeout_s=100 * DAY_S)
    desk.leave(*("school",) * 64, before="home")
    desk.clock.now += 10 * DAY_S
    desk.leave(*("beach",) * 8, before="home")
    assert desk.neighbors.likely("home") == ("beach",)


def test_a_forgotten_neighbor_is_forgotten_as_the_end_of_a_path_too() -> None:
    desk = crossroads(edge_timeout_s=DAY_S, mass=0.9)
    desk.clock.now += DAY_S / 2
    desk.leave("west", before="east")
    desk.clock.now += DAY_S / 2
    assert desk.neighbors.likely("west") == ("west",)
    assert [[one.peer for one in path.onward] for path in desk.neighbors.foreseen()] == [["west"]]


@pytest.mark.feature("proactive-handoff F10")
def test_what_is_foreseen_can_be_looked_at() -> None:
    desk = crossroads(mass=0.9)
    paths = {path.before: path for path in desk.neighbors.foreseen()}
    assert {before: path.share for before, path in paths.items()} == pytest.approx(
        dict.fromkeys(("own", "east", "west"), 1 / 3)
    )
    assert [(one.peer, one.copied) for one in paths["west"].onward] == [
        ("east", True),
        ("south", False),
        ("west", False),
    ]
    assert {one.peer: one.copied_share for one in desk.neighbors.known()} == pytest.approx(
        dict.fromkeys(("south", "east", "west"), 1 / 3)
    )


def test_paths_are_taken_along_to_another_broker() -> None:
    desk, other = crossroads(mass=0.9), Desk(mass=0.9)
    desk.clock.now += HOUR_S
    desk.neighbors.came("east")
    other.neighbors.take(
        Learned(peer=one.peer, weight=one.weight, last_used=one.last_used, before=one.before)
        for one in desk.neighbors.known()
    )
    assert other.neighbors.likely("west") == ("east",)
    assert [path.before for path in other.neighbors.foreseen()] == [path.before for path in desk.neighbors.foreseen()]


def test_what_a_disk_says_that_knows_no_paths_is_taken_for_what_it_says() -> None:
    desk = Desk(mass=0.9)
    desk.disk[TABLE] = {("a", 0): msgspec.msgpack.encode((9, 9.0, desk.clock.now, desk.clock.now))}
    desk.started()
    assert desk.neighbors.likely("anywhere") == ("a",)
    desk.leave("b", before="west")
    assert desk.started().likely("west")[:2] == ("a", "b")


def test_paths_that_lie_weigh_no_more_than_the_way_that_they_are_of() -> None:
    desk = Desk(mass=0.9)
    desk.neighbors.take(
        [Learned(peer="a", weight=1.0, before={"west": 1e15, "x": -3.0}), Learned(peer="b", weight=99.0)]
    )
    assert desk.neighbors.likely("west")[0] == "b"
    assert desk.neighbors.known()[1].before == {"west": pytest.approx(1.0)}


def test_however_many_places_clients_claim_to_come_from_few_are_remembered_and_those_that_count() -> None:
    desk = crossroads(mass=0.9)
    for at in range(1_000):
        desk.neighbors.went("east", (), f"nonsense {at}")
    desk.neighbors.went("east", (), "x" * 1_000_000)
    assert desk.started().likely("east") == ("west",)
    assert desk.neighbors.likely("west") == ("east",)
    assert sum(len(one.before) for one in desk.neighbors.known()) < 80
    assert sum(len(row) for row in desk.disk[TABLE].values()) < 4_000


BROKERS = ("own", "a", "b", "c", "d", "e")


@pytest.mark.feature("proactive-handoff F11")
@given(
    st.lists(st.tuples(st.sampled_from(("", *BROKERS)), st.sampled_from(BROKERS[1:])), max_size=120),
    st.dictionaries(st.sampled_from(BROKERS[1:]), st.floats(0.01, 1.0)),
    st.floats(0.3, 1.0),
    st.integers(0, 4),
)
def test_the_deployed_choice_is_that_of_the_simulated_scheme(
    moves: list[tuple[str, str]], near: dict[str, float], mass: float, degree_max: int
) -> None:
    options = GraphOptions(
        edge_timeout_s=inf, directed=True, foresight=True, mass=mass, degree_max=degree_max, closeness=near
    )
    desk, graph = Desk(options), NeighborGraph("own", options)
    for to in near:
        graph.touch(to, 0.0, left=True, weight=0.0)
    for before, to in moves:
        before = before or "own"
        if graph.edges and (mass < 1 or degree_max):
            assert list(desk.neighbors.likely(before)) == graph.targets(before)
        graph.touch(to, desk.clock.now, left=True)
        graph.learn(before, to)
        desk.neighbors.came(before)
        desk.neighbors.went(to, (), before)


@cache
def next_day(mass: float, *, foresight: bool = True, near: bool = False) -> tuple[float, float]:
    """How many of the next day's moves found a copy, and how many copies each needed."""
    found = copies = moves = 0
    options = msgspec.structs.replace(HABITS, mass=mass, degree_max=0, foresight=foresight)
    for here, learned in first_day().items():
        desk = Desk(options, closeness=closeness(here, sites()) if near else {})
        desk.neighbors.take(learned)
        likely_of = cache(desk.neighbors.likely)
        for one in (trail for trail in trails() if trail.here == here and trail.measured):
            likely = likely_of(one.before)
            moves += one.measured
            found += one.measured * (one.to in likely)
            copies += one.measured * len(likely)
    return found / moves, copies / moves


@pytest.mark.feature("proactive-handoff F11")
def test_taxis_find_as_many_copies_as_at_all_neighbors_with_a_third_fewer() -> None:
    everywhere, used, foreseen = next_day(1.0, foresight=False), next_day(0.999, foresight=False), next_day(0.999)
    nearby = next_day(0.999, near=True)
    assert everywhere[0] - nearby[0] < 0.001
    assert nearby[1] < 0.6 * everywhere[1]
    assert foreseen[1] < 0.65 * used[1]
    assert used[0] - foreseen[0] < 0.001


@pytest.mark.feature("proactive-handoff F11")
@pytest.mark.parametrize("mass", [0.8, 0.9, 0.95, 0.98, 0.99])
def test_taxis_find_more_with_fewer_copies_than_by_use_alone(mass: float) -> None:
    used, foreseen = next_day(mass, foresight=False), next_day(mass)
    assert foreseen[0] > used[0]
    assert foreseen[1] < 0.9 * used[1]
