"""The network below a ring of brokers (spec data-gathering 4.1): delays follow distance, and nothing is kept per link.

Between brokers a message takes `base_s` and `per_unit_s` for each unit of distance. Between a client and a broker there
is a radio: it works while the client is attached to that broker, and only then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random

from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.messages import Cast, Hop
from godwit.sim.world import World

Draw = Callable[[Random], float]


class Underlay:
    """`draw` replaces delays between brokers by random ones, so that messages overtake each other."""

    def __init__(
        self,
        world: World,
        *,
        base_s: float = 0.001,
        per_unit_s: float = 0.001,
        radio_s: float = 0.001,
        draw: Draw | None = None,
    ) -> None:
        self.world = world
        self.base_s = base_s
        self.per_unit_s = per_unit_s
        self.radio_s = radio_s
        self.draw = draw
        self.places: dict[NodeId, tuple[float, ...]] = {}
        self.attached: dict[NodeId, NodeId | None] = {}
        """By client the broker in whose range it is."""
        self.sent: Counter[str] = Counter()
        """Transmissions by type of what they carry, one for each overlay hop."""
        self.travelled = 0.0
        """Units of distance, of all transmissions between brokers together."""
        self.lose: Callable[[NodeId, NodeId, Message], bool] | None = None
        self.watch: Callable[[NodeId, NodeId, Message], None] | None = None
        self._dice = world.streams.stream("underlay")

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        self.sent[kind_of(message)] += 1
        if self.lose is not None and self.lose(sender, to, message):
            return
        if sender in self.attached or to in self.attached:
            self._over_radio(sender, to, message)
            return
        there = self.places.get(to)
        if there is None:
            return
        far = math.dist(self.places[sender], there)
        self.travelled += far
        delay_s = self.base_s + self.per_unit_s * far if self.draw is None else self.draw(self._dice)
        self.carry(sender, to, message, delay_s)

    def carry(self, sender: NodeId, to: NodeId, message: Message, delay_s: float) -> None:
        engine = self.world.engine
        engine.at(engine.now + delay_s, partial(self._arrive, sender, to, message))

    def _arrive(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if self.watch is not None:
            self.watch(sender, to, message)
        self.world.deliver(sender, to, message)

    def _over_radio(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if self._linked(sender, to):
            engine = self.world.engine
            engine.at(engine.now + self.radio_s, partial(self._arrive_by_radio, sender, to, message))

    def _arrive_by_radio(self, sender: NodeId, to: NodeId, message: Message) -> None:
        if self._linked(sender, to):
            self._arrive(sender, to, message)

    def _linked(self, a: NodeId, b: NodeId) -> bool:
        return self.attached[a] == b if a in self.attached else self.attached[b] == a

    def broadcast(self, sender: NodeId, message: Message, /) -> None:
        raise NotImplementedError("brokers of a ring have no common medium")

    def silence(self, name: NodeId, /) -> None:
        """What is under way to a node that crashed arrives at nobody, or at its next life, which confirms nothing."""


def kind_of(message: Message) -> str:
    """The type of what travels, inside the frames that carry it."""
    if type(message) is Hop:
        message = message.body
        if type(message) is Cast:
            message = message.body
    return type(message).__name__
