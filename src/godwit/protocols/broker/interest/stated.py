"""All that the sessions of a broker want, in few filters: what it states to the others.

Covering and merging (`tables.interest`) is dear where many filters barely cover one another. So where a broker's
clients ask for very much that is alike, it states something wider in its place: the topic filter without its many
conditions, the first level with everything below, or all topics. Where all conditions name areas, the topic filter
keeps the tiles of the globe that hold them (`tiles`). Of a very deep topic filter it states the first levels. That
costs traffic and never loses anything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable

from godwit.filters.filters import Filter, FilterSet, alternatives, filter_of
from godwit.protocols.broker.interest.tiles import Tiles
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.host import Host
from godwit.tables.forests.kin import demands
from godwit.tables.merging.interest import Concise, Interest

CONDITIONS_MAX = 64
TOPICS_MAX = 128
FIRST_LEVELS_MAX = 64

LEVELS_STATED = 16
"""Of deeper topic filters so many levels are stated, and everything below: each is a condition at every broker."""

EVERYTHING = "#"


def shallow(topics: str, filters: FilterSet | None) -> tuple[str, FilterSet | None]:
    """What is stated of a topic filter, and of conditions on it: the same, or wider where it is deep."""
    if topics.count("/") < LEVELS_STATED:
        return topics, filters
    levels = topics.split("/")
    short = "/".join((*levels[:LEVELS_STATED], EVERYTHING))
    if filters is None:
        return short, None
    below = {f"topic_{number}" for number in range(LEVELS_STATED + 1, len(levels) + 1)}
    kept = (Filter(tuple(own for own in one.attributes if own.name not in below)) for one in filters)
    return short, alternatives(kept)


class ByTopic(Concise):
    """Filters that name one topic have to do only with each other, and with those that name none: however many topics
    there are, a new filter is compared with few."""

    def type_of(self, wanted: Filter, /) -> str | None:
        insisted: dict[Hashable, Hashable] = dict(one for one in demands(wanted) if isinstance(one, tuple))
        count = insisted.get("topic_levels")
        if not isinstance(count, int | float) or count > LEVELS_STATED:
            return None
        levels = [insisted.get(f"topic_{number}") for number in range(1, int(count) + 1)]
        return "/".join(map(str, levels)) if None not in levels else None


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
        self._changed: dict[str, set[str]] = {}
        """By first level, the topic filters of which something was told since the last review."""
        self._stated: dict[str, dict[str, set[FilterSet]]] = {}
        """By first level and topic filter; what is stated for a first level as a whole, under that."""
        self._interest = Interest(ByTopic())

    def add(self, topics: str, filters: FilterSet | None) -> None:
        """One more wants this; None: whatever the content."""
        topics, filters = shallow(topics, filters)
        first = topics.partition("/")[0]
        held = self._firsts.setdefault(first, {}).setdefault(topics, _Held())
        held.add(filters)
        self._changed.setdefault(first, set()).add(topics)

    def remove(self, topics: str, filters: FilterSet | None) -> None:
        """What was added."""
        topics, filters = shallow(topics, filters)
        first = topics.partition("/")[0]
        held = self._firsts[first][topics]
        held.remove(filters)
        if not held.plain and not held.conditions:
            del self._firsts[first][topics]
            if not self._firsts[first]:
                del self._firsts[first]
        self._changed.setdefault(first, set()).add(topics)

    def review(self) -> bool:
        """Follow what was told since; True where `filters` says something else now."""
        changed, self._changed = self._changed, {}
        was_all = self._all
        self._all = _still(was_all, len(self._firsts), FIRST_LEVELS_MAX)
        if self._all is not was_all:
            for first in (*self._firsts, EVERYTHING):
                changed.setdefault(first, set())
        changes = [self._state(first, changed[first]) for first in sorted(changed)]
        return any(changes)

    def filters(self) -> tuple[Filter, ...]:
        """The statement as of the last review."""
        return self._interest.filters().filters

    def _state(self, first: str, changed: set[str]) -> bool:
        """What was told of a first level, in the work that its changes need, however much else is wanted of it."""
        stated, whole = self._stated.setdefault(first, {}), self._whole(first)
        group = {} if whole is not None else self._firsts.get(first, {})
        if whole is not None:
            wanted = {"": whole}
        elif "" in stated or not stated:
            wanted = {topics: set(held.stated(topics)) for topics, held in group.items()}
        else:
            wanted = {topics: set(group[topics].stated(topics)) if topics in group else set() for topics in changed}
        concerned = wanted.keys() | stated.keys() if whole is not None or "" in stated else wanted.keys()
        added, removed = set[FilterSet](), set[FilterSet]()
        for topics in concerned:
            now, before = wanted.get(topics, set()), stated.pop(topics, set())
            added |= now - before
            removed |= before - now
            if now:
                stated[topics] = now
        added, removed = added - removed, removed - added
        if not stated:
            del self._stated[first]
        if not added and not removed:
            return False
        update = self._interest.change(first, added=sorted(added, key=repr), removed=sorted(removed, key=repr))
        return bool(update.added or update.removed)

    def _whole(self, first: str) -> set[FilterSet] | None:
        """What is stated of a first level where its topic filters are not stated one by one."""
        if self._all:
            if first == EVERYTHING:
                return {wanted_filters(EVERYTHING, None)}
            if not first.startswith("$"):
                return set()
        wide = _still(first in self._wide, len(self._firsts.get(first, {})), TOPICS_MAX)
        (self._wide.add if wide else self._wide.discard)(first)
        if wide:
            return {wanted_filters(f"{first}/#" if first != EVERYTHING else first, None)}
        return None


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
