"""One broker after the other, as processes: each stops, and is the same process again."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from tests.brokers import Process, running
from typer.testing import CliRunner

from godwit.cli import app


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def broker(folder: Path, name: str, *more: str) -> tuple[Process, str]:
    status, peers = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    flags = (
        "--listen",
        "127.0.0.1:0",
        "--peers-listen",
        peers,
        "--status",
        status,
        "--http",
        f"127.0.0.1:{free_port()}",
    )
    return Process(folder, name, *flags, *more), status


def test_a_rolling_restart_restarts_each_broker_and_ends_when_all_are_well(tmp_path: Path) -> None:
    a, status = broker(tmp_path, "a")
    b, _ = broker(tmp_path, "b", "--peer", a.at("peers"))
    with running(a, b):
        runner = CliRunner()
        for _ in range(60):
            told = runner.invoke(app, ["top", status, "--json"])
            if '"b"' in told.stdout and told.stdout.count('"http": "http') >= 2:
                break
            time.sleep(0.25)
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
