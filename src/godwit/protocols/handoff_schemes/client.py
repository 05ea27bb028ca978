"""The client's side: a log that survives restarts, and moves that its user does not notice (spec 2.8, 2.10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from godwit.events import Event
from godwit.protocols.handoff_schemes.marks import Marks, above, merged
from godwit.protocols.handoff_schemes.messages import (
    Ack,
    Connect,
    Connected,
    Deliver,
    Leaving,
    Ping,
    Pong,
    Unsubscribe,
    Wishes,
)
from godwit.protocols.host import Host, LocalError, Message, NodeId, RemoteError


class LastBrokerLog:
    """Where the client was last and how often it attached; `disk` is whatever its world keeps across restarts."""

    def __init__(self, disk: dict[str, Any]) -> None:
        self._disk = disk

    @property
    def previous(self) -> NodeId:
        return str(self._disk.get("previous", ""))

    @property
    def tried(self) -> tuple[NodeId, ...]:
        """Brokers that were called since, the last first; any of them may have let the client in."""
        return tuple(self._disk.get("tried", ()))

    @property
    def home(self) -> NodeId:
        """The broker that accepted the client first."""
        return str(self._disk.get("home", ""))

    def next_attachment(self, broker: NodeId) -> int:
        """Z1: raised with every attempt, also one that fails."""
        self._disk["attachments"] = self._disk.get("attachments", 0) + 1
        self._disk["tried"] = [broker, *(other for other in self.tried if other != broker)]
        return int(self._disk["attachments"])

    def accepted_by(self, broker: NodeId) -> None:
        self._disk.setdefault("home", broker)
        self._disk["previous"] = broker
        self._disk["tried"] = []


class MobileClient:
    """`listener(event, delivery)` is called for every event that arrives, in order of arrival."""

    def __init__(
        self,
        host: Host,
        wishes: Wishes,
        disk: dict[str, Any],
        listener: Callable[[Event, Deliver], None],
        *,
        drop_seen: bool = False,
    ) -> None:
        self.host = host
        self.wishes = wishes
        self.log = LastBrokerLog(disk)
        self.listener = listener
        self.drop_seen = drop_seen
        """Whether events at or below the last seen one are dropped here: acknowledgements may be lost on the air."""
        self.seen: dict[str, int] = {}
        self.since: Marks | None = None
        """Where the first broker began, if this client heard it and has not been restarted since."""
        self.broker: NodeId = ""
        self.number = 0

    def connect(self, broker: NodeId) -> None:
        """Appear at a broker; where the client was before it says by itself."""
        log, tried = self.log, self.log.tried
        self.number = log.next_attachment(broker)
        self.broker = broker
        marks = merged(self.since or {}, self.seen)
        sure = self.since is not None
        message = Connect(self.host.name, self.number, log.previous, self.wishes, marks, sure, tried, log.home)
        self.host.send(broker, message)

    def vanish(self) -> None:
        """Out of reach, without a word."""
        self.broker = ""

    def leave(self, to: NodeId = "") -> None:
        """Say goodbye, and perhaps where to (announced moves)."""
        self.host.send(self._attached(), Leaving(self.host.name, self.number, to))
        self.broker = ""

    def unsubscribe(self) -> None:
        self.host.send(self._attached(), Unsubscribe(self.host.name, self.number))

    def receive(self, sender: NodeId, message: Message) -> None:
        if sender != self.broker:
            return
        match message:
            case Connected():
                self.log.accepted_by(sender)
                self.since = message.since if message.since is not None else self.since
            case Deliver():
                self._delivered(message)
            case Ping():
                self.host.send(sender, Pong(self.host.name, message.epoch))
            case _:
                raise RemoteError(f"{sender} sends {type(message).__name__} to a client")

    def _delivered(self, message: Deliver) -> None:
        event = message.event
        if above(event, self.seen) or not self.drop_seen:
            self.listener(event, message)
        if above(event, self.seen):
            self.seen[event.publisher] = event.sequence
        ack = Ack(self.host.name, message.epoch, event.publisher, event.sequence)
        self.host.send(self.broker, ack)

    def _attached(self) -> NodeId:
        if not self.broker:
            raise LocalError(f"{self.host.name} is attached to no broker")
        return self.broker
