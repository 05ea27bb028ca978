"""One interface as an antenna: a UDP socket that hears one group or broadcast address there, and speaks to it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import ipaddress
import logging
import socket
import struct
import time
from collections.abc import Callable

log = logging.getLogger("godwit.radio")

IP_MULTICAST_ALL = 49
SIOCGIFMTU = 0x8921
HEADERS_B = 28
"""Of IP and UDP."""
BUFFER_B = 1024 * 1024
SO_TIMESTAMPNS = 35
AT_ONCE = 64
AGE_MAX_S = 60.0


class AntennaError(OSError):
    """It cannot be opened; the text says why, and what would be right."""


class Antenna:
    """`interface` empty: whichever the machine takes for the group. It may vanish and come back: `mend` looks.

    `on_frame(frame, age_s)` gets what comes, and how long it has waited here: a busy node must not take that for the
    sender's delay.
    """

    def __init__(
        self, interface: str, group: str, port: int, frame_b_max: int, on_frame: Callable[[bytes, float], None]
    ) -> None:
        self.interface = interface
        self.frame_b_max = frame_b_max
        self.group = group
        self.port = port
        self.on_frame = on_frame
        self.failure = ""
        """Why the last frame was not sent, or why it is closed."""
        self._socket: socket.socket | None = None
        self._index = 0

    def open(self) -> None:
        """`AntennaError` where it cannot be."""
        self._socket = self._opened()
        asyncio.get_running_loop().add_reader(self._socket, self._read)
        self.failure = ""

    def _opened(self) -> socket.socket:
        """`AntennaError` where there is no such interface, or it cannot be used so."""
        self._index = self._find()
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._check_size(opened)
            opened.setblocking(False)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_B)
            opened.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            if ipaddress.ip_address(self.group).is_multicast:
                self._join(opened)
                opened.bind((self.group, self.port))
            else:
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                if self.interface:
                    opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.interface.encode())
                opened.bind(("", self.port))
        except AntennaError:
            opened.close()
            raise
        except OSError as error:
            opened.close()
            raise AntennaError(f"{self.where}: {error.strerror or error}") from None
        return opened

    def _check_size(self, opened: socket.socket) -> None:
        """Frames that the network would cut into pieces are lost with any of them."""
        if not self.interface:
            return
        asked = struct.pack("16si", self.interface.encode(), 0)
        _, mtu_b = struct.unpack("16si", fcntl.ioctl(opened, SIOCGIFMTU, asked))
        if self.frame_b_max + HEADERS_B > mtu_b:
            raise AntennaError(
                f"{self.interface} takes {mtu_b:,} bytes at a time; right would be"
                f" adhoc.frame_bytes_max = {mtu_b - HEADERS_B}"
            )

    def _join(self, opened: socket.socket) -> None:
        membership = struct.pack("@4s4si", socket.inet_aton(self.group), bytes(4), self._index)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, membership)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
        with contextlib.suppress(OSError):
            # Else this socket would also hear what comes for the group through other interfaces.
            opened.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)

    def _find(self) -> int:
        if not self.interface:
            return 0
        try:
            return socket.if_nametoindex(self.interface)
        except OSError:
            known = ", ".join(name for _, name in socket.if_nameindex())
            raise AntennaError(f"{self.interface}: there is no such interface; this machine has {known}") from None

    @property
    def where(self) -> str:
        return f"{self.group}:{self.port}" + (f" on {self.interface}" if self.interface else "")

    def _read(self) -> None:
        """All that has come, up to a point: others want to run too."""
        for _ in range(AT_ONCE):
            if self._socket is None:
                return
            try:
                data, ancillary, _, _ = self._socket.recvmsg(65_536, 64)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._fail(error)
                return
            self.on_frame(data, _age_s(ancillary))

    def send(self, frame: bytes) -> bool:
        """False where it was not sent."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto(frame, (self.group, self.port))
        except OSError as error:
            self._fail(error)
            return False
        self.failure = ""
        return True

    def _fail(self, error: Exception) -> None:
        reason = getattr(error, "strerror", None) or str(error)
        if reason != self.failure:
            log.warning("radio: %s: %s; this goes on trying", self.where, reason)
        self.failure = reason

    def mend(self) -> None:
        """Open it again where its interface has gone and come back, or was never there."""
        try:
            is_same = self._find() == self._index
        except AntennaError as error:
            self._fail(error)
            return
        if is_same and self._socket is not None:
            return
        self.close()
        try:
            self.open()
            log.info("radio: %s is open again", self.where)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None


def _age_s(ancillary: list[tuple[int, int, bytes]]) -> float:
    """Since the machine got it, as far as it says so."""
    for level, kind, value in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS and len(value) == 16:
            seconds, nanoseconds = struct.unpack("@qq", value)
            # Both by the wall clock: if it was set meanwhile, better no age than a wrong one.
            age_s = time.time() - seconds - nanoseconds / 1e9
            return age_s if 0.0 <= age_s <= AGE_MAX_S else 0.0
    return 0.0
