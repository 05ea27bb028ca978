"""What authenticates a frame of the air, without sockets: sealed with a shared key, proved alive, taken once.

Everybody who knows the key is trusted; nothing is hidden. A frame names its sender, the sender's life (drawn at its
start) and a stamp: microseconds of that life, never the same twice. What keeps recordings out:

- A life is believed once it has answered a challenge of ours, which we draw anew all the time: no recording can.
- From then on its stamps tell the time. One that was taken already, or is late by more than a few seconds, is refused,
  so that a frame which we have not heard ourselves cannot be kept for later either.

No clock needs to be right, they only must run about as fast as one another: whoever falls behind is challenged again.
"""

from __future__ import annotations

import hmac
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from enum import IntEnum
from hashlib import blake2b
from struct import Struct

import msgspec

from godwit.protocols.host import NodeId

MAGIC = b"gA"
TAG_B = 16
NAME_B_MAX = 64
HEAD = Struct(">2sBQQQB")
"""Magic, kind, life, stamp, challenge, length of the name."""

CHALLENGE_S = 30.0
"""How long one is asked; its answer counts as long again."""
LATE_US = 10_000_000
PEERS_MAX = 1_024
STAMPS_MAX = 4_096
"""Of one sender within that time; where there are more, the oldest count as taken."""
STRANGERS_MAX = 64
HELD_MAX = 16
HELD_S = 2.0
"""What strangers say is kept so long, in case they prove themselves."""
ASK_S = 0.5
"""A stranger is not asked more often."""


ANSWERS_MAX = 32
"""In one greeting."""

Life = tuple[NodeId, int]


class Kind(IntEnum):
    WHOLE = 0
    PART = 1
    GREETING = 2


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """To a challenge; `stranger` where who answers has had no proof of the other yet."""

    challenge: int
    stranger: bool


class Opened(msgspec.Struct, frozen=True):
    sender: NodeId
    kind: Kind
    body: bytes


class Frame(msgspec.Struct, frozen=True):
    """As it is on the air, the tag aside."""

    kind: Kind
    life: int
    stamp: int
    challenge: int
    sender: NodeId
    body: bytes


class Peer:
    """A life that has proved itself."""

    __slots__ = ("ahead_us", "floor", "stamps")

    def __init__(self, floor: int) -> None:
        self.ahead_us = 0
        """The most that its stamps were ahead of our clock since its proof: a frame without delay."""
        self.stamps: OrderedDict[int, None] = OrderedDict()
        self.floor = floor
        """Nothing up to this stamp is taken any more."""

    def is_late(self, stamp: int, now_us: int) -> bool:
        return stamp < now_us + self.ahead_us - LATE_US

    def had(self, stamp: int) -> bool:
        return stamp <= self.floor or stamp in self.stamps

    def take(self, stamp: int, now_us: int) -> None:
        """Never again; neither late nor had."""
        self.ahead_us = max(self.ahead_us, stamp - now_us)
        self.stamps[stamp] = None
        horizon = now_us + self.ahead_us - LATE_US
        while self.stamps:
            oldest = next(iter(self.stamps))
            if oldest >= horizon and len(self.stamps) <= STAMPS_MAX:
                break
            del self.stamps[oldest]
            self.floor = max(self.floor, oldest)


class Stranger:
    """A life that has not proved itself, and what it has said lately."""

    __slots__ = ("asked_s", "held")

    def __init__(self) -> None:
        self.asked_s = float("-inf")
        self.held: deque[tuple[float, Frame]] = deque(maxlen=HELD_MAX)


def key_of(secret: bytes) -> bytes:
    """For the seal; of no secret at all it is one that everybody knows."""
    return blake2b(secret, digest_size=32, person=b"godwit air key").digest()


