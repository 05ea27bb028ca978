"""`godwit serve` as people run it: processes, signals, and clients that nobody here wrote."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.brokers import FREE, Process, running
from typer.testing import CliRunner, Result

import godwit
from godwit import __version__
from godwit.cli import app
from godwit.commands.serve import COLLECTIONS
from godwit.commands.top import fetched

ANSWER_S = 60

needs_mosquitto = pytest.mark.skipif(
    not (shutil.which("mosquitto_pub") and shutil.which("mosquitto_sub")), reason="mosquitto's clients are not here"
)

TELLS_COLLECTIONS = f"""#!{sys.executable}
import atexit, gc, sys
from godwit.cli import main

atexit.register(lambda: print("collections", gc.get_threshold(), file=sys.stderr))
sys.argv[:3] = ["godwit"]
main()
"""
"""In the place of `python -m godwit`: it says at its end when it looked for garbage."""


def subscriber(broker: Process, count: int, *more: str) -> subprocess.Popen[str]:
    """Ends after so many messages; its session stays."""
    command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", broker.port, "-t", "air/#", "-q", "1", "-i", "walker", "-c"]
    return subprocess.Popen([*command, "-C", str(count), *more], stdout=subprocess.PIPE, text=True)


def published(broker: Process, text: str) -> None:
    command = ["mosquitto_pub", "-h", "127.0.0.1", "-p", broker.port, "-t", "air/pm25", "-q", "1", "-m", text]
    subprocess.run(command, check=True, timeout=ANSWER_S)


def heard(listener: subprocess.Popen[str], broker: Process, text: str) -> bool:
    """Say it once more; whether the listener has all it waits for."""
    published(broker, text)
    return listener.poll() is not None


def flush(broker: Process, last: str) -> None:
    """Take what waits for the walker, up to this."""
    listener = subscriber(broker, 1000)
    assert listener.stdout is not None
    for line in listener.stdout:
        if line.strip() == last:
            break
    listener.terminate()
    listener.communicate(timeout=ANSWER_S)


def arrives(attempt: Callable[[], bool]) -> None:
    end = time.monotonic() + ANSWER_S
    while not attempt():
        assert time.monotonic() < end
        time.sleep(0.1)


@needs_mosquitto
def test_three_brokers_carry_a_walker_from_one_to_another_and_one_of_them_may_be_killed(tmp_path: Path) -> None:
    a = Process(tmp_path, "a", *FREE)
    b = Process(tmp_path, "b", *FREE, "--peer", a.at("peers"))
    c = Process(tmp_path, "c", *FREE, "--peer", a.at("peers"))
    with running(a, b, c):
        arrives(lambda: "linked with c" in b.log.read_text())
        walker = subscriber(c, 3)
        # The subscription travels; a message that comes back through another broker shows that it is there.
        arrives(lambda: heard(walker, b, "early"))
        assert walker.communicate(timeout=ANSWER_S)[0].split() == ["early"] * 3
        published(b, "last")
        flush(c, "last")
        for number in range(5):
            published(b, f"waits-{number}")
        walker = subscriber(a, 5)
        assert walker.communicate(timeout=ANSWER_S)[0].split() == [f"waits-{number}" for number in range(5)]
        for number in range(5):
            published(a, f"kept-{number}")
        assert a.end(signal.SIGKILL) == -signal.SIGKILL
        a = Process(tmp_path, "a", *FREE)
        with running(a):
            walker = subscriber(b, 5)
            assert walker.communicate(timeout=ANSWER_S)[0].split() == [f"kept-{number}" for number in range(5)]
            assert [one.end() for one in (a, b, c)] == [0, 0, 0]


@pytest.mark.usefixtures("started_truly")
def test_it_says_where_it_listens_and_stops_when_asked(tmp_path: Path) -> None:
    one = Process(tmp_path, "north", *FREE, "--ws", "127.0.0.1:0")
    with running(one):
        assert one.block[0] == f"godwit {__version__}, broker north"
        for kind in ("mqtt", "ws", "peers"):
            host, _, port = one.at(kind).rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()
        assert any(str(tmp_path / "north") in line for line in one.block)
        assert one.end(signal.SIGINT) == 0
    assert "Traceback" not in one.log.read_text()


def test_a_broker_that_is_told_to_stop_may_send_its_clients_elsewhere_first(tmp_path: Path) -> None:
    config = tmp_path / "drain.toml"
    config.write_text("[balance]\ndrain_s = 30\n")
    a = Process(tmp_path, "a", *FREE, "--status", "127.0.0.1:0", "--config", str(config))
    b = Process(tmp_path, "b", *FREE, "--http", "127.0.0.1:0", "--peer", a.at("peers"))

    async def scene() -> None:
        async with asyncio.timeout(60), godwit.connect(a.at("mqtt"), client="van") as van:
            events = await van.subscribe("n = 7")
            a.process.send_signal(signal.SIGTERM)
            while str(van.broker) != b.at("mqtt"):
                await asyncio.sleep(0.02)
            await van.publish({"n": 7})
            async for event in events:
                assert event.attributes["n"] == 7
                break

    with running(a, b):
        # With its addresses b says what it has to do, without which a sends nobody there.
        arrives(lambda: any(peer.http for peer in fetched(f"{a.at('status')}/status").peers))
        asyncio.run(scene())
        assert a.process.wait(ANSWER_S) == 0
    assert "1 clients were sent to other brokers, and 0 sessions are still here" in a.log.read_text()


def test_users_are_read_again_at_a_hangup(tmp_path: Path) -> None:
    users = tmp_path / "users.toml"
    users.write_text("")
    one = Process(tmp_path, "a", *FREE, "--users", str(users))
    with running(one):
        os.kill(one.process.pid, signal.SIGHUP)
        arrives(lambda: "users and grants are read again" in one.log.read_text())
        users.write_text("[users.ann]\npassword = 'plain'")
        os.kill(one.process.pid, signal.SIGHUP)
        arrives(lambda: "users and grants stay as they were" in one.log.read_text())
        assert "users.ann.password is no argon2 hash" in one.log.read_text()
        assert one.end() == 0


def told(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["serve", *map(str, arguments)])


def test_a_configuration_can_be_checked_without_being_run(tmp_path: Path) -> None:
    path = tmp_path / "godwit.toml"
    path.write_text("[listen]\nmqtt = ['127.0.0.1:0']\n")
    result = told("--config", path, "--data", tmp_path / "none", "--check")
    assert result.exit_code == 0
    assert "a broker can be started with it" in result.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--config", "none.toml"], "none.toml: No such file or directory"),
        (["--listen", "nowhere:port"], "listen.mqtt: address 'nowhere:port'"),
        (["--sync", "perhaps"], "sync: 'perhaps'; right would be process or power"),
        (["--handoff", "magic"], "handoff: 'magic'; right would be durable, reactive or proactive"),
        (["--users", "none.toml"], "access.users: none.toml: No such file or directory"),
        (["--peers-listen", "0.0.0.0:7883"], "peers.listen: 0.0.0.0:7883 is not on this machine alone"),
        (["--mqtts", "127.0.0.1:8883"], "listen.mqtts and listen.wss need a table [tls]"),
        (["--data", "/proc/none"], "/proc/none: "),
        (["--listen", "192.0.2.1:1883"], "listen.mqtt: 192.0.2.1:1883: this machine has no such address"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = [] if "--data" in arguments else ["--data", tmp_path / "data"]
    result = told(*data, *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"godwit: {complaint}")
    assert result.stderr.count("\n") == 1


def test_a_port_in_use_and_a_directory_in_use_are_told(tmp_path: Path) -> None:
    one = Process(tmp_path, "a", *FREE)
    with running(one):
        port = told("--data", tmp_path / "b", "--listen", one.at("mqtt"))
        assert (port.exit_code, port.stdout) == (2, "")
        assert f"listen.mqtt: {one.at('mqtt')}: something else listens there already" in port.stderr
        directory = told("--data", tmp_path / "a", "--listen", "127.0.0.1:0")
        assert (directory.exit_code, directory.stdout) == (2, "")
        assert f"in use by process {one.process.pid}" in directory.stderr
        assert one.end() == 0


@pytest.mark.usefixtures("started_truly")
def test_asked_twice_it_ends_at_once(tmp_path: Path) -> None:
    one = Process(tmp_path, "a", *FREE)
    with running(one), socket.create_connection(("127.0.0.1", int(one.port))) as slow:
        slow.sendall(b"\x10")
        one.process.send_signal(signal.SIGTERM)
        arrives(lambda: "stopping" in one.log.read_text())
        # Where it was quick, the second one finds it gone, or with nothing left to do.
        assert one.end(signal.SIGTERM) in (0, 130, -signal.SIGTERM)


def test_status_is_on_loopback_where_nothing_is_said_also_for_a_second_broker(tmp_path: Path) -> None:
    a, b = Process(tmp_path, "a", *FREE), Process(tmp_path, "b", *FREE)
    with running(a, b):
        for one in (a, b):
            assert one.at("status").startswith("http://127.0.0.1:")
            shown = CliRunner().invoke(app, ["top", one.at("status").removeprefix("http://"), "--once"])
            assert f"{one.name}  godwit" in shown.stdout
        assert a.at("status") != b.at("status")


def test_a_broker_that_fills_up_is_not_held_by_full_collections_of_garbage() -> None:
    """Half a million objects are what some 60,000 retained publications take. A collection of all of them takes a
    quarter of a second, in which nobody is served."""
    full = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal full
        full += phase == "start" and info["generation"] == 2

    gc.collect()  # what others have left does not count
    before = gc.get_threshold()
    gc.callbacks.append(count)
    try:
        gc.set_threshold(*COLLECTIONS)
        kept = [[number] for number in range(500_000)]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*before)
    assert len(kept) == 500_000
    assert full == 0


def test_a_served_broker_looks_for_garbage_as_rarely_as_that(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(TELLS_COLLECTIONS)
    python.chmod(0o755)
    one = Process(tmp_path, "a", *FREE, python=python)
    with running(one):
        assert one.end() == 0
    assert f"collections {COLLECTIONS}" in one.log.read_text()
