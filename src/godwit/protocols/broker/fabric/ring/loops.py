"""What a gateway has brought into its ring (docs/sites.md, "A ring inside a site"): it goes to its matching broker, and
from there comes back to the gateway like to everybody else who wants it.

A cut in the stream of an uplink is one for the site only when all that came before it is back. A probe is sent after it
to each target that was used: it takes the same way, waits where that waits, and its answer comes behind it.

And what a client said that has left, where it is still kept here: a probe goes behind that, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from godwit.protocols.broker.fabric.ring.atlas import TABLE
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Routed
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Store
from godwit.protocols.gathering.areas import Keyed, Spot
from godwit.protocols.host import Host

ROWS, FOLLOWING = "loop", "following"
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
        self.on_back: Callable[[int], None] = lambda ticket: None
        """The probe of this number, which follows something, is back."""
        self._following: dict[int, Publication] = {}
        """Probes that follow something and are not back. On the disk each is in custody or under way itself, and their
        rows say which to send again where another broker loses its disk."""
        for owner, number, row in store.load(TABLE):
            if owner == FOLLOWING:
                self._following[number] = msgspec.msgpack.decode(row, type=Publication)
            elif owner == ROWS:
                probe = msgspec.msgpack.decode(row, type=Publication)
                self._used[targets.of_publication(probe)] = Used(number, probe)
                self._row = max(self._row, number)

    def add(self, publication: Publication) -> None:
        """It was sent to be matched elsewhere. This is written in the turn that sends it."""
        target = self.targets.of_publication(publication)
        if target in self._used:
            return
        self._row += 1
        self._used[target] = Used(self._row, _probe_of(publication, target))
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

    def follow(self, publications: Iterable[Publication]) -> list[int]:
        """Sends a probe behind these to each of their targets; `on_back` follows with each of these numbers."""
        found = {self.targets.of_publication(one): one for one in publications}
        tickets = []
        for target, one in found.items():
            self._serial += 1
            self._following[self._serial] = probe = _probe_of(one, target)
            self.store.put(TABLE, FOLLOWING, self._serial, msgspec.msgpack.encode(probe))
            self._follow(self._serial, probe)
            tickets.append(self._serial)
        return tickets

    def again(self) -> None:
        """A broker has lost its disk, and perhaps a probe or its answer. Whichever answer comes first counts."""
        for ticket, probe in list(self._following.items()):
            self._follow(ticket, probe)

    def _follow(self, ticket: int, probe: Publication) -> None:
        self.send(Routed(probe, probe=ticket, by=self.host.name))

    def passed(self, ticket: int) -> None:
        if self._following.pop(ticket, None) is not None:
            self.store.delete(TABLE, FOLLOWING, ticket)
            self.on_back(ticket)
        used = self._under_way.pop(ticket, None)
        if used is not None:
            self.store.delete(TABLE, ROWS, used.row)
            for tickets, _ in self._waiting:
                tickets.discard(ticket)
            self._look()

    def _look(self) -> None:
        while self._waiting and not self._waiting[0][0]:
            self._waiting.pop(0)[1]()


def _probe_of(publication: Publication, target: Keyed | Spot) -> Publication:
    payload = publication.payload if isinstance(target, Spot) else b""
    return Publication("", 0, publication.topic, payload, qos=1)


def _nothing() -> None: ...
