"""One subscriber that moves, and one publisher, on NATS JetStream or zenoh: run by benchmarks/roaming.py with a Python
that has their packages, and nothing else. Prints one JSON object: when each event was published, what was heard when,
and when each attachment began.

    router          a zenoh router, until its input ends
    nats            JetStream, stream and durable consumer with three replicas, explicit acknowledgements
    zenoh-plain     a publisher and a subscriber
    zenoh-advanced  the publisher keeps its last samples, the subscriber asks for them when it attaches
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

SUBJECT = "roam"
PAD = "x" * 40
ACK_WAIT_S = 1.0
"""After so long NATS sends again what was not acknowledged; by default after 30 s."""
SAMPLES_KEPT = 3_000
"""What zenoh's publisher keeps and its subscriber asks for, each time: it cannot know how long it was away."""
DRAIN_S = 8.0
"""Something is missing, and so long nothing came: it is lost."""
QUIET_S = 2.0
RETRY_S = 0.002


class Diary:
    def __init__(self) -> None:
        self.published: list[float] = []
        self.heard: list[tuple[float, int]] = []
        self.asked: list[float] = []

    def hear(self, payload: bytes) -> None:
        self.heard.append((time.monotonic(), int(json.loads(payload)["n"])))

    def say(self) -> bytes:
        self.published.append(time.monotonic())
        return json.dumps({"n": len(self.published) - 1, "kind": "reading", "pad": PAD}).encode()

    @property
    def complete(self) -> bool:
        return len({number for _, number in self.heard}) >= len(self.published)


def due(begun_s: float, rate_per_s: float, said: int, seconds: float) -> int:
    """How many more should be said by now."""
    return int(min(time.monotonic() - begun_s, seconds) * rate_per_s) - said


async def nats_roam(given: argparse.Namespace, diary: Diary) -> None:
    nats: Any = import_module("nats")
    api: Any = import_module("nats.js.api")
    addresses = [f"nats://127.0.0.1:{port}" for port in given.ports]
    talker = await connected(nats, addresses[0])
    js = talker.jetstream(timeout=30)
    await made(lambda: js.add_stream(name=SUBJECT, subjects=[SUBJECT], num_replicas=3))
    config = api.ConsumerConfig(
        ack_policy=api.AckPolicy.EXPLICIT, ack_wait=ACK_WAIT_S, max_ack_pending=50_000, num_replicas=3
    )

    async def attach(at: int) -> Any:
        connection = await connected(nats, addresses[at])

        async def take(message: Any) -> None:
            diary.hear(message.data)
            await message.ack()

        subscribe = connection.jetstream(timeout=10).subscribe
        await made(lambda: subscribe(SUBJECT, durable="walker", cb=take, manual_ack=True, config=config))
        return connection

    def leave(connection: Any) -> None:
        connection._transport._io_writer.transport.abort()

    async def publish() -> None:
        waiting: set[asyncio.Task[Any]] = set()
        begun_s = time.monotonic()
        while (now_s := time.monotonic()) < begun_s + given.seconds:
            for _ in range(due(begun_s, given.rate, len(diary.published), given.seconds)):
                task = asyncio.create_task(js.publish(SUBJECT, diary.say()))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
            await asyncio.sleep(max(0.0, 0.001 - (time.monotonic() - now_s)))
        await asyncio.gather(*waiting)

    await moved(given, diary, attach, leave, publish)


async def connected(nats: Any, address: str) -> Any:
    async def quietly(error: Exception) -> None: ...

    return await made(lambda: nats.connect(address, allow_reconnect=False, error_cb=quietly))


async def made(make: Callable[[], Awaitable[Any]]) -> Any:
    """Again until it succeeds: servers take their time to start, to elect, and to notice that a connection is gone."""
    end_s = time.monotonic() + 60
    while True:
        try:
            return await make()
        except Exception:
            if time.monotonic() > end_s:
                raise
            await asyncio.sleep(RETRY_S)


