"""Whom a broker dials: what it was told, what others know, and what it knew last time."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.net.stations import QUICK_DIALS, Station, played, until

from godwit.net.address import AddressError
from godwit.net.peers.dialler import BOOK_MAX, Entry
from godwit.net.peers.frames import Known, Peer
from godwit.net.peers.handshake import State
from godwit.net.peers.links import Club, LinkOptions
from godwit.protocols.topology.mesh import LINKS_MAX, distance, near


def test_one_seed_is_enough_for_all_to_find_one_another() -> None:
    async def scene() -> None:
        seed, *others = stations = [Station(name) for name in "abcde"]
        address = await seed.listen()
        for station in others:
            await station.listen()
            station.dialler.dial(address)
        names = {station.name for station in stations}
        await until(lambda: all(station.peers == names - {station.name} for station in stations))
        for station in stations:
            await station.stop()

    played(scene)


def test_many_brokers_with_one_seed_keep_few_links_and_all_find_all() -> None:
    async def scene() -> None:
        seed, *others = stations = [Station(f"b{number}", options=LinkOptions()) for number in range(24)]
        address = await seed.listen()
        for station in others:
            await station.listen()
            station.dialler.dial(address)

        def rests() -> bool:
            """Everybody is linked with those that stand beside it, and nobody has too many."""
            living = {station.name for station in stations}
            return all(
                near(station.name, living - {station.name}) <= station.peers and len(station.peers) <= LINKS_MAX
                for station in stations
            )

        await until(rests, 30)
        gone = stations.pop(7)
        await gone.stop()
        await until(lambda: rests() and all(gone.name not in station.peers for station in stations), 30)
        for station in stations:
            await station.stop()

    played(scene)


def test_a_link_comes_up_though_its_dialler_has_stopped_while_it_greets() -> None:
    async def scene() -> None:
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: faults.append(told))
        a, b = (Station(name, Club(secret=b"drawn at random")) for name in "ab")
        a.dialler.dial(await b.listen())
        while not any(link.handshake.state is State.PROVING for link in a.links._all):
            await asyncio.sleep(0)
        assert not a.peers
        await a.dialler.stop()
        await until(lambda: a.peers and b.peers)
        assert a.changes == [("linked", "b")]
        await b.stop()
        await a.stop()
        assert not faults

    played(scene)


def test_a_broker_without_room_tells_who_may_have_some() -> None:
    async def scene() -> None:
        full, asking = Station("a"), Station("b")
        address = await full.listen()
        full.dialler.learn(Peer("c", "127.0.0.1:9"))
        for number in range(LINKS_MAX):
            full.links.up[f"x{number}"] = None  # type: ignore[assignment]
        asking.dialler._is_needed = lambda address: False  # type: ignore[method-assign]
        asking.dialler.dial(address)
        await until(lambda: "127.0.0.1:9" in asking.dialler.book)
        await until(lambda: not asking.peers)
        assert asking.name not in full.peers
        full.links.up.clear()
        await asking.stop()
        await full.stop()

    played(scene)


def test_the_book_keeps_those_that_stand_near() -> None:
    async def scene() -> None:
        a = Station("a")
        a.dialler._review_soon = lambda: None  # type: ignore[method-assign]
        names = [f"p{number}" for number in range(BOOK_MAX + 100)]
        for number, name in enumerate(names):
            a.dialler.learn(Peer(name, f"127.0.0.1:{number + 1}"))
        kept = {entry.name for entry in a.dialler.book.values()}
        assert kept == set(sorted(names, key=lambda name: distance("a", name))[:BOOK_MAX])
        await a.stop()

    played(scene)


def test_peers_are_remembered_on_disk_and_dialled_again_without_the_seed() -> None:
    async def scene() -> None:
        seed, b, c = Station("a"), Station("b"), Station("c")
        address = await seed.listen()
        await b.listen()
        b.dialler.dial(address)
        c.dialler.dial(address)
        await until(lambda: c.peers == {"a", "b"})
        await seed.stop()
        await c.stop()
        again = Station("c", incarnation=2, disk=c.disk)
        again.dialler.start()
        await until(lambda: again.peers == {"b"})
        await again.stop()
        await b.stop()

    played(scene)


def test_a_broker_that_hears_of_itself_does_not_dial_itself() -> None:
    async def scene() -> None:
        a = Station("a")
        a.dialler.dial(await a.listen())
        await until(lambda: not a.dialler.book)
        assert not a.changes
        a.dialler.learn(Peer("a", "127.0.0.1:1"))
        assert not a.dialler.book
        await a.stop()

    played(scene)


def test_a_broker_that_has_moved_is_known_at_its_new_address_only() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        to_a, old = await a.listen(), await b.listen()
        b.dialler.dial(to_a)
        await until(lambda: old in a.dialler.book and a.peers)
        await b.stop()
        moved = Station("b", incarnation=2)
        new = await moved.listen()
        moved.dialler.dial(to_a)
        await until(lambda: a.peers == {"b"} and new in a.dialler.book)
        assert old not in a.dialler.book
        await a.stop()
        await moved.stop()

    played(scene)


def test_a_host_that_does_not_know_its_own_address_is_dialled_where_it_is_seen() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        to_a, to_b = await a.listen(), await b.listen()
        b.links.address = ":" + to_b.rpartition(":")[2]
        b.dialler.dial(to_a)
        await until(lambda: to_b in a.dialler.book)
        await a.stop()
        await b.stop()

    played(scene)


def test_what_is_no_address_or_one_too_many_is_not_learned() -> None:
    async def scene() -> None:
        a = Station("a")
        for address in ("", "nonsense:port", "http://x:1", "x:99999", "x/y:1"):
            a.dialler.learn(Peer("x", address))
        assert not a.dialler.book
        a.dialler._review_soon = lambda: None  # type: ignore[method-assign]
        for number in range(BOOK_MAX + 100):
            a.dialler.learn(Peer(f"p{number}", f"127.0.0.1:{number + 1}"))
        assert len(a.dialler.book) == BOOK_MAX
        await a.stop()

    played(scene)


def test_a_configured_address_must_be_one() -> None:
    async def scene() -> None:
        a = Station("a")
        with pytest.raises(AddressError, match=r"address 'north:http': .*; right would be host:port"):
            a.dialler.dial("north:http")
        a.dialler.dial("127.0.0.1")
        assert list(a.dialler.book) == ["127.0.0.1:7883"]
        await a.stop()

    played(scene)


def test_a_learned_address_that_leads_nowhere_for_a_week_is_forgotten_and_a_configured_one_is_not() -> None:
    async def scene() -> None:
        a = Station("a")
        old = msgspec.msgpack.encode(Entry("gone", 0.0))
        a.store.put("peers", "127.0.0.1:9", 0, old)
        a.store.put("peers", "127.0.0.1:10", 0, old)
        a.dialler.dial("127.0.0.1:10")
        a.dialler.start()
        await until(lambda: "127.0.0.1:9" not in a.dialler.book)
        await asyncio.sleep(0.1)
        assert list(a.dialler.book) == ["127.0.0.1:10"]
        assert [address for address, _, _ in a.store.load("peers")] == ["127.0.0.1:10"]
        await a.stop()

    played(scene)


def test_pauses_grow_and_differ() -> None:
    async def scene() -> None:
        dialler = Station("a").dialler
        pauses = [[dialler._pause_s(failures) for _ in range(20)] for failures in range(50)]
        assert all(len(set(some)) > 1 for some in pauses)
        assert max(pauses[0]) < min(pauses[3])
        assert all(pause <= QUICK_DIALS.again_max_s for some in pauses for pause in some)

    played(scene)


def test_a_peer_may_tell_nonsense_about_others() -> None:
    async def scene() -> None:
        a, b = Station("a"), Station("b")
        b.dialler.dial(await a.listen())
        await until(lambda: a.peers and b.peers)
        b.links.control(Known((Peer("", "x" * 70 + ".example:1"), Peer("\ud7ff", "256.256.256.256:5"), Peer("c", "%"))))
        await asyncio.sleep(0.2)
        assert a.changes == [("linked", "b")]
        assert not any(task.done() for task in a.dialler._tasks.values())
        await a.stop()
        await b.stop()

    played(scene)


def test_the_only_way_to_brokers_that_cannot_be_dialled_stays_though_there_are_links_enough() -> None:
    async def scene() -> None:
        gate, *near_by = stations = [Station(f"b{number}", options=LinkOptions()) for number in range(14)]
        far = Station("far", options=LinkOptions())
        address = await gate.listen()
        for station in near_by:
            await station.listen()
            station.dialler.dial(address)
        gate.dialler.dial(await far.listen())
        gate.dialler.learn(Peer("behind far", "127.0.0.1:9"))
        gate.dialler._not_counted_on("127.0.0.1:9", silent=True)
        await until(lambda: "far" in gate.peers and all(len(one.peers) >= 8 for one in near_by), 30)
        assert gate.dialler._is_needed(next(iter(gate.dialler._configured)))
        gate.dialler.is_known = lambda name: False
        assert not gate.dialler._is_needed(next(iter(gate.dialler._configured)))
        for station in (*stations, far):
            await station.stop()

    played(scene)
