"""Brokers in processes of their own, as people run them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from godwit.net.processes import hold_port

START_S = 60

FREE = ("--listen", "127.0.0.1:0", "--peers-listen", "127.0.0.1:0")


class Process:
    """One `godwit serve`, started when this is made and ended by `end`."""

    def __init__(self, folder: Path, name: str, *more: str, python: str | Path = sys.executable) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        arguments = ["--name", name, "--data", str(folder / name), *more]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [python, "-m", "godwit", "serve", *arguments], stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.block: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.block.append(line.rstrip("\n"))
            if line.startswith("  access"):
                break
        assert self.process.poll() is None, self.log.read_text()

    def at(self, kind: str) -> str:
        return next(line.split()[1] for line in self.block if line.split()[0] == kind)

    @property
    def port(self) -> str:
        return self.at("mqtt").rpartition(":")[2]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        status = self.process.wait(START_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@contextmanager
def own_ports(count: int) -> Iterator[list[int]]:
    """Ports of this machine that nobody else is given meanwhile; whoever is told their numbers can listen there."""
    with ExitStack() as held:
        yield [held.enter_context(hold_port()).getsockname()[1] for _ in range(count)]


@contextmanager
def running(*processes: Process) -> Iterator[None]:
    try:
        yield
    finally:
        for one in processes:
            if one.process.poll() is None:
                one.end(signal.SIGKILL)
