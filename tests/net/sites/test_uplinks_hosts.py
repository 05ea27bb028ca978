"""Three sites as real processes on real hosts, in a chain of links with 256 kbit/s and 300 ms, cut while events flow.

`GODWIT_CUT_S=60` cuts for a minute; the suite has less time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.net.hosts import Host, hosts, until
from tests.net.sites.shaper import DELAY_S

pytestmark = pytest.mark.xdist_group("hosts")

CUT_S = float(os.environ.get("GODWIT_CUT_S", "4"))
EVENTS_PER_S = 20
SLOW_PORT = 7999
SECRET = "a secret of three sites"


@contextmanager
def slow(host: Host, address: str) -> Iterator[str]:
    """A link to there with 256 kbit/s and 150 ms each way, in user space: this kernel may have no netem. Where it is
    dialled instead."""
    command = [
        "ip",
        "netns",
        "exec",
        host.space,
        sys.executable,
        "-m",
        "tests.net.sites.shaper",
        str(SLOW_PORT),
        address,
    ]
    shaper = subprocess.Popen(command)
    try:
        yield f"127.0.0.1:{SLOW_PORT}"
    finally:
        shaper.kill()
        shaper.wait()


def serve(host: Host, uplinks: dict[str, list[str]]) -> None:
    folder = host.hosts.folder / host.name
    folder.mkdir()
    lines = [f'name = "{host.name}-1"', 'data = "data"', "[listen]", 'mqtt = ["127.0.0.1:1883"]']
    lines += ['status = "127.0.0.1:9883"', "[sites]", f'site = "{host.name}"', 'listen = "0.0.0.0:7884"']
    lines += [f'secret = "{SECRET}"', "heartbeat_s = 1.0", "idle_s = 4.0"]
    for site, connect in uplinks.items():
        lines += [f"[sites.uplinks.{site}]", f"connect = {json.dumps(connect)}", "bytes_per_s = 32000"]
    (folder / "godwit.toml").write_text("\n".join(lines))
    command = ["ip", "netns", "exec", host.space, sys.executable, "-m", "godwit", "serve", "--config"]
    with (folder / "log").open("ab") as log:
        host.process = subprocess.Popen([*command, str(folder / "godwit.toml")], stdout=log, stderr=log)


def test_an_uplink_is_cut_under_load_and_nothing_is_lost_or_twice_or_out_of_order(tmp_path: Path) -> None:
    with hosts(tmp_path) as made, ExitStack() as links:
        made.segment("ab", "a", "b")
        made.segment("bc", "b", "c")
        at = {pair: address.partition("/")[0] for pair, address in made.addresses.items()}
        serve(made["a"], {"b": []})
        serve(made["b"], {"a": [links.enter_context(slow(made["b"], f"{at['ab', 'a']}:7884"))], "c": []})
        serve(made["c"], {"b": [links.enter_context(slow(made["c"], f"{at['bc', 'b']}:7884"))]})
        for name in "abc":
            made[name].ready()
        hearer, speaker = made["c"].client("hearer", "line/#"), made["a"].client("speaker")
        until(lambda: any(row["wanted"] for row in made["a"].status()["uplinks"]))
        began_s = time.monotonic()
        said = [speaker.publish("line/x", b'{"n": 0, "unit": "celsius"}')]
        until(lambda: len(hearer.got) >= 1)
        assert time.monotonic() - began_s >= 2 * DELAY_S, "the links are not slow"
        said += [speaker.publish("line/x", b'{"n": %d, "unit": "celsius"}' % number) for number in range(1, 20)]
        until(lambda: len(hearer.got) >= len(said))
        made.cut("bc", "c")
        ends_s = time.monotonic() + CUT_S
        while time.monotonic() < ends_s:
            said.append(speaker.publish("line/x", b'{"n": %d, "unit": "celsius"}' % len(said)))
            time.sleep(1 / EVENTS_PER_S)
        made.join("bc", "c")
        said += [speaker.publish("line/x", b'{"n": %d, "unit": "celsius"}' % (len(said) + n)) for n in range(20)]
        until(lambda: len(hearer.got) >= len(said), 60 + CUT_S)
        time.sleep(1.0)
        assert hearer.got == said
        row = next(row for row in made["b"].status()["uplinks"] if row["peer"] == "c/c-1")
        assert row["events_out"] == len(said)
        assert row["dropped"] == row["waiting"] == 0
