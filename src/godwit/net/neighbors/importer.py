"""What a broker is given to know of where clients go: at its first start, and by `godwit neighbors import`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from functools import partial
from pathlib import Path

from godwit.net.neighbors.files import IMPORT, NeighborsError, learned, read
from godwit.net.server import Parts, ServeError, Service
from godwit.net.store.sqlite import StoreError
from godwit.protocols.broker.handoff.prediction import Learned

log = logging.getLogger("godwit.neighbors")

LOOK_S = 1.0
"""How often the data folder is looked into for something to take."""


class LearningService(Service):
    """`copies.neighbors` counts only while nothing is known; what is left in the data folder, at any time."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._path = parts.config.folder / IMPORT
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        told = self.parts.config.copies.neighbors
        if told is not None and not self.parts.neighbors.known():
            try:
                self._take(told, self._found(told))
            except NeighborsError as error:
                raise ServeError(f"copies.neighbors: {error}") from None
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching

    async def _watch(self) -> None:
        while not self._path.exists() or await self._take_left():
            await asyncio.sleep(LOOK_S)

    async def _take_left(self) -> bool:
        """Whatever is wrong with it, it is not looked at again; False where it cannot be removed. It stays until the
        disk has what it says: a crash in between would lose it, and who looks at the disk then would find nothing."""
        try:
            self._take(self._path, self._found(self._path))
        except NeighborsError as error:
            log.error("neighbors stay as they were: %s", error)
        with contextlib.suppress(StoreError):  # the broker tells of that itself
            await self.parts.store.flushed()
        try:
            self._path.unlink()
        except OSError as error:
            log.error("%s: %s; remove it, and start the broker again to import more", self._path, error.strerror)
            return False
        return True

    def _found(self, path: Path) -> list[Learned]:
        ways, name = read(path), self.parts.identity.name
        found = learned(ways, name)
        if not found:
            others = ", ".join(sorted({way.origin for way in ways})[:5])
            raise NeighborsError(f"{path}: nothing of {name!r} in column from, but of {others}")
        return found

    def _take(self, path: Path, found: list[Learned]) -> None:
        self.parts.host.run(partial(self.parts.neighbors.take, found))
        log.info("%d neighbors are taken from %s", len(found), path)
