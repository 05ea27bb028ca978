"""A book is at two more brokers before anything in it is granted, and comes back from there."""

from __future__ import annotations

import pytest
from tests.protocols.broker.fabric.ring.worlds import Ring

from godwit.protocols.broker.fabric.ring.replicas import LOOKS_MAX
from godwit.protocols.broker.fabric.ring.standins import WATCHES_MAX
from godwit.protocols.broker.messages import Amended, Awake, Ceded, Dividing, Enter, Noted, Region, Replica, Watched
from godwit.protocols.host import NodeId
from godwit.sim.brokers.options import RING


def kept(ring: Ring, name: NodeId, topic: str = "t/kept") -> bool:
    """Whether something is retained there."""
    return ring.cluster.sites[name].broker.shelf.get(topic) is not None


def test_two_others_have_the_whole_book_before_a_subscription_is_granted() -> None:
    ring = Ring(5)
    matching = ring.owner("t")
    holders = ring.fabric(matching).replicas.holders
    assert len(set(holders)) == 2
    assert matching not in holders
    here = ring.others(matching, *holders)[0]
    subscriber = ring.client("s", here)
    ring.heard.clear()
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    kinds = [(origin, to, type(content)) for origin, to, content in ring.heard]
    noted = kinds.index((matching, here, Noted))
    assert any(kinds.index((matching, holder, Amended)) < noted for holder in holders)
    for holder in holders:
        assert here in ring.fabric(holder).standins.books[matching]


def test_nothing_is_granted_while_no_holder_answers_and_all_is_when_one_is_back() -> None:
    ring = Ring(5, covered_s=4.0)
    matching = ring.owner("t")
    first, second = ring.fabric(matching).replicas.holders
    here = ring.others(matching, first, second)[0]
    subscriber = ring.client("s", here)
    ring.cluster.crash(first)
    ring.cluster.crash(second)
    subscriber.subscribe("t/#", qos=2)
    assert subscriber.session is not None
    answers: list[bool] = []
    broker = ring.cluster.sites[here].broker
    broker.in_place(subscriber.session, [*subscriber.session.subscriptions], answers.append)
    ring.cluster.run(6)
    assert answers == [False]
    broker.in_place(subscriber.session, [*subscriber.session.subscriptions], answers.append)
    ring.cluster.start(second)
    ring.cluster.run(6)
    assert answers == [False, True]


def test_a_holder_that_is_silent_for_long_is_replaced() -> None:
    ring = Ring(5)
    matching = ring.owner("t")
    first, second = ring.fabric(matching).replicas.holders
    ring.cluster.crash(first)
    ring.cluster.run(20)
    holders = ring.fabric(matching).replicas.holders
    assert second in holders
    assert first not in holders
    assert len(holders) == 2
    new = next(name for name in holders if name != second)
    assert matching in ring.fabric(new).standins.held
    ring.cluster.start(first)
    ring.cluster.run(10)
    assert matching not in ring.fabric(first).standins.held, "it is told to forget"


def test_a_holder_that_took_nothing_for_a_while_is_told_all_however_much_else_is_under_way_to_it() -> None:
    ring = Ring(5)
    matching = ring.owner("t")
    first, second = ring.fabric(matching).replicas.holders
    held = ring.fabric(first).standins.held[matching]
    held.fenced_by = second  # which tries to stand in
    subscriber = ring.client("s", ring.others(matching, first, second)[0])
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(3)
    assert held.version < ring.fabric(matching).replicas.version
    ring.fabric(first).standins.unfence(matching, second)

    def chat() -> None:
        ring.fabric(matching).send((first,), Awake(lost=False), durable=False)
        ring.cluster.engine.after(0.01, chat)

    chat()
    ring.cluster.run(5)
    assert ring.fabric(first).standins.held[matching].version == ring.fabric(matching).replicas.version


