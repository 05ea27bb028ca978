"""Brokers on the same local network find one another by mDNS: each announces `_godwit._tcp` and listens for others.

Off unless asked for. What is found this way is an address and nothing more: the greeting decides who is a peer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence

from zeroconf import InterfaceChoice, IPVersion, NonUniqueNameException, ServiceStateChange, Zeroconf
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from godwit.net.peers.frames import Peer
from godwit.protocols.host import NodeId

log = logging.getLogger("godwit.discovery")

SERVICE = "_godwit._tcp.local."
RESOLVED_MS = 3_000
LABEL_MAX = 63
"""Bytes of a label in DNS."""


class Discovery:
    """Announces where this broker's peers listen, and calls `found` for each other broker of its cluster."""

    def __init__(
        self,
        name: NodeId,
        cluster: str,
        found: Callable[[Peer], object],
        *,
        interfaces: Sequence[str] | InterfaceChoice = InterfaceChoice.All,
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.found = found
        self.interfaces = interfaces
        self._zeroconf: AsyncZeroconf | None = None
        self._browser: AsyncServiceBrowser | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Announce peers at this address; a wildcard host is announced as all addresses of this machine."""
        self._zeroconf = AsyncZeroconf(interfaces=self.interfaces, ip_version=IPVersion.V4Only)
        info = AsyncServiceInfo(
            SERVICE,
            f"{_label(self.name)}.{SERVICE}",
            port=port,
            addresses=[socket.inet_aton(address) for address in await _addresses(host)],
            properties={"cluster": self.cluster, "name": self.name},
            server=f"{_label(self.name)}.local.",
        )
        try:
            await self._zeroconf.async_register_service(info, cooperating_responders=True)
        except NonUniqueNameException:
            log.warning("another broker on this network is announced as %r; this one is not", self.name)
        self._browser = AsyncServiceBrowser(self._zeroconf.zeroconf, SERVICE, handlers=[self._changed])

    def _changed(self, zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        if state_change is not ServiceStateChange.Removed:
            task = asyncio.get_running_loop().create_task(self._resolve(zeroconf, service_type, name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _resolve(self, zeroconf: Zeroconf, service_type: str, name: str) -> None:
        info = AsyncServiceInfo(service_type, name)
        if not await info.async_request(zeroconf, RESOLVED_MS):
            return
        told = {key: (value or b"").decode(errors="replace") for key, value in info.properties.items()}
        if told.get(b"cluster") != self.cluster or told.get(b"name") == self.name or not info.port:
            return
        for address in info.parsed_addresses(IPVersion.V4Only):
            self.found(Peer(told.get(b"name", ""), f"{address}:{info.port}"))

    async def stop(self) -> None:
        """Say goodbye to the network."""
        if self._browser is not None:
            await self._browser.async_cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._zeroconf is not None:
            await self._zeroconf.async_unregister_all_services()
            await self._zeroconf.async_close()


def _label(name: NodeId) -> str:
    """The name as one label of DNS: dots would end it, and it may not be long."""
    return name.replace(".", "-").encode()[:LABEL_MAX].decode(errors="ignore")


async def _addresses(host: str) -> list[str]:
    """The IPv4 addresses to announce for a host that is listened on."""
    if host in ("0.0.0.0", "::", ""):
        import ifaddr  # comes with zeroconf

        found = [str(ip.ip) for adapter in ifaddr.get_adapters() for ip in adapter.ips if isinstance(ip.ip, str)]
        return [address for address in found if not address.startswith("127.")] or found
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    return sorted({str(info[4][0]) for info in infos})
