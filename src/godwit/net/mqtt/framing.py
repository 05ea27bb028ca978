"""Where packets begin and end in what a socket gave, without looking into them.

QoS 0 publications that follow one another and go the same way are handled as one run of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import pack, pack_into, unpack_from
from typing import TypeVar, cast

from godwit.net.mqtt.codec import LENGTH_MAX, PacketError, length_field

PLAIN = 0x30
"""The first byte of a PUBLISH at QoS 0, not retained."""

PACKET_ANY = 1 << 30
"""Larger than any packet."""


def length_at(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Where the body of the packet at `position` begins, and its size; (0, 0) where that is not there yet."""
    if position + 2 < end:  # most are shorter than 16 kB
        low, high = data[position + 1], data[position + 2]
        if low < 0x80:
            return position + 2, low
        if 0 < high < 0x80:
            return position + 3, low & 0x7F | high << 7
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


Route = TypeVar("Route")

Find = Callable[[bytes], Route | None]
"""Tells the route of what a packet begins with; None where it has none, or that begins no packet."""

Piece = tuple[int, int, int, int, int]
"""A PUBLISH at QoS 0: where it begins, where its body begins, its topic ends, its payload begins, and where it ends."""


def piece_at(data: bytes, position: int, end: int, extra: int) -> Piece | None:
    """The plain packet at `position`, where it is whole and well-formed up to its payload. `extra` is 1 in version 5,
    where empty properties follow the topic; what they are is not looked at."""
    body, size = length_at(data, position, end)
    stop = body + size
    if not body or stop > end or size < 2 + extra:
        return None
    name_end = body + 2 + (data[body] << 8 | data[body + 1])
    return (position, body, name_end, name_end + extra, stop) if name_end + extra <= stop else None


def run_end(
    data: bytes, first: Piece, end: int, find: Find[Route], route: Route, packet_max: int, most: int
) -> tuple[int, int]:
    """Where the run ends that begins with this packet: plain ones that are there as a whole, not too large, and have
    this route; and how many they are, at most `most`.

    Routes are found by the body of a packet up to its payload: the topic with its length, and in version 5 empty
    properties. So whatever has one is well-formed that far.
    """
    startswith, count, extra = data.startswith, 0, first[3] - first[2]
    piece = first
    while True:
        position, body, _, payload, stop = piece
        header, head, step = data[position:body], data[position:payload], stop - position
        skip, reach, last = body - position, payload - position, end - step
        position, count = stop, count + 1
        # What shares the fixed header has the same size. To the same topic it needs no closer look at all.
        while count < most and position <= last and startswith(head, position):
            position += step
            count += 1
        while (
            count < most
            and position <= last
            and startswith(header, position)
            and find(data[position + skip : position + reach]) is route
        ):
            position += step
            count += 1
        if count >= most or position >= end or data[position] != PLAIN:
            return position, count
        following = piece_at(data, position, end, extra)
        if following is None or following[4] - position > packet_max:
            return position, count
        if find(data[following[1] : following[3]]) is not route:
            return position, count
        piece = following


NUMBERED = 0x32
"""The first byte of a PUBLISH at QoS 1, not retained, sent for the first time."""

Numbered = tuple[int, int, int, int, int, int]
"""Such a packet: where it begins, its body begins, its topic ends, its payload begins, it ends; and its identifier."""


def numbered_at(data: bytes, position: int, end: int, extra: int) -> Numbered | None:
    """The PUBLISH at QoS 1 at `position`, where it is whole, well-formed up to its payload, and has no properties."""
    body, size = length_at(data, position, end)
    stop = body + size
    if not body or stop > end or size < 4 + extra:
        return None
    name_end = body + 2 + (data[body] << 8 | data[body + 1])
    payload = name_end + 2 + extra
    if payload > stop or name_end == body + 2 or (extra and data[payload - 1]):
        return None
    number = data[name_end] << 8 | data[name_end + 1]
    return (position, body, name_end, payload, stop, number) if number else None


