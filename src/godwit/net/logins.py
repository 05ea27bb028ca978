"""Passwords, checked beside the loop, one at a time, by turns among the addresses that they come from.

A good hash is slow on purpose, and takes 64 MiB while it works. So one thread does it, and what waits for it is
bounded, by address and in all: whoever guesses passwords by the thousand waits for itself, and nobody else does. An
address that was wrong comes after all that were not, and waits longer each time. Work for a client that has hung up is
not begun.

A password that was right once is recognised by a quicker keyed hash, also after a restart: a fleet is back in seconds.
The key lies in a file of its own, beside the store and not in it: a copy of the store alone helps nobody to guess.
One that was right since the broker started is recognised at once, and waits behind nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from godwit.protocols.broker.api import Reason, RefusedError
from godwit.protocols.broker.store import Store

TABLE = "logins"
KEY_FILE = "logins.key"
ROUNDS = 2_000
"""Of the quicker hash, about a millisecond: a thousandth of what a guess costs with the other."""

WAITING_MAX, WAITING_BY_ADDRESS_MAX = 20_000, 5_000
"""Logins that wait for the thread: a fleet behind one gateway has one address."""

SUSPECT_WAITING_MAX = 8
"""The same for an address that was wrong lately, and of those that are not recognised."""

QUICK_PER_SLOW = 20

PAUSE_S, PAUSE_MAX_S, FORGOTTEN_S = 0.25, 15.0, 60.0
"""How long an address waits after a wrong password, at first and at most, and when that is forgotten."""

SUSPECTS_MAX = 10_000

Verify = Callable[[str, bytes], bool]
"""`verify(hash, password)`: slow."""


class Remembered:
    """Which passwords were right: a keyed hash for each user, on the disk where there is one."""

    def __init__(self, key: bytes | None = None, store: Store | None = None) -> None:
        self._key = key or secrets.token_bytes(32)
        self._store = store
        self._right = {} if store is None else {name: value for name, _, value in store.load(TABLE)}
        self._today: dict[str, bytes] = {}
        """Of those that were right since the start: never on a disk, so that it may be quick."""

    def digest(self, name: str, known: str, password: bytes) -> bytes:
        """Of a password that goes with a stored hash: another hash, and what was remembered counts no longer."""
        salt = b"\0".join((self._key, name.encode(), known.encode()))
        return hashlib.pbkdf2_hmac("sha256", password, salt, ROUNDS)

    def quick(self, name: str, known: str, password: bytes) -> bytes:
        return hashlib.blake2b(b"\0".join((name.encode(), known.encode(), password)), key=self._key).digest()

    def knows_today(self, name: str, quick: bytes) -> bool:
        return secrets.compare_digest(self._today.get(name, b""), quick)

    def note_today(self, name: str, quick: bytes) -> None:
        self._today[name] = quick

    def knows(self, name: str, digest: bytes) -> bool:
        return secrets.compare_digest(self._right.get(name, b""), digest)

    def note(self, name: str, digest: bytes) -> None:
        self._right[name] = digest
        if self._store is not None:
            self._store.put(TABLE, name, 0, digest)

    def keep_only(self, names: set[str]) -> None:
        """Users that are gone are forgotten."""
        self._today = {name: quick for name, quick in self._today.items() if name in names}
        for name in [name for name in self._right if name not in names]:
            del self._right[name]
            if self._store is not None:
                self._store.delete(TABLE, name, 0)


class Login:
    """One client that waits to be let in."""

    __slots__ = ("answer", "digest", "known", "name", "password")

    def __init__(self, name: str, known: str, password: bytes) -> None:
        self.digest = b""
        self.name = name
        self.known = known
        self.password = password
        self.answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Suspect:
    """An address that was wrong."""

    __slots__ = ("free_at", "last", "wrong")

    def __init__(self) -> None:
        self.wrong = 0
        self.free_at = 0.0
        self.last = 0.0


class Turns:
    """What waits, by address; each address has its turn."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, deque[Login]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[str]:
        """Addresses, whoever is next first."""
        return iter(self._queues)

    def count(self, address: str) -> int:
        return len(self._queues.get(address, ()))

    def add(self, address: str, login: Login) -> None:
        self._queues.setdefault(address, deque()).append(login)

    def take(self, address: str) -> Login:
        queue = self._queues.pop(address)
        login = queue.popleft()
        if queue:
            self._queues[address] = queue  # behind all others
        return login


