"""Atomic updates between routers: single steps, hierarchies, and whole networks against flooding."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import Sender, uncovered
from tests.tables.histories import entries
from tests.worlds import SMALL, Labelled, LabelledSets, labelled_sets

from godwit.tables.forests.forest import PF, Forest
from godwit.tables.forests.forwarder import Forwarder
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.matching.naive import Naive
from godwit.tables.merging.merging import Update
from godwit.tables.table import Forwarding, Interface, drop

Wanted = Labelled
Make = Callable[[Iterable[Interface]], Forwarding[Wanted, int]]


def poset(neighbors: Iterable[Interface]) -> Forwarding[Wanted, int]:
    return RoutingPoset(LabelledSets(), neighbors=neighbors)


def exact_forest(neighbors: Iterable[Interface]) -> Forwarding[Wanted, int]:
    return RoutingForest(LabelledSets(), neighbors=neighbors)


def approximate_forest(neighbors: Iterable[Interface]) -> Forwarding[Wanted, int]:
    return RoutingForest(LabelledSets(), neighbors=neighbors, approximate=True)


def span(low: int, high: int) -> Labelled:
    return "", frozenset(range(low, high + 1))


every_table = pytest.mark.parametrize("make", [poset, exact_forest, approximate_forest])


@every_table
@pytest.mark.feature("content-routing F10")
def test_withdrawal_and_what_it_uncovers_travel_in_one_update(make: Make) -> None:
    forwarder = Forwarder(make(["a", "b", "c"]))
    forwarder.subscribe(span(0, 5), "a")
    assert forwarder.subscribe(span(0, 3), "b") == {"a": Update((), (span(0, 3),))}
    assert forwarder.subscribe(span(0, 2), "c") == {}
    assert forwarder.unsubscribe(span(0, 5), "a") == {
        "b": Update((span(0, 5),), (span(0, 2),)),
        "c": Update((span(0, 5),), (span(0, 3),)),
    }


@every_table
@pytest.mark.feature("content-routing F10")
def test_what_an_update_covers_again_is_not_told(make: Make) -> None:
    """The source withdraws a filter and says what that uncovers; b's filter stays hidden all the while."""
    forwarder = Forwarder(make(["a", "b", "c"]))
    forwarder.subscribe(span(0, 5), "a")
    forwarder.subscribe(span(0, 2), "b")
    assert forwarder.apply(Update((span(0, 5),), (span(0, 3),)), "a") == {
        "b": Update((span(0, 5),), (span(0, 3),)),
        "c": Update((span(0, 5),), (span(0, 3),)),
    }


@pytest.mark.feature("content-routing F10")
def test_what_one_withdrawal_uncovers_and_the_next_takes_back_is_not_told() -> None:
    """Only a table that keeps redundant filters can come to that."""
    forwarder = Forwarder(Naive(LabelledSets(), neighbors=["a", "b"]))
    forwarder.subscribe(span(0, 5), "a")
    forwarder.subscribe(span(0, 3), "a")
    assert forwarder.apply(Update((span(0, 5), span(0, 3))), "a") == {"b": Update((span(0, 5), span(0, 3)), ())}


@every_table
@pytest.mark.feature("content-routing F10")
def test_what_changes_nothing_is_told_to_nobody(make: Make) -> None:
    forwarder = Forwarder(make(["a", "b"]))
    forwarder.subscribe(span(0, 5), "a")
    assert forwarder.subscribe(span(0, 5), "a") == {}
    assert forwarder.subscribe(span(1, 2), "a") == {}
    assert forwarder.unsubscribe(span(1, 2), "a") == {}


@every_table
@pytest.mark.feature("content-routing F15")
def test_a_neighbor_that_is_gone_is_forgotten_in_one_update(make: Make) -> None:
    forwarder = Forwarder(make(["a", "b", "c"]))
    forwarder.subscribe(span(0, 3), "a")
    forwarder.subscribe(span(5, 7), "a")
    forwarder.subscribe(span(5, 6), "b")
    assert forwarder.drop("a") == {
        "b": Update((span(0, 3), span(5, 7)), ()),
        "c": Update((span(0, 3), span(5, 7)), (span(5, 6),)),
    }
    assert entries(forwarder.table) == [(span(5, 6), "b")]


@every_table
@pytest.mark.feature("content-routing F15")
def test_a_hierarchical_router_tells_its_master_about_roots_only(make: Make) -> None:
    """Spec 2.7.1, with slaves s, t and a client."""
    forwarder = Forwarder(make(["master"]))
    assert forwarder.subscribe(span(0, 5), "s") == {"master": Update((), (span(0, 5),))}
    assert forwarder.subscribe(span(1, 2), "t") == {}
    assert forwarder.subscribe(span(4, 6), "client") == {"master": Update((), (span(4, 6),))}
    assert forwarder.unsubscribe(span(0, 5), "s") == {"master": Update((span(0, 5),), (span(1, 2),))}
    assert forwarder.unsubscribe(span(1, 2), "t") == {"master": Update((span(1, 2),), ())}
    assert forwarder.table.match(5) == {"client"}


@every_table
@pytest.mark.feature("content-routing F12")
@given(data=st.data())
def test_replacing_the_root_set_leaves_the_master_with_exactly_the_root_set(make: Make, data: st.DataObject) -> None:
    """A slave with a redundant forest does not track what to withdraw: it sends all its roots now and then."""
    slave: Forest[Wanted, int] = Forest(LabelledSets(), PF)
    master = Forwarder(make(["above"]))
    master.subscribe(span(2, 3), "other slave")
    for _ in range(data.draw(st.integers(1, 3))):
        for wanted, client in data.draw(st.lists(st.tuples(labelled_sets("p"), st.sampled_from("xyz")), max_size=6)):
            if wanted in slave:
                drop(slave, client)
            else:
                slave.add(wanted, client)
        master.replace(slave.roots(), "slave")
        held = {f for f, i in entries(master.table) if i == "slave"}
        assert held == set(slave.roots())
        told = [f for f in master.table if master.table.forwards(f)]
        assert meanings(told) == meanings(uncovered(LabelledSets(), [*slave.roots(), span(2, 3)]))


