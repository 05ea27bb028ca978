"""How two brokers get to know each other, without sockets: each says hello, then proves that it knows the secret.

    dialler                              listener
    Hello, with its share        ->
                                 <-      Hello, with its share
    Proof                        ->
                                 <-      Proof, where the other's was right
    everything sealed            <->     everything sealed

The proof covers both hellos, names and disks included, so that it can neither be repeated nor serve somebody else. A
stranger gets no proof of anything: whoever dials goes first. Without a secret, proofs are empty and nothing is sealed.
"""

from __future__ import annotations

import hmac
from collections.abc import Container
from enum import StrEnum

import msgspec

from godwit.net.identity import Identity
from godwit.net.peers.frames import (
    OLDEST,
    PROTOCOL,
    VERSION,
    Control,
    Hello,
    Kind,
    Known,
    Ping,
    Proof,
    Refused,
    decode_control,
    encode_control,
)
from godwit.net.peers.seal import Exchange, Keys, heard
from godwit.protocols.host import RemoteError

NAME_MAX = 255


class State(StrEnum):
    GREETING = "greeting"
    """The peer's hello has not come; ours is sent where we dialled."""
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


class WrongSecretError(RemoteError):
    """The peer does not know the cluster's secret."""


class RefusedError(RemoteError):
    """The peer does not want this link, for a reason that it gave and knows."""


