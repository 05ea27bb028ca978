"""A broker as a process: the tree that election keeps, and a routing protocol on top of it."""

from __future__ import annotations

from collections.abc import Callable

from godwit.protocols.host import Core, Host, Message, NodeId
from godwit.protocols.topology.election import Election, ElectionOptions, Heartbeat
from godwit.protocols.topology.tree import Tree


class BrokerProcess:
    """Heartbeats go to the election, everything else to the router."""

    def __init__(
        self,
        host: Host,
        router: Callable[[Host, Tree], Core],
        options: ElectionOptions = ElectionOptions(),  # noqa: B008
        *,
        incarnation: int = 0,
    ) -> None:
        self.election = Election(host, options, incarnation=incarnation)
        self.router = router(host, self.election)

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, Heartbeat):
            self.election.receive(sender, message)
        else:
            self.router.receive(sender, message)
