"""Things that are a subspace and no point: a route, a booking, whatever its publisher says with `profile`.

What a question and a profile have in common is found by the double forest. A question is only answered by a profile
that says something about each attribute that is asked for: else every booking of a room would answer a question for a
temperature, since nothing is said against it.
"""

from __future__ import annotations

from functools import lru_cache

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.errors import FilterError
from godwit.filters.filters import Filter, FilterSet, alternatives, attribute, conjunction
from godwit.filters.predicates import Kind, equ
from godwit.protocols.broker.api import Lasting
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.state import Sub
from godwit.tables.double import DoubleForest, Sense, Side

PROFILE = "profile"
"""The user property of a retained publication that says in which subspace its thing is."""

BYTES_MAX = 4_096
POINTS_MAX = 64
"""So many attributes of the content count beside those of the profile."""


def text_of(publication: Publication) -> str | None:
    """What it says of itself, where it is a subspace."""
    for name, value in publication.properties.user:
        if name == PROFILE:
            return value
    return None


def problem_of(publication: Publication) -> str:
    """Why nobody can read its profile, or nothing where all can, or there is none."""
    text = text_of(publication)
    if text is None:
        return ""
    try:
        profile_of(publication)
    except FilterError as error:
        return str(error)
    return ""


def profile_of(publication: Publication) -> FilterSet:
    """What its profile says, and of whatever else it has the very value; `FilterError` where it cannot be read."""
    said = _parsed(text_of(publication) or "")
    values = {name: value for name, value in publication.values().items() if name != PROFILE}
    both = (_with_points(one, values) for one in said)
    return alternatives(one for one in both if one is not None)


def _with_points(said: Filter, values: dict[str, Value]) -> Filter | None:
    named = {name for own in said for name in own.name.split(",")}
    points = [_point(name, value) for name, value in values.items() if name not in named]
    return conjunction((*said, *points[:POINTS_MAX]))


def _point(name: str, value: Value) -> AttributeFilter:
    return attribute(name, equ(value))


@lru_cache(maxsize=4_096)
def _parsed(text: str) -> FilterSet:
    from godwit.filters.text import parse  # sqlglot takes a while to load

    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        raise FilterError(f"profile: more than {BYTES_MAX} bytes")
    said = parse(text)
    if any(own.kind is Kind.RATE for one in said for own in one):
        raise FilterError("profile: rate(...) says nothing about a thing")
    return said


def fits(question: FilterSet, profile: FilterSet, sense: Lasting) -> bool:
    """Whether the thing answers the question."""
    if sense is Lasting.COVER:
        return bool(profile.filters) and question.covers(profile)
    return any(_names(one) <= _names(said) and one.overlaps(said) for one in question for said in profile)


def _names(one: Filter) -> set[str]:
    return {own.name for own in one}


class Profiles:
    """Subspaces by topic, and questions of subscriptions."""

    def __init__(self) -> None:
        self._forest: DoubleForest[Filter, dict[str, Value]] | None = None
        """Made for the first subspace: to file very many questions takes long, and most brokers have points only."""
        self._profiles: dict[str, FilterSet] = {}
        self._questions: dict[str, tuple[Sub, FilterSet]] = {}
        self._names: dict[Sub, str] = {}
        self._next = 0

    def __contains__(self, topic: str) -> bool:
        return topic in self._profiles

    @property
    def forest(self) -> DoubleForest[Filter, dict[str, Value]] | None:
        """Both kinds; None where nothing is a subspace. To look at."""
        return self._forest

    def put(self, topic: str, profile: FilterSet) -> None:
        self.drop(topic)
        self._profiles[topic] = profile
        if self._forest is None:
            self._forest = DoubleForest(sense=Sense.OVERLAP)
            for name, (_, question) in self._questions.items():
                for one in question:
                    self._forest.add(Side.QUERIES, one, name)
        for one in profile:
            self._forest.add(Side.PROFILES, one, topic)

    def drop(self, topic: str) -> None:
        """Nothing happens where there is none."""
        if self._forest is not None:
            for one in self._profiles.pop(topic, FilterSet()):
                self._forest.remove(Side.PROFILES, one, topic)

    def ask(self, sub: Sub, question: FilterSet) -> None:
        self._next += 1
        name = self._names[sub] = str(self._next)
        self._questions[name] = sub, question
        if self._forest is not None:
            for one in question:
                self._forest.add(Side.QUERIES, one, name)

    def withdraw(self, sub: Sub) -> None:
        name = self._names.pop(sub)
        _, question = self._questions.pop(name)
        if self._forest is not None:
            for one in question:
                self._forest.remove(Side.QUERIES, one, name)

    def asking(self, topic: str) -> list[Sub]:
        """Whose questions this one answers."""
        profile, forest = self._profiles.get(topic, FilterSet()), self._forest
        if forest is None:
            return []
        met = (query for one in profile for query in forest.matches(Side.PROFILES, one))
        names = dict.fromkeys(name for query in met for name in sorted(forest.names(Side.QUERIES, query)))
        found = [self._questions[name] for name in names]
        return [sub for sub, question in found if fits(question, profile, sub.wanted.lasting)]

    def answering(self, sub: Sub) -> list[str]:
        """The topics of those that answer its question."""
        _, question = self._questions[self._names[sub]]
        forest = self._forest
        if forest is None:
            return []
        met = (said for one in question for said in forest.matches(Side.QUERIES, one))
        topics = dict.fromkeys(topic for said in met for topic in sorted(forest.names(Side.PROFILES, said)))
        return [topic for topic in topics if fits(question, self._profiles[topic], sub.wanted.lasting)]
