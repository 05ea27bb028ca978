"""Deployed brokers on the ring, in the simulator: who matches, who is told, and what a newcomer takes along."""

from __future__ import annotations

from itertools import combinations
from random import Random

import msgspec
import pytest
from tests.protocols.broker.fabric.ring.worlds import Ring

from godwit.filters.areas import distance_m
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter
from godwit.filters.predicates import Kind, Text, TextOp
from godwit.protocols.broker.api import Lasting, Reason, Subscription
from godwit.protocols.broker.fabric.ring.targets import homes_of
from godwit.protocols.broker.handoff.directory import At
from godwit.protocols.broker.handoff.homes import HOMES
from godwit.protocols.broker.messages import (
    Amended,
    BookEntry,
    Ceded,
    Content,
    Dividing,
    Enter,
    Owned,
    Place,
    Placed,
    Region,
    Replica,
    Routed,
    Seek,
    Through,
    Turn,
    Turned,
    Undivided,
    Wanted,
)
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.registry import Granted
from godwit.protocols.broker.streams.frames import Run, decode_items
from godwit.protocols.broker.topics import meaning
from godwit.protocols.gathering.areas import Spot
from godwit.protocols.gathering.space import Boundary, Cell, cut_between
from godwit.protocols.host import RemoteError
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.picture import Picture
from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.trial import Trial


@pytest.mark.feature("data-gathering F8")
def test_brokers_come_in_one_by_one_and_their_cells_are_all_of_space() -> None:
    ring = Ring(8)
    regions = [region for name in ring.names for region in ring.fabric(name).regions]
    assert len(regions) == 8
    assert sum(2.0 ** -len(region.prefix) for region in regions) == 1.0
    assert all(ring.fabric(name).atlas.owners >= {name} for name in ring.names)


@pytest.mark.feature("data-gathering F6")
def test_a_publication_goes_to_its_matching_broker_and_from_there_to_those_who_want_it() -> None:
    ring = Ring(6)
    matching = ring.owner("t")
    here, there = [name for name in ring.names if name != matching][:2]
    subscriber, publisher = ring.client("s", here), ring.client("p", there)
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    assert ring.said(Wanted) == [(here, matching)]
    publisher.publish("t/x", b"1", 2)
    ring.cluster.run(3)
    assert [one.publication.payload for one in subscriber.got] == [b"1"]
    assert ring.said(Routed) == [(there, matching)]
    assert ring.said(Publication) == [(matching, here)]


def test_nothing_is_passed_on_unseen_where_another_broker_may_be_the_one_that_matches() -> None:
    ring = Ring(2)
    for name in ring.names:
        assert ring.cluster.sites[name].broker.audience("a/b").straight is None


def test_a_hop_asks_the_matching_broker_only_and_states_in_the_same_content_what_is_wanted() -> None:
    ring = Ring(8)
    matching = ring.owner("t")
    old, new = [name for name in ring.names if name != matching][:2]
    subscriber = ring.client("s", old)
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    ring.heard.clear()
    subscriber.drop().connect(new)
    ring.cluster.run(5)
    assert ring.said(Turn) == []
    assert [(origin, to) for origin, to, one in ring.heard if isinstance(one, Wanted) and one.turn is not None] == [
        (new, matching)
    ]
    assert sorted(ring.said(Turned)) == sorted([(matching, old), (matching, new)])
    assert ring.said(Through) == [(old, new)]


def test_a_place_that_is_about_to_own_a_cell_counts_as_one_that_matches_there() -> None:
    """It has agreed, and matches as soon as the cell is its own: a session that leaves it before must ask it too."""
    ring = Ring(8)
    matching = ring.owner("t")
    old, new = ring.others(matching)[:2]
    ring.client("s", old).subscribe("t/#", qos=2)
    ring.cluster.run(3)
    fabric, places = ring.fabric(old), (old, new)
    wanted = fabric.stated
    assert fabric.origins(wanted, places) == {matching}
    (region,) = ring.fabric(matching).regions
    ring.fabric(matching).send((old,), Dividing(7, Region(region.cell, old, region.term + 1)))
    ring.cluster.run(1)
    assert fabric.origins(wanted, places) >= {matching, old, new}
    ring.cluster.crash(old)
    ring.cluster.start(old)
    ring.cluster.run(5)
    assert ring.fabric(old).origins(wanted, places) >= {matching, old, new}
    ring.fabric(matching).send((old,), Undivided(7, ""))
    ring.cluster.run(1)
    assert ring.fabric(old).origins(wanted, places) == {matching}


