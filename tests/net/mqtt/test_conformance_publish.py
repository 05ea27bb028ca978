"""MQTT 5.0, sections 3.3 to 3.7, 4.3, 4.4, 4.6 and 4.9: publications, their handshakes and their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mqtt5
import pytest
from tests.net.mqtt.saying import (
    MALFORMED,
    PROTOCOL_ERROR,
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
)
from tests.net.mqtt.serving import Raw, Served, served

from godwit.filters.text import parse
from godwit.net.access import Admitted, Credentials
from godwit.net.mqtt.options import Options
from godwit.protocols.broker.api import ALL, Grant, Limits

KEPT: dict[str, Any] = {"session_expiry_interval": 100}


def admit(who: Credentials) -> Admitted:
    """`bound` may publish only what is warm."""
    grant = Grant(publish=parse("kind = 'warm'")) if who.user == "bound" else ALL
    return Admitted(who.user or "", grant, Limits())


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(Options(topic_alias_max=3, inflight_max=20), admit) as running:
        yield running


@pytest.fixture
def client(broker: Served) -> Iterator[Raw]:
    with connected(broker, "publisher") as raw:
        yield raw


def again(broker: Served, name: str, **said: object) -> Raw:
    """The client is back and its session was kept."""
    raw = Raw(broker.port)
    assert raw.connect(name, clean_start=False, **KEPT, **said).session_present
    return raw


def acknowledged(client: Raw, *numbers: int) -> None:
    for number in numbers:
        assert client.packet() == mqtt5.PubAckPacket(number)


@pytest.mark.mqtt("MQTT-3.3.1-1", "MQTT-4.4.0-1", "MQTT-4.3.2-2", "MQTT-4.3.2-3", "MQTT-4.3.3-2", "MQTT-4.3.3-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_acknowledged_goes_again_with_its_number(broker: Served, client: Raw, qos: int) -> None:
    first = listening(broker, "again", "again", **KEPT)
    client.send(publish("again", b"x", qos, 1))
    client.packet()
    sent = heard(first)
    assert (int(sent.qos), sent.duplicate) == (qos, False)
    assert pings(first)
    drop(broker, first, "again")
    with again(broker, "again") as second:
        repeated = heard(second)
        assert (repeated.packet_id, repeated.duplicate, repeated.payload) == (sent.packet_id, True, b"x")
        assert pings(second)


@pytest.mark.mqtt("MQTT-4.4.0-1", "MQTT-4.6.0-5")
def test_what_goes_again_goes_in_its_order(broker: Served, client: Raw) -> None:
    """Some acknowledged in between, some only received; nothing that was acknowledged comes again."""
    first = listening(broker, "line", "line", **KEPT)
    for number in range(1, 13):
        client.send(publish("line", b"%d" % number, 1 + number % 2, number))
        client.packet()
    sent = [heard(first) for _ in range(12)]
    numbers = {int(one.payload): one.packet_id or 0 for one in sent}
    first.send(*(packet(0x40, numbers[number].to_bytes(2, "big")) for number in (2, 6, 10)))
    first.send(*(packet(0x50, numbers[number].to_bytes(2, "big")) for number in (1, 7)))
    assert [first.raw()[0] for _ in range(2)] == [0x62, 0x62]
    drop(broker, first, "line")
    with again(broker, "line") as second:
        said = [second.packet() for _ in range(9)]
        again_said = [int(one.payload) for one in said if isinstance(one, mqtt5.PublishPacket)]
        released = {one.packet_id for one in said if isinstance(one, mqtt5.PubRelPacket)}
        assert again_said == [3, 4, 5, 8, 9, 11, 12]
        assert released == {numbers[1], numbers[7]}
        assert [one.packet_id for one in said if isinstance(one, mqtt5.PublishPacket)] == [
            numbers[number] for number in again_said
        ]
        assert pings(second)


@pytest.mark.mqtt("MQTT-3.3.1-3")
def test_a_repetition_from_the_publisher_is_none_for_the_subscriber(broker: Served, client: Raw) -> None:
    with listening(broker, "fresh", "fresh") as listener:
        client.send(publish("fresh", b"x", 1, 1, duplicate=True))
        assert not heard(listener).duplicate


@pytest.mark.mqtt("MQTT-3.3.1-4")
def test_qos_3_is_malformed(client: Raw) -> None:
    client.send(packet(0x36, text("a") + b"\0\1\0"))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-3.3.1-5", "MQTT-3.3.1-6", "MQTT-3.3.1-7", "MQTT-3.3.1-8")
def test_the_last_retained_publication_is_kept_until_it_is_cleared(broker: Served, client: Raw) -> None:
    client.send(publish("last", b"1", retain=True), publish("last", b"2", retain=True), publish("last", b"3"))
    with listening(broker, "late", "last") as late:
        found = heard(late)
        assert (found.payload, found.retain) == (b"2", True)
    with listening(broker, "live", "last") as live:
        heard(live)
        client.send(publish("last", b"", retain=True))
        assert heard(live).payload == b""
    with listening(broker, "later", "last") as later:
        client.send(publish("last", b"end"))
        assert heard(later).payload == b"end"


@pytest.mark.mqtt("MQTT-3.3.1-9", "MQTT-3.3.1-10", "MQTT-3.3.1-11", "MQTT-3.8.4-4")
@pytest.mark.parametrize(("handling", "first", "second"), [(0, True, True), (1, True, False), (2, False, False)])
def test_retained_publications_come_as_the_subscription_says(
    broker: Served, client: Raw, handling: int, first: bool, second: bool
) -> None:
    topic = f"handling/{handling}"
    client.send(publish(topic, b"kept", retain=True))
    assert pings(client)
    with connected(broker, "handling") as listener:
        for expected in (first, second):
            listener.send(subscribe(topic, options=handling << 4))
            listener.packet()
            client.send(publish(topic, b"end"))
            if expected:
                assert heard(listener).payload == b"kept"
            assert heard(listener).payload == b"end"


@pytest.mark.mqtt("MQTT-3.3.1-12", "MQTT-3.3.1-13")
def test_retain_is_passed_on_only_where_asked_for(broker: Served, client: Raw) -> None:
    with (
        listening(broker, "plain", "rap", options=0) as plain,
        listening(broker, "as-published", "rap", options=0b1000) as as_published,
    ):
        client.send(publish("rap", b"x", retain=True), publish("rap", b"y"))
        assert [heard(plain).retain for _ in range(2)] == [False, False]
        assert [heard(as_published).retain for _ in range(2)] == [True, False]
    client.send(publish("rap", b"", retain=True))


@pytest.mark.mqtt("MQTT-3.3.2-2", "MQTT-4.7.0-1")
@pytest.mark.parametrize("topic", ["#", "a/#", "a/+/b", "+", "a+"])
def test_a_topic_name_has_no_wildcards(client: Raw, topic: str) -> None:
    client.send(packet(0x30, text(topic) + b"\0"))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-4.7.3-1")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_topic_name_has_at_least_one_character(client: Raw, qos: int) -> None:
    number = b"\0\1" if qos else b""
    client.send(packet(0x30 | qos << 1, text("") + number + b"\0"))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-4.7.3-1")
def test_a_will_and_a_response_have_a_topic(broker: Served, client: Raw) -> None:
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, text("MQTT") + b"\5\6\0\0\0" + text("c") + b"\0" + text("") + text("x")))
        assert raw.raw()[:1] in (b"", b"\x20")
        assert raw.is_closed()
    client.send(packet(0x30, text("a") + b"\3\x08" + text("")))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt(
    "MQTT-3.3.2-3",
    "MQTT-3.3.2-15",
    "MQTT-3.3.2-16",
    "MQTT-3.3.2-17",
    "MQTT-3.3.2-18",
    "MQTT-3.3.2-20",
)
def test_what_is_said_beside_the_payload_is_passed_on_as_it_is(broker: Served, client: Raw) -> None:
    rich: dict[str, Any] = {
        "payload_format_indicator": 1,
        "response_topic": "answer/here",
        "correlation_data": b"\0\xff",
        "content_type": "text/plain",
        "user_properties": [("b", "1"), ("a", "2"), ("b", "1")],
    }
    with listening(broker, "rich", "rich/+") as listener:
        client.send(publish("rich/x", b"words", **rich))
        found = heard(listener)
        assert found.topic == "rich/x"
        assert {name: getattr(found, name) for name in rich} == rich


@pytest.mark.mqtt("MQTT-3.3.2-4")
@pytest.mark.parametrize("said", [b"", b"\1\0", b"\1\1"])
def test_the_payload_format_indicator_is_passed_on_whatever_way_a_publication_takes(
    broker: Served, client: Raw, said: bytes
) -> None:
    """At each QoS, while a client is away, as the last retained one, and as a will: absent, 0 or 1, as it was."""
    properties = bytes((len(said),)) + said
    away = listening(broker, "format", "format/#", **KEPT)
    for qos in (0, 1, 2):
        number = bytes((0, qos)) if qos else b""
        client.send(packet(0x30 | qos << 1, text(f"format/{qos}") + number + properties + b"x"))
        delivered = away.raw()
        assert delivered[2 + len(text("format/0")) + (2 if qos else 0) :] == properties + b"x"
        if qos:
            client.packet()
    drop(broker, away, "format")
    client.send(packet(0x35, text("format/kept") + b"\0\7" + properties + b"x"))
    client.packet()
    will = b"\x0e\0\0\0" + text("mortal") + properties + text("format/will") + text("x")
    with Raw(broker.port) as mortal:
        mortal.send(packet(0x10, text("MQTT") + b"\5" + will))
        mortal.packet()
        drop(broker, mortal, "mortal")
    with again(broker, "format") as back, listening(broker, "late", "format/kept", options=0) as late:
        endings = [back.raw() for _ in range(4)] + [late.raw()]
        assert all(one.endswith(properties + b"x") for one in endings), endings
    client.send(publish("format/kept", b"", retain=True))
    connected(broker, "format").socket.close()


@pytest.mark.mqtt("MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_a_publication_expires_while_it_waits(broker: Served, client: Raw) -> None:
    drop(broker, listening(broker, "waits", "waits", **KEPT), "waits")
    client.send(
        publish("waits", b"short", 1, 1, message_expiry_interval=1),
        publish("waits", b"long", 1, 2, message_expiry_interval=100),
    )
    acknowledged(client, 1, 2)
    first = broker.ask(lambda: next(iter(broker.broker.sessions["waits"].queue.waiting)).publication)
    broker.until(lambda: broker.broker.clock() > (first.expires or 0))
    with again(broker, "waits") as listener:
        found = heard(listener)
        assert found.payload == b"long"
        assert found.message_expiry_interval is not None
        assert 0 < found.message_expiry_interval < 100


@pytest.mark.mqtt("MQTT-3.3.2-7")
def test_topic_aliases_end_with_the_connection(broker: Served) -> None:
    with connected(broker, "alias", **KEPT) as raw:
        raw.send(publish("alias", b"x", topic_alias=1))
        assert pings(raw)
        drop(broker, raw, "alias")
    with again(broker, "alias") as raw:
        raw.send(publish("", b"x", topic_alias=1))
        assert goodbye(raw) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.3.2-7")
def test_aliases_that_the_broker_gave_a_client_end_with_the_connection_too(broker: Served, client: Raw) -> None:
    """Each connection hears the whole topic first, also of what was sent under an alias and goes again."""
    with listening(broker, "carried", "carried", topic_alias_max=2, **KEPT) as listener:
        client.send(publish("carried", b"1", 1, 1), publish("carried", b"2", 1, 2))
        acknowledged(client, 1, 2)
        first, second = heard(listener), heard(listener)
        assert (first.topic, first.topic_alias, second.topic, second.topic_alias) == ("carried", 1, "", 1)
        drop(broker, listener, "carried")
    for most in (2, 0):
        with again(broker, "carried", topic_alias_max=most) as listener:
            repeated = [heard(listener) for _ in range(2)]
            assert repeated[0].topic == "carried"
            assert [one.topic for one in repeated if not one.topic_alias] == ["carried"] * (0 if most else 2)
            drop(broker, listener, "carried")


@pytest.mark.mqtt("MQTT-3.3.2-8", "MQTT-3.3.2-9")
@pytest.mark.parametrize("alias", [0, 4])
def test_a_topic_alias_beyond_the_limit_is_an_error(client: Raw, alias: int) -> None:
    client.send(packet(0x30, text("a") + b"\3\x23" + alias.to_bytes(2, "big")))
    assert goodbye(client) in (PROTOCOL_ERROR, 0x94)


@pytest.mark.mqtt("MQTT-3.3.2-12")
def test_all_topic_aliases_up_to_the_limit_are_taken(broker: Served, client: Raw) -> None:
    with listening(broker, "aliases", "alias/#") as listener:
        for alias in (1, 2, 3):
            client.send(publish(f"alias/{alias}", b"x", topic_alias=alias), publish("", b"y", topic_alias=alias))
            assert [heard(listener).topic for _ in range(2)] == [f"alias/{alias}"] * 2


@pytest.mark.mqtt("MQTT-3.1.2-26", "MQTT-3.1.2-27", "MQTT-3.3.2-11")
@pytest.mark.parametrize("most", [0, 2])
def test_topic_aliases_to_a_client_stay_below_its_limit(broker: Served, client: Raw, most: int) -> None:
    with listening(broker, "few", "few/#", topic_alias_max=most) as listener:
        for number in range(8):
            client.send(publish(f"few/{number % 4}", b"x"))
            assert (heard(listener).topic_alias or 0) <= most


@pytest.mark.mqtt("MQTT-3.3.2-13", "MQTT-3.3.2-19")
@pytest.mark.parametrize("identifier", [0x08, 0x03])
def test_response_topic_and_content_type_must_be_text(client: Raw, identifier: int) -> None:
    properties = bytes((identifier,)) + text(b"a\xff")
    client.send(packet(0x30, text("a") + bytes((len(properties),)) + properties))
    assert goodbye(client) == MALFORMED


@pytest.mark.mqtt("MQTT-3.3.2-14")
def test_a_response_topic_has_no_wildcards(client: Raw) -> None:
    properties = b"\x08" + text("a/#")
    client.send(packet(0x30, text("a") + bytes((len(properties),)) + properties))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.3.4-6")
def test_a_client_sends_no_subscription_identifier(client: Raw) -> None:
    client.send(packet(0x30, text("a") + b"\2\x0b\1"))
    assert goodbye(client) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.3.4-1", "MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT-4.3.3-11", "MQTT-3.4.2-1", "MQTT-3.5.2-1")
@pytest.mark.mqtt("MQTT-3.7.2-1")
def test_each_qos_is_answered_in_its_way(client: Raw) -> None:
    client.send(publish("a", b"0"), publish("a", b"1", 1, 1), publish("a", b"2", 2, 2))
    assert client.packet() == mqtt5.PubAckPacket(1)
    assert client.packet() == mqtt5.PubRecPacket(2)
    client.send(mqtt5.PubRelPacket(2).write())
    assert client.packet() == mqtt5.PubCompPacket(2)


@pytest.mark.mqtt("MQTT-4.3.2-5", "MQTT-4.3.3-12")
def test_a_number_that_is_free_again_means_a_new_publication(broker: Served, client: Raw) -> None:
    with listening(broker, "news", "news") as listener:
        for payload in (b"1", b"2"):
            client.send(publish("news", payload, 1, 7, duplicate=payload == b"2"))
            acknowledged(client, 7)
        for payload in (b"3", b"4"):
            client.send(publish("news", payload, 2, 7))
            assert client.packet() == mqtt5.PubRecPacket(7)
            client.send(mqtt5.PubRelPacket(7).write())
            assert client.packet() == mqtt5.PubCompPacket(7)
        assert [heard(listener).payload for _ in range(4)] == [b"1", b"2", b"3", b"4"]


@pytest.mark.mqtt("MQTT-4.3.3-10")
def test_qos_2_is_not_published_twice_before_it_is_released(broker: Served, client: Raw) -> None:
    with listening(broker, "once", "once") as listener:
        for _ in range(3):
            client.send(publish("once", b"x", 2, 9, duplicate=True))
            assert client.packet() == mqtt5.PubRecPacket(9)
        client.send(mqtt5.PubRelPacket(9).write())
        client.packet()
        client.send(publish("once", b"end"))
        assert [heard(listener).payload for _ in range(2)] == [b"x", b"end"]


@pytest.mark.mqtt("MQTT-4.13.1-1")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("qos", "answer"), [(1, 0x50), (1, 0x70), (2, 0x40), (2, 0x70)])
def test_an_acknowledgement_of_another_kind_than_is_due_is_a_protocol_error(
    broker: Served, client: Raw, qos: int, answer: int, old: bool
) -> None:
    with Raw(broker.port) as listener:
        if old:
            listener.connect3("wrong")
            listener.send(packet(0x82, b"\0\1" + text("wrong") + b"\2"))
        else:
            listener.connect("wrong")
            listener.send(subscribe("wrong"))
        assert listener.raw()[0] == 0x90
        client.send(publish("wrong", b"x", qos, 1))
        listener.send(packet(answer, listener.raw()[2 + len(text("wrong")) :][:2]))
        if old:
            assert listener.is_closed()
        else:
            assert goodbye(listener) == PROTOCOL_ERROR


def test_a_second_pubrec_is_answered_again_and_an_early_pubcomp_is_not_taken(broker: Served, client: Raw) -> None:
    with listening(broker, "steps", "steps") as listener:
        client.send(publish("steps", b"x", 2, 1))
        number = (heard(listener).packet_id or 0).to_bytes(2, "big")
        for _ in range(2):
            listener.send(packet(0x50, number))
            assert listener.raw() == packet(0x62, number)
        listener.send(packet(0x40, number))
        assert goodbye(listener) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-4.3.3-4", "MQTT-4.3.3-5", "MQTT-4.3.3-6", "MQTT-4.4.0-1", "MQTT-3.6.2-1")
def test_after_pubrec_only_pubrel_is_repeated(broker: Served, client: Raw) -> None:
    first = listening(broker, "half", "half", **KEPT)
    client.send(publish("half", b"x", 2, 1))
    client.packet()
    number = heard(first).packet_id
    assert number
    first.send(mqtt5.PubRecPacket(number).write())
    assert first.packet() == mqtt5.PubRelPacket(number)
    drop(broker, first, "half")
    with again(broker, "half") as second:
        assert second.packet() == mqtt5.PubRelPacket(number)
        second.send(mqtt5.PubCompPacket(number).write())
        assert pings(second)


@pytest.mark.mqtt("MQTT-4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
def test_what_a_client_refuses_is_not_sent_again(broker: Served, client: Raw, qos: int) -> None:
    first = listening(broker, "picky", "picky", **KEPT)
    client.send(publish("picky", b"x", qos, 1))
    client.packet()
    number = heard(first).packet_id
    first.send(packet(0x40 if qos == 1 else 0x50, (number or 0).to_bytes(2, "big") + b"\x83"))
    assert pings(first)
    drop(broker, first, "picky")
    with again(broker, "picky") as second:
        assert pings(second)


@pytest.mark.mqtt("MQTT-4.3.3-7", "MQTT-4.3.3-13")
def test_a_handshake_that_has_begun_goes_on_though_the_message_expires(broker: Served, client: Raw) -> None:
    first = listening(broker, "old", "old", **KEPT)
    client.send(publish("old", b"x", 2, 1, message_expiry_interval=1))
    client.packet()
    number = heard(first).packet_id
    assert number
    expires = broker.ask(lambda: broker.broker.sessions["old"].queue.flying[number].publication.expires)
    broker.until(lambda: broker.broker.clock() > (expires or 0))
    drop(broker, first, "old")
    with again(broker, "old") as second:
        assert heard(second).packet_id == number
        second.send(mqtt5.PubRecPacket(number).write())
        assert second.packet() == mqtt5.PubRelPacket(number)


@pytest.mark.mqtt("MQTT-4.6.0-5", "MQTT-4.6.0-6")
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_one_client_says_arrives_in_its_order(broker: Served, client: Raw, qos: int) -> None:
    with listening(broker, "ordered", "ordered") as listener:
        for number in range(1, 16):
            client.send(publish("ordered", b"%d" % number, qos, number if qos else None))
        assert [int(heard(listener).payload) for _ in range(15)] == list(range(1, 16))


@pytest.mark.mqtt("MQTT-3.3.4-9", "MQTT-3.3.4-10", "MQTT-4.9.0-1", "MQTT-4.9.0-2", "MQTT-4.9.0-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_no_more_than_the_receive_maximum_is_under_way_and_everything_else_goes_on(
    broker: Served, client: Raw, qos: int
) -> None:
    with listening(broker, "slow", "slow", receive_max=2) as listener:
        for number in range(1, 6):
            client.send(publish("slow", b"%d" % number, qos, number))
        numbers = [heard(listener).packet_id for _ in range(2)]
        assert pings(listener)
        listener.send(subscribe("else", number=9))
        assert isinstance(listener.packet(), mqtt5.SubAckPacket)
        client.send(publish("else", b"qos 0"))
        assert heard(listener).payload == b"qos 0"
        first = (numbers[0] or 0).to_bytes(2, "big")
        listener.send(packet(0x40 if qos == 1 else 0x50, first))
        if qos == 2:
            assert listener.raw()[:1] == b"\x62"
            listener.send(packet(0x70, first))
        assert heard(listener).payload == b"3"
        assert pings(listener)


@pytest.mark.mqtt("MQTT-3.1.2-24", "MQTT-3.1.2-25")
def test_what_is_too_large_for_a_client_counts_as_sent(broker: Served, client: Raw) -> None:
    with listening(broker, "small", "size", max_packet_size=60, receive_max=1) as small:
        client.send(publish("size", bytes(100), 1, 1), publish("size", b"fits", 1, 2), publish("size", bytes(100)))
        assert heard(small).payload == b"fits"
        assert pings(small)


@pytest.mark.mqtt("MQTT-3.3.4-7")
def test_a_client_that_sends_more_than_the_receive_maximum_is_closed(client: Raw) -> None:
    client.send(*(publish("deep", b"x", 2, number) for number in range(1, 40)))
    while isinstance(said := client.packet(), mqtt5.PubRecPacket):
        pass
    assert isinstance(said, mqtt5.DisconnectPacket)
    assert int(said.reason_code) == 0x93


@pytest.mark.mqtt("MQTT-4.3.3-9")
def test_the_number_of_a_refused_publication_is_free(broker: Served) -> None:
    with listening(broker, "grants", "grants") as listener, connected(broker, "bound", username="bound") as bound:
        bound.send(publish("grants", b'{"kind": "cold"}', 2, 5))
        refusal = bound.packet()
        assert isinstance(refusal, mqtt5.PubRecPacket)
        assert int(refusal.reason_code) == 0x87
        assert refusal.reason_str
        bound.send(publish("grants", b'{"kind": "warm"}', 2, 5))
        assert bound.packet() == mqtt5.PubRecPacket(5)
        assert heard(listener).payload == b'{"kind": "warm"}'


@pytest.mark.mqtt("MQTT-3.4.2-2", "MQTT-3.4.2-3", "MQTT-3.5.2-2", "MQTT-3.5.2-3")
@pytest.mark.parametrize("qos", [1, 2])
def test_a_refusal_has_no_words_where_there_is_no_room_for_them(broker: Served, qos: int) -> None:
    with connected(broker, "bound", username="bound", max_packet_size=20) as bound:
        bound.send(publish("grants", b"{}", qos, 5))
        assert bound.raw() == packet(0x40 if qos == 1 else 0x50, b"\0\5\x87")


@pytest.mark.mqtt("MQTT-3.6.2-2", "MQTT-3.6.2-3", "MQTT-3.7.2-2", "MQTT-3.7.2-3")
def test_numbers_that_nobody_knows_are_answered_without_words(client: Raw) -> None:
    client.send(mqtt5.PubRelPacket(77).write())
    assert client.raw() == packet(0x70, b"\0\x4d\x92")
    client.send(mqtt5.PubRecPacket(78).write())
    assert client.raw() == packet(0x62, b"\0\x4e\x92")
