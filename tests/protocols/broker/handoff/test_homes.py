"""A client's homes know where its session is: sessions are found by asking them, and what a hop costs does not depend
on how many brokers there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from random import Random

import pytest

from godwit.protocols.broker.handoff.copies import Handoff
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.handoff.homes import ANSWER_S, HOMES, CareOf, Hashed
from godwit.protocols.broker.messages import Ceded, Content, Found, HomeEntry, Place, Placed, Region, Sought
from godwit.protocols.gathering.space import Cell
from godwit.protocols.host import NodeId
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.world import Homed

pytestmark = [pytest.mark.feature("data-gathering F21"), pytest.mark.feature("data-gathering F23")]

DIRECTORY = (Place, Placed, Sought, Found)


def homes_of(world: Homed, client: str = "s") -> list[NodeId]:
    name = world.names[0]
    return list(Hashed(name, world.sites[name].fabric).homes(client))


def held(world: Homed) -> list[NodeId]:
    return [name for name, site in world.sites.items() if site.up and "s" in site.broker.sessions]


def knowing(world: Homed) -> set[NodeId]:
    """Brokers that know of the session of another one."""
    return {name for name, site in world.sites.items() if site.up and "s" in site.broker._moves.places.known}


def settled(count: int, handoff: Handoff = "reactive", seed: int = 0) -> tuple[Homed, Client, Client]:
    """A subscriber at a broker that is none of its homes."""
    world = Homed(count, seed, handoff=handoff)
    world.run()
    away = next(name for name in world.names if name not in homes_of(world))
    subscriber, publisher = Client(world, "s").connect(away), Client(world, "p").connect(away)
    world.run(10)
    subscriber.subscribe("a/#", qos=2)
    world.run()
    return world, subscriber, publisher


def strangers(world: Homed, subscriber: Client) -> list[NodeId]:
    """Who neither has the session nor is a home."""
    return [name for name in world.names if name not in (*homes_of(world), *held(world))]


def test_a_session_is_registered_at_its_homes_and_nowhere_else() -> None:
    world, _, _ = settled(12)
    assert knowing(world) == set(homes_of(world))
    assert len(homes_of(world)) == HOMES


def test_a_session_is_found_from_anywhere() -> None:
    world, subscriber, publisher = settled(12)
    for number, name in enumerate(strangers(world, subscriber)):
        subscriber.drop()
        publisher.publish("a/x", b"%d" % number, qos=2)
        world.run()
        subscriber.connect(name)
        world.run(20)
        assert held(world) == [name]
    assert subscriber.payloads == [b"%d" % number for number in range(len(subscriber.presents) - 1)]
    assert subscriber.presents == [False, *[True] * (len(subscriber.presents) - 1)]


class OldMap:
    """Takes this broker for the only home of everybody."""

    def __init__(self, home: NodeId) -> None:
        self.home = home

    def homes(self, client: str) -> list[NodeId]:
        return [self.home]

    def find_homes(self, client: str, then: Callable[[Sequence[NodeId]], None]) -> None:
        then([self.home])

    def is_sure(self, client: str) -> bool:
        return True

    def correct(self, client: str, broker: NodeId) -> None: ...


def mislead(world: Homed, name: NodeId, home: NodeId) -> None:
    directory = world.sites[name].broker._moves.directory
    assert isinstance(directory, CareOf)
    directory.homes = OldMap(home)


def test_whoever_is_taken_for_a_home_asks_and_tells_those_who_are() -> None:
    """In a ring maps may be old: the one broker registers where a home was once, another asks where there never was."""
    world, subscriber, publisher = settled(12)
    first, second, third, fourth = strangers(world, subscriber)[:4]
    mislead(world, first, home=third)
    mislead(world, second, home=fourth)
    for number, name in enumerate((first, second)):
        subscriber.drop()
        publisher.publish("a/x", b"%d" % number, qos=2)
        world.run()
        subscriber.connect(name)
        world.run(20)
        assert held(world) == [name]
    assert subscriber.presents == [False, True, True]
    assert subscriber.payloads == [b"0", b"1"]


class LateMap(OldMap):
    """Does not know yet that this broker is the only home of everybody."""

    def __init__(self, home: NodeId) -> None:
        super().__init__(home)
        self.asked: list[Callable[[Sequence[NodeId]], None]] = []

    def homes(self, client: str) -> list[NodeId]:
        return []

    def find_homes(self, client: str, then: Callable[[Sequence[NodeId]], None]) -> None:
        self.asked.append(then)


def test_whoever_becomes_the_home_before_it_finds_one_tells_the_older_session_itself() -> None:
    world, _, _ = settled(4)
    name = held(world)[0]
    other = next(one for one in world.names if one != name)
    directory = world.sites[name].broker._moves.directory
    assert isinstance(directory, CareOf)
    directory.homes = late = LateMap(name)
    newer = world.sites[name].broker.sessions["s"].standing.epoch
    told = placed_by(world, name)
    directory.registered(other, Place("s", newer - 1))
    assert told == []
    for then in late.asked:
        then([name])
    assert told == [(other, At(newer, name))]


def placed_by(world: Homed, name: NodeId) -> list[tuple[NodeId, At]]:
    """Whom this broker tells from now on, and of which place."""
    told, fabric = list[tuple[NodeId, At]](), world.sites[name].fabric
    send = fabric.send

    def overheard(to: Iterable[NodeId], content: Content, *, durable: bool = True) -> None:
        names = list(to)
        if isinstance(content, Placed):
            told.extend((one, At(content.place.epoch, content.broker)) for one in names)
        send(names, content, durable=durable)

    fabric.send = overheard  # type: ignore[method-assign]
    return told


def cede(world: Homed, name: NodeId, at: At) -> None:
    """This broker becomes the client's home, and is told where the session is."""
    entry = HomeEntry("s", at.epoch, at.broker)
    world.sites[name].broker._moves.on_ceded(Ceded(Region(Cell(), name, 1), homes=(entry,)))


