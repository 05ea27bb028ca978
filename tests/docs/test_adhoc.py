"""What docs/adhoc.md says can be typed on one machine, typed; and its configuration, read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.brokers import own_ports
from tests.net.hosts import why_not
from tests.pages import blocks, page

from godwit.net.config import load

PAGE = page("docs/adhoc.md")
KEY, LEFT, _, _, HOSTS, BROKERS, CLIENTS, BRIDGE = blocks(PAGE, "sh")

PLAYED = """
set -e
# Names of namespaces are names of files: this shell has a place of its own for them, and all is gone with it.
mkdir -p /run/netns
mount -t tmpfs none /run/netns
{key}
{hosts}
{brokers}
for host in a b c; do
    until ip netns exec $host bash -c ': < /dev/tcp/127.0.0.1/1883' 2> refused; do sleep 0.2; done
done
{subscriber} > got &
hearer=$!
# Said until it is heard: how long a wish takes over two hops depends on the machine.
while kill -0 $hearer 2> gone; do {publisher}; sleep 0.3; done
wait $hearer
cat got
kill $(jobs -p)
"""


@pytest.mark.feature("manet-cbr F4")
@pytest.mark.xdist_group("hosts")
@pytest.mark.skipif(not shutil.which("mosquitto_sub"), reason="mosquitto's clients are not here")
def test_three_hosts_on_one_machine(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    subscriber, publisher = CLIENTS.splitlines()
    brokers = "\n".join(f"{line} > log-{at} 2>&1 &" for at, line in enumerate(BROKERS.splitlines()))
    script = PLAYED.format(key=KEY, hosts=HOSTS, brokers=brokers, subscriber=subscriber, publisher=publisher)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["unshare", "--mount", "timeout", "90", "bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "from two hops away\n", done.stderr + "".join(p.read_text() for p in tmp_path.glob("log-*"))


def test_the_configuration_can_be_read(tmp_path: Path) -> None:
    (config,) = blocks(PAGE, "toml")
    (tmp_path / "air.key").write_text("0123456789abcdef")
    (tmp_path / "field.toml").write_text(config)
    read = load(tmp_path / "field.toml", {}, {"XDG_STATE_HOME": str(tmp_path)})
    assert set(tomllib.loads(config)["adhoc"]) <= set(read.adhoc.__struct_fields__)


@pytest.mark.parametrize("command", [LEFT, BRIDGE])
def test_the_commands_have_flags_that_there_are(command: str, tmp_path: Path) -> None:
    for name in ("air.key", "cluster.secret"):
        (tmp_path / name).write_text("0123456789abcdef")
    # `--check` tries interfaces, names and ports: those of the page are not on every machine.
    here = command.replace("wlan0", "lo").replace("hub.example", "127.0.0.1").split()
    with own_ports(1) as [port]:
        own = ["--data", str(tmp_path / "data"), "--listen", f"127.0.0.1:{port}"]
        words = [sys.executable, "-m", *here, *own, "--check"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
