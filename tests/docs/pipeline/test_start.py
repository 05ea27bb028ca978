"""The first page for data engineers is run as it stands, with other ports.

Its jobs run in the Spark session of all tests: to start one for each of them took four fifths of the time.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import chdir, closing, suppress
from multiprocessing.connection import Client, Listener
from pathlib import Path
from secrets import token_hex

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")

from pyiceberg.utils.config import Config
from pyspark.sql import SparkSession
from tests.brokers import own_ports
from tests.pages import blocks
from typer.testing import CliRunner

from godwit.cli import app
from godwit.commands.pipeline import session

ROOT = Path(__file__).resolve().parents[3]
KEY = token_hex()
"""Only the page's own commands may have jobs run."""

GODWIT = """
import os, sys
if sys.argv[1] != "pipeline":
    os.execv(sys.executable, [sys.executable, "-m", "godwit", *sys.argv[1:]])
from multiprocessing.connection import Client
with Client(("127.0.0.1", int(os.environ["JOBS_AT"])), authkey=os.environ["JOBS_KEY"].encode()) as there:
    there.send((sys.argv[1:], os.getcwd(), dict(os.environ)))
    status, told = there.recv()
print(told, end="")
sys.exit(status)
"""


def steps(page: str) -> str:
    return "set -eu\n" + "\n".join(blocks(page, "sh"))


def absolute(words: list[str]) -> list[str]:
    """With paths from the root, since Spark's Java stands in another folder."""
    before = ["", *words]
    return [
        os.path.abspath(word) if option == "--out" or os.path.exists(word) else word
        for option, word in zip(before, words, strict=False)
    ]


def serve(jobs: Listener) -> None:
    """Run what is asked for, where and with the environment that it is asked in, until somebody asks for nothing."""
    while True:
        with jobs.accept() as there:
            words, folder, environment = there.recv()
            if not words:
                return
            with pytest.MonkeyPatch.context() as patch, chdir(folder):
                for name in (name for name in environment if name.startswith("PYICEBERG_")):
                    patch.setenv(name, environment[name])
                # The library looks at the environment once, when it is imported.
                patch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
                done = CliRunner().invoke(app, absolute(words))
            there.send((done.exit_code, done.output))


@pytest.fixture
def ports() -> Iterator[list[int]]:
    with own_ports(2) as own:
        yield own


@pytest.mark.bound(600)
def test_the_steps_lead_from_parquet_to_iceberg_and_a_stream(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, ports: list[int]
) -> None:
    monkeypatch.setattr(session, "started", lambda name, asked: spark)
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)
    shutil.copytree(ROOT / "examples" / "pipeline", tmp_path / "examples" / "pipeline")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "jobs.py").write_text(GODWIT)
    for name, words in {"godwit": f'"{tmp_path / "bin" / "jobs.py"}"', "python": ""}.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    script = steps((ROOT / "docs" / "pipeline" / "start.md").read_text())
    for old, new in zip(("9884", "1885"), ports, strict=True):
        script = script.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    # A broker that a failed step leaves behind ends with the shell that started it.
    guarded = script.replace("BROKER=$!", "BROKER=$!; trap 'kill $BROKER 2>/dev/null || true' EXIT")
    own = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "src")}
    own["XDG_STATE_HOME"] = str(tmp_path / "state")  # what a broker of this machine's user keeps is not the test's
    said: list[str] = []
    with closing(Listener(("127.0.0.1", 0), authkey=KEY.encode())) as jobs:
        jobs_at = {"JOBS_AT": str(jobs.address[1]), "JOBS_KEY": KEY}
        shell = subprocess.Popen(
            ["bash", "-c", guarded],
            cwd=tmp_path,
            env={**os.environ, **own, **jobs_at},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

        def walk_through() -> None:
            said.append(shell.communicate()[0])
            with suppress(OSError), Client(jobs.address, authkey=KEY.encode()) as there:
                there.send(((), "", {}))

        walker = threading.Thread(target=walk_through, daemon=True)
        walker.start()
        try:
            serve(jobs)
        finally:
            # With whatever it has started: it waits for jobs that nobody runs any more.
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        walker.join()
    [ended] = said
    assert shell.returncode == 0, ended
    assert re.search(r"^\d{2,} handoffs$", ended, re.MULTILINE), ended
    assert "2 events in 2 commits" in ended, ended
