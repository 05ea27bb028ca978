"""Cells that nobody remembers are taken, given to whoever stands there, and given up to an owner that turns up."""

from __future__ import annotations

from tests.protocols.broker.fabric.ring.test_standins import payloads
from tests.protocols.broker.fabric.ring.worlds import Ring

from godwit.protocols.broker.fabric.ring.atlas import is_taken
from godwit.protocols.broker.messages import Owned, Region
from godwit.protocols.host import NodeId

ORPHANED_S = 30.0


def forgotten() -> tuple[Ring, NodeId]:
    """All have lost their disks but one that had left, and that one forgets whatever is not the first broker's."""
    ring = Ring(4, orphaned_s=ORPHANED_S)
    ring.fabric("b4").leave()
    ring.cluster.run(10)
    assert not ring.fabric("b4").regions
    for name in ring.names[:3]:
        ring.cluster.crash(name)
        ring.cluster.sites[name].node.disk.clear()
    atlas = ring.fabric("b4").atlas
    for prefix in [one.prefix for one in atlas.regions.values() if one.owner != "b1"]:
        atlas._drop(prefix)
    for name in ring.names[:3]:
        ring.cluster.start(name)
    return ring, "b1"


def prefixes(ring: Ring) -> list[str]:
    return sorted(one.prefix for name in ring.names for one in ring.fabric(name).regions)


def test_somebody_matches_again_where_all_who_knew_have_lost_their_disks() -> None:
    ring, survivor = forgotten()
    ring.cluster.run(15)
    assert [name for name in ring.names if ring.fabric(name).regions] == [survivor]
    ring.cluster.run(ORPHANED_S + 10)
    assert all(ring.fabric(name).regions for name in ring.names[:3]), "each has a cell again, and stands in it"
    subscriber, publisher = ring.client("s", "b2"), ring.client("p", "b3")
    for level in "abcdefgh":
        subscriber.subscribe(f"{level}/#", qos=2)
    ring.cluster.run(5)
    for level in "abcdefgh":
        publisher.publish(f"{level}/x", level.encode(), 2)
    ring.cluster.run(5)
    assert sorted(payloads(subscriber)) == [level.encode() for level in "abcdefgh"]


def test_who_has_taken_a_cell_gives_way_to_an_owner_of_whom_it_hears_later() -> None:
    ring, survivor = forgotten()
    for name in ("b2", "b3"):
        ring.cluster.crash(name)
    ring.cluster.run(ORPHANED_S + 15)
    taken = [one for one in ring.fabric(survivor).regions if is_taken(one)]
    assert taken
    owner = Region(taken[0].cell, "b2", len(taken[0].prefix) + 1)
    ring.fabric("b4").send((survivor,), Owned(0, (owner,)))
    ring.cluster.run(2)
    assert ring.fabric(survivor).atlas.regions[owner.prefix] == owner
    assert ring.fabric(survivor).counts.refused == 0


def test_a_broker_that_kept_its_disk_takes_nothing() -> None:
    ring = Ring(3, orphaned_s=5.0)
    before = prefixes(ring)
    for name in ("b1", "b2"):
        atlas = ring.fabric(name).atlas
        atlas._drop(next(prefix for prefix, one in atlas.regions.items() if one.owner == "b3"))
    ring.cluster.crash("b3")
    ring.cluster.run(30)
    ring.cluster.start("b3")
    ring.cluster.run(30)
    assert prefixes(ring) == before
    assert not any(is_taken(one) for name in ring.names for one in ring.fabric(name).regions)
