"""How a client without a token is let in out of a copy before its session is handed over: docs/broker.md, "Copies"."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from godwit.protocols.broker.contents import Nothing, Reserve, Reserved
from godwit.protocols.broker.outlet import Opening
from godwit.protocols.broker.places import At
from godwit.protocols.broker.sessions import Copy, Session
from godwit.protocols.host import NodeId

if TYPE_CHECKING:
    from godwit.protocols.broker.moving import Moves


class Reserving:
    """Whoever holds a copy and has the client asks for the session twice: at once, that nobody else may have it
    (`Reserve`), and with `Fetch` when its disk has the copy. It lets the client in as soon as its disk has the copy and
    the source has agreed; what is left of handing over happens behind the client's back, as if it had shown its token.

    The source has the reservation on its disk before it agrees. From then on it does to nobody what would let the
    client have the session anywhere else, before it has heard from the holder: that it has taken the session, or that
    it has nothing, which after a crash may be so.
    """

    def __init__(self, moves: Moves) -> None:
        self.moves = moves
        self.registry = moves.registry
        self.switch = moves.switch

    # At the holder

    def ask(self, copy: Copy, epoch: int) -> None:
        """Before the copy is written, so that this need not wait for that."""
        copy.asked_epoch = epoch
        self.switch.fabric.send((copy.source,), Reserve(copy.session.client, copy.epoch), durable=False)

    def written_soon(self, copy: Copy) -> None:
        """It has just been written."""
        self.switch.store.settled(partial(self._written, copy))

    def _written(self, copy: Copy) -> None:
        copy.kept = True
        self._take_if_ready(copy)

    def on_reserved(self, origin: NodeId, reserved: Reserved) -> None:
        """It counts for the client that waits now: one that comes later asks again."""
        copy = self.moves.holding.get(reserved.client, origin)
        if copy is not None and copy.epoch == reserved.copy and copy.asked_epoch and copy.fetched:
            copy.reserved = True
            self._take_if_ready(copy)

    def _take_if_ready(self, copy: Copy) -> None:
        client = copy.session.client
        waiting = self.moves.waiting.get(client)
        if not (copy.kept and copy.reserved) or copy.session.ended or self.registry.copies.get(client) is not copy:
            return
        if waiting is None or waiting.outlet is None or waiting.wanted_by is not None:
            return
        if waiting.source == copy.source:
            self.moves.stop_waiting(client)
            self.moves.taking.take_reserved(copy, waiting.opening, waiting.outlet)

    def renounce(self, client: str, source: NodeId) -> None:
        """The source asks for the session itself, and is told that there is none here: it relies on that."""
        copy = self.moves.holding.get(client, source)
        if copy is not None:
            copy.reserved = False

    # At the source

    def on_reserve(self, origin: NodeId, reserve: Reserve) -> None:
        """Nothing is said where it cannot be: the answer to `Fetch`, which follows, says what is."""
        session = self.registry.sessions.get(reserve.client)
        if (
            session is not None
            and session.outlet is None
            and session.copied == reserve.copy
            and origin in session.copies
            and session.reserved_for in ("", origin)
            and reserve.client not in self.moves.waiting
        ):
            session.reserved_for = origin
            self.switch.ledger.put_session(session)
            self.switch.say((origin,), Reserved(reserve.client, reserve.copy))

    def holder(self, session: Session) -> NodeId:
        """Who must be asked before anybody has this session; empty where nobody must."""
        holder = session.reserved_for
        return holder if holder in self.switch.fabric.brokers else ""

    def recall(self, session: Session, epoch: int, to: NodeId) -> None:
        """Another broker wants it: it gets it from here, or through here, when the holder has said."""
        opening = Opening(client=session.client, clean=False, expiry_s=session.expiry_s)
        waiting = self.moves.wait_for(opening, None, At(session.epoch, session.reserved_for))
        waiting.wanted_by = max(waiting.wanted_by or (0, ""), (epoch, to))

    def on_nothing(self, origin: NodeId, nothing: Nothing) -> bool:
        """Whether the holder has not taken what was reserved for it, and somebody has waited to know."""
        session = self.registry.sessions.get(nothing.client)
        if session is None or session.reserved_for != origin:
            return False
        self.free(session)
        waiting = self.moves.waiting.get(nothing.client)
        if waiting is None or waiting.source != origin:
            return False
        self.moves.go_on_with(session)
        return True

    def free(self, session: Session) -> None:
        if session.reserved_for:
            session.reserved_for = ""
            self.switch.ledger.put_session(session)
