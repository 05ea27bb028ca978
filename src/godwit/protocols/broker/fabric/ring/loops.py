"""What a gateway has brought into its ring (docs/sites.md, "A ring inside a site"): it goes to its matching broker, and
from there comes back to the gateway like to everybody else who wants it.

A cut in the stream of an uplink is one for the site only when all that came before it is back. A probe is sent after it
to each target that was used: it takes the same way, waits where that waits, and its answer comes behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.gathering.areas import Keyed, Spot
from godwit.protocols.host import Host

ROWS = "loop"
USED_MAX = 64
"""Where more targets were used, as by what is matched where it happened, probes are sent meanwhile."""


class Used(msgspec.Struct, frozen=True):
    """A target since the last probe to it, by something that goes the same way; and its row."""

    row: int
    probe: Publication


class Loops:
    """`send(routed)` sends a probe on its way; `passed` must be called with the number of each that has come back."""

    def __init__(self, host: Host, store: Store, targets: Targets, send: Callable[[Routed], None]) -> None:
        self.host = host
        self.store = store
        self.targets = targets
        self.send = send
        self._used: dict[Keyed | Spot, Used] = {}
        self._row = 0
        self._serial = host.random.getrandbits(31)
        self._under_way: dict[int, Used] = {}
        """Probes that are not back, by their numbers. Their rows stay until they are: a crash sends them again."""
        self._waiting: list[tuple[set[int], Callable[[], None]]] = []
        for owner, number, row in store.load(TABLE):
            if owner == ROWS:
                probe = msgspec.msgpack.decode(row, type=Publication)
                self._used[targets.of_publication(probe)] = Used(number, probe)
                self._row = max(self._row, number)

    def add(self, publication: Publication) -> None:
        """It was sent to be matched elsewhere. This is written in the turn that sends it."""
        target = self.targets.of_publication(publication)
        if target in self._used:
            return
        payload = publication.payload if isinstance(target, Spot) else b""
        self._row += 1
        self._used[target] = Used(self._row, Publication("", 0, publication.topic, payload, qos=1))
        self.store.put(TABLE, ROWS, self._row, msgspec.msgpack.encode(self._used[target].probe))
        if len(self._used) > USED_MAX:
            self.host.after(0.0, partial(self.flush, _nothing))

    def flush(self, then: Callable[[], None]) -> None:
        """`then` follows once all that was sent before is back, as far as this broker wants it."""
        used, self._used = list(self._used.values()), {}
        probes = list(enumerate(used, self._serial + 1))
        self._serial += len(used)
        self._under_way.update(probes)
        self._waiting.append((set(self._under_way), then))
        for ticket, one in probes:
            self.send(Routed(one.probe, probe=ticket, by=self.host.name))
        self._look()

    def passed(self, ticket: int) -> None:
        used = self._under_way.pop(ticket, None)
        if used is not None:
            self.store.delete(TABLE, ROWS, used.row)
            for tickets, _ in self._waiting:
                tickets.discard(ticket)
            self._look()

    def _look(self) -> None:
        while self._waiting and not self._waiting[0][0]:
            self._waiting.pop(0)[1]()


def _nothing() -> None: ...
