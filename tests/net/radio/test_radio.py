"""Radios on the loopback interface: multicast, parts, the bucket, and what happens to those who misbehave."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import aiomqtt
import msgspec
import pytest
from tests.net.servers import client, parts, port, serving, taken
from tests.net.stations import until

from godwit.net.config import ConfigError, load
from godwit.net.radio.antenna import AntennaError
from godwit.net.radio.radio import Radio, RadioOptions
from godwit.net.radio.seal import Kind
from godwit.net.server import ServeError
from godwit.protocols.adhoc.messages import Beacon, Data
from godwit.protocols.broker.fabric.adhoc import AIR, ALL_TOPICS, aired
from godwit.protocols.broker.publication import Publication
from godwit.protocols.host import Message

pytestmark = pytest.mark.feature("manet-cbr F4")

KEY = b"0123456789abcdef"


def to_the_end(scene: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is played in a loop of its own."""

    @wraps(scene)
    def played(**fixtures: Any) -> None:
        asyncio.run(scene(**fixtures))

    return played


def options(**more: Any) -> RadioOptions:
    """A port of this process's own, so that tests beside this one are not heard."""
    return msgspec.structs.replace(RadioOptions(interfaces=("lo",), port=20_000 + os.getpid() % 20_000), **more)


def event(number: int, size_b: int = 10) -> Data:
    return Data(aired(Publication("p", number, "t", bytes(size_b), passage=("n/1", number))))


@asynccontextmanager
async def radios(*names: str, key: bytes = KEY, **more: Any) -> AsyncIterator[list[Radio]]:
    made = [Radio(name, key, options(**more)) for name in names]
    try:
        for one in made:
            one.start()
        yield made
    finally:
        for one in made:
            one.stop()


def heard(radio: Radio) -> list[tuple[str, Message]]:
    found: list[tuple[str, Message]] = []
    radio.on_message = lambda sender, message: found.append((sender, message))
    return found


def frame_sizes(radio: Radio) -> list[int]:
    """Of all that its antennas hear from now on."""
    sizes: list[int] = []

    def hear(frame: bytes, age_s: float) -> None:
        sizes.append(len(frame))
        radio.seals.open(frame, age_s)

    for antenna in radio.antennas:
        antenna.on_frame = hear
    return sizes


@to_the_end
async def test_what_one_says_all_others_hear_and_itself_does_not() -> None:
    async with radios("a", "b", "c") as (a, b, c):
        ears = [heard(one) for one in (a, b, c)]
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: all(ears[1:]))
        assert ears == [[], [("a", Beacon(ALL_TOPICS))], [("a", Beacon(ALL_TOPICS))]]


@to_the_end
async def test_broadcast_addresses_work_like_groups() -> None:
    async with radios("a", "b", group="127.255.255.255") as (a, b):
        ear = heard(b)
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: ear)


@to_the_end
async def test_a_large_event_comes_in_parts_that_fit() -> None:
    async with radios("a", "b", bytes_per_s=1e7) as (a, b):
        ear, sizes = heard(b), frame_sizes(b)
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: ear)
        large = event(1, 50_000)
        a.broadcast(large)
        await until(lambda: len(ear) == 2)
        assert ear[1] == ("a", large)
        assert max(sizes) <= options().frame_b_max
        a.broadcast(event(2, 100_000))
        assert a.dropped == {"too large": 1}


@to_the_end
async def test_no_more_leaves_than_the_bucket_lets_out_and_beacons_go_first() -> None:
    async with radios("a", "b", bytes_per_s=20_000.0, queue_b_max=30_000) as (a, b):
        ear = heard(b)
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: ear)
        began_s, before = asyncio.get_running_loop().time(), a.bytes_sent
        for number in range(100):
            a.broadcast(event(number, 1_000))
        assert a.dropped["queue full"] > 50
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: a.waiting_b == 0)
        lasted_s = asyncio.get_running_loop().time() - began_s
        assert a.bytes_sent - before <= 20_000 * lasted_s + 2 * 20_000 * 0.25 + 2 * 1_400
        await asyncio.sleep(0.1)
        kinds = [type(message) for _, message in ear[1:]]
        assert kinds.index(Beacon) < len(kinds) // 2