class Network:
    """Brokers in a tree. Links keep their order; which link moves next is anybody's guess."""

    def __init__(self, make: Make, size: int, dice: Random) -> None:
        self.dice = dice
        self.edges = [(str(dice.randrange(node)), str(node)) for node in range(1, size)]
        self.brokers = {str(node): Forwarder(make(self.around(str(node)))) for node in range(size)}
        self.clients = {f"{name}{letter}": Sender(LabelledSets()) for name in self.brokers for letter in "xy"}
        self.links: dict[tuple[str, str], deque[Any]] = defaultdict(deque)
        self.delivered: set[tuple[str, int]] = set()
        self.published = 0

    def around(self, name: str) -> list[str]:
        return [b for a, b in self.edges if a == name] + [a for a, b in self.edges if b == name]

    def tell(self, client: str, update: Update[Wanted]) -> None:
        if update:
            self._send(client[0], self.brokers[client[0]].apply(update, client))

    def change(self, client: str) -> None:
        """A client takes up a wish or drops one."""
        sender = self.clients[client]
        if sender.wishes and self.dice.random() < 0.45:
            self.tell(client, sender.unwish(self.dice.choice(list(sender.wishes))))
        else:
            self.tell(client, sender.wish((self.dice.choice("pq"), self.any_numbers())))

    def any_numbers(self) -> frozenset[int]:
        return frozenset(self.dice.sample(SMALL[:6], self.dice.choice([1, 1, 2, 3, 4])))

    def publish(self, broker: str, event: int) -> int:
        self.published += 1
        self._route(broker, "", (self.published, event))
        return self.published

    def move(self) -> None:
        """One message arrives."""
        link = self.dice.choice([link for link, messages in self.links.items() if messages])
        sender, receiver = link
        message = self.links[link].popleft()
        if isinstance(message, Update):
            self._send(receiver, self.brokers[receiver].apply(message, sender))
        else:
            self._route(receiver, sender, message)

    def settle(self) -> None:
        while any(self.links.values()):
            self.move()

    def _send(self, broker: str, updates: dict[Interface, Update[Wanted]]) -> None:
        for neighbor, update in updates.items():
            self.links[broker, neighbor].append(update)

    def _route(self, broker: str, source: str, message: tuple[int, int]) -> None:
        for interface in self.brokers[broker].table.match(message[1]) - {source}:
            if interface in self.clients:
                self.delivered.add((interface, message[0]))
            else:
                self.links[broker, interface].append(message)


@every_table
@pytest.mark.feature("content-routing F10", "content-routing F15")
@given(size=st.integers(3, 6), seed=st.integers(0, 2**32))
def test_at_rest_the_network_delivers_what_flooding_would(make: Make, size: int, seed: int) -> None:
    dice = Random(seed)
    network = Network(make, size, dice)
    for _ in range(2):
        for _ in range(15):
            network.change(dice.choice(list(network.clients)))
            for _ in range(dice.randrange(4)):
                if any(network.links.values()):
                    network.move()
        network.settle()
        assert_links_hold_minimal_covers(network)
        for broker in network.brokers:
            for event in SMALL:
                number = network.publish(broker, event)
                network.settle()
                flooding = {c for c, sender in network.clients.items() if any(event in f[1] for f in sender.wishes)}
                assert {client for client, n in network.delivered if n == number} == flooding


def assert_links_hold_minimal_covers(network: Network) -> None:
    """T13: what a broker holds for a neighbor is the minimal cover of all that the neighbor has from elsewhere.

    It is also, filter by filter, what the neighbor believes it holds, or a withdrawal would miss its mark. Where
    forwards sets are approximate this belief may name an equivalent filter instead.
    """
    for a, b in [*network.edges, *((b, a) for a, b in network.edges)]:
        there, here = network.brokers[a].table, network.brokers[b].table
        held = [f for f, i in entries(here) if i == a]
        assert meanings(held) == meanings(uncovered(LabelledSets(), [f for f in there if there.interfaces(f) - {b}]))
        believed = [f for f in there if b in there.forwards(f)]
        if isinstance(there, RoutingForest) and there.approximate:
            assert meanings(held) == meanings(believed)
        else:
            assert set(held) == set(believed)


def meanings(filters: list[Wanted]) -> list[list[int]]:
    return sorted(sorted(f[1]) for f in filters)


@every_table
@pytest.mark.feature("content-routing F10", "content-routing F15")
@given(size=st.integers(3, 6), seed=st.integers(0, 2**32))
def test_a_lasting_wish_misses_nothing_while_others_come_and_go(make: Make, size: int, seed: int) -> None:
    """Why updates are atomic: at no moment is a filter withdrawn and what it hid not yet in its place."""
    dice = Random(seed)
    network = Network(make, size, dice)
    faithful, *others = network.clients
    lasting = span(2, 4)
    network.tell(faithful, network.clients[faithful].wish(lasting))
    network.settle()
    expected = set()
    for _ in range(40):
        network.change(dice.choice(others))
        event = dice.choice(sorted(lasting[1]))
        expected.add((faithful, network.publish(dice.choice(list(network.brokers)), event)))
        for _ in range(dice.randrange(6)):
            if any(network.links.values()):
                network.move()
    network.settle()
    assert expected <= network.delivered
