"""Brokers of this version and of the next, in processes of their own: a cluster is restarted one broker at a time."""

from __future__ import annotations

import stat
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.brokers import Process, own_ports, running

import godwit
from godwit.net.peers.frames import VERSION

WAIT_S = 240.0

AS_NEXT = """
import runpy, sys
from godwit.net.peers import frames
frames.VERSION, frames.OLDEST = {newest}, {oldest}
sys.argv = sys.argv[2:]
runpy.run_module("godwit", run_name="__main__", alter_sys=True)
"""


def python_of(folder: Path, oldest: int, newest: int) -> Path:
    """A Python in which Godwit speaks other versions."""
    script, run = folder / f"speaks{oldest}to{newest}.py", folder / f"python{oldest}to{newest}"
    script.write_text(AS_NEXT.format(oldest=oldest, newest=newest))
    run.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    run.chmod(run.stat().st_mode | stat.S_IXUSR)
    return run


def wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while text not in log.read_text():
        assert time.monotonic() < deadline, f"never said {text!r}: {log.read_text()}"
        time.sleep(0.05)


class Pair:
    """Brokers a and b, which are stopped and started again at the same ports."""

    def __init__(self, folder: Path, ports: list[int], fabric: str) -> None:
        self.folder = folder
        self.ports = dict(zip("ab", ports[:2], strict=True))
        links = dict(zip("ab", ports[2:], strict=True))
        self.options = {
            name: (
                *("--listen", f"127.0.0.1:{self.ports[name]}", "--peers-listen", f"127.0.0.1:{links[name]}"),
                *(("--peer", f"127.0.0.1:{links['a']}") if name == "b" else ()),
                *(("--fabric", "dht", "--place", f"{at},8") if fabric == "dht" else ()),
            )
            for name, at in (("a", 47), ("b", 40))
        }

    def started(self, name: str, python: str | Path = sys.executable) -> Process:
        return Process(self.folder, name, *self.options[name], python=python)


@pytest.mark.parametrize("fabric", ["tree", "dht"])
def test_brokers_are_updated_one_after_the_other_and_nothing_is_lost(tmp_path: Path, fabric: str) -> None:
    following = python_of(tmp_path, VERSION, VERSION + 1)
    with own_ports(4) as ports:
        pair = Pair(tmp_path, ports, fabric)
        a, b = pair.started("a"), pair.started("b")
        with running(a, b):
            at = [f"127.0.0.1:{port}" for port in pair.ports.values()]
            with godwit.connect(at[0], client="s", keep_s=3600) as reader, godwit.connect(at[1], client="p") as writer:
                subscription = reader.subscribe(topics="t/#", qos=1)
                wait_for(a.log, "linked with b")
                wanted(writer, subscription)
                writer.publish(topic="t/x", payload=b"1", qos=1)
                assert got(subscription) == b"1"
                a.end()
                a = pair.started("a", following)
                with running(a):
                    wait_for(a.log, "linked with b")
                    writer.publish(topic="t/x", payload=b"2", qos=1)
                    assert got(subscription) == b"2"
                    b.end()
                    b = pair.started("b", following)
                    with running(b):
                        writer.publish(topic="t/x", payload=b"3", qos=1)
                        assert got(subscription) == b"3"


def wanted(writer: godwit.SyncClient, subscription: godwit.SyncSubscription) -> None:
    """Wait until the writer's broker has heard who wants it. What is said before that is promised to nobody."""
    end_s = time.monotonic() + WAIT_S
    while time.monotonic() < end_s:
        writer.publish(topic="t/x", payload=b"0", qos=1)
        with suppress(TimeoutError):
            assert subscription.next(1.0) is not None
            return
    pytest.fail("the writer's broker never heard of the subscription")


def got(subscription: godwit.SyncSubscription) -> bytes:
    while (one := subscription.next(WAIT_S)) is not None and one.payload == b"0":
        pass
    assert one is not None
    return one.payload


def test_brokers_whose_versions_do_not_meet_say_which_they_speak(tmp_path: Path) -> None:
    far = python_of(tmp_path, VERSION + 1, VERSION + 2)
    with own_ports(4) as ports:
        pair = Pair(tmp_path, ports, "tree")
        a, b = pair.started("a"), pair.started("b", far)
        with running(a, b):
            wait_for(b.log, f"{VERSION + 1} to {VERSION + 2}")
            wait_for(a.log, "update the older")
            assert "linked with" not in a.log.read_text()
