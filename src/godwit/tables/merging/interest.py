"""The interest of a broker (design: sessions over interest over a fabric): all that its clients want, in few filters.

Two reductions after one another: a forest keeps every client's filters and knows which of them nobody else's covers;
root-set merging says the same with fewer. Only changes of the result leave the broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from godwit.filters.filters import Filter, FilterSet
from godwit.filters.language import Filters
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.forests.kin import demands
from godwit.tables.forests.ranges import ranges
from godwit.tables.forests.rootset import MergedRoots
from godwit.tables.merging.merging import Update

DISJUNCTS_MAX = 16
"""A merger that grows is sent whole each time, so that without a limit n equalities on one name would cost n * n."""

CLIENTS = "clients"
"""The one interface of the table: who wants a filter is counted here, so that the table need not know."""


class Concise(Filters):
    """Merging that stops before a clause gets long; perfect unless told otherwise."""

    def __init__(self, *, disjuncts_max: int = DISJUNCTS_MAX, imperfect: bool = False) -> None:
        super().__init__(imperfect=imperfect)
        self.disjuncts_max = disjuncts_max

    def merge(self, one: Filter, other: Filter, /) -> Filter | None:
        merged = super().merge(one, other)
        if merged is None or any(len(attribute.clause) > self.disjuncts_max for attribute in merged):
            return None
        return merged

    def keys(self, wanted: Filter) -> Iterator[Hashable]:
        """What it shares with all filters that it merges with, neither covering the other.

        Imperfectly merged, that is the attributes; perfectly, all attribute filters but one, which is not full yet.
        """
        attributes = wanted.attributes
        if self.imperfect:
            yield tuple(attribute.key for attribute in attributes)
            return
        for at, attribute in enumerate(attributes):
            if len(attribute.clause) < self.disjuncts_max:
                yield attributes[:at], attribute.key, attributes[at + 1 :]


class Interest:
    """What all clients together want. Each call returns the change that it makes to `filters`, as one atomic update.

    An event is accepted by `filters` exactly when some client's filter set accepts it, or also by chance where merging
    is imperfect. A client may hold the same filter set several times, and removes it as often.
    """

    def __init__(self, language: Concise | None = None) -> None:
        language = language or Concise()
        self._table = Forest(language, LOCAL, keys=demands, ranges=ranges)
        self._merged = MergedRoots(
            language, eager=True, keys=language.keys, perfect=not language.imperfect, ranges=ranges
        )
        self._held: dict[str, Counter[FilterSet]] = {}
        self._uses: Counter[Filter] = Counter()
        self._names: dict[Filter, str] = {}
        """Of what `filters` said last: writing them is dear, and few change."""

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
        concerned: dict[Filter, None] = {}
        for wanted in added:
            held[wanted] += 1
            concerned.update(dict.fromkeys(self._use(wanted)))
        for wanted in removed:
            if held.get(wanted):
                held[wanted] -= 1
                concerned.update(dict.fromkeys(self._release(wanted)))
                if not held[wanted]:
                    del held[wanted]
        if not held:
            del self._held[client]
        return self._follow(concerned)

    def filters(self) -> FilterSet:
        """The interest in canonical form: it depends on all that happened, its meaning only on what clients hold."""
        known = self._names
        self._names = names = {one: known.get(one) or repr(one) for one in self._merged.propagated()}
        return FilterSet(tuple(sorted(names, key=names.__getitem__)))

    def clients(self) -> list[str]:
        return list(self._held)

    def _use(self, wanted: FilterSet) -> list[Filter]:
        """Put into the table what nobody wanted before; returns all that may have become a root or ceased to be one."""
        concerned = []
        for one in wanted:
            self._uses[one] += 1
            if self._uses[one] == 1:
                self._table.add(one, CLIENTS)
                concerned += [one, *self._table.children(one)]
        return concerned

    def _release(self, wanted: FilterSet) -> list[Filter]:
        concerned = []
        for one in wanted:
            self._uses[one] -= 1
            if not self._uses[one]:
                del self._uses[one]
                concerned += [one, *self._table.children(one)]
                self._table.remove(one, CLIENTS)
        return concerned

    def _follow(self, concerned: Iterable[Filter]) -> Update[Filter]:
        known = self._merged.roots
        return self._merged.change(
            came=[one for one in concerned if self._table.is_root(one) and one not in known],
            went=[one for one in concerned if one in known and not self._table.is_root(one)],
        )
