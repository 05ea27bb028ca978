"""A broker joins a running ring (spec 2.3): it finds the owner of its place, takes half the cell and all that belongs.

Until the newcomer has said that it is ready, the owner serves the whole cell; until the owner has then told the
difference, the newcomer passes on what comes, or holds it back. So at every moment exactly one of them serves a place.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from godwit.protocols.gathering.clients import home_keys
from godwit.protocols.gathering.messages import (
    Assigned,
    CareOfMoved,
    Locate,
    Located,
    Ready,
    Refused,
    State,
    Subscription,
)
from godwit.protocols.gathering.space import Cell, cut_between
from godwit.protocols.host import LocalError, Message, NodeId, Record
from godwit.protocols.topology.pastry.keys import Key, padded
from godwit.protocols.topology.pastry.peers import Peer

if TYPE_CHECKING:
    from godwit.protocols.gathering.broker import GatheringBroker


class Stage(StrEnum):
    OUTSIDE = "outside"
    LOCATING = "locating"
    ENTERING = "entering"
    """Has a cell and a name, and joins the ring."""
    WAITING = "waiting"
    """On the ring and ready; the owner has yet to tell the difference."""
    MEMBER = "member"


class Step(StrEnum):
    BEGUN = "begun"
    JOINING = "joining"
    ASSIGNED = "assigned"
    ENTERED = "entered"
    TOLD = "told"
    REFUSED = "refused"


STAGES: dict[Stage, dict[Step, Stage]] = {
    Stage.OUTSIDE: {Step.BEGUN: Stage.MEMBER, Step.JOINING: Stage.LOCATING},
    Stage.LOCATING: {Step.ASSIGNED: Stage.ENTERING, Step.REFUSED: Stage.OUTSIDE},
    Stage.ENTERING: {Step.ENTERED: Stage.WAITING, Step.REFUSED: Stage.OUTSIDE},
    Stage.WAITING: {Step.TOLD: Stage.MEMBER, Step.REFUSED: Stage.OUTSIDE},
    Stage.MEMBER: {},
}
"""A newcomer's way in; every other step is an old message and changes nothing."""


class Dividing(msgspec.Struct):
    """A cell that is being given away: half of this broker's own, or all of one that it serves for another."""

    newcomer: NodeId
    assigned: Assigned
    remaining: Cell | None
    """This broker's own cell afterwards; None where the whole region of a broker that failed is given back."""
    told: dict[str, Subscription]


