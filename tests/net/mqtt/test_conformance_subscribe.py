"""MQTT 5.0, sections 3.8 to 3.11, 4.7 and 4.8: subscriptions, topic filters and shared subscriptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import mqtt5
import pytest
from tests.net.mqtt.saying import (
    MALFORMED,
    PROTOCOL_ERROR,
    codes,
    connected,
    drop,
    goodbye,
    heard,
    listening,
    packet,
    pings,
    publish,
    subscribe,
    text,
    unsubscribe,
)
from tests.net.mqtt.serving import Raw, Served, served

REFUSED = 0x8F
DEEP = "/".join("a" * 201)
"""A topic filter as MQTT has them, and deeper than this broker takes."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture
def client(broker: Served) -> Iterator[Raw]:
    with connected(broker, "subscriber") as raw:
        yield raw


@pytest.mark.mqtt("MQTT-3.8.3-1", "MQTT-3.10.3-1")
@pytest.mark.parametrize("first", [0x82, 0xA2])
def test_topic_filters_must_be_text(client: Raw, first: int) -> None:
    client.send(packet(first, b"\0\1\0" + text(b"\xff") + (b"\0" if first == 0x82 else b"")))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-3.8.3-2", "MQTT-3.10.3-2")
@pytest.mark.parametrize("first", [0x82, 0xA2])
def test_a_request_without_topic_filters_is_a_protocol_error(client: Raw, first: int) -> None:
    client.send(packet(first, b"\0\1\0"))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.8.3-3")
def test_no_local_keeps_own_publications_away(broker: Served, client: Raw) -> None:
    with connected(broker, "other") as other:
        client.send(subscribe("local", options=0b100))
        codes(client)
        client.send(publish("local", b"mine"))
        assert pings(client)
        other.send(publish("local", b"yours"))
        assert heard(client).payload == b"yours"


@pytest.mark.mqtt("MQTT-3.8.3-4")
def test_no_local_on_a_shared_subscription_is_a_protocol_error(client: Raw) -> None:
    client.send(subscribe("$share/g/a", options=0b100))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.8.3-5")
@pytest.mark.parametrize("options", [0b01000000, 0b10000000, 0b11])
def test_reserved_options_are_malformed(client: Raw, options: int) -> None:
    client.send(subscribe("a", options=options))
    assert goodbye(client) in (MALFORMED, PROTOCOL_ERROR)


@pytest.mark.mqtt("MQTT-3.8.4-1", "MQTT-3.8.4-5", "MQTT-3.8.4-6", "MQTT-3.8.4-7", "MQTT-3.9.3-1", "MQTT-3.9.3-2")
def test_each_topic_filter_has_its_answer_in_its_place(client: Raw) -> None:
    wishes = b"".join(text(name) + bytes((qos,)) for name, qos in (("a", 0), (DEEP, 1), ("c", 1), ("d", 2)))
    client.send(packet(0x82, b"\0\1\0" + wishes))
    assert codes(client) == [0, REFUSED, 1, 2]


@pytest.mark.mqtt("MQTT-3.8.4-3")
def test_the_same_topic_filter_replaces_the_subscription(client: Raw) -> None:
    client.send(subscribe("same", options=2), subscribe("same", options=0, number=2))
    assert [codes(client), codes(client)] == [[2], [0]]
    client.send(publish("same", b"x", 1, 1))
    found = [client.packet(), client.packet()]
    (delivery,) = [one for one in found if isinstance(one, mqtt5.PublishPacket)]
    assert int(delivery.qos) == 0
    assert pings(client)


@pytest.mark.mqtt("MQTT-3.8.4-4")
@pytest.mark.parametrize("options", [1, 0b100001, 2])
def test_replacing_a_subscription_loses_nothing(broker: Served, client: Raw, options: int) -> None:
    """Neither what waits for the client nor what is published meanwhile."""
    with listening(broker, "replacing", "replaced", options=1, receive_max=1) as listener:
        for number in range(1, 6):
            client.send(publish("replaced", b"%d" % number, 1, number))
            client.packet()
        listener.send(subscribe("replaced", options=options, number=2))
        for number in range(6, 11):
            client.send(publish("replaced", b"%d" % number, 1, number))
            client.packet()
        found: list[int] = []
        while len(found) < 10:
            said = listener.packet()
            if isinstance(said, mqtt5.PublishPacket):
                found.append(int(said.payload))
                listener.send(packet(0x40, (said.packet_id or 0).to_bytes(2, "big")))
        assert found == list(range(1, 11))


