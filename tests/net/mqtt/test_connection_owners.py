"""A session belongs to the user who made it, wherever it is."""

from __future__ import annotations

from collections.abc import Iterator

import mqtt5
import pytest
from tests.net.mqtt.saying import codes, drop, publish, subscribe
from tests.net.mqtt.serving import Raw, Served, served

from godwit.filters.filters import FilterSet
from godwit.net.access import Admitted, Credentials, session_name, user_of
from godwit.protocols.broker import topics
from godwit.protocols.broker.api import ALL, Grant, Limits

KEPT = {"clean_start": False, "session_expiry_interval": 3_600}


def only(*patterns: str) -> FilterSet:
    return FilterSet(tuple(topics.meaning(pattern) for pattern in patterns))


GRANTS = {"": ALL, "owner": ALL, "thief": Grant(None, only("junk/#"))}


def admit(who: Credentials) -> Admitted:
    user = who.user or ""
    return Admitted(user, GRANTS[user], Limits())


@pytest.fixture
def broker() -> Iterator[Served]:
    with served(authenticate=admit) as running:
        yield running


def client(broker: Served, name: str, user: str | None, **said: object) -> tuple[Raw, mqtt5.ConnAckPacket]:
    raw = Raw(broker.port)
    return raw, raw.connect(name, username=user, **said)  # type: ignore[arg-type]


def leave_something_for_the_owner(broker: Served, qos: int = 1) -> None:
    owner, _ = client(broker, "van-7", "owner", **KEPT)
    owner.send(subscribe("fleet/#"))
    assert codes(owner) == [2]
    owner.socket.close()
    broker.until(lambda: broker.broker.sessions["owner/van-7"].outlet is None)
    other, _ = client(broker, "other", "owner")
    other.send(publish("fleet/secret", b"x", qos=qos, number=1))
    assert isinstance(other.packet(), mqtt5.PubAckPacket if qos == 1 else mqtt5.PubRecPacket)


def test_another_user_with_the_same_client_id_gets_nothing_of_it(broker: Served) -> None:
    leave_something_for_the_owner(broker)
    for user in ("thief", None):
        thief, answer = client(broker, "van-7", user, **KEPT)
        assert not answer.session_present
        thief.send(b"\xc0\0")
        assert isinstance(thief.packet(), mqtt5.PingRespPacket)
    owner, answer = client(broker, "van-7", "owner", **KEPT)
    assert answer.session_present
    assert isinstance(owner.packet(), mqtt5.PublishPacket)


def test_what_waits_is_held_to_the_grant_of_the_day(broker: Served) -> None:
    leave_something_for_the_owner(broker)
    GRANTS["owner"] = Grant(None, only("junk/#"))
    try:
        owner, answer = client(broker, "van-7", "owner", **KEPT)
    finally:
        GRANTS["owner"] = ALL
    assert answer.session_present
    owner.send(b"\xc0\0")
    assert isinstance(owner.packet(), mqtt5.PingRespPacket)
    assert broker.ask(lambda: broker.broker.sessions["owner/van-7"].subscriptions) == {}


@pytest.mark.parametrize("qos", [1, 2])
def test_what_is_under_way_is_held_to_the_grant_of_the_day(broker: Served, qos: int) -> None:
    """It was sent and not acknowledged: with the same grant it comes again, with a smaller one it does not."""
    leave_something_for_the_owner(broker, qos)
    for grant, again in ((ALL, True), (ALL, True), (Grant(None, only("junk/#")), False), (ALL, False)):
        GRANTS["owner"] = grant
        try:
            owner, answer = client(broker, "van-7", "owner", **KEPT)
        finally:
            GRANTS["owner"] = ALL
        assert answer.session_present
        owner.send(subscribe("junk/#"), publish("junk/later", b"x", qos=2, number=1))
        while not isinstance(found := owner.packet(), mqtt5.PublishPacket):
            pass
        assert found.topic == ("fleet/secret" if again else "junk/later")
        drop(broker, owner, "owner/van-7")


def test_rights_end_when_they_are_taken_for_who_is_connected_and_who_is_away(broker: Served) -> None:
    leave_something_for_the_owner(broker)
    present, _ = client(broker, "desk", "owner", **KEPT)
    stays, _ = client(broker, "mine", None, **KEPT)

    def rights(session: str) -> tuple[Grant, Limits] | None:
        return None if user_of(session) == "owner" else (ALL, Limits())

    broker.ask(lambda: broker.broker.review(rights))
    goodbye = present.packet()
    assert isinstance(goodbye, mqtt5.DisconnectPacket)
    assert int(goodbye.reason_code) == 0x87
    assert set(broker.ask(lambda: list(broker.broker.sessions))) == {"mine"}
    stays.send(b"\xc0\0")
    assert isinstance(stays.packet(), mqtt5.PingRespPacket)


def test_no_two_owners_have_sessions_of_one_name() -> None:
    words = ("", "a", "b", "a/b", "/a", "a/", "/", "a/a", "//")
    names = {(user, client): session_name(user, client) for user in ("", "a", "b") for client in words if client}
    assert len(set(names.values())) == len(names)
    assert all(user_of(name) == user for (user, _), name in names.items())