def test_whoever_becomes_the_home_lets_its_own_session_go_to_a_newer_one() -> None:
    world, subscriber, publisher = settled(4)
    name = held(world)[0]
    other = next(one for one in world.names if one != name)
    subscriber.drop()
    publisher.publish("a/x", b"waits", qos=2)
    world.run()
    cede(world, name, At(world.sites[name].broker.sessions["s"].standing.epoch + 1, other))
    world.run(20)
    assert held(world) == [other]
    subscriber.connect(other)
    world.run(20)
    assert subscriber.payloads == [b"waits"]


@pytest.mark.parametrize("by", [-1, 1])
def test_whoever_becomes_the_home_tells_the_older_of_two_others(by: int) -> None:
    world, subscriber, _ = settled(12)
    home, one, two = strangers(world, subscriber)[:3]
    noted, said = At(5, one), At(5 + by, two)
    world.sites[home].broker._moves.places.put("s", noted)
    told = placed_by(world, home)
    cede(world, home, said)
    older, newer = sorted((noted, said))
    assert told == [(older.broker, newer)]
    assert world.sites[home].broker._moves.places.known["s"] == newer


def test_a_home_to_which_an_older_place_is_handed_on_tells_the_broker_there() -> None:
    world, _, _ = settled(12)
    home = homes_of(world)[0]
    newer = world.sites[home].broker._moves.places.known["s"]
    other = next(one for one in world.names if one not in (home, newer.broker))
    told = placed_by(world, home)
    world.sites[home].broker._moves.directory.handed_on(Placed(other, Place("s", newer.epoch - 1)))
    assert told == [(other, newer)]


@pytest.mark.parametrize("handed", [False, True])
def test_who_has_a_newer_session_says_so_though_it_takes_another_for_the_home(handed: bool) -> None:
    """It may have become the only one, and not know so yet; the other passes nothing on to it."""
    world, _, _ = settled(4)
    name = held(world)[0]
    home, other = [one for one in world.names if one != name][:2]
    mislead(world, name, home=home)
    newer = world.sites[name].broker.sessions["s"].standing.epoch
    older, told = Place("s", newer - 1, clean=True), placed_by(world, name)
    directory = world.sites[name].broker._moves.directory
    if handed:
        directory.handed_on(Placed(other, older))
        assert told == [(other, At(newer, name))]
    else:
        directory.registered(other, older)
        assert told == [(other, At(newer, name)), (home, At(newer - 1, other))]
    told.clear()
    directory.registered(other, Place("s", newer + 1))
    assert told == [(home, At(newer + 1, other))], "only to whoever has an older one"


