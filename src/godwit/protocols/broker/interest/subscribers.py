"""Who wants a publication: subscriptions by topic and by content, shared groups, and other brokers."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from godwit.events import Value
from godwit.filters.filters import Filter, FilterSet
from godwit.protocols.broker.api import Outlet
from godwit.protocols.broker.interest.conditions import FEW, Conditions
from godwit.protocols.broker.interest.owners import NUMBERED_MAX, Owners
from godwit.protocols.broker.interest.remote import Others
from godwit.protocols.broker.interest.shares import group_of, key_of, opened, parted
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.state import GroupKey, Session, Sub
from godwit.protocols.broker.topics import Trie, meaning, problem_of_name
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.tables.matching.index import Matches

CACHED_MAX, CACHED_LENGTH_MAX = 65_536, 256
"""Topics whose audience is remembered; beyond it all are forgotten, which costs one lookup each. Longer ones are not:
anybody may name as many as it likes before it is known whether it may publish there."""


class Group:
    """The members of a shared subscription. They take turns: connected ones first."""

    __slots__ = ("_turn", "asked", "key", "members")

    def __init__(self, key: GroupKey) -> None:
        self.key = key
        self.members: dict[Sub, None] = {}
        self.asked = 0
        self._turn = 0

    def pick(self, qos: int, takes: Callable[[Session], bool], *, settle: bool = True) -> Sub | None:
        """Whose turn it is; `takes` tells for whom such a publication is at all. With `settle` a member will do that is
        not connected.

        What a disconnected member would lose (QoS 0) goes to it only where nobody is connected.
        """
        able = [sub for sub in self.members if takes(sub.session)]
        connected = [sub for sub in able if sub.session.outlet is not None]
        resting = [sub for sub in able if min(qos, sub.wanted.qos) and sub.session.standing.state is not State.SHADOW]
        for candidates in (connected, resting, able) if settle else (connected,):
            if candidates:
                self._turn += 1
                return candidates[self._turn % len(candidates)]
        return None


class Taker:
    """One session and what its subscriptions together ask for: it gets one copy (MQTT 3.3.4)."""

    __slots__ = ("as_published", "identifiers", "qos", "session")

    def __init__(self, session: Session) -> None:
        self.session = session
        self.qos = 0
        self.as_published = False
        self.identifiers: tuple[int, ...] = ()

    def add(self, sub: Sub) -> None:
        wanted = sub.wanted
        self.qos = max(self.qos, wanted.qos)
        self.as_published = self.as_published or wanted.retain_as_published
        if wanted.identifier:
            self.identifiers += (wanted.identifier,)


Asking = Conditions[Sub | Group]


BROKERS_OWN = "$SYS/"
"""Topics that a broker alone speaks about itself, to clients of its own."""


class Audience:
    """Who wants a topic here; the same for all topics that the same ones want. Good as long as `generation` is the
    broker's."""

    __slots__ = (
        "asking",
        "brokers",
        "contingent",
        "generation",
        "groups",
        "perhaps",
        "problem",
        "seats",
        "straight",
        "subs",
        "takers",
    )

    def __init__(
        self,
        generation: int,
        problem: str,
        subs: Sequence[Sub] = (),
        groups: Sequence[Group] = (),
        asking: Sequence[Asking] = (),
        brokers: tuple[NodeId, ...] = (),
        seats: tuple[GroupKey, ...] = (),
        perhaps: bool = False,
    ) -> None:
        self.generation = generation
        self.straight: tuple[Outlet, ...] | None = None
        """The connections to which a QoS 0 publication without retain may be passed as it is. Nothing else is to be
        done but to count it and to ask `asking`. None where more is: identifiers, groups, other brokers, an archive.
        The publisher's own grant is not looked at here."""
        self.problem = problem
        """Why nobody can publish to this topic."""
        self.subs = subs
        self.takers = None if any(sub.wanted.no_local for sub in subs) else takers_of(subs, None)
        """What `subs` come to, where that is the same for every publisher."""
        self.groups = groups
        self.asking = asking
        """The conditions of those who want this topic for its content."""
        self.perhaps = perhaps
        """Another broker may want it for its content."""
        self.contingent = perhaps or bool(asking)
        """Somebody may want it for its content: it must be looked into."""
        self.brokers = brokers
        """The other brokers that want it whatever the content."""
        self.seats = seats
        """The groups with members at other brokers that do."""

    @property
    def is_somebody(self) -> bool:
        """Whether anybody may want it."""
        return bool(self.subs or self.groups or self.asking or self.brokers or self.perhaps or self.seats)


class _Beyond:
    """Stands among outlets for somebody to whom a publication cannot be passed as it is."""


BEYOND = _Beyond()

