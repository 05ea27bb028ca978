"""Passwords are checked by turns: who guesses waits for itself, who was known is back at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from godwit.net import logins
from godwit.net.logins import SUSPECT_WAITING_MAX, Logins, Remembered, key_in
from godwit.protocols.broker.api import Reason, RefusedError
from godwit.protocols.broker.store import MemoryStore

HASH = "the stored hash"


class Checker:
    """Knows one password, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []

    def __call__(self, known: str, password: bytes) -> bool:
        self.asked.append(password)
        return password == b"right"


def store(disk: dict[str, dict[tuple[str, int], bytes]]) -> MemoryStore:
    return MemoryStore(disk, lambda call: call())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "ROUNDS", 1)
    monkeypatch.setattr(logins, "PAUSE_S", 0.01)
    monkeypatch.setattr(logins, "PAUSE_MAX_S", 0.02)


def test_a_fleet_that_was_known_before_a_restart_is_not_hashed_again() -> None:
    disk: dict[str, dict[tuple[str, int], bytes]] = {}
    check = Checker()

    async def scene() -> None:
        for _ in range(2):
            desk = Logins(check, Remembered(b"k" * 32, store(disk)))
            answers = (desk.is_right("10.0.0.1", f"van-{i}", HASH, b"right") for i in range(50))
            assert all(await asyncio.gather(*answers))
            desk.stop()

    asyncio.run(scene())
    assert len(check.asked) == 50


def test_what_is_remembered_is_no_password_and_goes_with_its_user_hash_and_key() -> None:
    disk: dict[str, dict[tuple[str, int], bytes]] = {}
    known = Remembered(b"k" * 32, store(disk))
    known.note("van", known.digest("van", HASH, b"right"))
    assert b"right" not in disk["logins"]["van", 0]
    again = Remembered(b"k" * 32, store(disk))
    assert again.knows("van", again.digest("van", HASH, b"right"))
    assert not again.knows("van", again.digest("van", "another hash", b"right"))
    assert not again.knows("bus", again.digest("bus", HASH, b"right"))
    other = Remembered(b"K" * 32, store(disk))
    assert not other.knows("van", other.digest("van", HASH, b"right"))
    again.note_today("van", again.quick("van", HASH, b"right"))
    assert again.knows_today("van", again.quick("van", HASH, b"right"))
    assert not again.knows_today("van", again.quick("van", "another hash", b"right"))
    assert not again.knows_today("bus", again.quick("bus", HASH, b"right"))
    again.keep_only({"bus"})
    assert not again.knows_today("van", again.quick("van", HASH, b"right"))
    assert not disk["logins"]


def test_whoever_guesses_waits_behind_everybody_else() -> None:
    check = Checker()
    done: list[str] = []

    async def login(desk: Logins, address: str, name: str, password: bytes) -> None:
        try:
            await desk.is_right(address, name, HASH, password)
        except RefusedError as error:
            done.append("busy" if error.reason is Reason.SERVER_BUSY else "refused")
        else:
            done.append(address)

    async def scene() -> None:
        desk = Logins(check)
        await login(desk, "evil", "van", b"wrong")
        guesses = [asyncio.create_task(login(desk, "evil", "van", b"%d" % i)) for i in range(100)]
        await asyncio.sleep(0)
        good = [asyncio.create_task(login(desk, f"good-{i}", f"van-{i}", b"right")) for i in range(10)]
        await asyncio.gather(*good)
        assert done.count("evil") <= 3  # the first, and perhaps what had begun
        await asyncio.gather(*guesses)
        desk.stop()

    asyncio.run(scene())
    assert done.count("busy") >= 100 - SUSPECT_WAITING_MAX - 10
    assert len(check.asked) < 40


def test_a_known_device_behind_the_address_of_a_guesser_gets_in() -> None:
    check = Checker()

    async def scene() -> None:
        desk = Logins(check)
        assert await desk.is_right("gateway", "van", HASH, b"right")
        assert not await desk.is_right("gateway", "bus", HASH, b"wrong")
        asked = len(check.asked)
        guesses = [asyncio.create_task(desk.is_right("gateway", "bus", HASH, b"%d" % i)) for i in range(5)]
        await asyncio.sleep(0)
        async with asyncio.timeout(60):
            assert await desk.is_right("gateway", "van", HASH, b"right")
        assert len(check.asked) - asked < 5
        for one in guesses:
            one.cancel()
        desk.stop()

    asyncio.run(scene())


def test_whoever_is_known_does_not_wait_until_a_guesser_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for anything else: an hour in which a guesser must wait is nobody else's."""
    check = Checker()
    monkeypatch.setattr(logins, "PAUSE_S", 3_600.0)
    monkeypatch.setattr(logins, "PAUSE_MAX_S", 3_600.0)

    async def scene() -> None:
        desk = Logins(check)
        async with asyncio.timeout(60):
            for _ in range(3):
                assert await desk.is_right("good", "van", HASH, b"right")
            assert not await desk.is_right("evil", "van", HASH, b"wrong")
            guess = asyncio.create_task(desk.is_right("evil", "van", HASH, b"wrong too"))
            await asyncio.sleep(0.05)
            for _ in range(3):
                assert await desk.is_right("good", "van", HASH, b"right")
                assert await desk.is_right("evil", "van", HASH, b"right")
                await asyncio.sleep(0.01)
        guess.cancel()
        desk.stop()

    asyncio.run(scene())
    assert check.asked == [b"right", b"wrong"]


def test_nobody_is_hashed_for_who_has_hung_up() -> None:
    check = Checker()

    async def scene() -> None:
        desk = Logins(check)
        tasks = [asyncio.create_task(desk.is_right("a", "van", HASH, b"%d" % i)) for i in range(20)]
        await asyncio.sleep(0)
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await desk.is_right("b", "van", HASH, b"right")
        assert desk.waiting == 0
        desk.stop()

    asyncio.run(scene())
    assert len(check.asked) <= 2


def test_the_key_is_made_once_and_only_its_user_may_read_it(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    assert key == key_in(tmp_path)
    assert (tmp_path / "logins.key").stat().st_mode & 0o077 == 0
    (tmp_path / "logins.key").write_bytes(b"short")
    assert len(key_in(tmp_path)) == 32