def test_homes_hear_of_a_session_whose_broker_has_a_map_that_is_many_cuts_old() -> None:
    """Who is no home any more passes on what it is told, but not what has been passed on to it. It tells whose map is
    old, and that one tells the homes."""
    ring = Ring(12)
    here, fabric = ring.names[-1], ring.fabric(ring.names[-1])
    (own,) = fabric.regions
    homes = {f"s{at}": {ring.owner_of(key) for key in homes_of(f"s{at}", HOMES)} - {here} for at in range(40)}
    names = [name for name, owners in homes.items() if ring.names[0] not in owners]
    for name in names:
        fabric.atlas.clear()
        fabric.atlas.put(Region(Cell(), ring.names[0], 0))
        fabric.atlas.put(own, stood_in=True)
        ring.client(name, here)
    ring.cluster.run(5)
    known = {one: ring.cluster.sites[one].broker._moves.places.known for one in ring.others(here)}
    assert [(name, one) for name in names for one in homes[name] if name not in known[one]] == []
    told = {(said.client, to) for by, to, said in ring.heard if by == here and isinstance(said, Place)}
    assert [(name, one) for name in names for one in homes[name] if (name, one) not in told] == [], "by that one itself"


def test_homes_hear_of_a_session_when_its_broker_learns_that_a_cell_was_cut() -> None:
    """Whom it took for the owner of all is a home itself, and does not tell that there are others."""
    ring = Ring(12)
    here, all_of_it = ring.names[-1], ring.names[0]
    fabric = ring.fabric(here)
    name = next(f"s{at}" for at in range(100) if all_of_it in map(ring.owner_of, homes_of(f"s{at}", HOMES)))
    others = {ring.owner_of(key) for key in homes_of(name, HOMES)} - {here, all_of_it}
    (own,) = fabric.regions
    fabric.atlas.clear()
    fabric.atlas.put(own)
    fabric.atlas.put(Region(own.cell.beyond(0), all_of_it, 0))
    fabric.atlas.put(Region(own.cell.beyond(1), all_of_it, 0))
    ring.client(name, here)
    for one in others:
        fabric.learn(ring.fabric(one).regions, said_by=one)
    ring.cluster.run(5)
    assert [one for one in others if name not in ring.cluster.sites[one].broker._moves.places.known] == []


def test_who_is_told_of_a_session_and_is_no_home_passes_that_on_to_nobody() -> None:
    """A session that begins while the last one is out of reach asks all brokers about that one: of ten that were killed
    each client would be told of by everybody to everybody."""
    ring = Ring(12)
    homes = {ring.owner_of(key) for key in homes_of("s", HOMES)}
    old, new = [name for name in ring.names if name not in homes][:2]
    subscriber = ring.client("s", old)
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    ring.cluster.crash(old)
    ring.heard.clear()
    subscriber.drop().connect(new)
    ring.cluster.run(20)
    assert subscriber.presents == [False, False]
    assert {to for origin, to in ring.said(Place) if origin == new} >= {*ring.others(old, new)}
    assert {origin for origin, _ in ring.said(Placed)} <= homes


def test_the_holders_of_an_owners_book_count_as_sources_of_what_leaves_it() -> None:
    """One may stand in for it, which was away and does not know it yet: what that matches must reach the session."""
    ring = Ring(8)
    matching = ring.owner("t")
    ring.client("s", matching).subscribe("t/#", qos=2)
    ring.cluster.run(3)
    fabric = ring.fabric(matching)
    assert set(fabric.replicas.holders) <= fabric.sources(fabric.stated)


