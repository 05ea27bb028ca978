"""Where something listens: `host:port`, `[::1]:port`, or with a scheme before it."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import msgspec

from godwit.errors import GodwitError

PORTS = {"mqtt": 1883, "mqtts": 8883}


class AddressError(GodwitError, ValueError):
    """The text names no address."""


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int
    tls: bool = False

    @classmethod
    def parse(cls, text: str, *, port: int | None = None) -> Address:
        """`port` is what an address without one means; for MQTT that is 1883, or 8883 after mqtts://."""
        scheme, _, rest = text.strip().rpartition("://")
        if scheme and scheme not in PORTS:
            raise AddressError(f"address {text!r}: scheme {scheme!r} is none of {', '.join(PORTS)}")
        try:
            split = urlsplit("//" + rest)
            found = split.port
        except ValueError as error:
            raise AddressError(f"address {text!r}: {str(error).lower()}; right would be host:port") from None
        if not split.hostname or split.path or split.query or split.username:
            raise AddressError(f"address {text!r}: right would be host:port")
        default = PORTS[scheme or "mqtt"] if port is None else port
        return cls(split.hostname, default if found is None else found, scheme == "mqtts")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
