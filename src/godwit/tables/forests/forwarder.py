"""From what one interface says to what the neighbors are told, in single messages that lose nothing (spec 2.3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

from godwit.tables.merging.merging import Update
from godwit.tables.table import F, Forwarding, Interface, N


class Forwarder(Generic[F, N]):
    """A router's side of subscription forwarding (Algorithm 2), for whatever table can tell its forwards sets.

    Each call changes the table and returns one update for each neighbor that must be told, by name. The caller sends
    them on links that keep their order; the other side gives them to `apply`. With the master as the only neighbor
    this is hierarchical routing (spec 2.7.1): only changes of the root set go up.
    """

    def __init__(self, table: Forwarding[F, N]) -> None:
        self.table = table

    def subscribe(self, wanted: F, source: Interface) -> dict[Interface, Update[F]]:
        return self.apply(Update(added=(wanted,)), source)

    def unsubscribe(self, wanted: F, source: Interface) -> dict[Interface, Update[F]]:
        """The source must send, in the same update, what the filter had covered: use `apply` where there is any."""
        return self.apply(Update(removed=(wanted,)), source)

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        """What a source says at once is passed on at once: between the parts of an update, events would be lost."""
        removed: dict[Interface, dict[F, None]] = {}
        added: dict[Interface, dict[F, None]] = {}
        for wanted in update.removed:
            for neighbor, uncovered in self.table.retract(wanted, source).items():
                removed.setdefault(neighbor, {})[wanted] = None
                # The receiver forgets first: what an earlier step uncovered and this one takes back must not be sent.
                added.setdefault(neighbor, {}).pop(wanted, None)
                added[neighbor].update(dict.fromkeys(uncovered))
        news = {wanted: self.table.announce(wanted, source) for wanted in update.added}
        if any(news.values()):
            self._drop_covered(added)
        for wanted, neighbors in news.items():
            for neighbor in neighbors:
                added.setdefault(neighbor, {})[wanted] = None
        return {e: Update(tuple(removed.get(e, ())), tuple(added[e])) for e in sorted(added)}

    def replace(self, filters: Iterable[F], source: Interface) -> dict[Interface, Update[F]]:
        """Take these for all that the source wants: how a slave with a redundant forest reports its root set."""
        filters = dict.fromkeys(filters)
        held = [f for f in self.table if source in self.table.interfaces(f)]
        return self.apply(Update(tuple(f for f in held if f not in filters), tuple(filters)), source)

    def drop(self, source: Interface) -> dict[Interface, Update[F]]:
        """Forget the source and all it wanted."""
        return self.replace((), source)

    def told(self, neighbor: Interface) -> list[F]:
        """What this neighbor must hold, by exact forwards sets."""
        return [wanted for wanted in self.table.heads() if neighbor in self.table.forwards(wanted)]

    def _drop_covered(self, uncovered: dict[Interface, dict[F, None]]) -> None:
        """Leave out what the rest of the same update has covered again."""
        for neighbor, filters in uncovered.items():
            for wanted in [f for f in filters if neighbor not in self.table.forwards(f)]:
                del filters[wanted]
