"""What a client can make a broker process hold: the resident memory of a real one, after each thing that once made it
grow without end. Its limits are those that it has when nobody says anything, but for its capacity, which would take a
test long to fill."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import mqtt5
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.net.mqtt.saying import codes, packet, publish, subscribe, text
from tests.net.mqtt.serving import Raw
from tests.net.nonsense import UPGRADE, masked
from tools import zygote

from godwit.net.access import hashed
from godwit.net.processes import BrokerProcess, hold_port

MIB = 1024 * 1024
MORE_MAX = 24 * MIB
"""What one of these may add, where without its bound it would add 60 MiB or more."""
LOGINS_MORE_MAX = 100 * MIB
"""One hash of a password takes 64 MiB while it is computed, and one is computed at a time."""

USERS = f"""
[anonymous]
from = "loopback"
[users.bystander]
password = "{hashed("secret")}"
[users.powerless]
password = "{hashed("secret", "low")}"
publish = false
subscribe = false
"""


class Real:
    """A `godwit serve` that plays with nobody else."""

    def __init__(self, folder: Path) -> None:
        self._held = hold_port()
        self.web = self._held.getsockname()[1]
        (folder / "users.toml").write_text(USERS)
        settings = {
            "listen.ws": [f"127.0.0.1:{self.web}"],
            "access.users": str(folder / "users.toml"),
            "capacity.retained_bytes_max": 4 * MIB,
            "capacity.sessions_max": 500,
        }
        self.process = BrokerProcess("alone", folder, settings)

    def client(self, name: str, **said: object) -> Raw:
        raw = Raw(self.process.port)
        raw.connect(name, **said)  # type: ignore[arg-type]
        return raw

    def counted(self, figure: str, **labels: str) -> float:
        """What `/metrics` says; 0 where nothing was counted yet."""
        with urlopen(f"http://127.0.0.1:{self.process.status_port}/metrics", timeout=60) as told:
            families = text_string_to_metric_families(told.read().decode())
        found = [one for family in families for one in family.samples if one.name == f"godwit_{figure}_total"]
        return sum(one.value for one in found if labels.items() <= one.labels.items())

    def is_well(self) -> bool:
        with self.client("somebody") as raw:
            raw.send(b"\xc0\0")
            return raw.raw() == b"\xd0\0"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    real = Real(tmp_path_factory.mktemp("memory"))
    with asyncio.Runner() as runner:
        with zygote.started_truly():  # a fork has the memory of another process, and room in it
            runner.run(real.process.start())
        for _ in range(3):
            assert real.is_well()
        try:
            yield real
        finally:
            runner.run(real.process.kill())


@contextlib.contextmanager
def bounded(broker: Real, more: int = MORE_MAX, settle_s: float = 0.0) -> Iterator[None]:
    """Whoever did it is still connected at the end, so that nothing was let go of yet. `settle_s`: for those who wait
    for no answer, until the broker has read what they said."""
    before = broker.process.memory_b()
    assert before, "this machine does not say"
    yield
    assert broker.is_well()
    grown, end = broker.process.memory_b() - before, time.monotonic() + settle_s
    while time.monotonic() < end:
        time.sleep(0.05)
        grown = max(grown, broker.process.memory_b() - before)
    assert grown < more, f"{grown / MIB:.0f} MiB more"


def poured(wire: socket.socket, data: bytes, most: int) -> int:
    """How much of it, over and over, is taken before the broker does not read any more."""
    sent = 0
    wire.settimeout(1.0)
    with contextlib.suppress(TimeoutError, ConnectionError):
        while sent < most:
            sent += wire.send(data)
    return sent


@pytest.mark.parametrize("user", [None, "powerless"])
def test_long_topics_are_not_remembered(broker: Real, user: str | None) -> None:
    who = {"username": user, "password": b"secret"} if user else {}
    with broker.client("topics", **who) as raw, bounded(broker):
        for number in range(1_600):
            raw.send(publish(f"{number}/" + "x" * 60_000, b"", qos=1, number=number % 900 + 1))
            raw.packet()


def test_long_topic_filters_are_not_remembered(broker: Real) -> None:
    with broker.client("filters", username="powerless", password=b"secret") as raw, bounded(broker):
        for number in range(1_600):
            raw.send(subscribe(f"{number}/" + "x" * 60_000))
            raw.packet()


def test_pings_of_a_websocket_whose_answers_nobody_reads_do_not_pile_up(broker: Real) -> None:
    ping = masked(9, bytes(125)) * 2_000
    with contextlib.ExitStack() as all_of_them, bounded(broker, settle_s=1.0):
        for _ in range(3):
            wire = all_of_them.enter_context(socket.create_connection(("127.0.0.1", broker.web)))
            wire.sendall(UPGRADE + masked(2, mqtt5.ConnectPacket("", clean_start=True).write()))
            assert poured(wire, ping, 64 * MIB) < 32 * MIB


@pytest.mark.parametrize("over", ["tcp", "websocket"])
def test_what_has_begun_before_connect_is_not_kept(broker: Real, over: str) -> None:
    """A hundred that announce much and say a part of it."""
    begun = b"\x10\xff\xff\x3f" if over == "tcp" else UPGRADE + b"\x82\xff" + (15 * MIB).to_bytes(8, "big") + bytes(4)
    port = broker.process.port if over == "tcp" else broker.web
    with contextlib.ExitStack() as all_of_them, bounded(broker, settle_s=2.0):
        for _ in range(100):
            wire = all_of_them.enter_context(socket.create_connection(("127.0.0.1", port)))
            wire.sendall(begun)
            poured(wire, bytes(MIB), MIB)


def test_deep_topic_filters_are_bounded(broker: Real) -> None:
    deep, answers, before = "/".join("abcdefghij" * 18), list[int](), broker.counted("refused")
    with broker.client("deep") as raw, bounded(broker):
        for first in range(0, 1_000, 50):
            raw.send(subscribe(*(f"{number}/{deep}" for number in range(first, first + 50))))
            answers += codes(raw)
    refused = sum(answer >= 0x80 for answer in answers)
    assert refused > 900
    assert broker.counted("refused") - before == refused


def test_retained_topics_and_sessions_are_bounded(broker: Real) -> None:
    """What is beyond is refused and counted, and the client hears that."""
    counted_before = (broker.counted("refused"), broker.counted("clients", result="refused"))
    with bounded(broker), broker.client("retains") as raw:
        reasons = []
        for number in range(1_000):
            raw.send(publish(f"retained/{number}", bytes(65_536), 1, 1, retain=True))
            answer = raw.packet()
            assert isinstance(answer, mqtt5.PubAckPacket)
            reasons.append(int(answer.reason_code))
        assert reasons.count(0x97) > 900
        for number in range(1_000):
            with Raw(broker.process.port) as one:
                kept = one.connect(f"session-{number}" + "x" * 400, session_expiry_interval=1_000)
                reasons.append(int(kept.reason_code))
        assert reasons.count(0x97) > 1_400
    counted = (broker.counted("refused"), broker.counted("clients", result="refused"))
    assert [now - before for now, before in zip(counted, counted_before, strict=True)] == [
        reasons.count(0x97),
        reasons[1_000:].count(0x97),
    ]


def test_bogus_logins_do_not_pile_up(broker: Real) -> None:
    wrong = mqtt5.ConnectPacket("bogus", username="bystander", password=b"wrong").write()
    with contextlib.ExitStack() as all_of_them, bounded(broker, LOGINS_MORE_MAX, settle_s=2.0):
        for _ in range(400):
            all_of_them.enter_context(Raw(broker.process.port)).send(wrong)


def test_a_frame_of_who_is_known_may_hold_what_packets_may(broker: Real) -> None:
    """And that of who is not may not: it hears why."""
    with socket.create_connection(("127.0.0.1", broker.web), 60) as wire:
        wire.sendall(UPGRADE + masked(2, mqtt5.ConnectPacket("large", clean_start=True).write()))
        found = b""
        while b"\x20" not in found.partition(b"\r\n\r\n")[2]:
            found += wire.recv(65_536)
        body = packet(0x32, text("large") + b"\0\1\0" + bytes(900_000))
        wire.sendall(b"\x82\xff" + len(body).to_bytes(8, "big") + bytes(4) + body)
        assert wire.recv(4)[2] == 0x40
    with socket.create_connection(("127.0.0.1", broker.web), 60) as wire:
        wire.sendall(UPGRADE + b"\x82\xff" + (900_000).to_bytes(8, "big") + bytes(4))
        found = b""
        while data := wire.recv(65_536):
            found += data
        assert b"\x88" in found
        assert b"\x03\xf1" in found


def test_exhausted_descriptors_are_told_and_over_when_there_are_some(broker: Real) -> None:
    def said(words: str) -> bool:
        return words in (broker.process.folder / "log").read_text()

    pid = broker.process._process.pid if broker.process._process is not None else 0
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(list(Path(f"/proc/{pid}/fd").iterdir())) + 10, before[1]))
    try:
        with contextlib.ExitStack() as all_of_them:
            for _ in range(40):
                all_of_them.enter_context(socket.create_connection(("127.0.0.1", broker.process.port), 60))
            while not said("no file descriptors are left"):
                time.sleep(0.05)
        while not said("there are file descriptors again"):
            time.sleep(0.05)
        assert broker.is_well()
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
