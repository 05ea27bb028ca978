"""How two brokers get to know each other, without sockets: each says hello, then proves that it knows the secret.

The proof covers both hellos, names and disks included, so that it can neither be repeated nor serve somebody else. What
follows is neither hidden nor signed: where others can reach the wire, use TLS.
"""

from __future__ import annotations

import hmac
from collections.abc import Container
from enum import StrEnum
from hashlib import sha256

import msgspec

from godwit.net.identity import Identity
from godwit.net.peers.frames import (
    PROTOCOL,
    VERSION,
    Control,
    Hello,
    Known,
    Ping,
    Proof,
    Refused,
    decode_control,
    encode_control,
)
from godwit.protocols.host import RemoteError

NAME_MAX = 255


class State(StrEnum):
    GREETING = "greeting"
    """Our hello is sent, the peer's has not come."""
    PROVING = "proving"
    """Hellos are exchanged; the peer has not proved that it belongs here."""
    ADMITTED = "admitted"
    REFUSED = "refused"


TRANSITIONS: dict[State, dict[type[Control], State]] = {
    State.GREETING: {Hello: State.PROVING, Refused: State.REFUSED},
    State.PROVING: {Proof: State.ADMITTED, Refused: State.REFUSED},
    State.ADMITTED: {Ping: State.ADMITTED, Known: State.ADMITTED, Refused: State.REFUSED},
    State.REFUSED: {},
}
"""Which control frame may come when; any other is the peer's error. Messages may come when admitted."""


class SelfError(RemoteError):
    """The peer is this very broker."""


class SpareError(RemoteError):
    """Nothing is wrong: another link to the same broker is kept."""


class RefusedError(RemoteError):
    """The peer does not want this link, for a reason that it gave and knows."""


class Handshake:
    """One side of one connection: send `hello` first, then whatever `receive` returns, until `state` is admitted."""

    def __init__(
        self,
        identity: Identity,
        *,
        cluster: str,
        secret: bytes,
        dialled: bool,
        nonce: bytes,
        address: str = "",
        needed: bool = False,
        own_nonces: Container[bytes] = (),
    ) -> None:
        self.state = State.GREETING
        self.dialled = dialled
        self.nonce = nonce
        self.needed = needed
        self.peer: Hello | None = None
        self._secret = secret
        self._own_nonces = own_nonces
        self._mine = Hello(
            PROTOCOL, VERSION, cluster, identity.name, identity.disk, identity.incarnation, nonce, address, needed
        )
        self.hello = encode_control(self._mine)
        self._theirs = b""

    def receive(self, body: bytes) -> tuple[Control, bytes]:
        """Take a control frame; what it was, and the body of the frame to send in answer, or nothing.

        `RemoteError` where the peer must not go on; tell it why.
        """
        control = decode_control(body)
        state = TRANSITIONS[self.state].get(type(control))
        if state is None:
            raise RemoteError(f"{type(control).__name__} came while {self.state}")
        answer = b""
        match control:
            case Refused():
                self.state = state
                raise (SpareError if control.spare else RefusedError)(f"refused: {control.reason}")
            case Hello():
                self._check_hello(control)
                self.peer, self._theirs = control, body
                answer = encode_control(Proof(self._mac(self.dialled)))
            case Proof():
                self._check_proof(control)
        self.state = state
        return control, answer

    def _check_hello(self, theirs: Hello) -> None:
        """Reasons are read at both ends, so they name both."""
        mine = self._mine
        if theirs.protocol != mine.protocol:
            raise RemoteError(f"{mine.name!r} speaks {mine.protocol!r} here, not {theirs.protocol!r}")
        if theirs.nonce in self._own_nonces:
            raise SelfError("this is the address of this broker itself")
        if not 0 < len(theirs.name) <= NAME_MAX:
            raise RemoteError(f"a broker's name of {len(theirs.name)} characters; right would be 1 to {NAME_MAX}")
        if theirs.name == mine.name:
            raise RemoteError(f"two brokers are named {mine.name!r}; each needs a name of its own")
        for what, my, their, advice in (
            ("version", mine.version, theirs.version, "update the older"),
            ("cluster", mine.cluster, theirs.cluster, "give both the same"),
        ):
            if my != their:
                raise RemoteError(f"{what} of {mine.name!r} is {my!r}, of {theirs.name!r} {their!r}; {advice}")

    def _check_proof(self, proof: Proof) -> None:
        if hmac.compare_digest(proof.mac, self._mac(not self.dialled)):
            return
        assert self.peer is not None
        mine, theirs = repr(self._mine.name), repr(self.peer.name)
        if not proof.mac or not self._secret:
            one, other = (mine, theirs) if self._secret else (theirs, mine)
            raise RemoteError(f"{one} has a cluster secret and {other} has none; give both the same")
        raise RemoteError(f"the cluster secrets of {mine} and {theirs} differ; give both the same")

    def _mac(self, dialler: bool) -> bytes:
        """What the dialler, or the other, has to show; empty where there is no secret."""
        if not self._secret:
            return b""
        hellos = (self.hello, self._theirs) if self.dialled else (self._theirs, self.hello)
        said = msgspec.msgpack.encode((PROTOCOL, dialler, *(sha256(hello).digest() for hello in hellos)))
        return hmac.digest(self._secret, said, "sha256")
