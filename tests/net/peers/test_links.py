"""Real sockets between stations: links come up, stay single, come back, and cost nobody else anything."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest
import uvloop
from tests.net.certificates import Authority
from tests.net.stations import QUICK, Station, played, until

from godwit.net.config import PeersTls
from godwit.net.peers.frames import GREETING_B_MAX, Kind, Peer, Reader, framed
from godwit.net.peers.links import Club, Link, LinkOptions
from godwit.net.tls import problem_of
from godwit.protocols.host import Message, RemoteError
from godwit.protocols.routing.messages import Ack
from godwit.protocols.topology.election import Heartbeat


def beat(number: int) -> Heartbeat:
    return Heartbeat("x", 1, number, 0)


def test_what_is_sent_arrives_in_order_at_both_ends() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers == {"b"} and b.peers == {"a"})
        for number in range(1_000):
            a.links.send("b", beat(number))
            b.links.broadcast(Ack(number))
        await until(lambda: len(a.heard) == len(b.heard) == 1_000)
        assert b.heard == [("a", beat(number)) for number in range(1_000)]
        assert a.heard == [("b", Ack(number)) for number in range(1_000)]
        assert a.changes == [("linked", "b")]
        await a.stop()
        await until(lambda: b.changes == [("linked", "a"), ("unlinked", "a")])
        await b.stop()

    played(scene)


def test_large_messages_pass_and_too_large_ones_are_counted() -> None:
    async def scene() -> None:
        options = LinkOptions(frame_b_max=1_000_000)
        a, b = Station("a", options=options), Station("b", options=options)
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers and b.peers)
        large, larger = (Heartbeat("x" * size, 1, 1, 0) for size in (900_000, 1_100_000))
        a.links.send("b", larger)
        a.links.send("b", large)
        await until(lambda: b.heard == [("a", large)])
        assert a.links.dropped == {"too large": 1}
        await a.stop()
        await b.stop()

    played(scene)


def burn(for_s: float) -> None:
    end = time.thread_time() + for_s
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize(
    ("pass_by", "turns_min"),
    [pytest.param(partial(burn, 0.001), 10, id="work"), pytest.param(partial(time.sleep, 0.003), 5, id="no-processor")],
)
def test_who_says_much_at_once_is_heard_bit_by_bit(pass_by: Callable[[], None], turns_min: int) -> None:
    """A process that has little of a processor must not hear one peer for seconds: nothing leaves meanwhile, so that
    the others take it for dead."""

    async def scene() -> None:
        a, b = Station("a"), Station("b")
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers and b.peers)
        hear, turns = b.links.on_message, 0

        def slowly(peer: str, message: Message) -> None:
            pass_by()
            hear(peer, message)

        async def count() -> None:
            nonlocal turns
            while len(b.heard) < 1_000:
                turns += 1
                await asyncio.sleep(0)

        b.links.on_message = slowly
        for number in range(1_000):
            a.links.send("b", beat(number))
        await count()
        assert turns > turns_min
        assert b.heard == [("a", beat(number)) for number in range(1_000)]
        a.links.send("b", beat(1_000))
        await until(lambda: len(b.heard) == 1_001)
        await a.stop()
        await b.stop()

    played(scene)


def test_a_large_message_may_come_together_with_the_proof() -> None:
    """A broker says what it wants as soon as it is linked, which may be much: nobody must be refused for that."""

    async def scene() -> None:
        club, options = Club(secret=b"drawn at random"), LinkOptions(packs=())
        a, b = Station("a", club, options), Station("b", club, options)
        large = Heartbeat("x" * 100_000, 1, 1, 0)
        for one in (a, b):
            one.links.on_linked = partial(_say, one, large)
        b.dialler.dial(await a.listen())
        await until(lambda: a.heard and b.heard)
        assert (a.heard, b.heard) == ([("b", large)], [("a", large)])
        await a.stop()
        await b.stop()

    played(scene)


def _say(one: Station, message: Message, peer: str) -> None:
    one.links.send(peer, message)


def test_a_connection_that_comes_when_nobody_waits_for_it_leaves_nothing_behind() -> None:
    """In the loop that brokers have: it closes such a connection and tells nobody."""

    async def scene() -> None:
        a, b = Station("a"), Station("b")
        address = await a.listen()
        met = b.links.met

        def met_too_late(link: Link) -> None:
            met(link)
            dialling.cancel()

        b.links.met = met_too_late  # type: ignore[method-assign]
        port = int(address.rpartition(":")[2])
        dialling = asyncio.create_task(b.links.connect("127.0.0.1", port, address))
        with pytest.raises(asyncio.CancelledError):
            await dialling
        assert not b.links._all
        await b.stop()
        await a.stop()

    uvloop.run(scene())


@pytest.mark.parametrize("names", ["ab", "ba"] * 3)
def test_one_link_stays_when_both_dial_at_once(names: str) -> None:
    async def scene() -> None:
        a, b = Station(names[0]), Station(names[1])
        to_a, to_b = await a.listen(), await b.listen()
        a.dialler.dial(to_b)
        b.dialler.dial(to_a)
        await until(lambda: a.peers == {b.name} and b.peers == {a.name})
        await asyncio.sleep(0.1)
        # The other one may still be on its way, or about to end.
        await until(lambda: len(a.links._all) == len(b.links._all) == 1 and a.peers and b.peers)
        assert a.links.up[b.name].handshake.dialled != b.links.up[a.name].handshake.dialled
        a.links.send(b.name, beat(1))
        b.links.send(a.name, beat(2))
        await until(lambda: a.heard and b.heard)
        await a.stop()
        await b.stop()

    played(scene)


def test_links_come_back_when_a_broker_does() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        address = await a.listen()
        b.dialler.dial(address)
        await until(lambda: b.peers)
        await a.stop()
        await until(lambda: not b.peers)
        again = Station("a", incarnation=2)
        await again.links.listen("127.0.0.1", int(address.rpartition(":")[2]))
        await until(lambda: b.peers == {"a"} and again.peers == {"b"})
        assert b.changes == [("linked", "a"), ("unlinked", "a"), ("linked", "a")]
        await again.stop()
        await b.stop()

    played(scene)


def test_a_restarted_peer_takes_the_place_of_its_dead_link() -> None:
    """The old connection is still open here, as after a crash of the machine; the new one need not wait for it."""

    async def scene() -> None:
        a, before, after = Station("a"), Station("b"), Station("b", incarnation=2)
        address = await a.listen()
        before.dialler.dial(address)
        await until(lambda: a.peers)
        await before.dialler.stop()
        after.dialler.dial(address)
        await until(lambda: after.peers == {"a"})
        assert a.changes == [("linked", "b"), ("unlinked", "b"), ("linked", "b")]
        for station in (a, before, after):
            await station.stop()

    played(scene)


async def proxied(address: str) -> tuple[asyncio.Server, str, asyncio.Event]:
    """A wire to that address that can fall silent without breaking: clear the event."""
    host, _, port = address.rpartition(":")
    open_ = asyncio.Event()
    open_.set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await open_.wait()
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            writer.close()
            far_writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"127.0.0.1:{server.sockets[0].getsockname()[1]}", open_


def test_a_silent_peer_counts_as_dead_and_a_quiet_one_does_not() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        address = await a.listen()
        a.links.address = ""
        server, wire, is_open = await proxied(address)
        b.dialler.dial(wire)
        await until(lambda: a.peers and b.peers)
        await asyncio.sleep(QUICK.idle_s * 2)
        assert a.changes == [("linked", "b")]
        is_open.clear()
        await until(lambda: a.changes[-1] == ("unlinked", "b") and ("unlinked", "a") in b.changes)
        is_open.set()
        await until(lambda: a.peers and b.peers)
        await a.stop()
        await b.stop()
        server.close()

    played(scene)


def test_what_a_slow_peer_cannot_take_is_dropped_and_counted_and_what_follows_arrives() -> None:
    async def scene() -> None:
        options = LinkOptions(queue_b_max=200_000, idle_s=30)
        a, b = Station("a", options=options), Station("b", options=options)
        address = await a.listen()
        a.links.address = ""
        server, wire, is_open = await proxied(address)
        b.dialler.dial(wire)
        await until(lambda: a.peers and b.peers)
        is_open.clear()
        for number in range(600):
            a.links.send("b", Heartbeat("x" * 100_000, 1, number, 0))
            await asyncio.sleep(0)
        assert a.links.dropped["queue full"] > 0
        is_open.set()
        await until(lambda: len(b.heard) == 600 - a.links.dropped["queue full"])
        a.links.send("b", beat(7))
        await until(lambda: b.heard[-1] == ("a", beat(7)))
        rounds = [message.round for _, message in b.heard[:-1] if isinstance(message, Heartbeat)]
        assert rounds == sorted(rounds)
        await a.stop()
        await b.stop()
        server.close()

    played(scene)


async def answered(address: str, data: bytes) -> bytes:
    """What a stranger gets who says this, until it is hung up on."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"a frame of 1,195,725,856 bytes; between 1 and 65,536 are allowed"),
        (struct.pack(">IB", 5, 9) + b"what", b"a frame of kind 9; there are 0 to 2"),
        (framed(Kind.CONTROL, b"\xc1 nonsense"), b"malformed control frame"),
        (framed(Kind.MESSAGE, b"too early"), b"a message came while greeting"),
        (b"", b"no complete greeting within 0.5 s"),
    ],
)
def test_strangers_and_nonsense_are_told_why_and_nobody_else_notices(data: bytes, reason: bytes) -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        address = await a.listen()
        b.dialler.dial(address)
        await until(lambda: a.peers)
        assert reason in await answered(address, data)
        b.links.send("a", beat(1))
        await until(lambda: a.heard)
        assert a.changes == [("linked", "b")]
        await a.stop()
        await b.stop()

    played(scene)