Wanting = set[Outlet | _Beyond | None]

Parted = dict[Outlet, list[int]]
"""By outlet which of several publications go there, in order."""


class _Outlets(dict[int, Outlet | _Beyond | None]):
    """To whom what meets a condition goes as it is: by the number of its owner, or by its own where there are no
    owners. None: its client is not connected. Good until anybody comes, goes or subscribes."""

    def __init__(self, conditions: Asking, owners: Owners | None, taking: Container[Outlet]) -> None:
        self._conditions = conditions
        self._owners = owners
        self._taking = taking

    def parted(self, matches: Matches) -> Parted | None:
        """Who wants what, where conditions have owners and nobody is beyond."""
        found = matches.parted(self._owners.of) if self._owners is not None else None
        if found is None:
            return None
        by_outlet: dict[Outlet | _Beyond | None, list[int]] = {self[owner]: events for owner, events in found}
        by_outlet.pop(None, None)
        return None if BEYOND in by_outlet else cast("Parted", by_outlet)

    def wanting(self, numbers: Iterable[int]) -> Wanting:
        """To whom what meets these conditions goes."""
        if self._owners is None:
            return {self[number] for number in numbers}
        of = self._owners.of
        return {self[of[number]] for number in numbers}

    def __missing__(self, number: int) -> Outlet | _Beyond | None:
        asker = self._conditions.asked_by(number) if self._owners is None else self._owners[number]
        found = self[number] = self._found(asker)
        return found

    def _found(self, asker: Session | Sub | Group) -> Outlet | _Beyond | None:
        if isinstance(asker, Group):
            return BEYOND
        session = asker.session if isinstance(asker, Sub) else asker
        if session.outlet is None:
            return None
        is_alike = isinstance(asker, Session) or not (asker.wanted.no_local or asker.wanted.identifier)
        return session.outlet if is_alike and session.plain and session.outlet in self._taking else BEYOND


class Found:
    """Who wants one publication for its content."""

    __slots__ = ("brokers", "groups", "seats", "subs")

    def __init__(self, wanting: Iterable[Sub | Group | NodeId | GroupKey]) -> None:
        self.subs: list[Sub] = []
        self.groups: list[Group] = []
        self.brokers: list[NodeId] = []
        self.seats: list[GroupKey] = []
        for one in wanting:
            if isinstance(one, Sub):
                self.subs.append(one)
            elif isinstance(one, Group):
                self.groups.append(one)
            elif isinstance(one, tuple):
                self.seats.append(one)
            else:
                self.brokers.append(one)


def takers_of(subs: Iterable[Sub], publisher: str | None) -> list[Taker]:
    """One for each session, in the order of their first subscriptions."""
    found: dict[Session, Taker] = {}
    for sub in subs:
        session = sub.session
        if sub.wanted.no_local and session.client == publisher:
            continue
        taker = found.get(session)
        if taker is None:
            taker = found[session] = Taker(session)
        taker.add(sub)
    return list(found.values())


