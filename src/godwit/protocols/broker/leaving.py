"""How a session leaves a broker for another: docs/broker.md, "A session moves" and "Copies"."""

from __future__ import annotations

from godwit.protocols.broker import contents
from godwit.protocols.broker.contents import Claim, Forwarded, Given
from godwit.protocols.broker.copying import Copying
from godwit.protocols.broker.outlet import Reason
from godwit.protocols.broker.places import At, Places
from godwit.protocols.broker.registry import Registry
from godwit.protocols.broker.sessions import Item, Session, shadow_owner
from godwit.protocols.broker.speaking import Speaking
from godwit.protocols.broker.turning import Turning, kept_of
from godwit.protocols.host import NodeId


class Leaving:
    """What stays of a session is a shadow, which passes on what still comes."""

    def __init__(
        self, registry: Registry, places: Places, turning: Turning, speaking: Speaking, copying: Copying
    ) -> None:
        self.registry = registry
        self.switch = registry.switch
        self.name = registry.switch.name
        self.places = places
        self.turning = turning
        self.speaking = speaking
        self.copying = copying
        self.switch.forward = self._forward

    def transfer(self, session: Session, to: NodeId, epoch: int) -> None:
        """All of it into the stream to the other broker."""
        switch, client = self.switch, session.client
        epoch = self._begin(session, to, epoch)
        unheard = self.speaking.leave(session, to, epoch)
        chain = {one for way in session.upstreams for one in (*way.chain, way.source)} - {to}
        origins = {self.name, to, *switch.fabric.brokers}.union(*(way.origins for way in session.upstreams))
        # Whoever has made a copy and not confirmed it is waited for last of all.
        origins |= {way.source for way in session.upstreams if way.copy}
        moved = contents.Session(
            client,
            epoch,
            session.expiry_s,
            tuple(sub.wanted for sub in session.subscriptions.values()),
            tuple(sorted(session.incoming)),
            tuple(kept_of(item) for item in session.flying.values()),
            tuple(sorted(origins)),
            session.sequence,
            tuple(sorted(chain)),
            session.clean,
            unheard,
            self.claims(session),
            self.registry.reunion.carried(session),
            session.started,
            switch.had(session),
            session.strange,
        )
        waiting = [kept_of(item) for item in session.waiting]
        self._become_shadow(session, to, epoch, origins)
        self.places.put(client, At(epoch, to))
        switch.say((to,), moved)
        for kept in waiting:
            switch.say((to,), Forwarded(client, epoch, kept))
        self.turning.go_on(session)
        switch.trace("moved", client=client, peer=to)

    def give(self, session: Session, to: NodeId, epoch: int) -> None:
        """The copy that `to` holds is the session from now on: only what it does not get by itself is passed on."""
        switch, client, copied = self.switch, session.client, session.copied
        origins = {self.name, to, *switch.fabric.brokers} - session.copies[to]
        epoch = self._begin(session, to, max(epoch, copied + 1))
        unheard = self.speaking.leave_copy(session, to, copied)
        self._become_shadow(session, to, copied, origins)
        session.unheard = unheard
        switch.ledger.put_session(session)
        self.places.put(client, At(epoch, to))
        switch.say((to,), Given(client, epoch, copied, tuple(sorted(origins))))
        self.speaking.tell_if_heard(session)
        self.turning.end_if_done(session)
        switch.trace("moved", client=client, peer=to, note="copy")

    def _begin(self, session: Session, to: NodeId, epoch: int) -> int:
        """Nobody is connected any more, nobody else holds a copy; the epoch at the next place."""
        known, shadows = self.places.get(session.client), self.registry.shadows.get(session.client, {})
        # Two sessions of a client may go the same way after one another: they must not go under the same epoch, nor
        # leave two shadows of the same epoch.
        while session.epoch in shadows:
            session.epoch += 1
        # Nor under that of any copies, by which brokers may still turn to those; the last have the highest.
        epoch = max(epoch, session.epoch + 1, session.copied + 1, known.epoch + 1 if known is not None else 0)
        self.copying.went(session, to)
        self.copying.drop(session, but=to)
        self._hang_up(session)
        return epoch

    def _hang_up(self, session: Session) -> None:
        """The client is at another broker. Its will is only said where it asked for no delay."""
        connected, will = session.outlet is not None, session.will
        self.registry.cancel_timers(session)
        if connected and will is not None and will.delay_s == 0:
            self.registry.say_will(session)
        session.will = None
        self.registry.hang_up(session, Reason.SESSION_TAKEN_OVER, "the client has connected at another broker")

    def claims(self, session: Session) -> tuple[Claim, ...]:
        """The copies by which the session came that may still be thought of as such."""
        own = [Claim(way.source, way.epoch, self.name) for way in session.upstreams if way.copy]
        return tuple(dict.fromkeys((*session.claims, *own)))

    def _become_shadow(self, session: Session, to: NodeId, epoch: int, origins: set[NodeId]) -> None:
        switch = self.switch
        switch.ledger.forget(session)
        del self.registry.sessions[session.client]
        switch.counts.waiting -= len(session.flying) + len(session.waiting)
        session.flying, session.incoming, session.waiting_b = {}, set(), 0
        session.waiting.clear()
        session.unsent.clear()
        session.moved_to, session.next_epoch = to, epoch
        session.owner = shadow_owner(session.client, session.epoch)
        session.open_origins, session.owed = set(origins), set(origins)
        session.unheard, session.claims, session.reserved_for = set(), (), ""
        session.review()
        self.registry.add_shadow(session)
        switch.ledger.save(session)
        switch.directory.changed()
        switch.counts.sessions -= 1
        switch.counts.moved_out += 1

    def _forward(self, shadow: Session, item: Item, born: int | None = None) -> None:
        """For a shadow: on to where the session went."""
        assert shadow.moved_to is not None
        self.switch.say((shadow.moved_to,), Forwarded(shadow.client, shadow.next_epoch, kept_of(item), born))
