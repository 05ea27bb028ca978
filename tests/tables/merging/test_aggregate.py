"""Aggregate merging against enumeration: every neighbor holds what all the others want, whatever was merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.closed import Sender, acceptance, beyond, uncovered
from tests.worlds import NUMBERS, Sets, range_filters, small_sets, span

from godwit.filters.filters import Filter, attribute, filter_of
from godwit.filters.language import FILTERS
from godwit.filters.predicates import equ, gre, lt, rng
from godwit.tables.forests.forwards import RoutingForest, RoutingPoset
from godwit.tables.matching.naive import Naive
from godwit.tables.merging.aggregate import Aggregate, Mergeable
from godwit.tables.merging.localmerge import LocalMerging
from godwit.tables.merging.merging import Rules, Update, remote_merger
from godwit.tables.table import Forwarding, Interface

NEIGHBORS = ("1", "2", "3")
INTERFACES = (*NEIGHBORS, "local")

Small = frozenset[int]
MakeTable = Callable[..., Forwarding[Any, Any]]

accepts = acceptance(FILTERS, [{"x": x, "y": y} for x, y in product(NUMBERS, NUMBERS)])

steps = st.lists(st.tuples(st.sampled_from(INTERFACES), small_sets()), max_size=25)
"""An interface and a filter that it wishes for when it does not yet, and drops when it does."""

each_table = pytest.mark.parametrize("make_table", [Naive, RoutingPoset, RoutingForest])
each_mergeability = pytest.mark.parametrize("mergeable", Mergeable)


class Router:
    """A table that merges on output, the interfaces around it, and what its neighbors have come to hold."""

    def __init__(
        self,
        make_table: MakeTable = Naive,
        language: Any = None,
        neighbors: Iterable[Interface] = NEIGHBORS,
        **rules: Any,
    ) -> None:
        self.language = language or Sets()
        self.table = make_table(self.language, neighbors=neighbors)
        self.merged: Aggregate[Any, Any] = Aggregate(self.table, self.language, **rules)
        self.senders = {interface: Sender(self.language) for interface in (*neighbors, "local")}
        self.links: dict[Interface, list[Any]] = {neighbor: [] for neighbor in neighbors}

    def toggle(self, interface: Interface, wanted: Any) -> None:
        self.send(self.merged.apply(self.senders[interface].toggle(wanted), interface))

    def send(self, updates: dict[Interface, Update[Any]]) -> None:
        """Neighbors drop what something newer from here covers, as routers do."""
        for neighbor, update in updates.items():
            assert update
            kept = [f for f in self.links[neighbor] if f not in update.removed]
            self.links[neighbor] = uncovered(self.language, [*update.added, *kept])

    def beyond(self, neighbor: Interface) -> list[Any]:
        told = dict.fromkeys(f for i, sender in self.senders.items() if i != neighbor for f in sender.told())
        return uncovered(self.language, told)


def union(filters: Iterable[Small]) -> Small:
    return frozenset().union(*filters)


@pytest.mark.feature("content-routing F32")
@each_table
@each_mergeability
@given(steps=steps, eager=st.booleans())
def test_each_neighbor_holds_exactly_what_all_the_others_want(
    make_table: MakeTable, mergeable: Mergeable, steps: list[tuple[Interface, Small]], eager: bool
) -> None:
    router = Router(make_table, mergeable=mergeable, eager=eager)
    for interface, wanted in steps:
        router.toggle(interface, wanted)
        for neighbor, held in router.links.items():
            assert union(held) == union(router.beyond(neighbor))
            assert set(held) == set(router.merged.told(neighbor))
            assert len(held) <= len(router.beyond(neighbor))


@pytest.mark.feature("content-routing F32")
@each_mergeability
@given(steps=steps)
def test_imperfect_mergers_withhold_nothing_from_a_neighbor(
    mergeable: Mergeable, steps: list[tuple[Interface, Small]]
) -> None:
    router = Router(RoutingForest, Sets(imperfect=True), mergeable=mergeable)
    for interface, wanted in steps:
        router.toggle(interface, wanted)
        for neighbor, held in router.links.items():
            assert union(held) >= union(router.beyond(neighbor))
            assert len(held) <= len(router.beyond(neighbor))


@pytest.mark.feature("content-routing F32")
@given(steps)
def test_a_root_goes_where_no_merger_above_it_goes(steps: list[tuple[Interface, Small]]) -> None:
    """Equation 8.1."""
    router = Router(RoutingForest)
    for interface, wanted in steps:
        router.toggle(interface, wanted)
        mergers = {f for held in router.links.values() for f in held} - set(router.table)
        for root in router.table.roots():
            above = [router.merged.forwards(m) for m in mergers if m >= root]
            assert router.merged.forwards(root) == router.table.forwards(root) - frozenset().union(*above)


@pytest.mark.feature("content-routing F32")
@given(steps)
def test_only_roots_that_go_the_same_ways_merge(steps: list[tuple[Interface, Small]]) -> None:
    router = Router(RoutingForest)
    for interface, wanted in steps:
        router.toggle(interface, wanted)
        together: dict[frozenset[Interface], list[Small]] = {}
        for root in router.table.roots():
            together.setdefault(router.table.forwards(root), []).append(root)
        for neighbor, held in router.links.items():
            for merger in set(held) - set(router.table):
                assert any(
                    neighbor in ways and merger == union(root for root in roots if merger >= root)
                    for ways, roots in together.items()
                )


@pytest.mark.feature("content-routing F32")
@each_mergeability
@given(steps=st.lists(st.tuples(st.sampled_from(INTERFACES), range_filters()), max_size=12))
def test_real_filters_keep_their_meaning_on_the_way_out(
    mergeable: Mergeable, steps: list[tuple[Interface, Filter]]
) -> None:
    router = Router(RoutingForest, FILTERS, mergeable=mergeable)
    for interface, wanted in [*steps, *steps[::2]]:
        router.toggle(interface, wanted)
        for neighbor, held in router.links.items():
            assert accepts(held) == accepts(router.beyond(neighbor))
            assert len(held) <= len(router.beyond(neighbor))


@pytest.mark.feature("content-routing F30")
@each_table
@given(steps=steps)
def test_local_and_remote_merging_work_together(make_table: MakeTable, steps: list[tuple[Interface, Small]]) -> None:
    router = Router(make_table)
    inside = LocalMerging(router.table, Sets())
    for interface, wanted in steps:
        inside.apply(router.senders[interface].toggle(wanted), interface)
        router.send(router.merged.refresh())
        for neighbor, held in router.links.items():
            assert union(held) == union(router.beyond(neighbor))


@pytest.mark.feature("content-routing F32")
@each_table
def test_what_a_merger_covered_on_both_levels_comes_back_when_it_falls(make_table: MakeTable) -> None:
    """The vector of spec 2.10.5: without h to neighbor 3, events 6 and 7 published behind it are lost for 1."""
    merged = Router(make_table).merged
    r, h, f, g = span(3, 8), span(3, 7), span(0, 5), span(4, 10)
    merged.subscribe(r, "3")
    merged.subscribe(h, "1")
    assert merged.forwards(r) == {"1", "2"}
    assert merged.forwards(h) == {"3"}
    merged.subscribe(f, "local")
    merged.subscribe(g, "local")
    m = span(0, 10)
    assert {n: merged.told(n) for n in NEIGHBORS} == {n: [m] for n in NEIGHBORS}
    updates = merged.unsubscribe(g, "local")
    assert {n: (u.removed, set(u.added)) for n, u in updates.items()} == {
        "1": ((m,), {f, r}),
        "2": ((m,), {f, r}),
        "3": ((m,), {f, h}),
    }


@pytest.mark.feature("content-routing F32")
@each_table
def test_four_filters_that_cover_nothing_of_each_other_are_told_as_one(make_table: MakeTable) -> None:
    table = make_table(neighbors=["up"])
    merged = Aggregate(table, FILTERS)
    for clause in (lt(10), gre(5), rng(0, 20), rng(3, 30)):
        merged.subscribe(filter_of(attribute("type", equ("A")), attribute("x", clause)), "local")
    assert len(beyond(FILTERS, table, "up")) == 4
    (only,) = merged.told("up")
    assert all(only.matches({"type": "A", "x": x}) for x in (-1e9, 0, 5, 1e9))
    assert not only.matches({"type": "B", "x": 0})
    assert not only.matches({"type": "A"})


@pytest.mark.feature("content-routing F32")
def test_a_second_sender_of_a_root_changes_its_ways_and_so_its_merger() -> None:
    merged = Router(RoutingForest).merged
    merged.subscribe(span(0, 3), "1")
    merged.subscribe(span(3, 6), "1")
    assert merged.forwards(span(0, 6)) == {"2", "3"}
    updates = merged.subscribe(span(0, 3), "2")
    assert merged.forwards(span(0, 3)) == {"1", "2", "3"}
    assert merged.forwards(span(3, 6)) == {"2", "3"}
    assert set(updates) == {"1", "2", "3"}
    merged.unsubscribe(span(0, 3), "2")
    assert merged.forwards(span(0, 6)) == {"2", "3"}


@pytest.mark.feature("content-routing F32")
def test_a_new_neighbor_gets_everything_and_one_that_left_nothing() -> None:
    router = Router(RoutingForest)
    router.merged.subscribe(span(0, 3), "local")
    router.merged.subscribe(span(3, 6), "1")
    router.table.neighbors = frozenset({"1", "4"})
    updates = router.merged.refresh()
    assert updates == {"4": Update(added=(span(0, 3), span(3, 6)))}
    assert not router.merged.refresh()


@pytest.mark.feature("content-routing F32")
def test_a_change_that_concerns_no_neighbor_sends_nothing() -> None:
    merged = Router().merged
    merged.subscribe(span(0, 5), "local")
    assert not merged.subscribe(span(0, 5), "local")
    assert not merged.subscribe(span(1, 2), "local")
    assert not merged.unsubscribe(span(7, 7), "local")
    assert not merged.unsubscribe(span(1, 2), "local")


@pytest.mark.feature("content-routing F32")
def test_an_interface_that_is_gone_takes_all_its_filters_along_in_one_update() -> None:
    merged = Router(RoutingForest).merged
    merged.subscribe(span(0, 3), "1")
    merged.subscribe(span(3, 6), "1")
    merged.subscribe(span(2, 4), "2")
    assert merged.drop("1") == {
        "2": Update((span(0, 6),), ()),
        "3": Update((span(0, 6),), (span(2, 4),)),
    }


@pytest.mark.feature("content-routing F30")
@each_table
def test_filters_are_remotely_mergeable_for_the_neighbors_that_both_go_to(make_table: MakeTable) -> None:
    router = Router(make_table, mergeable=Mergeable.INTERSECTING)
    one, other, below = span(0, 3), span(3, 6), span(1, 1)
    router.merged.subscribe(one, "local")
    router.merged.subscribe(other, "3")
    router.merged.subscribe(below, "2")
    assert remote_merger(Sets(), router.table, one, other) == (span(0, 6), frozenset({"1", "2"}))
    assert router.merged.forwards(span(0, 6)) == {"1", "2"}
    assert router.merged.forwards(one) == {"3"}
    assert remote_merger(Sets(), router.table, one, below) is None, "it goes nowhere"


@pytest.mark.feature("content-routing F30")
@given(steps)
def test_a_remote_merger_goes_only_where_both_its_filters_go(steps: list[tuple[Interface, Small]]) -> None:
    router = Router(RoutingForest, mergeable=Mergeable.INTERSECTING)
    for interface, wanted in steps:
        router.toggle(interface, wanted)
    for neighbor, held in router.links.items():
        going = [f for f in router.table if neighbor in router.table.forwards(f)]
        for merger in set(held) - set(going):
            assert merger == union(f for f in going if merger >= f)


@pytest.mark.feature("content-routing F32")
def test_leaving_out_the_second_level_as_published_loses_events() -> None:
    lost, states = lost_links(Rules.LITERAL, walks=30, steps=50)
    assert 0.01 < lost / states < 0.3
    assert lost_links(Rules.CORRECTED, walks=10, steps=50)[0] == 0


def lost_links(rules: Rules, walks: int, steps: int) -> tuple[int, int]:
    """How many states of links do not accept all that is wanted beyond them, on random walks of ranges; and of all."""
    lost = states = 0
    for seed in range(walks):
        random = Random(seed)
        router = Router(RoutingForest, rules=rules, neighbors=("1", "2", "3", "4"))
        for _ in range(steps):
            interface = random.choice(list(router.senders))
            wishes = list(router.senders[interface].wishes)
            low = random.randrange(20)
            drop = wishes and random.random() < 0.45
            router.toggle(interface, random.choice(wishes) if drop else span(low, min(19, low + random.randrange(8))))
            for neighbor, held in router.links.items():
                states += 1
                lost += union(held) != union(router.beyond(neighbor))
    return lost, states