@pytest.mark.parametrize(("count", "seed", "leaver"), [(5, 2, "b1"), (5, 4, "b1"), (9, 1, "b3"), (9, 1, "b8")])
def test_who_has_left_keeps_nobody_waiting_who_takes_it_for_the_owner_of_more_than_it_had(
    count: int, seed: int, leaver: str
) -> None:
    """What it had given to a third one before, somebody may not have heard of."""
    ring = Ring(count, seed=seed)
    wanted = tuple(meaning(f"{chr(at)}/#") for at in range(ord("a"), ord("z") + 1))
    ring.fabric(leaver).leave()
    ring.cluster.run(15)
    ring.cluster.crash(leaver)
    ring.cluster.run(3)
    answers: dict[str, list[bool]] = {name: [] for name in ring.others(leaver)}
    for name, heard in answers.items():
        ring.fabric(name).want(wanted)
        ring.fabric(name).in_place(wanted, heard.append)
    ring.cluster.run(9)
    assert answers == {name: [True] for name in ring.others(leaver)}


def test_a_broker_that_has_begun_a_ring_by_mistake_gets_its_cell_back() -> None:
    """It has lost its disk, and reaches nobody as it starts."""
    ring = Ring(4)
    before = ring.fabric("b1").regions
    for other in ring.names[1:]:
        ring.cluster.cut("b1", other)
    ring.wipe("b1")
    ring.cluster.run(5)
    assert [one.prefix for one in ring.fabric("b1").regions] == [""], "it has begun one"
    for other in ring.names[1:]:
        ring.cluster.heal("b1", other)
    ring.cluster.run(60)
    assert [one.prefix for one in ring.fabric("b1").regions] == [one.prefix for one in before]


def test_a_cell_that_another_has_meanwhile_is_not_given_to_a_newcomer() -> None:
    """A broker that was away divides its cell, and hears that somebody stands in for it before all have agreed."""
    ring = Ring(3, late=1)
    owner, heir = ring.names[0], ring.names[3]
    membership = ring.fabric(owner).membership
    (region,) = ring.fabric(owner).regions
    membership._divide(region, Enter(heir, (1.0, 1.0)))
    division = membership.division
    assert division is not None
    division.silent.clear()
    ring.fabric(owner).atlas.put(Region(region.cell, ring.names[1], region.term + 1))
    membership._cede(division)
    assert membership.division is None
    ring.cluster.start(heir)
    ring.cluster.run(0.5)
    assert (owner, heir) not in ring.said(Ceded)


@pytest.mark.parametrize("matches", ["old", "new"])
def test_a_place_that_matches_itself_turns_like_the_others(matches: str) -> None:
    ring = Ring(8)
    matching, other = ring.owner("t"), ring.others(ring.owner("t"))[0]
    old, new = (matching, other) if matches == "old" else (other, matching)
    subscriber, publisher = ring.client("s", old), ring.client("p", ring.others(old, new)[0])
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    sent = []
    for number in range(40):
        sent.append(b"%d" % number)
        publisher.publish("t/x", sent[-1], 2)
        if number == 20:
            subscriber.drop().connect(new)
        ring.cluster.run(0.02)
    ring.cluster.run(5)
    assert [one.publication.payload for one in subscriber.got] == sent
    assert set(ring.said(Turned)) >= {(matching, other)}


def test_who_lost_its_disk_and_reaches_nobody_begins_a_ring_only_if_it_is_told_to() -> None:
    ring = Ring(3)
    cells = ring.fabric("b1").regions
    for name in ring.names:
        ring.cluster.crash(name)
    machine = ring.cluster.sites["b1"]
    machine.node.disk.clear()
    machine.founds = False
    ring.cluster.start("b1")
    ring.cluster.run(300)
    assert not ring.fabric("b1").is_member
    assert ring.fabric("b1").membership.problem == "no broker of a ring has answered yet"
    for name in ("b2", "b3"):
        ring.cluster.start(name)
    ring.cluster.run(20)
    assert ring.fabric("b1").regions == cells
    ring = Ring(1)
    machine = ring.cluster.sites["b1"]
    ring.cluster.crash("b1")
    machine.node.disk.clear()
    machine.founds = True
    ring.cluster.start("b1")
    ring.cluster.run(5)
    assert ring.fabric("b1").is_member