@to_the_end
async def test_what_waits_can_be_taken_back() -> None:
    async with radios("a", bytes_per_s=2_000.0) as (a,):
        events = [event(number, 1_000) for number in range(10)]
        for one in events:
            a.broadcast(one)
        before = a.waiting_b
        assert a.is_waiting(events[-1].event.id)
        assert a.withdraw(events[-1])
        assert not a.is_waiting(events[-1].event.id)
        assert not a.withdraw(events[-1])
        assert not a.withdraw(events[0])
        assert a.waiting_b < before


@to_the_end
async def test_another_key_is_another_air() -> None:
    async with radios("a") as (a,), radios("b", key=b"another key 01234") as (b,):
        ear = heard(b)
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: b.dropped["forged"])
        assert ear == []


@to_the_end
async def test_what_is_sealed_and_yet_nonsense_is_malformed() -> None:
    async with radios("a", "b") as (a, b):
        ear = heard(b)
        a.broadcast(Beacon(ALL_TOPICS))
        await until(lambda: ear)
        nonsense = [b"", b"\xc1", msgspec.msgpack.encode({"type": "x"})]
        for body in nonsense:
            a.antennas[0].send(a.seals.seal(Kind.WHOLE, body))
        await until(lambda: b.dropped["malformed"] == len(nonsense))
        assert len(ear) == 1


@to_the_end
async def test_an_interface_that_is_not_there_is_named_with_those_that_are() -> None:
    radio = Radio("a", KEY, options(interfaces=("wlan99",)))
    with pytest.raises(AntennaError, match=r"wlan99: there is no such interface; this machine has .*lo"):
        radio.start()
    radio.stop()


@to_the_end
async def test_frames_that_an_interface_cannot_take_are_refused_at_the_start() -> None:
    radio = Radio("a", KEY, options(frame_b_max=65_530))
    with pytest.raises(AntennaError, match=r"lo takes 65,536 bytes at a time; right would be .* = 65508"):
        radio.start()
    radio.stop()


def air_flags(**more: Any) -> dict[str, Any]:
    told = {"fabric": ["adhoc"], "adhoc__interfaces": ["lo"], "adhoc__port": options().port, "adhoc__beacon_s": 0.2}
    return {**told, "adhoc__key": KEY.decode(), **more}


@to_the_end
async def test_clients_of_two_brokers_in_the_air_hear_each_other(tmp_path: Path) -> None:
    async with serving(tmp_path, "a", **air_flags()) as a, serving(tmp_path, "b", **air_flags()) as b:
        async with client(a, "one") as one, client(b, "other") as other:
            await other.subscribe("news/#", qos=1)
            fabric = parts(a).air
            assert fabric is not None
            await until(lambda: any(fabric.fabric.wanted_by.values()))
            for number in range(5):
                await one.publish("news/x", b"%d" % number, qos=number % 3)
            assert await taken(other, 5) == [("news/x", b"%d" % number) for number in range(5)]
        assert parts(a).fabric.interests.keys() == {AIR}


@to_the_end
async def test_a_publication_that_is_too_large_is_refused_and_the_limit_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "a", **air_flags(adhoc__event_bytes_max=2_000)) as a:
        with pytest.raises(aiomqtt.MqttError):
            async with aiomqtt.Client("127.0.0.1", port(a), protocol=aiomqtt.ProtocolVersion.V5) as one:
                await one.publish("x", bytes(3_000), qos=1, timeout=1)
        async with client(a, "fine") as fine:
            await fine.publish("x", bytes(1_500), qos=1)


@to_the_end
async def test_a_broker_says_why_it_cannot_be_in_the_air(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"adhoc.interfaces: wlan99: there is no such interface"):
        async with serving(tmp_path, "a", **air_flags(adhoc__interfaces=["wlan99"])):
            pass


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({}, "adhoc: without a key anybody in range could forge"),
        ({"adhoc.key": "short"}, "adhoc.key: 5 bytes; right would be 16 or more"),
        ({"adhoc.key": KEY.decode(), "adhoc.group": "wlan0"}, "adhoc.group: 'wlan0'; right would be 239"),
        ({"adhoc.insecure": True, "peers.listen": "127.0.0.1:1"}, "peers: nobody is linked in the air"),
        ({"adhoc.insecure": True, "name": "x" * 65}, "name: .*64 bytes at most"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(flags: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(None, {"fabric": "adhoc", **flags})
