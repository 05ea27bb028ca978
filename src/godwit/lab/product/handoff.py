"""The deployed broker in the published evaluation: a run of `godwit lab handoff` with the scheme `product`.

Moves, selectors and values are those of the other schemes. The publisher waits until its broker has the last event, and
no less than `PERIOD_S`: brokers that take no time to think would be asked for thousands a second. What the testbed's
brokers take is not modelled, so delays and latencies are those of disks, links and messages alone.
"""

from __future__ import annotations

import statistics
from typing import Any, cast

from godwit.events import Event
from godwit.lab.handoff.runs import PUBLISHER, VALUES, Configuration, Result, Run, Tally, quantile, selectors
from godwit.lab.models.topology import Graph, complete, six_brokers
from godwit.lab.product.fleet import Fleet, Phone, between
from godwit.protocols.handoff_schemes.messages import Deliver
from godwit.protocols.host import NodeId
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Said

PERIOD_S = 0.05
"""About what the testbed's brokers take to accept a publication and deliver it."""
LATENCY_S = 0.0003
CELL_S = 0.0035
"""The mean delay of a cell; its bandwidth is not modelled."""
KNOWN_S = 5.0


class ProductRun(Run):
    """The world of one configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        names = [f"B{i}" for i in range(1, 7)]
        self.motion: Graph = six_brokers(configuration.layout) if configuration.pattern == "NBR" else complete(names)
        self.fleet = Fleet(
            names, configuration.seed, StationOptions(session_wait_s=1e6), latency_s=LATENCY_S, on_taken=self._taken
        )
        self.world = self.fleet.cluster.world
        self.servers = cast(Any, dict.fromkeys(names))
        self.tallies: dict[NodeId, Tally] = {}
        self.ranges: dict[NodeId, tuple[int, int]] = {}
        self.phones: dict[NodeId, Phone] = {}
        self.next_places: dict[NodeId, NodeId] = {}
        self.measuring, self.moving = False, configuration.moving
        self.delays_s: list[float] = []
        self.handoffs_s: list[float] = []
        self.handoffs = self.received = self.unique = self.transferred = self.disordered = 0
        self.times_s: list[float] = []
        self.values: list[int] = []
        self.dice = self.world.streams.stream("values")
        self._add_phones()
        self.speaker = self.fleet.publisher(PUBLISHER, names[0], self._accepted)

    def _add_phones(self) -> None:
        spans = selectors(self.world.streams.stream("selectors"), self.configuration.subscribers)
        for i, (low, high) in enumerate(spans):
            name = f"s{i}"
            self.ranges[name], self.tallies[name] = (low, high), Tally()
            self.phones[name] = self.fleet.subscriber(name, between(low, high), delay_s=CELL_S)
        self.clients = cast(Any, self.phones)

    def _taken(self, name: NodeId, said: Said) -> None:
        event = Event(PUBLISHER, said.n - 1)
        self._heard(self.tallies[name], event, Deliver(name, event=event))

    def published_at_s(self, sequence: int) -> float:
        return self.times_s[sequence]

    def published_value(self, sequence: int) -> int:
        return self.values[sequence]

    def _publish(self) -> None:
        value = self.dice.randrange(VALUES)
        if self.moving and self.speaker.tell(value, self.configuration.size_b) is not None:
            self.times_s.append(self.world.engine.now)
            self.values.append(value)

    def _accepted(self) -> None:
        self.world.engine.after(max(PERIOD_S, self.configuration.sleep_s), self._publish)

    def _vanish(self, name: NodeId) -> None:
        self.phones[name].vanish(self.configuration.detection_s)
        self.tallies[name].arrived_at_s = None

    def execute(self) -> Result:
        configuration, engine = self.configuration, self.world.engine
        names = list(self.motion)
        for i, name in enumerate(self.phones):
            self._appear(name, names[i % len(names)], self.world.streams.stream("moves", name))
        engine.run(engine.now + KNOWN_S)
        engine.after(0.0, self._publish)
        engine.run(engine.now + configuration.warmup_s)
        first, hits, misses, copies = len(self.times_s), self.fleet.hits, self.fleet.misses, self.fleet.copies
        sent_b, passed_on = self.fleet.cluster.cables.sent_b.total(), self.fleet.passed_on
        self.measuring = True
        engine.run(engine.now + configuration.measure_s)
        self.measuring = self.moving = False
        last = len(self.times_s)
        peer_mb = (self.fleet.cluster.cables.sent_b.total() - sent_b) / 1e6
        made = self.fleet.copies - copies + self.fleet.passed_on - passed_on
        self._drain()
        return self._measured(first, last, self.fleet.hits - hits, self.fleet.misses - misses, made, peer_mb)

    def _measured(self, first: int, last: int, hits: int, misses: int, copies: int, peer_mb: float) -> Result:
        due, lost = self._losses(first, last)
        return Result(
            published=last - first,
            due=due,
            lost=lost,
            received=self.received,
            unique=self.unique,
            redelivered=self.received - self.unique,
            disordered=self.disordered,
            throughput_per_s=self.unique / self.configuration.measure_s,
            loss=lost / due if due else 0.0,
            duplication=1 - self.unique / self.received if self.received else 0.0,
            delay_s=statistics.fmean(self.delays_s) if self.delays_s else 0.0,
            latency_s=statistics.fmean(self.handoffs_s) if self.handoffs_s else 0.0,
            latency_q60_s=quantile(self.handoffs_s, 0.6),
            handoffs=self.handoffs,
            hits=hits,
            misses=misses,
            transfer_share=0.0,
            copies_per_handoff=copies / self.handoffs if self.handoffs else 0.0,
            peer_mb=peer_mb,
            evicted=0,
            false_negatives_first=0.0,
            false_negatives_last=0.0,
            broker_throughput_per_s={},
            broker_processing_s={},
            population={},
            dummies={},
            control=dict(self.fleet.sent),
            latency_deciles_s={f"{q}": quantile(self.handoffs_s, q / 10) for q in range(1, 10)},
        )