def test_a_newcomer_does_not_take_its_disk_for_lost_while_a_cell_is_on_its_way_to_it() -> None:
    ring = Ring(2, late=1)
    subscriber = ring.client("s", "b2")
    subscriber.subscribe("#", qos=2)
    ring.cluster.run(3)
    ring.cluster.start("b3")
    fabric = ring.fabric("b3")
    while not fabric.membership.promised:
        ring.cluster.run(0.001)
    promised = next(iter(fabric.membership.promised.values()))
    fabric.membership.regain("b2", promised)
    fabric.membership.on_ceded("b2", Ceded(promised, again=True))
    assert not fabric.is_member, "others say that it is a member, but the book has not come"
    ring.cluster.run(10)
    assert fabric.regions == [promised]
    assert not fabric.replicas.was_lost
    assert "b2" in fabric.interests


@pytest.mark.feature("data-gathering F9")
def test_a_newcomer_takes_its_half_with_the_book() -> None:
    ring = Ring(3, late=3)
    clients = {name: ring.client(f"s-{name}", name) for name in ring.names[:3]}
    for client in clients.values():
        client.subscribe("#", qos=2)
    ring.cluster.run(3)
    for name in ring.names[3:]:
        ring.cluster.start(name)
    ring.cluster.run(10)
    assert all(ring.fabric(name).is_member for name in ring.names)
    for name in ring.names:
        assert ring.fabric(name).interests.keys() | {name} >= set(ring.names[:3])
    publisher = ring.client("p", ring.names[-1])
    for number in range(40):
        publisher.publish(f"t{number}/x", b"%d" % number, 2)
    ring.cluster.run(5)
    for client in clients.values():
        assert sorted(int(one.publication.payload) for one in client.got) == list(range(40))


def test_a_newcomer_can_address_whoever_has_a_session_whose_home_it_is() -> None:
    ring = Ring(1, late=1)
    places = ring.cluster.sites["b1"].station.broker._moves.places
    for number in range(8):
        places.put(f"s{number}", At(1, "b9"))
    ring.cluster.start("b2")
    ring.cluster.run(10)
    assert ring.fabric("b2").is_known("b9")


def test_a_broker_that_crashed_comes_back_with_its_cell_and_its_book() -> None:
    ring = Ring(4, absent_s=1_000.0)
    matching = ring.owner("t")
    here, there = [name for name in ring.names if name != matching][:2]
    subscriber, publisher = ring.client("s", here), ring.client("p", there)
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    cells = ring.fabric(matching).regions
    ring.cluster.crash(matching)
    publisher.publish("t/x", b"while it is away", 2)
    ring.cluster.run(5)
    assert publisher.accepts, "it is on the disk of the broker that took it"
    assert not subscriber.got
    ring.cluster.start(matching)
    ring.cluster.run(10)
    assert ring.fabric(matching).regions == cells
    assert [one.publication.payload for one in subscriber.got] == [b"while it is away"]


def test_whoever_lost_its_disk_gets_its_cell_again_and_hears_what_others_want() -> None:
    ring = Ring(4)
    matching = ring.owner("t")
    here, there = [name for name in ring.names if name != matching][:2]
    subscriber, publisher = ring.client("s", here), ring.client("p", there)
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    cells = ring.fabric(matching).regions
    ring.cluster.crash(matching)
    ring.cluster.sites[matching].node.disk.clear()
    ring.cluster.start(matching)
    ring.cluster.run(10)
    assert ring.fabric(matching).regions == cells
    publisher.publish("t/x", b"again", 2)
    ring.cluster.run(5)
    assert [one.publication.payload for one in subscriber.got] == [b"again"]


