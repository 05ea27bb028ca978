"""Load for an MQTT broker, cheap enough that the broker is what is measured: packets are made before, and arrivals are
counted by their bytes. Run as a process of its own by benchmarks/broker.py; prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mqtt5
import numpy as np

PAYLOAD_B = 256
ANSWER_S, WARM_S = 30.0, 120.0
GIVEN_UP_S = 5.0
"""Nothing comes for so long: the rest is lost."""

QOS = [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE]
CONNECT_FIVE = 5


SUBSCRIBED_TOGETHER = 50
"""So many subscriptions of one client are asked for before their answers are read."""


class Spent:
    """The processor time of the broker while it is loaded, without what came before: connections, subscriptions."""

    pid = 0
    """Of the broker, if it is told."""
    begun_us = ended_us = 0.0

    @classmethod
    def begin(cls) -> None:
        cls.begun_us = cls.ended_us = cls._now_us()

    @classmethod
    def end(cls) -> None:
        cls.ended_us = cls._now_us()

    @classmethod
    def _now_us(cls) -> float:
        tasks = Path(f"/proc/{cls.pid}/task").glob("*/schedstat") if cls.pid else ()
        return sum(int(one.read_text().split()[0]) for one in tasks) / 1000

    @classmethod
    def told(cls, found: dict[str, float]) -> dict[str, float]:
        return {**found, "cpu_us": cls.ended_us - cls.begun_us} if cls.pid else found


class Client:
    """A blocking connection that knows just enough MQTT."""

    def __init__(self, port: int, name: str, version: int, *, clean: bool = True, receive_max: int = 20) -> None:
        self.version = version
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if version == CONNECT_FIVE:
            expiry = 0 if clean else 3600
            packet = mqtt5.ConnectPacket(
                name, clean_start=clean, session_expiry_interval=expiry, receive_max=receive_max
            )
            self.socket.sendall(packet.write())
        else:
            body = b"\0\4MQTT\4" + bytes([2 if clean else 0]) + b"\0\0" + text(name)
            self.socket.sendall(b"\x10" + bytes([len(body)]) + body)
        self.packet()

    def subscribe(self, *topics: str, qos: int = 0) -> None:
        """Each with a packet of its own; the answers are read when all are sent."""
        self.socket.sendall(b"".join(self._subscription(one, qos) for one in topics))
        for _ in topics:
            kind, answer = self.packet()
            if kind != 0x90 or answer[-1] > 2:
                raise SystemExit(f"subscription refused: {answer!r}")

    def _subscription(self, topics: str, qos: int) -> bytes:
        if self.version == CONNECT_FIVE:
            return mqtt5.SubscribePacket(1, [mqtt5.TopicFilter(topics, max_qos=QOS[qos])]).write()
        body = b"\0\1" + text(topics) + bytes([qos])
        return b"\x82" + length(len(body)) + body

    def publication(self, topic: str, payload: bytes, qos: int = 0, number: int = 0) -> bytes:
        body = text(topic) + (number.to_bytes(2, "big") if qos else b"")
        body += (b"\0" if self.version == CONNECT_FIVE else b"") + payload
        return bytes([0x30 | qos << 1]) + length(len(body)) + body

    def packet(self) -> tuple[int, bytes]:
        """The next packet: its first byte and its body."""
        head = self._exactly(2)
        size, shift, byte = head[1] & 0x7F, 7, head[1]
        while byte & 0x80:
            byte = self._exactly(1)[0]
            size |= (byte & 0x7F) << shift
            shift += 7
        return head[0], self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            more = self.socket.recv(size - len(found))
            if not more:
                raise SystemExit("the broker has closed the connection")
            found += more
        return found


def text(value: str) -> bytes:
    return len(value.encode()).to_bytes(2, "big") + value.encode()


def length(size: int) -> bytes:
    found = bytearray()
    while True:
        size, low = size >> 7, size & 0x7F
        found.append(low | (0x80 if size else 0))
        if not size:
            return bytes(found)


def pumped(
    publisher: socket.socket, out: bytes, subscribers: list[socket.socket], expected_b: int, window_b: int
) -> Any:
    """Send `out`, never more than the window ahead of what came back; (seconds, bytes that came)."""
    poll, by_number = select.epoll(), {one.fileno(): one for one in subscribers}
    for one in (publisher, *subscribers):
        one.setblocking(False)
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    buffer, view = bytearray(1 << 20), memoryview(out)
    each_b = expected_b / len(out)
    sent = got = 0
    Spent.begin()
    start = last = time.perf_counter()
    while got < expected_b:
        ahead = sent - got / each_b
        if sent < len(out) and ahead < window_b:
            with suppress(BlockingIOError):
                sent += publisher.send(view[sent : sent + int(window_b - ahead)])
        for number, _ in poll.poll(0 if sent < len(out) and ahead < window_b else 0.5):
            got += by_number[number].recv_into(buffer)
            last = time.perf_counter()
        if time.perf_counter() - last > GIVEN_UP_S:
            break
    Spent.end()
    return max(last - start, 1e-9), got


def fan_out(port: int, version: int, subscribers: int, count: int, window: int) -> dict[str, float]:
    clients = [Client(port, f"s{number}", version) for number in range(subscribers)]
    for client in clients:
        client.subscribe("bench/topic")
    publisher = Client(port, "p", version)
    one = publisher.publication("bench/topic", bytes(PAYLOAD_B))
    taken_s, got = pumped(
        publisher.socket, one * count, [client.socket for client in clients], len(one) * count * subscribers,
        window * len(one),
    )  # fmt: skip
    arrived = got / len(one)
    return {"per_s": arrived / taken_s, "arrived": arrived / (count * subscribers), "seconds": taken_s}


def round_trips(port: int, version: int, count: int) -> dict[str, float]:
    subscriber, publisher = Client(port, "s", version), Client(port, "p", version)
    subscriber.subscribe("bench/topic")
    return to_and_fro(
        publisher.socket, publisher.publication("bench/topic", bytes(PAYLOAD_B)), subscriber.packet, count
    )


def to_and_fro(out: socket.socket, one: bytes, answer: Callable[[], object], count: int) -> dict[str, float]:
    """Send it, wait for the answer, and again."""
    Spent.begin()
    start = time.perf_counter()
    for _ in range(count):
        out.sendall(one)
        answer()
    taken_s = time.perf_counter() - start
    Spent.end()
    return {"per_s": count / taken_s}


def acknowledged(port: int, version: int, count: int, window: int = 1000) -> dict[str, float]:
    """QoS 1 to a session that is kept though its client is away: every acknowledged message must be kept too."""
    with closing((away := Client(port, "durable", version, clean=False)).socket):
        away.subscribe("bench/topic", qos=1)
    publisher = Client(port, "p", version)
    packets = [publisher.publication("bench/topic", bytes(PAYLOAD_B), 1, 1 + n % 60_000) for n in range(60_000)]
    answer_b = len(mqtt5.PubAckPacket(1).write())
    out = b"".join(packets[n % 60_000] for n in range(count))
    taken_s, got = pumped(publisher.socket, out, [publisher.socket], answer_b * count, window * len(packets[0]))
    return {"per_s": got / answer_b / taken_s, "arrived": got / answer_b / count}


def by_content(port: int, filters: int, clients: int, events: int, window: int, seed: int = 1) -> dict[str, float]:
    """Filters of three predicates that each event meets with 0.1 %; all deliveries are checked by number."""
    random = np.random.default_rng(seed)
    low = random.random((filters, 3)) * 0.9
    values = random.random((events, 3)).round(6)
    expected = _matching(low, values)
    subscribers = [Client(port, f"s{number}", CONNECT_FIVE) for number in range(clients)]
    start = time.perf_counter()
    asked = [f"$filter/{quote(_condition(row), safe='')}/bench/#" for row in low]
    for number, client in enumerate(subscribers):
        own = asked[number::clients]
        for at in range(0, len(own), SUBSCRIBED_TOGETHER):
            client.subscribe(*own[at : at + SUBSCRIBED_TOGETHER])
    subscribed_s = time.perf_counter() - start
    publisher = Client(port, "p", CONNECT_FIVE)
    one_b = len(publisher.publication("bench/t", _payload(values[0])))
    out = b"".join(publisher.publication("bench/t", _payload(row)) for row in values)
    wanted = _deliveries(expected, clients)
    _warm_up(publisher, subscribers, low, clients, one_b)
    taken_s, got = pumped(
        publisher.socket, out, [client.socket for client in subscribers], one_b * wanted, window * one_b
    )
    return {
        "per_s": events / taken_s,
        "arrived": got / (one_b * wanted),
        "deliveries_per_event": wanted / events,
        "subscribed_s": subscribed_s,
    }


def _warm_up(publisher: Client, subscribers: list[Client], low: Any, clients: int, one_b: int) -> None:
    """Whoever has answered all subscriptions may still have to make its index."""
    for row in low[:64] + 0.05:
        publisher.socket.sendall(publisher.publication("bench/t", _payload(row)))
        for number in np.unique(next(_matching(low, [row.round(6)])) % clients):
            subscribers[number].socket.settimeout(WARM_S)
            subscribers[number]._exactly(one_b)


def _condition(row: Any) -> str:
    return " AND ".join(f"{name} BETWEEN {at:.6f} AND {at + 0.1:.6f}" for name, at in zip("xyz", row, strict=True))


def _payload(row: Any) -> bytes:
    x, y, z = row
    body = f'{{"x":{x:.6f},"y":{y:.6f},"z":{z:.6f},"pad":"'
    return (body + "x" * (PAYLOAD_B - len(body) - 2) + '"}').encode()


def _matching(low: Any, values: Any) -> Iterator[Any]:
    """For each event the filters that want it."""
    lowest, highest = low.round(6), (low + 0.1).round(6)
    for row in values:
        yield np.nonzero(((lowest <= row) & (row <= highest)).all(axis=1))[0]


def _deliveries(expected: Iterator[Any], clients: int) -> int:
    """A client gets an event once, however many of its filters want it."""
    return sum(len(np.unique(found % clients)) for found in expected)


def idle(port: int, version: int, clients: int, hold: Callable[[], object]) -> dict[str, float]:
    """Connect and stay; `hold` returns when whoever measures has seen enough."""
    start = time.perf_counter()
    kept = [Client(port, f"idle{number}", version) for number in range(clients)]
    taken_s = time.perf_counter() - start
    print(json.dumps({"connected": len(kept), "seconds": taken_s}), flush=True)
    hold()
    return {"connects_per_s": clients / taken_s}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["fan-out", "round-trips", "acknowledged", "content", "idle"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", type=int, default=CONNECT_FIVE)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--subscribers", type=int, default=1)
    parser.add_argument("--filters", type=int, default=10_000)
    parser.add_argument("--window", type=int, default=4000)
    parser.add_argument("--pid", type=int, default=0, help="of the broker, whose processor time is then told")
    given = parser.parse_args()
    Spent.pid = given.pid
    match given.what:
        case "fan-out":
            result = fan_out(given.port, given.version, given.subscribers, given.count, given.window)
        case "round-trips":
            result = round_trips(given.port, given.version, given.count)
        case "acknowledged":
            result = acknowledged(given.port, given.version, given.count, min(given.window, 1000))
        case "content":
            result = by_content(given.port, given.filters, given.subscribers, given.count, given.window)
        case _:
            result = idle(given.port, given.version, given.subscribers, input)
    print(json.dumps(Spent.told(result)))


if __name__ == "__main__":
    main()
