"""A thousand real brokers: some join, some crash, clients move, and nothing is lost that a living broker held."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from random import Random

import msgspec

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import SQUARE, drawn, generate
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.host import NodeId
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering

SETTLE_S = 40.0
HANDOVER = ("Handover", "HandoverAnswer", "Lookup", "LookupAnswer", "Update", "UpdateAnswer")


class Churn(msgspec.Struct, frozen=True, kw_only=True):
    brokers: int = 1000
    joins: int = 50
    crashes: int = 20
    phones: int = 200
    handoffs: int = 1000
    seed: int = 1


class Survived(msgspec.Struct, frozen=True, kw_only=True):
    brokers: int
    joined: int
    taken_over: int
    join_sent: float
    handoffs: int
    handover_sent: float
    wanted: int
    received: int
    owners_wrong: int
    """Of random places, those that not exactly one broker serves."""
    peers_mean: float
    wall_s: float
    cpu_s: float


class City:
    """Rules with keep-alives and replicas, as a deployment would have them."""

    def __init__(self, churn: Churn, told: Callable[[str], None] = lambda text: None) -> None:
        self.churn = churn
        self.told = told
        rules = Rules(replicate_s=15.0, recheck_s=30.0, ack_s=0.5, tries=2, ring=RingOptions(silence_s=12.0))
        self.gathering = Gathering(churn.seed, rules)
        self.dice = self.gathering.streams.stream("churn")
        told(f"{churn.brokers:,} brokers from a map")
        self.gathering.deploy(generate(churn.brokers, Random(churn.seed), phones=0).sites)
        self.wanted = 0

    def run(self) -> Survived:
        started, busy = time.perf_counter(), time.process_time()
        self._settle("the first copies", SETTLE_S)
        join_sent = self._join()
        taken = self._crash()
        handovers = self._move()
        gathering, churn = self.gathering, self.churn
        places = [drawn(self.dice, SQUARE) for _ in range(500)]
        known = [len(broker.ring.nodes_with_prefix("")) for broker in gathering.brokers.values()]
        return Survived(
            brokers=len(gathering.brokers),
            joined=sum(name.startswith("new") and b.is_member for name, b in gathering.brokers.items()),
            taken_over=taken,
            join_sent=join_sent / max(1, churn.joins),
            handoffs=churn.handoffs,
            handover_sent=sum(handovers[kind] for kind in HANDOVER) / max(1, churn.handoffs),
            wanted=self.wanted,
            received=sum(len(phone.history()) for name, phone in gathering.phones.items() if name != "sensor"),
            owners_wrong=sum(self._serving(place) != 1 for place in places),
            peers_mean=sum(known) / len(known),
            wall_s=time.perf_counter() - started,
            cpu_s=time.process_time() - busy,
        )

    def _settle(self, what: str, seconds: float) -> None:
        self.told(what)
        self.gathering.run_for(seconds)

    def _serving(self, place: tuple[float, ...]) -> int:
        brokers = self.gathering.brokers.values()
        return sum(cell.owns_all(place) for broker in brokers for cell in (broker.cell, *broker.takeover.cells()))

    def _join(self) -> int:
        """All at once, through random brokers; what it cost beyond the usual keep-alives and copies."""
        before = self._extra()
        names = sorted(self.gathering.brokers)
        for number in range(self.churn.joins):
            self.gathering.join(f"new{number}", drawn(self.dice, SQUARE), self.dice.choice(names))
        self._settle(f"{self.churn.joins} brokers join", SETTLE_S)
        return self._extra() - before

    def _extra(self) -> int:
        sent = self.gathering.underlay.sent
        usual = sent["KeepAlive"] + sent["Replica"] + sent["HopAck"]
        return sum(sent.values()) - usual

    def _crash(self) -> int:
        for name in self.dice.sample(sorted(self.gathering.brokers), self.churn.crashes):
            self.gathering.crash(name)
        self._settle(f"{self.churn.crashes} brokers crash", 2 * SETTLE_S)
        return sum(len(broker.takeover.regions) for broker in self.gathering.brokers.values())

    def _move(self) -> Counter[str]:
        """Phones want what happens around one place, and move while it happens."""
        gathering, churn = self.gathering, self.churn
        names = sorted(gathering.brokers)
        place = drawn(self.dice, SQUARE)
        phones = [f"p{number}" for number in range(churn.phones)]
        for name in phones:
            phone = gathering.phone(name)
            gathering.attach(name, self.dice.choice(names))
            gathering.run_for(0.01)
            phone.subscribe("any", Disc(place, 1.0))
        sensor = gathering.phone("sensor")
        gathering.attach("sensor", self.dice.choice(names))
        self._settle(f"{churn.phones} phones subscribe", 5.0)
        before = gathering.underlay.sent.copy()
        for number in range(churn.handoffs):
            self._hop(self.dice.choice(phones), names)
            if number % 10 == 0:
                sensor.publish("any", place)
                self.wanted += churn.phones
            gathering.run_for(0.1)
        self._settle(f"{churn.handoffs} handoffs done", 2 * SETTLE_S)
        return gathering.underlay.sent - before

    def _hop(self, phone: NodeId, names: list[NodeId]) -> None:
        self.gathering.detach(phone)
        self.gathering.attach(phone, self.dice.choice(names))


def survived(churn: Churn, told: Callable[[str], None] = lambda text: None) -> Survived:
    return City(churn, told).run()
