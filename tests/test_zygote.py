"""Forked processes are as those that are started: `tools.zygote`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.brokers import FREE, Process, running
from tools import zygote

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.environ.get(zygote.SWITCH) == "0", reason="nothing is forked here"
)

VERSION = [sys.executable, "-m", "godwit", "--version"]


def is_forked(process: int) -> bool:
    return b"tools.zygote" in Path(f"/proc/{process}/cmdline").read_bytes()


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def first_line(broker: subprocess.Popen[str]) -> str:
    """Of the block in which it introduces itself, when it has told all of it."""
    assert broker.stdout is not None
    first = broker.stdout.readline()
    assert any(line.startswith("  access") for line in broker.stdout)
    return first


def test_a_forked_broker_is_our_child_and_can_be_killed(tmp_path: Path) -> None:
    broker = Process(tmp_path, "north", *FREE)
    with running(broker):
        assert is_forked(broker.process.pid)
        assert parent(broker.process.pid) == os.getpid()
        assert broker.end(signal.SIGKILL) == -signal.SIGKILL


def test_a_forked_broker_stops_in_order(tmp_path: Path) -> None:
    broker = Process(tmp_path, "north", *FREE)
    with running(broker):
        assert is_forked(broker.process.pid)
        assert broker.end() == 0
    assert "stopping" in broker.log.read_text()


def test_a_fork_has_the_files_the_folder_and_the_environment_that_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "broker.toml").write_text('name = "from the file"\n')
    environment = {**os.environ, "GODWIT_NAME": "told", "GODWIT_LISTEN__MQTT": "127.0.0.1:0"}
    command = [sys.executable, "-m", "godwit", "serve", "--config", "broker.toml", "--data", "kept"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert first_line(process).endswith("broker told\n")
        process.terminate()
    assert process.returncode == 0
    assert list((tmp_path / "kept").iterdir())


def test_what_a_fork_says_and_its_status_come_back() -> None:
    told = subprocess.run([sys.executable, "-m", "godwit", "nonsense"], capture_output=True, text=True)
    assert (told.returncode, told.stdout) == (2, "")
    assert "No such command 'nonsense'" in told.stderr
    command = [sys.executable, "-m", "godwit", "password", "--drawn"]
    read = subprocess.run(command, input=b"secret\n", capture_output=True)
    assert (read.returncode, read.stdout[:1]) == (0, b"$")


def test_asyncio_waits_for_a_fork() -> None:
    async def version() -> tuple[bytes, int | None]:
        process = await asyncio.create_subprocess_exec(*VERSION, stdout=subprocess.PIPE)
        told, _ = await process.communicate()
        return told, process.returncode

    told, status = asyncio.run(version())
    assert told.startswith(b"godwit ")
    assert status == 0


def test_one_that_forks_has_no_other_threads_and_keeps_no_files_of_its_forks() -> None:
    subprocess.run(VERSION, check=True, capture_output=True)
    made = zygote._zygote
    assert made is not None
    assert len(list(Path(f"/proc/{made.process.pid}/task").iterdir())) == 1
    files = len(list(Path(f"/proc/{made.process.pid}/fd").iterdir()))
    subprocess.run(VERSION, check=True, capture_output=True)
    assert len(list(Path(f"/proc/{made.process.pid}/fd").iterdir())) == files


def test_forks_draw_dice_of_their_own(tmp_path: Path) -> None:
    brokers = [
        subprocess.Popen(
            [sys.executable, "-m", "godwit", "serve", *FREE, "--data", str(tmp_path / name)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    first = []
    for one in brokers:
        with one:
            first.append(first_line(one))
            one.terminate()
    assert len(set(first)) == 2, "names that brokers make up"


@pytest.mark.parametrize("variable", ["PYTHONOPTIMIZE", "NUMBA_BOUNDSCHECK", "OPENBLAS_NUM_THREADS"])
def test_a_process_with_variables_that_are_read_early_is_started_truly(variable: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "godwit", "sub", "--help"], env={**os.environ, variable: "1"}, stdout=subprocess.PIPE
    )
    with process:
        assert not is_forked(process.pid)


def test_one_that_forks_is_replaced_where_what_is_read_early_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(VERSION, check=True, capture_output=True)
    before = zygote._zygote
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    broker = Process(tmp_path, "north", *FREE)
    with running(broker):
        assert is_forked(broker.process.pid)
        assert broker.end() == 0
    assert zygote._zygote is not before
    assert before is not None
    assert before.process.returncode == 0


def test_where_nothing_can_be_forked_processes_are_started_truly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess.Popen, "_execute_child", zygote._start)
    monkeypatch.setattr(zygote, "_zygote", None)
    monkeypatch.setattr(zygote.Zygote, "fork", broken)
    with pytest.warns(UserWarning, match="started truly from now on: no room"):
        told = subprocess.run(VERSION, check=True, capture_output=True)
    assert told.stdout.startswith(b"godwit ")
    assert subprocess.run(VERSION, check=True, capture_output=True).stdout == told.stdout


def broken(*_: object) -> int:
    raise OSError("no room")


def test_a_broker_is_started_truly_where_a_test_asks_for_it(tmp_path: Path, started_truly: None) -> None:
    broker = Process(tmp_path, "north", *FREE)
    with running(broker):
        assert not is_forked(broker.process.pid)
        assert broker.end() == 0
