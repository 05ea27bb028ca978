"""One stay of a client at one broker: what is kept for it, and what it has had."""

from __future__ import annotations

from collections.abc import Iterable

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import NodeId
from godwit.protocols.relocation.lifecycle import Stay, Step, after
from godwit.protocols.relocation.messages import EventId

SEEN_MAX = 4096
"""Events that a session remembers having given: older ones are on no way any more."""


class Session:
    """`queue` is kept while the client is away or something is missing, each event once and in order.

    A client that comes back to where it just was goes on with the same stay: `hop` grows, `born` does not.
    """

    def __init__(self, client: str, hop: int, filters: Iterable[Filter], source: NodeId = "") -> None:
        self.client = client
        self.hop = self.born = hop
        self.interface = f"{client}#{hop}"
        """Its name as a client of the routing network."""
        self.filters = tuple(filters)
        self.source = source
        self.stay = Stay.START
        self.queue: dict[EventId, Event] = {}
        self.next: NodeId = ""
        """Who gets it."""
        self.asked_by: NodeId = ""
        """Who has asked for it, where it cannot be given yet."""
        self._seen: dict[EventId, None] = {}

    def step(self, step: Step) -> Stay:
        self.stay = after(self.stay, step)
        return self.stay

    def take(self, event: Event) -> bool:
        """Whether it is new; from now on it is not."""
        if event.id in self._seen:
            return False
        self.see([event.id])
        return True

    def see(self, events: Iterable[EventId]) -> None:
        self._seen.update(dict.fromkeys(events))
        while len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]

    def keep(self, event: Event) -> None:
        if self.take(event):
            self.queue[event.id] = event

    def fill(self, events: Iterable[Event], seen: Iterable[EventId]) -> None:
        """What was kept elsewhere goes before what was kept here; what the client had there is not given again."""
        had = set(seen)
        own = [event for event in self.queue.values() if event.id not in had]
        self.queue = {event.id: event for event in (*events, *own)}
        self.see([*had, *self.queue])

    def drain(self) -> list[Event]:
        events, self.queue = list(self.queue.values()), {}
        return events

    @property
    def had(self) -> tuple[EventId, ...]:
        """What the client has been given, not what is kept for it."""
        return tuple(event for event in self._seen if event not in self.queue)
