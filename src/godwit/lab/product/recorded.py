"""The deployed broker on recorded movement: a run of `godwit lab recorded` with the scheme `product`."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from godwit.events import Event
from godwit.lab.handoff.runs import PUBLISHER, VALUES, selectors
from godwit.lab.product.fleet import LEAD_S, Fleet, Phone, between
from godwit.lab.recorded.moves import Habits, Movement, Stays
from godwit.lab.recorded.runs import Configuration, Result, Run, Walker, quantile
from godwit.protocols.broker.handoff.prediction import HABITS, Learned, Neighbors
from godwit.protocols.host import NodeId
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Said

KNOWN_S = 1.0
"""By then all brokers know what a client wants that has just come: what is due begins there."""


class RecordedProduct(Run):
    """The world of one configuration."""

    def __init__(self, configuration: Configuration, movement: Movement) -> None:
        self.configuration = configuration
        self.sites, self.learned = movement.sites, movement.learned
        self.fleet = Fleet(
            list(self.sites),
            configuration.seed,
            StationOptions(session_wait_s=1e6, habits=HABITS),
            latency_s=configuration.latency_s,
            on_taken=self._taken,
        )
        self.world = self.fleet.cluster.world
        self.begin_s = configuration.begin_s + configuration.skip_s - LEAD_S - 1.0
        self.end_s = configuration.measure_s + LEAD_S + 1.0
        self.walkers: dict[NodeId, Walker] = {}
        self.phones: dict[NodeId, Phone] = {}
        self.times_s: list[float] = []
        self.values: list[int] = []
        self.latencies_s: list[float] = []
        self.handoffs = self.disordered = 0
        self.dice = self.world.streams.stream("values")
        self._teach_all()
        self._add_walkers(movement.stays)
        self.speaker = self.fleet.publisher(PUBLISHER, next(iter(self.sites)))

    def _teach_all(self) -> None:
        """What the brokers have learned on the days before."""
        for name, machine in self.fleet.cluster.sites.items():
            neighbors = machine.station.neighbors
            assert isinstance(neighbors, Neighbors)
            neighbors.take(_learned(self.learned.get(name, Habits({}))))

    def _add_walkers(self, stays: Stays) -> None:
        spans = selectors(self.world.streams.stream("selectors"), len(stays))
        for (name, some), (low, _) in zip(sorted(stays.items()), spans, strict=True):
            walker = self.walkers[name] = Walker(some, low, self.world.streams.stream("moves", name))
            phone = self.phones[name] = self.fleet.subscriber(name, between(low, low + VALUES // 5 - 1))
            walker.client = cast(Any, phone)

    def _taken(self, name: NodeId, said: Said) -> None:
        self._heard(self.walkers[name], Event(PUBLISHER, said.n - 1))

    def _publish(self) -> None:
        engine = self.world.engine
        if engine.now >= self.end_s:
            return
        value = self.dice.randrange(VALUES)
        if self.speaker.tell(value, self.configuration.size_b) is not None:
            self.times_s.append(engine.now)
            self.values.append(value)
        engine.after(1 / self.configuration.rate_per_s, self._publish)

    def _appear(self, name: NodeId) -> None:
        walker = self.walkers[name]
        first = not walker.client.number
        super()._appear(name)
        if first:
            self.world.engine.after(KNOWN_S, partial(self._count_from_now, walker))

    def _count_from_now(self, walker: Walker) -> None:
        walker.from_sequence = len(self.times_s)

    def _leave(self, name: NodeId, walker: Walker) -> None:
        self.phones[name].vanish(self.configuration.detection_s)

    def _result(self) -> Result:
        due, lost = self._losses()
        sent = self.fleet.sent
        return Result(
            handoffs=self.handoffs,
            hits=self.fleet.hits,
            misses=self.fleet.misses,
            due=due,
            lost=lost,
            twice=sum(walker.twice for walker in self.walkers.values()),
            disordered=self.disordered,
            copies=self.fleet.copies,
            events_sent=self.fleet.passed_on,
            messages=sum(sent.values()),
            peer_mb=self.fleet.cluster.cables.sent_b.total() / 1e6,
            latency_mean_s=sum(self.latencies_s) / max(1, len(self.latencies_s)),
            latency_median_s=quantile(self.latencies_s, 0.5),
            latency_p99_s=quantile(self.latencies_s, 0.99),
        )


def _learned(habits: Habits) -> list[Learned]:
    weights: dict[NodeId, dict[NodeId, float]] = {}
    for before, moves in habits.moves.items():
        for to, count in moves.items():
            weights.setdefault(to, {})[before] = float(count)
    return [Learned(peer=to, weight=sum(some.values()), before=some) for to, some in weights.items()]