def test_a_crowd_of_strangers_is_kept_small() -> None:
    async def scene() -> None:
        a, b = Station("a", options=LinkOptions(strangers_max=3, greeting_s=30)), Station("b")
        address = await a.listen()
        host, _, port = address.rpartition(":")
        crowd = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        assert b"too many peers greet at a time; try again" in await answered(address, b"")
        crowd[0][1].close()
        b.dialler.dial(address)
        await until(lambda: a.peers == {"b"})
        for _, writer in crowd:
            writer.close()
        await a.stop()
        await b.stop()

    played(scene)


def test_a_malformed_message_costs_that_link_only_is_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        a, b, c = Station("a"), Station("b"), Station("c")
        address = await a.listen()
        b.dialler.dial(address)
        c.dialler.dial(address)
        await until(lambda: a.peers == {"b", "c"} and b.peers == {"a"})
        b.links.up["a"].write(Kind.MESSAGE, b"\xc1")
        await until(lambda: ("unlinked", "b") in a.changes)
        await until(lambda: "b" in a.peers)
        assert ("unlinked", "c") not in a.changes
        assert a.links.dropped["malformed"] == 1
        assert "no link with b (127.0.0.1): MessagePack data is malformed" in caplog.text
        for station in (a, b, c):
            await station.stop()

    played(scene)


