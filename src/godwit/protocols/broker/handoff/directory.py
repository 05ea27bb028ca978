"""Which broker has whose session, as far as it has been said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from godwit.protocols.broker.fabric.base import ANYTHING, Fabric
from godwit.protocols.broker.messages import Found, Place, Placed, Sought, Turn
from godwit.protocols.broker.store import Store
from godwit.protocols.host import NodeId


class At(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Since this epoch, at this broker; the higher wins."""

    epoch: int
    broker: NodeId


NOWHERE = At(0, "")

Whereabouts = Callable[[str], At | None]
"""Where the session of a client is."""

Then = Callable[[At | None, bool], None]
"""Is told where a session is, or that nobody knows of one, and whether that is sure."""


class Directory(Protocol):
    """Who is told which broker has a client's session, and can be asked. What is known here is in `Places`."""

    complete: bool
    """Whether what has been said here is all that anybody could say, so that nobody need be asked."""

    def ask(self, client: str, then: Then, is_open: Callable[[], bool], *, patient: bool = False) -> None:
        """`then(at, is_sure)` follows once, now or later, with what others know of this client; None where nobody knows
        more than was said here. That is sure where whoever might have a session has been able to say so. Whoever asks
        waits no longer than for a session. While nobody has answered and the question is open, it is asked again;
        who is `patient`, since there ought to be a session, asks until all have answered and none is unsure."""

    def tell(self, place: Place) -> None:
        """A session is at this broker, or is no more. Besides those who can be asked, whoever had the session before
        hears of it, and whoever has asked for it lately: its client may wait there still."""

    def greet(self, brokers: Iterable[NodeId], place: Place) -> None:
        """Brokers that were not known when that was told."""

    # Where it is not complete, brokers are each other's homes (`homes.CareOf`):

    def serve(self, here: Whereabouts, noted: Whereabouts, settled: Callable[[str], None]) -> None:
        """What this broker can answer with: a session that is here, and what it has noted of others. `settled(client)`
        is called when all homes know of a session that is here. Called once, at first."""

    def is_settled(self, client: str) -> bool:
        """Whether all who are told where the session of this client is know it, and have said of which older place
        they knew."""

    def missed(self, broker: NodeId, place: Place) -> None:
        """This broker was given up: it may have been told that, and another must know it now."""

    def registered(self, origin: NodeId, place: Place) -> None:
        """A broker says so here; called before this one notes it."""

    def hear(self, origin: NodeId, message: Sought | Found) -> None: ...

    def handed_on(self, message: Placed) -> None:
        """The same said by another broker; called before this one notes it."""

    def weigh(self, broker: NodeId, place: Place) -> None:
        """This broker is a home of the client, and hears of this place; called before it notes it. If it knows of
        another one, whoever has the older session is told of the newer. So is whoever has asked."""

    def is_news(self, message: Placed) -> bool:
        """Whether what a home says has not been said by another one."""

    def check(self, origin: NodeId, message: Placed, then: Callable[[bool], None]) -> None:
        """`then(believed)` follows once, now or later. Whoever is no home of the client, as far as is known here, may
        be wrong: the broker that is to have the session is asked, and believed."""


class Everywhere:
    """Every broker is told of every session, so that nobody asks, and nobody is asked."""

    complete = True

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    def ask(self, client: str, then: Then, is_open: Callable[[], bool], *, patient: bool = False) -> None:
        then(None, True)

    def tell(self, place: Place) -> None:
        self.fabric.send(self.fabric.sources(ANYTHING), place)

    def greet(self, brokers: Iterable[NodeId], place: Place) -> None:
        self.fabric.send(brokers, place)

    def serve(self, here: Whereabouts, noted: Whereabouts, settled: Callable[[str], None]) -> None: ...

    def is_settled(self, client: str) -> bool:
        return True

    def missed(self, broker: NodeId, place: Place) -> None: ...

    def registered(self, origin: NodeId, place: Place) -> None: ...

    def handed_on(self, message: Placed) -> None: ...

    def weigh(self, broker: NodeId, place: Place) -> None: ...

    def hear(self, origin: NodeId, message: Sought | Found) -> None: ...

    def is_news(self, message: Placed) -> bool:
        return False

    def check(self, origin: NodeId, message: Placed, then: Callable[[bool], None]) -> None:
        then(False)


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """A turn that cannot be made yet, and who asked for it."""

    by: NodeId
    turn: Turn


class Places:
    """Where the sessions of other brokers are, and the turns that wait for somebody's interest. All of it is kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.known: dict[str, At] = {}
        """By client; to look at."""
        self.turns: dict[tuple[str, int], Asked] = {}
        """By client and a number: several may be asked for under the same epoch."""
        self._turns = 0
        for client, number, row in store.load("places"):
            if number:
                self.turns[client, number] = msgspec.msgpack.decode(row, type=Asked)
                self._turns = max(self._turns, number)
            else:
                self.known[client] = msgspec.msgpack.decode(row, type=At)

    def put(self, client: str, at: At) -> None:
        """Unless a newer one is known."""
        known = self.known.get(client)
        if known is None or known < at:
            self.known[client] = at
            self._store.put("places", client, 0, msgspec.msgpack.encode(at))

    def forget(self, client: str, at: At) -> None:
        """It has ended there, or is not there; what is newer stays."""
        known = self.known.get(client)
        if known is not None and known <= at:
            del self.known[client]
            self._store.delete("places", client, 0)

    def forget_broker(self, broker: NodeId) -> None:
        """It does not come back."""
        for client, at in list(self.known.items()):
            if at.broker == broker:
                self.forget(client, at)
        for key, asked in list(self.turns.items()):
            if asked.by == broker:
                self.done(key)

    def wait(self, asked: Asked) -> None:
        self._turns += 1
        key = asked.turn.client, self._turns
        self.turns[key] = asked
        self._store.put("places", *key, msgspec.msgpack.encode(asked))

    def done(self, key: tuple[str, int]) -> None:
        if self.turns.pop(key, None) is not None:
            self._store.delete("places", *key)
