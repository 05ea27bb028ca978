"""Where those who leave a broker will go next, from the moves that were counted before."""

from __future__ import annotations

from collections.abc import Mapping

from godwit.protocols.host import NodeId

SHARED = 5.0
"""All moves from here, whatever came before them, count together as so many moves of one's own kind."""
NEAR = 1.0
"""So do the places nearby, where no one has gone yet."""


class Forecast:
    """Moves by where they went, and by where the mover was before: who came from the north rarely goes back there.

    The weights of three sources add up: moves with the same place before, all moves, and how near a place is. The
    more has been counted of the first, the less the others matter. `closeness` is positive and needs no scale.
    """

    def __init__(self, closeness: Mapping[NodeId, float] | None = None) -> None:
        self.closeness = dict(closeness or {})
        self.moves: dict[NodeId, dict[NodeId, float]] = {}
        """By the place before: where to, and how often."""
        self.all_moves: dict[NodeId, float] = {}

    def learn(self, before: NodeId, to: NodeId, count: float = 1.0) -> None:
        some = self.moves.setdefault(before, {})
        some[to] = some.get(to, 0.0) + count
        self.all_moves[to] = self.all_moves.get(to, 0.0) + count

    def forget(self, place: NodeId) -> None:
        """Nobody can go there any more."""
        self.moves.pop(place, None)
        for some in (*self.moves.values(), self.all_moves, self.closeness):
            some.pop(place, None)

    def fade(self, share: float) -> None:
        """What was counted so far counts only so much from now on."""
        for some in (*self.moves.values(), self.all_moves):
            for place in some:
                some[place] *= share

    def weights(self, before: NodeId = "") -> dict[NodeId, float]:
        """How likely each next place is; they need not add up to 1."""
        return foreseen(self.closeness, self.all_moves, self.moves.get(before, {}))


def foreseen(
    closeness: Mapping[NodeId, float], all_moves: Mapping[NodeId, float], alike: Mapping[NodeId, float]
) -> dict[NodeId, float]:
    """How likely each next place is, from the three sources; `alike` are the moves with the same place before."""
    weights: dict[NodeId, float] = {}
    for some, pull in ((closeness, NEAR), (all_moves, SHARED)):
        total = sum(some.values())
        for place, weight in some.items() if total else ():
            weights[place] = weights.get(place, 0.0) + pull * weight / total
    for place, count in alike.items():
        weights[place] = weights.get(place, 0.0) + count
    return weights
