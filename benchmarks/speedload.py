"""Loads for benchmarks/speed.py, beside those of mqttload.py: many topics, QoS 1 and 2 to clients that are there, NATS.
Run as a process of its own; prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import select
import socket
import time
from contextlib import closing, suppress

import mqtt5
import numpy as np

from mqttload import ANSWER_S, CONNECT_FIVE, GIVEN_UP_S, PAYLOAD_B, Client, Spent, pumped, to_and_fro

NATS = 0
"""Given instead of a version of MQTT."""
ANSWERS = b"answers"
NATS_MORE_B = 2
"""A message that arrives names the subscription beside its subject."""


class NatsClient:
    """A blocking connection to NATS, whose clients speak in lines. A subject is a topic with dots."""

    def __init__(self, port: int, name: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.file.readline()  # INFO
        self.socket.sendall(b'CONNECT {"verbose":false,"name":"' + name.encode() + b'"}\r\n')
        self._until_there()

    def subscribe(self, topics: str, qos: int = 0) -> None:
        subject = topics.replace("/", ".").replace("+", "*").replace("#", ">")
        self.socket.sendall(b"SUB " + subject.encode() + b" 1\r\n")
        self._until_there()

    def _until_there(self) -> None:
        self.socket.sendall(b"PING\r\n")
        while self.file.readline() != b"PONG\r\n":
            pass

    def publication(self, topic: str, payload: bytes, qos: int = 0, number: int = 0) -> bytes:
        return b"PUB %b %d\r\n%b\r\n" % (topic.replace("/", ".").encode(), len(payload), payload)

    def packet(self) -> tuple[int, bytes]:
        head = self.file.readline()
        return head[0], self.file.read(int(head.split()[-1]) + 2)

    def asked(self, subject: str, question: bytes) -> bytes:
        """What is answered at ANSWERS, to which this client listens."""
        self.socket.sendall(b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), ANSWERS, len(question), question))
        answer = self.packet()[1]
        if b'"error"' in answer:
            raise SystemExit(f"NATS, {subject}: {answer.decode()}")
        return answer[:-2]


def peer(port: int, name: str, version: int) -> Client | NatsClient:
    return NatsClient(port, name) if version == NATS else Client(port, name, version)


def in_turn(port: int, version: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 0, one to one, each publication on another topic than the last."""
    subscriber, publisher = peer(port, "s", version), peer(port, "p", version)
    subscriber.subscribe("bench/#")
    packets = [publisher.publication(f"bench/{n:06}", bytes(PAYLOAD_B)) for n in range(topics)]
    out = b"".join(packets) * (count // topics)
    size = len(packets[0]) + (NATS_MORE_B if version == NATS else 0)
    expected_b = count // topics * topics * size
    taken_s, got = pumped(publisher.socket, out, [subscriber.socket], expected_b, window * len(packets[0]))
    return {"per_s": got / size / taken_s, "arrived": got / expected_b}


def crowd(port: int, version: int, clients: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 0, as many publishers as subscribers, each of whom wants its part of the topics by a wildcard."""
    subscribers = [peer(port, f"s{number}", version) for number in range(clients)]
    for number, client in enumerate(subscribers):
        client.subscribe(f"bench/{number:04}/+")
    publishers = [peer(port, f"p{number}", version) for number in range(clients)]
    names = [f"bench/{n % clients:04}/{n // clients:06}" for n in range(topics)]
    packets = [publishers[0].publication(name, bytes(PAYLOAD_B)) for name in names]
    each, size = count // clients, len(packets[0])
    grown = size + (NATS_MORE_B if version == NATS else 0)
    parts = [b"".join(packets[(at * 7919 + n) % topics] for n in range(each)) for at in range(clients)]
    sockets = [one.socket for one in publishers], [one.socket for one in subscribers]
    taken_s, got = shovelled(sockets[0], parts, sockets[1], max(1, window // clients) * size, grown / size)
    return {"per_s": got / grown / taken_s, "arrived": got / (grown * each * clients)}


def shovelled(
    publishers: list[socket.socket], parts: list[bytes], subscribers: list[socket.socket], window_b: int, growth: float
) -> tuple[float, int]:
    """As `pumped`, from many: each sends a window at a time, and all wait until half of it has come. What comes is
    `growth` times as long as what was sent."""
    poll, by_number = select.epoll(), {one.fileno(): one for one in subscribers}
    for number in by_number:
        by_number[number].setblocking(False)
        poll.register(number, select.EPOLLIN)
    buffer, got, sent, total = bytearray(1 << 20), 0, 0, sum(map(len, parts))
    Spent.begin()
    start = last = time.perf_counter()
    for at in range(0, len(parts[0]), window_b):
        for one, part in zip(publishers, parts, strict=True):
            one.sendall(part[at : at + window_b])
            sent += len(part[at : at + window_b])
        ahead_b = 0 if sent == total else window_b * len(parts) // 2
        while got < round((sent - ahead_b) * growth):
            for number, _ in poll.poll(0.5):
                got += by_number[number].recv_into(buffer)
                last = time.perf_counter()
            if time.perf_counter() - last > GIVEN_UP_S:
                return last - start, got
    Spent.end()
    return last - start, got


def round_trips(port: int, version: int, payload_b: int, count: int) -> dict[str, float]:
    subscriber, publisher = peer(port, "s", version), peer(port, "p", version)
    subscriber.subscribe("bench/topic")
    return to_and_fro(
        publisher.socket, publisher.publication("bench/topic", bytes(payload_b)), subscriber.packet, count
    )


def stored(port: int, version: int, payload_b: int, count: int, window: int, name: str) -> dict[str, float]:
    """QoS 1 to a session that is kept though its client is away: every acknowledged message must be kept too."""
    with closing((away := Client(port, name, version, clean=False)).socket):
        away.subscribe(f"{name}/topic", qos=1)
    publisher = Client(port, "p", version)
    packets = [publisher.publication(f"{name}/topic", bytes(payload_b), 1, 1 + n) for n in range(min(count, 60_000))]
    answer_b = len(mqtt5.PubAckPacket(1).write())
    out = b"".join(packets[n % len(packets)] for n in range(count))
    taken_s, got = pumped(publisher.socket, out, [publisher.socket], answer_b * count, window * len(packets[0]))
    return {"per_s": got / answer_b / taken_s, "arrived": got / answer_b / count}


def stored_by_nats(port: int, payload_b: int, count: int, window: int, name: str) -> dict[str, float]:
    """The same with JetStream: a stream in files and a durable consumer that is away; each message is acknowledged."""
    publisher = NatsClient(port, "p")
    publisher.subscribe(ANSWERS.decode())
    stream = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "retention": "limits", "discard": "old"}
    publisher.asked(f"$JS.API.STREAM.CREATE.{name}", json.dumps(stream).encode())
    away = {"stream_name": name, "config": {"durable_name": "away", "ack_policy": "explicit"}}
    publisher.asked(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.away", json.dumps(away).encode())
    first = publisher.asked(f"{name}.topic", bytes(payload_b))
    if json.loads(first)["seq"] != 1:
        raise SystemExit(f"NATS keeps it, but says {first.decode()}")
    # The answers differ in the number of the message alone.
    sizes = [len(first) - 1 + len(str(number)) for number in range(2, count + 2)]
    expected_b = sum(len(b"MSG %b 1 %d\r\n" % (ANSWERS, size)) + size + 2 for size in sizes)
    one = b"PUB %b.topic %b %d\r\n%b\r\n" % (name.encode(), ANSWERS, payload_b, bytes(payload_b))
    taken_s, got = pumped(publisher.socket, one * count, [publisher.socket], expected_b, window * len(one))
    return {"per_s": got / expected_b * count / taken_s, "arrived": got / expected_b}


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


def connected(port: int, version: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 1 to a client that is there and acknowledges. No more than the window is on the way."""
    subscriber = Client(port, "s", version, receive_max=65_535)
    subscriber.subscribe("bench/#", qos=1)
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
    Spent.begin()
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
    Spent.end()
    return {"per_s": receipts.count / (last - start), "arrived": receipts.count / count}


class Handshake:
    """A subscriber at QoS 2 that answers each step."""

    def __init__(self, client: Client, size: int, number_at: int) -> None:
        self.client, self.size, self.number_at = client, size, number_at
        self.rest, self.count = b"", 0

    def take(self, data: bytes) -> None:
        data, at, answers = self.rest + data, 0, list[bytes]()
        while at + 4 <= len(data):
            if data[at] == 0x62:
                answers.append(b"\x70\x02" + data[at + 2 : at + 4])
                self.count += 1
                at += 4
            elif at + self.size <= len(data):
                answers.append(b"\x50\x02" + data[at + self.number_at : at + self.number_at + 2])
                at += self.size
            else:
                break
        self.rest = data[at:]
        if answers:
            self.client.socket.sendall(b"".join(answers))


class Releases:
    """A publisher at QoS 2 that answers each step."""

    def __init__(self, client: Client) -> None:
        self.client, self.rest, self.count = client, b"", 0

    def take(self, data: bytes) -> None:
        data = self.rest + data
        whole = len(data) // 4 * 4
        self.rest = data[whole:]
        rows = np.frombuffer(data, np.uint8, whole).reshape(-1, 4)
        self.count += int((rows[:, 0] == 0x70).sum())
        received = rows[rows[:, 0] == 0x50].copy()
        received[:, 0] = 0x62
        self.client.socket.sendall(received.tobytes())


def exactly_once(port: int, sessions: int, topics: int, count: int, window: int) -> dict[str, float]:
    """QoS 2 from one publisher to many sessions, each message to one of them; done when both handshakes are."""
    names = [f"bench/{n % sessions:04}/{n // sessions:06}" for n in range(topics)]
    subscribers = [Client(port, f"s{number}", 4) for number in range(sessions)]
    for number, client in enumerate(subscribers):
        client.subscribe(f"bench/{number:04}/#", qos=2)
    publisher = Client(port, "p", 4)
    packets = [publisher.publication(names[n % topics], bytes(PAYLOAD_B), 2, 1 + n % 60_000) for n in range(count)]
    size = len(packets[0])
    steps = [Handshake(client, size, size - PAYLOAD_B - 2) for client in subscribers]
    releases, poll, sent, done = Releases(publisher), select.epoll(), 0, 0
    takers: dict[int, Handshake | Releases] = {publisher.socket.fileno(): releases}
    takers.update((step.client.socket.fileno(), step) for step in steps)
    for number in takers:
        poll.register(number, select.EPOLLIN)
    Spent.begin()
    start = last = time.perf_counter()
    while done < count and time.perf_counter() - last < GIVEN_UP_S:
        if sent < count and sent - done < window:
            publisher.socket.sendall(b"".join(packets[sent : done + window]))
            sent = min(count, done + window)
        for number, _ in poll.poll(0.5):
            takers[number].take(takers[number].client.socket.recv(1 << 20))
            last = time.perf_counter()
        done = min(releases.count, sum(step.count for step in steps))
    Spent.end()
    return {"per_s": done / (last - start), "arrived": done / count}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["in-turn", "crowd", "round-trips", "stored", "connected", "exactly-once"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", type=int, default=CONNECT_FIVE, help="of MQTT; 0: NATS instead")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--topics", type=int, default=1000)
    parser.add_argument("--payload", type=int, default=PAYLOAD_B)
    parser.add_argument("--session", default="bench", help="for whom messages are stored")
    parser.add_argument("--pid", type=int, default=0, help="of the broker, whose processor time is then told")
    given = parser.parse_args()
    Spent.pid = given.pid
    port, version, count = given.port, given.version, given.count
    match given.what:
        case "in-turn":
            result = in_turn(port, version, given.topics, count, 4000)
        case "crowd":
            result = crowd(port, version, given.clients, given.topics, count, 4000)
        case "round-trips":
            result = round_trips(port, version, given.payload, count)
        case "stored" if version == NATS:
            result = stored_by_nats(port, given.payload, count, 1000, given.session)
        case "stored":
            result = stored(port, version, given.payload, count, 1000, given.session)
        case "connected":
            # No more than a broker lets out to one client at a time: else its queue is measured.
            result = connected(port, version, given.topics, count, 250)
        case _:
            result = exactly_once(port, given.clients, given.topics, count, 500)
    print(json.dumps(Spent.told(result)))


if __name__ == "__main__":
    main()
