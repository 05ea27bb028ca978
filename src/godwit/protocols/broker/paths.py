"""Where clients went on to, by where they had come from: counts over two steps, which fade and are bounded."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp2

from godwit.protocols.host import NodeId

BEFORES_MAX = 64
"""Of those who went to one broker so many origins are told apart; when there are more, the lightest eighth goes."""
NAME_MAX = 255
"""No broker has a longer name."""
FADED = 1 / 128
"""What has faded to less than this of one move says nothing any more."""


class Counted:
    """Of those who went on to one broker: how many had come from where, as of a time."""

    __slots__ = ("as_of_s", "by")

    def __init__(self, as_of_s: float, by: Mapping[NodeId, float]) -> None:
        self.as_of_s = as_of_s
        self.by = dict(by)


class Paths:
    """After `half_life_s` a move counts half. All that changes by a call is at the `to` of that call."""

    def __init__(self, half_life_s: float) -> None:
        self.half_life_s = half_life_s
        self._counted: dict[NodeId, Counted] = {}

    def learn(self, before: NodeId, to: NodeId, now_s: float) -> None:
        """Somebody who had come from `before` went on to `to`."""
        by = self.as_of(to, now_s)
        by[before] = by.get(before, 0.0) + 1.0
        self.put(to, by, now_s)

    def put(self, to: NodeId, by: Mapping[NodeId, float], as_of_s: float) -> None:
        """These instead of what was counted there."""
        kept = {name: count for name, count in by.items() if count >= FADED and len(name) <= NAME_MAX}
        if len(kept) > BEFORES_MAX:
            spared = sorted(kept, key=lambda name: (-kept[name], name))[: BEFORES_MAX - BEFORES_MAX // 8]
            kept = {name: kept[name] for name in spared}
        self._counted[to] = Counted(as_of_s, kept)

    def drop(self, to: NodeId) -> None:
        self._counted.pop(to, None)

    def clear(self) -> None:
        self._counted.clear()

    def alike(self, before: NodeId, now_s: float) -> dict[NodeId, float]:
        """Where those went who had come from there."""
        return {
            to: known.by[before] * self._share(known, now_s)
            for to, known in self._counted.items()
            if before in known.by
        }

    def befores(self, now_s: float) -> dict[NodeId, float]:
        """How many had come from where, wherever they went."""
        found: dict[NodeId, float] = {}
        for known in self._counted.values():
            share = self._share(known, now_s)
            for before, count in known.by.items():
                found[before] = found.get(before, 0.0) + count * share
        return found

    def of(self, to: NodeId) -> Counted:
        return self._counted.get(to) or Counted(0.0, {})

    def as_of(self, to: NodeId, time_s: float) -> dict[NodeId, float]:
        """How many of those who went there had come from where, faded until then."""
        known = self.of(to)
        share = self._share(known, time_s)
        return {before: count * share for before, count in known.by.items()}

    def _share(self, known: Counted, now_s: float) -> float:
        return exp2((known.as_of_s - now_s) / self.half_life_s)
