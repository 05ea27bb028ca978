"""MQTT 5.0, sections 3.1, 3.2, 3.12, 3.14, 4.1, 4.12 and 4.13: how connections and sessions begin and end."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import mqtt5
import pytest
from tests.net.mqtt.saying import (
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

from godwit.net.access import Admitted, Credentials
from godwit.net.mqtt.options import Options
from godwit.protocols.broker.api import ALL, Limits, Reason, RefusedError

HEAD = text("MQTT") + b"\5"
DEEP = "/".join("a" * 201)
"""A topic filter that is refused, in many words."""


def admit(who: Credentials) -> Admitted:
    if who.user == "nobody":
        raise RefusedError(Reason.BAD_USER_NAME_OR_PASSWORD, "nobody is not let in")
    return Admitted(who.user or "", ALL, Limits())


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(Options(connect_wait_s=5.0), admit) as running:
        yield running


def answered(broker: Served, body: bytes, *more: bytes) -> tuple[mqtt5.ConnAckPacket, bool]:
    """The answer to a CONNECT with this body, and whether the connection is closed after it."""
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, body), *more)
        answer = raw.packet()
        assert isinstance(answer, mqtt5.ConnAckPacket)
        if int(answer.reason_code) < 128:
            return answer, False
        return answer, raw.is_closed()


def refused(broker: Served, body: bytes) -> bool:
    """Whether the broker closes the connection, with or without an answer that says why."""
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, body))
        said = raw.raw()
        return said == b"" or (said[0] == 0x20 and said[3] != 0 and raw.is_closed())


@pytest.mark.mqtt("MQTT-3.1.0-1")
def test_the_first_packet_must_be_connect(broker: Served) -> None:
    for said in (publish("a"), subscribe("a"), b"\xc0\0", b"\xe0\0"):
        with Raw(broker.port) as raw:
            raw.send(said)
            assert raw.is_closed()


@pytest.mark.mqtt("MQTT-3.1.0-2")
def test_a_second_connect_is_a_protocol_error(broker: Served) -> None:
    with connected(broker, "twice") as raw:
        raw.send(mqtt5.ConnectPacket("twice").write())
        assert goodbye(raw) == PROTOCOL_ERROR


@pytest.mark.mqtt("MQTT-3.1.2-1", "MQTT-3.1.2-2", "MQTT-3.2.2-7", "MQTT-4.13.2-1")
@pytest.mark.parametrize(
    "head", [text("MQTT") + b"\6", text("MQTT") + b"\0", text("mqtt") + b"\5", text("HTTP") + b"\5"]
)
def test_another_protocol_or_version_is_closed(broker: Served, head: bytes) -> None:
    assert refused(broker, head + b"\2\0\0\0" + text("c"))


@pytest.mark.mqtt("MQTT-3.1.2-3", "MQTT-3.1.4-1")
def test_the_reserved_flag_of_connect_must_be_zero(broker: Served) -> None:
    assert refused(broker, HEAD + b"\3\0\0\0" + text("c"))


@pytest.mark.mqtt("MQTT-3.1.2-11", "MQTT-3.1.2-12", "MQTT-3.1.2-13")
@pytest.mark.parametrize("flags", [0b00001010, 0b00010010, 0b00100010, 0b00011110])
def test_will_flags_that_contradict_one_another_are_refused(broker: Served, flags: int) -> None:
    will = b"\0" + text("w") + text("x") if flags & 4 else b""
    assert refused(broker, HEAD + bytes((flags,)) + b"\0\0\0" + text("c") + will)


@pytest.mark.mqtt(
    "MQTT-3.1.2-9", "MQTT-3.1.2-16", "MQTT-3.1.2-17", "MQTT-3.1.2-18", "MQTT-3.1.2-19", "MQTT-3.1.3-1", "MQTT-3.1.3-3"
)
@pytest.mark.parametrize(
    "body",
    [
        b"\2\0\0\0",
        b"\6\0\0\0" + text("c"),
        b"\6\0\0\0" + text("c") + b"\0" + text("topic"),
        b"\x82\0\0\0" + text("c"),
        b"\x42\0\0\0" + text("c"),
        b"\2\0\0\0" + text("c") + text("user"),
        b"\x82\0\0\0" + text("c") + text("user") + text("password"),
    ],
)
def test_the_payload_must_be_what_the_flags_say(broker: Served, body: bytes) -> None:
    assert refused(broker, HEAD + body)


@pytest.mark.mqtt("MQTT-3.1.3-4", "MQTT-3.1.3-11", "MQTT-3.1.3-12")
@pytest.mark.parametrize(
    "body",
    [
        b"\2\0\0\0" + text(b"\xff"),
        b"\6\0\0\0" + text("c") + b"\0" + text(b"\xff") + text("x"),
        b"\x82\0\0\0" + text("c") + text(b"\xff"),
    ],
)
def test_names_and_topics_in_connect_must_be_text(broker: Served, body: bytes) -> None:
    assert refused(broker, HEAD + body)


@pytest.mark.mqtt("MQTT-3.1.3-5", "MQTT-3.1.4-5", "MQTT-3.2.2-8")
@pytest.mark.parametrize("name", ["a", "0123456789abcdefghijklm", "NOPQRSTUVWXYZnopqrstuvw", "xyzABCDEFGHIJKLM"])
def test_plain_names_are_allowed(broker: Served, name: str) -> None:
    answer, _ = answered(broker, HEAD + b"\2\0\0\0" + text(name))
    assert answer.reason_code == mqtt5.ConnAckReasonCode.SUCCESS


@pytest.mark.mqtt("MQTT-3.1.3-6", "MQTT-3.1.3-7", "MQTT-3.2.2-16")
def test_a_client_without_a_name_gets_one_of_its_own(broker: Served) -> None:
    names = {answered(broker, HEAD + b"\2\0\0\0" + text(""))[0].assigned_client_id for _ in range(3)}
    assert len(names) == 3
    assert None not in names


@pytest.mark.mqtt("MQTT-3.1.3-8", "MQTT-3.2.2-6")
def test_a_name_that_is_not_taken_closes_the_connection(broker: Served) -> None:
    answer, closed = answered(broker, HEAD + b"\2\0\0\0" + text("x" * 5_000))
    assert answer.reason_code == mqtt5.ConnAckReasonCode.CLIENT_ID_NOT_VALID
    assert not answer.session_present
    assert closed


@pytest.mark.mqtt("MQTT-3.1.4-2", "MQTT-3.1.4-6")
def test_what_follows_a_connect_that_is_refused_is_not_heard(broker: Served) -> None:
    with listening(broker, "witness", "r") as witness:
        said = HEAD + b"\x82\0\0\0" + text("c") + text("nobody")
        answer, closed = answered(broker, said, publish("r", b"from nobody"))
        assert answer.reason_code == mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
        assert closed
        witness.send(publish("r", b"end"))
        assert heard(witness).payload == b"end"


@pytest.mark.mqtt("MQTT-3.1.4-3", "MQTT-3.1.3-2")
def test_the_same_name_takes_over(broker: Served) -> None:
    with connected(broker, "twin") as first, connected(broker, "twin") as second:
        assert goodbye(first) == 0x8E
        assert pings(second)


@pytest.mark.mqtt("MQTT-3.1.2-4", "MQTT-3.1.4-4", "MQTT-3.2.2-2")
def test_a_clean_start_forgets_the_session(broker: Served) -> None:
    with listening(broker, "clean", "c/#", session_expiry_interval=100), connected(broker, "clean") as again:
        again.send(publish("c/1", b"x"))
        assert pings(again)
    with Raw(broker.port) as raw:
        assert not raw.connect("clean", clean_start=True, session_expiry_interval=100).session_present


@pytest.mark.mqtt("MQTT-3.1.2-4", "MQTT-3.1.4-4")
def test_a_clean_start_forgets_what_waits_and_what_is_under_way(broker: Served) -> None:
    drop(broker, listening(broker, "tidy", "tidy", session_expiry_interval=100), "tidy")
    with connected(broker, "speaker") as speaker:
        for number in (1, 2):
            speaker.send(publish("tidy", b"%d" % number, number, number))
            speaker.packet()
        with connected(broker, "tidy", clean_start=False, session_expiry_interval=100) as back:
            assert heard(back).payload == b"1"
        with connected(broker, "tidy", session_expiry_interval=100) as clean:
            assert pings(clean)
            clean.send(subscribe("tidy"))
            assert isinstance(clean.packet(), mqtt5.SubAckPacket)
            assert pings(clean)
    connected(broker, "tidy").socket.close()


@pytest.mark.mqtt("MQTT-3.1.2-5", "MQTT-3.1.2-6", "MQTT-3.1.2-23", "MQTT-4.5.0-1")
def test_a_session_is_resumed_where_there_is_one(broker: Served) -> None:
    with Raw(broker.port) as raw:
        assert not raw.connect("resumed", clean_start=False, session_expiry_interval=100).session_present
        raw.send(subscribe("resumed"))
        raw.packet()
        drop(broker, raw, "resumed")
    with connected(broker, "speaker") as speaker:
        speaker.send(publish("resumed", b"kept", 1, 1))
        speaker.packet()
    with Raw(broker.port) as raw:
        assert raw.connect("resumed", clean_start=False, session_expiry_interval=100).session_present
        assert heard(raw).payload == b"kept"


def is_present(broker: Served, name: str, **said: object) -> bool:
    """What a client that does not want a clean start is told; it closes at once."""
    with Raw(broker.port) as raw:
        answer = raw.connect(name, clean_start=False, **said)
        assert answer.reason_code == mqtt5.ConnAckReasonCode.SUCCESS
        drop(broker, raw, name)
        return answer.session_present


@pytest.mark.mqtt("MQTT-3.2.2-3")
def test_session_present_says_whether_there_was_a_session(broker: Served) -> None:
    assert not is_present(broker, "seen", session_expiry_interval=0)
    assert not is_present(broker, "seen", session_expiry_interval=0)
    assert not is_present(broker, "seen", session_expiry_interval=100)
    assert is_present(broker, "seen", session_expiry_interval=100)
    assert is_present(broker, "seen", session_expiry_interval=0)
    assert not is_present(broker, "seen", session_expiry_interval=100)
    with connected(broker, "seen", session_expiry_interval=100):  # a clean start, still open
        assert is_present(broker, "seen", session_expiry_interval=100)
    connected(broker, "seen").socket.close()


@pytest.mark.mqtt("MQTT-3.2.2-3", "MQTT-4.1.0-2")
def test_nothing_is_handed_on_of_a_session_that_ends_with_the_connection_that_is_taken_over(broker: Served) -> None:
    with listening(broker, "fleeting", "fleeting") as first, Raw(broker.port) as second:
        assert not second.connect("fleeting", clean_start=False, session_expiry_interval=100).session_present
        assert goodbye(first) == 0x8E
        second.send(publish("fleeting", b"x"))
        assert pings(second)


@pytest.mark.mqtt("MQTT-3.2.2-3")
def test_old_clients_are_told_whether_there_was_a_session(broker: Served) -> None:
    """Version 3.1.1: never after a clean session, not even one that is still open (3.1.2-6, 3.2.2-2 and 3.2.2-3)."""
    with Raw(broker.port) as clean, Raw(broker.port) as kept, Raw(broker.port) as again, Raw(broker.port) as last:
        assert clean.connect3("elder", flags=2) == b"\x20\2\0\0"
        clean.send(packet(0x82, b"\0\1" + text("elder") + b"\0"))
        assert clean.raw()[0] == 0x90
        assert kept.connect3("elder", flags=0) == b"\x20\2\0\0"
        kept.send(packet(0x30, text("elder")))
        assert pings(kept)
        assert again.connect3("elder", flags=0) == b"\x20\2\1\0"
        assert last.connect3("elder", flags=2) == b"\x20\2\0\0"


@pytest.mark.mqtt("MQTT-4.1.0-2")
@pytest.mark.parametrize(
    ("expiry_s", "last"),
    [
        (0, b"\xe0\0"),
        (0, b""),
        (1, b"\xe0\0"),
        (1, b""),
        (100, mqtt5.DisconnectPacket(session_expiry_interval=0).write()),
        (0xFFFFFFFF, mqtt5.DisconnectPacket(session_expiry_interval=1).write()),
    ],
)
def test_a_session_ends_when_its_time_is_over(broker: Served, expiry_s: int, last: bytes) -> None:
    with connected(broker, "short", session_expiry_interval=expiry_s) as raw:
        raw.send(last)
    broker.until(lambda: "short" not in broker.broker.sessions)
    assert not is_present(broker, "short")


@pytest.mark.mqtt("MQTT-4.1.0-1", "MQTT-4.1.0-2")
@pytest.mark.parametrize(
    ("expiry_s", "last"),
    [(2, b""), (1, mqtt5.DisconnectPacket(session_expiry_interval=100).write()), (0xFFFFFFFF, b"")],
)
def test_the_time_of_a_session_counts_from_the_end_of_the_connection(
    broker: Served, expiry_s: int, last: bytes
) -> None:
    with listening(broker, "lasts", "lasts", session_expiry_interval=expiry_s) as raw:
        since = broker.ask(broker.broker.steady)
        broker.until(lambda: broker.broker.steady() > since + min(expiry_s, 2))
        raw.send(publish("lasts", b"still"))
        assert heard(raw).payload == b"still"
        raw.send(last)
        drop(broker, raw, "lasts")
    assert is_present(broker, "lasts")


WILL = mqtt5.Will("will", payload=b"gone", qos=mqtt5.QoS.AT_LEAST_ONCE, user_properties=[("b", "1"), ("a", "2")])


@pytest.mark.mqtt("MQTT-3.1.2-7", "MQTT-3.1.2-14", "MQTT-3.1.3-10")
def test_a_will_is_published_as_it_was_said(broker: Served) -> None:
    with listening(broker, "heirs", "will", options=0b1010) as heirs:
        drop(broker, connected(broker, "mortal", will=WILL), "mortal")
        will = heard(heirs)
        assert (will.payload, will.retain) == (b"gone", False)
        assert will.user_properties == [("b", "1"), ("a", "2")]


DELAYED = mqtt5.Will("will", payload=b"gone", qos=mqtt5.QoS.AT_LEAST_ONCE, will_delay_interval=60)
SOON = mqtt5.Will("will", payload=b"gone", qos=mqtt5.QoS.AT_LEAST_ONCE, will_delay_interval=1)


def falls_silent(broker: Served, mortal: Raw) -> None:
    assert goodbye(mortal) == 0x8D


def is_cut_off(broker: Served, mortal: Raw) -> None:
    mortal.socket.close()


def breaks_the_rules(broker: Served, mortal: Raw) -> None:
    mortal.send(packet(0x30, text("#") + b"\0"))
    goodbye(mortal)


def asks_for_its_will(broker: Served, mortal: Raw) -> None:
    mortal.send(b"\xe0\1\4")


def leaves_for_another_reason(broker: Served, mortal: Raw) -> None:
    mortal.send(b"\xe0\1\x80")


def comes_again_clean(broker: Served, mortal: Raw) -> None:
    connected(broker, "mortal").socket.close()


def comes_again(broker: Served, mortal: Raw) -> None:
    connected(broker, "mortal", clean_start=False, session_expiry_interval=100).socket.close()


def is_hung_up_on(broker: Served, mortal: Raw) -> None:
    assert broker.ask(lambda: broker.broker.disconnect("mortal", "an operator wants so"))


@pytest.mark.mqtt("MQTT-3.1.2-8")
@pytest.mark.parametrize(
    ("will", "expiry_s", "keep_alive", "end"),
    [
        (WILL, 0, 0, is_cut_off),
        (WILL, 100, 0, is_cut_off),
        (WILL, 0, 1, falls_silent),
        (WILL, 100, 0, breaks_the_rules),
        (WILL, 100, 0, asks_for_its_will),
        (WILL, 100, 0, leaves_for_another_reason),
        (WILL, 100, 0, comes_again),
        (WILL, 100, 0, comes_again_clean),
        (WILL, 100, 0, is_hung_up_on),
        # Its delay is over, or its session, whichever is first.
        (SOON, 100, 0, is_cut_off),
        (DELAYED, 0, 0, is_cut_off),
        (DELAYED, 1, 0, is_cut_off),
        (DELAYED, 100, 0, comes_again_clean),
    ],
)
def test_a_will_is_published_however_the_connection_ends_but_by_a_goodbye(
    broker: Served, will: mqtt5.Will, expiry_s: int, keep_alive: int, end: Callable[[Served, Raw], None]
) -> None:
    with listening(broker, "heirs", "will", options=1) as heirs:
        said = {"will": will, "session_expiry_interval": expiry_s, "keep_alive": keep_alive}
        with connected(broker, "mortal", **said) as mortal:
            end(broker, mortal)
            assert heard(heirs).payload == b"gone"


@pytest.mark.mqtt("MQTT-3.1.2-8")
@pytest.mark.parametrize("end", [is_cut_off, comes_again])
def test_a_will_that_waits_is_not_published_where_its_client_is_back_before(
    broker: Served, end: Callable[[Served, Raw], None]
) -> None:
    with listening(broker, "heirs", "will") as heirs:
        with connected(broker, "mortal", will=DELAYED, session_expiry_interval=100) as mortal:
            end(broker, mortal)
            comes_again(broker, mortal)
            comes_again_clean(broker, mortal)
        heirs.send(publish("will", b"end"))
        assert heard(heirs).payload == b"end"


@pytest.mark.mqtt("MQTT-3.1.2-8")
@pytest.mark.parametrize("end", [b"", packet(0x30, text("#"))])
@pytest.mark.parametrize("clean", [0, 2])
def test_an_old_clients_will_is_published_unless_it_says_goodbye(broker: Served, clean: int, end: bytes) -> None:
    """Version 3.1.1 says the same under the same number."""
    hello = packet(0x10, text("MQTT") + b"\4" + bytes((4 | clean, 0, 0)) + text("old") + text("will") + text("gone"))
    with listening(broker, "heirs", "will") as heirs:
        for last, heir in ((b"\xe0\0", b"end"), (end, b"gone")):
            with Raw(broker.port) as old:
                old.send(hello)
                assert old.raw()[3] == 0
                old.send(last)
                if last:
                    assert old.is_closed()
            heirs.send(*([publish("will", b"end")] if heir == b"end" else []))
            assert heard(heirs).payload == heir
    connected(broker, "old").socket.close()


@pytest.mark.mqtt("MQTT-3.1.2-10", "MQTT-3.14.4-3")
def test_a_goodbye_counts_though_its_client_waits_for_no_answer_at_all(broker: Served) -> None:
    """All at once, and then it closes: what it has said is looked at before the end of the connection is."""
    with listening(broker, "heirs", "will", "hasty") as heirs:
        for _ in range(20):
            with Raw(broker.port) as hasty:
                hello = mqtt5.ConnectPacket("hasty", clean_start=True, will=WILL).write()
                hasty.send(hello, publish("hasty", b"x"), b"\xe0\0")
                hasty.socket.shutdown(socket.SHUT_WR)
                assert heard(heirs).topic == "hasty"
                assert hasty.raw()[0] == 0x20
                assert hasty.is_closed()


@pytest.mark.mqtt("MQTT-3.1.2-15")
def test_a_will_that_is_to_be_retained_is(broker: Served) -> None:
    will = mqtt5.Will("will/kept", payload=b"gone", retain=True)
    with listening(broker, "heirs", "will/kept") as heirs:
        drop(broker, connected(broker, "mortal", will=will), "mortal")
        assert heard(heirs).payload == b"gone"
    with listening(broker, "late", "will/kept") as late:
        assert heard(late).retain


@pytest.mark.mqtt("MQTT-3.1.2-10", "MQTT-3.14.4-3")
def test_a_will_is_forgotten_at_a_proper_goodbye(broker: Served) -> None:
    with listening(broker, "heirs", "will") as heirs:
        with connected(broker, "mortal", will=WILL) as mortal:
            mortal.send(b"\xe0\0")
            assert mortal.is_closed()
        heirs.send(publish("will", b"end"))
        assert heard(heirs).payload == b"end"


@pytest.mark.mqtt("MQTT-3.1.3-9")
def test_a_will_that_waits_is_not_said_where_the_client_is_back(broker: Served) -> None:
    late = mqtt5.Will("will/late", payload=b"gone", will_delay_interval=60)
    with listening(broker, "heirs", "will/late") as heirs:
        drop(broker, connected(broker, "late", will=late, session_expiry_interval=100), "late")
        with Raw(broker.port) as back:
            assert back.connect("late", clean_start=False, session_expiry_interval=100).session_present
            back.send(b"\xe0\0")
            assert back.is_closed()
        heirs.send(publish("will/late", b"end"))
        assert heard(heirs).payload == b"end"


@pytest.mark.mqtt("MQTT-3.1.2-22", "MQTT-3.2.2-22")
def test_silence_for_one_and_a_half_times_the_keep_alive_ends_the_connection(broker: Served) -> None:
    with Raw(broker.port) as raw:
        assert raw.connect("silent", keep_alive=1).server_keep_alive is None
        since = time.monotonic()
        assert pings(raw)
        assert goodbye(raw) == 0x8D
        assert time.monotonic() - since >= 1.5, "and not earlier"


@pytest.mark.mqtt("MQTT-3.1.2-28", "MQTT-3.2.0-1", "MQTT-3.2.0-2", "MQTT-3.2.2-1")
def test_the_answer_comes_first_and_once_and_says_only_what_was_asked(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(mqtt5.ConnectPacket("asks", clean_start=True).write(), subscribe("a"), publish("a", b"x"))
        said = raw.raw()
        assert said[0] == 0x20
        assert said[2] in (0, 1)
        answer = mqtt5.read(memoryview(said))[0]
        assert isinstance(answer, mqtt5.ConnAckPacket)
        assert answer.response_info is None
        assert [raw.raw()[0] for _ in range(2)] == [0x90, 0x30]


@pytest.mark.mqtt("MQTT-3.1.2-29")
def test_no_words_come_where_none_are_wanted(broker: Served) -> None:
    with connected(broker, "curt", request_problem_info=False) as raw:
        raw.send(subscribe(DEEP))
        answer = raw.packet()
        assert isinstance(answer, mqtt5.SubAckPacket)
        assert answer.reason_str is None
        assert answer.user_properties == []
        raw.send(subscribe("$lasting/a"))
        lasting = raw.packet()
        assert isinstance(lasting, mqtt5.SubAckPacket)
        assert (lasting.reason_str, lasting.user_properties) == (None, [])
        raw.send(publish("$share", b"x", 1, 1))
        acknowledged = raw.packet()
        assert isinstance(acknowledged, mqtt5.PubAckPacket)
        assert acknowledged.reason_str is None


@pytest.mark.mqtt("MQTT-3.2.2-19", "MQTT-3.2.2-20", "MQTT-3.9.2-1", "MQTT-3.9.2-2", "MQTT-3.14.2-3", "MQTT-3.14.2-4")
def test_words_are_left_out_where_the_packet_would_be_too_large(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.connect("tiny", max_packet_size=64)
        raw.send(subscribe(DEEP, DEEP + "b", DEEP + "c"))
        answer = raw.raw()
        assert len(answer) <= 64
        assert answer[-3:] == b"\x8f\x8f\x8f"
        raw.send(packet(0x30, text("#") + b"\0"))
        assert len(raw.raw()) <= 64
    with Raw(broker.port) as raw:
        raw.send(mqtt5.ConnectPacket("x" * 600, max_packet_size=24).write())
        assert len(raw.raw()) <= 24


@pytest.mark.mqtt("MQTT-3.1.2-24")
@pytest.mark.parametrize("first", [0x82, 0xA2])
def test_an_answer_that_a_client_does_not_take_costs_the_connection_and_changes_nothing(
    broker: Served, first: int
) -> None:
    """No shorter SUBACK or UNSUBACK could be sent instead: each topic filter has its code."""
    filters = b"".join(text(f"f{number:02}") + (b"\0" if first == 0x82 else b"") for number in range(60))
    with connected(broker, "narrow", max_packet_size=64, session_expiry_interval=100) as raw:
        raw.send(packet(first, b"\0\1\0" + filters))
        said = raw.raw()
        assert (said[0], said[2]) == (0xE0, 0x95)
        assert len(said) <= 64
        assert raw.is_closed()
    assert broker.ask(lambda: broker.broker.sessions["narrow"].subscriptions) == {}
    with connected(broker, "narrow", max_packet_size=64) as raw:
        raw.send(packet(first, b"\0\1\0" + filters[: len(filters) // 60]))
        assert raw.raw()[0] == first + 0x0E


@pytest.mark.mqtt("MQTT-3.1.2-24")
@pytest.mark.parametrize("size", range(1, 40))
def test_no_answer_to_connect_is_larger_than_asked_for(broker: Served, size: int) -> None:
    """Let in, refused, and malformed after the size was said."""
    most = b"\x05\x27" + size.to_bytes(4, "big")
    for body in (
        HEAD + b"\2\0\0" + most + text("sized"),
        HEAD + b"\2\0\0" + most + text(""),
        HEAD + b"\2\0\0" + most + text("x" * 600),
        HEAD + b"\x82\0\0" + most + text("sized") + text("nobody"),
        HEAD + b"\3\0\0" + most + text("sized"),
        HEAD + b"\2\0\0" + most + text("sized") + b"more",
    ):
        with Raw(broker.port) as raw:
            raw.send(packet(0x10, body))
            assert len(raw.raw()) <= size


@pytest.mark.mqtt("MQTT-3.1.2-24")
def test_nothing_that_a_client_is_told_is_larger_than_it_takes(broker: Served) -> None:
    with listening(broker, "frugal", "size/#", max_packet_size=24) as raw, connected(broker, "speaker") as speaker:
        speaker.send(publish("size/retained", bytes(30), retain=True), publish("size/x", bytes(30)))
        speaker.send(publish("size/x", bytes(30), 1, 1), publish("size/x", b"", user_properties=[("a" * 9, "b" * 9)]))
        speaker.send(publish("size/x", b"fits"))
        speaker.packet()
        raw.send(subscribe("size/retained", "ok"), publish("$share", b"", 1, 7))
        raw.send(mqtt5.PubRelPacket(9).write(), b"\xc0\0")
        sizes = []
        while (said := raw.raw()) != b"\xd0\0":
            sizes.append(len(said))
        assert max(sizes) <= 24
        connected(broker, "frugal")
        assert len(raw.raw()) <= 24
        speaker.send(publish("size/retained", b"", retain=True))
        assert pings(speaker)


@pytest.mark.mqtt("MQTT-3.12.4-1")
def test_a_ping_is_answered(broker: Served) -> None:
    with connected(broker, "pinger") as raw:
        assert pings(raw)


@pytest.mark.mqtt("MQTT-3.14.0-1")
def test_no_goodbye_without_a_welcome(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(packet(0x10, b"\0\4MQ"))
        said = raw.raw()
        assert said == b"" or said[0] == 0x20


@pytest.mark.mqtt("MQTT-3.14.2-1", "MQTT-3.14.2-2", "MQTT-3.14.4-1", "MQTT-3.14.4-2")
def test_a_goodbye_is_the_last_word_and_has_no_session_expiry(broker: Served) -> None:
    with connected(broker, "last") as raw:
        raw.send(packet(0x30, text("#") + b"\0"), b"\xc0\0")
        said = raw.packet()
        assert isinstance(said, mqtt5.DisconnectPacket)
        assert said.session_expiry_interval is None
        assert int(said.reason_code) >= 128
        assert raw.is_closed()


@pytest.mark.mqtt("MQTT-4.12.0-1")
def test_an_unknown_way_to_authenticate_is_refused(broker: Served) -> None:
    properties = b"\x15" + text("SCRAM-SHA-1")
    answer, closed = answered(broker, HEAD + b"\2\0\0" + bytes((len(properties),)) + properties + text("c"))
    assert answer.reason_code == mqtt5.ConnAckReasonCode.BAD_AUTHENTICATION_METHOD
    assert closed


@pytest.mark.mqtt("MQTT-4.12.0-6", "MQTT-4.12.1-2")
def test_auth_is_an_error_where_nobody_began_it(broker: Served) -> None:
    with connected(broker, "auth") as raw:
        raw.send(packet(0xF0, b"\x18\0"))
        assert goodbye(raw) == PROTOCOL_ERROR


def test_a_session_that_lasts_has_a_token_which_is_another_one_each_time(broker: Served) -> None:
    tokens = [_token(broker, session_expiry_interval=60, clean_start=False) for _ in range(2)]
    assert all(tokens)
    assert len(set(tokens)) == 2
    assert _token(broker) == ""


@pytest.mark.mqtt("MQTT-3.2.2-20")
def test_no_token_is_sent_where_the_packet_would_be_too_large(broker: Served) -> None:
    with Raw(broker.port) as raw:
        raw.send(mqtt5.ConnectPacket("narrow", session_expiry_interval=60, max_packet_size=24).write())
        assert len(raw.raw()) <= 24


def _token(broker: Served, **said: object) -> str:
    with Raw(broker.port) as raw:
        raw.send(mqtt5.ConnectPacket("keeper", **said).write())  # type: ignore[arg-type]
        answer = raw.packet()
        assert isinstance(answer, mqtt5.ConnAckPacket)
        return dict(answer.user_properties).get("godwit-token", "")
