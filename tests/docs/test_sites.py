"""docs/sites.md as a stranger does it: from two sites on one machine to a bridge to mosquitto, command by command."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.brokers import own_ports
from tests.pages import blocks, page

PAGE = page("docs/sites.md")
PORTS = ("1883", "1884", "1885", "7884", "9883", "9884")
NEEDED = ("mosquitto", "mosquitto_sub", "mosquitto_pub")
WAIT_S = 60.0


class Shell:
    """Runs lines of the page in a folder, on ports that are free here."""

    def __init__(self, folder: Path, ports: list[int]) -> None:
        self.folder = folder
        self.ports = dict(zip(PORTS, map(str, ports), strict=True))
        self.running: list[subprocess.Popen[bytes]] = []

    def here(self, text: str) -> str:
        return re.sub(rf"\b({'|'.join(PORTS)})\b", lambda found: self.ports[found[0]], text)

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

    def metrics(self, port: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def uplink(self, port: str) -> dict[str, object]:
        """What a gateway says of its uplink; nothing where it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}/status", timeout=5) as answer:
                rows = json.load(answer).get("uplinks") or [{}]
        except OSError:
            return {}
        return dict(rows[0])


def until(happened: Callable[[], object]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.1)


@contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    with own_ports(len(PORTS)) as ports:
        made = Shell(folder, ports)
        try:
            yield made
        finally:
            for process in made.running:
                process.kill()
                process.wait()


def commands(number: int) -> list[str]:
    return blocks(PAGE, "sh")[number].strip().splitlines()


@pytest.mark.skipif(any(shutil.which(one) is None for one in NEEDED), reason="there is no mosquitto with its clients")
def test_the_page_leads_from_two_sites_to_a_bridge(tmp_path: Path) -> None:
    with shell(tmp_path) as made:
        for name, text in zip(("plant", "hq"), blocks(PAGE, "toml")[:2], strict=True):
            (tmp_path / f"{name}.toml").write_text(made.here(text))
        check_plant, check_hq, serve_plant, serve_hq = commands(0)
        made.run(check_plant)
        made.run(check_hq)
        made.start(serve_plant, "plant.log")
        hq = made.start(serve_hq, "hq.log")
        until(lambda: made.uplink("9883").get("up"))
        listen, press = commands(1)
        made.start(listen, "office")
        until(lambda: made.uplink("9883").get("wanted"))
        made.run(press)
        until(lambda: 'line/press {"celsius": 71}' in made.said("office"))

        hq.terminate()
        hq.wait(WAIT_S)
        made.run(press.replace("71", "72"))
        hq = made.start(serve_hq, "hq.log")
        until(lambda: 'line/press {"celsius": 72}' in made.said("office"))
        (top,) = commands(2)
        shown = made.run(f"{top} --once")
        assert "site plant" in shown
        cost = re.search(r"hq/hq-1 +up +(\d+) +\d+ +([\d,]+) +[\d,]+ +\d+% +\d+ +0 *$", shown, re.MULTILINE)
        assert cost is not None, shown
        assert int(cost[1]) == 2, "both events, and the second once, though the other side was away"
        told = made.metrics("9883")
        sent = re.search(r'godwit_uplink_wire_out_bytes\w*\{[^}]*peer="hq/[\w-]+"[^}]*\} (\d+)', told)
        assert sent is not None, [line for line in told.splitlines() if "uplink" in line]
        assert int(float(sent[1])) >= int(cost[2].replace(",", "")) > len('line/press {"celsius": 71}')

        (mosquitto,) = commands(3)
        made.start(mosquitto, "mosquitto.log")
        hq.terminate()
        hq.wait(WAIT_S)
        with (tmp_path / "hq.toml").open("a") as config:
            config.write(made.here(blocks(PAGE, "toml")[2]))
        made.start(serve_hq, "hq.log")
        until(lambda: made.uplink("9883").get("up"))
        out, publish, back, order = commands(4)
        made.start(out, "old")
        made.start(back, "orders")
        until(lambda: _again(made, publish, 'godwit/line/press {"celsius": 80}', "old"))
        until(lambda: _again(made, order, 'old/orders/17 {"pieces": 12}', "orders"))


def _again(made: Shell, line: str, expected: str, log: str) -> bool:
    """Somebody who reads the page looks at the other terminal before going on; a bridge takes a moment to connect."""
    made.run(line)
    time.sleep(1.0)
    return expected in made.said(log)