class Handshake:
    """One side of one connection: send `hello` first where this one dialled, then whatever `receive` returns, until
    `state` is admitted. `seal` and `open` whatever is sent and received."""

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
        packs: tuple[str, ...] = (),
        fabric: str = "",
        located: tuple[str, ...] = (),
        cells: tuple[str, ...] = (),
        own_nonces: Container[bytes] = (),
    ) -> None:
        self.state = State.GREETING
        self.dialled = dialled
        self.nonce = nonce
        self.needed = needed
        self.peer: Hello | None = None
        self.refused_nonce = b""
        """Of a hello that was our own."""
        self._secret = secret
        self._own_nonces = own_nonces
        self._mine = Hello(
            PROTOCOL,
            VERSION,
            cluster,
            identity.name,
            identity.disk,
            identity.incarnation,
            nonce,
            address,
            needed,
            packs=packs,
            oldest=OLDEST,
            fabric=fabric,
            located=located,
            cells=cells,
        )
        self._exchange: Exchange | None = None
        self._keys: Keys | None = None
        self._proved = False
        self.seals = self.opens = False
        """Whether what is sent is sealed from now on, and what comes."""
        self.hello = self._said_hello() if dialled else b""

    @property
    def agreed(self) -> str:
        """How both may compress what they say; empty: not at all."""
        theirs = self.peer.packs if self.peer is not None else ()
        return next((one for one in self._mine.packs if one in theirs), "")

    @property
    def version(self) -> int:
        """The newest that both speak; 0 before the peer's hello has come."""
        return min(self._mine.version, self.peer.version) if self.peer is not None else 0

    def _said_hello(self) -> bytes:
        """Whoever was dialled says it later: a stranger that says nothing costs nothing."""
        if self._secret:
            self._exchange = Exchange(self._secret, dialled=self.dialled)
            self._mine = msgspec.structs.replace(self._mine, share=self._exchange.share)
        return encode_control(self._mine)

    def receive(self, body: bytes) -> tuple[Control, tuple[bytes, ...]]:
        """Take a control frame; what it was, and the bodies of frames to send in answer.

        `RemoteError` where the peer must not go on; tell it why.
        """
        control = decode_control(body)
        state = TRANSITIONS[self.state].get(type(control))
        if state is None:
            raise RemoteError(f"{type(control).__name__} came while {self.state}")
        answers: tuple[bytes, ...] = ()
        match control:
            case Refused():
                self.state = state
                raise (SpareError if control.spare else RefusedError)(f"refused: {control.reason}")
            case Hello():
                self._check_hello(control)
                self.peer = control
                answers = self._greet(control, body)
            case Proof():
                self._check_proof(control)
                self.opens = self._keys is not None
                answers = () if self.dialled else (self._proof(),)
        self.state = state
        return control, answers

    def _greet(self, theirs: Hello, body: bytes) -> tuple[bytes, ...]:
        answers: tuple[bytes, ...] = ()
        if not self.dialled:
            self.hello = self._said_hello()
            answers = (self.hello,)
        if self._exchange is not None:
            hellos = (self.hello, body) if self.dialled else (body, self.hello)
            self._keys = self._exchange.keys(theirs.share, heard(*hellos), self.version)
        return (*answers, self._proof()) if self.dialled else answers

    def _proof(self) -> bytes:
        self._proved = True
        return encode_control(Proof(self._keys.proof(self.dialled) if self._keys is not None else b""))

    def sealed(self, kind: Kind, body: bytes) -> bytes:
        """What is sent for this body: as it is until our proof is on its way."""
        return self._keys.seal(self.dialled, kind, body) if self.seals and self._keys is not None else body

    def answered(self) -> None:
        """Call it when what `receive` returned is on its way: what follows our proof is sealed."""
        self.seals = self._proved and self._keys is not None

    def opened(self, kind: int, body: bytes) -> bytes:
        """What was sent; `RemoteError` where it was not our peer that sent it."""
        return self._keys.open(not self.dialled, kind, body) if self.opens and self._keys is not None else body

    def _check_hello(self, theirs: Hello) -> None:
        """Reasons are read at both ends, so they name both."""
        mine = self._mine
        if theirs.protocol != mine.protocol:
            raise RemoteError(f"{mine.name!r} speaks {mine.protocol!r} here, not {theirs.protocol!r}")
        if not self.dialled and theirs.nonce in self._own_nonces:
            self.refused_nonce = theirs.nonce
            raise SelfError("this is the address of this broker itself")
        if not 0 < len(theirs.name) <= NAME_MAX:
            raise RemoteError(f"a broker's name of {len(theirs.name)} characters; right would be 1 to {NAME_MAX}")
        if theirs.name == mine.name:
            raise RemoteError(f"two brokers are named {mine.name!r}; each needs a name of its own")
        if min(mine.version, theirs.version) < max(mine.oldest, theirs.oldest or theirs.version):
            spoken = f"version of {mine.name!r} is {_spoken(mine)}, of {theirs.name!r} {_spoken(theirs)}"
            raise RemoteError(f"{spoken}; update the older")
        if mine.cluster != theirs.cluster:
            clusters = f"cluster of {mine.name!r} is {mine.cluster!r}, of {theirs.name!r} {theirs.cluster!r}"
            raise RemoteError(f"{clusters}; give both the same")
        if mine.fabric and theirs.fabric and mine.fabric != theirs.fabric:
            fabrics = f"fabric of {mine.name!r} is {mine.fabric!r}, of {theirs.name!r} {theirs.fabric!r}"
            raise RemoteError(f"{fabrics}; give both the same")
        if mine.fabric and theirs.fabric and set(mine.located) != set(theirs.located):
            # One would look for subscriptions where the other does not put them.
            topics = f"ring.located of {mine.name!r} is {_listed(mine)}, of {theirs.name!r} {_listed(theirs)}"
            raise RemoteError(f"{topics}; give all brokers of the ring the same")
        if bool(self._secret) != bool(theirs.share):
            one, other = (mine.name, theirs.name) if self._secret else (theirs.name, mine.name)
            raise RemoteError(f"{one!r} has a cluster secret and {other!r} has none; give both the same")

    def _check_proof(self, proof: Proof) -> None:
        wanted = self._keys.proof(not self.dialled) if self._keys is not None else b""
        if not hmac.compare_digest(proof.mac, wanted):
            assert self.peer is not None
            raise WrongSecretError(
                f"the cluster secrets of {self._mine.name!r} and {self.peer.name!r} differ; give both the same"
            )


def _listed(hello: Hello) -> str:
    return ", ".join(sorted(hello.located)) or "nothing"


def _spoken(hello: Hello) -> str:
    """The versions that a broker speaks."""
    oldest = hello.oldest or hello.version
    return f"{hello.version}" if oldest >= hello.version else f"{oldest} to {hello.version}"
