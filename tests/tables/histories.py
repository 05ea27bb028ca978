"""Random lives of a table: filters come and go on several interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from godwit.tables.table import Interface, Table

F = TypeVar("F")

INTERFACES = ["a", "b", "c", "d"]


class Step(NamedTuple):
    """Add the filter, or, where `pick` is a number, remove one of the entries that the table then has."""

    wanted: Any
    interface: Interface
    pick: int | None


def histories(
    filters: st.SearchStrategy[Any], *, interfaces: list[Interface] = INTERFACES, steps_max: int = 25
) -> st.SearchStrategy[list[Step]]:
    """A few filters that come and go in an order that the dice decide: long lives are cheap to draw that way."""

    def lived(pool: list[Any], seed: int, steps: int) -> list[Step]:
        dice = Random(seed)
        return [
            Step(dice.choice(pool), dice.choice(interfaces), dice.randrange(1000) if dice.random() < 0.3 else None)
            for _ in range(steps)
        ]

    pools = st.lists(filters, min_size=1, max_size=16) | st.lists(filters, min_size=12, max_size=16)
    return st.builds(lived, pools, st.integers(0, 2**32), st.integers(1, steps_max) | st.just(steps_max))


def entries(table: Table[F, Any]) -> list[tuple[F, Interface]]:
    return [(wanted, interface) for wanted in table for interface in sorted(table.interfaces(wanted))]


def operations(steps: list[Step], table: Table[Any, Any]) -> Iterator[tuple[bool, Any, Interface]]:
    """What each step comes to, given what the table holds by then: (whether to add, filter, interface)."""
    for step in steps:
        if step.pick is None:
            yield True, step.wanted, step.interface
        elif held := entries(table):
            yield False, *held[step.pick % len(held)]


def play(steps: list[Step], table: Table[Any, Any], *others: Table[Any, Any]) -> Iterator[None]:
    """Do the same to all tables, what the first one holds deciding; the caller looks at them after each step."""
    for adding, wanted, interface in operations(steps, table):
        for one in (table, *others):
            if adding:
                one.add(wanted, interface)
            else:
                one.remove(wanted, interface)
        yield
