"""What two brokers make of the cluster's secret: a key for one link, proofs of it, and frames that only they can make.

The key comes from SPAKE2, a key exchange with a password. Somebody who listens learns nothing that a guess could be
tried on. Somebody who takes part, in the middle or at either end, tries one guess each time, and is seen to be wrong.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any

from godwit.net.peers.frames import PROTOCOL, Kind
from godwit.protocols.host import RemoteError

KEY_B = 32
TAG_B = 16
DIALLER, LISTENER = b"dialler", b"listener"


class Exchange:
    """One side of one key exchange: say `share`, and `keys` from what the other said."""

    def __init__(self, secret: bytes, *, dialled: bool) -> None:
        # Takes a while to load, and brokers without a secret do not need it.
        from spake2 import SPAKE2_A, SPAKE2_B  # type: ignore[import-untyped]

        self._side: Any = (SPAKE2_A if dialled else SPAKE2_B)(secret, idA=DIALLER, idB=LISTENER)
        self.share: bytes = self._side.start()

    def keys(self, share: bytes, said: bytes, version: int) -> Keys:
        """`said` is a hash of everything that both have said so far; whoever heard something else, or speaks another
        version, has other keys."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        try:
            agreed = self._side.finish(share)
        except Exception:
            # The library raises several kinds, and assertions, for what is no point of its curve.
            raise RemoteError("its share of the key exchange is none") from None
        made = HKDF(hashes.SHA256(), 4 * KEY_B, said, f"{PROTOCOL} {version}".encode()).derive(agreed)
        proofs_and_seals = [made[at : at + KEY_B] for at in range(0, len(made), KEY_B)]
        return Keys(said, *proofs_and_seals)


class Keys:
    """Of one link, in both directions. Each frame has its number in the seal, so that none can be left out, repeated or
    moved."""

    def __init__(self, said: bytes, proof_a: bytes, proof_b: bytes, seal_a: bytes, seal_b: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._said = said
        self._proofs = {True: proof_a, False: proof_b}
        self._seals = {True: AESGCM(seal_a), False: AESGCM(seal_b)}
        self._sent = {True: 0, False: 0}

    def proof(self, dialler: bool) -> bytes:
        """What the dialler, or the other, has to show."""
        return hmac.digest(self._proofs[dialler], self._said, "sha256")

    def seal(self, dialler: bool, kind: Kind, body: bytes) -> bytes:
        """The next frame of this side."""
        return self._seals[dialler].encrypt(self._next(dialler), body, b"%c" % kind)

    def open(self, dialler: bool, kind: int, body: bytes) -> bytes:
        """What the other side sealed; `RemoteError` where it is not the next frame that it has sent."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._seals[dialler].decrypt(self._next(dialler), body, b"%c" % kind)
        except (InvalidTag, ValueError):
            raise RemoteError("a frame that was changed, left out or repeated on the way, or is a stranger's") from None

    def _next(self, dialler: bool) -> bytes:
        number = self._sent[dialler]
        self._sent[dialler] = number + 1
        return number.to_bytes(12, "big")


def heard(*hellos: bytes) -> bytes:
    """A hash of both hellos, the dialler's first."""
    return sha256(b"".join(sha256(hello).digest() for hello in hellos)).digest()
