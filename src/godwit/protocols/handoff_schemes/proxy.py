"""A broker machine: the broker and its proxy, each with an interface of its own (spec proactive-handoff 2.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from godwit.protocols.handoff_schemes.broker import HandoffBroker, HandoffOptions
from godwit.protocols.handoff_schemes.durable import Durable
from godwit.protocols.handoff_schemes.messages import Connect, Control, Leaving, Pong, Publish, Unsubscribe
from godwit.protocols.handoff_schemes.proactive.monitor import SubscriberMonitor
from godwit.protocols.handoff_schemes.proactive.scheme import ProActive
from godwit.protocols.host import Host, Message, NodeId, RemoteError

Scheme = Callable[[Host, HandoffOptions], HandoffBroker]


class Port:
    """One interface and what went through it."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()
        self.received_b = 0

    def count(self, message: Message) -> None:
        self.received[type(message).__name__] += 1
        self.received_b += message.size_b


class BrokerMachine:
    """Clients and publishers come in by `broker_port`, other brokers by `peer_port`; who is attached is pinged.

    Without the proxy (`proxy=False`) it is a plain broker with durable subscriptions that no other broker can talk to:
    what the proxy costs is the difference between the two.
    """

    def __init__(
        self,
        host: Host,
        options: HandoffOptions,
        scheme: Scheme = ProActive,
        *,
        proxy: bool = True,
        ping_s: float = 0.1,
        misses: int = 2,
    ) -> None:
        self.proxy = proxy
        self.core = scheme(host, options) if proxy else Durable(host, options)
        self.monitor = SubscriberMonitor(host, self.core.lost, ping_s=ping_s, misses=misses)
        self.broker_port, self.peer_port = Port(), Port()

    def receive(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Publish) or (isinstance(message, Control) and message.subscriber == sender):
            self.broker_port.count(message)
            self._from_client(sender, message)
        elif self.proxy:
            self.peer_port.count(message)
            self.core.receive(sender, message)
        else:
            raise RemoteError(f"{sender} sends {type(message).__name__} to a broker without a proxy")

    def _from_client(self, sender: NodeId, message: Message) -> None:
        if isinstance(message, Pong):
            self.monitor.heard(message)
            return
        if isinstance(message, Unsubscribe | Leaving):
            self.monitor.forget(sender)
        self.core.receive(sender, message)
        if isinstance(message, Connect):
            self.monitor.watch(sender)
