"""The whole system under faults from a seed: nothing is lost, nothing comes twice, and in the end all tables agree."""

from __future__ import annotations

from random import Random

import pytest
from tests.protocols.fleet import Fleet, wired, wires

from godwit.protocols.host import NodeId
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules

BROKERS = [f"b{i}" for i in range(7)]
SUBSCRIBERS = ["s1", "s2", "s3"]
PUBLISHERS = ["p1", "p2"]


class Storm:
    """Forty seconds in which links break, heal and lose every fifth message, and brokers crash if they may."""

    def __init__(self, seed: int, *, crashes: bool = False, rules: Rules = HARDENED) -> None:
        self.dice = Random(seed)
        self.crashes = crashes
        self.edges = self._graph()
        self.fleet = wired(self.edges, rules=rules, seed=seed)
        self.fleet.run(10)
        self._lose(0.2)
        for second in range(40):
            self._strike()
            for i, publisher in enumerate(PUBLISHERS):
                self.fleet.publish(publisher, self.dice.choice(SUBSCRIBERS), 2 * second + i)
            self.fleet.run(1)
        self._calm()
        self.fleet.run(60)

    def _graph(self) -> list[tuple[NodeId, NodeId]]:
        """A connected graph with a few ways round, every client within reach of three brokers."""
        edges = {(BROKERS[self.dice.randrange(i)], BROKERS[i]) for i in range(1, len(BROKERS))}
        edges |= {tuple(sorted(self.dice.sample(BROKERS, 2))) for _ in BROKERS}  # type: ignore[misc]
        for client in SUBSCRIBERS + PUBLISHERS:
            edges |= {(broker, client) for broker in self.dice.sample(BROKERS, 3)}
        return sorted(edges)

    def _lose(self, share: float) -> None:
        for a, b in self.edges:
            self.fleet.faults.lose(a, b, loss=share)

    def _strike(self) -> None:
        for a, b in self.dice.choices(self.edges, k=2):
            (wires(self.fleet).cut if self.dice.random() < 0.5 else wires(self.fleet).heal)(a, b)
        if self.crashes and self.dice.random() < 0.2:
            broker = self.dice.choice(BROKERS)
            faults = self.fleet.faults
            (faults.crash if self.fleet.world.nodes[broker].alive else faults.restart)(broker)

    def _calm(self) -> None:
        self._lose(0.0)
        for a, b in self.edges:
            wires(self.fleet).heal(a, b)
        for broker in BROKERS:
            if not self.fleet.world.nodes[broker].alive:
                self.fleet.faults.restart(broker)

    def lost(self) -> set[tuple[str | None, int | None, str]]:
        """Pairs of event and subscriber that some broker took on, and that never arrived."""
        rows = {
            kind: {(row[3], row[4], row[5]) for row in self.fleet.trace.of(kind)} for kind in ("routed", "delivered")
        }
        return rows["routed"] - rows["delivered"]


def astray(fleet: Fleet, subscriber: NodeId) -> set[NodeId]:
    """The brokers from which the next hops do not lead to the subscriber's broker and to it."""
    found = set()
    for start in BROKERS:
        at: NodeId | None = start
        for _ in BROKERS:
            if at in BROKERS:
                at = fleet.broker(str(at)).routes.hop(subscriber)
        if at != subscriber or fleet.broker(str(fleet.at(subscriber))).routes.hop(subscriber) != subscriber:
            found.add(start)
    return found


@pytest.mark.feature("mft-pubsub F13", "mft-pubsub F14", "mft-pubsub F20", "mft-pubsub F22")
@pytest.mark.parametrize("seed", range(8))
def test_while_no_broker_crashes_every_event_that_was_taken_on_arrives_once(seed: int) -> None:
    storm = Storm(seed)
    assert storm.lost() == set()
    arrivals = [(row[1], row[3], row[4]) for row in storm.fleet.trace.of("delivered")]
    assert len(arrivals) == len(set(arrivals))
    assert len(arrivals) > 30
    assert all(not broker.queues for broker in storm.fleet.brokers().values())


@pytest.mark.feature("mft-pubsub F24", "mft-pubsub F21", "mft-pubsub F4")
@pytest.mark.parametrize("seed", range(6))
def test_once_the_faults_stop_all_tables_lead_to_every_subscriber_though_brokers_crashed(seed: int) -> None:
    storm = Storm(seed, crashes=True)
    assert {subscriber: astray(storm.fleet, subscriber) for subscriber in SUBSCRIBERS} == {
        subscriber: set() for subscriber in SUBSCRIBERS
    }
    for n, subscriber in enumerate(SUBSCRIBERS):
        storm.fleet.publish("p1", subscriber, 1000 + n)
    storm.fleet.run(10)
    assert [storm.fleet.got(subscriber)[-1] for subscriber in SUBSCRIBERS] == [1000, 1001, 1002]


@pytest.mark.feature("mft-pubsub F22")
def test_the_published_rules_lose_events_in_the_same_storms() -> None:
    assert any(Storm(seed, rules=THESIS).lost() for seed in range(4))
