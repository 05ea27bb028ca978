"""Faults: crashes, restarts, cuts, partitions, skewed clocks, lossy links. All of it replays from the seed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from godwit.protocols.host import NodeId, Record
from godwit.sim.wired import Wired
from godwit.sim.world import World


class Faults:
    """What goes wrong in one world. Every fault is noted in the trace, so that a checker can tell cause from effect."""

    def __init__(self, world: World) -> None:
        self.world = world

    def crash(self, name: NodeId) -> None:
        self.world.nodes[name].trace(Record("crashed"))
        self.world.nodes[name].crash()

    def restart(self, name: NodeId, *, keep_disk: bool = True) -> None:
        self.world.nodes[name].restart(keep_disk=keep_disk)
        self.world.nodes[name].trace(Record("restarted", note="" if keep_disk else "empty disk"))

    def skew(self, name: NodeId, *, rate: float = 1.0, offset_s: float = 0.0) -> None:
        """Let a node's clock run at another rate from now on, and jump ahead; a clock never goes back."""
        if rate <= 0 or offset_s < 0:
            raise ValueError("a clock must go forwards: rate above 0, offset not below 0")
        node = self.world.nodes[name]
        node.clock_offset_s = node.now() + offset_s - self.world.engine.now * rate
        node.clock_rate = rate
        node.trace(Record("skewed", note=f"rate {rate} offset {offset_s}"))

    def lose(self, a: NodeId, b: NodeId, *, loss: float = 0.0, duplication: float = 0.0) -> None:
        """From now on each message between the two is lost, or comes twice, with these chances."""
        if not 0 <= loss <= 1 or not 0 <= duplication <= 1:
            raise ValueError("loss and duplication are chances between 0 and 1")
        for here, there in ((a, b), (b, a)):
            link = self._wired.links[here][there]
            link.loss, link.duplication = loss, duplication
        self.world.nodes[a].trace(Record("lossy", peer=b, note=f"loss {loss} duplication {duplication}"))

    def partition(self, *sides: Iterable[NodeId]) -> None:
        """Cut every link between different sides."""
        self._between(sides, "cut")

    def merge(self, *sides: Iterable[NodeId]) -> None:
        """Heal every link between different sides."""
        self._between(sides, "heal")

    @property
    def _wired(self) -> Wired:
        if not isinstance(self.world.medium, Wired):
            raise TypeError("links can be cut and made lossy in a wired world; on the air, move the nodes")
        return self.world.medium

    def _between(self, sides: tuple[Iterable[NodeId], ...], action: str) -> None:
        wired = self._wired
        groups = [list(side) for side in sides]
        for i, one in enumerate(groups):
            for other in groups[i + 1 :]:
                for a, b in product(one, other):
                    if b in wired.links.get(a, {}):
                        getattr(wired, action)(a, b)
                        self.world.nodes[a].trace(Record(action, peer=b))
