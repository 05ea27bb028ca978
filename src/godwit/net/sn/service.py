"""MQTT-SN as a part of a server: listens where the table `[sn]` says."""

from __future__ import annotations

import asyncio

from godwit.net.address import Address
from godwit.net.config import SN_PORT, address
from godwit.net.server import Parts, ServeError, Service, reason_of
from godwit.net.sn.gateway import Gateway, Profile


class SnService(Service):
    """The gateway of a broker that is configured to have one."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.gateway: Gateway | None = None
        self._listens = ""

    async def start(self) -> None:
        sn, broker = self.parts.config.sn, self.parts.broker
        where = address(sn.listen, "sn.listen", SN_PORT)
        profiles = tuple(Profile(prefix, expiry_s) for prefix, expiry_s in sn.profiles.items())
        self.gateway = gateway = Gateway(
            broker,
            self.parts.access.admit,
            {int(number): topic for number, topic in sn.topics.items()},
            (*profiles, Profile("", sn.expiry_s)),
            retry_s=sn.retry_s,
        )
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_datagram_endpoint(lambda: gateway, (where.host, where.port))
        except OSError as error:
            raise ServeError(f"sn.listen: {where}: {reason_of(error, where)}") from None
        host, port = transport.get_extra_info("sockname")[:2]
        self._listens = str(Address(host, port))

    async def stop(self) -> None:
        if self.gateway is not None:
            self.gateway.close()

    def addresses(self) -> list[tuple[str, str]]:
        return [("sn", self._listens)] if self._listens else []
