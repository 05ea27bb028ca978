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
from typing import Any
from urllib.parse import quote

import mqtt5
import numpy as np

PAYLOAD_B = 256
ANSWER_S = 30.0
GIVEN_UP_S = 5.0
"""Nothing comes for so long: the rest is lost."""

QOS = [mqtt5.QoS.AT_MOST_ONCE, mqtt5.QoS.AT_LEAST_ONCE, mqtt5.QoS.EXACTLY_ONCE]
CONNECT_FIVE = 5


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

    def subscribe(self, topics: str, qos: int) -> None:
        if self.version == CONNECT_FIVE:
            wanted = mqtt5.TopicFilter(topics, max_qos=QOS[qos])
            self.socket.sendall(mqtt5.SubscribePacket(1, [wanted]).write())
        else:
            body = b"\0\1" + text(topics) + bytes([qos])
            self.socket.sendall(b"\x82" + length(len(body)) + body)
        kind, answer = self.packet()
        if kind != 0x90 or answer[-1] > 2:
            raise SystemExit(f"subscription refused: {answer!r}")

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
    return max(last - start, 1e-9), got


def fan_out(port: int, version: int, subscribers: int, count: int, window: int) -> dict[str, float]:
    clients = [Client(port, f"s{number}", version) for number in range(subscribers)]
    for client in clients:
        client.subscribe("bench/topic", 0)
    publisher = Client(port, "p", version)
    one = publisher.publication("bench/topic", bytes(PAYLOAD_B))
    taken_s, got = pumped(
        publisher.socket, one * count, [client.socket for client in clients], len(one) * count * subscribers,
        window * len(one),
    )  # fmt: skip
    arrived = got / len(one)
    return {"per_s": arrived / taken_s, "arrived": arrived / (count * subscribers), "seconds": taken_s}


