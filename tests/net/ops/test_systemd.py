"""systemd hears what it needs to know, over a socket as its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers import FREE, START_S
from tests.pages import ROOT

from godwit.net.ops.systemd import Manager

UNIT = ROOT / "deploy" / "godwit.service"


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(path)
        one.settimeout(START_S)
        yield one, path


def test_a_sign_of_life_comes_while_the_loop_turns(listening: tuple[socket.socket, str]) -> None:
    manager, where = listening
    told = Manager({"NOTIFY_SOCKET": where, "WATCHDOG_USEC": "30000"})

    async def scene() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(told.keep_alive(), 0.1)

    asyncio.run(scene())
    assert manager.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": "/nowhere"}, {"NOTIFY_SOCKET": "@nowhere"}])
def test_without_a_manager_that_listens_nothing_happens(environment: dict[str, str]) -> None:
    Manager(environment).tell("READY=1")


@pytest.mark.parametrize("usec", [{"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "5", "WATCHDOG_PID": "1"}, {}])
def test_a_watchdog_of_somebody_else_is_not_fed(usec: dict[str, str]) -> None:
    assert Manager({"NOTIFY_SOCKET": "x", **usec}).watchdog_s == 0


@pytest.mark.usefixtures("started_truly")
def test_a_broker_says_when_it_is_ready_and_when_it_stops(tmp_path: Path, listening: tuple[socket.socket, str]) -> None:
    manager, where = listening
    command = [sys.executable, "-m", "godwit", "serve", *FREE, "--data", str(tmp_path / "data")]
    process = subprocess.Popen(
        command,
        env={**os.environ, "NOTIFY_SOCKET": where, "GODWIT_NAME": "from-the-environment", "GODWIT_LOG__FORMAT": "json"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert manager.recv(100) == b"READY=1"
        process.terminate()
        assert manager.recv(100) == b"STOPPING=1"
        out, _ = process.communicate(timeout=START_S)
        assert "broker from-the-environment" in out
        assert process.returncode == 0
    finally:
        if process.poll() is None:
            process.kill()


def test_the_unit_names_commands_and_folders_that_are_right() -> None:
    text = UNIT.read_text()
    for line in ("Type=notify", "WatchdogSec=", "StateDirectory=godwit", "ExecReload=kill -HUP $MAINPID"):
        assert line in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    units = [UNIT, UNIT.with_name("godwit-prepare.service")]
    for unit in units:
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/godwit/bin/godwit", "/bin/true"))
    command = ["systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in units)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_broker_does_not_wait_for_its_matcher_to_be_compiled() -> None:
    """A start is never slower for it: the unit wants the other one, and is not ordered after it."""
    asked = re.findall(r"^(\w+)=.*godwit-prepare.service", UNIT.read_text(), re.MULTILINE)
    assert asked == ["Wants"]
