"""Per-hop acknowledgement (spec data-gathering F18): repeated until confirmed, taken once, given up in the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from godwit.protocols.host import Host, NodeId
from godwit.protocols.topology.pastry.messages import Hop, HopAck

REMEMBERED = 512
"""How many numbers of each peer are kept to recognise a repetition."""

Failed = Callable[[], None]


class Sent(msgspec.Struct):
    """A transmission that has not been confirmed yet."""

    to: NodeId
    hop: Hop[Any]
    tries: int
    due_s: float
    failed: Failed | None


class Links:
    """All waiting times are alike, so what was sent first is due first: one timer serves all transmissions."""

    def __init__(self, host: Host, *, ack_s: float = 1.0, tries: int = 3) -> None:
        self.host = host
        self.ack_s = ack_s
        self.tries = tries
        # Whoever remembers the numbers of this node's last life must not take the first of this one for repetitions.
        self._number = host.random.getrandbits(40)
        self._waiting: dict[int, Sent] = {}
        self._seen: dict[NodeId, dict[int, None]] = {}
        self._armed = False

    def send(self, to: NodeId, body: Any, failed: Failed | None = None) -> None:
        self._number += 1
        hop = Hop(self._number, body)
        self._waiting[self._number] = Sent(to, hop, 1, self.host.now() + self.ack_s, failed)
        self.host.send(to, hop)
        if not self._armed:
            self._arm(self.ack_s)

    def confirm(self, ack: HopAck) -> None:
        self._waiting.pop(ack.number, None)

    def opened(self, sender: NodeId, hop: Hop[Any]) -> bool:
        """Confirm it; whether it is new."""
        self.host.send(sender, HopAck(hop.number))
        seen = self._seen.setdefault(sender, {})
        if hop.number in seen:
            return False
        seen[hop.number] = None
        if len(seen) > REMEMBERED:
            del seen[next(iter(seen))]
        return True

    @property
    def unconfirmed(self) -> int:
        return len(self._waiting)

    def _arm(self, delay_s: float) -> None:
        self._armed = True
        self.host.after(delay_s, self._sweep)

    def _sweep(self) -> None:
        self._armed = False
        now = self.host.now()
        due = []
        for number, sent in self._waiting.items():
            if sent.due_s > now:
                break
            due.append(number)
        lost = [sent for number in due if not self._again(sent := self._waiting.pop(number), now)]
        if self._waiting and not self._armed:
            self._arm(max(0.0, next(iter(self._waiting.values())).due_s - now))
        for sent in lost:
            if sent.failed is not None:
                sent.failed()

    def _again(self, sent: Sent, now: float) -> bool:
        if sent.tries >= self.tries:
            return False
        sent.tries += 1
        sent.due_s = now + self.ack_s
        self._waiting[sent.hop.number] = sent
        self.host.send(sent.to, sent.hop)
        return True
