"""Brokers on wired links and clients that are attached to one of them, or to none."""

from __future__ import annotations

from godwit.protocols.handoff_schemes.client import MobileClient
from godwit.protocols.host import Message, NodeId
from godwit.sim.wired import Wired
from godwit.sim.world import World


class Instant(Wired):
    """Wired between brokers; between a client and the broker it is attached to, at once and without loss.

    What is under way when a client vanishes never arrives, in either direction.
    """

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.clients: dict[NodeId, MobileClient] = {}

    def send(self, sender: NodeId, to: NodeId, message: Message, /) -> None:
        client = self.clients.get(sender) or self.clients.get(to)
        if client is None:
            super().send(sender, to, message)
            return
        broker = to if sender in self.clients else sender
        if client.broker != broker:
            return
        number = client.number

        def arrive() -> None:
            if client.broker == broker and client.number == number:
                self.world.deliver(sender, to, message)

        self.world.engine.at(self.world.engine.now, arrive)