@pytest.mark.parametrize("changes", [False, True])
def test_a_holder_that_has_had_all_and_keeps_nothing_is_asked_and_told_all(changes: bool) -> None:
    """Also while the book changes all the time: who keeps nothing takes no changes."""
    ring = Ring(5)
    matching = ring.owner("t")
    first, second = ring.fabric(matching).replicas.holders
    replicas, standins = ring.fabric(matching).replicas, ring.fabric(first).standins
    standins.held[matching].fenced_by = second  # which stands in for the matching broker
    subscriber = ring.client("s", ring.others(matching, first, second)[0])
    subscriber.subscribe("t/#", qos=2)
    ring.cluster.run(1)
    standins._drop(matching)  # what it keeps is of a cell that has gone since

    def change() -> None:
        replicas.amend(next(iter(ring.fabric(matching).membership.entries(None))))
        ring.cluster.engine.after(0.5, change)

    if changes:
        change()
    ring.cluster.run(2 * LOOKS_MAX * RING.watch_s)
    assert set(standins.books[matching]) == set(ring.fabric(second).standins.books[matching])
    assert standins.held[matching].version >= replicas.version - 1


def test_holders_that_keep_the_book_are_not_asked() -> None:
    ring = Ring(5)
    subscriber = ring.client("s", "b1")
    subscriber.subscribe("t/#", qos=2)
    ring.heard.clear()
    ring.cluster.run(4 * LOOKS_MAX * RING.watch_s)
    assert ring.said(Awake) == []


def test_a_lost_disk_gets_its_book_and_its_retained_publications_back_before_anything_is_matched() -> None:
    """The subscriber's own broker is away, so that only the replicas can know what it wants."""
    ring = Ring(5)
    matching = ring.owner("t")
    holders = ring.fabric(matching).replicas.holders
    here, there = ring.others(matching, *holders)[:2]
    subscriber, publisher = ring.client("s", here), ring.client("p", there)
    subscriber.subscribe("t/#", qos=2)
    publisher.publish("t/kept", b"retained", 1, retain=True)
    ring.cluster.run(3)
    ring.cluster.crash(here)
    ring.wipe(matching)
    publisher.publish("t/x", b"while the book is fetched", 2)
    ring.cluster.run(8)
    assert here in ring.fabric(matching).interests
    assert not ring.fabric(matching).replicas.restoring
    ring.cluster.start(here)
    subscriber.connect(here)
    ring.cluster.run(8)
    assert b"while the book is fetched" in [one.publication.payload for one in subscriber.got]
    newcomer = ring.client("n", there)
    newcomer.subscribe("t/kept", qos=1)
    ring.cluster.run(4)
    assert [one.publication.payload for one in newcomer.got] == [b"retained"]


@pytest.mark.parametrize("is_wanted", [True, False])
def test_what_is_retained_comes_back_from_whoever_wants_it_where_the_holders_lost_their_disks_too(
    is_wanted: bool,
) -> None:
    """What a broker does not want any more may have been replaced since: it is not told."""
    ring = Ring(5)
    matching = ring.owner("t")
    holders = ring.fabric(matching).replicas.holders
    here, there = ring.others(matching, *holders)[:2]
    subscriber, publisher = ring.client("s", here), ring.client("p", there)
    subscriber.subscribe("t/#", qos=1)
    publisher.publish("t/kept", b"retained", 1, retain=True)
    ring.cluster.run(3)
    if not is_wanted:
        subscriber.drop(expiry_s=0.0)
        ring.cluster.run(30)
    assert kept(ring, here)
    for name in (matching, *holders):
        ring.cluster.crash(name)
    for name in (matching, *holders):
        ring.cluster.start(name, keep_disk=False)
    ring.cluster.run(20)
    assert kept(ring, ring.owner("t")) == is_wanted


