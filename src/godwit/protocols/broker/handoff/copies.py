"""How a broker makes copies of the sessions that rest with it, and keeps them up: docs/broker.md, "Copies"."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal, Protocol

import msgspec

from godwit.protocols.broker.messages import Copy, Drop, Forwarded, Through, Turned, Uncopied
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.session.lifecycle import State
from godwit.protocols.broker.session.parse import are_matched, filters_of
from godwit.protocols.broker.session.rows import kept_of
from godwit.protocols.broker.session.state import Session
from godwit.protocols.host import NodeId, Record

Handoff = Literal["durable", "reactive", "proactive"]
"""How a session follows its client: not at all, each broker keeping one of its own; fetched when the client appears
elsewhere; or with copies there before."""

COPIES_BYTES_MAX = 64 * 1024 * 1024

BURST, PACE_S = 64, 0.01
"""So many sessions are copied at once; more, as when a crash has cut off all clients, take turns with other work."""

AWAY_S = 300.0
"""Whoever comes back after so long does not go on where it was going: as the mobility job sees it too."""


class Foresight(Protocol):
    """Where clients go from here, as far as it has been learned."""

    def likely(self, before: NodeId) -> tuple[NodeId, ...]:
        """Who gets copies of a session that came from there, or (empty) from nowhere; the most likely first."""

    def went(self, to: NodeId, copied: Collection[NodeId], before: NodeId) -> None:
        """A session that came from `before` has left for `to`; these had copies of it."""

    def came(self, source: NodeId) -> None:
        """A session has come from there."""


class Nobody:
    """The foresight of a broker that has no neighbors."""

    def likely(self, before: NodeId) -> tuple[NodeId, ...]:
        return ()

    def went(self, to: NodeId, copied: Collection[NodeId], before: NodeId) -> None:
        pass

    def came(self, source: NodeId) -> None:
        pass


class Copying:
    """A session is copied when its client has left it and all that was passed on to it from elsewhere is here. Until a
    broker has turned to a copy too, what the session takes from it goes on to the copy; then the copy gets that by
    itself. Who holds copies and who has turned to them is on the disk with the session: a crash changes nothing.

    `next_epoch(client)` is above all that is known of the client.
    """

    def __init__(
        self, registry: Registry, next_epoch: Callable[[str], int], neighbors: Foresight | None, *, makes: bool
    ) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.next_epoch = next_epoch
        self.neighbors = neighbors if neighbors is not None else Nobody()
        self.makes = makes and neighbors is not None
        self._due: dict[Session, None] = {}
        self._left = BURST
        self._paced = False

    def attached(self, session: Session) -> None:
        """The client is here. Whoever was away for long and is back sets out anew."""
        self.drop(session)
        if session.standing.left is not None and self.switch.steady() - session.standing.left >= AWAY_S:
            session.standing.came_from = ""

    def rested(self, session: Session) -> None:
        """A session may have come to rest: copy it soon, if it has."""
        if self.makes and self._is_due(session):
            self._due[session] = None
            self._work()

    def _is_due(self, session: Session) -> bool:
        """What is dealt to a member of a group goes to its session alone, so that a copy would not get it."""
        return (
            session.standing.state in (State.RESTING, State.RESERVED)
            and session.carried.expiry_s > 0
            and not self.registry.moves.abroad.is_chased(session.client)
            and not (
                session.standing.copies
                or session.standing.arriving
                or session.inflow.gates
                or session.inflow.upstreams
                or session.inflow.held
                or session.carried.unheard
            )
            and bool(session.subscriptions)
            and not any(sub.wanted.group for sub in session.subscriptions.values())
        )

    def _work(self) -> None:
        while self._due and self._left:
            session = next(iter(self._due))
            del self._due[session]
            if self._is_due(session):
                self._left -= 1
                self._make(session)
        if self._left < BURST and not self._paced:
            self._paced = True
            self.switch.host.after(PACE_S, self._go_on)

    def _go_on(self) -> None:
        self._paced, self._left = False, BURST
        self._work()

    def _make(self, session: Session) -> None:
        switch, client = self.switch, session.client
        likely = self.neighbors.likely(session.standing.came_from)
        to = [one for one in likely if switch.fabric.is_known(one)]
        if not to:
            return
        session.standing.copied = epoch = self.next_epoch(client)
        session.standing.copies = {holder: set() for holder in to}
        switch.ledger.put_session(session)
        switch.fabric.send(to, self._content(session))
        for item in session.queue.waiting:
            switch.fabric.send(to, Forwarded(client, epoch, kept_of(item)))
        switch.counts.copies_made += len(to)
        if switch.tracing:
            switch.host.trace(Record("copied", client=client, peer=" ".join(to)))

    def _content(self, session: Session) -> Copy:
        switch, subs = self.switch, session.subscriptions.values()
        filters = filters_of(subs)
        if session.carried.memory is None and are_matched(subs):
            origins = switch.fabric.origins(filters, (switch.name,))
        else:
            origins = {switch.name, *switch.fabric.sources(filters)}
        return Copy(
            session.client,
            session.standing.copied,
            msgspec.structs.replace(
                self.registry.reunion.carried(session), expiry_s=session.expires_after(switch.steady())
            ),
            tuple(sub.wanted for sub in session.subscriptions.values()),
            tuple(sorted(session.queue.incoming)),
            tuple(kept_of(item) for item in session.queue.flying.values()),
            tuple(sorted(origins)),
            session.queue.digests,
        )

    def on_turned(self, origin: NodeId, turned: Turned) -> None:
        """What this broker publishes reaches the copy there by itself from now on."""
        session = self.registry.sessions.get(turned.client)
        if session is None or session.standing.copied != turned.epoch:
            return
        has_turned = session.standing.copies.get(turned.copy)
        if has_turned is not None and origin not in has_turned:
            has_turned.add(origin)
            self.switch.ledger.put_session(session)
            self.switch.fabric.send((turned.copy,), Through(turned.client, turned.epoch, origin))

    def on_uncopied(self, origin: NodeId, uncopied: Uncopied) -> None:
        session = self.registry.sessions.get(uncopied.client)
        if (
            session is not None
            and session.standing.copied == uncopied.epoch
            and session.standing.copies.pop(origin, None) is not None
        ):
            self.switch.ledger.put_session(session)

    def drop(self, session: Session, *, but: NodeId = "") -> None:
        """The copies are good no longer. Whoever writes the session next writes that too."""
        if session.standing.copies:
            self.switch.fabric.send(
                [one for one in session.standing.copies if one != but], Drop(session.client, session.standing.copied)
            )
            session.standing.copies = {}

    def reborn(self, broker: NodeId) -> None:
        """Whoever has lost its disk sends to nobody until it has heard again what others want, and to each from another
        moment on. So what it sends would leave holes in copies: they are made anew. Its own, too, which may be under
        way to the new disk."""
        for session in list(self.registry.sessions.values()):
            if session.standing.copies:
                self.drop(session)
                self.switch.ledger.put_session(session)
                self.rested(session)

    def given_up(self, broker: NodeId) -> None:
        """It holds no copy any more, and counts as turned to all others."""
        for session in self.registry.sessions.values():
            if not session.standing.copies:
                continue
            session.standing.copies.pop(broker, None)
            self.switch.ledger.put_session(session)
            for holder in list(session.standing.copies):
                self.on_turned(broker, Turned(session.client, session.standing.copied, holder))
