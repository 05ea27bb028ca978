"""The claimed properties P1-P20 (spec mft-pubsub 2.11), on random trees.

P6 and P7 are the election's, in `topology/test_election`; P19 is `lab/test_convergence`; P20 is in `test_clients`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocols.fleet import on_air, wired
from tests.protocols.graphs import Edge, distances
from tests.protocols.overlay import Broker, Overlay, event, mft, recursive, topic

from godwit.lab.convergence.trials import MIXES, PROTOCOLS, Model, Protocol
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.messages import Bmig, Bsub, Btab, Fmig, Mig, Pub, Sub, Uns
from godwit.protocols.routing.mft import UNKNOWN, MftBroker
from godwit.protocols.routing.phoenix import PhoenixBroker
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules
from godwit.protocols.routing.simple import SimpleBroker
from godwit.sim.mobility import Waypoint
from godwit.sim.radio import Disc

claimed = pytest.mark.feature("mft-pubsub F25")
BOTH = pytest.mark.parametrize("rules", [THESIS, HARDENED], ids=["thesis", "hardened"])
FEWER = settings(max_examples=30)
_, PUBLISHED, _, _, FINAL = PROTOCOLS


@st.composite
def trees(draw: st.DrawFn, least: int = 2, most: int = 8) -> list[Edge]:
    count = draw(st.integers(least, most))
    return [(f"b{draw(st.integers(0, i - 1))}", f"b{i}") for i in range(1, count)]


def names(edges: list[Edge]) -> list[NodeId]:
    return sorted({name for edge in edges for name in edge})


def below(edges: list[Edge], top: NodeId) -> set[NodeId]:
    """A broker and everybody under it."""
    found = {top}
    for parent, child in edges:
        if parent in found:
            found.add(child)
    return found


def way(edges: list[Edge], start: NodeId, end: NodeId) -> list[NodeId]:
    """The brokers between two of a tree, both included."""
    toward = distances(edges, end)
    near = {edge for a, b in edges for edge in ((a, b), (b, a))}
    at, found = start, [start]
    while at != end:
        at = next(b for a, b in sorted(near) if a == at and toward[b] == toward[at] - 1)
        found.append(at)
    return found


STATIC = {
    "simple": SimpleBroker,
    "phoenix": PhoenixBroker,
    "recursive": recursive(THESIS),
    "mft": mft(THESIS),
    "hardened": mft(HARDENED),
}


def populated(broker: Broker, edges: list[Edge], seed: int) -> tuple[Overlay, dict[NodeId, set[str]]]:
    """Six subscribers of up to three of four topics each, somewhere; some have changed their minds."""
    dice, overlay, wanted = Random(seed), Overlay(broker, edges), {}
    for i in range(6):
        name, at = f"s{i}", dice.choice(names(edges))
        topics = dice.sample("abcd", dice.randint(1, 3))
        dropped = dice.sample(topics, dice.randint(0, len(topics) - 1))
        overlay.subscribe(name, at, *topics, t=1)
        overlay.say(name, at, *(Uns(topic(one), name, 10 + n) for n, one in enumerate(dropped)))
        wanted[name] = set(topics) - set(dropped)
    overlay.settle()
    return overlay, wanted


@claimed
@pytest.mark.feature("mft-pubsub F5", "mft-pubsub F3")
@pytest.mark.parametrize("broker", STATIC.values(), ids=STATIC)
@FEWER
@given(edges=trees(), seed=st.integers(0, 999))
def test_p1_an_event_crosses_each_link_once_and_reaches_exactly_who_wants_it(
    broker: Broker, edges: list[Edge], seed: int
) -> None:
    overlay, wanted = populated(broker, edges, seed)
    for n, one in enumerate("abcd"):
        overlay.publish(Random(n + seed).choice(names(edges)), event(one, n))
        crossed = Counter(frozenset((a, b)) for a, b, _ in overlay.settle())
        assert set(crossed.values()) <= {1}
    for name, topics in wanted.items():
        got = [e.attributes["topic"] for e in overlay.client(name).got]
        assert sorted(map(str, got)) == sorted(topics)


@claimed
@pytest.mark.parametrize("broker", STATIC.values(), ids=STATIC)
@FEWER
@given(edges=trees(), seed=st.integers(0, 999))
def test_p2_all_brokers_end_with_the_same_subscriptions(broker: Broker, edges: list[Edge], seed: int) -> None:
    overlay, wanted = populated(broker, edges, seed)
    for name in names(edges):
        core = overlay.broker(name)
        if isinstance(core, SimpleBroker):
            counts = Counter(one for topics in wanted.values() for one in topics)
            assert Counter(f for f, _ in core.routes.elements()) == Counter({topic(t): n for t, n in counts.items()})
        else:
            rows = {(row.wanted, row.subscriber) for row in core.routes}  # type: ignore[attr-defined]
            assert rows == {(topic(one), s) for s, topics in wanted.items() for one in topics}


@claimed
@pytest.mark.feature("mft-pubsub F6")
@given(trees(), st.integers(0, 999))
def test_p3_phoenix_a_move_visits_only_brokers_on_the_path(edges: list[Edge], seed: int) -> None:
    dice, overlay = Random(seed), Overlay(PhoenixBroker, edges)
    old, new = dice.choice(names(edges)), dice.choice(names(edges))
    overlay.subscribe("s", old, "f")
    overlay.settle()
    overlay.say("s", new, Mig("s", old))
    hops = [(a, b) for a, b, message in overlay.settle() if isinstance(message, Mig)]
    path = way(edges, new, old)
    assert hops == list(pairwise(path))
    overlay.publish(dice.choice(names(edges)), event("f"))
    overlay.settle()
    assert len(overlay.client("s").got) == 1


@claimed
@pytest.mark.feature("mft-pubsub F6")
@given(trees(), st.integers(0, 6), st.integers(0, 999))
def test_p4_phoenix_exactly_the_newer_events_are_replayed(edges: list[Edge], received: int, seed: int) -> None:
    dice, overlay = Random(seed), Overlay(PhoenixBroker, edges)
    old, new = dice.choice(names(edges)), dice.choice(names(edges))
    overlay.subscribe("s", old, "f")
    overlay.settle()
    for n in range(6):
        overlay.publish(old, event("f", n))
        overlay.settle(1)
    stamps = [message.stamp for message in overlay.client("s").messages if isinstance(message, Pub)]
    overlay.client("s").got.clear()
    overlay.say("s", new, Mig("s", old, last=stamps[received - 1] if received else None))
    overlay.settle()
    assert [e.sequence for e in overlay.client("s").got] == list(range(received, 6))


def histories(protocol: Protocol, check: Callable[[Model], None], seeds: range) -> None:
    """Random concurrent changes, looked at after every single message."""
    for seed in seeds:
        model = Model(protocol, seed)
        for _ in range(12):
            model.change(model.dice.choice(MIXES[-1].operations))
            for _ in range(model.dice.randrange(20)):
                model.deliver_one()
                check(model)


@claimed
@pytest.mark.feature("mft-pubsub F22")
def test_p5_all_entries_of_a_subscriber_share_one_next_hop_at_every_moment() -> None:
    def check(model: Model) -> None:
        for router in model.routers.values():
            hops: dict[NodeId, set[NodeId]] = {}
            for row in router.routes:
                hops.setdefault(row.subscriber, set()).add(row.hop)
            assert all(len(of_one) == 1 for of_one in hops.values())

    histories(FINAL, check, range(30))


def moved(overlay: Overlay, edges: list[Edge], dice: Random) -> tuple[NodeId, NodeId, NodeId] | None:
    """Somebody leaves its parent for a broker elsewhere: (who, from where, to where)."""
    parents = {child: parent for parent, child in edges}
    choices = [
        (mover, parents[mover], new)
        for mover in parents
        for new in names(edges)
        if new not in below(edges, mover) and new != parents[mover]
    ]
    if not choices:
        return None
    mover, old, new = dice.choice(choices)
    overlay.cut(old, mover)
    overlay.move(mover, new)
    return mover, old, new


def one_each(overlay: Overlay, edges: list[Edge], *, numbered: bool) -> None:
    for name in names(edges):
        overlay.subscribe(name.replace("b", "s"), name, name, t=1 if numbered else 0)
    overlay.settle()


@claimed
@pytest.mark.feature("mft-pubsub F7", "mft-pubsub F36")
@given(trees(3), st.integers(0, 999))
def test_p8_forced_migrations_reach_all_below_the_migrant_and_cost_what_the_formula_says(
    edges: list[Edge], seed: int
) -> None:
    overlay = Overlay(recursive(THESIS), edges)
    one_each(overlay, edges, numbered=False)
    move = moved(overlay, edges, Random(seed))
    if move is None:
        return
    mover, old, new = move
    log = overlay.settle()
    under = below(edges, mover)
    assert {b for _, b, message in log if isinstance(message, Fmig)} == under - {mover}
    relays = len(way(edges, new, old)) - 1
    depth = distances([edge for edge in edges if set(edge) <= under] or [(mover, mover)], mover)
    cost = sum(1 + 1 + depth[x] + relays + (1 if x != mover else 0) for x in under)
    assert len(log) == cost


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F10", "mft-pubsub F36")
@given(edges=trees(3), seed=st.integers(0, 999))
def test_p9_a_migration_without_divergence_is_one_plus_l_messages_along_one_path(
    rules: Rules, edges: list[Edge], seed: int
) -> None:
    overlay = Overlay(mft(rules), edges)
    one_each(overlay, edges, numbered=True)
    move = moved(overlay, edges, Random(seed))
    if move is None:
        return
    mover, old, new = move
    log = overlay.settle()
    assert all(isinstance(message, Bmig) for _, _, message in log)
    path = [mover, *way(edges, new, old)]
    assert [(a, b) for a, b, _ in log] == list(pairwise(path))
    overlay.at = {name.replace("b", "s"): name for name in names(edges)}
    assert all(overlay.astray(client) == set() for client in overlay.at)


@claimed
@BOTH
def test_p9_mft_never_forces_a_migration_nor_sends_a_table(rules: Rules) -> None:
    seen: set[type[Message]] = set()

    def check(model: Model) -> None:
        seen.update(type(message) for queue in model.queues.values() for message in queue)

    histories(PUBLISHED if rules == THESIS else FINAL, check, range(15))
    assert Bmig in seen
    assert not seen & {Btab, Fmig}


client_messages = st.one_of(
    st.builds(Sub, st.sampled_from([topic("f"), topic("g")]), st.just("s"), st.integers(1, 5), st.integers(0, 5)),
    st.builds(Uns, st.sampled_from([topic("f"), topic("g")]), st.just("s"), st.integers(1, 5), st.integers(0, 5)),
    st.builds(Mig, st.just("s"), st.just(None), st.integers(1, 5), st.integers(0, 5)),
    st.builds(
        Bsub, st.just("s"), st.just((topic("f"),)), st.integers(1, 5), st.integers(0, 3), st.integers(0, 3),
        st.just("b9"), st.integers(1, 1000),
    ),
)  # fmt: skip


def state(broker: MftBroker) -> tuple[object, ...]:
    return (dict(broker.known), sorted((row.subscriber, row.hop, str(row.wanted)) for row in broker.routes))


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F8")
@given(messages=st.lists(st.tuples(st.sampled_from(["b1", "b2", "b3"]), client_messages), max_size=12))
def test_p10_numbers_never_decrease_and_what_is_not_newer_changes_nothing(
    rules: Rules, messages: list[tuple[NodeId, Sub | Uns | Mig | Bsub]]
) -> None:
    overlay = Overlay(mft(rules), [("b0", "b1"), ("b0", "b2"), ("b0", "b3")])
    broker = overlay.mft("b0")
    for sender, message in messages:
        known, before = broker.known.get("s", UNKNOWN), state(broker)
        said = (message.t, message.hs if isinstance(message, Bsub) else message.h)
        broker.receive(sender, message)
        forwarded = [m for a, _, m in overlay.medium.log if a == "b0" and type(m) is type(message)]
        overlay.medium.log.clear()
        assert broker.known.get("s", UNKNOWN)[0] >= known[0]
        if not (said[0] > known[0] or (said[0] == known[0] and said[1] < known[1])):
            assert state(broker) == before
            assert forwarded == []


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F8")
def test_p11_at_most_one_broker_claims_to_have_a_subscriber_under_one_number(rules: Rules) -> None:
    def check(model: Model) -> None:
        holders = Counter(
            (subscriber, t)
            for router in model.routers.values()
            if isinstance(router, MftBroker)
            for subscriber, (t, h) in router.known.items()
            if h == 1
        )
        assert set(holders.values()) <= {1}

    histories(PUBLISHED if rules == THESIS else FINAL, check, range(25))


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F10")
@given(edges=trees(4), seed=st.integers(0, 999))
def test_p12_a_claim_keeps_its_distance_while_relayed_and_ends_where_the_subscriber_is(
    rules: Rules, edges: list[Edge], seed: int
) -> None:
    overlay, dice = Overlay(mft(rules), edges), Random(seed)
    one_each(overlay, edges, numbered=True)
    now = list(edges)
    for _ in range(3):
        move = moved(overlay, now, dice)
        if move is None:
            return
        mover, old, new = move
        now = [edge for edge in now if edge != (old, mover)]
        now = sorted([*now, (new, mover)], key=lambda edge: distances(now, "b0").get(edge[0], 99))
        log = [(a, b, m) for a, b, m in overlay.settle() if isinstance(m, Bmig)]
        first = {claim.subscriber: claim.h for claim in log[0][2].below}
        for relayer, _, message in log[1:]:
            for claim in message.below:
                assert claim.h == first[claim.subscriber]
                assert claim.subscriber != relayer.replace("b", "s"), "its own broker passes no claim on"


@claimed
@FEWER
@pytest.mark.feature("mft-pubsub F11")
@given(trees(4), st.integers(0, 999))
def test_p13_a_false_claim_is_corrected_at_every_broker(edges: list[Edge], seed: int) -> None:
    """As in example B: a broker leaves its cut-off parent, and the parent comes back still claiming it."""
    deep = [(p, c) for p, c in edges if p != "b0"]
    if not deep:
        return
    parent, child = Random(seed).choice(deep)
    overlay = Overlay(mft(HARDENED), edges)
    one_each(overlay, edges, numbered=True)
    above = next(p for p, c in edges if c == parent)
    overlay.cut(above, parent)
    overlay.cut(parent, child)
    outside = [name for name in names(edges) if name not in below(edges, parent)]
    overlay.move(child, Random(seed).choice(outside))
    overlay.settle()
    overlay.move(parent, Random(seed + 1).choice(outside))
    overlay.settle()
    overlay.at = {name.replace("b", "s"): name for name in names(edges)}
    assert all(overlay.astray(client) == set() for client in overlay.at)


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F11", "mft-pubsub F20")
@pytest.mark.parametrize("departed", ["b2", "b4"])
def test_p14_a_phantom_ends_whichever_side_joins_the_other(rules: Rules, departed: NodeId) -> None:
    overlay = Overlay(mft(rules), [("b1", "b2"), ("b1", "b3"), ("b3", "b4")])
    subscriber = overlay.place("s", departed, "f")
    overlay.cut("b1", "b3")
    subscriber.unsubscribe(topic("f"))
    overlay.settle()
    assert len(overlay.believed("s")) == 2
    overlay.move("b3", "b2")
    overlay.settle()
    assert overlay.believed("s") == {frozenset()}


@claimed
@BOTH
@FEWER
@pytest.mark.feature("mft-pubsub F13")
@given(edges=trees(3), seed=st.integers(0, 999))
def test_p15_what_was_stored_arrives_once_there_is_a_way(rules: Rules, edges: list[Edge], seed: int) -> None:
    dice, overlay = Random(seed), Overlay(mft(rules, acknowledge=True), edges)
    overlay.place("s", dice.choice(names(edges)), "f")
    parent, child = dice.choice(edges)
    overlay.cut(parent, child)
    for n in range(5):
        overlay.publish(dice.choice(names(edges)), event("f", n))
    overlay.settle(0.9)
    outside = [name for name in names(edges) if name not in below(edges, child)]
    overlay.move(child, dice.choice(outside))
    overlay.settle()
    assert sorted(overlay.got("s")) == [("p1", n) for n in range(5)]
    assert all(not overlay.router(name).queues for name in names(edges))


LINE = [("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b1", "s1"), ("b4", "s4"), ("b1", "p1"), ("b4", "p4")]


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F20")
def test_p16_each_side_serves_its_own_while_split_and_all_is_one_again_after(rules: Rules) -> None:
    fleet = wired(LINE, rules=rules)
    fleet.run(8)
    fleet.faults.partition(["b1", "b2"], ["b3", "b4"])
    fleet.run(10)
    fleet.publish("p1", "s1", 1)
    fleet.publish("p4", "s4", 2)
    fleet.publish("p1", "s4", 3)
    fleet.publish("p4", "s1", 4)
    fleet.run(5)
    assert (fleet.got("s1"), fleet.got("s4")) == ([1], [2])
    fleet.faults.merge(["b1", "b2"], ["b3", "b4"])
    fleet.run(15)
    assert (sorted(fleet.got("s1")), sorted(fleet.got("s4"))) == ([1, 4], [2, 3])


@claimed
@BOTH
@pytest.mark.feature("mft-pubsub F21", "mft-pubsub F4")
@pytest.mark.parametrize("down_s", [0.5, 10.0])
def test_p17_a_broker_that_restarts_joins_empty_and_serves_again(rules: Rules, down_s: float) -> None:
    edges = [("b1", "b2"), ("b2", "b3"), ("b1", "b4"), ("b4", "b3"), ("b3", "s"), ("b1", "p")]
    fleet = wired(edges, rules=rules)
    fleet.run(8)
    assert fleet.broker("b2").known
    fleet.faults.crash("b2")
    fleet.run(down_s)
    fleet.faults.restart("b2")
    assert not fleet.broker("b2").known
    fleet.run(15)
    assert "s" in fleet.broker("b2").known
    fleet.publish("p", "s", 1)
    fleet.run(10)
    assert fleet.got("s") == [1]


@claimed
@pytest.mark.feature("mft-pubsub F21")
def test_p17_the_broker_of_a_subscriber_may_restart_before_the_subscriber_notices() -> None:
    fleet = wired([("b1", "b2"), ("b2", "s"), ("b1", "p")])
    fleet.run(8)
    fleet.faults.crash("b2")
    fleet.faults.restart("b2")
    fleet.run(15)
    fleet.publish("p", "s", 1)
    fleet.run(10)
    assert fleet.got("s") == [1]


@claimed
@pytest.mark.feature("mft-pubsub F36")
def test_p18_heartbeats_and_the_cost_of_a_migration_do_not_grow_with_the_network() -> None:
    """What grows are the floods of filters: every broker hears of every subscriber."""
    heartbeats, per_migration = [], []
    for size in (6, 12, 24):
        side = (2 * size * 200) ** 0.5
        walk = Waypoint(width_m=side, height_m=side, speed_mps=(4, 4))
        fleet = on_air({f"{role}{i:02d}": walk for i in range(size) for role in "bs"}, range_m=46, rules=THESIS)
        fleet.run(40)
        assert isinstance(fleet.world.medium, Disc)
        sent: Counter[str] = Counter()
        for (_, kind), count in fleet.world.medium.sent.items():
            sent[kind] += count
        heartbeats.append(sent["Heartbeat"] / size / 40)
        per_migration.append(sent["Bmig"] / fleet.trace.counts["migrated"])
    assert heartbeats == pytest.approx([1.0] * 3, abs=0.1)
    assert max(per_migration) < 1.5


@claimed
@pytest.mark.feature("mft-pubsub F8")
def test_a_copy_that_took_a_longer_way_is_dropped() -> None:
    """The thesis' own duplicate test: a broker migrates while a SUB still spreads, and gets it a second time."""
    overlay = Overlay(mft(THESIS), [("b1", "b2"), ("b2", "b3"), ("b1", "b4")])
    broker = overlay.mft("b3")
    broker.receive("b2", Sub(topic("f"), "s", 1, 1))
    overlay.move("b3", "b4")
    broker.receive("b4", Sub(topic("f"), "s", 1, 4))
    assert broker.known["s"] == (1, 2)


@claimed
@pytest.mark.feature("mft-pubsub F8", "mft-pubsub F10")
def test_hop_counts_are_advisory_and_stale_off_the_path() -> None:
    """After example A, b6 still believes that s5 is five hops away although it is four."""
    edges = [("b1", "b2"), ("b1", "b3"), ("b2", "b4"), ("b2", "b5"), ("b3", "b6"), ("b3", "b7")]
    overlay = Overlay(mft(THESIS), edges)
    for i in range(1, 8):
        overlay.subscribe(f"s{i}", f"b{i}", f"f{i}", t=1)
    overlay.settle()
    overlay.cut("b1", "b3")
    overlay.move("b3", "b2")
    overlay.settle()
    assert overlay.mft("b6").known["s5"] == (1, 5)