class Membership:
    def __init__(self, broker: GatheringBroker) -> None:
        self.broker = broker
        self.stage = Stage.OUTSIDE
        self.owner: Peer | None = None
        self.dividing: Dividing | None = None
        self._via: tuple[NodeId, ...] = ()
        self.held: list[Located] = []
        """Of a newcomer: meant for its cell alone, which is not its own yet."""
        self._queued: list[Locate] = []
        """Of an owner: other newcomers, while one is being let in."""
        self._attempt = 0

    def _step(self, step: Step) -> bool:
        following = STAGES[self.stage].get(step)
        if following is None:
            return False
        self.stage = following
        return True

    # The newcomer

    def begin(self) -> None:
        self._step(Step.BEGUN)

    def join(self, *via: NodeId) -> None:
        """Through any of these members, one after the other until somebody answers."""
        if not via:
            raise LocalError("a broker joins through another one: name at least one")
        if not self._step(Step.JOINING):
            raise LocalError(f"a broker that is {self.stage} cannot join")
        self._via = via
        self._locate()

    def _locate(self) -> None:
        if self.stage is not Stage.LOCATING:
            return
        broker = self.broker
        via = self._via[self._attempt % len(self._via)]
        self._attempt += 1
        broker.links.send(via, Locate(broker.host.name, broker.place))
        broker.host.after(broker.rules.ring.join_s, self._locate)

    def assigned(self, message: Assigned) -> None:
        if not self._step(Step.ASSIGNED):
            return
        broker = self.broker
        self.owner = message.owner
        broker.become(message.key, message.cell)
        for subscription in message.subscriptions:
            broker.store.insert(subscription, broker.host.now())
        broker.ring.enter(message.owner.name)

    def entered(self) -> None:
        if self._step(Step.ENTERED) and self.owner is not None:
            self.broker.links.send(self.owner.name, Ready(self.broker.ring.me), self._owner_lost)

    def _owner_lost(self) -> None:
        """The owner failed before it gave up its half: whoever stands in for it must be asked anew."""
        self.refused(Refused("the owner does not answer"))

    def told(self, message: State) -> None:
        if not self._step(Step.TOLD):
            return
        broker = self.broker
        now = broker.host.now()
        for sid in message.removed:
            broker.store.remove(sid)
        for sid in message.tombstones:
            broker.store.remove(sid, tombstone_until_s=now + broker.rules.tombstone_s)
        for subscription in message.added:
            broker.store.insert(subscription, now)
        broker.host.trace(Record("joined", note=broker.cell.prefix))
        held, self.held = self.held, []
        for located in held:
            broker.dissemination.take(located)

    def refused(self, message: Refused) -> None:
        if not self._step(Step.REFUSED):
            return
        broker = self.broker
        broker.host.trace(Record("refused", note=message.reason))
        self.held.clear()
        broker.leave()
        if not message.final:
            broker.host.after(broker.rules.ring.join_s, lambda: self.join(*self._via))

    def deflects(self, message: Located) -> bool:
        """Whether a newcomer leaves it to the owner, or keeps it until the cell is its own."""
        if self.stage is Stage.MEMBER or not self.broker.rules.ready or self.owner is None:
            return False
        if message.level < len(self.broker.cell):
            self.broker.ring.send(self.owner.name, message)
        else:
            self.held.append(message)
        return True

    # The owner

    def located(self, message: Locate) -> None:
        """The newcomer stands in this broker's cell, or in one that it serves for a broker that failed."""
        if self.dividing is None:
            self._divide(message)
        elif self.dividing.newcomer == message.newcomer:
            self.broker.links.send(message.newcomer, self.dividing.assigned)
        else:
            self._queued.append(message)

    def _divide(self, message: Locate) -> None:
        broker = self.broker
        given = broker.takeover.region_at(message.place)
        try:
            key, cell, remaining = self._halves(message) if given is None else (*given, None)
        except LocalError as error:
            broker.links.send(message.newcomer, Refused(str(error), final=True))
            return
        moving = broker.store.overlapping(cell.box(dimensions=len(broker.place)))
        assigned = Assigned(broker.ring.me, key, cell, tuple(moving))
        dividing = Dividing(message.newcomer, assigned, remaining, {one.sid: one for one in moving})
        self.dividing = dividing
        broker.links.send(message.newcomer, assigned)
        broker.host.after(broker.rules.split_s, lambda: self._give_up(dividing))

    def _halves(self, message: Locate) -> tuple[Key, Cell, Cell]:
        """The owner keeps its name, which ends in zeros already, so it takes bit 0 whichever side it stands on."""
        broker = self.broker
        cut = cut_between(broker.place, message.place)
        given = broker.cell.append(cut, "1")
        return padded(given.prefix), given, broker.cell.append(cut.opposite(), "0")

    def _give_up(self, dividing: Dividing) -> None:
        if self.dividing is dividing:
            self.dividing = None
            self._next()

    def ready(self, sender: NodeId, message: Ready) -> None:
        dividing = self.dividing
        if dividing is None or dividing.newcomer != sender or dividing.assigned.key != message.newcomer.key:
            self.broker.links.send(sender, Refused("the split has been given up"))
            return
        broker, cell = self.broker, dividing.assigned.cell
        self.dividing = None
        broker.ring.add((message.newcomer,))
        now = {one.sid: one for one in broker.store.overlapping(cell.box(dimensions=len(broker.place)))}
        added = tuple(one for sid, one in now.items() if dividing.told.get(sid) != one)
        removed = tuple(sid for sid in dividing.told if sid not in now)
        state = State(added, removed, tuple(broker.store.tombstones(broker.host.now())))
        if dividing.remaining is None:
            broker.takeover.returned(dividing.assigned.key)
        else:
            broker.cell = dividing.remaining
        broker.links.send(sender, state)
        broker.forget_elsewhere()
        self._next()

    def _next(self) -> None:
        queued, self._queued = self._queued, []
        for message in queued:
            self.broker.dissemination.take(Locate(message.newcomer, message.place))

    # Homes change hands

    def met(self, peer: Peer) -> None:
        """Registrations whose home the peer is now go to it; this may be any leaf, not only the owner (2.3 step 4)."""
        broker = self.broker

        def roots(client: str) -> list[NodeId | None]:
            ways = (broker.ring.next_hop(key) for key in home_keys(client, broker.rules.homes))
            return [None if way is None else way.name for way in ways]

        moving = broker.care_of.transfer(lambda client: peer.name in roots(client))
        if moving:
            broker.links.send(peer.name, CareOfMoved(tuple(moving)))
        for entry in moving:
            if None not in roots(entry.client):
                broker.care_of.remove(entry.client)


JOINING: tuple[type[Message], ...] = (Assigned, Refused)
"""What a broker hears that is not on the ring yet."""