def test_a_subscription_is_in_place_when_all_owners_have_noted_it() -> None:
    ring = Ring(6)
    answers: list[bool] = []
    subscriber = ring.client("s", "b2")
    broker = ring.cluster.sites["b2"].broker
    assert subscriber.session is not None
    broker.subscribe(subscriber.session, (Subscription("#", "#", qos=1),))
    broker.in_place(subscriber.session, ("#",), answers.append)
    assert answers == []
    ring.cluster.run(3)
    assert answers == [True]
    assert set(ring.said(Wanted)) == {("b2", name) for name in ring.names if name != "b2"}


def test_a_subscription_that_cannot_be_in_place_says_so() -> None:
    ring = Ring(3, absent_s=1_000.0)
    matching = ring.owner("t")
    here = next(name for name in ring.names if name != matching)
    subscriber = ring.client("s", here)
    ring.cluster.crash(matching)
    answers: list[bool] = []
    subscriber.subscribe("t/#", qos=1)
    assert subscriber.session is not None
    ring.cluster.sites[here].broker.in_place(subscriber.session, [*subscriber.session.subscriptions], answers.append)
    ring.cluster.run(11)
    assert answers == [False]


def test_what_was_granted_is_granted_again_while_its_owner_is_away_and_what_is_new_is_not() -> None:
    ring = Ring(3, absent_s=1_000.0)
    matching = ring.owner("t")
    here = next(name for name in ring.names if name != matching)
    subscriber, broker = ring.client("s", here), ring.cluster.sites[here].broker
    session = subscriber.session
    assert session is not None
    answers: list[bool] = []
    broker.subscribe(session, (Subscription("t/#", "t/#", qos=1),))
    broker.in_place(session, ("t/#",), answers.append)
    ring.cluster.run(3)
    ring.cluster.crash(matching)
    broker.subscribe(session, (Subscription("t/#", "t/#", qos=1),))
    broker.in_place(session, ("t/#",), answers.append)
    assert answers == [True, True]
    broker.subscribe(session, (Subscription("+/x", "+/x", qos=1),))
    broker.in_place(session, ("t/#", "+/x"), answers.append)
    ring.cluster.run(11)
    assert answers == [True, True, False]
    assert broker.withdraw_unplaced(session, ("t/#", "+/x")) == {"+/x"}
    assert [*session.subscriptions] == ["t/#"]


def test_what_is_retained_is_kept_by_its_owner_and_found_wherever_somebody_subscribes() -> None:
    ring = Ring(5, late=2)
    publisher = ring.client("p", "b1")
    for level in "tuvwx":
        publisher.publish(f"{level}/last", b"old", 1, retain=True)
        publisher.publish(f"{level}/last", b"new", 1, retain=True)
        publisher.publish(f"{level}/gone", b"1", 1, retain=True)
        publisher.publish(f"{level}/gone", b"", 1, retain=True)
    ring.cluster.run(5)
    assert all(ring.cluster.sites[name].broker.retained_count <= 10 for name in ring.names[:5])
    assert sum(ring.cluster.sites[name].broker.retained_count for name in ring.names[:5]) == 3 * 10, "and two others"
    for name in ring.names[5:]:
        ring.cluster.start(name)
    ring.cluster.run(10)
    for name in ring.names:
        subscriber = ring.client(f"s-{name}", name)
        subscriber.subscribe("#", qos=1)
        ring.cluster.run(5)
        got = sorted((one.publication.topic, one.publication.payload) for one in subscriber.got)
        assert got == [(f"{level}/last", b"new") for level in "tuvwx"], name


def lasting(client: Client, topics: str = "#", condition: str = "n >= 5") -> None:
    client.subscribe(topics, condition, key="q", qos=2, lasting=Lasting.OVERLAP)


def picture_of(client: Client) -> Picture:
    picture = Picture()
    for delivery in client.got:
        picture.take(delivery)
    assert picture.wrong == []
    return picture


