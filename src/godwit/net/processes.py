"""Broker processes on this machine, that can be killed and started again: for demonstrations, experiments and tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import msgspec

from godwit.net.ops.report import Report

START_S = 180.0
WAIT_S = 60.0
SETTINGS: Mapping[str, object] = {"handoff_wait_s": WAIT_S}
"""On a busy machine a killed broker takes long to come back; whoever knocks elsewhere waits for its session."""
AGREE_S = 120.0
RESTING = 0.04
"""What a broker uses of a processor for its own sake, at most."""
STILL_S = 1.0
"""What brokers say of one another has not changed for so long: it has arrived everywhere."""


class BrokerError(Exception):
    """A broker process did not do what it should; the text ends with what it said last."""


class BrokerProcess:
    """One `godwit serve`; its ports and its disk stay the same over restarts. `settings` are keys of its file."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, object] = SETTINGS) -> None:
        self.name = name
        self.folder = folder
        self.settings = settings
        # Held from now on: a broker that is down, or not yet up, must find its ports free.
        held = [hold_port() for _ in range(3)]
        for one in held:
            weakref.finalize(self, one.close)
        self.port, self.peer_port, self.status_port = (one.getsockname()[1] for one in held)
        self.peers: list[int] = []
        self._process: asyncio.subprocess.Process | None = None

    @property
    def _config(self) -> Path:
        return self.folder / "broker.toml"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Returns when it takes clients and tells of itself, which it does last."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items()))
        with (self.folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "godwit", *self._arguments(), stdout=log, stderr=log
            )
        try:
            async with asyncio.timeout(START_S):
                while not await self._is_up():
                    if not self.running:
                        raise BrokerError(f"broker {self.name} has ended: {self.last_words()}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise BrokerError(f"broker {self.name} is not up after {START_S:.0f} s: {self.last_words()}") from None

    async def kill(self) -> None:
        """As a power cut would."""
        await self._signal(signal.SIGKILL)

    async def stop(self) -> None:
        await self._signal(signal.SIGTERM)

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "log").read_text(errors="replace")[-2000:]
        return ""

    def _arguments(self) -> list[str]:
        peers = [argument for port in self.peers for argument in ("--peer", f"127.0.0.1:{port}")]
        return [
            "serve",
            *("--config", str(self._config)),
            *("--name", self.name),
            *("--listen", self.address),
            *("--peers-listen", f"127.0.0.1:{self.peer_port}"),
            *("--data", str(self.folder / "data")),
            *("--status", f"127.0.0.1:{self.status_port}"),
            *peers,
        ]

    async def report(self) -> Report:
        """What it says of itself; `OSError` where it does not answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.status_port)
        try:
            writer.write(b"GET /status HTTP/1.1\r\n\r\n")
            _, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        return msgspec.json.decode(body, type=Report)

    async def _is_up(self) -> bool:
        try:
            return (await self.report()).name == self.name
        except (OSError, msgspec.DecodeError):
            return False

    def processor_s(self) -> float:
        """How much of a processor it has used; 0 where this machine does not say."""
        if self._process is None:
            return 0.0
        try:
            figures = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK")

    def memory_b(self) -> int:
        """What it has in memory now; 0 where this machine does not say."""
        if self._process is None:
            return 0
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    def pin(self, processors: set[int]) -> None:
        """Let it use these processors only."""
        if self._process is not None:
            os.sched_setaffinity(self._process.pid, processors)

    async def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)
            try:
                await asyncio.wait_for(self._process.wait(), 10)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


def cluster(names: list[str], folder: Path, settings: Mapping[str, object] = SETTINGS) -> list[BrokerProcess]:
    """Brokers that know each other; none is started yet."""
    brokers = [BrokerProcess(name, folder / name, settings) for name in names]
    for broker in brokers:
        broker.peers = [other.peer_port for other in brokers if other is not broker]
    return brokers


def ring(
    names: list[str], places: list[str], folder: Path, settings: Mapping[str, object] = SETTINGS
) -> list[BrokerProcess]:
    """Brokers of a ring, each at its place; the first begins it, and the others join through that one. None is started
    yet."""
    brokers = []
    for name, place in zip(names, places, strict=True):
        own = {**settings, "fabric": "dht", "ring.place": place}
        brokers.append(BrokerProcess(name, folder / name, own))
    for broker in brokers[1:]:
        broker.peers = [brokers[0].peer_port]
    return brokers


async def agreed(brokers: list[BrokerProcess]) -> None:
    """Wait until every broker knows every other one, and what they know of each other's wishes has come to rest."""
    known: dict[str, dict[str, int]] = {}
    still_since = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(AGREE_S):
            while True:
                reports = [await _told_by(broker) for broker in brokers]
                now = {report.name: {peer.name: peer.filters for peer in report.peers} for report in reports}
                if now != known or not all(_is_joined(report, len(brokers)) for report in reports):
                    known, still_since = now, asyncio.get_running_loop().time()
                if asyncio.get_running_loop().time() - still_since > STILL_S:
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise BrokerError(f"the brokers do not agree after {AGREE_S:.0f} s: {known}") from None


def _is_joined(report: Report, count: int) -> bool:
    """In a tree everybody knows everybody; in a ring everybody has a cell."""
    return bool(report.ring.cells) if report.ring is not None else len(report.peers) >= count - 1


async def _told_by(broker: BrokerProcess) -> Report:
    try:
        return await broker.report()
    except OSError as error:
        raise BrokerError(f"broker {broker.name} does not answer: {error}; {broker.last_words()}") from None


async def rested(brokers: list[BrokerProcess]) -> None:
    """Wait, a minute at most, until they have nothing to do: whoever is first asked by content loads its index."""
    for _ in range(40):
        before_s = sum(broker.processor_s() for broker in brokers)
        await asyncio.sleep(STILL_S)
        if sum(broker.processor_s() for broker in brokers) - before_s < RESTING * len(brokers) * STILL_S:
            return


def hold_port() -> socket.socket:
    """Bound to a free port, which nobody else is given; whoever is told its number can listen there all the same."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def free_ports(count: int) -> list[int]:
    """Where nothing listens now; whoever wants them should be quick."""
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(hold_port()).getsockname()[1] for _ in range(count)]
