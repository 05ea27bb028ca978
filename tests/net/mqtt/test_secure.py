"""TLS that does not come about is told to the client, in the log and in a count; and what does is served whole."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
import time

import mqtt5
import pytest
from tests.net.certificates import Authority
from tests.net.mqtt.serving import Raw, Served, served

from godwit.net.mqtt.options import Options

ALERT = 21
QUICK = Options(connect_wait_s=0.5)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def context(authority: Authority, *, clients: bool = False) -> ssl.SSLContext:
    made = authority.context("broker", server=True)
    made.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return made


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "no TLS" in record.getMessage()]


def all_of(wire: socket.socket) -> bytes:
    found = b""
    while data := wire.recv(65_536):
        found += data
    return found


def test_who_speaks_no_tls_is_hung_up_on_with_a_line_and_a_count(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), served(tls=context(authority)) as broker:
        with socket.create_connection(("127.0.0.1", broker.tls_port), 60) as wire:
            wire.sendall(mqtt5.ConnectPacket("plain").write())
            assert all_of(wire) == b""  # it could not read an alert either
        broker.until(lambda: broker.counts.handshakes_failed == 1)
    (line,) = told(caplog)
    assert line.startswith("no TLS with 127.0.0.1: ")


def test_who_knows_old_versions_only_gets_the_alert_that_says_so(authority: Authority) -> None:
    hello = struct.pack(">HHB", 0x0302, 0, 0)[:2] + bytes(32) + b"\0" + b"\0\2\0\x2f" + b"\1\0"
    record = b"\x16\3\1" + struct.pack(">HB", len(hello) + 4, 1) + len(hello).to_bytes(3, "big") + hello
    with served(tls=context(authority)) as broker:
        with socket.create_connection(("127.0.0.1", broker.tls_port), 60) as wire:
            wire.sendall(record)
            answer = all_of(wire)
        assert (answer[0], answer[6]) == (ALERT, 70)  # protocol_version
        broker.until(lambda: broker.counts.handshakes_failed == 1)


def test_who_has_no_certificate_where_one_is_asked_for_is_told(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO), served(tls=context(authority, clients=True)) as broker:
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.load_verify_locations(authority.ca)
        with socket.create_connection(("127.0.0.1", broker.tls_port), 60) as wire:
            secure = client.wrap_socket(wire, server_hostname="localhost")
            with pytest.raises(ssl.SSLError, match=r"(?i)alert.*certificate required"):
                secure.recv(1)
        broker.until(lambda: broker.counts.handshakes_failed == 1)
    assert "did not return a certificate" in told(caplog)[0]


def test_who_never_begins_a_handshake_is_hung_up_on(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), served(QUICK, tls=context(authority)) as broker:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", broker.tls_port), 60) as wire:
            assert wire.recv(1) == b""
        assert time.monotonic() - began > 0.3
        broker.until(lambda: broker.counts.handshakes_failed == 1)
    assert "not within 0.5 s" in told(caplog)[0]


def test_who_shakes_hands_and_says_nothing_is_hung_up_on_too(authority: Authority) -> None:
    with served(QUICK, tls=context(authority)) as broker:
        client = secured(broker, authority)
        assert client.recv(1) == b""
        assert broker.counts.handshakes_failed == 0


def secured(broker: Served, authority: Authority) -> ssl.SSLSocket:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(authority.ca)
    wire = socket.create_connection(("127.0.0.1", broker.tls_port), 60)
    return made.wrap_socket(wire, server_hostname="localhost")


class RawTls(Raw):
    def __init__(self, broker: Served, authority: Authority) -> None:
        self.socket = secured(broker, authority)
        self._buffer = b""


def test_much_goes_through_in_both_directions(authority: Authority) -> None:
    payload = bytes(range(256)) * 3_000
    with served(tls=context(authority)) as broker, RawTls(broker, authority) as client:
        client.connect("much")
        client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a")]).write())
        assert isinstance(client.packet(), mqtt5.SubAckPacket)
        for _ in range(5):
            client.send(mqtt5.PublishPacket("a", payload).write())
        for _ in range(5):
            heard = client.packet()
            assert isinstance(heard, mqtt5.PublishPacket)
            assert heard.payload == payload


@pytest.mark.parametrize("attempt", range(5))
def test_who_talks_on_after_its_mistake_hears_why_it_is_hung_up_on(authority: Authority, attempt: int) -> None:
    with served(tls=context(authority)) as broker, RawTls(broker, authority) as client:
        client.connect("talker")
        client.send(b"\xf0\0", *[mqtt5.PublishPacket("a", bytes(1_000)).write() for _ in range(200)])
        goodbye = client.packet()
        assert isinstance(goodbye, mqtt5.DisconnectPacket)
