"""The things of a broker: what is retained and good, by what it says now. Which of them answers a question?

While there are few, each is asked. Beyond that their values stand in columns (`tables.matching.population`), from the
first question on, once compiled code is there: a broker of which nobody asks what lasts pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.filters.errors import FilterError
from godwit.filters.filters import FilterSet
from godwit.protocols.broker.lasting.profiles import Profiles, fits, profile_of, text_of
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.parse import wanted_filters
from godwit.protocols.broker.session.retained import Last, Retained, is_good
from godwit.protocols.broker.session.state import Sub

if TYPE_CHECKING:
    from godwit.tables.matching.population import Population

FEW = 1_000
"""So many are asked one by one."""


class Things:
    """Follows what is retained, once somebody has asked."""

    def __init__(self, retained: Retained) -> None:
        self.retained = retained
        self.profiles = Profiles()
        self.prepared: Callable[[], bool] = lambda: True
        """See `Conditions.prepared`: columns are searched by compiled code too."""
        self._points: Population | None = None
        self._ids: dict[str, int] = {}
        self._topics: dict[int, str] = {}
        self._next = 0
        self._asked = False

    def changed(self, last: Last, now: float) -> None:
        """The last of its topic is another one, or is good no longer."""
        if not self._asked:
            return
        topic, publication = last.publication.topic, last.publication
        good = is_good(publication, now)
        if good and text_of(publication) is not None:
            self._put_profile(topic, publication)
            good = False
        elif topic in self.profiles:
            self.profiles.drop(topic)
        if self._points is not None:
            self._put_point(topic, publication if good else None)

    def ask(self, sub: Sub) -> None:
        """From now on `profiles` knows its question."""
        if not self._asked:
            self._asked = True
            for last in self.retained:
                if text_of(last.publication) is not None and last.publication.payload:
                    self._put_profile(last.publication.topic, last.publication)
        self.profiles.ask(sub, question_of(sub))

    def withdraw(self, sub: Sub) -> None:
        self.profiles.withdraw(sub)

    def find(self, sub: Sub, now: float) -> dict[str, Last]:
        """All that answer its question at this moment, by topic."""
        found = {topic: self.retained.last(topic) for topic in self.profiles.answering(sub)}
        for topic in self._points_for(sub, question_of(sub)):
            found[topic] = self.retained.last(topic)
        return {topic: last for topic, last in found.items() if last is not None and is_good(last.publication, now)}

    def answers(self, sub: Sub, publication: Publication) -> bool:
        """Whether this one, of a topic that is asked for, answers its question."""
        question = question_of(sub)
        if text_of(publication) is None:
            return sub.condition is None or question.matches(publication.values())
        try:
            return fits(question, profile_of(publication), sub.wanted.lasting)
        except FilterError:
            return False  # another broker understood it

    def find_points(self, topics: str, question: FilterSet | None, now: float) -> list[Last]:
        """The same for one who asks once, subspaces left out; without a condition, all of these topics."""
        lasts = [last for last in self.retained.lasts(topics) if is_good(last.publication, now)]
        if question is None:
            return lasts
        return [last for last in lasts if question.matches(last.publication.values())]

    def _points_for(self, sub: Sub, question: FilterSet) -> list[str]:
        if len(self.retained) <= FEW or (self._points is None and not self.prepared()):
            lasts = [last.publication for last in self.retained.lasts(sub.wanted.topics)]
            points = [one for one in lasts if one.payload and text_of(one) is None]
            if sub.condition is None:
                return [one.topic for one in points]
            return [one.topic for one in points if question.matches(one.values())]
        if self._points is None:
            self._fill()
        assert self._points is not None
        return [self._topics[thing] for thing in self._points.find(question)]

    def _fill(self) -> None:
        from godwit.tables.matching.population import Population  # numpy takes a while to load

        self._points = Population()
        for last in self.retained:
            one = last.publication
            if one.payload and text_of(one) is None:
                self._put_point(one.topic, one)

    def _put_point(self, topic: str, publication: Publication | None) -> None:
        assert self._points is not None
        thing = self._ids.get(topic)
        if publication is not None:
            if thing is None:
                self._next += 1
                thing = self._ids[topic] = self._next
                self._topics[thing] = topic
            self._points.put(thing, publication.values())
        elif thing is not None:
            self._points.remove(thing)
            del self._ids[topic], self._topics[thing]

    def _put_profile(self, topic: str, publication: Publication) -> None:
        try:
            self.profiles.put(topic, profile_of(publication))
        except FilterError:
            self.profiles.drop(topic)  # another broker understood it


def question_of(sub: Sub) -> FilterSet:
    """Topics and condition together."""
    return sub.condition if sub.condition is not None else wanted_filters(sub.wanted.topics, None)
