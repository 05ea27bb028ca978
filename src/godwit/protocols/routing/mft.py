"""MFT-PubSub (spec mft-pubsub 2.6): subscribers number their messages, and a migrating broker speaks for all below it.

A broker remembers (t, h) of every subscriber it ever heard of: the newest number, and how far away the subscriber is.
Newer wins, and among equals the closer. A (t, h) without filters is a tombstone: the subscriber has left.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from godwit.filters.filters import Filter
from godwit.protocols.host import Host, Message, NodeId, Record
from godwit.protocols.routing.courier import Carried
from godwit.protocols.routing.messages import Bask, Bmig, Bquery, Bsub, Claim, Doubt, Filters, Mig, Pub, Rep, Sub, Uns
from godwit.protocols.routing.router import Router, is_client
from godwit.protocols.routing.rules import HARDENED, HOPS_MAX, Rules
from godwit.protocols.topology.tree import Tree

Known = tuple[int, int]
"""(t, h)."""

FAR = 2**30
UNKNOWN: Known = (0, FAR)
FLOODS_REMEMBERED = 4096


def newer(one: Known, other: Known) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and one[1] < other[1])


class MftBroker(Router):
    """One broker. `known` is the spec's T_i, `routes` R_i, `queues` Q_i, `attached` A_i.

    Nothing is ever forgotten unless limits are given. With `silent_s` a subscriber that has not spoken for so long is
    taken for gone; it must be longer than subscribers' refreshes are apart (H6). With `departed_s` one that has gone is
    no longer remembered after so long; a partition that lasts longer can then bring its subscriptions back.
    """

    def __init__(
        self,
        host: Host,
        tree: Tree,
        rules: Rules = HARDENED,
        *,
        silent_s: float = math.inf,
        departed_s: float = math.inf,
        **options: Any,
    ) -> None:
        super().__init__(host, tree, rules, **options)
        self.silent_s = silent_s
        self.departed_s = departed_s
        self.known: dict[NodeId, Known] = {}
        self._spoke_at: dict[NodeId, float] = {}
        self.doubted: dict[NodeId, int] = {}
        self._put: dict[NodeId, int] = {}
        self._put_at: dict[NodeId, float] = {}
        self._told: dict[NodeId, int] = {}
        self._lost: set[NodeId] = set()
        self._serial = host.random.getrandbits(31)  # as the courier's: not those of this broker's last life again
        self._floods: OrderedDict[tuple[NodeId, int], None] = OrderedDict()

    def admits(self, sender: NodeId, message: Message) -> bool:
        match message:
            case Sub(_, subscriber) | Uns(_, subscriber) | Mig(subscriber) | Bsub(subscriber) if subscriber == sender:
                self.attached.add(sender)
            case Pub() if is_client(sender):
                self.attached.add(sender)
            case Bmig(_, _, 0) if sender not in self.tree.neighbors and not is_client(sender):
                self.tree.adopt(sender)
        return self.is_interface(sender)

    def handle(self, sender: NodeId, message: Message) -> None:
        match message:
            case Pub():
                self.publish(sender, message)
            case Rep():
                self.replay(sender, message)
            case Sub(wanted, subscriber, t, h):
                self._subscribe(sender, wanted, subscriber, (t, h))
            case Uns(wanted, subscriber, t, h):
                self._unsubscribe(sender, wanted, subscriber, (t, h))
            case Mig(subscriber, previous, t, h):
                self._client_moved(sender, subscriber, previous, (t, h))
            case Bmig(below, beyond, h):
                self._broker_moved(sender, below, beyond, h)
            case Bquery(subscriber, t, h):
                self._queried(sender, subscriber, (t, h))
            case Bsub():
                self._learn(sender, message)
            case Bask(doubts):
                self._ask(doubts, sender)

    def _know(self, subscriber: NodeId) -> Known:
        return self.known.get(subscriber, UNKNOWN)

    def _note(self, subscriber: NodeId, known: Known) -> None:
        if known[0] > self._know(subscriber)[0]:
            self._spoke_at[subscriber] = self.host.now()
            self.routes.changes += 1
        self.known[subscriber] = known

    def _accepts(self, sender: NodeId, subscriber: NodeId, said: Known) -> bool:
        """The guard of every client message; one from elsewhere with a higher number also detaches the client here."""
        known = self._know(subscriber)
        if self.rules.loops_end and said[1] >= HOPS_MAX:
            return False
        if not (said[0] > known[0] if self.rules.newer_only else newer(said, known)):
            self._remind(sender, subscriber, said[0])
            return False
        if sender != subscriber and said[0] > known[0]:
            self.detach(subscriber)
        self._note(subscriber, (said[0], said[1] + 1))
        if sender == subscriber and subscriber in self.doubted:
            self._let_speak(subscriber)
        if said[0] > known[0] + 1:  # every message of a client comes to everybody: one has been missed
            self._doubt([subscriber])
        return True

    def _remind(self, sender: NodeId, subscriber: NodeId, t: int) -> None:
        """A client that speaks under an old number has lost its disk: the question tells it the newest."""
        if self.rules.doubts and sender == subscriber and t < self._know(subscriber)[0]:
            self._let_speak(subscriber)

    def _subscribe(self, sender: NodeId, wanted: Filter, subscriber: NodeId, said: Known) -> None:
        if self._accepts(sender, subscriber, said):
            self.routes.add(wanted, sender, subscriber)
            if self.rules.one_hop_for_all:
                self.point(subscriber, sender)
            self.spread(Sub(wanted, subscriber, said[0], said[1] + 1), sender)

    def _unsubscribe(self, sender: NodeId, wanted: Filter, subscriber: NodeId, said: Known) -> None:
        if self._accepts(sender, subscriber, said):
            self.routes.discard(wanted, subscriber)
            if self.rules.one_hop_for_all:
                self.point(subscriber, sender)
            self.spread(Uns(wanted, subscriber, said[0], said[1] + 1), sender)

    def _client_moved(self, sender: NodeId, subscriber: NodeId, previous: NodeId | None, said: Known) -> None:
        if not self._accepts(sender, subscriber, said):
            return
        if sender == subscriber:
            self.tell(subscriber, Filters(self.routes.filters(subscriber)))
        onward = Mig(subscriber, previous, said[0], said[1] + 1)
        hop = self.routes.hop(subscriber)
        if self.rules.flood_moves:
            self.spread(onward, sender)
        elif previous != self.host.name and hop in self.tree.neighbors and hop != sender and hop is not None:
            self.tell(hop, onward)
        self.point(subscriber, sender)
        self.send_queued(subscriber, sender)

    def migrate(self, old: NodeId | None, new: NodeId) -> None:
        """Tell the new parent who lies below this broker and who, as far as it knows, beyond."""
        below, beyond = [], []
        for subscriber in self.routes.subscribers if self.rules.lists_from_routes else list(self.known):
            claim = Claim(subscriber, *self._know(subscriber))
            hop = self.routes.hop(subscriber)
            if hop is None or hop == old or (self.rules.new_parent_is_beyond and hop == new):
                beyond.append(claim)
                self.point(subscriber, new)
            else:
                below.append(claim)
        self.host.trace(Record("migrated", peer=new, note=old or ""))
        self.tell(new, Bmig(tuple(below), tuple(beyond)))
        for claim in beyond:
            self.send_queued(claim.subscriber, new)
        self._ask_across(new)

    def returned(self, child: NodeId) -> None:
        if self.rules.acknowledge_control:
            everybody = tuple(Claim(subscriber, t, h) for subscriber, (t, h) in self.known.items())
            self.tell(child, Bmig((), everybody))

    def _broker_moved(self, sender: NodeId, below: tuple[Claim, ...], beyond: tuple[Claim, ...], h: int) -> None:
        adopted = [mine for claim in below if (mine := self._weigh(sender, claim, h)) is not None]
        for claim in beyond:
            self._compare(sender, claim)
        if h == 0:
            named = {claim.subscriber for claim in (*below, *beyond)}
            for subscriber in self.routes.subscribers:
                if subscriber not in named:
                    self._send_filters(subscriber, sender)
        hops = (self.routes.hop(claim.subscriber) for claim in adopted)
        onward = dict.fromkeys(hop for hop in hops if hop in self.tree.neighbors and hop != sender and hop is not None)
        for claim in adopted:
            self.point(claim.subscriber, sender)
        if not (self.rules.loops_end and h >= HOPS_MAX):
            for hop in onward:
                self.tell(hop, Bmig(tuple(adopted), (), h + 1))
        for claim in adopted:
            self.send_queued(claim.subscriber, sender)
        if h == 0:
            self._ask_across(sender)

    def _weigh(self, sender: NodeId, claim: Claim, travelled: int) -> Claim | None:
        """Adopt a claim as it goes on from here, or refuse it and correct whoever made it."""
        subscriber, t, h = claim.subscriber, claim.t, claim.h
        known = self._know(subscriber)
        if t > known[0]:
            # Forwarded with the older number: brokers further on then see a tie instead of asking one by one, and the
            # answer to this one question is flooded to them.
            self.tell(sender, Bquery(subscriber, *known))
            return Claim(subscriber, known[0], h)
        refused = subscriber in self.attached if self.rules.attached_decides else h > known[1]
        if t < known[0] or refused:
            self._send_filters(subscriber, sender)
            return None
        self._note(subscriber, (t, travelled + h + 1))
        return claim

    def _compare(self, sender: NodeId, claim: Claim) -> None:
        known = self._know(claim.subscriber)
        if claim.t > known[0]:
            self.tell(sender, Bquery(claim.subscriber, *known))
        elif claim.t < known[0]:
            self._send_filters(claim.subscriber, sender)
        elif self.routes.hop(claim.subscriber) == sender != self.tree.parent:
            # It has migrated here and believes that we know the way, and we believe the same of it. A parent instead
            # names everybody, and only to compare numbers.
            self._doubt([claim.subscriber])

    def _send_filters(self, subscriber: NodeId, to: NodeId) -> None:
        """All we know of a subscriber; with no filters, that it has left.

        Where our own way leads through whoever is to be told, the two would point at each other: doubt it instead.
        """
        if self.rules.doubts and self.routes.hop(subscriber) == to:
            self._doubt([subscriber])
            return
        t, h = self._know(subscriber)
        origin, serial = "", 0
        if self.rules.loops_end:
            self._serial += 1
            origin, serial = self.host.name, self._serial
        self.tell(to, Bsub(subscriber, self.routes.filters(subscriber), t, h, 0, origin, serial))

    def _queried(self, sender: NodeId, subscriber: NodeId, said: Known) -> None:
        if newer(self._know(subscriber), said):
            self._send_filters(subscriber, sender)

    def _learn(self, sender: NodeId, message: Bsub) -> None:
        subscriber, known = message.subscriber, self._know(message.subscriber)
        passed = self._flooded(message)
        if passed or not self._is_news(message, known):
            if message.t == known[0] and (passed or subscriber in self.attached):
                # On a tree no flood comes back, nor to the broker of its subscriber: the tree has moved under it, and
                # its way here may be one of wrong next hops.
                self._doubt([subscriber])
            self._remind(sender, subscriber, message.t)
            return
        if sender != subscriber and message.t > known[0]:
            self.detach(subscriber)
        self.routes.drop(subscriber)
        for wanted in message.filters:
            self.routes.add(wanted, sender, subscriber)
        self._note(subscriber, (message.t, message.hs + message.h + 1))
        self._told[subscriber] = message.t
        if message.t > self.doubted.get(subscriber, message.t):
            del self.doubted[subscriber]
        onward = Bsub(subscriber, message.filters, message.t, message.hs, message.h + 1, message.origin, message.serial)
        self.spread(onward, sender)
        self.send_queued(subscriber, sender)

    def _is_news(self, message: Bsub, known: Known) -> bool:
        """Of equal numbers only the word of the broker that has the client counts: anybody else may be out of date."""
        if self.rules.doubts and message.t == known[0] and message.hs > 1:
            return False
        return newer((message.t, message.hs), known)

    def _flooded(self, message: Bsub) -> bool:
        """H7: whether this flood has passed here before. Its name is its originator's, not the subscriber's number:
        the same broker must be able to correct the same subscriber twice."""
        if not self.rules.loops_end:
            return False
        if message.h >= HOPS_MAX:
            return True
        name = (message.origin, message.serial) if message.origin else (message.subscriber, message.t)
        if name in self._floods:
            return True
        self._floods[name] = None
        if len(self._floods) > FLOODS_REMEMBERED:
            self._floods.popitem(last=False)
        return False

    def undelivered(self, message: Carried) -> None:
        """Needs no doubt: numbers are compared over the next link. But a client that does not answer is not here."""
        if isinstance(message, Bquery) and self._put.pop(message.subscriber, None) == self._know(message.subscriber)[0]:
            self.doubted.pop(message.subscriber, None)
            self._doubt([message.subscriber])

    def _doubt(self, subscribers: Iterable[NodeId]) -> None:
        if self.rules.doubts:
            self._ask([Doubt(subscriber, self._know(subscriber)[0]) for subscriber in subscribers], self.host.name)

    def _ask(self, doubts: Iterable[Doubt], sender: NodeId) -> None:
        """Put each question to its subscriber if that is here; else share the doubt and pass it on, once per number.

        So all brokers that are connected share their doubts, and only a new link has to be told of them again.
        """
        onward = []
        for doubt in doubts:
            subscriber, t = doubt.subscriber, doubt.t
            if self._told.get(subscriber, 0) > t or self.doubted.get(subscriber, -1) >= t:
                continue
            self.doubted[subscriber] = t
            if subscriber in self.attached and self._know(subscriber)[0] >= t:
                self._let_speak(subscriber)
            else:
                onward.append(doubt)
        if onward:
            self.spread(Bask(tuple(onward)), sender)

    def _ask_across(self, neighbor: NodeId) -> None:
        """Whoever is doubted here may be known where a new link leads."""
        doubts = tuple(
            Doubt(subscriber, t) for subscriber, t in self.doubted.items() if subscriber not in self.attached
        )
        if doubts:
            self.tell(neighbor, Bask(doubts))

    def _let_speak(self, subscriber: NodeId) -> None:
        """Put the question to an attached client, once for each of its numbers; it answers under the next.

        Not more often than brokers look round: on a lasting cycle every answer would raise the next question.
        """
        known, now = self._know(subscriber), self.host.now()
        too_soon = self.acknowledge and now < self._put_at.get(subscriber, -math.inf) + self.retry_s
        if self._put.get(subscriber) != known[0] and not too_soon:
            self._put[subscriber], self._put_at[subscriber] = known[0], now
            self.tell(subscriber, Bquery(subscriber, *known))

    def has_left(self, subscriber: NodeId) -> bool:
        return subscriber in self.known and subscriber not in self.routes

    def led_back(self, subscribers: Iterable[NodeId]) -> None:
        self._doubt(subscribers)

    def look_round(self) -> None:
        """Doubt whoever has been behind a lost neighbor since the last look: no migration has told where it is now."""
        lost = {s for s in self.routes.subscribers if not self.is_interface(self.routes.hop(s))}
        self._doubt(sorted(lost & self._lost))
        self._lost = lost
        for subscriber in sorted(self.doubted.keys() & self.attached):
            self._let_speak(subscriber)
        self._forget_old()

    def _forget_old(self) -> None:
        now = self.host.now()
        for subscriber, spoke_at in list(self._spoke_at.items()):
            if subscriber in self.routes and now - spoke_at > self.silent_s:
                self.host.trace(Record("forgotten", client=subscriber, note="silent"))
                self.routes.drop(subscriber)
                self.queues.pop(subscriber, None)
                self.detach(subscriber)
            elif subscriber not in self.routes and now - spoke_at > self.departed_s:
                self.queues.pop(subscriber, None)
                for table in (self.known, self.doubted, self._spoke_at, self._told, self._put, self._put_at):
                    table.pop(subscriber, None)
