"""A broker joins while subscriptions, unsubscriptions and events are under way (spec data-gathering 2.3, step 5).

Random delays let messages overtake each other. A run is bad if an event missed a subscription that was in place when it
was published, or if a cancelled subscription is somewhere in the end.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import SQUARE, drawn, generate
from godwit.protocols.gathering.messages import Item, Pub, Sub, Subscription, Unsub
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.gathering.space import Point
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.messages import Hop
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering

DELAY_S = 1.0
REQUESTS = 200
AROUND = 12.0
"""How far from the newcomer things happen: what is elsewhere cannot go wrong."""

STEP_S = 0.1
REST_S = 120.0


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """`ready`: the newcomer serves from STATE on; else from SPLIT on."""

    seed: int
    ready: bool = True
    brokers: int = 6


class Seen(msgspec.Struct, frozen=True):
    missed: int
    resurrected: int
    events: int
    joined: bool

    @property
    def is_bad(self) -> bool:
        return self.missed > 0 or self.resurrected > 0 or not self.joined


class Joining:
    """One newcomer, and everything that happens around it."""

    def __init__(self, window: Window) -> None:
        rules = Rules(
            ready=window.ready, recheck_s=0.0, ack_s=60.0, split_s=300.0, exact=True, ring=RingOptions(join_s=60.0)
        )
        self.gathering = Gathering(window.seed, rules, draw=lambda dice: dice.expovariate(1 / DELAY_S))
        self.gathering.deploy(generate(window.brokers, Random(window.seed), phones=0).sites)
        self.dice = self.gathering.streams.stream("requests")
        self.place = drawn(self.dice, SQUARE)
        self.flying: Counter[str] = Counter()
        self.subscriptions: dict[str, Subscription] = {}
        self.cancelled: set[str] = set()
        self.expected: dict[int, set[str]] = {}
        self.found: dict[int, set[str]] = {}
        self.gathering.underlay.lose = self._leaves
        self.gathering.underlay.watch = self._arrives
        for broker in self.gathering.brokers.values():
            self._note_matches(broker.dissemination)

    def _note_matches(self, dissemination: object) -> None:
        matched = dissemination.match  # type: ignore[attr-defined]

        def noted(item: Item) -> object:
            brokers = matched(item)
            sids = {sid for clients in brokers.values() for some in clients.values() for sid in some}
            self.found.setdefault(item.item[1], set()).update(sids)
            return brokers

        dissemination.match = noted  # type: ignore[attr-defined]

    def _leaves(self, sender: NodeId, to: NodeId, message: Message) -> bool:
        self.flying.update(_sids(message))
        return False

    def _arrives(self, sender: NodeId, to: NodeId, message: Message) -> None:
        self.flying.subtract(_sids(message))

    def run(self) -> Seen:
        for _ in range(10):
            self._subscribe()
        self.gathering.run_for(30.0)
        newcomer = self.gathering.join("new", self.place, self._anybody())
        self._note_matches(newcomer.dissemination)
        for _ in range(REQUESTS):
            self.dice.choice((self._subscribe, self._cancel, self._publish, self._publish))()
            self.gathering.run_for(self.dice.expovariate(1 / STEP_S))
        self.gathering.run_for(REST_S)
        missed = sum(len(sids - self.cancelled - self.found.get(at, set())) for at, sids in self.expected.items())
        alive = {one.sid for broker in self.gathering.brokers.values() for one in broker.store}
        return Seen(missed, len(alive & self.cancelled), len(self.expected), newcomer.is_member)

    def _anybody(self) -> NodeId:
        return self.dice.choice(sorted(name for name, broker in self.gathering.brokers.items() if broker.is_member))

    def _near(self) -> Point:
        return tuple(min(max(self.dice.gauss(at, AROUND), 0.0), 100.0) for at in self.place)

    def _subscribe(self) -> None:
        sid = f"c{len(self.subscriptions)}#1"
        start = self.gathering.brokers[self._anybody()]
        area = Disc(self._near(), self.dice.uniform(2.0, 20.0))
        wanted = Subscription(sid, "any", area, sid.partition("#")[0], source=start.key)
        self.subscriptions[sid] = wanted
        start.dissemination.take(Sub(wanted))

    def _cancel(self) -> None:
        left = sorted(self.subscriptions.keys() - self.cancelled)
        if left:
            sid = self.dice.choice(left)
            self.cancelled.add(sid)
            start = self.gathering.brokers[self._anybody()]
            start.dissemination.take(Unsub(sid, self.subscriptions[sid].area, sid.partition("#")[0]))

    def _publish(self) -> None:
        number, place = len(self.expected), self._near()
        held = {_sid_of(located) for b in self.gathering.brokers.values() for located in b.membership.held}
        self.expected[number] = {
            sid
            for sid, one in self.subscriptions.items()
            if one.area.contains(place) and not self.flying[sid] and sid not in held and sid not in self.cancelled
        }
        self.gathering.brokers[self._anybody()].dissemination.take(Pub(Item(("p", number), "any", place, 0.0)))


def _sids(message: Message) -> tuple[str, ...]:
    body = message.body if isinstance(message, Hop) else None
    body = getattr(body, "body", body)
    return (body.subscription.sid,) if isinstance(body, Sub) else ()


def _sid_of(message: object) -> str:
    return message.subscription.sid if isinstance(message, Sub) else ""


def run(window: Window) -> Seen:
    return Joining(window).run()