class Logins:
    """Answers `is_right`. `stop` it when the broker stops."""

    def __init__(self, verify: Verify, remembered: Remembered | None = None) -> None:
        self.remembered = remembered or Remembered()
        self.waiting = 0
        """Logins that have not been answered."""
        self._verify = verify
        self._fresh, self._slow = Turns(), Turns()
        """Those that may be recognised, and those that were not."""
        self._suspects: OrderedDict[str, Suspect] = OrderedDict()
        self._news = asyncio.Event()
        """Somebody has come."""
        self._thread: ThreadPoolExecutor | None = None
        self._worker: asyncio.Task[None] | None = None

    async def is_right(self, address: str, name: str, known: str, password: bytes) -> bool:
        """Whether the password goes with the stored hash. `RefusedError` where too many wait already; cancel it when
        the client has gone."""
        quick = self.remembered.quick(name, known, password)
        if self.remembered.knows_today(name, quick):
            return True
        if self.waiting >= WAITING_MAX or self._fresh.count(address) >= WAITING_BY_ADDRESS_MAX:
            raise _busy()
        login = Login(name, known, password)
        self._fresh.add(address, login)
        self._news.set()
        if self._worker is None or self._worker.done():
            self._worker = asyncio.ensure_future(self._work())
        self.waiting += 1
        try:
            right = await login.answer
        finally:
            self.waiting -= 1
        if right:
            self.remembered.note_today(name, quick)
        return right

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def _work(self) -> None:
        """Recognising is a hundred times quicker than checking, so many of the one come before one of the other."""
        loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "godwit-logins")
        while self._fresh or self._slow:
            for _ in range(QUICK_PER_SLOW):
                if not self._fresh:
                    break
                address = next(iter(self._fresh))
                await self._recognise(address, self._fresh.take(address), loop)
            turn, wait_s = self._next(loop.time())
            if turn is not None and wait_s <= 0:
                await self._check(turn, self._slow.take(turn), loop)
            elif self._slow and not self._fresh:
                await self._idle(wait_s)

    async def _idle(self, wait_s: float) -> None:
        """Until whoever was wrong may be looked at again, or somebody comes who need not wait for that."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._news.wait()

    async def _recognise(self, address: str, login: Login, loop: asyncio.AbstractEventLoop) -> None:
        if login.answer.done():
            return
        login.digest = await loop.run_in_executor(self._thread, self._digest, login)
        if login.answer.done():
            return
        if self.remembered.knows(login.name, login.digest):
            login.answer.set_result(True)
        elif address in self._suspects and self._slow.count(address) >= SUSPECT_WAITING_MAX:
            login.answer.set_exception(_busy())
        else:
            self._slow.add(address, login)

    def _digest(self, login: Login) -> bytes:
        return self.remembered.digest(login.name, login.known, login.password)

    async def _check(self, address: str, login: Login, loop: asyncio.AbstractEventLoop) -> None:
        if login.answer.done():
            return
        right = self.remembered.knows(login.name, login.digest) or await loop.run_in_executor(
            self._thread, self._verify, login.known, login.password
        )
        if right:
            self.remembered.note(login.name, login.digest)
        self._judge(address, right, loop.time())
        if not login.answer.done():
            login.answer.set_result(right)

    def _next(self, now: float) -> tuple[str | None, float]:
        """Whose turn it is, and how long that one must wait: whoever was not wrong, before those who were."""
        found, free_at = None, now + PAUSE_S
        for address in self._slow:
            suspect = self._suspects.get(address)
            if suspect is None:
                return address, 0.0
            if suspect.free_at < free_at:
                found, free_at = address, suspect.free_at
        return found, free_at - now

    def _judge(self, address: str, right: bool, now: float) -> None:
        suspect = self._suspects.get(address)
        if right:
            if suspect is not None and now - suspect.last > FORGOTTEN_S:
                del self._suspects[address]
            return
        if suspect is None:
            suspect = self._suspects[address] = Suspect()
        suspect.wrong += 1
        suspect.last = now
        suspect.free_at = now + min(PAUSE_S * 2 ** min(suspect.wrong - 1, 10), PAUSE_MAX_S)
        self._suspects.move_to_end(address)
        if len(self._suspects) > SUSPECTS_MAX:
            self._suspects.popitem(last=False)


def _busy() -> RefusedError:
    return RefusedError(Reason.SERVER_BUSY, "too many wait to be let in; try again in a while")


def key_in(folder: Path) -> bytes:
    """The key of this broker's remembered logins, made where there is none; only its user may read it."""
    path = folder / KEY_FILE
    try:
        key = path.read_bytes()
        if len(key) == 32:
            return key
    except OSError:
        pass
    key = secrets.token_bytes(32)
    try:
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
        path.write_bytes(key)
    except OSError:
        pass  # logins are then remembered until the broker stops
    return key
