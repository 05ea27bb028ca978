"""What a reader of a page types, on ports that are free here."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.brokers import own_ports

WAIT_S = 60.0


class Shell:
    """Runs lines of the page in a folder, on ports that are free here."""

    def __init__(self, folder: Path, ports: dict[str, str]) -> None:
        self.folder = folder
        self.ports = ports
        """By how they are called on the page."""
        self.running: list[subprocess.Popen[bytes]] = []

    def here(self, text: str) -> str:
        return re.sub(rf"\b({'|'.join(self.ports)})\b", lambda found: self.ports[found[0]], text)

    def words(self, line: str) -> list[str]:
        command, *rest = shlex.split(self.here(line))
        if command == "godwit":
            return [sys.executable, "-m", "godwit", *rest]
        return [shutil.which(command, path="/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin") or command, *rest]

    def run(self, line: str) -> str:
        done = subprocess.run(self.words(line), cwd=self.folder, capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def start(self, line: str, log: str) -> subprocess.Popen[bytes]:
        with (self.folder / log).open("ab") as out:
            made = subprocess.Popen(self.words(line), cwd=self.folder, stdout=out, stderr=out)
        self.running.append(made)
        return made

    def said(self, log: str) -> str:
        return (self.folder / log).read_text()

    def says_after(self, line: str, expected: str, log: str) -> bool:
        """Somebody who reads the page looks at the other terminal before going on; what it says may take a moment."""
        self.run(line)
        time.sleep(1.0)
        return expected in self.said(log)

    def got(self, port: str, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}{path}", timeout=60) as answer:
            return str(answer.read().decode())


def until(happened: Callable[[], object]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.1)


@contextmanager
def shell(folder: Path, ports: Sequence[str]) -> Iterator[Shell]:
    with own_ports(len(ports)) as free:
        made = Shell(folder, dict(zip(ports, map(str, free), strict=True)))
        try:
            yield made
        finally:
            for process in made.running:
                process.kill()
                process.wait()