class Seals:
    """`now` gives seconds that never go back, sleep of the machine included; `draw` 64 bits by chance.

    `on_frame` gets every frame that may be believed, in the order in which they are; `on_answer` is called when an
    answer should be sent soon: take it with `greeting`. `dropped` counts by reason.
    """

    def __init__(self, key: bytes, name: NodeId, now: Callable[[], float], draw: Callable[[], int]) -> None:
        self.name = name
        self.now = now
        self.draw = draw
        self.life = draw()
        self.dropped: Counter[str] = Counter()
        self.on_frame: Callable[[Opened], None] = lambda opened: None
        self.on_answer: Callable[[], None] = lambda: None
        self._key = key_of(key)
        self._name = name.encode()
        if not 0 < len(self._name) <= NAME_B_MAX:
            raise ValueError(f"name {name!r}: 1 to {NAME_B_MAX} bytes")
        self._stamp = self._heard_us = 0
        self._peers: OrderedDict[Life, Peer] = OrderedDict()
        self._strangers: OrderedDict[Life, Stranger] = OrderedDict()
        self._challenge = self._before = draw()
        self._renewed_s = now()
        self._answers: dict[int, bool] = {}

    @property
    def overhead_b(self) -> int:
        return HEAD.size + len(self._name) + TAG_B

    def seal(self, kind: Kind, body: bytes) -> bytes:
        """Right before it is sent: a frame is stamped with its time."""
        self._stamp = max(self._stamp + 1, int(self.now() * 1e6))
        self._renew()
        head = HEAD.pack(MAGIC, kind, self.life, self._stamp, self._challenge, len(self._name))
        said = head + self._name + body
        return said + self._tag(said)

    def greeting(self) -> bytes | None:
        """The frame that answers all who asked since the last one."""
        answers, self._answers = self._answers, {}
        if not answers:
            return None
        return self.seal(Kind.GREETING, msgspec.msgpack.encode([Answer(*one) for one in answers.items()]))

    def open(self, data: bytes, age_s: float = 0.0) -> None:
        """What came over the air, so long ago."""
        self._heard_us = int((self.now() - age_s) * 1e6)
        frame = self._read(data)
        if frame is None or frame.life == self.life:
            return
        if frame.sender == self.name:
            self.dropped["namesake"] += 1
            return
        peer = self._peers.get((frame.sender, frame.life))
        if peer is not None and peer.had(frame.stamp):
            self.dropped["replayed"] += 1
        elif frame.kind is Kind.GREETING and self._is_proof(frame):
            self._admit(frame)
        elif peer is None or peer.is_late(frame.stamp, self._heard_us):
            self._meet(frame)
        else:
            peer.take(frame.stamp, self._heard_us)
            self._peers.move_to_end((frame.sender, frame.life))
            self._believe(frame)

    def _read(self, data: bytes) -> Frame | None:
        if len(data) < HEAD.size + TAG_B or data[:2] != MAGIC:
            self.dropped["malformed"] += 1
            return None
        said = data[:-TAG_B]
        if not hmac.compare_digest(self._tag(said), data[-TAG_B:]):
            self.dropped["forged"] += 1
            return None
        _, kind, life, stamp, challenge, length = HEAD.unpack_from(said)
        body_at = HEAD.size + length
        try:
            sender = said[HEAD.size : body_at].decode()
            if not sender or len(said) < body_at:
                raise ValueError
            return Frame(Kind(kind), life, stamp, challenge, sender, said[body_at:])
        except ValueError:
            self.dropped["malformed"] += 1
            return None

    def _tag(self, said: bytes) -> bytes:
        return blake2b(said, key=self._key, digest_size=TAG_B).digest()

    def _renew(self) -> None:
        if self.now() - self._renewed_s >= CHALLENGE_S:
            self._challenge, self._before = self.draw(), self._challenge
            self._renewed_s = self.now()

    def _meet(self, frame: Frame) -> None:
        """Somebody who has proved nothing yet, or whose clock says that this is old."""
        stranger = self._stranger(frame)
        if frame.kind is not Kind.GREETING:
            if len(stranger.held) == HELD_MAX:
                self.dropped["unproven"] += 1
            stranger.held.append((self.now(), frame))
        if self.now() - stranger.asked_s >= ASK_S:
            stranger.asked_s = self.now()
            self._answer(frame.challenge, stranger=True)

    def _stranger(self, frame: Frame) -> Stranger:
        key = (frame.sender, frame.life)
        found = self._strangers.get(key)
        if found is None:
            found = self._strangers[key] = Stranger()
            if len(self._strangers) > STRANGERS_MAX:
                _, gone = self._strangers.popitem(last=False)
                self.dropped["unproven"] += len(gone.held)
        return found

    def _answers_in(self, frame: Frame) -> list[Answer]:
        try:
            return msgspec.msgpack.decode(frame.body, type=list[Answer])
        except msgspec.DecodeError:
            self.dropped["malformed"] += 1
            return []

    def _is_proof(self, frame: Frame) -> bool:
        self._renew()
        return any(answer.challenge in (self._challenge, self._before) for answer in self._answers_in(frame))

    def _admit(self, frame: Frame) -> None:
        """It has answered what was asked a moment ago; so its stamp is of now, whatever its clock did before."""
        life, now_us = (frame.sender, frame.life), self._heard_us
        if life not in self._peers:
            # What it said before it was asked can only be what was kept here since.
            self._peers[life] = Peer(floor=frame.stamp - int(HELD_S * 1e6))
        peer = self._peers[life]
        self._peers.move_to_end(life)
        if len(self._peers) > PEERS_MAX:
            self._peers.popitem(last=False)
        peer.ahead_us = frame.stamp - now_us
        peer.take(frame.stamp, now_us)
        self._believe(frame)
        stranger = self._strangers.pop(life, None)
        for held_s, held in stranger.held if stranger is not None else ():
            if self.now() - held_s > HELD_S or peer.is_late(held.stamp, now_us) or peer.had(held.stamp):
                self.dropped["unproven"] += 1
            else:
                peer.take(held.stamp, now_us)
                self._believe(held)

    def _believe(self, frame: Frame) -> None:
        if frame.kind is not Kind.GREETING:
            self.on_frame(Opened(frame.sender, frame.kind, frame.body))
            return
        for answer in self._answers_in(frame):
            if answer.stranger and answer.challenge in (self._challenge, self._before):
                self._answer(frame.challenge, stranger=False)

    def _answer(self, challenge: int, *, stranger: bool) -> None:
        if len(self._answers) < ANSWERS_MAX:
            self._answers[challenge] = stranger or self._answers.get(challenge, False)
            self.on_answer()
