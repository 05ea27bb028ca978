"""One run of the published evaluation (spec data-gathering 4), or of a baseline in the same world.

A run is decided by its `Configuration`: the map depends on the seed and the number of brokers alone, so that all digit
lengths and all schemes see the same brokers.
"""

from __future__ import annotations

import math
import statistics
import time
from random import Random

import msgspec

from godwit.lab.gathering import races, windows
from godwit.lab.gathering.crossings import Crossings
from godwit.lab.gathering.rivals import flooded, rendezvous
from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.maps import SQUARE, Map, generate
from godwit.protocols.gathering.messages import ClientId, Item, Pub, Sub, Subscription
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.host import NodeId, Record
from godwit.protocols.topology.pastry.keys import Key
from godwit.protocols.topology.pastry.node import RingOptions
from godwit.sim.ring.gathering import Gathering
from godwit.sim.streams import Streams

EXPERIMENTS = ("S1", "S2", "M", "race", "join")
SERVING = ("from STATE on", "from SPLIT on")
SCHEMES = ("ring", "flooding", "rendezvous", "resubscribing", "home only")
REQUESTS = 1000
DESTINATIONS_MAX = 10
SPREAD = 20.0


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """`requests` are subscriptions in S1 and events in S2 and M; the defaults are the spec's."""

    seed: int
    experiment: str
    brokers: int
    bits: int = 4
    radius: float = 1.0
    requests: int = REQUESTS
    missing: float = 0.0
    """Share of table cells that are missing."""
    scheme: str = "ring"
    variant: str = ""
    """Of a race, which rules in which world; of a join, when the newcomer serves."""

    def __post_init__(self) -> None:
        if self.experiment not in EXPERIMENTS or self.scheme not in SCHEMES:
            raise ValueError(f"{self.experiment} with {self.scheme}: one of {EXPERIMENTS} and one of {SCHEMES}")
        if self.experiment == "race" and self.variant not in races.VARIANTS:
            raise ValueError(f"race {self.variant!r}: one of {', '.join(races.VARIANTS)}")

    @property
    def rules(self) -> Rules:
        """No broker fails, no radio loses: the re-check may be off, as in the published runs."""
        return Rules(
            recheck_s=0.0,
            handover=self.scheme != "resubscribing",
            via_home=self.scheme == "home only",
            ring=RingOptions(bits=self.bits),
        )

    def chart(self) -> Map:
        return generate(self.brokers, Streams(self.seed).stream("map", self.brokers))


class Result(msgspec.Struct, kw_only=True):
    """What does not apply stays 0. Hops count from the attached broker; from the client it is one more."""

    deliveries: int = 0
    hops_sum: int = 0
    hops_max: int = 0
    hops_std: float = 0.0
    sent: int = 0
    """Transmissions over overlay hops, without confirmations."""
    confirmed: int = 0
    travelled: float = 0.0
    stored_max: int = 0
    """Subscriptions, at the broker that has most."""

    wanted: int = 0
    received: int = 0
    buffered: int = 0
    associations: int = 0
    relocations: int = 0
    handover_sent: int = 0
    registering_sent: int = 0
    subscribing_sent: int = 0
    redirected: int = 0
    late: int = 0
    """Of those received, by way of a buffer."""
    latency_s: float = 0.0
    """Mean, of what nobody buffered."""
    pointers: int = 0
    care_of_max: int = 0
    bad: int = 0
    """1 where a race or a join ended with something lost, stuck or come back."""
    chain_max: int = 0
    series: str = ""
    """Of one run of M: what the figures over time show, as JSON."""
    wall_s: float = 0.0

    @property
    def hops_mean(self) -> float:
        return self.hops_sum / self.deliveries if self.deliveries else 0.0

    @property
    def overhead(self) -> float:
        """As plotted: transmissions and confirmations for each delivery (6.2-G)."""
        return (self.sent + self.confirmed) / self.deliveries if self.deliveries else 0.0

    @property
    def overhead_text(self) -> float:
        """As defined in the text: for each hop of each delivery; never above 2."""
        return (self.sent + self.confirmed) / self.hops_sum if self.hops_sum else 0.0

    @property
    def handover(self) -> float:
        return self.handover_sent / self.relocations if self.relocations else 0.0

    @property
    def lost(self) -> int:
        return self.wanted - self.received - self.buffered


def run(configuration: Configuration) -> Result:
    started = time.perf_counter()
    result = _run(configuration)
    result.wall_s = time.perf_counter() - started
    return result


