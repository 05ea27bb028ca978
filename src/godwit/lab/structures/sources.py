"""What the interfaces of a table say, given what they want."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.lab.workloads import Script, Subscription
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.table import Interface


class Change(NamedTuple):
    """One message of an interface: a new filter, or one that goes together with what it had covered."""

    interface: Interface
    removed: tuple[Filter, ...] = ()
    uncovered: tuple[Filter, ...] = ()
    added: tuple[Filter, ...] = ()


class Phase(NamedTuple):
    """Messages, and what the interfaces then believe the table to hold."""

    changes: list[Change]
    held: frozenset[Subscription]


class Source:
    """One interface. It may want the same filter several times, and says so once.

    A *reduced* one is the intermediate layer of the hierarchical experiment, and what every neighboring router is: it
    tells only what no other of its filters covers, counts on the receiver to drop what a new filter covers, and sends
    along with a withdrawal what that uncovers.
    """

    def __init__(self, interface: Interface, *, reduced: bool) -> None:
        self.interface = interface
        self.reduced = reduced
        self._copies: Counter[Filter] = Counter()
        self._table = Forest(FILTERS, LOCAL)

    def told(self) -> list[Filter]:
        return self._table.roots() if self.reduced else list(self._copies)

    def add(self, wanted: Filter) -> Change | None:
        self._copies[wanted] += 1
        if self._copies[wanted] > 1:
            return None
        if self.reduced:
            self._table.add(wanted, self.interface)
            if not self._table.is_root(wanted):
                return None
        return Change(self.interface, added=(wanted,))

    def remove(self, wanted: Filter) -> Change | None:
        self._copies[wanted] -= 1
        if self._copies[wanted]:
            return None
        del self._copies[wanted]
        if not self.reduced:
            return Change(self.interface, removed=(wanted,))
        was_told, below = self._table.is_root(wanted), self._table.children(wanted)
        self._table.remove(wanted, self.interface)
        if not was_told:
            return None
        return Change(self.interface, (wanted,), tuple(one for one in below if self._table.is_root(one)))


def phases(script: Script, *, reduced: bool) -> tuple[Phase, Phase]:
    """How a script reaches a table: first all filters come, then they are replaced one by one."""
    wanted = list(script.subscriptions)
    sources = {one.interface: Source(one.interface, reduced=reduced) for one in wanted}
    coming = [sources[one.interface].add(one.wanted) for one in wanted]
    built = Phase([change for change in coming if change], _held(sources))
    replacing = []
    for place, new in script.replacements:
        old, interface = wanted[place]
        wanted[place] = Subscription(new, interface)
        replacing += [sources[interface].remove(old), sources[interface].add(new)]
    return built, Phase([change for change in replacing if change], _held(sources))


def wishes(script: Script) -> tuple[list[Subscription], list[Subscription]]:
    """All that is wanted before and after the replacements."""
    wanted = list(script.subscriptions)
    for place, new in script.replacements:
        wanted[place] = Subscription(new, wanted[place].interface)
    return script.subscriptions, wanted


def _held(sources: dict[Interface, Source]) -> frozenset[Subscription]:
    return frozenset(Subscription(one, source.interface) for source in sources.values() for one in source.told())