class Audiences:
    """All subscriptions of a broker, and what the others want."""

    def __init__(self) -> None:
        self.generation = 0
        self.watched = False
        """Somebody wants to see every publication: nothing goes straight."""
        self._plain: Trie[Sub] = Trie()
        self._shared: Trie[Group] = Trie()
        self._groups: dict[GroupKey, Group] = {}
        self._asking: Trie[Asking] = Trie()
        self._conditions: dict[str, Asking] = {}
        """By topic filter. Topics are told apart by the trie, so that conditions need not be."""
        self._elsewhere: Conditions[NodeId | GroupKey] = Conditions()
        self._others: Others[NodeId] = Others(self._elsewhere.add, self._elsewhere.remove)
        self._their_groups: Others[GroupKey] = Others(self._elsewhere.add, self._elsewhere.remove)
        self._seats: dict[GroupKey, list[NodeId]] = {}
        self._parted: dict[NodeId, tuple[tuple[Filter, ...], tuple[Filter, ...], tuple[Filter, ...]]] = {}
        """What each broker wants: all of it, for itself, and for groups."""
        self._prepared: Callable[[], bool] = self._elsewhere.prepared
        self._clock: Callable[[], float] | None = None
        self._took: Callable[[float], None] = lambda took_s: None
        self._cached: dict[str, Audience] = {}
        self._alike: dict[object, Audience] = {}
        """By all who want a topic: those who want thousands of topics by a wildcard are looked at once."""
        self._outlets: dict[Asking, _Outlets] = {}
        self._owners: dict[Asking, Owners] = {}

    def prepare_with(self, prepared: Callable[[], bool]) -> None:
        """See `Conditions.prepared`."""
        self._prepared = self._elsewhere.prepared = prepared
        for conditions in self._conditions.values():
            conditions.prepared = prepared

    def time_with(self, clock: Callable[[], float], took: Callable[[float], None]) -> None:
        """`took` is told how long each search by content was, in seconds of `clock`."""
        self._clock, self._took = clock, took

    def changed(self) -> None:
        """Whatever was found out is out of date."""
        self.generation += 1
        if self._cached:
            self._cached, self._alike = {}, {}
        if self._outlets:
            self._outlets = {}

    def add(self, sub: Sub) -> None:
        self.changed()
        if sub.wanted.group:
            self._join(sub)
        elif sub.condition is not None:
            sub.asked = self._ask(sub.wanted.topics, sub.condition, sub)
        else:
            self._plain.add(sub.wanted.topics, sub, sub)

    def remove(self, sub: Sub) -> None:
        self.changed()
        if sub.wanted.group:
            self._leave(sub)
        elif sub.condition is not None:
            self._ask_no_more(sub.wanted.topics, sub.asked)
        else:
            self._plain.remove(sub.wanted.topics, sub)

    def group(self, key: GroupKey) -> Group | None:
        return self._groups.get(key)

    def follow(self, interests: Mapping[NodeId, tuple[Filter, ...]]) -> None:
        """What the other brokers want now."""
        plain: dict[NodeId, tuple[Filter, ...]] = {}
        groups: dict[GroupKey, dict[Filter, None]] = {}
        self._seats = {}
        known, self._parted = self._parted, {}
        for name, filters in interests.items():
            before = known.get(name)
            told = before if before is not None and before[0] is filters else (filters, *parted(filters))
            self._parted[name] = told
            plain[name] = told[1]
            for one in told[2]:
                key = group_of(one)
                if key is not None:
                    groups.setdefault(key, {})[opened(one)] = None
                    seats = self._seats.setdefault(key, [])
                    if name not in seats:
                        seats.append(name)
        self._others.follow(plain)
        self._their_groups.follow({key: tuple(filters) for key, filters in groups.items()})
        self.changed()

    def seats(self, key: GroupKey) -> Sequence[NodeId]:
        """The other brokers that have members of a group."""
        return self._seats.get(key, ())

    def audience(self, topic: str) -> Audience:
        audience = self._cached.get(topic)
        if audience is None:
            audience = self._find(topic)
            if len(topic) <= CACHED_LENGTH_MAX:
                if len(self._cached) >= CACHED_MAX:
                    self._cached, self._alike = {}, {}
                self._cached[topic] = audience
        return audience

    def wanting(self, publication: Publication) -> list[Sub]:
        """The subscriptions that want it, those of groups left out."""
        audience = self.audience(publication.topic)
        if not audience.contingent:
            return list(audience.subs)
        return [*audience.subs, *self.look_into([publication])[0].subs]

    def look_into(self, publications: Sequence[Publication]) -> list[Found]:
        """Who wants each of them for its content."""
        if self._clock is None:
            return [Found(wanting) for wanting in self.askers(publications)]
        begun_s = self._clock()
        found = [Found(wanting) for wanting in self.askers(publications)]
        self._took(self._clock() - begun_s)
        return found

    def outlets(
        self, asking: Sequence[Asking], events: Sequence[Mapping[str, Value]], taking: Container[Outlet]
    ) -> list[Wanting] | Parted:
        """Who wants each of these for its content, of those who ask so: the outlets to which it goes as it is, if they
        are among `taking`. `BEYOND` where it goes to others too, and the broker must see it; None for clients that are
        not connected. Where there are neither, it may be told by outlet."""
        begun_s = self._clock() if self._clock is not None else 0.0
        found = self._find_outlets(asking, events, taking)
        if self._clock is not None:
            self._took(self._clock() - begun_s)
        return found

    def _find_outlets(
        self, asking: Sequence[Asking], events: Sequence[Mapping[str, Value]], taking: Container[Outlet]
    ) -> list[Wanting] | Parted:
        found: list[Wanting] = []
        for conditions in asking:
            known = self._outlets.get(conditions)
            if known is None:
                known = self._outlets[conditions] = _Outlets(conditions, self._owners.get(conditions), taking)
            matches = conditions.matches(events)
            by_outlet = known.parted(matches) if matches is not None and len(asking) == 1 else None
            if by_outlet is not None:
                return by_outlet
            met = conditions.numbers(events) if matches is None else [numbers.tolist() for numbers in matches]
            one = [known.wanting(numbers) for numbers in met]
            found = [mine | more for mine, more in zip(found, one, strict=True)] if found else one
        return found

    def askers(self, publications: Sequence[Publication]) -> list[list[Any]]:
        """The same without telling them apart, for whoever knows what they all are."""
        values: list[Mapping[str, Value]] = [one.values() for one in publications]
        found: list[list[Any]] = [[] for _ in publications]
        asked: dict[Conditions[Any], list[int]] = {}
        for at, publication in enumerate(publications):
            audience = self.audience(publication.topic)
            for conditions in audience.asking:
                asked.setdefault(conditions, []).append(at)
            if audience.perhaps:
                asked.setdefault(self._elsewhere, []).append(at)
        for any_conditions, places in asked.items():
            answers = any_conditions.match([values[at] for at in places])
            for at, wanting in zip(places, answers, strict=True):
                found[at] += wanting
        return found

    def _find(self, topic: str) -> Audience:
        problem = problem_of_name(topic)
        if problem:
            return Audience(self.generation, problem)
        subs, groups, asking = self._plain.find(topic), self._shared.find(topic), self._asking.find(topic)
        if topic.startswith(BROKERS_OWN):
            problem = f"topic {topic[:80]!r}: what begins with {BROKERS_OWN} is said by brokers only"
            return Audience(self.generation, problem, subs, groups, asking)
        brokers, perhaps = self._others.find(topic)
        seats, perhaps_theirs = self._their_groups.find(topic)
        perhaps = perhaps or perhaps_theirs
        key = (tuple(subs), tuple(groups), tuple(asking), brokers, seats, perhaps)
        audience = self._alike.get(key)
        if audience is None:
            audience = self._alike[key] = Audience(self.generation, "", subs, groups, asking, brokers, seats, perhaps)
            if not (self.watched or groups or brokers or audience.perhaps or seats):
                audience.straight = _straight(audience.takers)
        return audience

    def _ask(self, topics: str, filters: FilterSet, asked_by: Sub | Group) -> int:
        conditions = self._conditions.get(topics)
        if conditions is None:
            conditions = self._conditions[topics] = Conditions()
            conditions.prepared = self._prepared
            self._asking.add(topics, topics, conditions)
        number, owners = conditions.add(_content(topics, filters), asked_by), self._owners.get(conditions)
        if number > NUMBERED_MAX:
            self._owners.pop(conditions, None)
        elif owners is not None:
            owners.add(number, asked_by)
        elif len(conditions) > FEW:
            self._owners[conditions] = Owners(conditions.all_asked())
        return number

    def _ask_no_more(self, topics: str, number: int) -> None:
        conditions = self._conditions[topics]
        conditions.remove(number)
        if conditions in self._owners:
            self._owners[conditions].remove(number)
        if not conditions:
            self._owners.pop(conditions, None)
            del self._conditions[topics]
            self._asking.remove(topics, topics)

    def _join(self, sub: Sub) -> None:
        wanted, key = sub.wanted, key_of(sub)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key)
            if sub.condition is not None:
                group.asked = self._ask(wanted.topics, sub.condition, group)
            else:
                self._shared.add(wanted.topics, key, group)
        group.members[sub] = None
        sub.group = group

    def _leave(self, sub: Sub) -> None:
        group = sub.group
        if group is None:
            return
        group.members.pop(sub, None)
        sub.group = None
        if group.members:
            return
        del self._groups[group.key]
        topics = group.key[1]
        if group.asked:
            self._ask_no_more(topics, group.asked)
        else:
            self._shared.remove(topics, group.key)