def _run(configuration: Configuration) -> Result:
    if configuration.experiment == "race":
        return _race(configuration)
    if configuration.experiment == "join":
        return _join(configuration)
    if configuration.scheme == "flooding":
        return _rival(configuration, *flooded(configuration.chart(), configuration.requests))
    if configuration.scheme == "rendezvous":
        streams = Streams(configuration.seed).child("rendezvous")
        told = rendezvous(configuration.chart(), streams, configuration.bits, configuration.requests)
        return _rival(configuration, *told)
    if configuration.experiment == "S1":
        return subscriptions(configuration)
    return notices(configuration) if configuration.experiment == "S2" else Crossings(configuration).run()


def _race(configuration: Configuration) -> Result:
    done = races.run(races.Race(variant=configuration.variant, seed=configuration.seed))
    return Result(
        wanted=done.wanted,
        received=done.received,
        relocations=done.moves,
        chain_max=done.chain_max,
        bad=int(done.is_bad),
    )


def _join(configuration: Configuration) -> Result:
    ready = configuration.variant == SERVING[0]
    done = windows.run(windows.Window(seed=configuration.seed, ready=ready, brokers=configuration.brokers))
    return Result(wanted=done.events, bad=int(done.is_bad), buffered=done.missed)


def _rival(configuration: Configuration, hops: list[int], sent: int, travelled: float, stored_max: int) -> Result:
    return _counted(hops, sent=sent, confirmed=sent, travelled=travelled, stored_max=stored_max)


def _counted(hops: list[int], **others: float) -> Result:
    std = statistics.pstdev(hops) if hops else 0.0
    known = {"deliveries": len(hops), "hops_sum": sum(hops), "hops_max": max(hops, default=0), "hops_std": std}
    return msgspec.convert({**known, **others}, Result)


class Hops:
    """Keeps the hops of one kind of record."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.hops: list[int] = []

    def record(self, time_s: float, node: NodeId, record: Record, /) -> None:
        if record.kind == self.kind:
            self.hops.append(record.hops)


def subscriptions(configuration: Configuration) -> Result:
    """S1: one static subscriber asks for areas all over the space."""
    heard = Hops("stored")
    gathering = _deployed(configuration, heard)
    dice = gathering.streams.stream("areas")
    attached = gathering.brokers[dice.choice(sorted(gathering.brokers))]
    for number in range(configuration.requests):
        area = Disc(_centre(dice), configuration.radius)
        attached.dissemination.take(Sub(Subscription(f"a#{number}", "any", area, "a", source=attached.key)))
        gathering.run_for(1.0)
    gathering.run_for(10.0)
    return _summed(gathering, heard.hops, "Sub")


def _centre(dice: Random) -> tuple[float, ...]:
    return tuple(min(max(dice.gauss(50.0, SPREAD), low), high) for low, high in SQUARE)


def notices(configuration: Configuration) -> Result:
    """S2: one static publisher; a stub at the matching broker names up to ten brokers for each event."""
    heard = Hops("notified")
    gathering = _deployed(configuration, heard)
    dice = gathering.streams.stream("destinations")
    names = sorted(gathering.brokers)
    matching = gathering.brokers[dice.choice(names)]
    others = [broker.key for broker in gathering.brokers.values() if broker is not matching]
    most = min(DESTINATIONS_MAX, len(others))

    def stub(item: Item) -> dict[Key, dict[ClientId, tuple[str, ...]]]:
        return {key: {} for key in dice.sample(others, dice.randint(1, most))}

    matching.dissemination.match = stub
    for number in range(configuration.requests):
        matching.dissemination.take(Pub(Item(("publisher", number), "any", matching.place, float(number))))
        gathering.run_for(30.0)
    return _summed(gathering, heard.hops, "Matched")


def _deployed(configuration: Configuration, heard: Hops) -> Gathering:
    gathering = Gathering(configuration.seed, configuration.rules, recorder=heard)
    gathering.deploy(configuration.chart().sites, missing=configuration.missing)
    return gathering


def _summed(gathering: Gathering, hops: list[int], kind: str) -> Result:
    underlay = gathering.underlay
    return _counted(
        hops,
        sent=underlay.sent[kind],
        confirmed=underlay.sent["HopAck"],
        travelled=underlay.travelled / 2,
        stored_max=max(len(broker.store) for broker in gathering.brokers.values()),
    )


def reference(brokers: int) -> float:
    """The curve that hops are held against."""
    return math.log2(brokers)
