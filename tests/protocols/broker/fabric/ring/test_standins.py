"""Who stands in for a broker that is silent, and who may not."""

from __future__ import annotations

import pytest
from tests.protocols.broker.fabric.ring.worlds import Ring

from godwit.protocols.broker.messages import Divided, Dividing, Owned, Region, Replica
from godwit.protocols.gathering.areas import Anywhere
from godwit.protocols.gathering.space import cut_between
from godwit.protocols.host import NodeId


def payloads(client: object) -> list[bytes]:
    return [one.publication.payload for one in client.got]  # type: ignore[attr-defined]


class Case:
    """A subscriber and a publisher at brokers that have nothing to do with the cell of `t`."""

    def __init__(self, count: int = 5) -> None:
        self.ring = ring = Ring(count)
        self.matching = ring.owner("t")
        self.holders = ring.fabric(self.matching).replicas.holders
        self.here, self.there = ring.others(self.matching, *self.holders)[:2]
        self.subscriber, self.publisher = ring.client("s", self.here), ring.client("p", self.there)
        self.subscriber.subscribe("t/#", qos=2)
        ring.cluster.run(3)

    def owner(self) -> list[NodeId]:
        return self.ring.owners("t")


def test_a_holder_stands_in_for_a_broker_that_is_silent_and_gives_the_cell_back() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    ring.cluster.crash(case.matching)
    run(10)
    assert case.owner() == [case.holders[0]]
    case.publisher.publish("t/x", b"1", 2)
    run(5)
    assert payloads(case.subscriber) == [b"1"], "matched by the stand-in, with the book"
    ring.cluster.start(case.matching)
    run(15)
    assert case.owner() == [case.matching]
    case.publisher.publish("t/x", b"2", 2)
    run(5)
    assert payloads(case.subscriber) == [b"1", b"2"]


def test_what_was_sent_to_the_silent_owner_is_not_sent_to_the_stand_in_too() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    ring.cluster.crash(case.matching)
    case.publisher.publish("t/x", b"1", 2)
    run(12)
    assert case.owner() == [case.holders[0]]
    case.publisher.publish("t/x", b"2", 2)
    run(10)
    assert payloads(case.subscriber) == [], "what comes after it keeps its place in the order"
    ring.cluster.start(case.matching)
    run(20)
    assert payloads(case.subscriber) == [b"1", b"2"]


def test_one_holder_alone_refuses_and_the_publication_is_kept() -> None:
    case = Case(6)
    ring, run = case.ring, case.ring.cluster.run
    ring.cluster.crash(case.matching)
    ring.cluster.crash(case.holders[1])
    case.publisher.publish("t/x", b"1", 2)
    run(60)
    assert case.owner() == []
    assert case.publisher.accepts
    ring.cluster.start(case.matching)
    run(15)
    assert payloads(case.subscriber) == [b"1"]


def test_a_holder_with_an_old_replica_is_told_that_it_does_not_count() -> None:
    """It was away when the owner replaced it; then the owner fails, and it comes back."""
    case = Case(6)
    ring, run = case.ring, case.ring.cluster.run
    old, stays = case.holders
    ring.cluster.crash(old)
    run(20)
    new = next(name for name in ring.fabric(case.matching).replicas.holders if name != stays)
    late = ring.client("late", case.there)
    late.subscribe("t/#", qos=2)
    run(3)
    ring.cluster.crash(case.matching)
    ring.cluster.crash(new)
    ring.cluster.start(old)
    run(40)
    assert case.owner() == [], "the two that are there do not know all that was granted"
    ring.cluster.start(new)
    run(30)
    assert case.owner() in ([stays], [new])
    case.publisher.publish("t/x", b"1", 2)
    run(70)
    assert payloads(late) == [b"1"]


