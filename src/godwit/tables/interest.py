"""The interest of a broker (design: sessions over interest over a fabric): all that its clients want, in few filters.

Two reductions after one another: a forest keeps every client's filters and knows which of them nobody else's covers;
root-set merging says the same with fewer. Only changes of the result leave the broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from godwit.filters.filters import Filter, FilterSet
from godwit.filters.language import Filters, Language
from godwit.filters.predicates import Values
from godwit.tables.forest import LOCAL, Forest
from godwit.tables.merging import Update
from godwit.tables.rootset import MergedRoots

DISJUNCTS_MAX = 16
"""A merger that grows is sent whole each time, so that without a limit n equalities on one name would cost n * n."""

CLIENTS = "clients"
"""The one interface of the table: who wants a filter is counted here, so that the table need not know."""


class Concise(Filters):
    """Perfect merging that stops before a merger gets long."""

    def __init__(self, disjuncts_max: int = DISJUNCTS_MAX) -> None:
        super().__init__()
        self.disjuncts_max = disjuncts_max

    def merge(self, one: Filter, other: Filter, /) -> Filter | None:
        merged = super().merge(one, other)
        if merged is None or any(len(attribute.clause) > self.disjuncts_max for attribute in merged):
            return None
        return merged


class Interest:
    """What all clients together want. Each call returns the change that it makes to `filters`, as one atomic update.

    An event is accepted by `filters` exactly when some client's filter set accepts it. A client may hold the same
    filter set several times, and removes it as often.
    """

    def __init__(self, language: Language[Filter, Values] | None = None) -> None:
        language = language or Concise()
        self._table = Forest(language, LOCAL)
        self._merged = MergedRoots(language, eager=True)
        self._held: dict[str, Counter[FilterSet]] = {}
        self._uses: Counter[Filter] = Counter()

    def add(self, wanted: FilterSet, client: str) -> Update[Filter]:
        return self.change(client, added=[wanted])

    def remove(self, wanted: FilterSet, client: str) -> Update[Filter]:
        """Forget what was added; nothing changes where the client does not hold it."""
        return self.change(client, removed=[wanted])

    def drop(self, client: str) -> Update[Filter]:
        """Forget all that a client wanted."""
        return self.change(client, removed=list(self._held.get(client, Counter()).elements()))

    def change(
        self, client: str, *, added: Iterable[FilterSet] = (), removed: Iterable[FilterSet] = ()
    ) -> Update[Filter]:
        """Several at once, as when a client replaces a filter set: what is in both never leaves `filters`."""
        held = self._held.setdefault(client, Counter())
        changed = False
        for wanted in added:
            held[wanted] += 1
            changed |= self._use(wanted)
        for wanted in removed:
            if held[wanted]:
                held[wanted] -= 1
                changed |= self._release(wanted)
        self._held[client] = +held
        if not self._held[client]:
            del self._held[client]
        return self._merged.follow(self._table.roots()) if changed else Update()

    def filters(self) -> FilterSet:
        """The interest in canonical form: it depends on all that happened, its meaning only on what clients hold."""
        return FilterSet(tuple(sorted(self._merged.propagated(), key=repr)))

    def clients(self) -> list[str]:
        return list(self._held)

    def _use(self, wanted: FilterSet) -> bool:
        """Count its filters, and put those into the table that nobody wanted before."""
        new = [one for one in wanted if not self._uses[one]]
        self._uses.update(wanted)
        for one in new:
            self._table.add(one, CLIENTS)
        return bool(new)

    def _release(self, wanted: FilterSet) -> bool:
        self._uses.subtract(wanted)
        unused = [one for one in wanted if not self._uses[one]]
        for one in unused:
            del self._uses[one]
            self._table.remove(one, CLIENTS)
        return bool(unused)
