"""The decoders under atheris, which looks for bytes that lead where no bytes have led before.

    python -m tests.net.fuzzing 10          # seconds

Whatever is no message must be refused with the one error that says so; anything else ends the run and shows the bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType

from godwit.net.mqtt import codec as fields
from godwit.net.mqtt import codec as packets
from godwit.net.mqtt import codec3 as packets3
from godwit.net.mqtt import codec5 as packets5
from godwit.net.mqtt import framing as reading
from godwit.net.mqtt.codec import PacketError
from godwit.net.peers import frames as links
from godwit.protocols.broker.streams import frames
from godwit.protocols.host import RemoteError


def read_packets(data: bytes, read: Callable[[bytes], object]) -> None:
    """Every packet of a stream, as a connection does it."""
    position = 0
    while position < len(data):
        body, size = reading.length_at(data, position, len(data))
        if not body or body + size > len(data):
            return
        read(data[position : body + size])
        position = body + size


def read_peer(data: bytes) -> None:
    for kind, body in links.Reader().feed(data):
        if kind == links.Kind.CONTROL:
            links.decode_control(body)
        else:
            read_frame(body)


def read_frame(data: bytes) -> None:
    frame = frames.decode(data)
    if isinstance(frame, frames.Parcels):
        for run in frame.runs:
            frames.decode_items(run)


def read_run(data: bytes) -> None:
    for extra in (0, 1):
        piece = reading.piece_at(data, 0, len(data), extra)
        if piece is not None:
            known = {data[piece[1] : piece[3]]: "way"}
            end, count = reading.run_end(data, piece, len(data), known.get, "way", 1_000, 50)
            assert 0 < end <= len(data)
            assert len(reading.pieces(data, 0, end, extra)) == count <= 50
        numbered = reading.numbered_at(data, 0, len(data), extra)
        if numbered is not None:
            topics = {data[numbered[1] : numbered[2]]: "way"}
            run, alike = reading.numbered_run(data, numbered, len(data), topics.get, "way", 1 << 30, 50)
            assert [one[0] for one in run] == [0, *(one[4] for one in run[:-1])]
            assert run[-1][4] <= len(data)
            told = reading.renumbered(data, run, alike, [one[5] for one in run])
            assert told == data[: run[-1][4]]
    answered = reading.answers_run(data, 0, len(data)) if data else []
    assert data.startswith(b"".join(bytes((data[0], 2)) + number.to_bytes(2, "big") for number in answered))


TARGETS: tuple[Callable[[bytes], None], ...] = (
    lambda data: read_packets(data, packets5.read),
    lambda data: read_packets(data, packets3.read),
    read_peer,
    read_frame,
    read_run,
)


def once(data: bytes) -> None:
    """The first byte chooses who reads the rest."""
    if data:
        try:
            TARGETS[data[0] % len(TARGETS)](data[1:])
        except (PacketError, RemoteError):
            return


def functions() -> Iterator[FunctionType]:
    """All that read: to watch the rest of what is loaded takes longer than the run."""
    for module in (frames, fields, packets, packets3, packets5, reading, links):
        for found in vars(module).values():
            members = vars(found).values() if isinstance(found, type) else (found,)
            yield from (one for one in members if isinstance(one, FunctionType) and one.__module__ == module.__name__)


def main(seconds: int) -> None:
    import atheris  # type: ignore[import-untyped]

    for function in functions():
        atheris.instrument_func(function)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=512", "-print_final_stats=1"], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]))