def test_a_lost_disk_is_restored_where_a_cell_was_on_its_way_to_it() -> None:
    """The new disk is given the cell, and has not agreed to have it. Who gives it names the cells that were there."""
    ring = Ring(4)
    heir = ring.owner("t")
    (cell,) = ring.fabric(heir).regions
    here = ring.others(heir)[0]
    subscriber, publisher = ring.client("s", here), ring.client("p", here)
    subscriber.subscribe("t/#", qos=1)
    publisher.publish("t/kept", b"retained", 1, retain=True)
    ring.cluster.run(3)
    giver = next(name for name in ring.others(heir) if ring.fabric(name).replicas.nearest()[0] == heir)
    ring.fabric(giver).leave()
    while ring.fabric(giver).regions:
        ring.cluster.run(0.0005)
    ring.cluster.crash(heir)
    ring.cluster.start(heir, keep_disk=False)
    ring.heard.clear()
    while not ring.fabric(heir).regions:
        ring.cluster.run(0.0005)
    assert (giver, heir) in ring.said(Ceded)
    assert ring.fabric(heir).replicas.restoring
    ring.cluster.run(8)
    fabric = ring.fabric(heir)
    assert cell in fabric.regions
    assert len(fabric.regions) == 2
    assert kept(ring, heir)
    assert here in fabric.interests


@pytest.mark.parametrize("has_agreed", [True, False])
def test_whoever_is_given_a_cell_can_tell_that_its_disk_was_lost(has_agreed: bool) -> None:
    """The new disk has not agreed to have it, or whoever gives it names another one that was there."""
    ring = Ring(3)
    heir, giver = ring.fabric("b2"), ring.fabric("b3")
    (cell,), (other,) = heir.regions, giver.regions
    given = Region(other.cell, "b2", other.term + 1)
    ring.wipe("b2")
    ring.cluster.run(0.005)
    heir = ring.fabric("b2")
    assert not heir.atlas.regions
    if has_agreed:
        heir.membership.on_dividing("b3", Dividing(1, given))
    heir.membership.on_ceded("b3", Ceded(given, contacts=(cell,) if has_agreed else ()))
    assert heir.replicas.restoring
    assert heir.regions == ([cell, given] if has_agreed else [given])


def test_nothing_is_given_away_before_a_lost_disk_is_restored() -> None:
    ring = Ring(4, late=1)
    owner, newcomer = ring.owner("t"), ring.names[-1]
    fabric = ring.fabric(owner)
    longitude, latitude = fabric.options.place
    ring.cluster.crash(fabric.replicas.holders[0])
    fabric.replicas.restore()
    fabric.membership.on_enter(newcomer, Enter(newcomer, (longitude + 1e-6, latitude)))
    assert fabric.membership.division is None
    fabric.leave()
    ring.cluster.run(RING.restore_s - 1)
    assert fabric.replicas.restoring
    assert fabric.membership.division is None
    assert fabric.regions
    ring.cluster.run(8)
    assert not fabric.regions


def test_holders_are_told_what_is_retained_for_a_cell_that_comes_later() -> None:
    ring = Ring(6, seed=2)
    giver = ring.owner("t")
    publisher = ring.client("p", ring.others(giver)[0])
    publisher.publish("t/kept", b"retained", 1, retain=True)
    ring.cluster.run(3)
    ring.fabric(giver).leave()
    ring.cluster.run(10)
    assert all(kept(ring, name) for name in ring.fabric(ring.owner("t")).replicas.holders)


def test_a_lost_disk_learns_from_its_holders_what_cells_it_had() -> None:
    """Who gave one of them to it is stopped for good, and all others take that one for the owner."""
    ring = Ring(7)
    giver = ring.owner("t")
    publisher = ring.client("p", ring.others(giver)[0])
    publisher.publish("t/kept", b"retained", 1, retain=True)
    ring.cluster.run(3)
    ring.fabric(giver).leave()
    ring.cluster.run(10)
    heir = ring.owner("t")
    cells = ring.fabric(heir).regions
    ring.cluster.crash(giver)
    ring.wipe(heir)
    ring.cluster.run(15)
    assert ring.owner("t") == heir
    assert ring.fabric(heir).regions == cells
    assert kept(ring, heir)


def test_a_cut_that_a_crash_prevents_leaves_nobody_without_an_owner() -> None:
    """Who keeps the book had heard that its owner is about to keep less."""
    ring = Ring(4, late=1)
    newcomer = ring.names[-1]
    ring.heard.clear()
    ring.cluster.start(newcomer)
    while not (said := ring.said(Replica)):
        ring.cluster.run(0.0005)
    owner, holder = said[0]
    assert ring.fabric(owner).membership.division is not None
    ring.cluster.crash(newcomer)
    ring.cluster.crash(owner)
    ring.cluster.run(0.5)
    ring.cluster.start(owner)
    ring.cluster.run(5)
    subscriber = ring.client("s", holder)
    subscriber.subscribe("#", qos=1)
    assert subscriber.session is not None
    answers: list[bool] = []
    broker = ring.cluster.sites[holder].broker
    broker.in_place(subscriber.session, [*subscriber.session.subscriptions], answers.append)
    ring.cluster.run(12)
    assert answers == [True]


