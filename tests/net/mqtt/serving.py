"""A broker with listeners in a thread of its own, on free ports; and a client that says exactly what it is told to."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import mqtt5
import uvloop

from godwit.net.host import AsyncHost
from godwit.net.mqtt.framing import length_at
from godwit.net.mqtt.front import Front
from godwit.net.mqtt.listener import Listener
from godwit.net.mqtt.options import Authenticate, Counts, Options, admit_all
from godwit.protocols.broker.broker import Broker
from godwit.protocols.broker.fabric.base import Alone
from godwit.protocols.broker.store import MemoryStore
from godwit.protocols.host import Message, NodeId

T = TypeVar("T")
WAIT_S = 60.0


class Nowhere:
    """Carries nothing: there are no neighbors."""

    def send(self, to: NodeId, message: Message) -> None: ...
    def broadcast(self, message: Message) -> None: ...
    def drop(self, peer: NodeId, reason: str) -> None: ...


def lone_broker(name: str = "alone") -> Broker:
    """In the running loop, with a disk that writes between two turns of it."""
    host = AsyncHost(name, Nowhere())
    return Broker(host, MemoryStore({}, partial(host.after, 0.0)), Alone(), time.time)


def host_of(broker: Broker) -> AsyncHost:
    assert isinstance(broker.host, AsyncHost)
    return broker.host


class Served:
    """A running broker: where it listens, and what it has counted."""

    def __init__(self, front: Front, broker: Broker, ports: dict[str, int], loop: asyncio.AbstractEventLoop) -> None:
        self.front = front
        self.broker = broker
        self.port = ports["tcp"]
        self.tls_port = ports.get("tls", 0)
        self.websocket_port = ports["websocket"]
        self._loop = loop

    @property
    def counts(self) -> Counts:
        return self.front.counts

    def ask(self, question: Callable[[], T]) -> T:
        """The answer, given in the broker's own thread between two of its turns."""

        async def answer() -> T:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(WAIT_S)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something to become true in the broker's thread."""

        async def wait() -> None:
            async with asyncio.timeout(WAIT_S):
                while not condition():
                    await asyncio.sleep(0.005)

        asyncio.run_coroutine_threadsafe(wait(), self._loop).result(WAIT_S + 1)


@contextmanager
def served(
    options: Options | None = None, authenticate: Authenticate = admit_all, tls: ssl.SSLContext | None = None
) -> Iterator[Served]:
    """A broker that serves until the block is left, and must not have failed at anything by then."""
    started: list[Served] = []
    failures: list[object] = []
    ready, stop = threading.Event(), asyncio.Event()

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        broker = lone_broker()
        front = Front(broker, options, authenticate)
        listeners = {"tcp": Listener(front, port=0), "websocket": Listener(front, port=0, websocket=True)}
        if tls is not None:
            listeners["tls"] = Listener(front, port=0, tls=tls)
        for listener in listeners.values():
            await listener.open()
        ports = {name: listener.port for name, listener in listeners.items()}
        started.append(Served(front, broker, ports, asyncio.get_running_loop()))
        ready.set()
        await stop.wait()
        for listener in listeners.values():
            await listener.close()
        front.end()
        await asyncio.sleep(0.05)

    thread = threading.Thread(target=lambda: uvloop.run(run()), daemon=True)
    thread.start()
    assert ready.wait(WAIT_S), "the broker did not start"
    server = started[0]
    try:
        yield server
    finally:
        server._loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_S)
    assert not failures, failures
    assert not host_of(server.broker).failures, host_of(server.broker).failures


class Raw:
    """A client that writes bytes and reads packets of version 5 (`packet`) or bytes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), WAIT_S)
        self._buffer = b""

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(self, *data: bytes) -> None:
        self.socket.sendall(b"".join(data))

    def raw(self) -> bytes:
        """The next packet as it is; empty at the end of the connection."""
        while True:
            body, size = length_at(self._buffer, 0, len(self._buffer))
            if body and body + size <= len(self._buffer):
                packet, self._buffer = self._buffer[: body + size], self._buffer[body + size :]
                return packet
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                return b""
            self._buffer += data

    def packet(self) -> mqtt5.Packet:
        data = self.raw()
        assert data, "the broker closed the connection"
        return mqtt5.read(memoryview(data))[0]

    def connect(self, client: str = "raw", *, clean_start: bool = True, **said: object) -> mqtt5.ConnAckPacket:
        """Version 5; with what was said in CONNECT."""
        self.send(mqtt5.ConnectPacket(client, clean_start=clean_start, **said).write())  # type: ignore[arg-type]
        answer = self.packet()
        assert isinstance(answer, mqtt5.ConnAckPacket)
        return answer

    def connect3(self, client: str = "raw", flags: int = 2) -> bytes:
        """Version 3.1.1; the CONNACK."""
        name = client.encode()
        body = b"\0\4MQTT\4" + bytes((flags, 0, 0)) + len(name).to_bytes(2, "big") + name
        self.send(b"\x10" + bytes((len(body),)) + body)
        return self.raw()

    def is_closed(self) -> bool:
        """Whether the broker has closed the connection without another word."""
        return self.raw() == b""
