"""What systemd is told of a broker, and how it notices one that hangs (sd_notify, `Type=notify`, `WatchdogSec=`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Mapping

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


class Manager:
    """Whoever started this process, if it wants to be told; else every call does nothing."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        where = environment.get("NOTIFY_SOCKET", "")
        self._where = "\0" + where[1:] if where.startswith("@") else where
        mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        text = environment.get("WATCHDOG_USEC", "")
        self.watchdog_s = int(text) / 1e6 if mine and text.isdecimal() else 0.0
        """How long it waits for a sign of life; 0: it does not."""

    def tell(self, *lines: str) -> None:
        """A manager that does not listen is no reason not to serve."""
        if not self._where:
            return
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one,
        ):
            one.sendto("\n".join(lines).encode(), self._where)

    def reloading(self) -> None:
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    async def keep_alive(self) -> None:
        """Show for ever that the loop turns."""
        while self._where and self.watchdog_s:
            self.tell(ALIVE)
            await asyncio.sleep(self.watchdog_s / 3)
