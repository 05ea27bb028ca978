"""What a client is told is on the disk when it is told."""

from __future__ import annotations

from collections.abc import Callable

import mqtt5
from tests.net.mqtt.serving import Raw, Served, served

from godwit.protocols.broker.store import MemoryStore

Waiting = list[Callable[[], None]]


def stop_disk(server: Served) -> Waiting:
    """From now on nothing is written until `go` is called; what waits for the disk is listed."""
    store = server.broker.store
    waiting: Waiting = []
    assert isinstance(store, MemoryStore)
    server.ask(lambda: setattr(store, "later", waiting.append))
    return waiting


def go(server: Served, waiting: Waiting) -> None:
    def write() -> None:
        while waiting:
            waiting.pop(0)()

    server.ask(write)


def test_a_subscription_of_a_lasting_session_is_granted_once_the_disk_has_it() -> None:
    with served() as server, Raw(server.port) as client:
        client.send(mqtt5.ConnectPacket("walker", session_expiry_interval=600).write())
        assert isinstance(client.packet(), mqtt5.ConnAckPacket)
        waiting = stop_disk(server)
        client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a/#")]).write(), mqtt5.PingReqPacket().write())
        assert isinstance(client.packet(), mqtt5.PingRespPacket)
        go(server, waiting)
        assert isinstance(client.packet(), mqtt5.SubAckPacket)


def test_a_session_that_ends_with_its_connection_waits_for_no_disk() -> None:
    with served() as server, Raw(server.port) as client:
        client.send(mqtt5.ConnectPacket("walker").write())
        assert isinstance(client.packet(), mqtt5.ConnAckPacket)
        stop_disk(server)
        client.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("a/#")]).write())
        assert isinstance(client.packet(), mqtt5.SubAckPacket)
