"""Where packets begin and end in what a socket gave, without looking into them.

QoS 0 publications to the same topic that follow one another are handled as one run of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from godwit.net.mqtt.codec import LENGTH_MAX, PacketError, length_field

PLAIN = 0x30
"""The first byte of a PUBLISH at QoS 0, not retained."""


def length_at(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Where the body of the packet at `position` begins, and its size; (0, 0) where that is not there yet."""
    size = shift = 0
    for place in range(position + 1, min(position + 5, end)):
        byte = data[place]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0 and shift:
                raise PacketError("a remaining length with more bytes than it needs")
            return place + 1, size
        shift += 7
    if shift == 28:
        raise PacketError(f"a remaining length of more than four bytes; at most {LENGTH_MAX} can be said")
    return 0, 0


def run_end(data: bytes, position: int, name: bytes, end: int, packet_max: int) -> tuple[int, int]:
    """Where the run ends of plain packets that are there as a whole, not too large and have this name, and how many.

    `name` is the topic with its length, and in version 5 the empty properties: a packet's body up to the payload.
    """
    startswith, count = data.startswith, 0
    while position < end and data[position] == PLAIN:
        body, size = length_at(data, position, end)
        step = body + size - position
        last = end - step
        if not body or position > last or step > packet_max or size < len(name) or not startswith(name, body):
            break
        # Those that share the fixed header too have the same size, and need no closer look.
        head = data[position : body + len(name)]
        position += step
        count += 1
        while position <= last and startswith(head, position):
            position += step
            count += 1
    return position, count


def packets(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Start, body and end of each packet in a run of whole ones."""
    position, end = 0, len(data)
    while position < end:
        body, size = length_at(data, position, end)
        yield position, body, body + size
        position = body + size


def without_properties(run: bytes) -> bytes:
    """A run of version 5, all properties empty, as version 3.1.1 has it."""
    parts: list[bytes] = []
    for _, body, end in packets(run):
        topic_end = body + 2 + (run[body] << 8 | run[body + 1])
        parts += b"\x30", length_field(end - body - 1), run[body:topic_end], run[topic_end + 1 : end]
    return b"".join(parts)


def with_properties(run: bytes) -> bytes:
    """A run of version 3.1.1 as version 5 has it: empty properties after the topic."""
    parts: list[bytes] = []
    for _, body, end in packets(run):
        topic_end = body + 2 + (run[body] << 8 | run[body + 1])
        parts += b"\x30", length_field(end - body + 1), run[body:topic_end], b"\0", run[topic_end:end]
    return b"".join(parts)
