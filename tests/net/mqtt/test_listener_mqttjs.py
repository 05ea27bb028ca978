"""mqtt.js, which nobody here wrote, in both versions and over both transports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.net.mqtt.serving import Served, served
from tools.environment import NODE_MODULES

SCRIPT = Path(__file__).with_name("mqttjs.js")
WAIT_S = 120.0

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_MODULES / "mqtt").is_dir(),
    reason="mqtt.js is not there: `make test` fetches it where node and npm are installed (Debian package npm)",
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Served]:
    with served() as running:
        yield running


@pytest.fixture(
    scope="module", params=[("tcp", 4), ("tcp", 5), ("ws", 4), ("ws", 5)], ids=lambda way: f"{way[0]}-{way[1]}"
)
def seen(request: pytest.FixtureRequest, broker: Served) -> Any:
    """What one client of this transport and version has seen."""
    transport, version = request.param
    url = f"mqtt://127.0.0.1:{broker.port}" if transport == "tcp" else f"ws://127.0.0.1:{broker.websocket_port}/mqtt"
    environment = os.environ | {"NODE_PATH": str(NODE_MODULES)}
    command = ["node", str(SCRIPT), url, str(version)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_every_qos_arrives_at_its_level_and_in_order(seen: Any) -> None:
    assert seen["qos"]["granted"] == [0, 1, 2]
    assert seen["qos"]["heard"] == [list(range(20))] * 3
    assert seen["qos"]["levels"] == [[0], [1], [2]]


def test_a_late_subscriber_gets_what_was_retained_until_it_is_cleared(seen: Any) -> None:
    assert seen["retained"]["first"] == {"topic": "js/last", "payload": "kept", "qos": 1, "retain": True}
    assert [one["payload"] for one in seen["retained"]["cleared"]] == ["end"]


def test_the_will_of_a_client_that_vanishes_is_published(seen: Any) -> None:
    assert [one["payload"] for one in seen["will"]] == ["gone"]


def test_a_session_waits_for_its_client(seen: Any) -> None:
    assert seen["persistent"] == {"present": [True], "heard": ["1", "2", "3"]}


def test_a_group_shares_the_work(seen: Any) -> None:
    one, other = seen["shared"]
    assert one
    assert other
    assert sorted(one + other) == list(range(40))


def test_a_condition_chooses_by_content(seen: Any) -> None:
    assert seen["filtered"] == [151, 300]


def test_a_bad_condition_is_refused_and_the_connection_stays(seen: Any) -> None:
    assert "granted" not in seen["refused"] or seen["refused"] == "granted 128"
    assert seen["refused"]
