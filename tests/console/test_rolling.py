"""One broker after the other, as processes: each stops, and is the same process again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers import Process, own_ports, running
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.top import fetched


def broker(folder: Path, name: str, ports: list[int], *more: str) -> tuple[Process, str]:
    peers, status, http = (f"127.0.0.1:{port}" for port in ports)
    flags = ("--listen", "127.0.0.1:0", "--peers-listen", peers, "--status", status, "--http", http)
    return Process(folder, name, *flags, *more), status


def knows_where_all_are_told(status: str) -> bool:
    """Whether this broker can say of the other one where operators log in."""
    return [bool(peer.http) for peer in fetched(f"http://{status}/status").peers] == [True]


@pytest.fixture
def ports() -> Iterator[list[int]]:
    """They stay the brokers' own while these restart."""
    with own_ports(6) as own:
        yield own


def test_a_rolling_restart_restarts_each_broker_and_ends_when_all_are_well(tmp_path: Path, ports: list[int]) -> None:
    a, status = broker(tmp_path, "a", ports[:3])
    b, _ = broker(tmp_path, "b", ports[3:], "--peer", a.at("peers"))
    with running(a, b):
        runner = CliRunner()
        while not knows_where_all_are_told(status):
            time.sleep(0.05)
        told = runner.invoke(app, ["admin", "rolling", "--broker", status, "--yes"])
        assert told.exit_code == 0, told.output
        assert [line.split()[:2] for line in told.stdout.splitlines() if "done" in line] == [
            ["a", "done"],
            ["b", "done"],
        ]
        assert (a.process.poll(), b.process.poll()) == (None, None)
        assert a.log.read_text().count("restart this broker by") == 2  # asked for, and done
        told = runner.invoke(app, ["admin", "cordon", "--broker", status], input="n\n")
        assert told.exit_code == 1
        told = runner.invoke(app, ["admin", "reload", "--broker", status, "--json"])
        assert told.exit_code == 0, told.output
        assert '"action":"reload"' in told.stdout
        told = runner.invoke(app, ["admin", "end", "nobody", "--broker", status, "--yes"])
        assert (told.exit_code, "no session of 'nobody'" in told.output) == (2, True)
        assert [one.end() for one in (a, b)] == [0, 0]
