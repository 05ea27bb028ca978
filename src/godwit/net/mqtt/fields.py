"""The fields that MQTT packets are made of (section 1.5 of both texts), and what may be wrong with them."""

from __future__ import annotations

MALFORMED = 0x81
PROTOCOL_ERROR = 0x82
UNSUPPORTED_VERSION = 0x84
TOPIC_NAME_INVALID = 0x90
PACKET_TOO_LARGE = 0x95

LENGTH_MAX = 268_435_455
"""The largest remaining length that four bytes can say."""


class PacketError(Exception):
    """The client sent what it must not: the connection ends with this reason code."""

    def __init__(self, text: str, code: int = MALFORMED) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class Fields:
    """Reads one packet's body from front to back; whatever is not there or not allowed is a `PacketError`."""

    __slots__ = ("data", "end", "position", "what")

    def __init__(self, data: bytes, position: int, end: int, what: str) -> None:
        self.data = data
        self.position = position
        self.end = end
        self.what = what

    def skip(self, size: int) -> int:
        """Where `size` bytes begin that are now behind us."""
        start = self.position
        if start + size > self.end:
            raise PacketError(f"{self.what}: byte {self.end} is the last, {start + size - self.end} more are announced")
        self.position = start + size
        return start

    def byte(self) -> int:
        return self.data[self.skip(1)]

    def number16(self) -> int:
        start = self.skip(2)
        return self.data[start] << 8 | self.data[start + 1]

    def number32(self) -> int:
        start = self.skip(4)
        return int.from_bytes(self.data[start : start + 4], "big")

    def variable(self) -> int:
        """A variable byte integer, in as few bytes as it needs."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 21:
                raise PacketError(f"{self.what}: a variable byte integer has more than four bytes")
        if byte == 0 and shift:
            raise PacketError(f"{self.what}: a variable byte integer has more bytes than it needs")
        return value

    def binary(self) -> bytes:
        size = self.number16()
        start = self.skip(size)
        return self.data[start : start + size]

    def text(self) -> str:
        return text_of(self.binary(), self.what)

    def pair(self) -> tuple[str, str]:
        return self.text(), self.text()

    def packet_id(self) -> int:
        number = self.number16()
        if number == 0:
            raise PacketError(f"{self.what}: the packet identifier is 0", PROTOCOL_ERROR)
        return number

    def rest(self) -> bytes:
        start, self.position = self.position, self.end
        return self.data[start : self.end]

    def finish(self) -> None:
        if self.position != self.end:
            raise PacketError(f"{self.what}: {self.end - self.position} bytes follow its end")


def text_of(data: bytes, what: str) -> str:
    """UTF-8 without U+0000 (MQTT-1.5.4-1, MQTT-1.5.4-2)."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise PacketError(f"{what}: text that is not UTF-8: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise PacketError(f"{what}: text with U+0000 in it")
    return text


def topic_of(data: bytes, what: str) -> str:
    """The name of a topic: some text without wildcards."""
    if not data:
        raise PacketError(f"{what}: an empty topic name", PROTOCOL_ERROR)
    if b"#" in data or b"+" in data:
        raise PacketError(f"{what}: a topic name with a wildcard in it", TOPIC_NAME_INVALID)
    return text_of(data, what)


def length_field(size: int) -> bytes:
    """A variable byte integer."""
    if size < 0x80:
        return bytes((size,))
    found = bytearray()
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def text_field(text: str) -> bytes:
    return binary_field(text.encode())


def binary_field(data: bytes) -> bytes:
    """At most 65,535 bytes; more is the caller's mistake (ValueError)."""
    if len(data) > 0xFFFF:
        raise ValueError(f"a field of {len(data)} bytes; at most 65535 fit")
    return len(data).to_bytes(2, "big") + data