def test_a_lasting_question_is_told_by_the_broker_that_its_client_is_at_whoever_owns_the_things() -> None:
    """Numbers are those of the client's view, one count for all cells: the broker that tells has all that is wanted."""
    ring = Ring(5)
    publishers = [ring.client(f"p{name}", name) for name in ring.names]
    things = [f"{level}/{number}" for level in "tuvwx" for number in range(3)]
    dice, truth = Random(5), dict[str, bytes]()

    def say(topic: str) -> None:
        """The owner of a topic gives the order to what several say of it; here one speaks at a time."""
        n = dice.choice((None, 1, 6, 9))
        payload = b"" if n is None else b'{"n": %d, "at": %d}' % (n, dice.randrange(99))
        dice.choice(publishers).publish(topic, payload, 1, retain=True)
        ring.cluster.run(0.5)
        truth.pop(topic, None)
        if n is not None and n >= 5:
            truth[topic] = payload

    for topic in things:
        say(topic)
    asking = [ring.client(f"s-{name}", name) for name in ring.names]
    for client in asking:
        lasting(client)
    ring.cluster.run(5)
    for client in asking:
        assert picture_of(client).known == truth
    for _ in range(40):
        say(dice.choice(things))
    ring.cluster.run(5)
    for client in asking:
        assert picture_of(client).known == truth
        assert picture_of(client).pending == 0


def test_a_lasting_question_in_a_ring_goes_along_with_its_client_and_says_what_it_will_tell() -> None:
    ring = Ring(5)
    publisher = ring.client("p", "b1")
    for level in "tuvwx":
        publisher.publish(f"{level}/1", b'{"n": 7}', 1, retain=True)
    ring.cluster.run(3)
    asking = ring.client("s", "b2")
    asking.keeps_token = True
    lasting(asking)
    broker, told = ring.cluster.sites["b2"].broker, list[str]()
    before = Granted(Reason.OK, 2, properties=(("lasting-view", ""), ("lasting-matches", "0")))

    def noted(in_place: bool) -> None:
        assert in_place
        told.append(dict(broker.renewed(asking.session, "q", before).properties)["lasting-matches"])

    broker.in_place(asking.session, ["q"], noted)
    ring.cluster.run(3)
    assert told == ["5"]
    assert len(picture_of(asking).known) == 5
    view = picture_of(asking).view
    for number, name in enumerate(("b3", "b4", "b2")):
        asking.drop()
        publisher.publish(f"{'tuv'[number]}/1", b'{"n": 1}', 1, retain=True)
        ring.cluster.run(2)
        asking.connect(name)
        ring.cluster.run(5)
    ring.cluster.run(40)
    assert sorted(picture_of(asking).known) == ["w/1", "x/1"]
    assert picture_of(asking).view == view


def first_after_a_hop_s(fabric: str, handoff: str, *, token: bool) -> float:
    """The longest time from CONNECT to the first event that waited, whichever of three brokers the client goes to."""
    names, found = ["b1", "b2", "b3"], []
    options = StationOptions(fabric=fabric, handoff=handoff, foresight="everybody")  # type: ignore[arg-type]
    cluster = Cluster(names, combinations(names, 2), 1, options)
    cluster.run(8)
    publisher, client = Client(cluster, "p"), Client(cluster, "s")  # type: ignore[arg-type]
    publisher.connect("b1")
    client.keeps_token = token
    client.connect("b1")
    cluster.run(12)
    client.subscribe("t/#", qos=1)
    cluster.run(5)
    for number, to in enumerate(("b2", "b3", "b1", "b3", "b2", "b1")):
        client.drop()
        publisher.publish("t/x", b"%d" % number, 1)
        cluster.run(5)
        client.connect(to)
        begun_s, had = cluster.engine.now, len(client.got)
        while len(client.got) == had and cluster.engine.now < begun_s + 10:
            cluster.run(0.001)
        found.append(cluster.engine.now - begun_s)
        cluster.run(5)
    return max(found)


@pytest.mark.parametrize("token", [True, False])
@pytest.mark.parametrize("handoff", ["reactive", "proactive"])
def test_the_first_event_after_a_hop_takes_at_most_twice_as_long_as_in_a_tree(handoff: str, token: bool) -> None:
    tree = first_after_a_hop_s("tree", handoff, token=token)
    assert first_after_a_hop_s("dht", handoff, token=token) <= 2 * tree


