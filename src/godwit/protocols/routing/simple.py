"""Simple Routing (spec mft-pubsub 2.1): fixed brokers, fixed clients, every broker knows every subscription."""

from __future__ import annotations

from collections import Counter

from godwit.filters.filters import Filter
from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.routing.messages import Pub, Sub, Uns
from godwit.protocols.topology.tree import Tree


class SimpleBroker:
    """The table is a multiset: it counts how many behind an interface want a filter, so that one UNS removes one."""

    def __init__(self, host: Host, tree: Tree) -> None:
        self.host = host
        self.tree = tree
        self.routes: Counter[tuple[Filter, NodeId]] = Counter()

    def receive(self, sender: NodeId, message: Message, /) -> None:
        match message:
            case Sub(wanted):
                self.routes[wanted, sender] += 1
                self._spread(message, sender)
            case Uns(wanted):
                self._remove_one(wanted, sender)
                self._spread(message, sender)
            case Pub(event, hops):
                values = event.values()
                onward = {hop: None for wanted, hop in self.routes if hop != sender and wanted.matches(values)}
                for hop in onward:
                    self.host.send(hop, Pub(event, hops + 1))

    def _remove_one(self, wanted: Filter, sender: NodeId) -> None:
        if self.routes[wanted, sender] > 1:
            self.routes[wanted, sender] -= 1
        else:
            del self.routes[wanted, sender]

    def _spread(self, message: Message, sender: NodeId) -> None:
        for neighbor in sorted(self.tree.neighbors):
            if neighbor != sender:
                self.host.send(neighbor, message)