@pytest.mark.mqtt("MQTT-3.8.4-8")
@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
def test_a_delivery_has_the_lower_qos(broker: Served, client: Raw, published: int, granted: int) -> None:
    with listening(broker, "lower", "lower", options=granted) as listener:
        client.send(publish("lower", b"x", published, 1 if published else None))
        assert int(heard(listener).qos) == min(published, granted)


@pytest.mark.mqtt("MQTT-3.3.4-2", "MQTT-3.3.4-3", "MQTT-3.3.4-4")
def test_overlapping_subscriptions_give_one_delivery_at_the_highest_qos_with_all_identifiers(
    broker: Served, client: Raw
) -> None:
    with connected(broker, "overlap") as listener:
        listener.send(subscribe("over/#", options=0, properties=b"\x0b\x07"))
        listener.send(subscribe("over/+", options=2, number=2, properties=b"\x0b\x08"))
        codes(listener)
        codes(listener)
        client.send(publish("over/x", b"x", 2, 1), publish("end", b""))
        found = heard(listener)
        assert int(found.qos) == 2
        assert sorted(found.subscription_ids) == [7, 8]
        assert pings(listener)


@pytest.mark.mqtt("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-4", "MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2")
def test_unsubscribing_ends_exactly_what_it_names(client: Raw) -> None:
    client.send(subscribe("u/a", "u/+"), unsubscribe("u/+", "u/b", "u/A", number=2))
    codes(client)
    assert codes(client) == [0, 17, 17]
    client.send(publish("u/b", b"no"), publish("u/a", b"yes"))
    assert heard(client).payload == b"yes"


@pytest.mark.mqtt("MQTT-3.11.2-1", "MQTT-3.11.2-2")
def test_an_answer_to_unsubscribing_has_no_words(client: Raw) -> None:
    client.send(unsubscribe("never", number=7))
    assert client.raw() == packet(0xB0, b"\0\7\0\x11")