def in_turn(port: int, version: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 0, one to one, each publication on another topic than the last."""
    subscriber, publisher = Client(port, "s", version), Client(port, "p", version)
    subscriber.subscribe("bench/#", 0)
    packets = [publisher.publication(f"bench/{n:06}", bytes(PAYLOAD_B)) for n in range(topics)]
    out = b"".join(packets) * (count // topics)
    window_b = window * len(packets[0])
    taken_s, got = pumped(publisher.socket, out, [subscriber.socket], len(out), window_b)
    return {"per_s": got / len(packets[0]) / taken_s, "arrived": got / len(out)}


def crowd(port: int, version: int, clients: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 0, as many publishers as subscribers, each of whom wants its part of the topics by a wildcard."""
    subscribers = [Client(port, f"s{number}", version) for number in range(clients)]
    for number, client in enumerate(subscribers):
        client.subscribe(f"bench/{number:04}/+", 0)
    publishers = [Client(port, f"p{number}", version) for number in range(clients)]
    names = [f"bench/{n % clients:04}/{n // clients:06}" for n in range(topics)]
    packets = [publishers[0].publication(name, bytes(PAYLOAD_B)) for name in names]
    each, size = count // clients, len(packets[0])
    parts = [b"".join(packets[(at * 7919 + n) % topics] for n in range(each)) for at in range(clients)]
    taken_s, got = shovelled(
        [one.socket for one in publishers], parts, [one.socket for one in subscribers], max(1, window // clients) * size
    )
    return {"per_s": got / size / taken_s, "arrived": got / (size * each * clients)}


def shovelled(
    publishers: list[socket.socket], parts: list[bytes], subscribers: list[socket.socket], window_b: int
) -> tuple[float, int]:
    """As `pumped`, from many: each sends a window at a time, and all wait until everything of it has come."""
    poll, by_number = select.epoll(), {one.fileno(): one for one in subscribers}
    for number in by_number:
        by_number[number].setblocking(False)
        poll.register(number, select.EPOLLIN)
    buffer, got, sent, total = bytearray(1 << 20), 0, 0, sum(map(len, parts))
    start = last = time.perf_counter()
    for at in range(0, len(parts[0]), window_b):
        for one, part in zip(publishers, parts, strict=True):
            one.sendall(part[at : at + window_b])
            sent += len(part[at : at + window_b])
        ahead_b = 0 if sent == total else window_b * len(parts) // 2
        while got < sent - ahead_b:
            for number, _ in poll.poll(0.5):
                got += by_number[number].recv_into(buffer)
                last = time.perf_counter()
            if time.perf_counter() - last > GIVEN_UP_S:
                return last - start, got
    return last - start, got


def round_trips(port: int, version: int, count: int) -> dict[str, float]:
    subscriber, publisher = Client(port, "s", version), Client(port, "p", version)
    subscriber.subscribe("bench/topic", 0)
    one = publisher.publication("bench/topic", bytes(PAYLOAD_B))
    start = time.perf_counter()
    for _ in range(count):
        publisher.socket.sendall(one)
        subscriber.packet()
    return {"per_s": count / (time.perf_counter() - start)}


def acknowledged(port: int, version: int, count: int, window: int = 1000) -> dict[str, float]:
    """QoS 1 to a session that is kept though its client is away: every acknowledged message must be kept too."""
    with closing((away := Client(port, "durable", version, clean=False)).socket):
        away.subscribe("bench/topic", 1)
    publisher = Client(port, "p", version)
    packets = [publisher.publication("bench/topic", bytes(PAYLOAD_B), 1, 1 + n % 60_000) for n in range(60_000)]
    answer_b = len(mqtt5.PubAckPacket(1).write())
    out = b"".join(packets[n % 60_000] for n in range(count))
    taken_s, got = pumped(publisher.socket, out, [publisher.socket], answer_b * count, window * len(packets[0]))
    return {"per_s": got / answer_b / taken_s, "arrived": got / answer_b / count}


class Receipts:
    """Answers packets of one size by their identifiers, many at a time: a subscriber that costs the load little."""

    def __init__(self, client: Client, size: int, number_at: int, answer: int) -> None:
        self.client, self.size, self.number_at, self.answer = client, size, number_at, answer
        self.rest, self.count = b"", 0

    def take(self, data: bytes) -> None:
        data = self.rest + data
        whole = len(data) // self.size
        self.rest = data[whole * self.size :]
        self.count += whole
        if whole:
            rows = np.frombuffer(data, np.uint8, whole * self.size).reshape(whole, self.size)
            answers = np.empty((whole, 4), np.uint8)
            answers[:, 0], answers[:, 1] = self.answer, 2
            answers[:, 2:] = rows[:, self.number_at : self.number_at + 2]
            self.client.socket.sendall(answers.tobytes())


def connected(port: int, version: int, topics: int, count: int, window: int, keeps: bool = False) -> dict[str, float]:
    """QoS 1 to a client that is there and acknowledges; the publisher never has more than the window unacknowledged."""
    subscriber = Client(port, "s", version, clean=not keeps, receive_max=65_535)
    subscriber.subscribe("bench/#", 1)
    publisher = Client(port, "p", version)
    names = [f"bench/{n:06}" for n in range(topics)]
    packets = [publisher.publication(names[n % topics], bytes(PAYLOAD_B), 1, 1 + n % 60_000) for n in range(60_000)]
    out = b"".join(packets[n % 60_000] for n in range(count))
    size = len(packets[0])
    receipts = Receipts(subscriber, size, size - PAYLOAD_B - (version == CONNECT_FIVE) - 2, 0x40)
    return _exchanged(publisher, out, size, count, window, receipts)


def _exchanged(
    publisher: Client, out: bytes, size: int, count: int, window: int, receipts: Receipts
) -> dict[str, float]:
    poll, view, sent, answered = select.epoll(), memoryview(out), 0, 0
    ours, theirs = publisher.socket, receipts.client.socket
    ours.setblocking(False)
    for one in (ours, theirs):
        poll.register(one.fileno(), select.EPOLLIN)
    start = last = time.perf_counter()
    while receipts.count < count or answered < 4 * count:
        room = (min(answered // 4, receipts.count) + window) * size - sent
        if sent < len(out) and room > 0:
            with suppress(BlockingIOError):
                sent += ours.send(view[sent : sent + room])
        for number, _ in poll.poll(0.5):
            if number == ours.fileno():
                answered += len(ours.recv(1 << 20))
            else:
                receipts.take(theirs.recv(1 << 20))
            last = time.perf_counter()
        if time.perf_counter() - last > GIVEN_UP_S:
            break
    return {"per_s": receipts.count / (last - start), "arrived": receipts.count / count}


def by_content(port: int, filters: int, clients: int, events: int, window: int, seed: int = 1) -> dict[str, float]:
    """Filters of three predicates that each event meets with 0.1 %; all deliveries are checked by number."""
    random = np.random.default_rng(seed)
    low = random.random((filters, 3)) * 0.9
    values = random.random((events, 3)).round(6)
    expected = _matching(low, values)
    subscribers = [Client(port, f"s{number}", CONNECT_FIVE) for number in range(clients)]
    start = time.perf_counter()
    for number in range(filters):
        x, y, z = low[number]
        condition = " AND ".join(
            f"{name} BETWEEN {at:.6f} AND {at + 0.1:.6f}" for name, at in zip("xyz", (x, y, z), strict=True)
        )
        subscribers[number % clients].subscribe(f"$filter/{quote(condition, safe='')}/bench/#", 0)
    subscribed_s = time.perf_counter() - start
    publisher = Client(port, "p", CONNECT_FIVE)
    one_b = len(publisher.publication("bench/t", _payload(values[0])))
    out = b"".join(publisher.publication("bench/t", _payload(row)) for row in values)
    wanted = _deliveries(expected, clients)
    taken_s, got = pumped(
        publisher.socket, out, [client.socket for client in subscribers], one_b * wanted, window * one_b
    )
    return {
        "per_s": events / taken_s,
        "arrived": got / (one_b * wanted),
        "deliveries_per_event": wanted / events,
        "subscribed_s": subscribed_s,
    }


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
    parser.add_argument(
        "what", choices=["fan-out", "in-turn", "crowd", "round-trips", "acknowledged", "connected", "content", "idle"]
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", type=int, default=CONNECT_FIVE)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--subscribers", type=int, default=1)
    parser.add_argument("--filters", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--keeps", action="store_true", help="the subscriber's session outlives its connection")
    parser.add_argument("--window", type=int, default=4000)
    given = parser.parse_args()
    match given.what:
        case "fan-out":
            result = fan_out(given.port, given.version, given.subscribers, given.count, given.window)
        case "in-turn":
            result = in_turn(given.port, given.version, given.topics, given.count, given.window)
        case "crowd":
            result = crowd(given.port, given.version, given.subscribers, given.topics, given.count, given.window)
        case "connected":
            window = min(given.window, 1000)
            result = connected(given.port, given.version, given.topics, given.count, window, given.keeps)
        case "round-trips":
            result = round_trips(given.port, given.version, given.count)
        case "acknowledged":
            result = acknowledged(given.port, given.version, given.count, min(given.window, 1000))
        case "content":
            result = by_content(given.port, given.filters, given.subscribers, given.count, given.window)
        case _:
            result = idle(given.port, given.version, given.subscribers, input)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