def test_who_keeps_a_book_hears_of_a_cut_though_it_wants_nothing() -> None:
    """It gives the owner back what that has, should it lose its disk: no more than that."""
    ring = Ring(5, late=1)
    newcomer = ring.names[-1]
    ring.cluster.start(newcomer)
    ring.cluster.run(5)
    (giver,) = [name for name in ring.names if newcomer in {one.owner for one in ring.fabric(name).given.values()}]
    (cell,) = ring.fabric(giver).regions
    for holder in ring.fabric(giver).replicas.holders:
        assert holder not in ring.fabric(giver).interests
        assert cell in ring.fabric(holder).atlas.regions.values()


def test_two_brokers_alone_wait_for_nobody() -> None:
    ring = Ring(2)
    assert all(len(ring.fabric(name).replicas.holders) == 1 for name in ring.names)
    levels = [level for level in "tuvwxyz" if ring.owners(level) == ["b1"]]
    subscriber = ring.client("s", "b1")
    ring.cluster.crash("b2")
    answers: list[bool] = []
    subscriber.subscribe(f"{levels[0]}/#", qos=1)
    assert subscriber.session is not None
    ring.cluster.sites["b1"].broker.in_place(subscriber.session, [*subscriber.session.subscriptions], answers.append)
    ring.cluster.run(2)
    assert answers == [True]


def test_a_broker_without_a_cell_gives_back_what_it_remembers_to_all_who_lost_their_disks() -> None:
    ring = Ring(3)
    ring.fabric("b1").leave()
    ring.cluster.run(5)
    assert not ring.fabric("b1").is_member
    cells = {name: {one.prefix for one in ring.fabric(name).regions} for name in ("b2", "b3")}
    ring.cluster.crash("b2")
    ring.cluster.crash("b3")
    for name in cells:
        ring.cluster.start(name, keep_disk=False)
    ring.cluster.run(20)
    assert {name: {one.prefix for one in ring.fabric(name).regions} for name in cells} == cells


def test_who_is_given_a_cell_that_it_remembers_as_anothers_has_it_unless_that_one_claims_it() -> None:
    ring = Ring(3)
    owners = {name: ring.fabric(name).regions[0] for name in ring.names}
    region = owners["b2"]
    for name in ("b1", "b2"):
        ring.cluster.crash(name)
        ring.cluster.sites[name].node.disk.clear()
    fabric = ring.fabric("b3")
    for one in fabric.atlas.own:
        fabric.atlas.replace(one, (Region(one.cell, "b1", one.term + 1),))
    fabric.membership.on_ceded("b1", Ceded(Region(region.cell, "b3", region.term)))
    ring.cluster.run(5)
    assert [(one.prefix, one.term) for one in fabric.regions] == [(region.prefix, region.term + 1)]


def test_an_owner_that_speaks_is_asked_seldom_whether_it_is_there() -> None:
    """Three brokers keep one another's books, so that each hears of the others all the time."""
    ring = Ring(3)
    ring.heard.clear()
    ring.cluster.run(60)
    said = ring.said(Watched)
    looks = 60 / RING.watch_s
    assert looks / WATCHES_MAX * 6 * 0.8 <= len(said) <= looks * 6 / 2, "six pairs of an owner and a holder"


def test_an_owner_that_restarts_is_told_at_once_what_is_kept_of_its_book() -> None:
    """It grants nothing before it knows."""
    ring = Ring(3, watch_s=1000.0)
    ring.cluster.crash("b1")
    ring.cluster.start("b1")
    ring.cluster.run(2)
    assert ring.fabric("b1").replicas.safe == ring.fabric("b1").replicas.version
