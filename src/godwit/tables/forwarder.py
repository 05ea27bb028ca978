"""From what one interface says to what the neighbours are told, in single messages that lose nothing (spec 2.3.1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic

import msgspec

from godwit.tables.table import F, Forwarding, Interface, N


class Update(msgspec.Struct, Generic[F], frozen=True):
    """What one router tells another in one message, applied as a whole: first forget, then learn."""

    forget: tuple[F, ...] = ()
    learn: tuple[F, ...] = ()


class Forwarder(Generic[F, N]):
    """A router's side of subscription forwarding (Algorithm 2), for whatever table can tell its forwards sets.

    Each call changes the table and returns one update for each neighbour that must be told, by name. The caller sends
    them on links that keep their order; the other side gives them to `apply`. With the master as the only neighbour
    this is hierarchical routing (spec 2.7.1): only changes of the root set go up.
    """

    def __init__(self, table: Forwarding[F, N]) -> None:
        self.table = table

    def subscribe(self, wanted: F, source: Interface) -> dict[Interface, Update[F]]:
        return self.apply(Update(learn=(wanted,)), source)

    def unsubscribe(self, wanted: F, source: Interface) -> dict[Interface, Update[F]]:
        """The source must send, in the same update, what the filter had covered: use `apply` where there is any."""
        return self.apply(Update(forget=(wanted,)), source)

    def apply(self, update: Update[F], source: Interface) -> dict[Interface, Update[F]]:
        """What a source says at once is passed on at once: between the parts of an update, events would be lost."""
        news = _News[F]()
        for wanted in update.forget:
            for neighbour, uncovered in self.table.retract(wanted, source).items():
                news.forget(neighbour, wanted)
                news.learn(neighbour, uncovered)
        for wanted in update.learn:
            for neighbour in self.table.announce(wanted, source):
                news.learn(neighbour, [wanted])
        return news.updates()

    def replace(self, filters: Iterable[F], source: Interface) -> dict[Interface, Update[F]]:
        """Take these for all that the source wants: how a slave with a redundant forest reports its root set."""
        filters = dict.fromkeys(filters)
        held = [f for f in self.table if source in self.table.interfaces(f)]
        return self.apply(Update(tuple(f for f in held if f not in filters), tuple(filters)), source)

    def drop(self, source: Interface) -> dict[Interface, Update[F]]:
        """Forget the source and all it wanted."""
        return self.replace((), source)


class _News(Generic[F]):
    """Updates in the making. As receivers forget first, what is learnt and then forgotten must not be learnt at all."""

    def __init__(self) -> None:
        self._forget: dict[Interface, dict[F, None]] = {}
        self._learn: dict[Interface, dict[F, None]] = {}

    def forget(self, neighbour: Interface, wanted: F) -> None:
        self._forget.setdefault(neighbour, {})[wanted] = None
        self._learn.setdefault(neighbour, {}).pop(wanted, None)

    def learn(self, neighbour: Interface, filters: Iterable[F]) -> None:
        self._learn.setdefault(neighbour, {}).update(dict.fromkeys(filters))

    def updates(self) -> dict[Interface, Update[F]]:
        return {
            neighbour: Update(tuple(self._forget.get(neighbour, ())), tuple(learn))
            for neighbour, learn in sorted(self._learn.items())
        }
