"""The pro-active scheme: stand-ins asleep at the neighbors, woken when their subscriber vanishes (spec 2.5 to 2.10)."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import msgspec

from godwit.events import Event
from godwit.filters.filters import Filter
from godwit.filters.language import Filters
from godwit.protocols.handoff_schemes.broker import HandoffOptions, attach, leave
from godwit.protocols.handoff_schemes.lifecycle import Life, Step
from godwit.protocols.handoff_schemes.marks import merged, reaches
from godwit.protocols.handoff_schemes.messages import (
    Connect,
    CtxRequest,
    Deactivate,
    Delete,
    Leaving,
    Moved,
    MovedAck,
    NbrList,
    StoreSub,
    Unsubscribe,
    Wishes,
)
from godwit.protocols.handoff_schemes.proactive.pooled import Pooled
from godwit.protocols.handoff_schemes.records import Kind, Mode, Record
from godwit.protocols.host import Host, NodeId
from godwit.protocols.neighbors.graph import NeighborGraph

SUMMARIZING = Filters(imperfect=True)


class ProActive(Pooled):
    """Everything that concerns subscribers whose own record is here; what concerns copies is in `Replicas`, memory that
    they share in `Pooled`."""

    def __init__(self, host: Host, options: HandoffOptions) -> None:
        super().__init__(host, options)
        self.graph = NeighborGraph(host.name, options.graph)
        self.oracle: Callable[[NodeId], NodeId] | None = None
        """Perfect prediction (2.11): names the one broker where a subscriber will appear; set by a world that knows."""
        self.covered: dict[NodeId, NodeId] = {}
        """Who has no copies of its own, and on whose it relies."""
        self.on(Moved, self.moved_on)
        self.on(MovedAck, self.list_heard)
        self.on(NbrList, self.list_heard)

    # The neighbor graph (2.5)

    def touch(self, peer: NodeId, *, left: bool) -> None:
        if self.graph.touch(peer, self.host.now(), left=left):
            self._tell_neighbors()
            if self.rules.pre_propagate:
                for record in self._connected():
                    self._place(record, peer)

    def sweep(self) -> None:
        """Forget edges that nobody used for long; the world calls this now and then."""
        for peer in self.graph.aged(self.host.now()):
            self.edge_gone(peer)

    def edge_gone(self, peer: NodeId) -> None:
        self._tell_neighbors(peer)
        if self.rules.edges_take_copies:
            for record in self.records.values():
                if record.is_real and record.moved is None:
                    self.host.send(peer, Delete(record.subscriber, record.epoch))

    def list_heard(self, sender: NodeId, message: NbrList | MovedAck | Moved) -> None:
        self.graph.lists[sender] = message.neighbors

    def _place(self, record: Record, peer: NodeId) -> None:
        if not self.options.prefetch and self.oracle is None and not self._is_covered(record):
            wishes = summary(record.wishes) if self.options.summaries else record.wishes
            self.host.send(peer, StoreSub(record.subscriber, record.epoch, wishes))

    def _is_covered(self, record: Record) -> bool:
        """Whether another's copy, placed from here, wants all that this one wants; it may not go while one relies on
        it (2.11). A covered subscriber's neighbors get its wishes when they are woken, its marks stay its own."""
        if not self.options.covering:
            return False
        for root in self._connected():
            if root is not record and root.subscriber not in self.covered and covers(root.wishes, record.wishes):
                self.covered[record.subscriber] = root.subscriber
                return True
        self.covered.pop(record.subscriber, None)
        return False

    def _uncover(self, root: NodeId) -> None:
        """Who relied on this one's copies gets its own, or relies on another."""
        self.covered.pop(root, None)
        for subscriber in [name for name, by in self.covered.items() if by == root]:
            del self.covered[subscriber]
            record = self.records.get(subscriber)
            if record is not None and record.is_real and record.moved is None:
                for peer in self.graph.targets(record.came_from):
                    self._place(record, peer)

    def _connected(self) -> list[Record]:
        return [r for r in self.records.values() if r.is_real and r.attached]

    def _tell_neighbors(self, *others: NodeId) -> None:
        for peer in (*self.graph.edges, *others):
            self.host.send(peer, NbrList(self.graph.names))

    # Cases 1 to 3: connect, disconnect, reconnect (2.7)

    def connected(self, sender: NodeId, message: Connect) -> None:
        """A client that vanished before it heard that it was let in may have left its context with any of those it has
        called since. Where its own record is here, whole, and knows of no move, it has everything, and they hear of it.
        Where it is not whole, who was called since may have what it waits for; who is asked for it may have it no more.
        A record of before the last broker that the client heard from is history, though nobody has said so here.
        """
        if not self.rules.chase or not message.tried:
            super().connected(sender, message)
            return
        record = self.records.get(message.subscriber)
        own = self.host.name
        others = [place for place in dict.fromkeys((*message.tried, message.previous)) if place not in ("", own)]
        is_last = own in (message.previous, *message.tried)
        if record is not None and record.is_real and record.moved is None and is_last:
            super().connected(sender, msgspec.structs.replace(message, previous=own))
            if record.fetches and others:
                record.fallbacks[message.epoch] = others[1:]
                self._ask(record, message.epoch, others[0])
            record.untold += [(place, message.epoch) for place in others]
            self.all_here(record)
        else:
            previous, tried = (others[0], tuple(others[1:])) if others else ("", ())
            super().connected(sender, msgspec.structs.replace(message, previous=previous, tried=tried))

    def first_contact(self, message: Connect) -> None:
        record = self.new_real(message.subscriber, message.wishes, message.epoch)
        record.marks = merged(self.seen, message.marks)
        attach(record, message.epoch)
        record.step(Step.CONNECT)
        for peer in self.graph.targets():
            self._place(record, peer)

    def returned(self, message: Connect) -> None:
        record = self.records.get(message.subscriber)
        if record is None or not record.is_real:
            self._not_here(message)
            return
        before = record.epoch
        if record.life is Life.CONNECTED:
            leave(record)
        attach(record, self.next_epoch(record, message))
        self._heed(record, message)
        self.call_in(record)
        record.moved = None
        record.came_from = self.host.name
        self.cancel_catchups(record.subscriber, before)
        if record.life is Life.DISCONNECTED:
            record.step(Step.RETURN)
        self.deliver_if_ready(record)
        for peer in self.graph.edges:
            self._release_copy(peer, record, reused=True)

    def _not_here(self, message: Connect) -> None:
        """It was at another broker since without knowing, or was given up: then the gap is lost, and counted."""
        place, last = self.whereabouts.get(message.subscriber, ("", None))
        if self.rules.chase and last is not None and last.epoch < message.epoch:
            self.arrived(msgspec.structs.replace(message, previous=place))
            return
        self.trace("unknown", message.subscriber)
        self.first_contact(message)

    def lost(self, subscriber: NodeId) -> None:
        self._disconnected(subscriber, self._targets(subscriber))

    def _targets(self, subscriber: NodeId) -> list[NodeId]:
        if self.oracle is not None:
            return [place for place in [self.oracle(subscriber)] if place != self.host.name]
        record = self.records.get(subscriber)
        return self.graph.targets(record.came_from if record is not None else "")

    def departed(self, sender: NodeId, message: Leaving) -> None:
        """Announced: where the next broker is known, only its stand-in need wake."""
        only = [message.to] if message.to in self.graph else self._targets(message.subscriber)
        self._disconnected(message.subscriber, only)

    def _disconnected(self, subscriber: NodeId, peers: list[NodeId]) -> None:
        record = self.records.get(subscriber)
        if record is None or not record.is_real or not record.attached:
            return
        record.attached = False
        if record.life is Life.MOVE_IN or (record.held and self.rules.whole_backlogs):
            return
        leave(record)
        self._wake_neighbors(record, peers)

    def _wake_neighbors(self, record: Record, peers: list[NodeId]) -> None:
        if isfinite(self.options.timeout_s):
            record.timeout = self.host.after(self.options.timeout_s, lambda: self.timed_out(record))
        self.share_out(record, peers)
        for peer in peers:
            whole = self.options.prefetch or self.oracle is not None or record.subscriber in self.covered
            self.wake(record, peer, record.wishes if whole else {})

    # Cases 4 to 8: handoff, unsubscribe, timeout (2.8)

    def arrived(self, message: Connect) -> None:
        self.graph.handoff_seen(self.host.now())
        near = self._nearest_holders(message.previous)
        self.touch(message.previous, left=False)
        record = self.records.get(message.subscriber)
        if record is not None:
            self.answer_queue(record)
        if record is not None and self.is_hit(record, message):
            self._take_over(record, message)
        else:
            asked = (*near, message.previous, *message.tried)
            asking = msgspec.structs.replace(message, previous=asked[0], tried=asked[1:])
            record = self._from_memory(message) or self._miss(asking)
            record.came_from = message.previous
        record.untold += [(place, record.epoch) for place in (message.previous, *message.tried)]
        self.all_here(record)
        known = self.graph.lists.get(message.previous, frozenset())
        for peer in self.graph.targets(record.came_from):
            if peer != message.previous and peer not in known:
                self._place(record, peer)

    def _nearest_holders(self, previous: NodeId) -> list[NodeId]:
        """Who is next to both, where the old broker itself is not known to be near."""
        if not self.options.nearest_holder or previous in self.graph:
            return []
        return [peer for peer in self.graph.edges if peer in self.graph.lists.get(previous, ())][:1]

    def _heed(self, record: Record, message: Connect) -> None:
        if self.rules.client_marks and message.sure:
            record.marks = merged(record.marks, message.marks)
            self.buffer.drop(record.subscriber, record.marks)

    def all_here(self, record: Record) -> None:
        """Whom the subscriber has left hears of it once nothing is needed of it any more; who is asked for the context
        hears of it behind the question."""
        for place, epoch in record.untold[:]:
            # A return asks nobody: what its record still waits for was asked for by the attachment before it.
            asked = max((number for number in record.fetches if number <= epoch), default=epoch)
            if not record.recalls and record.fetches.get(asked, place) == place:
                record.untold.remove((place, epoch))
                if record.moved is not None and self.rules.chase:
                    # It has gone on since, and this broker answers for its copies no longer.
                    self._tell_move(place, *record.moved)
                else:
                    self.host.send(place, Moved(record.subscriber, epoch, self.graph.names))

    def is_hit(self, record: Record, message: Connect) -> bool:
        if not self.rules.numbered_hits:
            return record.is_active
        return record.kind is Kind.DUMMY and record.is_active and record.epoch == message.epoch - 1

    def next_epoch(self, record: Record, message: Connect) -> int:
        """Z1: the client's number. Without it each broker counts by itself, and two may count differently."""
        return message.epoch if self.rules.attach_no else record.epoch + 1

    def _take_over(self, record: Record, message: Connect) -> None:
        attach(record, self.next_epoch(record, message))
        record.kind, record.controller = Kind.REAL, ""
        self._heed(record, message)
        if self.options.summaries:
            self._rebuild(record, message.wishes)
        record.arrive()
        record.step(Step.READY)
        record.fetches.clear()
        record.moved = None
        record.came_from = message.previous
        record.held_for = record.epoch if self.rules.gap_safe and record.catching_up else 0
        if record.held and isfinite(self.options.guard_s):
            record.guard = self.host.after(self.options.guard_s, lambda: self.release(record))
        self.call_in(record)
        self.trace("attached", record.subscriber, "hit")
        self.deliver_backlog(record)

    def _rebuild(self, record: Record, wishes: Wishes) -> None:
        """What a summary has collected too much goes when the client says what it wants."""
        self.interest.remove(record.subscriber, record.wishes.values())
        record.wishes = wishes
        self.interest.add(record.subscriber, wishes.values())
        self.buffer.discard(record.subscriber, lambda event: not record.matches(event))

    def _from_memory(self, message: Connect) -> Record | None:
        """Gone so shortly that nobody was woken for it: what it lacks may be among the latest events here. Not where
        an earlier attachment of its own has not ended yet; that one has duties."""
        record = self.records.get(message.subscriber)
        known = self.rules.own_memory and message.sure and self.buffer.recall(message.marks) is not None
        if not known or (record is not None and record.is_real):
            return None
        if record is None:
            record = self.new_real(message.subscriber, message.wishes, message.epoch)
        self.buffer.purge(record.subscriber)
        record.mode, record.marks, record.catching_up = Mode.ACTIVE, dict(message.marks), False
        self.remembered(record)
        self._take_over(record, message)
        return record

    def _miss(self, message: Connect) -> Record:
        record = self.fetch(message)
        self._heed(record, message)
        record.catching_up = record.held
        return record

    def moved_on(self, sender: NodeId, message: Moved) -> None:
        """The subscriber has appeared at the sender, or at the place that the sender passes on."""
        sender = message.place or sender
        self.list_heard(sender, message)
        if self.rules.refresh_on_moved:
            self.touch(sender, left=True)
        self.host.send(sender, MovedAck(message.subscriber, message.epoch, self.graph.names))
        record = self.records.get(message.subscriber)
        if record is None or not record.is_real:
            self._pass_on_news(sender, message)
            return
        if self.rules.stale_moves and message.epoch <= record.epoch:
            self._moved_before(sender, message)
            return
        if record.moved is not None and not self._is_news(record.moved, sender, message):
            return
        self.graph.learn(record.came_from, sender)
        self.cancel_catchups(record.subscriber, message.epoch - 1, keep=sender)
        for peer in self.graph.edges:
            if peer != sender:
                self._take_leave(peer, record, message)
        self._gone_unnoticed(record)
        record.keep()
        record.moved = (sender, message)
        self._uncover(record.subscriber)
        self.settle(record)

    def _moved_before(self, sender: NodeId, message: Moved) -> None:
        """Z7: it has come back since. Copies woken for the attachment that this is about may sleep."""
        self.cancel_catchups(message.subscriber, message.epoch - 1, keep=sender)
        for peer in self.graph.edges:
            if peer != sender:
                self.host.send(peer, Deactivate(message.subscriber, message.epoch - 1))
        record = self.records[message.subscriber]
        if self.rules.chase and record.came_from != sender and message.epoch < record.epoch:
            # Only when the context is here: until then a broker between the two may still have to ask that one for it.
            record.untold.append((sender, record.epoch))
            self.all_here(record)

    def _pass_on_news(self, place: NodeId, message: Moved) -> None:
        epoch, unsubscribed = self.tombstones.get(message.subscriber, (-1, False))
        if unsubscribed and message.epoch <= epoch:
            self.host.send(place, Delete(message.subscriber, epoch, privileged=True))
            return
        known = self.whereabouts.get(message.subscriber)
        if known is not None and self._is_news(known, place, message):
            self.whereabouts[message.subscriber] = (place, message)

    def _is_news(self, known: tuple[NodeId, Moved], place: NodeId, message: Moved) -> bool:
        """Two brokers say that the subscriber is with them now, since it named this one to both: the one where it was
        earlier must hear of the other."""
        other, last = known
        if not self.rules.chase:
            return True
        if last.epoch < message.epoch:
            self._tell_move(other, place, message)
        elif last.epoch > message.epoch:
            self._tell_move(place, other, last)
        return last.epoch < message.epoch

    def _tell_move(self, to: NodeId, place: NodeId, message: Moved) -> None:
        if to != place:
            self.host.send(to, msgspec.structs.replace(message, place=place))

    def _take_leave(self, peer: NodeId, record: Record, message: Moved) -> None:
        self._release_copy(peer, record, reused=peer in message.neighbors)

    def _release_copy(self, peer: NodeId, record: Record, *, reused: bool) -> None:
        kind = Deactivate if reused and not self.options.prefetch else Delete
        self.host.send(peer, kind(record.subscriber, record.epoch))

    def asked(self, sender: NodeId, message: CtxRequest) -> None:
        sender = message.place or sender
        self.touch(sender, left=True)
        record = self.records.get(message.subscriber)
        if record is not None and self._stands_in(record, message):
            self.answer(record, sender, message)
            return
        if record is None or (self.rules.attach_no and not record.is_real):
            self._chase(sender, message)
            return
        if not self.rules.patient_answers:
            self._gone_unnoticed(record)
            record.mode = Mode.PASSIVE
            self.answer(record, sender, message)
            return
        if record.epoch < message.epoch and record.attached:
            self._gone_unnoticed(record)
        record.requests.append((sender, message))
        self.waiting[record.subscriber] = None
        self.settle(record)

    def _stands_in(self, record: Record, message: CtxRequest) -> bool:
        """`nearestHolder`: a stand-in that lacks nothing answers as the old broker would."""
        whole = record.kind is Kind.DUMMY and record.is_active and not record.catching_up
        current = record.epoch == message.epoch - 1 and reaches(self.seen, message.seen)
        return self.options.nearest_holder and whole and current

    def _chase(self, asker: NodeId, message: CtxRequest) -> None:
        """Not here any more: pass the question on to where it went since, if anywhere."""
        place, last = self.whereabouts.get(message.subscriber, ("", None))
        known = last is not None and message.after < last.epoch < message.epoch and place != asker
        if self.rules.chase and last is not None and known:
            self.host.send(place, msgspec.structs.replace(message, place=asker, after=last.epoch))
        else:
            self.answer(None, asker, message)

    def _gone_unnoticed(self, record: Record) -> None:
        """Z15: asked for elsewhere, so it is not here any more; nobody need be woken."""
        record.attached = False
        if record.life is Life.CONNECTED and record.whole:
            leave(record)

    def fetched(self, record: Record, events: list[Event]) -> None:
        """Case 7: merged with what was collected here, each once, in order of publication."""
        for event in events:
            if event.sequence > record.marks.get(event.publisher, -1):
                self.buffer.put(event, [record.subscriber], moved=True)
        self.buffer.drop(record.subscriber, record.marks)
        if not record.fetches and record.life is Life.MOVE_IN:
            record.step(Step.READY)
        self.completed(record)

    def deliver_if_ready(self, record: Record) -> None:
        if record.life is Life.CONNECTED and record.attached:
            self.deliver_backlog(record)

    def completed(self, record: Record) -> None:
        """Something that was under way has come, or will not come any more."""
        self.all_here(record)
        self.deliver_if_ready(record)
        if record.is_real and record.whole and not record.attached and record.life is Life.CONNECTED:
            leave(record)
            if record.moved is None:
                self._wake_neighbors(record, self.graph.targets(record.came_from))
        self.settle(record)

    def settle(self, record: Record) -> None:
        """Answer whom can be answered; then, where the subscriber has gone and nobody waits, demote (Z8)."""
        for sender, request in record.requests[:]:
            if self.may_answer(record, request):
                record.requests.remove((sender, request))
                self.answer(record, sender, request)
        if not record.requests:
            self.waiting.pop(record.subscriber, None)
        if record.moved is None or self.records.get(record.subscriber) is not record:
            return
        if self.rules.patient_answers and (record.requests or not record.whole):
            return
        self._demote(record, record.moved[1])

    def _demote(self, record: Record, message: Moved) -> None:
        queued, record.queued = record.queued, []
        self.whereabouts[record.subscriber] = (record.moved[0] if record.moved else "", message)
        if self.host.name in message.neighbors and not self.options.prefetch:
            record.kind, record.mode, record.controller = Kind.DUMMY, Mode.PASSIVE, ""
            record.gone()
            record.moved, record.held_for, record.catching_up = None, 0, False
            record.epoch = message.epoch if self.rules.attach_no else record.epoch
            record.fetches.clear()
            self.buffer.purge(record.subscriber)
        else:
            self.remove(record, message.epoch)
        self.replay(queued)

    def unsubscribed(self, sender: NodeId, message: Unsubscribe) -> None:
        record = self.records.get(message.subscriber)
        if record is None or not record.is_real:
            return
        record.attached = False
        self._uncover(record.subscriber)
        for peer in dict.fromkeys((*self.graph.edges, *(place for place, _ in record.untold))):
            self.host.send(peer, Delete(record.subscriber, record.epoch, privileged=True))
        self.remove(record, record.epoch, privileged=True)

    def timed_out(self, record: Record) -> None:
        if self.records.get(record.subscriber) is not record or record.life is not Life.DISCONNECTED:
            return
        record.step(Step.TIMEOUT)
        self._uncover(record.subscriber)
        for peer in self.graph.edges:
            self.host.send(peer, Delete(record.subscriber, record.epoch))
        self.remove(record, record.epoch)


def summary(wishes: Wishes) -> Wishes:
    """As few filters as cover them all, under one name each."""
    left = list(dict.fromkeys(wishes.values()))
    found: list[Filter] = []
    while left:
        one = left.pop()
        for other in found:
            joined = SUMMARIZING.merge(one, other)
            if joined is not None:
                found.remove(other)
                left.append(joined)
                break
        else:
            found.append(one)
    return {f"summary {i}": one for i, one in enumerate(found)}


def covers(some: Wishes, others: Wishes) -> bool:
    """Whether each of the others is covered by one of these."""
    return all(any(one.covers(other) for one in some.values()) for other in others.values())