@pytest.mark.mqtt("MQTT-3.10.4-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_delivery_that_has_begun_is_completed_after_unsubscribing(broker: Served, client: Raw, qos: int) -> None:
    with listening(broker, "leaving", "leaving", session_expiry_interval=100) as first:
        client.send(publish("leaving", b"x", qos, 1))
        number = heard(first).packet_id
        first.send(unsubscribe("leaving"))
        assert codes(first) == [0]
        drop(broker, first, "leaving")
    with Raw(broker.port) as second:
        second.connect("leaving", clean_start=False)
        assert heard(second).packet_id == number


@pytest.mark.mqtt("MQTT-4.7.1-1", "MQTT-4.7.1-2", "MQTT-4.7.3-1", "MQTT-4.8.2-1", "MQTT-4.8.2-2")
@pytest.mark.parametrize("ask", [subscribe, unsubscribe])
@pytest.mark.parametrize(
    "pattern",
    ["", "a#", "#/a", "a/#/b", "a+", "+a/b", "$share//a", "$share/+/a", "$share/g#/a", "$share/g", "$share/g/"],
)
def test_what_is_no_topic_filter_is_malformed(client: Raw, ask: Callable[..., bytes], pattern: str) -> None:
    """Reason 0x8F is for topic filters that are correctly formed (3.9.3, table 3-8)."""
    client.send(ask("right", pattern))
    assert goodbye(client) == MALFORMED


@pytest.mark.parametrize("pattern", [DEEP, "$filter/pm25 >/a", "$filter/pm25 > 1/$share/g/a"])
def test_what_is_one_and_is_not_taken_is_refused_and_the_connection_stays(client: Raw, pattern: str) -> None:
    client.send(subscribe(pattern))
    assert codes(client) == [REFUSED]
    assert pings(client)


@pytest.mark.mqtt("MQTT-4.7.1-1", "MQTT-4.7.1-2")
@pytest.mark.parametrize(
    ("pattern", "topic", "matches"),
    [
        ("m/#", "m", True),
        ("m/#", "m/a/b", True),
        ("m/+", "m/a", True),
        ("m/+", "m/a/b", False),
        ("m/+", "m", False),
        ("+/m", "/m", True),
        ("/+", "/m", True),
        ("+", "/m", False),
        ("m/+/c", "m//c", True),
        ("M", "m", False),
        ("m", "m/", False),
    ],
)
def test_topic_filters_match_as_the_standard_says(client: Raw, pattern: str, topic: str, matches: bool) -> None:
    client.send(subscribe(pattern, "the/end"))
    codes(client)
    client.send(publish(topic, b"x"), publish("the/end"))
    assert heard(client).topic == (topic if matches else "the/end")


@pytest.mark.mqtt("MQTT-4.7.2-1")
@pytest.mark.parametrize("pattern", ["#", "+/monitor", "+/#"])
def test_wildcards_at_the_start_leave_topics_with_a_dollar_alone(broker: Served, client: Raw, pattern: str) -> None:
    with listening(broker, "dollar", pattern, "the/end") as listener:
        client.send(publish("$own/monitor", b"x"), publish("the/end", b"end"))
        assert heard(listener).payload == b"end"


@pytest.mark.mqtt("MQTT-4.7.3-3")
def test_a_topic_may_have_as_many_bytes_as_can_be_said(client: Raw) -> None:
    topic = "x" * 65_535
    client.send(subscribe(topic))
    assert codes(client) == [2]
    client.send(publish(topic, b"x"))
    assert heard(client).topic == topic


@pytest.mark.mqtt("MQTT-4.8.2-3")
def test_members_of_a_group_get_their_share_at_their_qos(broker: Served, client: Raw) -> None:
    with (
        listening(broker, "m0", "$share/crew/work", options=0) as lazy,
        listening(broker, "m1", "$share/crew/work", options=1) as keen,
    ):
        for number in range(1, 11):
            client.send(publish("work", b"%d" % number, 1, number))
            client.packet()
        shares: list[list[mqtt5.PublishPacket]] = [[], []]
        # What leaves at QoS 0 leaves once the disk has it, which its publisher may hear of a little earlier.
        enough_s = time.monotonic() + 20
        while sum(map(len, shares)) < 10 and time.monotonic() < enough_s:
            for one, share in zip((lazy, keen), shares, strict=True):
                one.send(b"\xc0\0")
                share += _until_pong(one)
        assert sorted(int(one.payload) for share in shares for one in share) == list(range(1, 11))
        assert [{int(one.qos) for one in share} for share in shares] == [{0}, {1}]


def _until_pong(client: Raw) -> Iterator[mqtt5.PublishPacket]:
    while isinstance(found := client.packet(), mqtt5.PublishPacket):
        yield found


@pytest.mark.mqtt("MQTT-4.8.2-4")
def test_qos_2_of_a_group_is_completed_with_the_member_that_began_it(broker: Served, client: Raw) -> None:
    with listening(broker, "member", "$share/two/task", session_expiry_interval=100) as first:
        client.send(publish("task", b"x", 2, 1))
        number = heard(first).packet_id
        with listening(broker, "other", "$share/two/task") as other:
            drop(broker, first, "member")
            assert pings(other)
            with Raw(broker.port) as second:
                second.connect("member", clean_start=False)
                assert heard(second).packet_id == number


@pytest.mark.mqtt("MQTT-4.8.2-5")
def test_qos_2_that_a_member_may_have_goes_to_nobody_else_when_its_session_ends(broker: Served, client: Raw) -> None:
    with listening(broker, "ending", "$share/four/duty") as first:
        client.send(publish("duty", b"x", 2, 1))
        assert heard(first).payload == b"x"
        with listening(broker, "other", "$share/four/duty") as other:
            drop(broker, first, "ending")
            broker.until(lambda: "ending" not in broker.broker.sessions)
            assert pings(other)


@pytest.mark.mqtt("MQTT-4.8.2-6")
def test_what_a_member_refuses_goes_to_nobody_else(broker: Served, client: Raw) -> None:
    with listening(broker, "picky", "$share/three/task", options=1) as picky:
        client.send(publish("task", b"x", 1, 1))
        number = heard(picky).packet_id or 0
        with listening(broker, "other", "$share/three/task", options=1) as other:
            picky.send(packet(0x40, number.to_bytes(2, "big") + b"\x83"))
            assert pings(picky)
            assert pings(other)