def test_a_broker_that_stood_still_does_not_take_its_peers_for_dead() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers and b.peers)
        for _ in range(2):
            time.sleep(QUICK.idle_s * 1.5)
            await asyncio.sleep(QUICK.heartbeat_s)
        assert (a.changes, b.changes) == ([("linked", "b")], [("linked", "a")])
        await a.stop()
        await b.stop()

    played(scene)


def test_a_peer_without_the_secret_stays_outside_and_is_complained_about_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        a, b = Station("a", Club(secret=b"sesame")), Station("b", Club(secret=b"barley"))
        b.dialler.dial(await a.listen())
        await until(lambda: len(caplog.records) >= 2)
        await asyncio.sleep(0.3)
        assert not a.changes
        assert not b.changes
        await a.stop()
        await b.stop()

    with caplog.at_level(logging.WARNING):
        played(scene)
    complaints = [record.getMessage() for record in caplog.records]
    assert len(complaints) == 2
    assert all("the cluster secrets of" in complaint for complaint in complaints)


def test_two_brokers_of_one_name_do_not_take_each_others_links() -> None:
    async def scene() -> None:
        a, b, other = Station("a"), Station("b"), Station("b", disk_name="another disk")
        address = await a.listen()
        b.dialler.dial(address)
        await until(lambda: a.peers)
        other.dialler.dial(address)
        await asyncio.sleep(0.3)
        assert a.changes == [("linked", "b")]
        assert not other.peers
        for station in (a, b, other):
            await station.stop()

    played(scene)


