"""Raw packet sequences and what a broker must make of them, as MQTT 3.1.1 and 5 say it.

Each is what a client says after CONNECT. `ENDS`: the broker must end the connection for it, with a DISCONNECT that has
a reason of 0x80 or above in version 5, and without a word before. Otherwise: the answers, byte for byte, after which
the client must still be answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.net.mqtt.saying import packet, text

ENDS = None
THREE, FIVE = 4, 5


@dataclass(frozen=True)
class Sequence:
    name: str
    version: int
    said: bytes
    answers: tuple[bytes, ...] | None
    granted: int | None = None
    """What the one SUBACK that is due must say."""

    @property
    def due(self) -> int:
        """How many answers must come before anything else."""
        return 1 if self.granted is not None else len(self.answers or ())


def bodies(version: int) -> dict[int, bytes]:
    """By first byte: a body that is right."""
    nothing = b"\0" if version == FIVE else b""
    return {
        0x40: b"\0\1",
        0x50: b"\0\1",
        0x62: b"\0\1",
        0x70: b"\0\1",
        0x82: b"\0\1" + nothing + text("a/b") + b"\0",
        0xA2: b"\0\1" + nothing + text("a/b"),
        0xC0: b"",
        0xE0: b"",
    }


def wrong_flags(version: int) -> Iterator[Sequence]:
    """2.1.3: where a flag is reserved, it must be as the table says."""
    for first, body in bodies(version).items():
        for flags in range(16):
            if flags != first & 15:
                yield Sequence(
                    f"kind {first >> 4} with flags {flags}", version, packet(first & 0xF0 | flags, body), ENDS
                )


def cut_off(version: int) -> Iterator[Sequence]:
    """A packet whose length ends in the midst of a field."""
    for first, body in bodies(version).items():
        for size in range(len(body)):
            yield Sequence(f"kind {first >> 4} of {size} bytes", version, packet(first, body[:size]), ENDS)
    for size in range(5):
        yield Sequence(f"PUBLISH of {size} bytes", version, packet(0x32, (text("abc") + b"\0\1\0")[:size]), ENDS)


def out_of_place(version: int) -> Iterator[Sequence]:
    for kind in (0, 2, 9, 11, 13, 15):
        yield Sequence(f"kind {kind} from a client", version, packet(kind << 4, b"\0\1"), ENDS)
    connect = b"\0\4MQTT" + bytes((version, 2, 0, 0)) + (b"\0" if version == FIVE else b"") + text("again")
    yield Sequence("a second CONNECT", version, packet(0x10, connect), ENDS)
    for length in (b"\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff"):
        yield Sequence(f"a length of {length.hex()}", version, b"\x30" + length + bytes(8), ENDS)


TOPICS_WRONG = ("", "+", "#", "a/+", "a/#", "a+", "a#b", "\0", "a\0b")
TOPICS_RIGHT = ("/", "//", "a", "a/", "/a", " ", "a b", "ä/ö", "$a", "a/$b", "a" * 200, "/".join("a" * 100))
FILTERS_NOT_TAKEN = ("/".join("a" * 201), "$filter/pm25 >/a", "$filter/x/$share/g/a")
"""Well-formed for MQTT, and refused in the answer."""
FILTERS_WRONG = (
    "",
    "$share/g/",
    "a#",
    "a/#/b",
    "#/",
    "a+",
    "+a",
    "a/+b/c",
    "##",
    "++",
    "a/##",
    "$share/g",
    "$share//a",
    "$share/g+/a",
)
FILTERS_RIGHT = ("#", "+", "/", "+/+", "/+", "a/#", "+/#", "a/+/b/#", "$a/#", "$share/g/a", "$share/g/#", "a//b", " ")


def topics(version: int) -> Iterator[Sequence]:
    nothing = b"\0" if version == FIVE else b""
    for topic in TOPICS_WRONG:
        for qos in (0, 1, 2):
            body = text(topic) + (b"\0\1" if qos else b"") + nothing
            yield Sequence(f"PUBLISH {qos} to {topic!r}", version, packet(0x30 | qos << 1, body), ENDS)
    for topic in TOPICS_RIGHT:
        for qos, answer in ((0, b""), (1, b"\x40\2\0\1"), (2, b"\x50\2\0\1")):
            body = text(topic) + (b"\0\1" if qos else b"") + nothing + b"payload"
            answers = (answer,) if answer else ()
            yield Sequence(f"PUBLISH {qos} to {topic[:20]!r}", version, packet(0x30 | qos << 1, body), answers)


def filters(version: int) -> Iterator[Sequence]:
    nothing, failure = (b"\0", 0x8F) if version == FIVE else (b"", 0x80)
    for pattern in FILTERS_RIGHT:
        for qos in (0, 1, 2):
            said = packet(0x82, b"\0\7" + nothing + text(pattern) + bytes((qos,)))
            yield Sequence(f"SUBSCRIBE {qos} to {pattern!r}", version, said, (), qos)
    for pattern in FILTERS_NOT_TAKEN:
        said = packet(0x82, b"\0\7" + nothing + text(pattern) + b"\0")
        yield Sequence(f"SUBSCRIBE to {pattern[:20]!r}", version, said, (), failure)
    for pattern in FILTERS_WRONG:
        for first, behind in ((0x82, b"\0"), (0x82, b"\1"), (0x82, b"\2"), (0xA2, b"")):
            wished = text("a") + behind + text(pattern) + behind
            said = packet(first, b"\0\7" + nothing + wished)
            yield Sequence(f"kind {first >> 4} with {behind.hex()} of {pattern!r}", version, said, ENDS)
    for options in (3, 0x40, 0x80, 0xC0):
        said = packet(0x82, b"\0\7" + nothing + text("a") + bytes((options,)))
        yield Sequence(f"SUBSCRIBE with options {options:#x}", version, said, ENDS)
    yield Sequence("SUBSCRIBE to nothing", version, packet(0x82, b"\0\7" + nothing), ENDS)
    yield Sequence("UNSUBSCRIBE from nothing", version, packet(0xA2, b"\0\7" + nothing), ENDS)
    yield Sequence("SUBSCRIBE 0", version, packet(0x82, b"\0\0" + nothing + text("a") + b"\0"), ENDS)
    yield Sequence("UNSUBSCRIBE 0", version, packet(0xA2, b"\0\0" + nothing + text("a")), ENDS)


def handshakes(version: int) -> Iterator[Sequence]:
    nothing = b"\0" if version == FIVE else b""
    two = packet(0x34, text("a") + b"\0\5" + nothing + b"x")
    yield Sequence("QoS 2", version, two + b"\x62\2\0\5", (b"\x50\2\0\5", b"\x70\2\0\5"))
    yield Sequence(
        "QoS 2 twice", version, two + b"\x3c" + two[1:] + b"\x62\2\0\5", (b"\x50\2\0\5", b"\x50\2\0\5", b"\x70\2\0\5")
    )
    for number in (1, 2, 255, 256, 65_535):
        said = packet(0x32, text("a") + number.to_bytes(2, "big") + nothing)
        yield Sequence(f"QoS 1 under {number}", version, said, (b"\x40\2" + number.to_bytes(2, "big"),))
    for qos in (1, 2):
        said = packet(0x30 | qos << 1, text("a") + b"\0\0" + nothing)
        yield Sequence(f"QoS {qos} under 0", version, said, ENDS)
    for first in (0x36, 0x37, 0x3E, 0x3F, 0x38):
        yield Sequence(
            f"PUBLISH with first byte {first:#x}", version, packet(first, text("a") + b"\0\1" + nothing), ENDS
        )
    deep = text("/".join("a" * 201))
    yield Sequence("QoS 0 to 201 levels", version, packet(0x30, deep + nothing), ENDS)
    for first in (0x32, 0x34):
        said, answer = packet(first, deep + b"\0\1" + nothing), bytes((0x40 + (first & 4) * 4, 2, 0, 1))
        yield Sequence(f"{first:#x} to 201 levels", version, said, (answer,) if version == FIVE else ENDS)
    for count in (1, 2, 10):
        yield Sequence(f"{count} pings", version, b"\xc0\0" * count, (b"\xd0\0",) * count)


def table() -> list[Sequence]:
    families = (wrong_flags, cut_off, out_of_place, topics, filters, handshakes)
    return [one for version in (THREE, FIVE) for family in families for one in family(version)]
