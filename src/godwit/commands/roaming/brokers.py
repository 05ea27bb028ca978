"""Broker processes on loopback, that can be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from pathlib import Path

START_S = 20.0


class BrokerError(Exception):
    """A broker process did not do what it should; the text ends with what it said last."""


class BrokerProcess:
    """One `godwit serve`; its ports and its disk stay the same over restarts."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.port, self.peer_port, self.status_port = _free_ports(3)
        self.peers: list[int] = []
        self._process: asyncio.subprocess.Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Returns when it takes clients."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "godwit", *self._arguments(), stdout=log, stderr=log
            )
        try:
            async with asyncio.timeout(START_S):
                while not await self._takes_clients():
                    if not self.running:
                        raise BrokerError(f"broker {self.name} has ended: {self.last_words()}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise BrokerError(f"broker {self.name} takes no clients after {START_S:.0f} s") from None

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
            *("--name", self.name),
            *("--listen", self.address),
            *("--peers-listen", f"127.0.0.1:{self.peer_port}"),
            *("--data", str(self.folder / "data")),
            *peers,
        ]

    async def _takes_clients(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)
            try:
                await asyncio.wait_for(self._process.wait(), 10)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


def cluster(names: list[str], folder: Path) -> list[BrokerProcess]:
    """Brokers that know each other; none is started yet."""
    brokers = [BrokerProcess(name, folder / name) for name in names]
    for broker in brokers:
        broker.peers = [other.peer_port for other in brokers if other is not broker]
    return brokers


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
