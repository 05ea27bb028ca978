"""A rolling restart: one broker after the other, the next only when the last one is well again."""

from __future__ import annotations

import asyncio
import time

import msgspec

from godwit.console.fleet import Fleet
from godwit.net.admin.client import Login

BACK_S = 300.0
LOOK_EVERY_S = 0.5


class Stage(msgspec.Struct, kw_only=True):
    broker: str
    state: str = "waits"
    """waits, restarting, done, or failed"""
    text: str = ""


class Rolling:
    """At most one at a time. It stops at the first broker that does not come back."""

    def __init__(self, fleet: Fleet, back_s: float = BACK_S) -> None:
        self.stages: list[Stage] = []
        self._fleet = fleet
        self._back_s = back_s
        self._task: asyncio.Task[None] | None = None

    @property
    def under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    def begin(self, names: list[str], login: Login) -> None:
        self.stages = [Stage(broker=name) for name in names]
        self._task = asyncio.create_task(self._run(login))

    async def finished(self) -> None:
        if self._task is not None:
            await self._task

    async def _run(self, login: Login) -> None:
        for stage in self.stages:
            stage.state = "restarting"
            if not await self._restarted(stage, login):
                stage.state = "failed"
                return
            stage.state = "done"

    async def _restarted(self, stage: Stage, login: Login) -> bool:
        before = await self._fleet.one(stage.broker, login, "broker", {})
        if not before.ok:
            stage.text = f"not begun: {before.text}"
            return False
        told = await self._fleet.one(stage.broker, login, "actions/restart", {}, {"confirm": True})
        if not told.ok:
            stage.text = told.text
            return False
        began_s, links, starts = time.monotonic(), len(before.body["links"]), before.body["starts"]
        while time.monotonic() - began_s < self._back_s:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._fleet.refresh(now=True)
            now = await self._fleet.one(stage.broker, login, "broker", {})
            if now.ok and now.body["starts"] != starts:
                waits = list(now.body["troubles"])
                if len(now.body["links"]) < links:
                    waits.append("its links are not up yet")
                stage.text = "; ".join(waits) or f"back after {time.monotonic() - began_s:.1f} s"
                if not waits:
                    return True
        stage.text = f"not well after {self._back_s:g} s: {stage.text or 'no answer'}"
        return False