def test_homes_that_hear_of_a_clean_start_by_somebody_else_tell_who_has_the_old_session() -> None:
    world, subscriber, _ = settled(12)
    first, second = strangers(world, subscriber)[:2]
    mislead(world, first, home=second)
    subscriber.drop()
    world.run()
    subscriber.connect(first, clean=True)
    world.run(20)
    assert held(world) == [first]


def test_a_client_of_whom_nobody_knows_gets_a_new_session_when_all_homes_have_answered() -> None:
    world = Homed(8)
    world.run()
    client = Client(world, "s").connect(world.names[0])
    assert not client.inside
    world.run(10)
    assert client.presents == [False]


def test_a_home_that_is_down_delays_a_new_client_and_an_old_one_not_at_all() -> None:
    world, subscriber, _ = settled(10)
    down = homes_of(world)[0]
    world.sites[down].crash()
    subscriber.drop()
    world.run()
    subscriber.connect(strangers(world, subscriber)[0])
    world.run(ANSWER_S / 2)
    assert subscriber.presents == [False, True]
    other = next(f"t{at}" for at in range(100) if down in homes_of(world, f"t{at}"))
    fresh = Client(world, other).connect(next(name for name in world.names if name != down))
    world.run(ANSWER_S / 2)
    assert not fresh.inside
    world.run(ANSWER_S)
    assert fresh.presents == [False]


class TwoHomes(OldMap):
    """Takes these for the homes of everybody."""

    def __init__(self, *homes: NodeId) -> None:
        super().__init__(homes[0])
        self.all = [*homes]

    def homes(self, client: str) -> list[NodeId]:
        return self.all

    def find_homes(self, client: str, then: Callable[[Sequence[NodeId]], None]) -> None:
        then(self.all)


@pytest.mark.parametrize("patient", [False, True])
def test_where_there_ought_to_be_a_session_a_home_that_is_silent_is_waited_for(patient: bool) -> None:
    """The other one has become a home a moment ago, and has not been told of anybody yet."""
    world, subscriber, _ = settled(12)
    knows = homes_of(world)[0]
    knows_nothing, asks = strangers(world, subscriber)[:2]
    mislead(world, knows_nothing, home=knows_nothing)
    directory = world.sites[asks].broker._moves.directory
    assert isinstance(directory, CareOf)
    directory.homes = TwoHomes(knows_nothing, knows)
    world.sites[knows].crash()
    answers: list[At | None] = []
    directory.ask("s", lambda at, sure: answers.append(at), lambda: not answers, patient=patient)
    world.run(3 * ANSWER_S)
    assert answers == ([] if patient else [None])
    world.sites[knows].start()
    world.run(3 * ANSWER_S)
    assert [at and at.broker for at in answers] == (held(world) if patient else [None])


class Doubtful(OldMap):
    """A home that stands in for another, and does not know whether it has been told of all."""

    sure = False

    def is_sure(self, client: str) -> bool:
        return self.sure


@pytest.mark.parametrize("patient", [False, True])
def test_where_there_ought_to_be_a_session_a_home_that_is_not_sure_is_asked_again(patient: bool) -> None:
    world, subscriber, _ = settled(12)
    sure, doubts, asks = strangers(world, subscriber)[:3]
    mislead(world, sure, home=sure)
    (doubtful := Doubtful(doubts)).sure = False
    for name, homes in ((doubts, doubtful), (asks, TwoHomes(sure, doubts))):
        directory = world.sites[name].broker._moves.directory
        assert isinstance(directory, CareOf)
        directory.homes = homes
    answers: list[tuple[At | None, bool]] = []
    directory.ask("s", lambda *answer: answers.append(answer), lambda: not answers, patient=patient)
    world.run(3 * ANSWER_S)
    assert answers == ([] if patient else [(None, True)])
    doubtful.sure = True
    world.run(2 * ANSWER_S)
    assert answers == [(None, True)]


def test_a_client_that_shows_the_token_of_a_broker_not_met_waits_for_a_home_that_is_down() -> None:
    """One that shows none does not: see above."""
    world, _, _ = settled(10)
    down = homes_of(world)[0]
    world.sites[down].crash()
    name = next(f"t{at}" for at in range(100) if down in homes_of(world, f"t{at}"))
    client = Client(world, name).connect(next(one for one in world.names if one != down), token="5.7~proof.elsewhere")
    world.run(2 * ANSWER_S)
    assert not client.inside
    world.sites[down].start()
    world.run(2 * ANSWER_S)
    assert client.presents == [False]


