"""MQTT in WebSocket frames: cut anywhere, binary only, and only for who asks for MQTT."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import mqtt5
import pytest
from tests.net.mqtt.serving import Raw, Served, served
from tests.net.nonsense import UPGRADE, masked
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from godwit.net.mqtt.options import Options

HELLO = mqtt5.ConnectPacket("web", clean_start=True).write()


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served(Options(connect_wait_s=1.0)) as running:
        yield running


def open_socket(broker: Served, *subprotocols: str) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{broker.websocket_port}/mqtt", subprotocols=subprotocols or None)  # type: ignore[arg-type]


def heard(socket: ClientConnection, count: int) -> list[mqtt5.Packet]:
    """As many packets, whatever frames they come in."""
    data = b""
    found: list[mqtt5.Packet] = []
    while len(found) < count:
        try:
            packet, size = mqtt5.read(memoryview(data))
        except IndexError:
            message = socket.recv(10)
            assert isinstance(message, bytes)
            data += message
            continue
        found.append(packet)
        data = data[size:]
    return found


def test_packets_fall_anywhere_in_frames(broker: Served) -> None:
    subscribe = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("web/#")]).write()
    said = HELLO + subscribe + mqtt5.PublishPacket("web/1", b"x" * 50).write() * 3
    with open_socket(broker, "mqtt") as socket:
        assert socket.subprotocol == "mqtt"
        for position in range(0, len(said), 5):
            socket.send(said[position : position + 5])
        kinds = [type(packet).__name__ for packet in heard(socket, 5)]
        assert kinds == ["ConnAckPacket", "SubAckPacket", *["PublishPacket"] * 3]


def test_a_message_may_come_in_fragments(broker: Served) -> None:
    with open_socket(broker, "mqtt") as socket:
        socket.send([HELLO[:3], HELLO[3:9], HELLO[9:]])
        assert isinstance(heard(socket, 1)[0], mqtt5.ConnAckPacket)


@pytest.mark.parametrize("offered", [(), ("chat",)])
def test_who_does_not_ask_for_mqtt_is_refused(broker: Served, offered: tuple[str, ...]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        open_socket(broker, *offered)
    assert refused.value.response.status_code == 400


def test_text_is_not_mqtt(broker: Served) -> None:
    with open_socket(broker, "mqtt") as socket:
        socket.send(HELLO)
        heard(socket, 1)
        socket.send("hello")
        assert isinstance(heard(socket, 1)[0], mqtt5.DisconnectPacket)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1003


def test_a_protocol_error_is_told_before_the_frame_that_closes(broker: Served) -> None:
    with open_socket(broker, "mqtt") as socket:
        socket.send(HELLO)
        heard(socket, 1)
        socket.send(b"\x30\x06\0\3a/#\0")
        goodbye = heard(socket, 1)[0]
        assert isinstance(goodbye, mqtt5.DisconnectPacket)
        assert goodbye.reason_code == mqtt5.DisconnectReasonCode.MALFORMED_PACKET
        with pytest.raises(ConnectionClosed):
            socket.recv(10)


def test_what_is_no_websocket_is_closed_and_nobody_notices(broker: Served) -> None:
    with open_socket(broker, "mqtt") as socket:
        socket.send(HELLO)
        heard(socket, 1)
        for nonsense in (HELLO, b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100):
            with Raw(broker.websocket_port) as raw:
                raw.send(nonsense)
                while raw.socket.recv(1000):
                    pass
        socket.send(b"\xc0\0")
        assert isinstance(heard(socket, 1)[0], mqtt5.PingRespPacket)


def test_a_socket_that_says_nothing_is_closed(broker: Served) -> None:
    with open_socket(broker, "mqtt") as socket, pytest.raises(ConnectionClosed):
        socket.recv(10)


def page(broker: Served, origin: str | None, host: str = "") -> ClientConnection:
    """A page from there, by the address of the broker or by a name that points to it."""
    url = f"ws://{host or '127.0.0.1'}:{broker.websocket_port}/mqtt"
    sock = socket.create_connection(("127.0.0.1", broker.websocket_port))
    return connect(url, sock=sock, subprotocols=["mqtt"], origin=origin)  # type: ignore[arg-type, list-item]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (None, ""),
        ("http://127.0.0.1:8000", ""),
        ("http://localhost:8000", "localhost"),
    ],
)
def test_pages_of_the_brokers_own_address_and_programs_get_in(broker: Served, origin: str | None, host: str) -> None:
    with page(broker, origin, host) as web:
        web.send(HELLO)
        assert isinstance(heard(web, 1)[0], mqtt5.ConnAckPacket)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://evil.example", ""),
        ("null", ""),
        ("https://127.0.0.1.evil.example", ""),
        # A name of the page's own that it lets point to this machine.
        ("http://evil.example", "evil.example"),
    ],
)
def test_no_other_page_can_use_a_broker_through_its_visitors_browser(broker: Served, origin: str, host: str) -> None:
    with pytest.raises(InvalidStatus) as caught:
        page(broker, origin, host)
    assert caught.value.response.status_code == 403


def test_pages_that_are_named_get_in() -> None:
    with served(Options(origins=("https://fleet.example",))) as broker, page(broker, "https://fleet.example") as web:
        web.send(HELLO)
        assert isinstance(heard(web, 1)[0], mqtt5.ConnAckPacket)


def test_whoever_pings_without_reading_the_answers_is_not_read_either(broker: Served) -> None:
    hello = (
        "GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", broker.websocket_port)) as raw:
        raw.sendall(hello.encode())
        assert b" 101 " in raw.recv(4_096)
        raw.sendall(b"\x82" + bytes((0x80 | len(HELLO),)) + bytes(4) + HELLO)
        raw.settimeout(1.0)
        frame = b"\x89\xfd" + bytes(4) + bytes(125)  # a ping, masked with zeros
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 * 1024 * 1024:
                sent += raw.send(frame * 500)
        assert sent < 32 * 1024 * 1024


def framed(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Opcode and content of each frame of a server."""
    while data:
        start = {126: 4, 127: 10}.get(data[1], 2)
        size = int.from_bytes(data[2:start], "big") if start > 2 else data[1]
        yield data[0] & 15, data[start : start + size]
        data = data[start + size :]