def test_tls_wants_a_certificate_of_the_cluster(tmp_path: Path) -> None:
    ours, foreign = Authority(tmp_path / "ours"), Authority(tmp_path / "foreign")

    def club(authority: Authority, name: str) -> Club:
        return Club(serving=authority.context(name, server=True), dialling=authority.context(name, server=False))

    async def scene() -> None:
        a, b, stranger, plain = (
            Station("a", club(ours, "a")),
            Station("b", club(ours, "b")),
            Station("s", club(foreign, "s")),
            Station("p"),
        )
        address = await a.listen()
        for station in (b, stranger, plain):
            station.dialler.dial(address)
        await until(lambda: a.peers == {"b"} and b.peers == {"a"})
        b.links.send("a", beat(1))
        await until(lambda: a.heard == [("b", beat(1))])
        await asyncio.sleep(0.3)
        assert a.peers == {"b"}
        for station in (a, b, stranger, plain):
            await station.stop()

    played(scene)


async def tampered(address: str, spoil: Callable[[bytes], bytes]) -> tuple[asyncio.Server, str]:
    """A wire to that address on which somebody sits who may change what the listener says."""
    host, _, port = address.rpartition(":")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(host, int(port))

        async def pump(
            source: asyncio.StreamReader, sink: asyncio.StreamWriter, change: Callable[[bytes], bytes]
        ) -> None:
            while data := await source.read(65_536):
                sink.write(change(data))
            sink.close()

        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(pump(reader, far_writer, bytes), pump(far_reader, writer, spoil))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_what_somebody_on_the_wire_adds_is_not_taken_and_costs_the_link(caplog: pytest.LogCaptureFixture) -> None:
    forged = framed(Kind.MESSAGE, msgspec.msgpack.encode(beat(666)))
    injecting = False

    def spoil(data: bytes) -> bytes:
        return data + forged if injecting else data

    async def scene() -> None:
        nonlocal injecting
        a, b = (Station(name, Club(secret=b"sesame")) for name in "ab")
        address = await a.listen()
        a.links.address = ""
        server, wire = await tampered(address, spoil)
        b.dialler.dial(wire)
        await until(lambda: a.peers and b.peers)
        a.links.send("b", beat(1))
        await until(lambda: b.heard == [("a", beat(1))])
        injecting = True
        a.links.send("b", beat(2))
        await until(lambda: ("unlinked", "a") in b.changes)
        injecting = False
        await until(lambda: b.peers == {"a"})
        assert ("a", beat(666)) not in b.heard
        for station in (a, b):
            await station.stop()
        server.close()

    with caplog.at_level(logging.WARNING):
        played(scene)
    assert any("changed, left out or repeated" in record.getMessage() for record in caplog.records)


def test_somebody_on_the_wire_reads_nothing_of_what_is_said() -> None:
    seen = bytearray()

    def look(data: bytes) -> bytes:
        seen.extend(data)
        return data

    async def scene() -> None:
        a, b = (Station(name, Club(secret=b"sesame")) for name in "ab")
        address = await a.listen()
        a.links.address = ""
        server, wire = await tampered(address, look)
        b.dialler.dial(wire)
        await until(lambda: a.peers and b.peers)
        a.links.send("b", Heartbeat("a private word", 1, 1, 0))
        await until(lambda: b.heard)
        for station in (a, b):
            await station.stop()
        server.close()

    played(scene)
    assert b"private" not in seen
    assert b"sesame" not in seen