def test_a_session_that_moves_while_somebody_stands_in_gets_all_once_and_in_order() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    publishers = [case.publisher, ring.client("q", case.holders[1])]
    places = [case.holders[0], case.there, case.here, case.holders[1]]
    said: dict[str, list[bytes]] = {"p": [], "q": []}
    for number in range(60):
        if number == 10:
            ring.cluster.crash(case.matching)
        if number == 45:
            ring.cluster.start(case.matching)
        if number % 7 == 3:
            case.subscriber.drop().connect(places[number // 7 % 4])
        publisher = publishers[number % 2]
        payload = b"%s %d" % (publisher.name.encode(), number)
        publisher.publish("t/x", payload, 2)
        said[publisher.name].append(payload)
        run(0.4)
    run(90)
    for name, wanted in said.items():
        assert [one for one in payloads(case.subscriber) if one.startswith(name.encode())] == wanted


@pytest.mark.parametrize("came_from", ["a broker in the book", "the silent owner"])
@pytest.mark.parametrize("seed", [2, 6])
def test_an_owner_that_has_not_heard_who_stands_in_is_told_what_a_newcomer_wants_before_it_turns(
    seed: int, came_from: str
) -> None:
    """What it matches once it has turned is not for the place before. The newcomer knows it as no owner of anything,
    and has never told it what it wants."""
    ring = Ring(5, late=1, seed=seed)
    run, newcomer, matching = ring.cluster.run, ring.names[-1], ring.owner("t")
    holders = ring.fabric(matching).replicas.holders
    old = matching if came_from == "the silent owner" else ring.others(matching, *holders)[0]
    subscriber, publisher = ring.client("s", old), ring.client("p", holders[0])
    subscriber.subscribe("t/#", qos=2)
    run(3)
    ring.cluster.crash(matching)
    publisher.publish("t/x", b"1", 2)
    run(12)
    assert ring.owners("t") == [holders[0]]
    ring.cluster.start(newcomer)
    run(10)
    another = ring.client("another", newcomer)
    run(12)  # a home of it may be away
    another.subscribe("t/x", qos=1)
    run(5)
    if old != matching:
        subscriber.drop().connect(newcomer)
        run(5)
    ring.cluster.start(matching)
    for name in ring.others(matching, newcomer):
        ring.cluster.cables.stall(matching, name, ring.cluster.engine.now + 2)
    if old == matching:
        subscriber.drop().connect(newcomer)
    run(60)
    assert payloads(subscriber) == [b"1"]
    assert ring.fabric(newcomer).statements.late_of(ring.names) == (), "it has heard by now, and has said so"


def test_who_crashed_before_a_cut_keeps_the_half_in_which_nobody_stands_in_for_it() -> None:
    """Its holders had heard in which half they may stand in for it, and nobody that the other was given away."""
    ring = Ring(4, late=1)
    run, newcomer = ring.cluster.run, ring.names[-1]
    ring.heard.clear()
    ring.cluster.start(newcomer)
    while len(said := ring.said(Replica)) < 2:
        run(0.0005)
    owner, holders = said[0][0], [holder for _, holder in said]
    (whole,) = ring.fabric(owner).atlas.own
    ring.cluster.crash(owner)
    run(15)
    (half,) = [one for name in holders for one in ring.fabric(name).regions if one.prefix.startswith(whole.prefix)]
    assert len(half.prefix) == len(whole.prefix) + 1, "one of them stands in there"
    for holder in holders:
        assert ring.fabric(holder).atlas.covers(Anywhere()), "the other half is the silent owner's"
    ring.cluster.start(owner)
    run(30)
    assert ring.fabric(newcomer).regions, "it was let in where it stands"
    assert not ring.fabric(owner).replicas.was_lost, "it knew by itself what it has"
    for level in (chr(at) for at in range(ord("a"), ord("z"))):
        assert len(ring.owners(level)) == 1
    assert not any(ring.fabric(name).counts.refused for name in ring.names)


def test_a_broker_leaves_in_order_and_serves_its_clients_on() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    case.publisher.publish("t/kept", b"retained", 1, retain=True)
    local = ring.client("local", case.matching)
    local.subscribe("t/#", qos=2)
    run(3)
    ring.fabric(case.matching).leave()
    run(10)
    assert ring.fabric(case.matching).regions == []
    (heir,) = case.owner()
    assert heir != case.matching
    mine = ring.client("mine", case.matching)
    mine.publish("t/x", b"1", 2)
    run(5)
    assert b"1" in payloads(case.subscriber)
    assert b"1" in payloads(local)
    ring.cluster.crash(case.matching)
    ring.cluster.start(case.matching)
    run(10)
    assert ring.fabric(case.matching).regions == [], "it does not come in again"
    newcomer = ring.client("n", case.there)
    newcomer.subscribe("t/kept", qos=1)
    run(5)
    assert payloads(newcomer) == [b"retained"]


def test_a_broker_that_has_left_and_is_stopped_for_good_keeps_no_newcomer_out() -> None:
    ring = Ring(4, late=1)
    run = ring.cluster.run
    guest = ring.client("guest", "b2")
    for level in "abcdefgh":
        guest.subscribe(f"{level}/#", qos=1)
    run(5)
    guest.drop(expiry_s=0.0)
    run(5)
    ring.fabric("b2").leave()
    run(10)
    assert not ring.fabric("b2").regions
    assert any("b2" in ring.fabric(name).interests for name in ("b1", "b3", "b4")), "books know that it wants nothing"
    ring.cluster.crash("b2")
    ring.cluster.start("b5")
    run(15)
    assert ring.fabric("b5").regions


def test_who_claims_a_cell_of_a_broker_that_is_there_is_refused_counted_and_named() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    liar = case.there
    fabric = ring.fabric(case.matching)
    before, mine = fabric.counts.refused, fabric.regions
    lie = Owned(0, (Region(mine[0].cell, liar, mine[0].term + 7),))
    ring.fabric(liar).send((case.matching,), lie)
    run(2)
    assert fabric.regions == mine
    assert fabric.counts.refused == before + 1
    case.publisher.publish("t/x", b"1", 2)
    run(3)
    assert payloads(case.subscriber) == [b"1"]


def test_nobody_agrees_that_somebody_stands_in_for_a_broker_that_it_hears() -> None:
    case = Case()
    ring, run = case.ring, case.ring.cluster.run
    hearer, liar = case.holders[0], case.there
    region = ring.fabric(case.matching).regions[0]
    claim = Region(region.cell, liar, region.term + 1)
    ring.fabric(liar).send((hearer,), Dividing(7, claim, case.matching))
    run(5)
    assert liar not in {one.owner for one in ring.fabric(hearer).membership.heirs.values()}


@pytest.mark.parametrize("is_back", [False, True])
def test_a_holder_takes_from_the_owner_again_once_the_other_says_that_it_stands_in(is_back: bool) -> None:
    """Else an owner that came back granted nothing any more: with the cell that was left, or with the same one before
    the holder had heard that it was ever another's."""
    case = Case(6)
    ring, first, second = case.ring, *case.holders
    fabric = ring.fabric(second)
    held = fabric.standins.held[case.matching]
    (region,) = held.regions
    other = fabric.regions[0]
    lost, assumed = Region(other.cell, case.matching, other.term + 1), Region(other.cell, first, other.term + 2)
    held.regions = (lost, region)
    held.fenced_by = first
    fabric.atlas.put(Region(other.cell, case.matching, other.term + 3) if is_back else assumed)
    fabric.membership.on_divided(case.there, Divided(7, (assumed,), case.matching))
    assert held.fenced_by == first, "only who has asked for the replica"
    fabric.membership.on_divided(first, Divided(7, (assumed,), case.matching))
    assert list(held.regions) == ([lost, region] if is_back else [region])
    assert held.fenced_by == ""


@pytest.mark.parametrize("cuts", [0, 1])
def test_a_holder_keeps_nothing_of_a_cell_in_which_another_has_stood_in(cuts: int) -> None:
    """The owner has yet to hear of that, and would give a part of the cell away once it is confirmed."""
    case = Case()
    ring, first, second = case.ring, *case.holders
    standins, atlas = ring.fabric(second).standins, ring.fabric(second).atlas
    (region,) = standins.held[case.matching].regions
    atlas.put(Region(region.cell, first, region.term + 1))
    standins.review()
    half = region.cell.append(cut_between((0.0, 0.0), (1.0, 0.0)), "0")
    left = Region(half if cuts else region.cell, case.matching, region.term + cuts)
    standins.on_replica(case.matching, Replica(case.matching, 10**15, (left,), case.holders, ()))
    assert case.matching not in standins.held
    assert atlas.regions[region.prefix].owner == first
