"""`$SYS/broker/...`: a broker's figures as topics, under the names that people know from other brokers.

They are told every ten seconds, to clients of this broker that ask for them and have a user name; nobody pays for them
otherwise. They go to no other broker, and into no archive.
"""

from __future__ import annotations

import asyncio

from godwit import __version__
from godwit.net.server import Parts, Service
from godwit.protocols.broker.publication import Publication

EVERY_S = 10.0
PREFIX = "$SYS/broker"


class SysTopics(Service):
    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._loop = asyncio.get_running_loop()
        self._begun_s = self._loop.time()
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        self._timer = self._loop.call_later(EVERY_S, self._turn)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        self._timer = self._loop.call_later(EVERY_S, self._turn)
        self.parts.host.run(self.tell)
        self.parts.front.flush()

    def tell(self) -> None:
        """Say what somebody asks for."""
        broker = self.parts.broker
        for name, value in self.figures().items():
            topic = f"{PREFIX}/{name}"
            if broker.audience(topic).is_somebody:
                self._sequence += 1
                text = str(value).encode()
                broker.announce(Publication(self.parts.identity.name, self._sequence, topic, text, time=broker.clock()))

    def figures(self) -> dict[str, int | str]:
        core, front = self.parts.broker.counts, self.parts.front.counts
        return {
            "version": f"godwit {__version__}",
            "uptime": f"{self._loop.time() - self._begun_s:.0f} seconds",
            "clients/connected": core.connected,
            "clients/disconnected": core.sessions - core.connected,
            "clients/total": core.sessions,
            "subscriptions/count": core.subscriptions,
            "retained messages/count": self.parts.broker.retained_count,
            "messages/stored": core.waiting,
            "messages/received": front.packets_in,
            "messages/sent": front.packets_out,
            "publish/messages/received": sum(core.published),
            "publish/messages/sent": sum(core.delivered),
            "publish/messages/dropped": sum(core.dropped.values()) + sum(front.dropped.values()),
            "bytes/received": front.bytes_in,
            "bytes/sent": front.bytes_out,
        }
