"""The double forest (spec 2.12): profiles and queries that both last, and who is concerned when one of them changes.

A profile says what is, a query what somebody wants to know; either may come first. Each kind has a forest of its own,
and each filter the set of those of the other kind that it matches. A new filter stands in its forest below what covers
it and above what it covers, and their sets bound its own: most tests are saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Set
from enum import Enum
from typing import Generic

from godwit.filters.language import Language
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.nodes import Node
from godwit.tables.table import DEFAULT, F, N

STAND_IN = "\0stand-in"
"""The name under which a filter is there before anybody has it."""


class Side(Enum):
    """Which of the two forests a filter belongs to."""

    PROFILES = "profiles"
    QUERIES = "queries"

    @property
    def other(self) -> Side:
        return Side.QUERIES if self is Side.PROFILES else Side.PROFILES


class Sense(Enum):
    """When a query and a profile match."""

    COVER = "cover"
    """The query covers the profile."""
    OVERLAP = "overlap"
    """Something could be in both."""


class Effort(Enum):
    """How the matches of a new filter are found; all find the same."""

    SETS = "sets"
    """Test it against all of the other kind."""
    PLAIN = "plain"
    """Walk through the other forest."""
    BOUNDED = "bounded"
    """The same, with the sets of its parent and children as bounds."""


class DoubleForest(Generic[F, N]):
    """Profiles and queries under names. Several names may have the same filter: it is compared once.

    What `add` and `remove` return is whom the change concerns: the filters of the other kind, held under some name,
    that match what has come or gone. It is empty where nothing changes.
    """

    def __init__(
        self, language: Language[F, N] = DEFAULT, sense: Sense = Sense.COVER, effort: Effort = Effort.BOUNDED
    ) -> None:
        self.language = language
        self.sense = sense
        self.effort = effort
        self.forests: dict[Side, Forest[F, N]] = {side: Forest(language, LOCAL) for side in Side}
        """To look at. Without a forest's help (`Effort.SETS`) they stay empty."""
        self._matches: dict[Side, dict[F, set[F]]] = {side: {} for side in Side}
        self._names: dict[Side, dict[F, set[str]]] = {side: {} for side in Side}

    def add(self, side: Side, wanted: F, name: str) -> set[F]:
        names = self._names[side].setdefault(wanted, set())
        if name in names:
            return set()
        names.add(name)
        if wanted not in self._matches[side]:
            self._enter(side, wanted)
        return self.matches(side, wanted)

    def remove(self, side: Side, wanted: F, name: str) -> set[F]:
        names = self._names[side].get(wanted, set())
        if name not in names:
            return set()
        concerned = self.matches(side, wanted)
        names.discard(name)
        if not names:
            self._leave(side, wanted)
        return concerned

    def preload(self, side: Side, wanted: Iterable[F]) -> None:
        """Filters that somebody is expected to have: from then on each costs a look-up to add and to remove (theorem
        7.1). Nobody hears of them until they have a name."""
        for one in wanted:
            self.add(side, one, STAND_IN)

    def unload(self, side: Side, wanted: Iterable[F]) -> None:
        """They are not expected any longer; what has a name stays."""
        for one in wanted:
            self.remove(side, one, STAND_IN)

    def matches(self, side: Side, wanted: F) -> set[F]:
        """Those of the other kind that match this one and have a name."""
        names = self._names[side.other]
        return {one for one in self._matches[side].get(wanted, ()) if names[one] != {STAND_IN}}

    def names(self, side: Side, wanted: F) -> Set[str]:
        """Who has it."""
        return self._names[side].get(wanted, set()) - {STAND_IN}

    def held(self, side: Side) -> list[F]:
        """All that have a name."""
        return [one for one, names in self._names[side].items() if names != {STAND_IN}]

    def _enter(self, side: Side, wanted: F) -> None:
        found = self._find(side, wanted)
        self._matches[side][wanted] = found
        for one in found:
            self._matches[side.other][one].add(wanted)

    def _leave(self, side: Side, wanted: F) -> None:
        del self._names[side][wanted]
        for one in self._matches[side].pop(wanted):
            self._matches[side.other][one].discard(wanted)
        if self.effort is not Effort.SETS:
            self.forests[side].remove(wanted, STAND_IN)

    def _find(self, side: Side, wanted: F) -> set[F]:
        if self.effort is Effort.SETS:
            return {one for one in self._matches[side.other] if self._match(side, wanted, one)}
        # Whoever has it is noted here: in the forest it needs only be there.
        self.forests[side].add(wanted, STAND_IN)
        upper, lower = self._bounds(side, wanted) if self.effort is Effort.BOUNDED else (None, None)
        if upper is not None and (self.sense is Sense.OVERLAP or side is Side.PROFILES):
            certain = lower or set()
            return certain | {one for one in upper - certain if self._match(side, wanted, one)}
        tops = self.forests[side.other].tops(self.language.type_of(wanted))
        if self.sense is Sense.OVERLAP:
            return self._overlapping(wanted, tops, lower)
        if side is Side.PROFILES:
            return self._covering(wanted, tops, lower)
        return self._covered(wanted, tops, upper, lower)

    def _match(self, side: Side, wanted: F, other: F) -> bool:
        if self.sense is Sense.OVERLAP:
            return self.language.overlaps(wanted, other)
        query, profile = (other, wanted) if side is Side.PROFILES else (wanted, other)
        return self.language.covers(query, profile)

    def _bounds(self, side: Side, wanted: F) -> tuple[set[F] | None, set[F] | None]:
        """Table 6.1: what its matches are among, and what is among its matches; None where nothing is known.

        Who is covered by much matches much: it is the parent whose set is the larger one, but for profiles that are to
        be covered, where it is the smaller one. A root has no parent, and then nothing is known from above."""
        node, known = self.forests[side].node(wanted), self._matches[side]
        above = known[node.parent.filter] if node.parent is not None else None
        below = set().union(*(known[child.filter] for child in node.children)) if node.children else None
        return (below, above) if self.sense is Sense.COVER and side is Side.PROFILES else (above, below)

    def _covering(self, profile: F, tops: Iterable[Node[F]], lower: set[F] | None) -> set[F]:
        """The queries that cover it: below one that does not, none does."""
        found, queue = set(), deque(tops)
        while queue:
            node = queue.popleft()
            if (lower is not None and node.filter in lower) or self.language.covers(node.filter, profile):
                found.add(node.filter)
                queue.extend(node.children)
        return found

    def _covered(self, query: F, tops: Iterable[Node[F]], upper: set[F] | None, lower: set[F] | None) -> set[F]:
        """The profiles that it covers: below one that it covers, all are."""
        found: set[F] = set()
        queue = deque(tops)
        while queue:
            node = queue.popleft()
            hit = lower is not None and node.filter in lower
            possible = upper is None or node.filter in upper
            if hit or (possible and self.language.covers(query, node.filter)):
                found.update(one.filter for one in node.subtree())
            else:
                queue.extend(node.children)
        return found

    def _overlapping(self, wanted: F, tops: Iterable[Node[F]], lower: set[F] | None) -> set[F]:
        """Below one that has nothing in common with it, none has."""
        found, queue = set(), deque(tops)
        while queue:
            node = queue.popleft()
            if (lower is not None and node.filter in lower) or self.language.overlaps(wanted, node.filter):
                found.add(node.filter)
                queue.extend(node.children)
        return found
