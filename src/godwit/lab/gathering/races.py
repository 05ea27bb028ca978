"""Clients that move faster than messages (spec data-gathering 6.2-H): what each rule repairs, counted in random runs.

Messages take exponential times, so that they overtake each other; clients hop between brokers without waiting. A run is
bad if, long after everybody has come to rest, a client has not received something, or a notice went round for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import generate
from godwit.protocols.gathering.messages import Associate, Associated, Notice
from godwit.protocols.gathering.rules import CORRECTED, Rules
from godwit.protocols.host import Message, NodeId
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering

EVERYWHERE = Disc((50.0, 50.0), 100.0)
DELAY_S = 1.5
MOVE_S = 6.0
"""On average. The spec does not say how fast its clients moved: this is the pace at which rules as published fail about
as often as it counted. Slower clients meet their own late messages less often, and every row falls."""

MOVE_MIN_S = 0.05
"""Enough for the radio: an answer is lost where the experiment says so, and nowhere else."""
ACTIVE_S = 60.0
REST_S = 1500.0
DUPLICATE_S = (1.0, 15.0)

_PATIENT = RingOptions(bits=4, leaves=8)
# Nobody fails here: a hop that is late is late, and must not be taken for dead.
_BASE = msgspec.structs.replace(
    CORRECTED, ack_s=60.0, register_s=20.0, lookup_s=10.0, recheck_s=0.0, fails_max=1, ring=_PATIENT
)


def rules(**changes: object) -> Rules:
    return msgspec.structs.replace(_BASE, **changes)


PLAIN = rules(epochs=False, chase=False, tried=False, late_guard=False)
OVERWRITTEN = msgspec.structs.replace(PLAIN, keyed_handovers=False)
EPOCHS_ONLY = rules(keyed_handovers=False, tried=False, late_guard=False)
KEYED = rules(tried=False, late_guard=False)

VARIANTS: dict[str, tuple[Rules, dict[str, float]]] = {
    "as published, pending handovers overwritten": (OVERWRITTEN, {}),
    "as published": (PLAIN, {}),
    "epochs, pending handovers overwritten": (EPOCHS_ONLY, {}),
    "epochs, pending handovers by epoch": (KEYED, {}),
    "the same, 12 brokers, 2 pointers": (msgspec.structs.replace(KEYED, pointers_max=2), {"brokers": 12}),
    "lost answers: epochs, no chase": (msgspec.structs.replace(KEYED, chase=False), {"loss": 0.4}),
    "lost answers: epochs and chase": (KEYED, {"loss": 0.4}),
    "lost answers: with tried": (rules(late_guard=False), {"loss": 0.4}),
    "lost answers: with tried, 12 brokers, 2 pointers": (
        rules(late_guard=False, pointers_max=2),
        {"loss": 0.4, "brokers": 12},
    ),
    "lost answers: with the re-check alone": (msgspec.structs.replace(KEYED, recheck_s=5.0), {"loss": 0.4}),
    "late duplicates: without the guard": (KEYED, {"duplicates": 0.3}),
    "late duplicates: with the guard": (rules(tried=False), {"duplicates": 0.3}),
    "late duplicates: guard and tried": (rules(), {"duplicates": 0.3}),
    "all at once, 12 brokers, 2 pointers: guard and tried": (
        rules(pointers_max=2),
        {"loss": 0.4, "duplicates": 0.3, "brokers": 12},
    ),
    "all at once, 12 brokers, 2 pointers: all rules": (
        rules(pointers_max=2, recheck_s=5.0),
        {"loss": 0.4, "duplicates": 0.3, "brokers": 12},
    ),
}
"""Each row of the defect table: the rules, and what makes the world harder."""

PUBLISHED_BAD: dict[str, str] = {
    "as published, pending handovers overwritten": "43 of 60",
    "as published": "38 of 60",
    "epochs, pending handovers overwritten": "9 of 60",
    "epochs, pending handovers by epoch": "0 of 60",
    "the same, 12 brokers, 2 pointers": "0 of 60",
    "lost answers: epochs, no chase": "40 of 40",
    "lost answers: epochs and chase": "38 of 40",
    "lost answers: with tried": "0 of 40",
    "lost answers: with tried, 12 brokers, 2 pointers": "0 of 40",
    "lost answers: with the re-check alone": "0 of 40",
    "late duplicates: without the guard": "39 of 40",
    "late duplicates: with the guard": "4 of 40",
    "late duplicates: guard and tried": "0 of 40",
    "all at once, 12 brokers, 2 pointers: guard and tried": "30 of 40",
    "all at once, 12 brokers, 2 pointers: all rules": "0 of 40",
}
"""What the spec's own throw-away simulation counted (6.2-H)."""


