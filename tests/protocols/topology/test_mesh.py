"""The links that brokers keep by themselves: few, and enough whoever dies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.protocols.topology.mesh import (
    LINKS_LEAST,
    LINKS_MAX,
    NEAR,
    NEEDED,
    Wanted,
    clockwise,
    excess,
    has_room,
    lot,
    near,
)

ROUNDS_MAX = 80


class Member:
    """One broker: what it knows, and its links, each with whether the one that dialled needed it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.known: set[str] = set()
        self.up: dict[str, bool] = {}
        self.lent: set[str] = set()
        self.away: set[str] = set()


class Town:
    """Brokers that do what `net.peers.dialler` does, one after the other, with nothing but the rules shared."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.members: dict[str, Member] = {}
        self.changes = 0

    def living(self) -> list[Member]:
        return [one for one in self.members.values() if one.alive]

    def join(self, name: str) -> None:
        """Somebody who lives is configured."""
        member = self.members[name] = Member(name)
        others = [one for one in self.living() if one is not member]
        if others:
            member.known.add(self.dice.choice(others).name)
            self.review(member)

    def crash(self, name: str) -> None:
        member = self.members[name]
        member.alive = False
        for peer in list(member.up):
            self.part(member, self.members[peer])
        member.away.clear()

    def restart(self, name: str) -> None:
        self.members[name].alive = True

    def review(self, member: Member) -> None:
        wanted = Wanted(member.name, member.known, member.up, member.away, member.lent)
        for peer in (*wanted.surplus(), *excess(member.name, member.up)):
            if peer in member.up:
                self.part(member, self.members[peer])
        for peer in wanted.missing():
            if peer not in member.up:
                self.dial(member, self.members[peer])

    def dial(self, one: Member, other: Member) -> None:
        needed = len(one.up) < NEEDED
        if not other.alive:
            one.away.add(other.name)
            return
        if needed or has_room(other.name, other.up.keys(), one.name):
            self.changes += 1
            one.up[other.name] = other.up[one.name] = needed
            one.away.discard(other.name)
            if needed:
                one.lent.add(other.name)
        else:
            one.away.add(other.name)
        self.learn(one, other.known)
        if other.name in one.up:
            self.learn(other, one.known | {one.name})
            for peer in excess(other.name, other.up):
                self.part(other, self.members[peer])
                self.members[peer].away.add(other.name)

    def learn(self, member: Member, names: Iterable[str]) -> None:
        news = set(names) - member.known - {member.name}
        if news:
            member.known |= news
            for peer in list(member.up):
                self.learn(self.members[peer], news)

    def part(self, one: Member, other: Member) -> None:
        self.changes += 1
        del one.up[other.name], other.up[one.name]
        one.lent.discard(other.name)
        other.lent.discard(one.name)

    def rest(self) -> None:
        """Until nobody does anything any more, though nobody is taken for away for ever."""
        for _ in range(ROUNDS_MAX):
            before = self.changes
            living = self.living()
            self.dice.shuffle(living)
            for member in living:
                member.away.clear()
                for _ in range(4):
                    self.review(member)
            if self.changes == before:
                return
        pytest.fail(f"links still come and go after {ROUNDS_MAX} rounds")

    def graph(self) -> dict[str, Set[str]]:
        return {one.name: one.up.keys() for one in self.living()}


def reached(graph: Mapping[str, Set[str]], without: str = "") -> set[str]:
    """Whoever is connected with the first of those that are left."""
    left = [name for name in graph if name != without]
    found = set(left[:1])
    edge = list(found)
    while edge:
        more = graph[edge.pop()] - found - {without}
        found |= more
        edge += more
    return found


def assert_sound(graph: Mapping[str, Set[str]]) -> None:
    everybody = set(graph)
    assert reached(graph) == everybody
    for name in graph:
        assert reached(graph, without=name) == everybody - {name}, f"all hangs on {name}"
    assert all(len(links) <= LINKS_MAX for links in graph.values())
    assert all(len(links) >= min(LINKS_LEAST, len(graph) - 1) - NEAR for links in graph.values())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(min_value=0, max_value=2**32),
    st.integers(min_value=1, max_value=70),
    st.lists(st.sampled_from(["crash", "restart", "join", "review", "rest"]), max_size=60),
)
def test_whoever_joins_or_crashes_the_living_stay_linked_and_no_single_one_of_them_is_missed(
    seed: int, size: int, moves: list[str]
) -> None:
    town = Town(seed)
    for number in range(size):
        town.join(f"b{number}-{seed}")
    for number, move in enumerate(moves):
        living = town.living()
        dead = [one for one in town.members.values() if not one.alive]
        if move == "join" and living:
            town.join(f"n{number}-{seed}")
        elif move == "crash" and len(living) > 1:
            town.crash(town.dice.choice(living).name)
        elif move == "restart" and dead:
            town.restart(town.dice.choice(dead).name)
        elif move == "rest":
            town.rest()
        else:
            town.review(town.dice.choice(living))
    for one in town.members.values():
        if not one.alive and town.dice.random() < 0.5:
            town.restart(one.name)
    town.rest()
    assert_sound(town.graph())


@pytest.mark.parametrize("size", [17, 64, 128])
def test_all_start_from_one_seed_and_leave_it_in_peace(size: int) -> None:
    town = Town(size)
    town.join("seed")
    for number in range(size - 1):
        member = town.members[f"b{number}"] = Member(f"b{number}")
        member.known.add("seed")
    town.rest()
    graph = town.graph()
    assert_sound(graph)
    assert max(depth(graph, name) for name in graph) <= (3 if size < 128 else 4)


def depth(graph: Mapping[str, Set[str]], root: str) -> int:
    seen, edge, hops = {root}, {root}, 0
    while edge := set().union(*(graph[name] for name in edge)) - seen:
        seen |= edge
        hops += 1
    return hops


def test_half_of_all_may_die_at_once_and_the_rest_finds_itself_again() -> None:
    town = Town(5)
    for number in range(60):
        town.join(f"b{number}")
    town.rest()
    for one in town.dice.sample(sorted(town.members), 30):
        town.crash(one)
    town.rest()
    assert_sound(town.graph())


def test_few_brokers_are_all_linked_with_all() -> None:
    town = Town(1)
    for number in range(LINKS_LEAST + 1):
        town.join(f"b{number}")
    town.rest()
    assert all(len(links) == LINKS_LEAST for links in town.graph().values())


def test_a_join_leaves_most_links_as_they_were() -> None:
    town = Town(2)
    for number in range(64):
        town.join(f"b{number}")
    town.rest()
    before = {(a, b) for a, links in town.graph().items() for b in links}
    town.join("new")
    town.rest()
    after = {(a, b) for a, links in town.graph().items() for b in links}
    assert len(before - after) <= 2 * LINKS_MAX


def test_near_is_mutual_whatever_the_set() -> None:
    names = [f"b{number}" for number in range(40)]
    around = {name: near(name, [one for one in names if one != name]) for name in names}
    assert all(name in around[other] for name, others in around.items() for other in others)
    assert all(len(others) == 2 * NEAR for others in around.values())


def test_those_that_are_away_are_passed_over_and_dialled_all_the_same() -> None:
    names = [f"b{number}" for number in range(40)]
    order = clockwise("me", names)
    wanted = Wanted("me", names, (), away={order[0], order[2]})
    assert {*order[:4], *order[-2:]} == wanted.near
    assert {order[0], order[2]} <= set(wanted.missing())


def test_a_pair_has_one_lot() -> None:
    assert lot("a", "b") == lot("b", "a") != lot("a", "c")


def test_needed_and_near_links_are_never_too_much() -> None:
    names = [f"b{number}" for number in range(30)]
    all_needed = dict.fromkeys(names, True)
    assert excess("me", all_needed) == []
    ended = excess("me", dict.fromkeys(names, False))
    assert len(ended) == len(names) - LINKS_MAX
    assert near("me", names).isdisjoint(ended)


def test_who_is_near_finds_room_and_who_is_not_does_not() -> None:
    names = [f"b{number}" for number in range(40)]
    order = clockwise("me", names)
    full = set(order[10:30])
    assert has_room("me", full, order[0])
    assert not has_room("me", full | {*order[:4], *order[-4:]}, order[5])
