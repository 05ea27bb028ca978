"""Brokers of an overlay and the network below it: links between neighbors, and anybody reached directly beside them.

What goes over a link keeps its order. What goes directly to a broker that is no neighbor travels *out of band*: in
order with what else goes directly between the two, and with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from godwit.protocols.host import Message, NodeId
from godwit.sim.wired import Latency, Link, Wired
from godwit.sim.world import World, kind_of

Direct = Callable[[NodeId, NodeId], Latency]
"""What the network below takes from one broker to another."""


class Overlay(Wired):
    """Counts messages by kind, not their bytes: to encode each would take longer than the run.

    `beside` are messages that go out of band between neighbors too; `label` says under which name each is counted.
    """

    def __init__(
        self,
        world: World,
        direct: Direct,
        beside: tuple[type[Message], ...] = (),
        label: Callable[[Message], str] = kind_of,
    ) -> None:
        super().__init__(world)
        self.label = label
        self.direct = direct
        self.beside = beside
        self._below: dict[tuple[NodeId, NodeId], Link] = {}

    def count(self, sender: NodeId, message: Message) -> int:
        self.sent[sender, self.label(message)] += 1
        return 0

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        if to in self.links.get(sender, {}) and not isinstance(message, self.beside):
            super().send(sender, to, message)
        else:
            self.count(sender, message)
            self._carry(self._beside(sender, to), sender, to, message)

    def _beside(self, sender: NodeId, to: NodeId) -> Link:
        if (sender, to) not in self._below:
            dice = self.world.streams.stream("below", sender, to)
            self._below[sender, to] = Link(self.direct(sender, to), None, dice)
        return self._below[sender, to]
