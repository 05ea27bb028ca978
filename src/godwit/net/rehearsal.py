"""What `godwit serve --check` tries before anybody depends on it: ports, names, interfaces and folders."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from godwit.net.address import Address
from godwit.net.config import SITES_PORT, STATUS_ANY, Config, ConfigError, Fabric, address
from godwit.net.peers.dialler import PORT


def listening(config: Config) -> Iterator[tuple[str, Address]]:
    """Where the broker would listen, by key."""
    for kind in ("mqtt", "mqtts", "ws", "wss"):
        for text in getattr(config.listen, kind):
            yield f"listen.{kind}", address(text, f"listen.{kind}")
    if config.listen.status not in ("", STATUS_ANY):
        yield "listen.status", address(config.listen.status, "listen.status")
    if config.listen.console:
        yield "listen.console", address(config.listen.console, "listen.console")
    if config.listen.http not in ("", STATUS_ANY):
        yield "listen.http", address(config.listen.http, "listen.http")
    if config.peers.listen:
        yield "peers.listen", address(config.peers.listen, "peers.listen", PORT)
    if config.sites.listen:
        yield "sites.listen", address(config.sites.listen, "sites.listen", SITES_PORT)
    if config.archive is not None and config.archive.listen:
        yield "archive.listen", address(config.archive.listen, "archive.listen")


def listen(where: Address) -> None:
    """As the broker would, and at once no more; `OSError` where that cannot be."""
    found = socket.getaddrinfo(where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, at in found:
        with socket.socket(family, kind, protocol) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(at)
            one.listen(1)


def look_up(config: Config) -> None:
    """`ConfigError` where a name cannot be resolved, an interface is not there, or a folder cannot be written."""
    for key, where in _dialled(config):
        try:
            socket.getaddrinfo(where.host, where.port)
        except (socket.gaierror, UnicodeError) as error:  # the latter of names that are none
            said = getattr(error, "strerror", None) or error
            raise ConfigError(f"{key}: {where}: the name cannot be resolved: {said}") from None
    if Fabric.ADHOC in config.fabrics:
        there = {name for _, name in socket.if_nameindex()}
        for name in config.adhoc.interfaces:
            if name not in there:
                raise ConfigError(f"adhoc.interfaces: {name!r} is not here; there are {', '.join(sorted(there))}")
    _writable("data", config.folder)
    if config.archive is not None:
        _writable("archive.folder", config.archive.folder)


def _dialled(config: Config) -> Iterator[tuple[str, Address]]:
    """Whom the broker would dial, by key."""
    for text in config.peers.connect:
        yield "peers.connect", address(text, "peers.connect", PORT)
    for site, uplink in config.sites.uplinks.items():
        for text in uplink.connect:
            key = f"sites.uplinks.{site}.connect"
            yield key, address(text, key, SITES_PORT)


def _writable(key: str, folder: Path) -> None:
    """It, or what it would be made in."""
    known = next((one for one in (folder, *folder.absolute().parents) if one.exists()), folder)
    if not known.is_dir() or not os.access(known, os.W_OK | os.X_OK):
        raise ConfigError(f"{key}: {folder}: this user cannot write to {known}")
