"""A broker of a ring that claims sessions: clients that show their tokens keep theirs, and it is counted and named."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocols.broker.fabric.ring.test_standins import Case, payloads

from godwit.protocols.broker.handoff.objections import OBJECT_S
from godwit.protocols.broker.messages import Content, Fetch, Place, Turn, Turned
from godwit.protocols.broker.session.proofs import proof_of
from godwit.protocols.host import NodeId


class Claimed(Case):
    """The subscriber keeps its tokens, and has come back once."""

    def __init__(self, *, keeps_token: bool = True) -> None:
        super().__init__(6)
        self.subscriber.keeps_token = keeps_token
        for _ in range(2):
            self.subscriber.drop().connect(self.here)
            self.ring.cluster.run(2)
        self.liar = self.ring.others(self.matching, self.here, self.there, *self.holders)[0]
        self.broker = self.ring.cluster.sites[self.here].broker
        self.epoch = self.broker.sessions["s"].standing.epoch

    def lie(self, kind: str) -> None:
        said: dict[str, Content] = {
            "fetch": Fetch("s", self.epoch + 1),
            "place": Place("s", self.epoch + 5),
            "clean": Place("s", self.epoch + 5, clean=True),
            "gone": Place("s", self.epoch + 5, gone=True),
            "guess": Fetch("s", self.epoch + 1, proof="0" * 32),
        }
        to: list[NodeId] = [self.here]
        if kind != "fetch" and kind != "guess":
            to += [name for name in self.ring.fabric(self.here).homes("s") if name not in (self.here, self.liar)]
        for name in to:
            self.ring.fabric(self.liar).send((name,), said[kind])
        self.ring.cluster.run(1)


KINDS = ["fetch", "guess", "place", "clean", "gone"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_comes_back_with_its_token_keeps_its_session_and_the_claim_is_refused(kind: str) -> None:
    case = Claimed()
    case.lie(kind)
    assert case.subscriber.connection is None, "it is told to come back"
    case.subscriber.connect(case.here)
    case.ring.cluster.run(OBJECT_S + 5)
    assert case.broker.sessions["s"].outlet is not None
    assert case.broker.counts.refused["untrue"] >= 1
    assert "s" not in case.ring.cluster.sites[case.liar].broker.sessions
    case.publisher.publish("t/x", b"1", 2)
    case.ring.cluster.run(3)
    assert payloads(case.subscriber) == [b"1"]


def test_a_client_that_comes_back_elsewhere_takes_its_session_along_and_the_claim_is_refused() -> None:
    case = Claimed()
    elsewhere = case.there
    case.lie("fetch")
    case.subscriber.connect(elsewhere)
    case.ring.cluster.run(OBJECT_S + 5)
    assert case.ring.cluster.sites[elsewhere].broker.sessions["s"].outlet is not None
    assert case.broker.counts.refused["untrue"] == 1
    case.publisher.publish("t/x", b"1", 2)
    case.ring.cluster.run(3)
    assert payloads(case.subscriber) == [b"1"]


def test_a_client_that_shows_its_token_elsewhere_is_let_in_at_once_though_its_old_connection_seems_alive() -> None:
    case = Claimed()
    case.subscriber.connect(case.there)
    case.ring.cluster.run(1)
    assert case.ring.cluster.sites[case.there].broker.sessions["s"].outlet is not None
    assert "untrue" not in case.broker.counts.refused


def test_a_client_that_has_lost_its_token_gets_its_session_after_a_while_though_its_old_connection_seems_alive() -> (
    None
):
    case = Claimed()
    case.publisher.publish("t/x", b"1", 2)
    case.ring.cluster.run(2)
    case.subscriber.token = ""
    case.subscriber.connect(case.there)
    case.ring.cluster.run(OBJECT_S + 3)
    assert case.ring.cluster.sites[case.there].broker.sessions["s"].outlet is not None
    assert "s" not in case.broker.sessions
    assert "untrue" not in case.broker.counts.refused
    case.publisher.publish("t/x", b"2", 2)
    case.ring.cluster.run(3)
    assert payloads(case.subscriber)[-1] == b"2"


def test_a_client_that_shows_no_tokens_is_let_in_at_once_as_ever() -> None:
    case = Claimed(keeps_token=False)
    case.subscriber.connect(case.there)
    case.ring.cluster.run(1)
    assert case.ring.cluster.sites[case.there].broker.sessions["s"].outlet is not None


def test_a_client_that_starts_clean_elsewhere_and_comes_back_with_nothing_is_let_into_the_newer_session() -> None:
    """Not into the one that ends for it three seconds later, with what the client has said there meanwhile."""
    case = Claimed()
    client = case.subscriber
    client.keeps_token = False
    client.connect(case.there, clean=True)
    case.ring.cluster.run(0.3)
    assert case.broker.unfinished["claims"] == 1
    client.drop().connect(case.here)
    case.ring.cluster.run(0.5)
    assert client.presents[-2:] == [False, True]
    client.subscribe("t/#", qos=2)
    case.ring.cluster.run(OBJECT_S + 2)
    assert client.inside, "nobody ends its connection"
    client.drop().connect(case.here)
    case.ring.cluster.run(1)
    case.publisher.publish("t/x", b"1", 2)
    case.ring.cluster.run(3)
    assert payloads(client) == [b"1"]


def test_a_client_that_comes_back_with_nothing_does_not_object_and_keeps_its_session_all_the_same() -> None:
    """It goes to where it is claimed, and comes from there at once."""
    case = Claimed()
    case.lie("fetch")
    case.subscriber.token = ""
    case.subscriber.connect(case.here)
    case.ring.cluster.run(1)
    assert case.subscriber.inside
    case.publisher.publish("t/x", b"1", 2)
    case.ring.cluster.run(OBJECT_S + 2)
    assert case.subscriber.inside
    assert payloads(case.subscriber) == [b"1"]
    assert "untrue" not in case.broker.counts.refused
    assert not any(case.broker.unfinished.values())


def test_a_client_that_starts_clean_with_nothing_to_show_does_not_object() -> None:
    case = Claimed()
    case.lie("fetch")
    case.subscriber.connect(case.here, clean=True)
    case.ring.cluster.run(OBJECT_S + 2)
    assert case.subscriber.inside
    assert case.subscriber.presents[-1] is False
    assert "s" not in case.ring.cluster.sites[case.liar].broker.sessions
    assert not any(case.broker.unfinished.values())


def test_while_a_session_may_still_go_whoever_asks_for_older_ones_is_to_ask_again() -> None:
    """Else it would believe that there are none, and take what it has had once more when the session comes."""
    case = Claimed()
    for name in (case.here, *case.ring.fabric(case.here).homes("s")):
        if name != case.liar:
            case.ring.fabric(case.liar).send((name,), Place("s", case.epoch + 5))
    case.ring.cluster.run(0.5)
    case.ring.fabric(case.liar).send((case.here,), Turn("s", 7, case.liar, 0))
    case.ring.cluster.run(0.5)
    answers = [one for origin, _, one in case.ring.heard if isinstance(one, Turned) and origin == case.here]
    assert answers[-1].passed_to == case.here


def test_a_broker_that_was_refused_hears_where_the_session_is() -> None:
    """It may be honest: a client knocked there, went back before it was let in, and got a session all the same."""
    case = Claimed()
    case.lie("place")
    case.subscriber.connect(case.here)
    case.ring.cluster.run(OBJECT_S + 1)
    said = [one for origin, to, one in case.ring.heard if isinstance(one, Place) and to == case.liar]
    assert said[-1].epoch > case.epoch + 5


def test_tokens_of_a_ring_have_a_secret() -> None:
    case = Claimed()
    secrets: Any = case.broker.sessions["s"].carried.proofs
    assert proof_of(case.subscriber.token) == secrets[-1]
    assert len(secrets[-1]) == 32


def test_to_object_to_one_claim_is_not_to_object_to_the_next_of_the_same_broker() -> None:
    """The client comes back, goes on to the broker that claimed, and starts clean there (`dht` 1000152)."""
    case = Claimed()
    case.lie("place")
    case.subscriber.connect(case.here)
    case.ring.cluster.run(0.5)
    epoch = case.broker.sessions["s"].standing.epoch
    case.ring.fabric(case.liar).send((case.here,), Place("s", epoch + 5, clean=True))
    case.ring.cluster.run(OBJECT_S + 2)
    assert "s" not in case.broker.sessions


def test_a_claim_outlives_a_crash_before_it_is_decided() -> None:
    """Who claims a session says so once; nobody would say it again (`dht` 1000516)."""
    case = Claimed()
    case.ring.fabric(case.liar).send((case.here,), Place("s", case.epoch + 5, clean=True))
    case.ring.cluster.run(1)
    case.ring.cluster.crash(case.here)
    case.ring.cluster.start(case.here)
    case.ring.cluster.run(2)
    assert "s" not in case.ring.cluster.sites[case.here].broker.sessions


def test_a_session_that_is_claimed_begins_anew_when_its_client_is_back() -> None:
    """So it remembers what the client gets from then on: another one may have the same, and go into it."""
    case = Claimed()
    case.lie("place")
    case.subscriber.connect(case.here)
    case.ring.cluster.run(0.5)
    assert case.broker.sessions["s"].carried.age > (case.epoch + 5, case.liar)
