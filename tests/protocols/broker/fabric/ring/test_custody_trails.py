"""What was matched for a cell that is another's keeps back what comes for it, until others have confirmed it."""

from __future__ import annotations

from random import Random

from godwit.protocols.broker.fabric.ring.custody import Trails
from godwit.protocols.broker.fabric.ring.targets import Targets
from godwit.protocols.broker.messages import Content, Dealt, Hello, Region, Share
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.protocols.broker.streams.frames import encode
from godwit.protocols.broker.streams.outbox import Outbox, Parcel
from godwit.protocols.gathering.space import WHOLE, cut_between
from godwit.sim.brokers.site import SimHost
from godwit.sim.engine import Engine

CUT = cut_between((-90.0, 0.0), (90.0, 0.0))
HIGH = Region(WHOLE.append(CUT, "1"), "x", 2)
"""The topics that begin with `a` are in it, and those with `b` are not."""
LOW = Region(WHOLE.append(CUT.opposite(), "0"), "y", 2)
WAIT_S = 60.0


class World:
    def __init__(self, disk: Disk | None = None) -> None:
        self.engine = Engine()
        self.disk: Disk = {} if disk is None else disk
        self.store = MemoryStore(self.disk, lambda call: call())
        self.outbox = Outbox(self.store, 0.0)
        self.trails = Trails(SimHost("m", self.engine, Random(1)), self.store, self.outbox, Targets(), WAIT_S)
        self.trails.start()

    def sends(self, number: int, content: Content, *to: str) -> None:
        self.outbox.add(Parcel(number, encode(content), True, 0.0), to)

    def confirms(self, broker: str, number: int) -> bool:
        self.outbox.release(self.outbox.lanes[broker], number)
        return self.trails.look()


def one(topic: str) -> Publication:
    return Publication("p", 1, topic, qos=1)


def test_what_is_for_the_cell_waits_until_all_have_confirmed_what_they_were_sent_for_it() -> None:
    world = World()
    world.sends(1, one("a/x"), "n", "k")
    world.sends(2, one("b/x"), "n", "k", "l")
    world.trails.begin(HIGH)
    assert world.trails.closes(HIGH)
    assert not world.trails.closes(LOW)
    assert not world.confirms("n", 1)
    assert world.trails.closes(HIGH)
    assert world.confirms("k", 1)
    assert not world.trails.closes(HIGH)


def test_what_members_of_groups_are_sent_counts_and_what_brokers_say_of_themselves_does_not() -> None:
    world = World()
    world.sends(1, Hello(), "n")
    world.trails.begin(HIGH)
    assert not world.trails.closes(HIGH)
    world.sends(2, Dealt(one("a/x"), Share(("g", "a/#", ""))), "n")
    world.trails.begin(HIGH)
    assert world.trails.closes(HIGH)


def test_a_part_of_the_cell_waits_as_well() -> None:
    world = World()
    world.sends(1, one("a/x"), "n")
    world.trails.begin(Region(WHOLE, "x", 2))
    assert world.trails.closes(LOW)
    assert world.trails.closes(HIGH)


def test_a_crash_changes_nothing_of_it() -> None:
    world = World()
    world.sends(1, one("a/x"), "n")
    world.trails.begin(HIGH)
    world.store.settled(lambda: None)
    again = World(world.disk)
    assert again.trails.closes(HIGH)
    assert again.confirms("n", 1)
    again.store.settled(lambda: None)
    assert not World(again.disk).trails.closes(HIGH)
    assert "ring" not in again.disk or not again.disk["ring"]


def test_nobody_is_waited_for_longer_than_for_what_is_passed_on() -> None:
    world = World()
    world.sends(1, one("a/x"), "n")
    world.trails.begin(HIGH)
    world.engine.run(WAIT_S - 1)
    assert world.trails.closes(HIGH)
    world.engine.run(WAIT_S + 1)
    assert not world.trails.closes(HIGH)
