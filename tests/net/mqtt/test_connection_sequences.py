"""A table of packet sequences against a running broker: both versions, over TCP and as WebSocket."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import mqtt5
import pytest
from tests.net.mqtt.sequences import ENDS, FIVE, THREE, Sequence, table
from tests.net.mqtt.serving import Raw, Served, served
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as websocket

from godwit.net.mqtt.framing import length_at

TABLE = table()
PING, PONG = b"\xc0\0", b"\xd0\0"


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as one:
        yield one


def opening(sequence: Sequence) -> bytes:
    if sequence.version == FIVE:
        return mqtt5.ConnectPacket("").write()
    return b"\x10\x0c\0\4MQTT\4\2\0\0\0\0"


def over_tcp(broker: Served, sequence: Sequence) -> list[bytes]:
    """All that the broker says, up to the answer to a last ping, or to the end of the connection."""
    with Raw(broker.port) as client:
        client.send(opening(sequence), sequence.said, _asked(sequence))
        return _heard(sequence, client.raw, client.send)


def over_websocket(broker: Served, sequence: Sequence) -> list[bytes]:
    where = f"ws://127.0.0.1:{broker.websocket_port}/mqtt"
    with websocket(where, subprotocols=["mqtt"], compression=None, proxy=None) as client:  # type: ignore[list-item]
        client.send(opening(sequence) + sequence.said + _asked(sequence))
        buffer = bytearray()

        def raw() -> bytes:
            while True:
                body, size = length_at(bytes(buffer), 0, len(buffer))
                if body and body + size <= len(buffer):
                    packet = bytes(buffer[: body + size])
                    del buffer[: body + size]
                    return packet
                try:
                    data = client.recv()
                except ConnectionClosed:
                    return b""
                assert isinstance(data, bytes)
                buffer.extend(data)

        return _heard(sequence, raw, client.send)


def _asked(sequence: Sequence) -> bytes:
    """Where the connection should end a ping follows at once: later there may be nobody to hear it."""
    return PING if sequence.answers is ENDS else b""


def _heard(sequence: Sequence, raw: Callable[[], bytes], send: Callable[[bytes], None]) -> list[bytes]:
    """The answers that are due, then that to a ping; whatever comes where the connection should end."""
    assert raw()[0] == 0x20, "CONNACK"
    heard = [raw() for _ in range(sequence.due)]
    if sequence.answers is not ENDS:
        send(PING)
    while packet := raw():
        heard.append(packet)
        if packet == PONG:
            break
    return heard


def judge(sequence: Sequence, heard: list[bytes]) -> str:
    """What is wrong; empty: nothing."""
    if sequence.answers is ENDS:
        if PONG in heard:
            return "the connection goes on"
        if sequence.version == FIVE:
            last = heard[-1] if heard else b""
            return "" if last[:1] == b"\xe0" and last[2] >= 0x80 else "no DISCONNECT with a reason"
        return "" if not heard else "something was said"
    if not heard or heard[-1] != PONG:
        return "the connection has ended"
    if sequence.granted is not None:
        answer = heard[0]
        return "" if answer[0] == 0x90 and answer[-1] == sequence.granted else "another SUBACK"
    # Version 5 may add a reason behind the packet identifier: 16, nobody wants it.
    said = [(one[0], one[2:4]) for one in heard[:-1]]
    return "" if said == [(one[0], one[2:4]) for one in sequence.answers] else "other answers"


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 500
    assert len({(one.version, one.name) for one in TABLE}) == len(TABLE)


@pytest.mark.mqtt("MQTT-4.13.1-1")
@pytest.mark.parametrize("version", [THREE, FIVE])
@pytest.mark.parametrize("over", [over_tcp, over_websocket])
def test_every_sequence_has_the_end_that_the_standard_says(broker: Served, version: int, over: object) -> None:
    assert callable(over)
    wrong = []
    for sequence in TABLE:
        if sequence.version == version:
            heard = over(broker, sequence)
            if problem := judge(sequence, heard):
                wrong.append(f"{sequence.name}: {problem}: {[one.hex() for one in heard]}")
    assert wrong == []
