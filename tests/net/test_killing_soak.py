"""The soak can set the calendar of the processes that it starts, and of no other. It leaves no broker down."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mqtt5
import pytest
from tests.net import soaking
from tests.net.mqtt.saying import heard, publish, subscribe
from tests.net.mqtt.serving import Raw
from tests.net.soaking import CLOCK, Soak, SoakedBroker, set_clock

from godwit.net.processes import BrokerProcess


@pytest.mark.parametrize("offset_s", [0.0, -700_000.0, 3_600.0])
def test_a_process_of_the_soak_has_the_time_that_it_is_given(tmp_path: Path, offset_s: float) -> None:
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    set_clock(tmp_path / "clock", offset_s)
    told = {**os.environ, "PYTHONPATH": str(tmp_path), "GODWIT_SOAK_CLOCK": str(tmp_path / "clock")}
    asked = [sys.executable, "-c", "import time; print(time.time())"]
    said = subprocess.run(asked, env=told, capture_output=True, text=True, check=True).stdout
    assert float(said) - time.time() == pytest.approx(offset_s, abs=300)


class Puppet(SoakedBroker):
    """Neither a process nor a disk: both take a moment to come and to go."""

    up = False

    @property
    def running(self) -> bool:
        return self.up

    async def start(self) -> None:
        async with self._alone:
            await asyncio.sleep(0.002)
            self.up = True

    async def kill(self) -> None:
        async with self._alone:
            await asyncio.sleep(0.002)
            self.up = False

    def fill(self) -> None:
        self.fills += 1

    def empty(self) -> None:
        self.fills -= 1


@pytest.mark.parametrize("seed", range(5))
def test_plagues_end_when_it_is_calm_with_all_brokers_up_and_no_disk_full(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soaking, "PAUSE_S", (0.0, 0.004))
    monkeypatch.setattr(soaking, "FULL_S", (0.0, 0.004))
    monkeypatch.setattr(soaking, "flood", lambda port, seconds, dice: None)
    brokers = [Puppet(f"b{number}", tmp_path / f"b{number}") for number in range(3)]
    soak = Soak(brokers, tmp_path / "clock", seed)

    async def scene() -> None:
        await asyncio.gather(*(broker.start() for broker in brokers))
        calm = asyncio.Event()
        plagues = [asyncio.create_task(soak.plague(calm)) for _ in range(2)]
        async with asyncio.timeout(60):
            while min(soak.counts.values()) < 3:
                await asyncio.sleep(0)
            calm.set()
            await asyncio.gather(*plagues)

    asyncio.run(scene())
    assert [broker.running for broker in brokers] == [True] * 3
    assert [broker.fills for broker in brokers] == [0] * 3


@pytest.mark.parametrize("step_s", [soaking.STEP_S, -soaking.STEP_S])
def test_a_broker_that_starts_again_after_its_calendar_was_set_keeps_what_waits(
    step_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is kept for a week at most, and this session for ten minutes."""
    (tmp_path / "sitecustomize.py").write_text(CLOCK)
    set_clock(tmp_path / "clock", 0.0)
    monkeypatch.setenv("GODWIT_SOAK_CLOCK", str(tmp_path / "clock"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    broker = BrokerProcess("north", tmp_path / "north")

    async def scene() -> None:
        await broker.start()
        try:
            await asyncio.to_thread(leave_something, broker.port)
            await broker.kill()
            set_clock(tmp_path / "clock", step_s)
            await broker.start()
            await asyncio.to_thread(find_it, broker.port)
        finally:
            await broker.kill()

    asyncio.run(scene())


KEPT: dict[str, Any] = {"clean_start": False, "session_expiry_interval": 600}


def leave_something(port: int) -> None:
    with Raw(port) as away:
        away.connect("away", **KEPT)
        away.send(subscribe("t"))
        assert isinstance(away.packet(), mqtt5.SubAckPacket)
    with Raw(port) as speaker:
        speaker.connect("speaker")
        speaker.send(publish("t", b"kept", qos=1, number=1))
        assert isinstance(speaker.packet(), mqtt5.PubAckPacket)


def find_it(port: int) -> None:
    with Raw(port) as away:
        assert away.connect("away", **KEPT).session_present
        assert heard(away).payload == b"kept"
