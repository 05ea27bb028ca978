"""What travels over a peer link: frames of four bytes of length, one byte of kind, and a body in msgpack."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct

import msgspec

from godwit.protocols.host import NodeId, RemoteError

PROTOCOL = "godwit-peers"
VERSION = 9
"""The newest that this broker speaks. A message that an older broker would not understand is said from the version
after the first that understands it, so that two versions can work side by side while brokers are restarted."""
OLDEST = 9
"""The oldest that it understands as well."""

HEAD = Struct(">IB")
"""How many bytes follow, and the kind, which is the first of them."""
HEAD_B = HEAD.size
GREETING_B_MAX = 64 * 1024
"""No longer frame is read from somebody who has not been admitted."""


class Kind(IntEnum):
    CONTROL = 0
    """Between the links themselves: `Control`."""
    MESSAGE = 1
    """For the fabric, and of no concern here."""
    PACKED = 2
    """The same, compressed as both have agreed: what came before on this connection is known to both."""


class Hello(msgspec.Struct, frozen=True, tag=True):
    """The first frame in both directions; whoever was dialled answers the other's. `address` is where the sender can be
    dialled: `:port` where it does not know its own host, empty where it cannot be. `needed`: it may be cut off from the
    others without this link."""

    protocol: str
    version: int
    cluster: str
    name: NodeId
    disk: str
    incarnation: int
    nonce: bytes
    address: str = ""
    needed: bool = False
    share: bytes = b""
    """Of the key exchange (SPAKE2), where there is a secret: it says nothing of the secret."""
    packs: tuple[str, ...] = ()
    """Ways to compress that the sender understands. Nothing is compressed unless both know one."""
    oldest: int = 0
    """The oldest version that the sender understands; 0: `version` alone."""
    fabric: str = ""
    """What the sender is one of, `tree` or `dht`; empty where it does not say."""
    located: tuple[str, ...] = ()
    """In a ring: the topics that the sender has matched where they happened."""
    cells: tuple[str, ...] = ()
    """In a ring: the cells that the sender owns, by prefix."""


class Proof(msgspec.Struct, frozen=True, tag=True):
    """The second, of the dialler first: an HMAC over both hellos, with a key on which only two can agree who know the
    cluster's secret. What its sender says from then on is sealed."""

    mac: bytes


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The last: why the sender hangs up. `spare` where it is only that another link to the same broker is kept."""

    reason: str
    spare: bool = False


class Ping(msgspec.Struct, frozen=True, tag=True):
    """Nothing to say, and still here."""


class Peer(msgspec.Struct, frozen=True, array_like=True):
    """A broker and where it can be dialled."""

    name: NodeId
    address: str


class Known(msgspec.Struct, frozen=True, tag=True):
    """The brokers that the sender knows."""

    peers: tuple[Peer, ...]


Control = Hello | Proof | Refused | Ping | Known

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Control] = msgspec.msgpack.Decoder(Control)


def framed(kind: Kind, body: bytes) -> bytes:
    return HEAD.pack(len(body) + 1, kind) + body


def encode_control(control: Control) -> bytes:
    return _encode(control)


def decode_control(body: bytes) -> Control:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RemoteError(f"malformed control frame: {error}") from error


class Reader:
    """Cuts what arrives into frames. `size_max` may be raised once the peer is known."""

    def __init__(self, size_max: int = GREETING_B_MAX) -> None:
        self.size_max = size_max
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """All frames that are complete now, as kind and body; `RemoteError` where this is no frame.

        One at a time: a peer may be admitted by one frame and say something larger in the next, and a busy machine
        reads both at once.
        """
        at, begun = 0, self._buffer
        if begun:
            begun += data
        found: bytes | bytearray = begun or data
        end = len(found)
        try:
            while end - at >= HEAD_B:
                size, kind = HEAD.unpack_from(found, at)
                if not 1 <= size <= self.size_max:
                    raise RemoteError(f"a frame of {size:,} bytes; between 1 and {self.size_max:,} are allowed")
                if kind > Kind.PACKED:
                    raise RemoteError(f"a frame of kind {kind}; there are {Kind.CONTROL:d} to {Kind.PACKED:d}")
                if end - at < 4 + size:
                    break
                first, at = at + HEAD_B, at + 4 + size
                yield kind, bytes(memoryview(found)[first:at])
        finally:
            if begun:
                del begun[:at]
            else:
                begun += data[at:]
