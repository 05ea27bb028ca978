"""`godwit.connect()` when something is wrong: it is told, bounded, and never silent."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import mqtt5
import msgspec
import pytest
from tests.net.certificates import Authority
from tests.net.servers import cluster, parts, port, serving
from tests.net.stations import played, until

import godwit
from godwit.client.client import RESUME_TRIES, connect
from godwit.net.processes import hold_port
from godwit.net.server import Server
from godwit.protocols.broker.api import HANDOFF_WAIT, TOKEN

CLEAN_START = 2
"""Of the flags of a CONNECT."""


def at(one: Server, kind: str = "mqtt") -> str:
    return f"127.0.0.1:{port(one, kind)}"


HELD: list[socket.socket] = []
"""Bound to ports at which nobody listens, as long as these tests run."""


def nowhere() -> str:
    HELD.append(hold_port())
    return f"127.0.0.1:{HELD[-1].getsockname()[1]}"


def raised(error: godwit.ClientError) -> None:
    raise error


def test_after_the_first_round_in_vain_it_is_told_what_failed(caplog: pytest.LogCaptureFixture) -> None:
    first, second = nowhere(), nowhere()

    async def scene() -> None:
        with pytest.raises(godwit.UnreachableError, match=f"{first}: connection refused; {second}: connection refused"):
            await connect(first, second, on_trouble=raised).__aenter__()

    with caplog.at_level(logging.WARNING, "godwit.client"):
        played(scene)
    assert [record.getMessage() for record in caplog.records] == [
        f"{first}: connection refused; {second}: connection refused; trying again"
    ]


def test_a_client_may_be_told_how_long_to_try(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(godwit.UnreachableError, match=r"given up after 0\.1 s"):
            await connect(nowhere(), wait_s=0.1).__aenter__()
        async with serving(tmp_path, "a") as a:
            client = await connect(at(a)).__aenter__()
            numbers = await client.subscribe("n >= 0")
            # Only now: a busy machine may take longer than that to let the client in.
            client.options = msgspec.structs.replace(client.options, wait_s=0.1)
        with pytest.raises(godwit.UnreachableError, match="given up"):
            await client.publish({"n": 1})
        with pytest.raises(godwit.UnreachableError, match="given up"):
            await numbers.next()
        await client.close()

    played(scene)


def test_a_certificate_that_is_not_trusted_ends_it_at_once(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.files("north")
    tls = {"listen__mqtts": ["127.0.0.1:0"], "tls__certificate": certificate, "tls__key": key}

    async def scene() -> None:
        async with serving(tmp_path, "a", **tls) as a:
            with pytest.raises(godwit.UnreachableError, match="its certificate is not trusted"):
                await connect(f"mqtts://{at(a, 'mqtts')}").__aenter__()
            # Nor does it try for ever where nobody speaks TLS.
            with pytest.raises(godwit.UnreachableError, match="TLS"):
                await connect(at(a), tls=ssl.create_default_context(), on_trouble=raised).__aenter__()

    played(scene)


def test_whoever_is_not_connected_yet_or_any_more_is_told_so(tmp_path: Path) -> None:
    async def scene() -> None:
        client = connect(nowhere())
        with pytest.raises(godwit.ClientError, match="async with"):
            await client.publish({"n": 1})
        with pytest.raises(godwit.ClientError, match="async with"):
            await client.subscribe()
        with pytest.raises(godwit.ClientError, match="async with"):
            await client.roam("127.0.0.1:1")
        async with serving(tmp_path, "a") as a:
            async with connect(at(a)) as client:
                await client.publish({"n": 1})
            with pytest.raises(godwit.ClientError, match="closed"):
                await client.publish({"n": 2})

    played(scene)


def test_two_programs_of_one_name_do_not_fight(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[godwit.ClientError] = []

    async def scene() -> None:
        async with (
            serving(tmp_path, "a") as a,
            connect(at(a), client="van", taken_over_s=3600, on_trouble=told.append) as first,
            connect(at(a), client="van") as second,
        ):
            await until(lambda: told)
            await second.publish({"n": 1})
            assert first.taken_over == 1
            assert parts(a).broker.counts.taken_over == 1

    with caplog.at_level(logging.WARNING, "godwit.client"):
        played(scene)
    assert isinstance(told[0], godwit.TakenOverError)
    assert "another program has connected as 'van'" in caplog.text


def test_a_program_may_end_when_its_session_is_taken_over(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            first = await connect(at(a), client="van", on_trouble=raised).__aenter__()
            numbers = await first.subscribe("n >= 0")
            async with connect(at(a), client="van"):
                with pytest.raises(godwit.TakenOverError):
                    await numbers.next()
            await first.close()

    played(scene)


def test_roaming_to_where_nobody_is_raises_and_the_client_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a, connect(at(a), client="van") as van:
            away = nowhere()
            with pytest.raises(godwit.UnreachableError, match=f"{away}: connection refused"):
                await van.roam(away)
            assert str(await van.connected()) == at(a)
            assert [str(one) for one in van.brokers] == [at(a)]
            await van.publish({"n": 1})

    played(scene)


def test_a_client_without_a_name_leaves_no_session_behind(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            async with connect(at(a)) as client:
                await client.subscribe("n >= 0")
                assert len(parts(a).broker.sessions) == 1
            await until(lambda: not parts(a).broker.sessions)

    played(scene)


def test_a_publisher_without_a_name_is_let_in_at_once_when_its_broker_dies(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", handoff_wait_s=3600) as (a, b),
            connect(at(a), at(b), connect_s=3600) as client,
        ):
            await client.publish({"n": 1})
            await a.stop()
            async with asyncio.timeout(60):
                await client.publish({"n": 2})
            assert str(client.broker) == at(b)
            assert client.renewed == 0  # it asked for that

    played(scene)


async def quiet(client: godwit.Client) -> None:
    await client.publish({"n": 1}, qos=0)


async def said_in_order(client: godwit.Client) -> None:
    await client.publish({"n": 1}, qos=1)


async def said_long_ago(client: godwit.Client) -> None:
    """Longer than brokers wait for each other: whatever they have not passed on by now has no order any more."""
    await client.publish({"n": 1}, qos=2)
    assert client._handoff_wait_s == 10.0
    client._said_s -= 11.0


async def under_way_once(client: godwit.Client) -> None:
    await under_way(client, 2)


async def under_way_at_least_once(client: godwit.Client) -> None:
    await under_way(client, 1)


async def under_way(client: godwit.Client, qos: int) -> None:
    """It has left, and no answer has come."""
    client._taken = lambda *answer: None  # type: ignore[method-assign]
    client._noted = lambda packet: None  # type: ignore[method-assign]
    task = asyncio.create_task(client.publish({"n": 1}, qos=qos))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await until(lambda: any(outgoing.sent for outgoing in client._outgoing.values()))


async def listening(client: godwit.Client) -> None:
    await client.subscribe("n > 0")


@pytest.mark.parametrize(
    ("before", "does", "keep_s", "anew"),
    [
        (None, quiet, 60, True),
        (None, said_in_order, 60, False),
        (None, said_in_order, 0, True),
        (None, said_long_ago, 60, True),
        (None, under_way_at_least_once, 60, True),
        (None, under_way_once, 60, False),
        (None, listening, 60, False),
        (listening, quiet, 60, False),
    ],
    ids=[
        "nothing to keep",
        "an order to keep",
        "wants no session",
        "an order that is over",
        "under way at QoS 1",
        "under way at QoS 2",
        "subscribed",
        "of an earlier program",
    ],
)
def test_a_client_with_a_name_starts_anew_where_its_broker_dies_only_if_nothing_is_lost_by_it(
    tmp_path: Path,
    before: Callable[[godwit.Client], Awaitable[None]] | None,
    does: Callable[[godwit.Client], Awaitable[None]],
    keep_s: float,
    anew: bool,
) -> None:
    """What it says to the next broker: whoever starts anew is let in at once, and others wait for their session."""

    async def scene() -> None:
        said: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello = await reader.read(1_000)
            if not said.done():
                said.set_result(hello)
            writer.close()

        other = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with other, serving(tmp_path, "a") as a:
            if before is not None:
                async with connect(at(a), client="p", keep_s=60) as earlier:
                    await before(earlier)
            elsewhere = f"127.0.0.1:{other.sockets[0].getsockname()[1]}"
            async with connect(at(a), elsewhere, client="p", keep_s=keep_s) as client:
                await does(client)
                await a.stop()
                hello = await said
        flags = hello[hello.index(b"MQTT") + 5]
        assert bool(flags & CLEAN_START) is anew

    played(scene)


def test_a_publisher_with_a_name_that_was_quiet_is_let_in_at_once_when_its_broker_dies(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", handoff_wait_s=3600) as (a, b),
            connect(at(a), at(b), client="p", connect_s=3600) as client,
        ):
            await client.publish({"n": 1}, qos=2)
            assert client._handoff_wait_s == 3600.0
            client._said_s -= 3600.0
            await a.stop()
            async with asyncio.timeout(60):
                await client.publish({"n": 2}, qos=2)
            assert str(client.broker) == at(b)

    played(scene)


@pytest.mark.parametrize(("qos", "keep_s"), [(0, 60), (2, 0)])
def test_a_publisher_with_a_name_and_nothing_to_keep_is_let_in_at_once_when_its_broker_dies(
    tmp_path: Path, qos: int, keep_s: float
) -> None:
    async def scene() -> None:
        async with (
            cluster(tmp_path, "a", "b", handoff_wait_s=3600) as (a, b),
            connect(at(a), at(b), client="p", keep_s=keep_s, connect_s=3600) as client,
        ):
            await client.publish({"n": 1}, qos=qos)
            await a.stop()
            async with asyncio.timeout(60):
                await client.publish({"n": 2})
            assert str(client.broker) == at(b)
            assert client.renewed == 0  # it asked for that

    played(scene)


def test_what_a_broker_would_hang_up_for_is_refused_and_the_client_stays(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            serving(tmp_path, "a", limits__packet_bytes_max=2048) as a,
            connect(at(a), on_trouble=raised) as client,
        ):
            for qos in (0, 1, 2):
                with pytest.raises(godwit.ClientError, match="2,048 at most"):
                    await client.publish(payload=b"x" * 3000, qos=qos)
                with pytest.raises(godwit.ClientError, match="wildcard"):
                    await client.publish({"n": 1}, topic="air/#", qos=qos)
            await client.publish({"n": 1})

    played(scene)


def test_a_goodbye_right_behind_the_welcome_is_one_more_try(caplog: pytest.LogCaptureFixture) -> None:
    """As where the client is let in elsewhere while a broker waits for its disk."""

    async def serve() -> list[int]:
        tries: list[int] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1_000)
            tries.append(len(tries))
            said = mqtt5.ConnAckPacket().write()
            if len(tries) == 1:
                said += mqtt5.DisconnectPacket(reason_code=mqtt5.DisconnectReasonCode.SERVER_BUSY).write()
            writer.write(said)
            if len(tries) == 1:
                writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, asyncio.timeout(60), connect(f"127.0.0.1:{port}", retry_max_s=0.1) as client:
            await client.connected()
        return tries

    assert len(asyncio.run(serve())) == 2
    assert "Fatal error" not in caplog.text


def test_what_an_earlier_program_wanted_does_not_stop_what_this_one_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """More of it comes than may be unacknowledged, and nobody here takes it."""
    monkeypatch.setattr("godwit.client.client.EARLY_S", 0.2)

    async def scene() -> None:
        async with serving(tmp_path, "a") as a:
            async with connect(at(a), client="van", keep_s=600) as first:
                await first.subscribe("n >= 0", topics="old/#", qos=1)
            async with connect(at(a), client="van", keep_s=600, inflight_max=5) as second, connect(at(a)) as speaker:
                wanted = await second.subscribe("n >= 0", topics="new/#", qos=1)
                for number in range(20):
                    await speaker.publish({"n": number}, topic="old/x", qos=1)
                    await speaker.publish({"n": number}, topic="new/x", qos=1)
                async with asyncio.timeout(60):
                    found = [int((await anext(wanted)).attributes["n"]) for _ in range(20)]
                assert found == list(range(20))

    played(scene)
    assert "that this program has not made" in caplog.text


@pytest.mark.parametrize(("refusals", "reason"), [(2, 131), (1, 135), (99, 131)])
def test_a_subscription_that_was_granted_before_is_asked_for_again_where_it_is_refused_for_now_only(
    refusals: int, reason: int
) -> None:
    """In a ring a broker that must know of it may be away for a while."""
    asked = []

    async def scene() -> None:
        client = connect(nowhere(), retry_s=0.001)

        async def subscribe(wire: object, subscription: object, *, resume: bool) -> None:
            asked.append(resume)
            if len(asked) <= refusals:
                raise godwit.RefusedError("try again", reason)

        client._subscribe = subscribe  # type: ignore[method-assign, assignment]
        await client._subscribe_again(None, None, resume=True)  # type: ignore[arg-type]

    if (refusals, reason) == (2, 131):
        played(scene)
        assert len(asked) == 3
    else:
        with pytest.raises(godwit.RefusedError):
            played(scene)
        assert len(asked) == (1 if reason == 135 else RESUME_TRIES)


class Scripted:
    """A broker that does with each connection what the script says; what clients have said to it stands in `said`."""

    def __init__(self, script: Callable[[int, mqtt5.Packet], list[mqtt5.Packet] | None]) -> None:
        self.script = script
        self.said: list[tuple[int, mqtt5.Packet]] = []
        self.connections = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, waiting = self.connections, b""
        self.connections += 1
        with contextlib.suppress(ConnectionError):
            while came := await reader.read(10_000):
                found, waiting = packets(waiting + came)
                for packet in found:
                    self.said.append((number, packet))
                    answers = self.script(number, packet)
                    if answers is None:
                        writer.close()
                        return
                    writer.write(b"".join(answer.write() for answer in answers))

    @contextlib.asynccontextmanager
    async def at(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    def heard(self, kind: type[mqtt5.Packet]) -> list[int]:
        """Of which connections such a packet came."""
        return [number for number, packet in self.said if isinstance(packet, kind)]


def packets(data: bytes) -> tuple[list[mqtt5.Packet], bytes]:
    """All that are whole, and the rest."""
    found = []
    while data:
        try:
            packet, length = mqtt5.read(memoryview(data))
        except IndexError:
            break
        data = data[length:]
        found.append(packet)
    return found, data


def test_what_a_broker_has_noted_is_not_published_again_in_a_new_session() -> None:
    """It hangs up after PUBREC, and the next connection is told that its session is new."""

    def script(number: int, packet: mqtt5.Packet) -> list[mqtt5.Packet] | None:
        match packet:
            case mqtt5.ConnectPacket():
                return [mqtt5.ConnAckPacket(session_present=False)]
            case mqtt5.PublishPacket(packet_id=int(name)):
                return [mqtt5.PubRecPacket(name)]
            case mqtt5.PubRelPacket(packet_id=name):
                return [mqtt5.PubCompPacket(name)] if number else None
        return []

    broker = Scripted(script)

    async def scene() -> None:
        async with broker.at() as address, asyncio.timeout(60), connect(address, client="van") as client:
            await client.publish({"n": 1})
            await client.publish({"n": 2})
            assert client.renewed == 1

    asyncio.run(scene())
    assert broker.heard(mqtt5.PublishPacket) == [0, 1]


def test_a_subscription_that_a_new_session_did_not_get_is_made_in_the_next_connection() -> None:
    """The second connection is told that its session is new, and ends before it has subscribed again."""

    def script(number: int, packet: mqtt5.Packet) -> list[mqtt5.Packet] | None:
        match packet:
            case mqtt5.ConnectPacket():
                return [mqtt5.ConnAckPacket(session_present=number > 1)]
            case mqtt5.SubscribePacket(packet_id=name):
                return (
                    None
                    if number == 1
                    else [mqtt5.SubAckPacket(name, [mqtt5.SubAckReasonCode.GRANTED_QOS_EXACTLY_ONCE])]
                )
            case mqtt5.PublishPacket():
                return None  # the first connection ends here
        return []

    broker = Scripted(script)

    async def scene() -> None:
        async with broker.at() as address, asyncio.timeout(60), connect(address, client="van") as client:
            await client.subscribe("n > 0")
            await client.publish({"n": 1}, qos=0)
            await until(lambda: broker.connections > 2)
            await client.connected()
            assert client.renewed == 1

    asyncio.run(scene())
    assert broker.heard(mqtt5.SubscribePacket) == [0, 1, 2]


def test_a_client_waits_for_its_session_as_long_as_brokers_do() -> None:
    """Else it would go from broker to broker, each of which begins to wait."""
    kept = [(TOKEN, "1.1.a"), (HANDOFF_WAIT, "60")]

    def script(number: int, packet: mqtt5.Packet) -> list[mqtt5.Packet] | None:
        match packet:
            case mqtt5.ConnectPacket() if not number:
                return [mqtt5.ConnAckPacket(user_properties=kept)]
            case mqtt5.PublishPacket():
                return None
        return []

    broker = Scripted(script)

    async def scene() -> None:
        async with (
            broker.at() as address,
            asyncio.timeout(60),
            connect(address, client="van", connect_s=0.5, keep_alive_s=1) as client,
        ):
            await client.publish({"n": 1}, qos=0)
            await until(lambda: broker.connections > 1)
            await asyncio.sleep(2.5)  # longer than a broker is given that has nothing to wait for

    asyncio.run(scene())
    assert broker.connections == 2
