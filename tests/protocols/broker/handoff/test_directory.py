"""A directory may answer later: sessions are found all the same, and nobody who comes, leaves or comes twice meanwhile
is left without an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from godwit.protocols.broker.api import Reason
from godwit.protocols.broker.fabric.base import Fabric
from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.handoff.directory import At, Directory, Everywhere, Then
from godwit.protocols.broker.messages import Place
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.site import SimHost, Site
from godwit.sim.brokers.world import World

ANSWER_S = 0.4


class Registry(Everywhere):
    """A home of all clients: it is told of sessions, tells who had one before or has asked, and answers late."""

    complete = False

    def __init__(self, book: dict[str, At], asked: dict[str, set[NodeId]], host: SimHost, fabric: Fabric) -> None:
        self.book = book
        self.asked = asked
        self.host = host
        super().__init__(fabric)

    def ask(self, client: str, then: Then, is_open: Callable[[], bool], *, patient: bool = False) -> None:
        self.asked.setdefault(client, set()).add(self.host.name)
        self.host.after(ANSWER_S, lambda: then(self.book.get(client), True))

    def tell(self, place: Place) -> None:
        at, known = At(place.epoch, self.host.name), self.book.get(place.client)
        if known is not None and at < known:
            return
        if place.gone:
            self.book.pop(place.client, None)
        else:
            self.book[place.client] = at
        told = self.asked.get(place.client, set()) | ({known.broker} if known is not None else set())
        self.fabric.send(sorted(told - {self.host.name}), place)

    def greet(self, brokers: Iterable[NodeId], place: Place) -> None: ...


class Homed(World):
    """Brokers that ask where sessions are."""

    def __init__(self, count: int, handoff: Handoff = "reactive", seed: int = 0) -> None:
        self.book: dict[str, At] = {}
        self.asked: dict[str, set[NodeId]] = {}
        super().__init__(count, seed, handoff=handoff)

    def directory(self, site: Site, host: SimHost, fabric: Fabric) -> Directory | None:
        return Registry(self.book, self.asked, host, fabric)


def settled(handoff: Handoff = "reactive", seed: int = 0) -> tuple[Homed, Client, Client]:
    world = Homed(4, handoff, seed)
    subscriber, publisher = Client(world, "s").connect("b1"), Client(world, "p").connect("b2")
    world.run()
    subscriber.subscribe("a/#", qos=2)
    world.run()
    return world, subscriber, publisher


def held(world: World) -> list[NodeId]:
    """Who has the subscriber's session."""
    return [name for name, site in world.sites.items() if "s" in site.broker.sessions]


def test_a_session_is_fetched_from_where_the_directory_says() -> None:
    world, subscriber, publisher = settled()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    assert not any("s" in site.broker._moves.places.known for site in world.sites.values())
    subscriber.connect("b3")
    world.run(ANSWER_S / 2)
    assert not subscriber.inside
    world.run(20)
    assert subscriber.payloads == [b"1"]
    assert subscriber.presents == [False, True]
    assert held(world) == ["b3"]


def test_whoever_has_a_session_nowhere_gets_a_new_one() -> None:
    world = Homed(2)
    client = Client(world, "s").connect("b1")
    world.run(ANSWER_S / 2)
    assert not client.inside
    world.run()
    assert client.presents == [False]


def test_a_client_that_leaves_before_the_answer_leaves_nothing() -> None:
    world = Homed(2)
    client = Client(world, "s").connect("b1")
    client.drop()
    world.run(20)
    assert not held(world)
    assert not world.sites["b1"].broker.knows("s")


def test_a_client_that_comes_twice_before_the_answer_is_let_in_once() -> None:
    world, subscriber, _ = settled()
    subscriber.drop()
    world.run()
    twin = Client(world, "s").connect("b3")
    world.run(ANSWER_S / 2)
    subscriber.connect("b3")
    world.run(20)
    assert twin.closed == [Reason.SESSION_TAKEN_OVER]
    assert subscriber.presents == [False, True]
    assert held(world) == ["b3"]


def test_a_client_that_goes_on_before_the_answer_takes_its_session_along() -> None:
    """In this world; where links are so uneven that the first asks after the second, that one gets it."""
    world, subscriber, publisher = settled(seed=1)
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect("b3")
    world.run(ANSWER_S / 2)
    subscriber.drop(notice_s=None)
    subscriber.connect("b4")
    world.run(30)
    assert subscriber.payloads == [b"1"]
    assert held(world) == ["b4"]


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("seed", range(6))
def test_roaming_loses_and_repeats_nothing(seed: int, handoff: Handoff) -> None:
    dice = Random(seed)
    world, subscriber, publisher = settled(handoff)
    said = []
    for number in range(40):
        if dice.random() < 0.3:
            subscriber.drop(notice_s=dice.choice((0.0, 1.0)))
            subscriber.connect(dice.choice(world.names))
        said.append(b"%d" % number)
        publisher.publish("a/x", said[-1], qos=2)
        world.run(dice.choice((0.05, 0.5, 3.0)))
    world.run(60)
    if not subscriber.inside:  # its session was wanted at two places at once: clients come again
        subscriber.connect("b1")
        world.run(60)
    assert subscriber.payloads == said
    assert len(held(world)) == 1