def linked(count: int) -> tuple[Cluster, Client, NodeId]:
    """Deployed brokers with links between all; a client, and its only home, at which it has not been."""
    names = [f"b{at}" for at in range(1, count + 1)]
    cluster = Cluster(names, combinations(names, 2), 1, StationOptions(homes=1))
    cluster.run(10)
    (home,) = Hashed("b1", cluster.sites["b1"].station.fabric, 1).homes("s")
    return cluster, Client(cluster, "s"), home  # type: ignore[arg-type]


@pytest.mark.parametrize("has_session", [True, False])
def test_a_question_that_was_lost_with_the_only_home_is_asked_again(has_session: bool) -> None:
    """Its broker is killed, and whoever asks does not notice it at once. A question is on no disk."""
    cluster, client, home = linked(5)
    here, there = [name for name in cluster.sites if name != home][:2]
    if has_session:
        client.connect(here)
        cluster.run(5)
        client.drop()
        cluster.run(1)
    cluster.crash(home, notice_s=0.2)
    client.connect(there)
    cluster.run(ANSWER_S)
    cluster.start(home)
    cluster.run(2 * ANSWER_S)
    assert client.presents == ([False, True] if has_session else [False])


def test_nobody_asks_on_for_a_client_that_waits_no_more() -> None:
    cluster, client, home = linked(5)
    there = next(name for name in cluster.sites if name != home)
    cluster.crash(home)
    client.connect(there)
    cluster.run(1.5 * StationOptions().session_wait_s)
    assert client.presents == [False]
    assert not cluster.sites[there].station.broker._moves.directory._questions  # type: ignore[attr-defined]


def test_all_homes_but_one_may_be_down() -> None:
    world, subscriber, publisher = settled(10)
    for name in homes_of(world)[1:]:
        world.sites[name].crash()
    subscriber.drop()
    publisher.publish("a/x", b"1", qos=2)
    world.run()
    subscriber.connect(next(name for name in strangers(world, subscriber) if world.sites[name].up))
    world.run(20)
    assert subscriber.payloads == [b"1"]


def test_when_a_home_is_given_up_the_next_one_is_told() -> None:
    world, subscriber, _ = settled(10)
    for _ in range(2):
        gone = next(name for name in homes_of(world) if world.sites[name].up)
        world.sites[gone].crash()
        world.give_up(gone)
        world.names.remove(gone)
        world.run(10)
    assert set(homes_of(world)) <= knowing(world)
    subscriber.drop()
    world.run()
    subscriber.connect(strangers(world, subscriber)[0])
    world.run(20)
    assert subscriber.presents == [False, True]


@pytest.mark.parametrize("seed", range(6))
def test_of_two_that_begin_at_once_one_session_stays(seed: int) -> None:
    world = Homed(8, seed)
    world.run()
    one, other, *_ = (name for name in world.names if name not in homes_of(world))
    first, second = Client(world, "s").connect(one), Client(world, "s").connect(other)
    world.run(60)
    assert len(held(world)) == 1
    assert [client.inside for client in (first, second)].count(True) == 1


def test_a_clean_start_ends_the_session_wherever_it_is() -> None:
    world, subscriber, _ = settled(10)
    (before,) = held(world)
    subscriber.drop()
    world.run()
    there = strangers(world, subscriber)[0]
    subscriber.connect(there, clean=True)
    world.run(20)
    assert held(world) == [there]
    assert subscriber.presents == [False, False]
    assert "s" not in world.sites[before].broker.sessions


