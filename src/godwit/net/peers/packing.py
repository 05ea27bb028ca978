"""Compression between two brokers. Frames share one history for as long as their connection lasts, so that small ones
shrink too: most of what an event says was said by the one before it."""

from __future__ import annotations

import zstandard

from godwit.protocols.host import RemoteError

ZSTD = "zstd"
LEVEL = 3
PIECE_B = 64
"""So much is unpacked at a time: a few bytes may stand for very many, and it is checked after each piece."""


class Packer:
    """Both directions of one connection. Whatever is packed must be sent, in that order."""

    def __init__(self) -> None:
        self._out = zstandard.ZstdCompressor(level=LEVEL).compressobj()
        self._in = zstandard.ZstdDecompressor(max_window_size=8 * 1024 * 1024).decompressobj()

    def pack(self, body: bytes) -> bytes:
        return self._out.compress(body) + self._out.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def unpack(self, packed: bytes, size_max: int) -> bytes:
        """`RemoteError` where it cannot be, or is more than may come in one frame."""
        found = bytearray()
        try:
            for at in range(0, len(packed), PIECE_B):
                found += self._in.decompress(packed[at : at + PIECE_B])
                if len(found) > size_max:
                    raise RemoteError(f"a frame of more than {size_max:,} bytes when unpacked")
        except zstandard.ZstdError as error:
            raise RemoteError(f"a frame that cannot be unpacked: {error}") from error
        return bytes(found)
