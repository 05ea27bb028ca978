"""What the other brokers want, prepared for the question that each publication asks: who wants this topic?"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from godwit.events import Value
from godwit.filters.clauses import AttributeFilter
from godwit.filters.filters import Filter, FilterSet
from godwit.filters.predicates import Kind, Text, TextOp, Versus
from godwit.protocols.broker.publication import is_topic_attribute, topic_values

T = TypeVar("T", bound=Hashable)


class _Wish(Generic[T]):
    """One filter of one broker, or of a group that has members elsewhere. `levels` is the part that a topic decides;
    `number` where there is more."""

    __slots__ = ("broker", "levels", "number")

    def __init__(self, broker: T, levels: Filter, number: int | None) -> None:
        self.broker = broker
        self.levels = levels
        self.number = number


class Others(Generic[T]):
    """Filed by the deepest level that a filter names, so that a topic looks at few of them.

    Filters that ask for content are filed as conditions too, with `ask`, and taken back with `forget`.
    """

    def __init__(self, ask: Callable[[FilterSet, T], int], forget: Callable[[int], None]) -> None:
        self._ask = ask
        self._forget = forget
        self._wishes: dict[T, dict[Filter, _Wish[T]]] = {}
        self._said: dict[T, tuple[Filter, ...]] = {}
        """As it was said last: most have not said anything else when one has."""
        self._filed: dict[Hashable, dict[_Wish[T], None]] = {}

    def follow(self, interests: Mapping[T, tuple[Filter, ...]]) -> None:
        """Make these the interests of the other brokers."""
        for broker in [*self._wishes]:
            if broker not in interests:
                self._follow(broker, ())
        for broker, filters in interests.items():
            self._follow(broker, filters)

    def find(self, topic: str) -> tuple[tuple[T, ...], bool]:
        """The brokers that want the topic whatever the content, and whether one may want it for its content."""
        if not self._filed:
            return (), False
        values = topic_values(topic)
        surely: dict[T, None] = {}
        perhaps: set[T] = set()
        for wish in self._near(values):
            if wish.levels.matches(values):
                if wish.number is None:
                    surely[wish.broker] = None
                else:
                    perhaps.add(wish.broker)
        return tuple(surely), bool(perhaps - surely.keys())

    def _near(self, values: Mapping[str, Value]) -> Iterable[_Wish[T]]:
        filed = self._filed
        for key in (None, *values.items()):
            yield from filed.get(key, ())

    def _follow(self, broker: T, filters: tuple[Filter, ...]) -> None:
        if self._said.get(broker, ()) is filters:
            return
        known, wanted = self._wishes.get(broker, {}), dict.fromkeys(filters)
        for one in [one for one in known if one not in wanted]:
            self._remove(known.pop(one))
        for one in wanted:
            if one not in known:
                known[one] = self._added(broker, one)
        if known:
            self._wishes[broker], self._said[broker] = known, filters
        else:
            self._wishes.pop(broker, None)
            self._said.pop(broker, None)

    def _added(self, broker: T, one: Filter) -> _Wish[T]:
        levels = Filter(tuple(own for own in one if _is_decided_by_topic(own)))
        number = None if len(levels.attributes) == len(one.attributes) else self._ask(FilterSet((one,)), broker)
        wish = _Wish(broker, levels, number)
        for key in _keys(levels):
            self._filed.setdefault(key, {})[wish] = None
        return wish

    def _remove(self, wish: _Wish[T]) -> None:
        if wish.number is not None:
            self._forget(wish.number)
        for key in _keys(wish.levels):
            filed = self._filed[key]
            filed.pop(wish, None)
            if not filed:
                del self._filed[key]


def _is_decided_by_topic(own: AttributeFilter) -> bool:
    return is_topic_attribute(own.name) and not any(isinstance(p, Versus) for p in own.clause)


def _keys(levels: Filter) -> list[Hashable]:
    """The names of the deepest level, one of which a topic must have there; None where it names none."""
    named = [
        own for own in levels if own.kind is Kind.STRING and own.name != "topic" and all(map(_is_name, own.clause))
    ]
    if not named:
        return [None]
    deepest = max(named, key=lambda own: int(own.name[len("topic_") :]))
    return [(deepest.name, p.operand) for p in deepest.clause if isinstance(p, Text)]


def _is_name(predicate: object) -> bool:
    return isinstance(predicate, Text) and predicate.op is TextOp.EQU
