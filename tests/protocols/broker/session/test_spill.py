"""What waits for a slow client beyond a bound of memory is on the disk, and nobody can tell the difference."""

from __future__ import annotations

import pytest

from godwit.protocols.broker.api import Limits
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.sim.brokers.client import Client, Connection
from godwit.sim.brokers.world import World

SPILLING = Limits(queue_memory_max=0)
PAYLOADS = [str(number).encode() * 50 for number in range(20)]


class Stuck(Connection):
    """Takes nothing above QoS 0 until it is told to."""

    stuck = True

    def takes_more(self) -> bool:
        return not self.stuck


def stuck_client(world: World, name: str, monkeypatch: pytest.MonkeyPatch, **more: object) -> Client:
    monkeypatch.setattr("godwit.sim.brokers.client.Connection", Stuck)
    return Client(world, name).connect("b1", limits=SPILLING, **more)  # type: ignore[arg-type]


def loosen(client: Client) -> None:
    connection = client.connection
    assert isinstance(connection, Stuck)
    connection.stuck = False
    connection.site.broker.go_on(client.session, connection)


def on_disk(world: World) -> int:
    return len(world.sites["b1"].disk.get("spilled", {}))


@pytest.mark.parametrize("expiry_s", [0.0, 3600.0])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_slow_client_gets_everything_in_order_from_the_disk(
    expiry_s: float, qos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    slow = [stuck_client(world, f"s{n}", monkeypatch, expiry_s=expiry_s).subscribe("#", qos=qos) for n in range(3)]
    publisher = Client(world, "p").connect("b1", expiry_s=0.0)
    for payload in PAYLOADS:
        publisher.publish("a", payload, 2)
    world.run()
    assert all(item.is_away and not item.label.payload for one in slow for item in one.session.queue.waiting)
    assert on_disk(world) == (0 if expiry_s else len(PAYLOADS)), "each once, however many wait for it"
    for one in slow:
        loosen(one)
    world.run()
    assert [one.payloads for one in slow] == [PAYLOADS] * 3
    assert on_disk(world) == 0


def test_the_front_of_a_queue_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    slow = Client(world, "s").connect("b1", limits=Limits(queue_memory_max=1_000)).subscribe("#", qos=1)
    session = slow.session
    slow.drop()
    publisher = Client(world, "p").connect("b1")
    for payload in PAYLOADS:
        publisher.publish("a", payload, 1)
    world.run()
    away = [item.is_away for item in session.queue.waiting]
    assert away == sorted(away)
    assert 0 < sum(away) < len(PAYLOADS)


def test_what_is_on_the_disk_only_survives_a_crash_and_stays_there() -> None:
    world = World()
    Client(world, "s").connect("b1", limits=SPILLING).subscribe("#", qos=1).drop()
    publisher = Client(world, "p").connect("b1")
    large = [bytes([number]) * 300_000 for number in range(10)]
    for payload in large:
        publisher.publish("a", payload, 1)
    world.run()
    world.sites["b1"].crash()
    world.sites["b1"].start()
    waiting = world.sites["b1"].broker.sessions["s"].queue.waiting
    assert 5 < sum(item.is_away for item in waiting) < 10, "a megabyte of it is read at once"
    back = Client(world, "s").connect("b1")
    world.run()
    assert back.payloads == large


def test_what_nobody_waits_for_any_more_is_gone_from_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    slow = [stuck_client(world, f"s{n}", monkeypatch, expiry_s=0.0).subscribe("#", qos=1) for n in range(2)]
    publisher = Client(world, "p").connect("b1")
    for payload in PAYLOADS:
        publisher.publish("a", payload, 1)
    world.run()
    slow[0].drop()
    world.run()
    assert on_disk(world) == len(PAYLOADS)
    slow[1].drop()
    world.run()
    assert on_disk(world) == 0


def test_a_member_of_a_group_that_ends_hands_over_what_it_had_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    slow = stuck_client(world, "s", monkeypatch, expiry_s=0.0).subscribe("#", group="g", qos=1)
    publisher = Client(world, "p").connect("b1")
    for payload in PAYLOADS:
        publisher.publish("a", payload, 1)
    world.run()
    other = stuck_client(world, "o", monkeypatch).subscribe("#", group="g", qos=1)
    slow.drop()
    loosen(other)
    world.run()
    assert other.payloads == PAYLOADS


def test_bounds_drop_the_oldest_of_what_is_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr("godwit.sim.brokers.client.Connection", Stuck)
    limits = Limits(queue_memory_max=0, queue_max=3)
    slow = Client(world, "s").connect("b1", limits=limits, expiry_s=0.0).subscribe("#", qos=1)
    publisher = Client(world, "p").connect("b1")
    for payload in PAYLOADS:
        publisher.publish("a", payload, 1)
    world.run()
    assert on_disk(world) == 3
    loosen(slow)
    world.run()
    assert slow.payloads == PAYLOADS[-3:]


def test_a_session_that_no_longer_lasts_keeps_what_its_rows_held(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    Client(world, "s").connect("b1", limits=SPILLING, expiry_s=3600.0).subscribe("#", qos=1).drop()
    publisher = Client(world, "p").connect("b1")
    for payload in PAYLOADS:
        publisher.publish("a", payload, 1)
    world.run()
    back = Client(world, "s").connect("b1", limits=SPILLING, expiry_s=0.0, inflight_max=1)
    world.run()
    assert back.payloads == PAYLOADS


def test_rows_of_an_earlier_start_are_removed() -> None:
    disk: Disk = {"spilled": {("", 7): b"x"}}
    world = World()
    world.sites["b1"].crash()
    world.sites["b1"].disk.update(disk)
    world.sites["b1"].start()
    world.run()
    assert on_disk(world) == 0


def test_a_store_tells_single_rows() -> None:
    store = MemoryStore({}, lambda call: None)
    store.put("meta", "a", 1, b"x")
    assert store.get("meta", "a", 1) == b"x"
    assert store.get("meta", "a", 2) is None