Deliver = Callable[..., None]


class Race(msgspec.Struct, frozen=True, kw_only=True):
    variant: str
    seed: int
    clients: int = 12

    @property
    def rules(self) -> Rules:
        return VARIANTS[self.variant][0]

    def hardship(self, name: str, usual: float = 0.0) -> float:
        return VARIANTS[self.variant][1].get(name, usual)


class Outcome(msgspec.Struct, frozen=True):
    """Pairs of event and client; a run is bad if any is missing or went round until it was given up."""

    wanted: int
    received: int
    dead_letters: int
    chain_max: int
    moves: int

    @property
    def is_bad(self) -> bool:
        return self.received < self.wanted or self.dead_letters > 0


class Course:
    """One run: who moves when, what is published, and what gets lost on the air."""

    def __init__(self, race: Race) -> None:
        self.race = race
        brokers = int(race.hardship("brokers", 5))
        self.gathering = Gathering(race.seed, race.rules, draw=lambda dice: dice.expovariate(1 / DELAY_S))
        dice = self.gathering.streams.stream("map")
        chart = generate(brokers, dice, phones=0)
        self.gathering.deploy(chart.sites)
        self.names = [site.name for site in chart.sites]
        self.publisher = chart.publisher
        self.moves = 0
        self.chain_max = 0
        self.gathering.underlay.lose = self._lost
        self._air = self.gathering.streams.stream("air")
        self._watch_chains()

    def _watch_chains(self) -> None:
        for broker in self.gathering.brokers.values():
            broker.mobility.deliver = self._watched(broker.mobility.deliver)  # type: ignore[method-assign]

    def _watched(self, deliver: Deliver) -> Deliver:
        def watched(client: str, notice: Notice, sids: tuple[str, ...] = ()) -> None:
            self.chain_max = max(self.chain_max, notice.chain)
            deliver(client, notice, sids)

        return watched

    def _lost(self, sender: NodeId, to: NodeId, message: Message) -> bool:
        """The radio: quick while it works. Answers may be lost and requests come again much later."""
        if isinstance(message, Associated) and self._air.random() < self.race.hardship("loss"):
            return True
        if isinstance(message, Associate) and self._air.random() < self.race.hardship("duplicates"):
            self.gathering.underlay.carry(sender, to, message, self._air.uniform(*DUPLICATE_S))
        return False

    def run(self) -> Outcome:
        gathering, race = self.gathering, self.race
        clients = [f"c{number}" for number in range(race.clients)]
        for client in clients:
            phone = gathering.phone(client)
            dice = gathering.streams.stream("moves", client)
            gathering.attach(client, dice.choice(self.names))
            gathering.run_for(0.0)
            phone.subscribe("all", EVERYWHERE)
        gathering.run_for(60.0)
        sensor = gathering.phone("sensor")
        gathering.attach("sensor", self.names[0])
        start_s = gathering.world.engine.now
        for client in clients:
            self._move_later(client, gathering.streams.stream("moves", client, "times"), start_s + ACTIVE_S)
        published = 0
        while gathering.world.engine.now < start_s + ACTIVE_S:
            sensor.publish("all", self.publisher)
            published += 1
            gathering.run_for(1.0)
        gathering.run_for(REST_S)
        received = sum(len(gathering.phones[client].history()) for client in clients)
        dead = sum(broker.counts["dead letters"] for broker in gathering.brokers.values())
        return Outcome(published * len(clients), received, dead, self.chain_max, self.moves)

    def _move_later(self, client: NodeId, dice: Random, until_s: float) -> None:
        engine = self.gathering.world.engine

        def move() -> None:
            if engine.now < until_s:
                self.moves += 1
                self.gathering.detach(client)
                self.gathering.attach(client, dice.choice(self.names))
                self._move_later(client, dice, until_s)

        engine.after(MOVE_MIN_S + dice.expovariate(1 / MOVE_S), move)


def run(race: Race) -> Outcome:
    return Course(race).run()
