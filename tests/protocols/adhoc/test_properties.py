"""What holds of brokers without infrastructure on any graph, whomever they have met (spec manet-cbr 2.5)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.adhoc.fields import BLACK, STILL, Ground, black
from tests.protocols.graphs import Edge, connected

from godwit.protocols.adhoc.options import Carry, Options

QUIET = msgspec.structs.replace(STILL, period_s=1000.0, jitter=0.1)


def scattered(edges: list[Edge], draw: st.DataObject, options: Options) -> tuple[Ground, list[str], set[str]]:
    """Some subscribe, some have met some of them, and the first publishes."""
    net = Ground(edges, options)
    names = sorted(net.world.nodes)
    wanting = set(draw.draw(st.lists(st.sampled_from(names), unique=True)))
    for name in wanting:
        net[name].subscribe(BLACK, "app")
    for name in names:
        met = draw.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 10), max_size=3))
        net.meet(name, {other: tenths for other, tenths in met.items() if other in wanting and other != name})
    return net, names, wanting


@pytest.mark.feature("manet-cbr F12", "manet-cbr F10")
@given(connected(), st.data(), st.integers(0, 2))
def test_each_sends_at_most_once_and_only_to_be_closer_or_for_a_credit(
    edges: list[Edge], draw: st.DataObject, credit: int
) -> None:
    net, names, wanting = scattered(edges, draw, msgspec.structs.replace(QUIET, credits=credit))
    tables = {name: {n: net[name].table.proximity(n, 0.0) for n in net[name].table.entries} for name in names}
    net[names[0]].publish(black())
    net.run(10)
    assert max(Counter(net.senders()).values()) == 1
    assert set(net.delivered()) <= wanting
    assert max(Counter(net.delivered()).values(), default=1) == 1
    for sender, data in net.sent()[1:]:
        own = tables[sender]
        is_closer = any(data.destinations[name] == proximity for name, proximity in own.items())
        assert is_closer or data.credit < credit
        assert set(data.destinations) <= wanting


@pytest.mark.feature("manet-cbr F12", "manet-cbr F14")
@given(connected(), st.data())
def test_whoever_hears_a_sender_and_wants_the_event_has_it(edges: list[Edge], draw: st.DataObject) -> None:
    net, names, wanting = scattered(edges, draw, QUIET)
    net[names[0]].publish(black())
    net.run(10)
    heard = {other for sender in net.senders() for other in net.air.neighbors(sender)} | {names[0]}
    assert set(net.delivered()) == heard & wanting


@pytest.mark.feature("manet-cbr F24")
@given(connected(), st.data())
def test_with_carriers_everybody_around_a_carrier_gets_everything_once(edges: list[Edge], draw: st.DataObject) -> None:
    """Between neighbors nothing is lost here, so that beacons bring an event from each carrier to all its neighbors,
    and from those that want it further."""
    net, names, wanting = scattered(edges, draw, msgspec.structs.replace(STILL, period_s=2.0, carry=Carry(tries=9)))
    for sequence in range(3):
        net[names[0]].publish(black(sequence=sequence))
    net.run(50)
    has = {name for name in names if ("s", 0) in net[name].seen}
    reached = {other for name in has for other in net.air.neighbors(name)} | has
    counts = Counter(net.delivered())
    assert {name for name, count in counts.items() if count == 3} == reached & wanting
    assert max(counts.values(), default=3) == 3


def test_the_further_the_later() -> None:
    waits = []
    for tenths in range(11):
        net = Ground([("S", "1")], QUIET)
        net.meet("1", {"x": tenths})
        net["S"].publish(black())
        net.run(2)
        waits.append(net.times()["1"])
    assert all(a < b for a, b in pairwise(waits))
