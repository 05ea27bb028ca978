"""What brokers of a routing network say to one another.

| message | from, to | meaning |
|---|---|---|
| `Stated` | broker to neighbor | adverts and subscriptions that end and begin, at once; then the markers behind them |
| `Published` | broker to neighbor | an event on its way |
| `RootSet` | slave to master | all that the slave wants, in place of what it wanted before |

Links keep their order, and one message is applied whole: what a withdrawal uncovers comes with it (spec 2.2).
"""

from __future__ import annotations

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.protocols.host import Message, NodeId
from godwit.tables.merging.merging import Update

Filters = tuple[Filter, ...]


class Marker(msgspec.Struct, frozen=True):
    """A note that travels hop by hop behind what was said before it and installs nothing (spec 2.11.4).

    Which `kind` means what is up to those who place it. `via` is a broker to be passed on the way, if any.
    """

    kind: str
    client: str
    hop: int
    to: NodeId
    origin: NodeId
    via: NodeId = ""
    filters: Filters = ()
    publisher: bool = False


class Stated(Message, frozen=True):
    """First the adverts change, then the subscriptions, then the markers are heard."""

    unadvertised: Filters = ()
    advertised: Filters = ()
    unsubscribed: Filters = ()
    subscribed: Filters = ()
    markers: tuple[Marker, ...] = ()

    @property
    def adverts(self) -> Update[Filter]:
        return Update(self.unadvertised, self.advertised)

    @property
    def subscriptions(self) -> Update[Filter]:
        return Update(self.unsubscribed, self.subscribed)


class Published(Message, frozen=True):
    """`kind` is the type as which it travels, its own or one above; `down` means that it has passed the rendezvous."""

    event: Event
    kind: str = ""
    down: bool = False


class RootSet(Message, frozen=True):
    filters: Filters = ()
