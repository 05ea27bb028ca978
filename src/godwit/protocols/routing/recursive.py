"""The recursive first approach (spec mft-pubsub 2.5): a migrating broker speaks only for the clients attached to it.

Everybody deeper is made to migrate in turn, because a broker cannot know whether they have already gone elsewhere. The
new parent's whole table is the authority, which is what brings back subscriptions that ended while the net was split.
"""

from __future__ import annotations

from typing import Any

from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.routing.messages import Btab, Filters, Fmig, Mig, Pub, Rbmig, Rep, Row, Sub, Uns
from godwit.protocols.routing.router import Router, is_client
from godwit.protocols.routing.rules import THESIS, Rules
from godwit.protocols.topology.tree import Tree


class RecursiveBroker(Router):
    """Of the hardened rules only H5 concerns it: with `attached_stay` it claims attached clients, not rows (D9)."""

    def __init__(self, host: Host, tree: Tree, rules: Rules = THESIS, **options: Any) -> None:
        super().__init__(host, tree, rules, **options)

    def admits(self, sender: NodeId, message: Message) -> bool:
        match message:
            case Sub(_, subscriber) | Uns(_, subscriber) | Mig(subscriber) if subscriber == sender:
                self.attached.add(sender)
            case Pub() if is_client(sender):
                self.attached.add(sender)
            case Rbmig(_, broker) if broker == sender and not is_client(sender) and sender not in self.tree.neighbors:
                self.tree.adopt(sender)
        return self.is_interface(sender)

    def handle(self, sender: NodeId, message: Message) -> None:
        match message:
            case Pub():
                self.publish(sender, message)
            case Rep():
                self.replay(sender, message)
            case Sub(wanted, subscriber):
                self.routes.add(wanted, sender, subscriber)
                self.spread(message, sender)
            case Uns(wanted, subscriber):
                self.routes.discard(wanted, subscriber)
                self.spread(message, sender)
            case Mig(subscriber, previous):
                self._client_moved(sender, subscriber, previous, message)
            case Rbmig():
                self._broker_moved(sender, message)
            case Btab(rows):
                self._adopt_table(sender, rows)
            case Fmig():
                self.tell(sender, Rbmig(self._local(), self.host.name))

    def _local(self) -> tuple[NodeId, ...]:
        local = (s for s in self.routes.subscribers if self.routes.hop(s) == s)
        return tuple(s for s in local if s in self.attached or not self.rules.attached_stay)

    def _client_moved(self, sender: NodeId, subscriber: NodeId, previous: NodeId | None, message: Mig) -> None:
        if sender == subscriber:
            self.tell(subscriber, Filters(self.routes.filters(subscriber)))
        else:
            self.detach(subscriber)
        hop = self.routes.hop(subscriber)
        if previous != self.host.name and hop is not None and hop in self.tree.neighbors and hop != sender:
            self.tell(hop, message)
        self.routes.point(subscriber, sender)
        self.send_queued(subscriber, sender)

    def migrate(self, old: NodeId | None, new: NodeId) -> None:
        self.host.trace(Record("migrated", peer=new, note=old or ""))
        self.tell(new, Rbmig(self._local(), self.host.name))

    def _broker_moved(self, sender: NodeId, message: Rbmig) -> None:
        hops = (self.routes.hop(subscriber) for subscriber in message.clients)
        onward = dict.fromkeys(hop for hop in hops if hop is not None and hop in self.tree.neighbors and hop != sender)
        for subscriber in message.clients:
            self.point(subscriber, sender)
        for hop in onward:
            self.tell(hop, message)
        if sender == message.broker:
            self.tell(sender, Btab(tuple(self.routes)))
        for subscriber in message.clients:
            self.send_queued(subscriber, sender)

    def _adopt_table(self, sender: NodeId, rows: tuple[Row, ...]) -> None:
        """Take over the parent's view of everybody who is not local, and tell it where ours of the locals differs."""
        local = set(self._local())
        for subscriber in self.routes.subscribers:
            if subscriber not in local:
                self.routes.drop(subscriber)
        for row in rows:
            if row.subscriber not in local:
                self.routes.add(row.wanted, sender, row.subscriber)
        mine = dict.fromkeys((row.wanted, row.subscriber) for row in self.routes)
        theirs = dict.fromkeys((row.wanted, row.subscriber) for row in rows)
        for wanted, subscriber in mine:
            if (wanted, subscriber) not in theirs:
                self.tell(sender, Sub(wanted, subscriber))
        for wanted, subscriber in theirs:
            if (wanted, subscriber) not in mine:
                self.tell(sender, Uns(wanted, subscriber))
        self.spread(Fmig(), sender)
        for subscriber in dict.fromkeys(row.subscriber for row in rows):
            if subscriber not in local:
                self.send_queued(subscriber, sender)