class Apart(dict[Sub, None]):
    """Subscriptions that do not get what they want as it is spread: somebody decides about each when it comes. A dict,
    since with each publication somebody asks whether there are any."""

    def __init__(self) -> None:
        super().__init__()
        self._audiences = Audiences()

    def add(self, sub: Sub) -> None:
        self[sub] = None
        self._audiences.add(sub)

    def remove(self, sub: Sub) -> None:
        del self[sub]
        self._audiences.remove(sub)

    def wanting(self, publication: Publication) -> list[Sub]:
        """Those who want it, and not only from others."""
        found = self._audiences.wanting(publication)
        return [one for one in found if not (one.wanted.no_local and one.session.client == publication.publisher)]


def _content(topics: str, filters: FilterSet) -> FilterSet:
    """What is left to ask of a publication whose topic is wanted."""
    levels = meaning(topics).attributes
    return FilterSet(tuple(Filter(tuple(own for own in one if own not in levels)) for one in filters))


def _straight(takers: list[Taker] | None) -> tuple[Outlet, ...] | None:
    if takers is None:
        return None
    # At QoS 0 nothing is kept for whoever is not connected: neither here nor for another place or copy of a session.
    connected = [(t, t.session.outlet) for t in takers if t.session.outlet is not None]
    if any(t.identifiers or not t.session.plain for t, _ in connected):
        return None
    return tuple(outlet for _, outlet in connected)
