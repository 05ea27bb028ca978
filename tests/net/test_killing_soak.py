"""The soak can set the calendar of the processes that it starts, and of no other. It leaves no broker down."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.net import soaking
from tests.net.soaking import CLOCK, Soak, SoakedBroker, set_clock


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
