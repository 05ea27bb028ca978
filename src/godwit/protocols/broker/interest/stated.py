"""All that the sessions of a broker want, in few filters: what it states to the others.

Covering and merging (`tables.interest`) is dear where many filters barely cover one another. So where a broker's
clients ask for very much that is alike, it states something wider in its place: the topic filter without its many
conditions, the first level with everything below, or all topics. Where all conditions name areas, the topic filter
keeps the tiles of the globe that hold them (`tiles`). That costs traffic and never loses anything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from godwit.filters.filters import Filter, FilterSet, filter_of
from godwit.protocols.broker.interest.tiles import Tiles
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.host import Host
from godwit.tables.merging.interest import Interest

CONDITIONS_MAX = 64
TOPICS_MAX = 128
FIRST_LEVELS_MAX = 64

EVERYTHING = "#"


class _Held:
    """What is wanted of one topic filter."""

    __slots__ = ("conditions", "plain", "tiles", "wide")

    def __init__(self) -> None:
        self.plain = 0
        self.conditions: Counter[FilterSet] = Counter()
        self.wide = False
        self.tiles: Tiles | None = None
        """Of all conditions, while they are too many to be stated."""

    def add(self, filters: FilterSet | None) -> None:
        if filters is None:
            self.plain += 1
            return
        self.conditions[filters] += 1
        if self.tiles is not None and self.conditions[filters] == 1:
            self.tiles.add(filters)

    def remove(self, filters: FilterSet | None) -> None:
        if filters is None:
            self.plain -= 1
            return
        self.conditions[filters] -= 1
        if self.conditions[filters]:
            return
        del self.conditions[filters]
        if self.tiles is not None:
            self.tiles.remove(filters)

    def stated(self, topics: str) -> Iterable[FilterSet]:
        self.wide = _still(self.wide, len(self.conditions), CONDITIONS_MAX)
        if not self.wide:
            self.tiles = None
        elif self.tiles is None:
            self.tiles = Tiles(self.conditions)
        if self.plain or self.tiles is not None:
            place = self.tiles.stated() if self.tiles is not None and not self.plain else None
            return (wanted_filters(topics, None if place is None else FilterSet((filter_of(place),))),)
        return self.conditions


def _still(wide: bool, count: int, maximum: int) -> bool:
    """Wide beyond the maximum, and narrow again only well below: else each client that comes or goes would restate."""
    return count > (maximum // 2 if wide else maximum)


class Wants:
    """Tell it whatever sessions want and no longer want; `review` then says whether the statement has changed.

    `filters` accepts every publication that some session wants, and perhaps more.
    """

    def __init__(self) -> None:
        self._firsts: dict[str, dict[str, _Held]] = {}
        self._wide: set[str] = set()
        self._all = False
        self._changed: set[str] = set()
        self._stated: dict[str, set[FilterSet]] = {}
        self._interest = Interest()

    def add(self, topics: str, filters: FilterSet | None) -> None:
        """One more wants this; None: whatever the content."""
        first = topics.partition("/")[0]
        held = self._firsts.setdefault(first, {}).setdefault(topics, _Held())
        held.add(filters)
        self._changed.add(first)

    def remove(self, topics: str, filters: FilterSet | None) -> None:
        """What was added."""
        first = topics.partition("/")[0]
        held = self._firsts[first][topics]
        held.remove(filters)
        if not held.plain and not held.conditions:
            del self._firsts[first][topics]
            if not self._firsts[first]:
                del self._firsts[first]
        self._changed.add(first)

    def review(self) -> bool:
        """Follow what was told since; True where `filters` says something else now."""
        changed, self._changed = self._changed, set()
        was_all = self._all
        self._all = _still(was_all, len(self._firsts), FIRST_LEVELS_MAX)
        if self._all is not was_all:
            changed |= self._firsts.keys() | {EVERYTHING}
        changes = [self._state(first) for first in sorted(changed)]
        return any(changes)

    def filters(self) -> tuple[Filter, ...]:
        """The statement as of the last review."""
        return self._interest.filters().filters

    def _state(self, first: str) -> bool:
        wanted, stated = self._wanted(first), self._stated.pop(first, set())
        if wanted:
            self._stated[first] = wanted
        added, removed = wanted - stated, stated - wanted
        if not added and not removed:
            return False
        update = self._interest.change(first, added=sorted(added, key=repr), removed=sorted(removed, key=repr))
        return bool(update.added or update.removed)

    def _wanted(self, first: str) -> set[FilterSet]:
        if self._all:
            if first == EVERYTHING:
                return {wanted_filters(EVERYTHING, None)}
            if not first.startswith("$"):
                return set()
        group = self._firsts.get(first, {})
        wide = _still(first in self._wide, len(group), TOPICS_MAX)
        (self._wide.add if wide else self._wide.discard)(first)
        if wide:
            return {wanted_filters(f"{first}/#" if first != EVERYTHING else first, None)}
        return {filters for topics, held in group.items() for filters in held.stated(topics)}


# What a broker wants, told to the others, with what has gone kept up for a while where it may soon be wanted again.

LINGER_S = 10.0
"""How long what a copy or a shadow wanted is stated after it has gone. Clients that hop make and end both all the time:
others would be told of each, to work it into their tables, and brokers would wait for it before they turn. Meanwhile
somebody may send what nobody wants here, which costs less."""
LET_GO_S = 0.1
"""What goes within so short a time goes together."""


class Lingering:
    """As `Wants`, for subscriptions. `on_change` is called when what lingered may have changed the statement."""

    def __init__(self, host: Host, on_change: Callable[[], None]) -> None:
        self._host = host
        self._on_change = on_change
        self._wants = Wants()
        self._gone: deque[tuple[float, str, FilterSet | None]] = deque()

    def add(self, sub: Sub) -> None:
        self._wants.add(sub.wanted.topics, sub.condition)

    def remove(self, sub: Sub) -> bool:
        """Whether it has gone at once."""
        if not _may_return(sub.session):
            self._wants.remove(sub.wanted.topics, sub.condition)
            return True
        self._gone.append((self._host.now() + LINGER_S, sub.wanted.topics, sub.condition))
        if len(self._gone) == 1:
            self._host.after(LINGER_S, self._let_go)
        return False

    def review(self) -> bool:
        """True where `filters` says something else now."""
        return self._wants.review()

    def filters(self) -> tuple[Filter, ...]:
        return self._wants.filters()

    def _let_go(self) -> None:
        now_s = self._host.now()
        while self._gone and self._gone[0][0] <= now_s:
            _, topics, condition = self._gone.popleft()
            self._wants.remove(topics, condition)
        if self._gone:
            # A clock that is rounded may say that it is not time yet, however often it is asked at this moment.
            self._host.after(max(self._gone[0][0] - now_s, LET_GO_S), self._let_go)
        self._on_change()


def _may_return(session: Session) -> bool:
    """Its client is at another broker, and known to move."""
    return session.standing.state in (State.STANDBY, State.SHADOW)
