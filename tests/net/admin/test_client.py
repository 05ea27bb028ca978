"""Questions to brokers' ports for operators."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.brokers import FREE, Process, running

ASKED_AT_ONCE = """
import sys, threading
from godwit.net.admin.client import report_at

sys.setswitchinterval(1e-6)
together, names = threading.Barrier(8), []

def ask():
    together.wait()
    names.append(report_at(sys.argv[1]).name)

threads = [threading.Thread(target=ask) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(*names)
"""


def test_several_brokers_may_be_asked_at_once_by_a_process_that_has_asked_nobody_yet(tmp_path: Path) -> None:
    """A console that was started with two brokers crashed now and then: both answers were the first of their type."""
    one = Process(tmp_path, "a", *FREE)
    with running(one):
        command = [sys.executable, "-c", ASKED_AT_ONCE, one.at("status").removeprefix("http://")]
        for _ in range(8):
            done = subprocess.run(command, capture_output=True, text=True)
            assert (done.returncode, done.stdout.split()) == (0, ["a"] * 8), done.stderr
