"""Generated filters and events (spec content-routing 4.1), the same for the same parameters and seed.

    Workload   how many filters of which shape, on how many interfaces, and how many events
    Script     one drawing of it: who subscribes to what, what is replaced afterwards, and the events

The only string in these workloads is the type, which names the schema; every other attribute holds a whole number.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import NamedTuple

import msgspec

from godwit.events import Value
from godwit.filters.filters import TYPE_ATTRIBUTE, Filter, attribute, filter_of
from godwit.filters.predicates import AnyPredicate, equ, gr, gre, lt, lte, neq, rng
from godwit.sim.streams import Streams
from godwit.tables.table import Interface

Event = dict[str, Value]


class Predicates(StrEnum):
    """What a constraint asks of its attribute: always a range, or one of seven operators, each as likely."""

    RANGES = "ranges"
    MIXED = "mixed"


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a drawing.

    A filter constrains `attributes_min` to `attributes_max` attributes, as many names as it needs being drawn out of
    `names`. Filters go to the interfaces in turn; without a number of interfaces, each filter has one of its own.
    """

    filters: int
    attributes_min: int
    attributes_max: int
    names: int
    predicates: Predicates = Predicates.RANGES
    schemas: int = 1
    value_max: int = 100
    interfaces: int | None = None
    replacements: int = 0
    events: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.attributes_min <= self.attributes_max <= self.names:
            raise ValueError(
                f"{self.attributes_min} to {self.attributes_max} attributes out of {self.names} names:"
                " at least one, the lower number first, and no more than there are names"
            )
        if self.schemas < 1 or (self.interfaces is not None and self.interfaces < 1):
            raise ValueError("a workload needs at least one schema and one interface")
        if min(self.filters, self.value_max, self.replacements, self.events) < 0:
            raise ValueError("a workload takes no number below zero")
        if self.replacements and not self.filters:
            raise ValueError("nothing can be replaced where there are no filters")


class Subscription(NamedTuple):
    wanted: Filter
    interface: Interface


class Replacement(NamedTuple):
    """The filter that subscription number `place` holds at that time goes, and this one takes its place."""

    place: int
    wanted: Filter


class Script(msgspec.Struct, frozen=True):
    """What happens in one replication, for every structure alike."""

    subscriptions: list[Subscription]
    replacements: list[Replacement]
    events: list[Event]


def draw(workload: Workload, streams: Streams) -> Script:
    """One drawing. Filters, replacements and events have streams of their own: more of one shifts none of the others.

    A longer drawing begins with the shorter one.
    """
    count = workload.interfaces or max(workload.filters, 1)
    initial, later, choice, happening = (streams.stream(name) for name in ("filters", "later", "choice", "events"))
    return Script(
        [
            Subscription(random_filter(workload, initial), interface_name(number % count))
            for number in range(workload.filters)
        ],
        [
            Replacement(choice.randrange(workload.filters), random_filter(workload, later))
            for _ in range(workload.replacements)
        ],
        [random_event(workload, happening) for _ in range(workload.events)],
    )


def random_filter(workload: Workload, dice: Random) -> Filter:
    """A filter of one schema: its type, and constraints on attributes drawn without repetition."""
    count = dice.randint(workload.attributes_min, workload.attributes_max)
    names = dice.sample(range(workload.names), count)
    schema = attribute(TYPE_ATTRIBUTE, equ(schema_name(dice.randrange(workload.schemas))))
    return filter_of(schema, *(attribute(attribute_name(name), _constraint(workload, dice)) for name in names))


def random_event(workload: Workload, dice: Random) -> Event:
    """An event of one schema with a value for each of its attributes."""
    event: Event = {TYPE_ATTRIBUTE: schema_name(dice.randrange(workload.schemas))}
    event.update({attribute_name(name): dice.randint(0, workload.value_max) for name in range(workload.names)})
    return event


def schema_name(number: int) -> str:
    return f"schema{number}"


def attribute_name(number: int) -> str:
    return f"a{number}"


def interface_name(number: int) -> Interface:
    return f"i{number}"


_OPERATORS: tuple[Callable[[int], AnyPredicate], ...] = (lt, gr, lte, gre, equ, neq)


def _constraint(workload: Workload, dice: Random) -> AnyPredicate:
    operator = dice.randrange(len(_OPERATORS) + 1) if workload.predicates is Predicates.MIXED else len(_OPERATORS)
    if operator < len(_OPERATORS):
        return _OPERATORS[operator](dice.randint(0, workload.value_max))
    return rng(*sorted((dice.randint(0, workload.value_max), dice.randint(0, workload.value_max))))