CUT = cut_between((0.0, 0.0), (10.0, 0.0))
NO_FILTER = Filter((AttributeFilter("a", Kind.NUMBER, (Text(TextOp.EQU, "x"),)),))
WRONG = [
    Owned(0, (Region(Cell("01", (CUT,)), "b9", 9),)),
    Owned(0, (Region(Cell("x", (CUT,)), "b9", 9),)),
    Owned(0, (Region(Cell("1", (Boundary(7, 1.0, True),)), "b9", 9),)),
    Owned(0, (Region(Cell("1", (Boundary(0, float("nan"), True),)), "b9", 9),)),
    Enter("b9", (1.0,)),
    Enter("b9", (float("inf"), 1.0)),
    Seek("b9", 1, (Spot((1.0,)),)),
    Seek("b9", 1, (), "2"),
    Wanted(1, (NO_FILTER,)),
    Routed(Publication("p", 1, "a/#")),
    Replica("b9", 1, (Region(Cell("01", (CUT,)), "b9", 9),), (), ()),
    Replica("b9", 1, (), (), (BookEntry("b8", 1, (NO_FILTER,)),)),
    Replica("b9", 1, (), (), (), (Region(Cell("01", (CUT,)), "b9", 9),)),
    Amended(1, BookEntry("b8", 1, (NO_FILTER,))),
]


@pytest.mark.parametrize("content", WRONG, ids=repr)
def test_what_cannot_be_is_refused_before_anybody_acts_on_it(content: Content) -> None:
    items = msgspec.Raw(msgspec.msgpack.encode([(1, True, content)]))
    with pytest.raises(RemoteError, match="no items of a stream"):
        decode_items(Run((), items))


@pytest.mark.feature("data-gathering F6")
def test_who_asks_for_an_area_gets_what_happens_there_also_while_cells_are_divided() -> None:
    """An oracle measures distances itself."""
    ring, dice = Ring(4, late=4, located=("cars/#",)), Random(5)
    areas = {f"s{n}": (dice.uniform(-60, 60), dice.uniform(-170, 170), dice.uniform(500, 4_000)) for n in range(6)}
    subscribers = {}
    for at, (name, (lat, lon, km)) in enumerate(areas.items()):
        subscribers[name] = ring.client(name, ring.names[at % 4])
        subscribers[name].subscribe("cars/#", f"within(lat, lon, {lat:.3f}, {lon:.3f}, {km:.0f}km)", qos=2)
    publishers = [ring.client(f"p{n}", ring.names[n]) for n in range(3)]
    ring.cluster.run(5)
    said: dict[int, tuple[float, float]] = {}
    for number in range(240):
        if number % 50 == 25:
            ring.cluster.start(ring.names[4 + number // 50]) if number // 50 < 4 else None
        place = said[number] = dice.uniform(-80, 80), dice.uniform(-179, 179)
        payload = msgspec.json.encode({"n": number, "lat": place[0], "lon": place[1]})
        publishers[number % 3].publish(f"cars/{number % 5}", payload, 2)
        ring.cluster.run(0.1)
    ring.cluster.run(15)
    assert all(ring.fabric(name).is_member for name in ring.names)
    for name, (lat, lon, km) in areas.items():
        center = round(lat, 3), round(lon, 3)
        wanted = [n for n, place in said.items() if distance_m(*center, *place) <= round(km) * 1000]
        got = sorted(msgspec.json.decode(one.publication.payload)["n"] for one in subscribers[name].got)
        assert got == wanted, name
    books = [len(ring.fabric(name).interests) for name in ring.names]
    assert min(books) < 4, "an area is not asked for everywhere"


@pytest.mark.parametrize("seed", [12, 40, 98, 108, 112, 141, 142, 144])
def test_a_world_that_broke_a_promise_once_does_not_any_more(seed: int) -> None:
    assert Trial(drawn(seed, "dht")).run().findings == []
