"""Calendars that are wrong by days, and are set while brokers run: nothing is lost by it, nothing lasts too long."""

from __future__ import annotations

from typing import cast

import pytest

from godwit.protocols.broker.messages import Carried as Along
from godwit.protocols.broker.messages import Copy, Forwarded, Kept, Retained, Session, retimed
from godwit.protocols.broker.publication import TIME_MAX, Publication
from godwit.protocols.broker.steady import NOTED_S, Steady
from godwit.protocols.broker.store import Disk, MemoryStore
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.cluster import Cluster
from godwit.sim.brokers.world import World

DAY_S = 24 * 3600.0


def test_it_begins_with_the_calendar_and_goes_on_without_it() -> None:
    world = World()
    site = world.sites["b1"]
    steady = site.broker.steady
    assert steady() == pytest.approx(world.clock())
    for offset_s in (8 * DAY_S, -8 * DAY_S):
        site.offset_s = offset_s
        assert steady() == pytest.approx(world.clock())
        world.run(100.0)
        assert steady() == pytest.approx(world.clock())


@pytest.mark.parametrize(("set_s", "seen_s"), [(0.0, 500.0), (-8 * DAY_S, 0.0)])
def test_a_start_adds_the_time_that_the_broker_was_down_as_far_as_the_calendar_knows(
    set_s: float, seen_s: float
) -> None:
    world = World()
    site = world.sites["b1"]
    world.run(2 * NOTED_S + 1.0)
    before = site.broker.steady()
    site.crash()
    world.run(500.0)
    site.offset_s = set_s
    site.start()
    assert before + seen_s - NOTED_S <= site.broker.steady() <= before + seen_s + 1.0


@pytest.mark.parametrize("set_s", [0.0, 8 * DAY_S, -8 * DAY_S])
def test_a_start_on_a_machine_that_went_on_needs_no_calendar(set_s: float) -> None:
    world = World()
    site = world.sites["b1"]
    store = MemoryStore({}, lambda call: call())
    first = Steady(site.host, store, site.clock, "boot 1")
    first.keep()
    before = first.now()
    world.run(500.0)
    site.offset_s = set_s
    assert Steady(site.host, store, site.clock, "boot 1").now() == pytest.approx(before + 500.0)
    # It was off meanwhile: the calendar must be believed, as far as it goes on.
    again = Steady(site.host, store, site.clock, "boot 2").now()
    assert again == pytest.approx(before + max(0.0, 500.0 + set_s))


def test_two_clocks_of_one_broker_agree() -> None:
    world = World()
    site = world.sites["b1"]
    site.offset_s = 12_345.0
    disk: Disk = {table: dict(rows) for table, rows in site.disk.items()}
    one, other = (Steady(site.host, MemoryStore(disk, lambda call: None), site.clock) for _ in range(2))
    assert one.now() == pytest.approx(other.now(), abs=1e-3)


@pytest.mark.parametrize("step_s", [8 * DAY_S, -8 * DAY_S, 400 * DAY_S])
def test_a_step_of_the_own_calendar_drops_neither_sessions_nor_what_waits(step_s: float) -> None:
    world = World()
    site = world.sites["b1"]
    Client(world, "s").connect("b1", expiry_s=3600.0).subscribe("#", qos=1).drop()
    publisher = Client(world, "p").connect("b1")
    steady = site.broker.steady
    publisher.publish("a", b"plain", 1)
    publisher.publish("a", b"expiring", 1, expires=steady() + 1000.0)
    publisher.publish("a", b"kept", 1, retain=True, expires=steady() + 1000.0)
    world.run()
    site.offset_s = step_s
    world.run(700.0)  # what has expired is looked for meanwhile
    back = Client(world, "s").connect("b1")
    fresh = Client(world, "n").connect("b1").subscribe("#", qos=1)
    world.run()
    assert back.presents == [True]
    assert back.payloads == [b"plain", b"expiring", b"kept"]
    assert fresh.payloads == [b"kept"]
    back.drop()
    world.run(3700.0)
    assert "s" not in site.broker.sessions, "an hour is an hour"


@pytest.mark.parametrize("wrong_s", [-8 * DAY_S, 8 * DAY_S])
@pytest.mark.parametrize("wrong", ["b1", "b2"])
def test_a_broker_days_off_loses_nothing_for_a_client_that_is_away(wrong: str, wrong_s: float) -> None:
    cluster = Cluster(("b1", "b2"), (("b1", "b2"),), 1)
    cluster.sites[wrong].offset_s = wrong_s
    for name in ("b1", "b2"):
        cluster.crash(name)
        cluster.start(name, keep_disk=False)  # so that its steady clock is as wrong from the start
    cluster.run(10.0)
    world = cast(World, cluster)
    Client(world, "s").connect("b2").subscribe("#", qos=1).drop()
    cluster.run(1.0)
    publisher = Client(world, "p").connect("b1")
    for number in range(10):
        publisher.publish("a", b"%d" % number, 1, expires=cluster.sites["b1"].broker.steady() + 600.0)
        publisher.publish("a", b"%d for ever" % number, 1)
    cluster.run(300.0)
    back = Client(world, "s").connect("b2")
    cluster.run(5.0)
    assert len(back.payloads) == 20
    back.drop()
    publisher.publish("a", b"short", 1, expires=cluster.sites["b1"].broker.steady() + 60.0)
    cluster.run(90.0)
    back.connect("b2")
    cluster.run(5.0)
    assert len(back.payloads) == 20, "what has expired has expired"


def test_what_is_told_between_brokers_is_told_by_the_clock_of_who_hears_it() -> None:
    publication = Publication("p", 1, "t", b"x", expires=1_000.0, time=7.0)
    lasting = Publication("p", 2, "t")
    kept = Kept(publication, 1, since=900.0)

    assert retimed(lasting, 50.0) is lasting
    moved = retimed(publication, 50.0)
    assert isinstance(moved, Publication)
    assert (moved.expires, moved.time) == (1_050.0, 7.0)
    assert retimed(Retained(publication), 50.0) == Retained(moved)
    assert retimed(Forwarded("c", 1, kept), 50.0) == Forwarded("c", 1, Kept(moved, 1, since=950.0))
    assert retimed(Forwarded("c", 1, Kept(lasting, 1)), 50.0) == Forwarded("c", 1, Kept(lasting, 1))
    for kind in (Session, Copy):
        said = retimed(kind("c", 1, Along(asks_since=900.0), (), (), (kept,), ()), 50.0)
        assert isinstance(said, Session | Copy)
        assert said.kept == (Kept(moved, 1, since=950.0),)
        assert said.carried == Along(asks_since=950.0)
        assert retimed(kind("c", 1, Along(), (), (), (), ()), 50.0) == kind("c", 1, Along(), (), (), (), ())


def test_a_peer_with_an_absurd_clock_makes_no_absurd_times() -> None:
    moved = retimed(Publication("p", 1, "t", expires=TIME_MAX), TIME_MAX)
    assert isinstance(moved, Publication)
    assert moved.expires == TIME_MAX
