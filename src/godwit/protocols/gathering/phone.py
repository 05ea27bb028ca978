"""The client: a phone that moves, a sensor that publishes, or the sink of a sensor network (spec 2.4, 2.11, 2.15).

It keeps no more than its epoch, the last broker, the brokers asked since, and what it has seen. It never subscribes
again because it moved.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from godwit.protocols.gathering.areas import Area
from godwit.protocols.gathering.messages import (
    Associate,
    Associated,
    Condition,
    Item,
    ItemId,
    Notify,
    NotifyAck,
    Publish,
    Scalar,
    Subscribe,
    Subscribed,
    Subscription,
    Unsubscribe,
)
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Host, LocalError, Message, NodeId, Record, RemoteError
from godwit.protocols.topology.pastry.keys import Key


def ignore(item: Item) -> None:
    """The listener before anybody listens."""


class Phone:
    """`epoch` must survive restarts: give the last one, or the wall clock in milliseconds, whichever is larger."""

    def __init__(self, host: Host, *, epoch: int = 0, ack_s: float = 1.0, history_max: int | None = None) -> None:
        self.host = host
        self.client = host.name
        self.epoch = epoch
        self.ack_s = ack_s
        self.history_max = history_max
        self.broker: NodeId | None = None
        self.attached = False
        self.last: Key = b""
        self.subscriptions: dict[str, Subscription] = {}
        self.granted: dict[str, bool] = {}
        """By subscription whether it is in place everywhere, as far as brokers say so."""
        self.on_notification: Callable[[Item], None] = ignore
        self.duplicates = 0
        self._tried: list[Key] = []
        self._seen: set[ItemId] = set()
        self._history: list[tuple[float, ItemId, Item]] = []
        self._cancelled: set[str] = set()
        self._counter = 0

    def connect(self, broker: NodeId, key: Key) -> None:
        """A broker is in range; its name on the ring comes with its beacon."""
        self.epoch += 1
        self.broker, self.attached = broker, False
        self._associate(Associate(self.client, self.epoch, self.last, tuple(self._tried)))
        self._tried.append(key)

    def _associate(self, message: Associate) -> None:
        """The same message with the same epoch until it is answered or the client is elsewhere."""
        if self.broker is None or self.attached or message.epoch != self.epoch:
            return
        self.host.send(self.broker, message)
        self.host.after(self.ack_s, lambda: self._associate(message))

    def disconnect(self) -> None:
        self.broker, self.attached = None, False

    def subscribe(
        self, event_type: str, area: Area, conditions: tuple[Condition, ...] = (), ttl_s: float | None = None
    ) -> str:
        self._counter += 1
        sid = f"{self.client}#{self._counter}"
        wanted = Subscription(sid, event_type, area, self.client, conditions, epoch=self.epoch, ttl_s=ttl_s)
        self.subscriptions[sid] = wanted
        self.host.send(self._reached(), Subscribe(wanted))
        return sid

    def unsubscribe(self, sid: str) -> None:
        if sid not in self.subscriptions:
            raise LocalError(
                f"{self.client} has no subscription {sid!r}; it has {', '.join(self.subscriptions) or 'none'}"
            )
        broker = self._reached()
        wanted = self.subscriptions.pop(sid)
        self._cancelled.add(sid)
        self.host.send(broker, Unsubscribe(sid, wanted.area, self.client))

    def publish(self, event_type: str, place: Point, data: dict[str, Scalar] | None = None) -> ItemId:
        self._counter += 1
        item = Item((self.client, self._counter), event_type, place, self.host.now(), data or {})
        self.host.send(self._reached(), Publish(item))
        return item.item

    def _reached(self) -> NodeId:
        if self.broker is None:
            raise LocalError(f"{self.client} is not connected: no broker is in range")
        return self.broker

    def history(self) -> list[Item]:
        """What has been received, by the time at which it was published."""
        return [item for _, _, item in self._history]

    def receive(self, sender: NodeId, message: Message, /) -> None:
        if isinstance(message, Associated):
            self._associated(message)
        elif isinstance(message, Subscribed):
            self.granted[message.sid] = message.complete
        elif isinstance(message, Notify):
            self._notified(sender, message)
        else:
            raise RemoteError(f"a client has no use for {type(message).__name__}")

    def _associated(self, message: Associated) -> None:
        if message.epoch == self.epoch and self.broker is not None:
            self.last, self.attached = message.broker, True
            self._tried.clear()

    def _notified(self, sender: NodeId, message: Notify) -> None:
        item = message.item
        self.host.send(sender, NotifyAck(self.client, item.item))
        if item.item in self._seen:
            self.duplicates += 1
            return
        if message.sids and self._cancelled.issuperset(message.sids):
            return
        self._seen.add(item.item)
        insort(self._history, (item.time_s, item.item, item), key=lambda one: one[:2])
        if self.history_max is not None and len(self._history) > self.history_max:
            del self._history[0]
        self.host.trace(Record("delivered", event=item.item, client=self.client))
        self.on_notification(item)
