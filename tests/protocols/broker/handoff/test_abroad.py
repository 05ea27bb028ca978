"""Sessions cross between sites: once, in order, nothing lost, and at the cost of the path."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from tests.seeds import few
from tests.sim.brokers.lands import Land

from godwit.protocols.broker.api import Reason, Subscription
from godwit.protocols.broker.interest.stated import LINGER_S
from godwit.protocols.broker.messages import Astray, Crossed, Forwarded, Marker, Outlook, Session, Summon
from godwit.protocols.broker.streams.frames import Parcels, decode_items
from godwit.protocols.host import Message, NodeId
from godwit.sim.brokers.roamer import Roamer

CHAIN = "a1-a2 a2-a3 b1-b2 c1-c2 a1-b1 b1-c1"
"""Site B lies between the two others."""

FABRICS = ("sites", "sites-dht")
"""Inside each site a tree, or a ring."""

SAID = (Summon, Session, Marker, Crossed, Astray, Outlook)


class Watch:
    """What is said over uplinks about sessions, and what sites say they want."""

    def __init__(self, land: Land) -> None:
        self.land = land
        self.heard: list[str] = []
        self.forwarded = 0
        self._seen: set[tuple[NodeId, NodeId, int]] = set()
        land.cluster.cables.spy = self._look

    def _look(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if not isinstance(message, Parcels) or self.land.site_of[sender] == self.land.site_of[to]:
            return
        for item in (item for run in message.runs for item in decode_items(run)):
            if (sender, to, item.number) in self._seen:
                continue  # a stream says again what was not confirmed
            self._seen.add((sender, to, item.number))
            self.forwarded += isinstance(item.content, Forwarded)
            if isinstance(item.content, SAID):
                self.heard.append(f"{sender} {to} {type(item.content).__name__}")


def everything_came_once(land: Land, hearer: Roamer) -> None:
    assert sorted(hearer.order) == [*land.said]
    for publisher in {said.publisher for said in land.said.values()}:
        order = [n for n in hearer.order if land.said[n].publisher == publisher]
        assert order == sorted(order), publisher


def sessions_of(land: Land, client: str) -> list[NodeId]:
    return [name for name, machine in land.cluster.sites.items() if machine.up and client in machine.broker.sessions]


def nothing_is_under_way(land: Land) -> None:
    left = {name: machine.broker.unfinished for name, machine in land.cluster.sites.items()}
    assert not any(count for counts in left.values() for count in counts.values()), left


@pytest.mark.feature("content-routing F35")
def test_a_session_crosses_one_uplink_by_these_messages() -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    client, speaker = land.client("s", "a2", "x/#"), land.client("p", "b2")
    client.vanish(goodbye=True)
    land.run(1.0)
    for _ in range(3):
        speaker.speak("x/y", {}, 2)
    land.run(2.0)
    watch = Watch(land)
    client.come("b2")
    land.run(3.0)
    assert watch.heard == [
        "b1 a1 Summon",
        "a1 b1 Session",
        "b1 a1 Outlook",
        "b1 a1 Marker",
        "a1 b1 Crossed",
    ]
    assert watch.forwarded == 3, "what waits goes along, once"
    assert [one.present for one in client.admissions] == [False, True]
    everything_came_once(land, client)


@pytest.mark.feature("content-routing F33")
@pytest.mark.feature("content-routing F35")
@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("seed", few(1, range(3)))
def test_under_load_nothing_is_lost_or_comes_twice_and_the_old_session_is_given_up(seed: int, fabric: str) -> None:
    land = Land(CHAIN, seed, fabric)
    client = land.client("s", "c2", "x/#")
    speakers = [land.client(f"p{at}", at) for at in ("a3", "b2", "c1")]

    def say(times: int) -> None:
        for _ in range(times):
            for speaker in speakers:
                speaker.speak("x/y", {}, 2)
            land.run(0.02)

    say(5)
    for to in ("a3", "b2", "c2", "a1", "b1", "a2"):
        client.vanish()
        say(5)
        client.come(to)
        say(40)
        land.run(3.0)
        assert client.inside
        assert client.admissions[-1].present
        assert sessions_of(land, "s") == [to]
    everything_came_once(land, client)
    nothing_is_under_way(land)


def chain_of(sites: int) -> str:
    letters = "abcdefghijklmnop"[:sites]
    return " ".join([*(f"{one}1-{one}2" for one in letters), *(f"{a}1-{b}1" for a, b in pairwise(letters))])


def star_of(sites: int) -> str:
    letters = "abcdefghijklmnop"[:sites]
    return " ".join([*(f"{one}1-{one}2" for one in letters), *(f"a1-{one}1" for one in letters[1:])])


def cost(links: str, home: NodeId, to: NodeId) -> Counter[str]:
    """What a crossing says over all uplinks of the country, by kind."""
    land = Land(links)
    client = land.client("s", home, "x/#")
    client.vanish(goodbye=True)
    land.run(3.0)
    watch = Watch(land)
    client.come(to)
    land.run(10.0 + LINGER_S)  # its old site forgets after a while what it wanted
    assert client.inside
    assert client.admissions[-1].present
    return Counter(line.split()[2] for line in watch.heard)


@pytest.mark.feature("content-routing F39")
@pytest.mark.parametrize("sites", [3, 6, 12])
def test_a_crossing_costs_the_path_and_not_the_number_of_sites(sites: int) -> None:
    one_uplink = Counter(Summon=1, Session=1, Marker=1, Crossed=1, Outlook=2)
    last = "abcdefghijklmnop"[sites - 1]
    assert cost(chain_of(sites), "a2", "b2") == one_uplink
    assert cost(star_of(sites), "b2", f"{last}2") == Counter({kind: 2 * n for kind, n in one_uplink.items()})
    whole = cost(chain_of(sites), "a2", f"{last}2")
    assert whole == Counter({kind: (sites - 1) * n for kind, n in one_uplink.items()})


def test_while_the_uplink_is_down_the_client_is_told_to_come_again_and_then_gets_its_session() -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    client, speaker = land.client("s", "a2", "x/#"), land.client("p", "a1")
    client.vanish()
    land.cluster.cut("a1", "b1")
    for _ in range(5):
        speaker.speak("x/y", {}, 2)
    client.come("b2")
    land.run(25.0)
    assert not client.inside
    assert Reason.SERVER_BUSY in client.closed
    assert sessions_of(land, "s") == ["a2"]
    land.cluster.heal("a1", "b1")
    land.run(15.0)
    assert client.inside
    assert all(one.present for one in client.admissions[1:])
    everything_came_once(land, client)
    nothing_is_under_way(land)


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("victim", ["a1", "b1", "a2", "b2"])
@pytest.mark.parametrize("after_s", [0.01, 0.03, 0.05, 0.08])
def test_a_crash_in_the_middle_changes_nothing(victim: NodeId, after_s: float, fabric: str) -> None:
    land = Land("a1-a2 a1-b1 b1-b2 a2-a3 b2-b3", fabric=fabric)
    client = land.client("s", "a2", "x/#")
    speakers = [land.client("pa", "a3"), land.client("pb", "b3")]
    client.vanish()
    land.run(1.0)
    for _ in range(10):
        for speaker in speakers:
            speaker.speak("x/y", {}, 2)
    client.come("b2")
    land.run(after_s)
    land.cluster.crash(victim)
    land.run(2.0)
    land.cluster.start(victim)
    for _ in range(10):
        for speaker in speakers:
            speaker.speak("x/y", {}, 2)
    land.run(40.0)
    assert client.inside
    everything_came_once(land, client)
    assert sessions_of(land, "s") == ["b2"]
    nothing_is_under_way(land)


def test_what_a_second_gateway_took_across_before_the_first_heard_of_it_is_not_lost() -> None:
    land = Land("a1-a2 a1-a3 a2-a3 a1-b1 a2-b1 b1-b2")
    client, other = land.client("s", "a1", "x/#"), land.client("t", "b2", "x/#")
    speaker = land.client("p", "a3")
    for name in ("a2", "a3"):
        land.cluster.cut("a1", name)
    land.run(15.0)
    for _ in range(5):
        speaker.speak("x/y", {}, 2)
    land.run(5.0)
    assert other.order == [*land.said], "the second gateway acts"
    assert not client.order
    client.come("b2")
    land.run(5.0)
    for name in ("a2", "a3"):
        land.cluster.heal("a1", name)
    land.run(40.0)
    assert client.inside
    everything_came_once(land, client)
    everything_came_once(land, other)
    nothing_is_under_way(land)


def test_what_is_subscribed_to_while_the_session_arrives_comes_from_its_old_site_too() -> None:
    land = Land("a1-a2 a1-a3 a1-b1 a2-b1 b1-b2")
    client, speaker = land.client("s", "a1", "x/#"), land.client("p", "a1")
    land.cluster.cut("a1", "a3")
    client.come("b1")
    land.run(3.0)
    assert client.inside
    assert land.cluster.sites["b1"].broker.unfinished["crossings"], "a3 has not answered: it arrives"
    client.take_up(Subscription("y/#", "y/#", qos=2))
    land.run(3.0)
    for topic in ("x/1", "y/1"):
        speaker.speak(topic, {}, 2)
    land.run(3.0)
    land.cluster.heal("a1", "a3")
    land.run(20.0)
    everything_came_once(land, client)
    nothing_is_under_way(land)


@pytest.mark.parametrize("seed", [0, 1, 3])
@pytest.mark.parametrize("fabric", FABRICS)
def test_what_the_session_at_the_gateway_has_had_does_not_come_to_a_newer_one(seed: int, fabric: str) -> None:
    land = Land("a1-a2 a1-b1 b1-b2", seed, fabric)
    land.client("t", "b1", "#")  # so that it is wanted in that site
    client, speaker = land.client(f"s{seed}", "a2", "#"), land.client("p", "a1")

    def say() -> None:
        for at in range(8):
            speaker.speak(f"x{at}/y", {}, 2)

    for to in ("b2", "a2"):
        client.come(to)
        land.run(3.0)
    land.cluster.cut("b1", "b2")
    say()
    land.run(0.2)
    assert sorted(client.order) == [*land.said], "it has had them in its site"
    client.come("b1")
    land.run(3.0)
    assert client.admissions[-1].at == "b1"
    say()
    client.come("b2")
    land.run(15.0)
    assert client.admissions[-1].at == "b2"
    assert not client.admissions[-1].present
    land.cluster.heal("b1", "b2")
    land.run(20.0)
    say()
    land.run(20.0)
    assert client.inside
    assert sorted(client.order) == [*land.said]
    nothing_is_under_way(land)


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_broker_that_has_lost_its_disk_hears_of_its_gateway_again(fabric: str) -> None:
    land = Land("a1-a2 a1-b1 b1-b2 b1-b3 b2-b3", fabric=fabric)
    client, speaker = land.client("s", "a2", "x/#"), land.client("p", "a1")
    land.cluster.crash("b2")
    land.run(1.0)
    land.cluster.start("b2", keep_disk=False)
    land.run(10.0)
    client.come("b2")
    land.run(2 * LINGER_S)
    assert client.admissions[-1].present
    assert sessions_of(land, "s") == ["b2"]
    speaker.speak("x/y", {}, 2)
    land.run(10.0)
    everything_came_once(land, client)
    nothing_is_under_way(land)


def test_where_nobody_has_the_session_the_client_gets_a_new_one() -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    client = land.client("s", "a2", "x/#")
    client.vanish()
    land.run(1.0)
    land.cluster.sites["a2"].broker.end_session("s", "by hand")
    land.run(1.0)
    watch = Watch(land)
    client.come("b2")
    land.run(3.0)
    assert [one.present for one in client.admissions] == [False, False]
    assert [line for line in watch.heard if "Outlook" not in line] == ["b1 a1 Summon", "a1 b1 Astray"]
    nothing_is_under_way(land)


def summoned(land: Land, by: NodeId, of: NodeId, at: str, proof: str) -> list[str]:
    """A gateway asks another for the session of `s`, though no client has come to it; what is said of it."""
    watch = Watch(land)
    land.gateway(by).send((of,), Summon("s", at, 0, proof))
    land.run(5.0)
    return [line for line in watch.heard if "Outlook" not in line]


@pytest.mark.parametrize("home", ["a1", "a2"])
@pytest.mark.parametrize("proof", ["", "a guess"])
def test_a_site_gets_no_session_by_its_name(home: NodeId, proof: str) -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    client, speaker = land.client("s", home, "x/#"), land.client("p", "b2")
    assert summoned(land, "b1", "a1", f"A/{home}", proof) == ["b1 a1 Summon", "a1 b1 Astray"]
    speaker.speak("x/y", {}, 2)
    land.run(2.0)
    assert sessions_of(land, "s") == [home]
    assert client.inside
    assert not client.closed, "nobody has disturbed the client"
    everything_came_once(land, client)
    nothing_is_under_way(land)


def test_no_site_gets_a_session_through_another_that_had_it() -> None:
    """The gateway of B remembers the proof of what has left from there, for clients of B; not for C."""
    land = Land(CHAIN)
    client = land.client("s", "b2", "x/#")
    client.come("a2")
    land.run(5.0)
    assert sessions_of(land, "s") == ["a2"]
    said = summoned(land, "c1", "b1", "B/b2", "")
    assert said[-1] == "b1 c1 Astray"
    assert sessions_of(land, "s") == ["a2"]
    assert client.inside
    nothing_is_under_way(land)


def test_a_site_that_had_it_gets_it_back_until_the_client_has_shown_a_newer_token() -> None:
    land = Land("a1-a2 a1-b1 b1-b2")
    client = land.client("s", "b2", "x/#")
    old = land.cluster.sites["b2"].broker.sessions["s"].carried.proofs[-1]
    client.come("a2")
    land.run(5.0)
    client.come("a1")
    land.run(5.0)
    assert sessions_of(land, "s") == ["a1"]
    assert summoned(land, "b1", "a1", "A/a1", old) == ["b1 a1 Summon", "a1 b1 Astray"]
    fresh = land.cluster.sites["a1"].broker.sessions["s"].carried.proofs[-1]
    assert "a1 b1 Session" in summoned(land, "b1", "a1", "A/a1", fresh), "whoever has the token gets it"


def test_an_outdated_proof_is_refused_through_two_gateways_of_the_site_between() -> None:
    land = Land("a1-a2 a1-b1 a2-c1 c1-c2")
    client = land.client("s", "c2", "x/#")
    old = land.cluster.sites["c2"].broker.sessions["s"].carried.proofs[-1]
    for to in ("c1", "c2"):
        client.come(to)
        land.run(5.0)
    said = summoned(land, "b1", "a1", "C/c2", old)
    assert (said[0], said[-1]) == ("b1 a1 Summon", "a1 b1 Astray")
    assert client.inside
    nothing_is_under_way(land)


def test_a_broker_that_is_alone_in_its_site_asks_nobody_and_remembers_nothing() -> None:
    land = Land("a1-b1")
    client = land.client("s", "a1", "x/#")
    for token in ("none", "own"):
        client.come("a1", token=token)
        land.run(5.0)
    assert client.inside
    nothing_is_under_way(land)


@pytest.mark.parametrize("arriving", ["", "b1"])
def test_what_is_sent_to_an_older_session_that_came_from_another_site_is_taken_by_the_newer(arriving: NodeId) -> None:
    land = Land("a1-a2 a1-b1")
    client, speaker = land.client("s", "a1", "x/#", "y/#"), land.client("p", "a2")
    client.want()
    land.run(1.0)
    broker = land.cluster.sites["a1"].broker
    session, moves = broker.sessions["s"], broker._moves
    memory = moves.registry.reunion.remember(session)
    memory.firsts["a2"] = {}  # it has not turned to this one
    session.standing.joined, session.standing.arriving = frozenset({"x/#"}), arriving
    for topic in ("x/1", "y/1", "x/2"):
        speaker.speak(topic, {}, 2)
    land.run(1.0)
    assert [len(items) for items in session.inflow.held.values()] == [2]
    assert client.order == []
    if arriving:
        session.standing.arriving = ""
        broker._switch.release_abroad(session)
    moves.registry.reunion.ask(session, ("a2",), session.subscriptions)
    land.run(1.0)
    assert client.order == [1, 3]
    assert session.inflow.held == {}