def test_whoever_guesses_the_secret_is_soon_not_answered() -> None:
    async def scene() -> None:
        a, guesser = Station("a", Club(secret=b"sesame")), Station("g", Club(secret=b"barley"))
        guesser.dialler.dial(await a.listen())
        await until(lambda: a.links.guests._now("127.0.0.1", a.links.loop.time()) < 1)
        assert not a.links.guests.may_greet("127.0.0.1", a.links.loop.time())
        assert a.links.guests.may_greet("192.0.2.1", a.links.loop.time())
        await guesser.stop()
        await a.stop()

    played(scene)


def test_a_broker_that_dials_itself_knows_and_lets_it_be() -> None:
    async def scene() -> None:
        a = Station("a", Club(secret=b"sesame"))
        address = await a.listen()
        a.dialler.dial(address)
        await until(lambda: address in a.dialler._own)
        assert not a.peers
        await a.stop()

    played(scene)


def test_in_the_clear_nobody_is_dialled_beyond_this_machine() -> None:
    async def scene() -> None:
        a, open_one, secret_one = Station("a"), Station("o", Club(insecure=True)), Station("s", Club(secret=b"sesame"))
        for station, learned in ((a, False), (open_one, True), (secret_one, True)):
            assert station.dialler.learn(Peer("far", "192.0.2.1:7883")) is learned
            assert station.dialler.learn(Peer("near", "127.0.0.1:1"))
            await station.stop()

    played(scene)


def test_a_certificate_of_the_same_authority_that_is_a_clients_does_not_join_as_a_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours = Authority(tmp_path / "ours")
    settings = PeersTls(certificate=Path(), key=Path(), authority=ours.ca, names=("*.brokers",))

    def club(name: str, clients_only: bool = False) -> Club:
        ours.files(name, clients_only=clients_only)
        serving, dialling = ours.context(name, server=True), ours.context(name, server=False)
        return Club(serving=serving, dialling=dialling, problem_of=partial(problem_of, settings))

    async def scene() -> None:
        a, b = Station("a", club("a.brokers")), Station("b", club("b.brokers"))
        device, other = Station("d", club("d.brokers", clients_only=True)), Station("o", club("van-7"))
        address = await a.listen()
        for station in (device, other):
            station.dialler.dial(address)
        await until(lambda: len({record.getMessage() for record in caplog.records}) >= 2)
        b.dialler.dial(address)
        await until(lambda: b.peers == {"a"})
        await asyncio.sleep(0.2)
        assert a.peers == {"b"}
        for station in (a, b, device, other):
            await station.stop()

    with caplog.at_level(logging.WARNING):
        played(scene)
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "van-7" in told
    assert "is no broker's" in told


def test_a_stopped_broker_lets_its_last_words_leave() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers and b.peers)
        for number in range(100):
            a.links.send("b", beat(number))
        await asyncio.sleep(0)
        await a.stop()
        await until(lambda: len(b.heard) == 100)
        await b.stop()

    played(scene)


def test_a_message_to_nobody_is_counted() -> None:
    async def scene() -> None:
        a = Station("a")
        message: Message = beat(1)
        a.links.send("nobody", message)
        a.links.broadcast(message)
        assert a.links.dropped == {"no link": 1}
        await a.stop()

    played(scene)


def test_a_large_frame_right_behind_the_one_that_admits_is_read_with_it() -> None:
    """A busy machine reads both at once; what is large is too large only before the peer is known."""
    large = bytes(GREETING_B_MAX + 1)
    both = framed(Kind.CONTROL, b"proof") + framed(Kind.MESSAGE, large)
    reader = Reader()
    frames = reader.feed(both)
    assert next(frames) == (Kind.CONTROL, b"proof")
    reader.size_max = 1 << 20
    assert list(frames) == [(Kind.MESSAGE, large)]
    # Cut anywhere, it is the same, and nothing is left behind.
    for cut in (1, 4, 5, 12, 40_000, len(both) - 1):
        whole = [one for part in (both[:cut], both[cut:]) for one in reader.feed(part)]
        assert whole == [(Kind.CONTROL, b"proof"), (Kind.MESSAGE, large)]
    with pytest.raises(RemoteError, match="between 1 and 65,536"):
        list(Reader().feed(both))