async def zenoh_roam(given: argparse.Namespace, diary: Diary, *, advanced: bool) -> None:
    zenoh: Any = import_module("zenoh")
    ext: Any = import_module("zenoh.ext")
    talker = await made(lambda: asyncio.to_thread(zenoh.open, client_of(zenoh, given.publisher_port)))
    blocking = zenoh.CongestionControl.BLOCK
    if advanced:
        publisher = ext.declare_advanced_publisher(
            talker,
            SUBJECT,
            congestion_control=blocking,
            cache=ext.CacheConfig(SAMPLES_KEPT),
            sample_miss_detection=ext.MissDetectionConfig(heartbeat=0.1, sporadic_heartbeat=None),
            publisher_detection=True,
        )
    else:
        publisher = talker.declare_publisher(SUBJECT, congestion_control=blocking)

    def opened(at: int) -> Any:
        session = zenoh.open(client_of(zenoh, given.ports[at]))
        hear = lambda sample: diary.hear(bytes(sample.payload))  # noqa: E731
        if advanced:
            kept = ext.declare_advanced_subscriber(
                session,
                SUBJECT,
                hear,
                history=ext.HistoryConfig(detect_late_publishers=True, max_samples=SAMPLES_KEPT),
                recovery=ext.RecoveryConfig(heartbeat=True, periodic_queries=None),
            )
        else:
            kept = session.declare_subscriber(SUBJECT, hear)
        return session, kept, given.ports[at]

    async def attach(at: int) -> Any:
        return await made(lambda: asyncio.to_thread(opened, at))

    def leave(attached: Any) -> None:
        session, _, port = attached
        cut(port)
        threading.Thread(target=closed, args=(session,), daemon=True).start()

    async def publish() -> None:
        begun_s = time.monotonic()
        while (now_s := time.monotonic()) < begun_s + given.seconds:
            for _ in range(due(begun_s, given.rate, len(diary.published), given.seconds)):
                publisher.put(diary.say())
            await asyncio.sleep(max(0.0, 0.001 - (time.monotonic() - now_s)))

    await moved(given, diary, attach, leave, publish)


def client_of(zenoh: Any, port: int) -> Any:
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([f"tcp/127.0.0.1:{port}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("timestamping/enabled", "true")
    return config


def cut(port: int) -> None:
    """End this process's connections to that port below the library, so that it cannot say goodbye."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as one:
            if one.getpeername()[1:2] == (port,):
                one.shutdown(socket.SHUT_RDWR)


def closed(session: Any) -> None:
    with suppress(Exception):
        session.close()


async def moved(
    given: argparse.Namespace,
    diary: Diary,
    attach: Callable[[int], Awaitable[Any]],
    leave: Callable[[Any], None],
    publish: Callable[[], Awaitable[None]],
) -> None:
    """Stay, leave without a word, be away, attach at the next, as often as asked; then wait for the rest."""
    attached = await attach(0)
    await asyncio.sleep(1)
    publishing = asyncio.ensure_future(publish())
    for number in range(1, given.moves + 1):
        await asyncio.sleep(given.stay)
        leave(attached)
        await asyncio.sleep(given.away)
        diary.asked.append(time.monotonic())
        attached = await attach(number % len(given.ports))
    await publishing
    heard, since_s = -1, time.monotonic()
    while time.monotonic() < since_s + DRAIN_S and not diary.complete:
        if len(diary.heard) != heard:
            heard, since_s = len(diary.heard), time.monotonic()
        await asyncio.sleep(0.1)
    await asyncio.sleep(QUIET_S)


def router(given: argparse.Namespace) -> None:
    zenoh: Any = import_module("zenoh")
    config = zenoh.Config()
    config.insert_json5("mode", '"router"')
    config.insert_json5("listen/endpoints", json.dumps([f"tcp/127.0.0.1:{port}" for port in given.ports]))
    config.insert_json5("connect/endpoints", json.dumps([f"tcp/127.0.0.1:{port}" for port in given.others]))
    config.insert_json5("scouting/multicast/enabled", "false")
    config.insert_json5("timestamping/enabled", "true")
    with zenoh.open(config):
        print("ready", flush=True)
        sys.stdin.read()


def ports(text: str) -> list[int]:
    return [int(port) for port in text.split(",") if port]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["router", "nats", "zenoh-plain", "zenoh-advanced"])
    parser.add_argument("--ports", type=ports, required=True)
    parser.add_argument("--others", type=ports, default=[])
    parser.add_argument("--publisher-port", type=int, default=0)
    parser.add_argument("--moves", type=int, default=20)
    parser.add_argument("--stay", type=float, default=1.0)
    parser.add_argument("--away", type=float, default=0.2)
    parser.add_argument("--rate", type=float, default=1000.0)
    given = parser.parse_args()
    if given.what == "router":
        router(given)
        return
    given.seconds = given.moves * (given.stay + given.away)
    diary = Diary()
    if given.what == "nats":
        asyncio.run(nats_roam(given, diary))
    else:
        asyncio.run(zenoh_roam(given, diary, advanced=given.what == "zenoh-advanced"))
    print(json.dumps({"published": diary.published, "heard": diary.heard, "asked": diary.asked}), flush=True)
    os._exit(0)  # sessions that were cut off would be waited for


if __name__ == "__main__":
    main()
