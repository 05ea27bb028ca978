"""Ranges on a fixed number of attributes, without anything that would slow counting down."""

from __future__ import annotations

from operator import ge
from random import Random

Box = tuple[int, ...]
"""A range on each attribute, as its negated lower end and its upper end: to cover is to be greater in all of them."""


class Boxes:
    """A language of boxes; an event is a box that is a point."""

    def covers(self, wide: Box, narrow: Box, /) -> bool:
        return all(map(ge, wide, narrow))

    def overlaps(self, one: Box, other: Box, /) -> bool:
        return all(-one[at] <= other[at + 1] and -other[at] <= one[at + 1] for at in range(0, len(one), 2))

    def matches(self, wanted: Box, event: Box, /) -> bool:
        return self.covers(wanted, event)

    def merge(self, one: Box, other: Box, /) -> Box | None:
        return None

    def type_of(self, wanted: Box, /) -> str | None:
        return None


def box(dice: Random, dimensions: int, value_max: int = 100) -> Box:
    ends = [sorted((dice.randint(0, value_max), dice.randint(0, value_max))) for _ in range(dimensions)]
    return tuple(end for low, high in ends for end in (-low, high))