@pytest.mark.parametrize("goes_along", [False, True])
@pytest.mark.parametrize(
    ("after_s", "asks", "shows", "presents"),
    [
        (1.0, False, False, [False, False, True]),
        (40.0, False, False, [False, True, True]),
        (1.0, True, False, [False, True, True]),
        (1.0, False, True, [False, True, True]),
    ],
)
def test_who_subscribed_in_a_clean_start_that_ended_for_another_is_told_once_more_that_its_session_is_new(
    after_s: float, asks: bool, shows: bool, presents: list[bool], goes_along: bool
) -> None:
    """Which of the two was the last only calendars say. But not where that was long ago, nor a client that asks for
    something in the other or shows that it has heard of it. Where a home says only where the newer one is, the older
    one goes there."""
    world = Homed(8, 0, handoff="reactive")
    world.run()
    one, other = world.names[:2]
    first = Client(world, "s").connect(one, clean=True)
    world.run()
    first.subscribe("a/#", qos=2)
    world.run(after_s)
    second, moves = Client(world, "s"), world.sites[other].broker._moves
    second.keeps_token, announce = shows, moves.announce
    if goes_along:
        moves.announce = lambda session, *, clean=False: announce(session)  # type: ignore[method-assign]
    second.connect(other, clean=True)
    world.run()
    if asks:
        second.subscribe("a/#", qos=2)
    assert held(world) == [other]
    for _ in range(2):
        second.drop()
        world.run()
        second.connect(other)
        world.run()
    assert second.presents == presents


def test_a_session_that_ends_is_forgotten_by_its_homes() -> None:
    world, subscriber, _ = settled(10)
    subscriber.drop(expiry_s=0.0)
    world.run(10)
    assert held(world) == []
    assert knowing(world) == set()


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("seed", range(6))
def test_roaming_loses_and_repeats_nothing_though_brokers_crash(seed: int, handoff: Handoff) -> None:
    dice = Random(seed)
    world, subscriber, publisher = settled(8, handoff, seed)
    speaks_at = publisher.home
    said = []
    for number in range(40):
        if dice.random() < 0.3:
            subscriber.drop(notice_s=dice.choice((0.0, 1.0)))
            subscriber.connect(dice.choice([name for name in world.names if world.sites[name].up]))
        if dice.random() < 0.1:
            site = world.sites[dice.choice([name for name in world.names if name != speaks_at])]
            if site.up:
                site.crash()
            else:
                site.start()
        said.append(b"%d" % number)
        publisher.publish("a/x", said[-1], qos=2)
        world.run(dice.choice((0.05, 0.5, 3.0)))
    for site in world.sites.values():
        if not site.up:
            site.start()
    world.run(60)
    for _ in range(5):
        if not subscriber.inside:
            subscriber.connect(speaks_at)
            world.run(60)
    assert subscriber.payloads == said
    assert len(held(world)) == 1


@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_publisher_says_on_its_way_comes_once_and_in_order(seed: int, handoff: Handoff) -> None:
    dice = Random(100 + seed)
    world, subscriber, publisher = settled(7, handoff, seed)
    said = []
    for number in range(40):
        for client in (subscriber, publisher):
            if dice.random() < 0.25:
                client.drop(notice_s=dice.choice((0.0, 1.0)))
                client.connect(dice.choice(world.names))
        world.run(dice.choice((1.0, 5.0)))
        for _ in range(4):
            if not publisher.inside:
                publisher.connect(dice.choice(world.names))
                world.run(15.0)
        assert publisher.inside
        said.append(b"%d" % number)
        publisher.publish("a/x", said[-1], qos=2)
    world.run(60)
    for client in (publisher, subscriber, subscriber):
        if not client.inside:
            client.connect(world.names[0])
            world.run(60)
    assert subscriber.payloads == said
    assert len(held(world)) == 1


@pytest.mark.parametrize("count", [10, 40])
def test_what_the_directory_says_for_a_hop_does_not_depend_on_the_number_of_brokers(count: int) -> None:
    world, subscriber, _ = settled(count)
    for _ in range(3):
        subscriber.drop()
        world.run()
        before = len(world.said)
        subscriber.connect(strangers(world, subscriber)[0])
        world.run(20)
        said = Counter[type]()
        for _, receivers, content in world.said[before:]:
            said[type(content)] += len(receivers) if isinstance(content, DIRECTORY) else 0
        assert said[Sought] == said[Place] == HOMES
        assert said[Found] == 2 * HOMES  # one answers the question, one the registration
        assert said[Placed] <= HOMES


def test_who_hears_of_something_twice_hears_it_once() -> None:
    world = Homed(3)
    site = world.sites["b1"]
    directory = site.broker._moves.directory
    assert isinstance(directory, CareOf)
    placed = Placed("b2", Place("s", 5))
    assert [directory.is_news(placed) for _ in range(3)] == [True, False, False]
    assert directory.is_news(Placed("b3", Place("s", 6)))
