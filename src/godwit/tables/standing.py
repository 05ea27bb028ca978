"""Things that change and questions that last, where every thing is a point: who is concerned by a change?

The double forest (`tables.double`) compares subspaces. A point needs no forest: the index of filters finds the
questions that a thing answers, and the population the things that answer a question.
"""

from __future__ import annotations

from typing import NamedTuple

from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import Values
from godwit.tables.matching.index import Index
from godwit.tables.matching.population import Population


class Change(NamedTuple):
    """The questions that a thing answers now and did not, still does, and does no longer."""

    entered: list[int]
    stayed: list[int]
    left: list[int]


class Standing:
    """Things and questions by ids of the caller's choice, integers of 64 bits."""

    def __init__(self) -> None:
        self.things = Population()
        """To look at."""
        self._index = Index()
        self._questions: dict[int, Filter | FilterSet] = {}

    def put(self, thing: int, values: Values) -> Change:
        """It has come, or has changed."""
        before = self._asking(self.things.values(thing)) if thing in self.things else {}
        after = self._asking(values)
        self.things.put(thing, values)
        return Change(
            [one for one in after if one not in before],
            [one for one in after if one in before],
            [one for one in before if one not in after],
        )

    def drop(self, thing: int) -> list[int]:
        """It is no more; the questions that it answered. `KeyError` where it was not there."""
        before = self._asking(self.things.values(thing))
        self.things.remove(thing)
        return list(before)

    def ask(self, question: int, wanted: Filter | FilterSet) -> list[int]:
        """From now on; the things that answer it already. `KeyError` where the id is in use."""
        self._index.add(question, wanted)
        self._questions[question] = wanted
        return self.things.find(wanted)

    def withdraw(self, question: int) -> list[int]:
        """It is asked no longer; the things that answered it. `KeyError` where it was not asked."""
        wanted = self._questions.pop(question)
        self._index.remove(question)
        return self.things.find(wanted)

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self._questions)

    def _asking(self, values: Values) -> dict[int, None]:
        return dict.fromkeys(self._index.match(values).tolist())