@pytest.mark.parametrize("expiry_s", [0, 100])
@pytest.mark.parametrize("talk", [0, 300])
@pytest.mark.parametrize("opcode", [1, 2])
@pytest.mark.parametrize("end", [b"", masked(8, b"\x03\xe8"), b"\xff\xff\xff"])
def test_who_says_all_at_once_hears_what_was_wrong_whatever_follows(
    broker: Served, expiry_s: int, talk: int, opcode: int, end: bytes
) -> None:
    """Its CONNECT may still wait for the disk, and the last frame of a WebSocket may be ready already: our answers go
    before that all the same."""
    hello = mqtt5.ConnectPacket("hasty", clean_start=True, session_expiry_interval=expiry_s).write()
    said = masked(2, b"\xf0\0") + masked(opcode, b"\xc0\0") * talk + end
    with socket.create_connection(("127.0.0.1", broker.websocket_port), 60) as wire:
        wire.sendall(UPGRADE + masked(2, hello) + said)
        found = b""
        while data := wire.recv(65_536):
            found += data
    frames = list(framed(found.partition(b"\r\n\r\n")[2]))
    assert [opcode for opcode, _ in frames] == [2] * (len(frames) - 1) + [8]
    words = b"".join(data for _, data in frames[:-1])
    size = mqtt5.read(memoryview(words))[1]
    assert (words[0], words[size]) == (0x20, 0xE0)


def test_who_talks_on_after_its_mistake_hears_why_it_is_hung_up_on(broker: Served) -> None:
    """It can go on talking, to nobody. Where its next word met a closed connection, the system would answer by a reset,
    and most clients then throw away what they have not read yet."""
    with socket.create_connection(("127.0.0.1", broker.websocket_port), 60) as wire:
        wire.sendall(UPGRADE + masked(2, HELLO))
        found = b""
        while b"\r\n\r\n" not in found or b"\x20" not in found.partition(b"\r\n\r\n")[2]:
            found += wire.recv(65_536)
        wire.sendall(masked(2, b"\xf0\0"))
        for _ in range(20):
            wire.sendall(masked(2, bytes(1_000)))
            time.sleep(0.005)
        found = b""
        while data := wire.recv(65_536):
            found += data
    assert found[0] == 0x82
    assert found[2] == 0xE0
    assert found[-4:-2] == b"\x88\2"


@pytest.mark.parametrize("over", ["tcp", "websocket"])
def test_who_read_nothing_before_its_mistake_still_hears_why_it_is_hung_up_on(broker: Served, over: str) -> None:
    """So much waits for it that the transport takes no more; it is read once its client begins to read."""
    framed_as = masked if over == "websocket" else lambda opcode, data: data
    wanted = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("much/#", max_qos=mqtt5.QoS.AT_MOST_ONCE)]).write()
    much = mqtt5.PublishPacket("much/1", bytes(60_000)).write()
    with socket.create_connection(
        ("127.0.0.1", broker.websocket_port if over == "websocket" else broker.port), 60
    ) as wire:
        wire.sendall(UPGRADE * (over == "websocket") + framed_as(2, HELLO) + framed_as(2, wanted))
        broker.until(lambda: "web" in broker.broker.sessions and bool(broker.broker.sessions["web"].subscriptions))
        with Raw(broker.port) as other:
            other.connect("other")
            while not any(one.held_bytes for one in broker.front.connections):
                other.send(much)
                other.send(b"\xc0\0")
                other.packet()
        gone = broker.broker.sessions["web"]
        wire.sendall(framed_as(2, b"\xf0\0"))
        if over == "tcp":  # over a WebSocket it is not even heard before it reads
            broker.until(lambda: gone.outlet is None)
        found = b""
        while data := wire.recv(1 << 20):
            found += data
    if over == "websocket":
        found = b"".join(data for opcode, data in framed(found.partition(b"\r\n\r\n")[2]) if opcode == 2)
    kinds = []
    while found:
        packet, size = mqtt5.read(memoryview(found))
        kinds.append(type(packet).__name__)
        found = found[size:]
    assert kinds[-1] == "DisconnectPacket"
    assert kinds.count("PublishPacket") > 3
