"""The races of `godwit lab races`, run by the deployed broker: the same moves, delays and events (spec 2.10)."""

from __future__ import annotations

from typing import Any, cast

from godwit.lab.handoff import races
from godwit.lab.handoff.races import DELAYS, PUBLISH_EVERY, Course, Outcome, Race
from godwit.lab.models.topology import complete, six_brokers
from godwit.lab.product.fleet import Fleet
from godwit.protocols.host import NodeId
from godwit.sim.brokers.options import StationOptions
from godwit.sim.brokers.roamer import Said

DRAIN_S = 60.0


class ProductCourse(Course):
    """The world of one race. Buffers have no limit and nobody gives up waiting, as with the schemes."""

    def __init__(self, race: Race) -> None:
        self.race = race
        self.outcome = Outcome()
        self.published = 0
        self.motion = six_brokers() if race.neighbors else complete([f"B{i}" for i in range(1, 7)])
        options = StationOptions(session_wait_s=1e6, foresight="habits" if race.neighbors else "everybody")
        self.fleet = Fleet(list(self.motion), race.seed, options, latency_s=DELAYS[race.delay], on_taken=self._taken)
        self.world = self.fleet.cluster.world
        self.got: dict[NodeId, list[int]] = {f"s{i}": [] for i in range(race.subscribers)}
        self.phones = {name: self.fleet.subscriber(name, "") for name in self.got}
        self.clients = cast(Any, self.phones)
        self.publisher = self.fleet.publisher("P", "B1")

    def _taken(self, name: NodeId, said: Said) -> None:
        self.got[name].append(said.n)

    def publish(self) -> None:
        self.published += self.publisher.tell(1) is not None

    def leave(self, name: NodeId, detected_after: float) -> None:
        self.phones[name].vanish(detected_after)

    def judge(self, gone: set[NodeId]) -> Outcome:
        outcome = self.outcome
        outcome.hits = self.fleet.hits
        for name, phone in self.phones.items():
            self._judge_received(self.got[name])
            outcome.cut_off += not phone.roamer.at_rest
        disks = [machine.node.disk["disk"] for machine in self.fleet.cluster.sites.values()]
        owners = [owner.partition("\0")[0] for disk in disks for owner, _ in disk.get("sessions", {})]
        outcome.stuck += len(owners) - len(set(owners))
        outcome.orphans += sum(len(disk.get("queues", {})) for disk in disks)
        return outcome


def run(race: Race) -> Outcome:
    course = ProductCourse(race)
    engine, dice = course.world.engine, course.world.streams.stream("moves")
    names = list(course.motion)
    for i, phone in enumerate(course.phones.values()):
        phone.connect(names[i % len(names)])
    engine.run(engine.now + 5.0)
    begin_s = engine.now
    course.end_s = begin_s + race.length
    for name in course.phones:
        races.stay(course, name, course.world.streams.stream("moves", name))
    for i in range(round(race.length / PUBLISH_EVERY)):
        engine.at(begin_s + 0.01 + i * PUBLISH_EVERY, course.publish)
    engine.run(course.end_s + 0.01)
    for name in course.phones:
        races.bring_home(course, name, dice)
    engine.run(engine.now + DRAIN_S)
    return course.judge(set())
