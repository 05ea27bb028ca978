"""What brokers of a routing network say to one another, message for message; and whole networks against flooding."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from tests.protocols.routing.covering.lines import Row, event

from godwit.filters.filters import EVERYTHING
from godwit.lab.relocation.networks import VALUES, WIRINGS, Network, random_tree, routed, wants
from godwit.protocols.host import LocalError, RemoteError
from godwit.protocols.routing.covering.broker import TypeBroker
from godwit.protocols.routing.covering.messages import Published
from godwit.protocols.routing.covering.scopes import Advertised, Everywhere, Hierarchical, Rendezvous
from godwit.protocols.routing.covering.strategies import Strategy
from godwit.protocols.topology.graphs import adjacent, next_hops

TREES = range(6)
"""`godwit lab relocation --trials` runs hundreds of each."""


def everywhere(names: str = "abc") -> Row:
    return Row(names, lambda name, graph: Everywhere(graph[name]))


def advertised(names: str = "abc") -> Row:
    return Row(names, lambda name, graph: Advertised(graph[name]))


@pytest.mark.feature("content-routing F17")
def test_subscriptions_go_everywhere_and_events_back_along_them() -> None:
    row = everywhere()
    row["a"].subscribe("s", wants(2, 6))
    assert row.rest() == ["a>b +sub 2-6", "b>c +sub 2-6"]
    row["c"].publish("p", event(1, 4))
    row["c"].publish("p", event(2, 9))
    assert row.rest() == ["c>b pub 1", "b>a pub 1"]
    assert row.got == [("s", 1)]


@pytest.mark.feature("content-routing F17")
def test_what_is_covered_is_not_told_and_comes_with_the_withdrawal() -> None:
    row = everywhere()
    row["a"].subscribe("s", wants(0, 9))
    row["a"].subscribe("t", wants(2, 3))
    row["b"].subscribe("u", wants(4, 5))
    assert row.rest() == ["a>b +sub 0-9", "b>a +sub 4-5", "b>c +sub 4-5", "b>c +sub 0-9"]
    row["a"].unsubscribe("s", wants(0, 9))
    assert row.rest() == ["a>b -sub 0-9 +sub 2-3", "b>c -sub 0-9 +sub 4-5 +sub 2-3"]


@pytest.mark.feature("content-routing F18")
def test_subscriptions_go_only_towards_adverts_that_they_meet() -> None:
    row = advertised("abcd")
    row["a"].advertise("p", wants(0, 5))
    assert row.rest() == ["a>b +adv 0-5", "b>c +adv 0-5", "c>d +adv 0-5"]
    row["b"].subscribe("s", wants(4, 9))
    row["b"].subscribe("t", wants(7, 9))
    assert row.rest() == ["b>a +sub 4-9"]
    row["d"].advertise("q", wants(8, 9))
    assert row.rest() == ["d>c +adv 8-9", "c>b +adv 8-9", "b>a +adv 8-9", "b>c +sub 4-9", "c>d +sub 4-9"]


@pytest.mark.feature("content-routing F18")
def test_with_the_last_advert_goes_what_was_wanted_of_it() -> None:
    row = advertised()
    row["a"].advertise("p", wants(0, 9))
    row["a"].advertise("p", wants(2, 3))
    row["c"].subscribe("s", wants(1, 4))
    row["c"].subscribe("t", wants(6, 7))
    row.rest()
    row["a"].unadvertise("p", wants(0, 9))
    assert row.rest() == [
        "a>b -adv 0-9 +adv 2-3",
        "b>a -sub 6-7",
        "b>c -adv 0-9 +adv 2-3",
        "c>b -sub 6-7",
    ]
    row["a"].publish("p", event(1, 3))
    row.rest()
    assert row.got == [("s", 1)]


@pytest.mark.feature("content-routing F18")
def test_nothing_is_lost_while_an_advert_gives_way_to_what_it_covered() -> None:
    """Dropped first and asked for again, the subscription would be missing for a round trip."""
    row = advertised()
    row["a"].advertise("p", wants(0, 9))
    row["a"].advertise("p", wants(2, 3))
    row["c"].subscribe("s", wants(1, 4))
    row.rest()
    row["a"].unadvertise("p", wants(0, 9))
    for number in range(8):
        row["a"].publish("p", event(number, 3))
        row.run(0.4)
    row.rest()
    assert row.got == [("s", number) for number in range(8)]


@pytest.mark.feature("content-routing F19")
def test_in_a_hierarchy_events_go_up_always_and_down_where_they_are_wanted() -> None:
    masters = {"a": None, "b": "a", "c": "a", "d": "c"}
    row = Row("abcd", lambda name, graph: Hierarchical(masters[name]), edges=["ab", "ac", "cd"])
    row["d"].subscribe("s", wants(0, 5))
    assert row.rest() == ["d>c +sub 0-5", "c>a +sub 0-5"]
    row["b"].publish("p", event(1, 3))
    row["b"].publish("p", event(2, 8))
    assert row.rest() == ["b>a pub 1", "b>a pub 2", "a>c pub 1", "c>d pub 1"]


def test_a_stranger_is_refused_and_changes_nothing() -> None:
    row = everywhere()
    with pytest.raises(RemoteError, match="c is no neighbor of a"):
        row["a"].receive("c", Published(event(1, 1)))
    with pytest.raises(LocalError, match="has not said it"):
        row["a"].unsubscribe("s", wants(0, 1))


@pytest.mark.parametrize(
    "wiring",
    [
        pytest.param(name, id=name, marks=pytest.mark.feature(*marks))
        for name, marks in {
            "hierarchy": ["content-routing F19"],
            "hierarchy, merging": ["content-routing F19"],
            "hierarchy, root sets replaced": ["content-routing F19"],
            "rendezvous, types and attributes": ["content-routing F21"],
            "rendezvous, types, turned at the point": ["content-routing F21"],
            "rendezvous, types, served on the way": ["content-routing F21"],
            "subscriptions, covering, forest": ["content-routing F17"],
            "subscriptions, covering, approximate forest": ["content-routing F17"],
        }.items()
    ],
)
def test_networks_deliver_what_flooding_would_while_all_changes_and_afterwards(wiring: str) -> None:
    for seed in TREES:
        assert not routed(WIRINGS[wiring], seed).bad, seed


@pytest.mark.parametrize("strategy", [Strategy.SIMPLE, Strategy.IDENTITY, Strategy.COVERING, Strategy.MERGING])
@pytest.mark.feature("content-routing F18")
def test_with_adverts_nothing_is_missed_either(strategy: Strategy) -> None:
    for seed in TREES:
        assert not routed(WIRINGS[f"adverts, {strategy}"], seed).bad, seed


@pytest.mark.feature("content-routing F18")
def test_adverts_of_everything_everywhere_are_subscription_semantics() -> None:
    """Lemma 5.9, on the messages: once everybody offers everything, subscriptions travel as without adverts."""
    plain, offering = everywhere("abcd"), advertised("abcd")
    for name in "abcd":
        offering[name].advertise(f"virtual {name}", EVERYTHING)
    offering.rest()
    for row in (plain, offering):
        row["a"].subscribe("s", wants(2, 6))
        row["d"].subscribe("t", wants(3, 4))
    assert plain.rest() == offering.rest()
    for row in (plain, offering):
        row["a"].unsubscribe("s", wants(2, 6))
    assert plain.rest() == offering.rest()


@pytest.mark.feature("content-routing F19")
def test_a_withdrawal_waits_for_the_next_root_set_and_until_then_more_comes_than_is_wanted() -> None:
    network = Network([("a", "b")], WIRINGS["hierarchy, root sets replaced"], 1)
    network.subscribe("s", "b", wants(0, 9))
    network.subscribe("t", "b", wants(4, 5))
    network.world.engine.run()
    network.unsubscribe("s", wants(0, 9))
    network.world.engine.run()
    assert network.router("a").wanted.table.match({"type": "t", "x": 1}) == {"b"}
    network.settle()
    assert network.router("a").wanted.table.match({"type": "t", "x": 1}) == set()
    assert network.router("a").wanted.table.match({"type": "t", "x": 4}) == {"b"}


def rendezvous(
    names: str, kind: str, at: str, *, attributes: bool = True, turned: bool = False, **options: object
) -> Row:
    """A row whose rendezvous point for this type is there."""
    toward = next_hops(adjacent(names, pairwise(names)))

    class Fixed(Rendezvous):
        def place(self, wanted: str) -> str:
            return at if wanted == kind else names[0]

    core = (lambda node, router: TypeBroker(node, router, turned=turned)) if not attributes else None
    more = {"core": core} if core is not None else {}
    return Row(names, lambda n, g: Fixed(n, g[n], names, toward[n], attributes=attributes), **more)  # type: ignore[arg-type]


@pytest.mark.feature("content-routing F21")
def test_adverts_and_subscriptions_meet_at_the_rendezvous_point() -> None:
    row = rendezvous("abcde", "t", "c")
    row["a"].advertise("p", wants(0, 9))
    assert row.rest() == ["a>b +adv 0-9", "b>c +adv 0-9"]
    row["e"].subscribe("s", wants(4, 5))
    assert row.rest() == ["e>d +sub 4-5", "d>c +sub 4-5", "c>b +sub 4-5", "b>a +sub 4-5"]
    row["a"].publish("p", event(1, 4))
    row["a"].publish("p", event(2, 8))
    assert row.rest() == ["a>b pub 1", "b>c pub 1", "c>d pub 1", "d>e pub 1"]


@pytest.mark.feature("content-routing F21")
def test_by_type_alone_every_event_passes_the_point() -> None:
    row = rendezvous("abc", "t", "c", attributes=False)
    row["a"].subscribe("s", wants(0, 5))
    assert row.rest() == ["a>b +sub 0-5", "b>c +sub 0-5"]
    row["b"].publish("p", event(1, 3))
    row["b"].publish("p", event(2, 8))
    assert sorted(row.rest()) == ["b>a pub 1", "b>c pub 1", "b>c pub 2"]
    turned = rendezvous("abc", "t", "c", attributes=False, turned=True)
    turned["a"].subscribe("s", wants(0, 5))
    turned.rest()
    turned["b"].publish("p", event(1, 3))
    assert turned.rest() == ["b>c pub 1", "c>b pub 1", "b>a pub 1"]
    assert row.got == turned.got == [("s", 1)]


@pytest.mark.feature("content-routing F21")
def test_a_filter_without_a_type_has_no_point_to_meet_at() -> None:
    row = rendezvous("ab", "t", "b")
    with pytest.raises(LocalError, match="names no event type"):
        row["a"].subscribe("s", EVERYTHING)


@pytest.mark.parametrize("wiring", [name for name in WIRINGS if name.startswith("rendezvous")])
@pytest.mark.feature("content-routing F21")
def test_the_overlay_of_rendezvous_points_may_have_cycles(wiring: str) -> None:
    """All shortest ways to one point form a tree, so that nothing goes round and nothing comes twice."""
    for seed in TREES:
        dice = Random(seed)
        size = dice.randint(4, 8)
        chords = [dice.sample(range(size), 2) for _ in range(3)]
        edges = {(f"b{min(pair)}", f"b{max(pair)}") for pair in chords} | set(random_tree(size, dice))
        network = Network(sorted(edges), WIRINGS[wiring], seed)
        for _ in range(30):
            network.change()
            network.run(network.dice.expovariate(1.0))
        assert network.settle()
        assert network.wrong_deliveries() == 0


HIERARCHY = {"reading": ("observation", "thing"), "observation": ("thing",)}


@pytest.mark.parametrize("wiring", [name for name in WIRINGS if name.startswith("rendezvous")])
@pytest.mark.feature("content-routing F21")
def test_whoever_wants_a_type_gets_all_below_it_once(wiring: str) -> None:
    for seed in TREES:
        network = Network([("a", "b"), ("b", "c"), ("b", "d")], WIRINGS[wiring], seed, supertypes=HIERARCHY)
        for kind in ("reading", "observation"):
            network.advertise("p", "a", wants(0, VALUES, kind))
        network.subscribe("s", "c", wants(2, 6, "thing"))
        network.subscribe("s", "c", wants(4, 8, "reading"))
        network.subscribe("u", "d", wants(0, 9, "observation"))
        network.settle()
        for kind in ("reading", "observation"):
            for x in range(VALUES):
                sent = network.publish("p", "a", x, kind)
                network.settle()
                assert network.who_got(sent) == network.flooded(x, kind)
