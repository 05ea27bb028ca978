"""One client against a running broker, byte by byte: what it may say when, and what it is told when it may not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import mqtt5
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.net.mqtt.serving import Raw, Served, served

from godwit.net.access import Access, Admitted, Credentials
from godwit.net.mqtt.codec import Kind, length_field
from godwit.net.mqtt.connection import TAKES, State
from godwit.net.mqtt.options import Hold, Options
from godwit.protocols.broker.api import ALL, Limits, Outlet, Reason, RefusedError
from godwit.protocols.broker.store import MemoryStore

QOS = [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE]
LIMITS = Options(packet_bytes_max=20_000, inflight_max=5, topic_alias_max=3, connect_wait_s=1.0)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(LIMITS) as running:
        yield running


@pytest.fixture
def client(broker: Served) -> Iterator[Raw]:
    """Version 5, connected."""
    with Raw(broker.port) as raw:
        raw.connect()
        yield raw


def packet(first: int, body: bytes) -> bytes:
    return bytes((first,)) + length_field(len(body)) + body


def field(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def subscribe(*patterns: str, number: int = 1, qos: int = 2, **said: object) -> bytes:
    filters = [mqtt5.TopicFilter(pattern, max_qos=QOS[qos], retain_as_published=False) for pattern in patterns]
    return mqtt5.SubscribePacket(number, filters, **said).write()  # type: ignore[arg-type]


def publish(topic: str, payload: bytes = b"", qos: int = 0, number: int | None = None, **said: object) -> bytes:
    return mqtt5.PublishPacket(topic, payload, qos=QOS[qos], packet_id=number, **said).write()  # type: ignore[arg-type]


def subscribed(broker: Served, name: str, *patterns: str, qos: int = 2, **said: object) -> Raw:
    client = Raw(broker.port)
    client.connect(name, **said)  # type: ignore[arg-type]
    client.send(subscribe(*patterns, qos=qos))
    assert isinstance(client.packet(), mqtt5.SubAckPacket)
    return client


def next_publish(client: Raw) -> mqtt5.PublishPacket:
    found = client.packet()
    assert isinstance(found, mqtt5.PublishPacket), found
    return found


def goodbye(client: Raw) -> int:
    """The reason with which the broker closes the connection."""
    said = client.packet()
    assert isinstance(said, mqtt5.DisconnectPacket), said
    assert said.reason_str
    assert client.is_closed()
    return int(said.reason_code)


def pings(client: Raw) -> bool:
    client.send(b"\xc0\0")
    return client.raw() == b"\xd0\0"


def test_what_is_not_in_the_table_ends_the_connection(broker: Served) -> None:
    """Every kind of packet that has no place in NEW or OPEN; in the other states nothing is read."""
    for state in (State.NEW, State.OPEN):
        for kind in set(range(16)) - TAKES[state]:
            with Raw(broker.port) as raw:
                if state is State.OPEN:
                    raw.connect()
                raw.send(packet(kind << 4 | (2 if kind in (6, 8, 10) else 0), b"\0\1\0\0\1a"))
                if state is State.OPEN:
                    assert goodbye(raw) == 0x82, kind
                else:
                    assert raw.is_closed(), kind


def test_a_connection_that_says_nothing_is_closed(broker: Served) -> None:
    with Raw(broker.port) as silent, Raw(broker.port) as slow:
        slow.send(b"\x10")
        assert silent.is_closed()
        assert slow.is_closed()


def test_packets_may_come_in_any_pieces(broker: Served) -> None:
    said = mqtt5.ConnectPacket("pieces", clean_start=True).write() + subscribe("p/#") + publish("p/1", b"x" * 300) * 2
    with Raw(broker.port) as raw:
        for position in range(0, len(said), 7):
            raw.send(said[position : position + 7])
        assert isinstance(raw.packet(), mqtt5.ConnAckPacket)
        assert isinstance(raw.packet(), mqtt5.SubAckPacket)
        assert [next_publish(raw).payload for _ in range(2)] == [b"x" * 300] * 2


@pytest.mark.parametrize(("said", "is_heard_out"), [(b"", False), (b"\xc0\0" * 3, False), (b"\xc0\0\xe0\0", True)])
def test_whoever_hangs_up_while_its_session_is_waited_for_has_gone(said: bytes, *, is_heard_out: bool) -> None:
    """Though it has sent pings meanwhile. What it has said beside these is heard when it is let in."""
    gone: list[Outlet] = []
    with served() as broker:
        broker.ask(lambda: setattr(broker.broker, "open", lambda opening, outlet: None))
        broker.ask(lambda: setattr(broker.broker, "give_up", lambda opening, outlet: gone.append(outlet)))
        with Raw(broker.port) as hasty:
            hasty.send(mqtt5.ConnectPacket("hasty").write(), said)
            hasty.socket.shutdown(socket.SHUT_WR)
            if is_heard_out:
                broker.until(lambda: any(one.eof_received() for one in broker.front.connections))
                assert not gone
            else:
                broker.until(lambda: bool(gone))


def test_all_may_be_said_at_once(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(mqtt5.ConnectPacket("at-once", clean_start=True).write(), subscribe("o/#"), publish("o/1", b"x"))
        assert isinstance(raw.packet(), mqtt5.ConnAckPacket)
        assert isinstance(raw.packet(), mqtt5.SubAckPacket)
        assert next_publish(raw).payload == b"x"


def test_limits_are_announced(broker: Served) -> None:
    with Raw(broker.port) as raw:
        answer = raw.connect()
        assert (answer.max_packet_size, answer.receive_max, answer.topic_alias_max) == (20_000, 5, 3)
        assert answer.assigned_client_id is None
        assert answer.server_keep_alive is None


def test_a_client_without_a_name_gets_one(broker: Served) -> None:
    with Raw(broker.port) as first, Raw(broker.port) as second:
        names = {first.connect("").assigned_client_id, second.connect("").assigned_client_id}
        assert len(names) == 2
        assert None not in names


def test_an_old_client_without_a_name_must_have_a_clean_session(broker: Served) -> None:
    with Raw(broker.port) as clean, Raw(broker.port) as kept:
        assert clean.connect3("") == b"\x20\2\0\0"
        assert kept.connect3("", flags=0) == b"\x20\2\0\2"
        assert kept.is_closed()


def test_a_name_that_is_too_long_is_refused(broker: Served) -> None:
    with Raw(broker.port) as raw:
        answer = raw.connect("x" * 600)
        assert answer.reason_code == mqtt5.ConnAckReasonCode.CLIENT_ID_NOT_VALID
        assert answer.reason_str
        assert "512" in answer.reason_str


def test_enhanced_authentication_is_refused(broker: Served) -> None:
    with Raw(broker.port) as raw:
        answer = raw.connect(authentication_method="SCRAM-SHA-1")
        assert answer.reason_code == mqtt5.ConnAckReasonCode.BAD_AUTHENTICATION_METHOD
        assert raw.is_closed()


def test_a_protocol_nobody_speaks_is_refused(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, b"\0\4MQTT\6\2\0\0\0\0\0"))
        answer = raw.packet()
        assert isinstance(answer, mqtt5.ConnAckPacket)
        assert answer.reason_code == mqtt5.ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION
    with Raw(broker.port) as old:
        old.send(packet(0x10, b"\0\4MQTT\3\2\0\0\0\0"))
        assert old.raw() == b"\x20\2\0\1"
        assert old.is_closed()


def test_a_malformed_connect_is_told_so(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, b"\0\4MQTT\5\3\0\0\0\0\0"))
        answer = raw.packet()
        assert isinstance(answer, mqtt5.ConnAckPacket)
        assert answer.reason_code == mqtt5.ConnAckReasonCode.MALFORMED_PACKET
    with Raw(broker.port) as old:
        old.send(packet(0x10, b"\0\4MQTT\4\3\0\0\0\0"))
        assert old.is_closed()


def test_version_3_1_is_served(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, b"\0\6MQIsdp\3\2\0\0\0\1a"))
        assert raw.raw() == b"\x20\2\0\0"
        assert pings(raw)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"\x30\x80\x80\x80\x80\1", 0x81),
        (b"\x30\xff\xff\xff\x7f", 0x95),
        (packet(0x30, b"\0\1#\0"), 0x81),
        (packet(0x30, b"\0\3a/\xff\0"), 0x81),
        (packet(0x30, b"\0\3a\0b\0"), 0x81),
        (packet(0x30, b"\0\0\0"), 0x82),
        (packet(0x30, b"\0\x09a\0"), 0x81),
        (packet(0x30, b"\0"), 0x81),
        (packet(0x30, b""), 0x81),
        (packet(0x30, b"\0\1a"), 0x81),
        (packet(0x30, b"\0\1a\x05\x26"), 0x81),
        (packet(0x30, b"\0\1a\x03\x23\0\x09"), 0x94),
        (packet(0x30, b"\0\0\x03\x23\0\1"), 0x82),
        (packet(0x36, b"\0\1a\0\1\0"), 0x81),
        (packet(0x38, b"\0\1a\0"), 0x81),
        (packet(0x32, b"\0\1a\0\0\0"), 0x82),
        (packet(0x32, b"\0\1a\0"), 0x81),
        (packet(0x30, b"\0\1a\0" + bytes(20_000)), 0x95),
        (packet(0x40, b"\0\0"), 0x82),
        (packet(0x42, b"\0\1"), 0x81),
        (packet(0x60, b"\0\1"), 0x81),
        (packet(0x82, b"\0\1\0"), 0x82),
        (packet(0x82, b"\0\1\0\0\x0b$share/g/ab\6"), 0x82),
        (packet(0x82, b"\0\1\0\0\1a\x06\0"), 0x81),
        (packet(0xA2, b"\0\1\0"), 0x82),
        (packet(0xC1, b""), 0x81),
        (packet(0xE0, b"\x00\x05\x11\0\0\0\x09"), 0x82),
        (packet(0xF0, b"\x18\0"), 0x82),
    ],
)
def test_nonsense_costs_its_sender_the_connection_and_nobody_else_anything(
    broker: Served, client: Raw, said: bytes, code: int
) -> None:
    with subscribed(broker, "bystander", "other") as bystander:
        client.send(said)
        assert goodbye(client) == code
        bystander.send(publish("other", b"still here"))
        assert next_publish(bystander).payload == b"still here"


SENSE = [
    publish("fuzz", b"x"),
    publish("fuzz", b"x", 1, 1),
    publish("fuzz", b"x", 2, 2, user_properties=[("a", "b")], topic_alias=1),
    mqtt5.PubRelPacket(2).write(),
    mqtt5.PubAckPacket(1).write(),
    mqtt5.PubRecPacket(1).write(),
    subscribe("fuzz/#", "$share/g/fuzz", subscription_id=3, user_properties=[("filter", "x > 1")]),
    mqtt5.UnsubscribePacket(3, ["fuzz/#"]).write(),
    mqtt5.PingReqPacket().write(),
    mqtt5.DisconnectPacket(session_expiry_interval=0).write(),
]


@st.composite
def half_sense(draw: st.DrawFn) -> bytes:
    """Packets, of which some bytes are not what they were."""
    said = bytearray(b"".join(draw(st.lists(st.sampled_from(SENSE), min_size=1, max_size=6))))
    for _ in range(draw(st.integers(0, 3))):
        said[draw(st.integers(0, len(said) - 1))] = draw(st.integers(0, 255))
    return bytes(said)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(half_sense() | st.binary(max_size=50), st.booleans(), st.booleans())
def test_whatever_one_client_says_another_is_served(
    broker: Served, client: Raw, said: bytes, old: bool, connected: bool
) -> None:
    """`served` fails at its end if the broker has stumbled over anything."""
    with Raw(broker.port) as fuzzer:
        if connected:
            _ = fuzzer.connect3("fuzzer") if old else fuzzer.connect("fuzzer")
        fuzzer.send(said)
        assert pings(client)


def test_old_clients_are_closed_without_a_word(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.connect3()
        raw.send(packet(0x30, b"\0\1#"))
        assert raw.is_closed()


def test_what_came_before_the_nonsense_counts(broker: Served, client: Raw) -> None:
    with subscribed(broker, "listener", "sound") as listener:
        rich = publish("sound", b"2", user_properties=[("a", "b")])
        client.send(publish("sound", b"1"), rich, packet(0x30, b"\0\1#\0"))
        assert goodbye(client) == 0x81
        assert [next_publish(listener).payload for _ in range(2)] == [b"1", b"2"]


def test_publications_pass_between_all_versions(broker: Served) -> None:
    sizes = (0, 110, 120, 121, 122, 123, 124, 125, 300, 16_370, 16_380)
    with (
        subscribed(broker, "five", "mixed/+") as five,
        Raw(broker.port) as three,
        Raw(broker.port) as publisher5,
        Raw(broker.port) as publisher3,
    ):
        three.connect3("three")
        three.send(packet(0x82, b"\0\1\0\7mixed/+\0"))
        assert three.raw() == b"\x90\3\0\1\0"
        publisher5.connect("publisher5")
        publisher3.connect3("publisher3")
        for size in sizes:
            payload = b"x" * size
            publisher5.send(publish("mixed/5", payload))
            assert three.raw() == packet(0x30, b"\0\7mixed/5" + payload)
            assert next_publish(five).payload == payload
            publisher3.send(packet(0x30, b"\0\7mixed/3" + payload))
            assert three.raw() == packet(0x30, b"\0\7mixed/3" + payload)
            assert next_publish(five).payload == payload


def test_many_publications_in_one_go_keep_their_order(broker: Served, client: Raw) -> None:
    said = [(f"order/{number % 3}", b"%d" % number * (number % 5)) for number in range(200)]
    with subscribed(broker, "ordered", "order/#", qos=0) as listener:
        client.send(b"".join(publish(topic, payload) for topic, payload in said))
        heard = [next_publish(listener) for _ in said]
        assert [(one.topic, one.payload) for one in heard] == said


def test_properties_are_passed_on(broker: Served, client: Raw) -> None:
    rich: dict[str, Any] = {
        "content_type": "text/plain",
        "response_topic": "answer/here",
        "correlation_data": b"\xff\0",
        "payload_format_indicator": 1,
        "user_properties": [("a", "1"), ("a", "2"), ("ü", "é")],
    }
    with subscribed(broker, "rich", "rich/#") as listener:
        client.send(publish("rich/1", b"x", message_expiry_interval=100, **rich))
        heard = next_publish(listener)
        assert {name: getattr(heard, name) for name in rich} == rich
        assert heard.message_expiry_interval in (99, 100)


def test_subscription_identifiers_come_with_what_they_found(broker: Served, client: Raw) -> None:
    with Raw(broker.port) as listener:
        listener.connect("identified")
        listener.send(subscribe("id/#", subscription_id=77))
        listener.packet()
        client.send(publish("id/1", b"x"))
        assert next_publish(listener).subscription_ids == [77]


def test_topic_aliases_of_the_client(broker: Served, client: Raw) -> None:
    with subscribed(broker, "aliased", "alias/#") as listener:
        client.send(publish("alias/a", b"1", topic_alias=1), publish("alias/b", b"2", topic_alias=2))
        client.send(publish("", b"3", topic_alias=1), publish("alias/c", b"4", topic_alias=1))
        client.send(publish("", b"5", topic_alias=1), publish("", b"6", topic_alias=2))
        heard = [next_publish(listener) for _ in range(6)]
        assert [one.topic[-1] + one.payload.decode() for one in heard] == ["a1", "b2", "a3", "c4", "c5", "b6"]
        assert all(one.topic_alias is None for one in heard)


def test_topic_aliases_to_the_client(broker: Served, client: Raw) -> None:
    with subscribed(broker, "short", "long/#", topic_alias_max=2) as listener:
        for topic in ("long/a", "long/a", "long/b", "long/c", "long/b", "long/c"):
            client.send(publish(topic, b"x", 1, 1))
            assert isinstance(client.packet(), mqtt5.PubAckPacket)
        heard = [next_publish(listener) for _ in range(6)]
        assert [(one.topic, one.topic_alias) for one in heard] == [
            ("long/a", 1),
            ("", 1),
            ("long/b", 2),
            ("long/c", None),
            ("", 2),
            ("long/c", None),
        ]


def test_nothing_larger_than_the_client_takes_is_sent(broker: Served, client: Raw) -> None:
    with subscribed(broker, "small", "size/#", max_packet_size=100) as small:
        for qos, number in ((0, None), (1, 1)):
            client.send(publish("size/x", b"x" * 200, qos, number), publish("size/x", b"fits", qos, number and 2))
            assert next_publish(small).payload == b"fits"


def test_qos_1_from_end_to_end(broker: Served, client: Raw) -> None:
    with subscribed(broker, "once-or-more", "q1") as listener:
        client.send(publish("q1", b"x", 1, 7))
        answer = client.packet()
        assert isinstance(answer, mqtt5.PubAckPacket)
        assert answer.packet_id == 7
        heard = next_publish(listener)
        assert heard.qos == mqtt5.QoS.AT_LEAST_ONCE
        assert heard.packet_id
        listener.send(mqtt5.PubAckPacket(heard.packet_id).write())
        assert pings(listener)


def test_qos_2_from_end_to_end(broker: Served, client: Raw) -> None:
    with subscribed(broker, "once", "q2") as listener:
        client.send(publish("q2", b"x", 2, 7))
        assert client.packet() == mqtt5.PubRecPacket(7)
        client.send(mqtt5.PubRelPacket(7).write())
        assert client.packet() == mqtt5.PubCompPacket(7)
        heard = next_publish(listener)
        assert heard.qos == mqtt5.QoS.EXACTLY_ONCE
        assert heard.packet_id
        listener.send(mqtt5.PubRecPacket(heard.packet_id).write())
        assert listener.packet() == mqtt5.PubRelPacket(heard.packet_id)
        listener.send(mqtt5.PubCompPacket(heard.packet_id).write())
        assert pings(listener)


def test_more_unacknowledged_than_announced_is_too_much(broker: Served, client: Raw) -> None:
    client.send(*(publish("deep", b"x", 2, number) for number in range(1, 7)))
    answers = [client.packet() for _ in range(1)]
    while isinstance(answers[-1], mqtt5.PubRecPacket):
        answers.append(client.packet())
    assert isinstance(answers[-1], mqtt5.DisconnectPacket)
    assert answers[-1].reason_code == mqtt5.DisconnectReasonCode.RECEIVE_MAX_EXCEEDED


@pytest.mark.parametrize("qos", [1, 2])
def test_an_old_client_that_was_told_no_limit_is_served_slowly_but_wholly(broker: Served, qos: int) -> None:
    with Raw(broker.port) as old:
        old.connect3()
        said = [b"\0\1a" + number.to_bytes(2, "big") for number in range(1, 101)]
        old.send(*(packet(0x30 | qos << 1, body) for body in said))
        first = 0x40 if qos == 1 else 0x50
        assert [old.raw() for _ in said] == [packet(first, body[-2:]) for body in said]
        if qos == 2:
            old.send(*(packet(0x62, body[-2:]) for body in said))
            assert [old.raw() for _ in said] == [packet(0x70, body[-2:]) for body in said]


def test_a_bad_filter_is_refused_with_its_reason_and_the_rest_works(broker: Served, client: Raw) -> None:
    bad = [b"$filter/x >/a", b"$filter/%ff/b"]
    client.send(packet(0x82, b"\0\1\0" + field(bad[0]) + b"\1\0\4good\1" + field(bad[1]) + b"\0"))
    answer = client.packet()
    assert isinstance(answer, mqtt5.SubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [143, 1, 143]
    assert answer.reason_str
    assert "column 4" in answer.reason_str
    assert "%ff" in answer.reason_str
    client.send(publish("good", b"x"))
    assert next_publish(client).payload == b"x"


def test_old_clients_learn_of_a_bad_filter_too(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.connect3()
        raw.send(packet(0x82, b"\0\1" + field(b"$filter/x >/a") + b"\1\0\4good\1"))
        assert raw.raw() == b"\x90\4\0\1\x80\1"


def test_no_words_where_none_are_wanted(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.connect(request_problem_info=False)
        raw.send(packet(0x82, b"\0\1\0" + field(b"$filter/x >/a") + b"\1"))
        answer = raw.packet()
        assert isinstance(answer, mqtt5.SubAckPacket)
        assert answer.reason_str is None


def test_unsubscribing(broker: Served, client: Raw) -> None:
    client.send(subscribe("u/1"), mqtt5.UnsubscribePacket(2, ["u/1", "u/2"]).write())
    client.packet()
    answer = client.packet()
    assert isinstance(answer, mqtt5.UnsubAckPacket)
    assert [int(code) for code in answer.reason_codes] == [0, 17]
    client.send(publish("u/1", b"x"))
    assert pings(client)


def test_retained_publications_follow_the_answer(broker: Served, client: Raw) -> None:
    client.send(publish("kept/1", b"x", retain=True), subscribe("kept/#"))
    assert isinstance(client.packet(), mqtt5.SubAckPacket)
    heard = next_publish(client)
    assert (heard.payload, heard.retain) == (b"x", True)
    client.send(publish("kept/1", b"", retain=True))


WILL = mqtt5.Will("wills", payload=b"gone", user_properties=[("who", "me")])


@pytest.mark.parametrize(
    ("last", "willed"),
    [(b"", True), (b"\xe0\0", False), (b"\xe0\1\0", False), (b"\xe0\1\4", True), (b"\xe0\2\x80\0", True), (b"0", True)],
)
def test_a_will_is_published_unless_the_client_says_goodbye(broker: Served, last: bytes, willed: bool) -> None:
    with subscribed(broker, "heirs", "wills") as heirs:
        with Raw(broker.port) as mortal:
            mortal.connect("mortal", will=WILL)
            mortal.send(last)
        broker.until(lambda: not any(one._client == "mortal" for one in broker.front.connections))
        heirs.send(publish("wills", b"end"))
        heard = next_publish(heirs)
        assert heard.payload == (b"gone" if willed else b"end")
        if willed:
            assert heard.user_properties == [("who", "me")]


def test_taking_over_closes_the_other_connection(broker: Served) -> None:
    with Raw(broker.port) as first, Raw(broker.port) as second:
        first.connect("twin")
        second.connect("twin")
        assert goodbye(first) == 0x8E
        assert pings(second)


def test_a_session_is_kept_as_long_as_asked(broker: Served) -> None:
    def present(clean: bool, expiry_s: int, last: bytes = b"\xe0\0") -> bool:
        with Raw(broker.port) as raw:
            answer = raw.connect("keeper", clean_start=clean, session_expiry_interval=expiry_s)
            raw.send(last)
            assert raw.is_closed()
        return answer.session_present

    assert not present(clean=True, expiry_s=100)
    assert present(clean=False, expiry_s=100)
    assert present(clean=False, expiry_s=100, last=mqtt5.DisconnectPacket(session_expiry_interval=0).write())
    assert not present(clean=False, expiry_s=0)
    assert not present(clean=False, expiry_s=0)


def test_silence_beyond_the_keep_alive_ends_the_connection(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.connect(keep_alive=1)
        assert goodbye(raw) == 0x8D


def test_the_server_may_want_to_hear_more_often() -> None:
    with served(Options(keep_alive_max_s=1)) as broker, Raw(broker.port) as raw, Raw(broker.port) as lively:
        assert lively.connect("lively", keep_alive=1).server_keep_alive is None
        assert raw.connect(keep_alive=0).server_keep_alive == 1
        assert goodbye(raw) == 0x8D


def test_session_expiry_may_be_capped() -> None:
    with served(Options(session_expiry_max_s=60)) as broker, Raw(broker.port) as raw, Raw(broker.port) as modest:
        assert raw.connect(session_expiry_interval=0xFFFFFFFF).session_expiry_interval == 60
        assert modest.connect("modest", session_expiry_interval=30).session_expiry_interval is None


@pytest.mark.parametrize("limits", [Options(packets_per_s=10, burst_s=1), Options(bytes_per_s=1000, burst_s=1)])
def test_a_flood_costs_the_flooder_its_connection(limits: Options) -> None:
    with served(limits) as broker, Raw(broker.port) as flooder, Raw(broker.port) as other:
        flooder.connect("flooder")
        other.connect("other")
        with contextlib.suppress(OSError):
            flooder.send(publish("flood", b"x" * 100) * 100)
        assert goodbye(flooder) == 0x96
        assert pings(other)


def test_a_client_that_does_not_read_loses_qos_0_and_holds_up_nobody() -> None:
    limits = Options(output_bytes_max=100_000, packet_bytes_max=200_000)
    with served(limits) as broker, Raw(broker.port) as publisher:
        publisher.connect("publisher")
        with subscribed(broker, "stuck", "flow"), subscribed(broker, "reader", "flow", "end") as reader:
            for _ in range(100):
                publisher.send(publish("flow", bytes(150_000)))
                assert len(next_publish(reader).payload) == 150_000
            assert broker.ask(lambda: broker.counts.dropped["client does not read"]) > 0


def test_readers_that_are_stuck_hold_up_no_publisher_and_get_all_later() -> None:
    payloads = [number.to_bytes(2, "big") * 75_000 for number in range(60)]
    with served() as broker, Raw(broker.port) as publisher:
        publisher.connect("publisher")
        stuck = [subscribed(broker, f"stuck-{number}", "flow", qos=1) for number in range(3)]
        for number, payload in enumerate(payloads, 1):
            publisher.send(publish("flow", payload, 1, number))
            assert isinstance(publisher.packet(), mqtt5.PubAckPacket)
        assert broker.ask(lambda: max(one.held_bytes for one in broker.front.connections)) < 1_000_000
        assert broker.ask(lambda: all(one.is_read for one in broker.front.connections))
        assert broker.ask(lambda: list(broker.broker.sessions["stuck-0"].queue.waiting)[-1].is_away)
        for client in stuck:
            with client:
                for payload in payloads:
                    got = next_publish(client)
                    assert got.payload == payload
                    client.send(mqtt5.PubAckPacket(got.packet_id or 0).write())


def test_those_who_do_not_read_share_what_may_wait_and_others_lose_nothing() -> None:
    with served(Options(backlog_bytes_max=2_000_000)) as broker, Raw(broker.port) as publisher:
        publisher.connect("publisher")
        stuck = [subscribed(broker, f"stuck-{number}", "flow") for number in range(4)]
        with subscribed(broker, "reader", "flow") as reader:
            for _ in range(100):
                publisher.send(publish("flow", bytes(200_000)))
                assert len(next_publish(reader).payload) == 200_000
        assert broker.ask(lambda: sum(one.held_bytes for one in broker.front.connections)) < 4_000_000
        for client in stuck:
            client.socket.close()
        broker.until(lambda: broker.front.output_share_bytes == 2_000_000)


def test_a_client_that_never_reads_is_closed_in_the_end() -> None:
    with (
        served(Options(stall_s=1.0)) as broker,
        Raw(broker.port) as publisher,
        subscribed(broker, "stuck", "flow", qos=1),
    ):
        publisher.connect("publisher")
        for number in range(1, 200):
            publisher.send(publish("flow", bytes(150_000), 1, number))
            assert isinstance(publisher.packet(), mqtt5.PubAckPacket)
        broker.until(lambda: broker.counts.connections == 1)


def test_whoever_asks_and_does_not_read_the_answers_is_not_read_either() -> None:
    limits = Options(output_bytes_max=10_000, packet_bytes_max=20_000, stall_s=600.0)
    with served(limits) as broker, Raw(broker.port) as asking:
        asking.connect("asking")
        (connection,) = broker.ask(lambda: list(broker.front.connections))
        broker.ask(connection.pause_writing)  # as its transport does when it has enough
        asking.send(b"\xc0\0" * 40_000)
        broker.until(lambda: Hold.OUTPUT in connection._stopped)
        assert broker.ask(lambda: connection.held_bytes) < 80_000
        broker.ask(connection.resume_writing)
        for _ in range(40_000):
            assert asking.raw() == b"\xd0\0"


def test_a_client_is_told_that_its_session_or_will_is_kept_once_the_disk_has_it() -> None:
    with served() as broker, Raw(broker.port) as lasting, Raw(broker.port) as willing, Raw(broker.port) as passing:
        store = broker.broker.store
        assert isinstance(store, MemoryStore)
        waiting: list[Callable[[], None]] = []
        later = store.later

        def slow(call: Callable[[], None]) -> None:
            waiting.append(call)

        def write() -> None:
            store.later = later
            for call in waiting:
                call()

        broker.ask(lambda: setattr(store, "later", slow))
        lasting.send(mqtt5.ConnectPacket("lasting", session_expiry_interval=100).write(), b"\xc0\0")
        willing.send(mqtt5.ConnectPacket("willing", will=mqtt5.Will(topic="gone", payload=b"x")).write())
        passing.connect("passing")
        assert pings(passing)
        assert broker.ask(lambda: broker.counts.bytes_out) < 200, "only the one that needs no disk was answered"
        broker.ask(write)
        assert isinstance(lasting.packet(), mqtt5.ConnAckPacket)
        assert lasting.raw() == b"\xd0\0"
        assert isinstance(willing.packet(), mqtt5.ConnAckPacket)


def refusing(who: Credentials) -> Admitted:
    if who.password != b"right":
        raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, "wrong user name or password")
    assert who.peer == "127.0.0.1"
    return Admitted(who.user or "", ALL, Limits())


async def slowly(who: Credentials) -> Admitted:
    await asyncio.sleep(0.05)
    return refusing(who)


@pytest.mark.parametrize("authenticate", [refusing, slowly])
def test_who_comes_in_is_decided_elsewhere_now_or_later(authenticate: object) -> None:
    with served(authenticate=authenticate) as broker:  # type: ignore[arg-type]
        with Raw(broker.port) as right, Raw(broker.port) as wrong, Raw(broker.port) as old:
            right.send(mqtt5.ConnectPacket("me", username="u", password=b"right").write(), b"\xc0\0")
            assert isinstance(right.packet(), mqtt5.ConnAckPacket)
            assert right.raw() == b"\xd0\0"
            answer = wrong.connect("you", username="u", password=b"wrong")
            assert answer.reason_code == mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
            assert answer.reason_str == "wrong user name or password"
            assert wrong.is_closed()
            assert old.connect3() == b"\x20\2\0\4"
        with Raw(broker.port) as hasty:
            hasty.send(mqtt5.ConnectPacket("hasty", username="u", password=b"right").write())
        broker.until(lambda: broker.counts.connections == 0)


def test_without_a_users_file_any_user_name_is_let_in_from_this_machine() -> None:
    """Some clients always say one: awscrt tells of itself in it."""
    with served(authenticate=Access().admit) as broker:
        for said in ({"username": "?SDK=CPPv2&Version=0.28"}, {"username": "x", "password": b"x"}, {}):
            with Raw(broker.port) as raw:
                assert raw.connect("aws", **said).reason_code == mqtt5.ConnAckReasonCode.SUCCESS
                raw.send(subscribe("#"))
                assert isinstance(raw.packet(), mqtt5.SubAckPacket)
        with Raw(broker.port) as old:
            old.send(packet(0x10, b"\0\4MQTT\4\xc2\0\0\0\1c\0\1u\0\1p"))
            assert old.raw() == b"\x20\2\0\0"


def test_an_end_of_the_broker_is_announced() -> None:
    with served() as broker:
        raw = Raw(broker.port)
        raw.connect()
    with raw:
        assert goodbye(raw) == 0x8B


def test_every_kind_has_its_place() -> None:
    assert {kind for kinds in TAKES.values() for kind in kinds} == {
        kind for kind in Kind if kind.name not in ("CONNACK", "SUBACK", "UNSUBACK", "PINGRESP", "AUTH")
    }


def test_the_reason_arrives_though_the_client_goes_on_talking(broker: Served) -> None:
    with Raw(broker.port) as client:
        client.connect("talker")
        client.send(packet(0xF0, b"") + publish("t", b"x" * 1_000) * 200)
        goodbye = client.packet()
        assert isinstance(goodbye, mqtt5.DisconnectPacket)
        assert int(goodbye.reason_code) == 0x82


def test_an_empty_response_topic_is_refused(broker: Served, client: Raw) -> None:
    client.send(packet(0x30, b"\0\1t\3\x08\0\0x"))
    goodbye = client.packet()
    assert isinstance(goodbye, mqtt5.DisconnectPacket)
    assert int(goodbye.reason_code) in (0x81, 0x82)


def test_a_client_that_takes_tiny_packets_only_is_never_sent_a_larger_one(broker: Served) -> None:
    for size in range(1, 60):
        with Raw(broker.port) as client:
            client.send(mqtt5.ConnectPacket("tiny", max_packet_size=size).write())
            try:
                answer = client.packet()
            except (ConnectionError, EOFError, TimeoutError, AssertionError):
                assert size < 6
                continue
            assert isinstance(answer, mqtt5.ConnAckPacket)
            assert len(answer.write()) <= size


def test_mqtt_3_1_has_no_word_for_a_session_that_was_there(broker: Served) -> None:
    hello = packet(0x10, b"\0\6MQIsdp\3\0\0\0\0\3old")
    for _ in range(2):
        with Raw(broker.port) as client:
            client.send(hello)
            assert client.socket.recv(4) == b"\x20\2\0\0"


def test_who_is_not_known_yet_may_not_say_much() -> None:
    with served(Options(packet_bytes_max=10_000_000)) as broker, Raw(broker.port) as client:
        client.send(b"\x10" + length_field(9_000_000) + b"\0\4MQTT\5")
        assert client.raw() == b""
        with Raw(broker.port) as other:
            other.connect("known")
            other.send(publish("t", bytes(1_000_000), qos=1, number=1))
            assert isinstance(other.packet(), mqtt5.PubAckPacket)