def numbered_run(
    data: bytes, first: Numbered, end: int, find: Find[Route], route: Route, packet_max: int, most: int
) -> tuple[list[Numbered], int]:
    """This packet and those that follow it, each with a topic that has this route; routes are found by the topic with
    its length. And how many of the first are alike: as long as each other, with topics as long."""
    found, extra, following = list[Numbered](), first[3] - first[2] - 2, cast("Numbered | None", first)
    alike = 0
    while following is not None and following[4] - following[0] <= packet_max:
        found.append(following)
        position = _like(data, following, end, find, route, most, found)
        alike = alike or len(found)
        if len(found) >= most or position >= end or data[position] != NUMBERED:
            break
        following = numbered_at(data, position, end, extra)
        if following is not None and find(data[following[1] : following[2]]) is not route:
            break
    return found, alike


def renumbered(data: bytes, run: Sequence[Numbered], alike: int, numbers: Sequence[int]) -> bytes:
    """The first packets of a run, one for each number, which is their identifier; so many of the run are alike."""
    begin, alike = run[0][0], min(alike, len(numbers))
    found = bytearray(memoryview(data)[begin : run[len(numbers) - 1][4]])
    first, step = run[0][2] - begin, run[0][4] - begin
    words = pack(f">{alike}H", *numbers[:alike])
    found[first : alike * step : step] = words[::2]
    found[first + 1 : alike * step : step] = words[1::2]
    for at in range(alike, len(numbers)):
        pack_into(">H", found, run[at][2] - begin, numbers[at])
    return bytes(found)


def answers(kind: int, numbers: Sequence[int]) -> bytes:
    """Answers of one kind, by its first byte, that say nothing else."""
    found, words = bytearray(bytes((kind, 2, 0, 0)) * len(numbers)), pack(f">{len(numbers)}H", *numbers)
    found[2::4], found[3::4] = words[::2], words[1::2]
    return bytes(found)


def _like(
    data: bytes, one: Numbered, end: int, find: Find[Route], route: Route, most: int, found: list[Numbered]
) -> int:
    """Add those that follow this packet and have its size, the length of its topic, and the route; where that ends."""
    start, body, name_end, payload, stop, _ = one
    step, has_properties = stop - start, payload > name_end + 2
    count = min(most - len(found), (end - stop) // step)

    def every(place: int) -> bytes:
        """The byte at this place of each packet."""
        return data[place + step : place + step + count * step : step]

    # Each byte is looked at in all packets at once, as far as those before it are alike: a loop takes twice as long.
    for place in range(start, body):
        count = _leading(every(place), data[place : place + 1])
    if has_properties:
        count = _leading(every(payload - 1), b"\0")
    numbers = [high << 8 | low for high, low in zip(every(name_end), every(name_end + 1), strict=True)]
    if 0 in numbers:
        count = numbers.index(0)
    alike, begin, finish = 0, body + step, name_end + step
    while alike < count and find(data[begin:finish]) is route:
        alike, begin, finish = alike + 1, begin + step, finish + step
    ways = (range(place + step, place + step + alike * step, step) for place in (start, body, name_end, payload, stop))
    found += zip(*ways, numbers[:alike], strict=True)
    return stop + alike * step


def _leading(values: bytes, wanted: bytes) -> int:
    """How many of them are `wanted` before the first that is not."""
    return len(values) - len(values.lstrip(wanted))


ANSWERS = frozenset({0x40, 0x50, 0x62, 0x70})
"""The first bytes of PUBACK, PUBREC, PUBREL and PUBCOMP."""


def answers_run(data: bytes, position: int, end: int) -> list[int]:
    """The packet identifiers of the answer at `position` and of those of its kind that follow it, as far as they say
    nothing else. 0 is none."""
    found, kind, most = list[int](), data[position] << 8 | 2, 8
    while position + 4 <= end:
        count = min(most, (end - position) // 4)
        words = unpack_from(f">{2 * count}H", data, position)
        heads, numbers = words[::2], words[1::2]
        if heads.count(kind) < count or 0 in numbers:
            wrong = next(at for at in range(count) if heads[at] != kind or not numbers[at])
            found += numbers[:wrong]
            break
        found += numbers
        position, most = position + 4 * count, 256  # a few first, since anything may follow an answer
    return found


def pieces(data: bytes, position: int, stop: int, extra: int) -> list[Piece]:
    """The packets of a run."""
    found = []
    while position < stop:
        piece = piece_at(data, position, stop, extra)
        assert piece is not None
        found.append(piece)
        position = piece[4]
    return found


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
