"""What a session has had in the sites where it was is told by one number for each stream there."""

from __future__ import annotations

from godwit.protocols.broker.api import Subscription
from godwit.protocols.broker.messages import Stay
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import remembered
from godwit.protocols.broker.session.state import Session
from godwit.protocols.broker.session.stays import STAYS_MAX, grown, has_had, left, unite_stays, withdrawn

LINE = "plant/b1/ff"


def wanting(*topics: str) -> Session:
    session = Session("s", 1)
    for topic in topics:
        sub = remembered(session, Subscription(topic, topic, qos=1), 1)
        assert sub is not None
        session.want(sub)
    return session


def said(topic: str) -> Publication:
    return Publication(publisher="p", sequence=1, topic=topic, payload=b"", time=1.0, qos=1)


def test_it_has_had_what_came_before_it_left_and_nothing_else() -> None:
    session = wanting("a/#")
    session.carried.stays = left((), "plant", {LINE: 7})
    assert has_had(session, (LINE, 7), said("a/x"))
    assert not has_had(session, (LINE, 8), said("a/x")), "that was said after it had left"
    assert not has_had(session, ("plant/b1/fe", 7), said("a/x")), "that is the stream of another disk"
    assert not has_had(session, ("hq/b1/ff", 7), said("a/x"))


def test_what_was_passed_on_since_counts_too() -> None:
    stays = left(left((), "plant", {LINE: 7, "plant/b2/1": 3}), "hq", {"hq/b1/ff": 1})
    assert grown(stays, "plant", {LINE: 9}) == (Stay("plant", {LINE: 9, "plant/b2/1": 3}), stays[1])
    assert grown(stays, "ship", {"ship/b1/1": 9}) == stays, "it was not there"


def test_whoever_leaves_a_site_again_knows_only_the_last_time() -> None:
    stays = left(left(left((), "plant", {LINE: 7}), "hq", {}), "plant", {LINE: 9})
    assert stays == (Stay("hq", {}), Stay("plant", {LINE: 9}))


def test_only_the_last_sites_are_remembered() -> None:
    stays: tuple[Stay, ...] = ()
    for number in range(STAYS_MAX + 3):
        stays = left(stays, f"site{number}", {})
    assert [one.site for one in stays] == [f"site{number}" for number in range(3, STAYS_MAX + 3)]


def test_of_two_sessions_that_become_one_each_has_had_what_it_wanted_itself() -> None:
    session = wanting("a/#", "b/#")
    session.carried.stays = left((), "hq", {"hq/b1/ff": 5})
    unite_stays(session, left((), "plant", {LINE: 7}), [Subscription("b/#", "b/#"), Subscription("c/#", "c/#")])
    session.subscriptions.update(wanting("c/#").subscriptions)
    had = {topic: [has_had(session, name, said(topic)) for name in ((LINE, 7), ("hq/b1/ff", 5))] for topic in "abc"}
    assert had == {"a": [False, True], "b": [True, True], "c": [True, False]}


def test_what_was_given_up_is_remembered_by_stream_and_a_later_word_counts() -> None:
    session = wanting("a/#")
    stays = withdrawn(left((), "plant", {LINE: 7}), {"b3/1": 171, "b4/2": 5})
    session.carried.stays = withdrawn(stays, {"b3/1": 180})
    assert session.carried.stays == (Stay("plant", {LINE: 7}), Stay("", {"b3/1": 180, "b4/2": 5}))
    assert has_had(session, ("b3/1", 180), said("a/x"))
    assert not has_had(session, ("b3/1", 181), said("a/x"))
