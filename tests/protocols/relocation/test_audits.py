"""The checkers see what they are meant to see."""

from __future__ import annotations

import pytest
from tests.protocols.routing.covering.lines import Row, event

from godwit.lab.relocation.networks import wants
from godwit.protocols.relocation import rules as named
from godwit.protocols.relocation.audits import Flaw, flaws, incompleteness
from godwit.protocols.routing.covering.scopes import Advertised

pytestmark = pytest.mark.feature("content-routing F39")


def test_lost_repeated_and_strange_deliveries_are_told_apart() -> None:
    events = [event(1, 3), event(2, 3), event(3, 9)]
    got = {"s": [("p", 2), ("p", 2), ("p", 3), ("x", 7)]}
    assert list(flaws(events, {"s": [wants(0, 5)]}, got)) == [
        Flaw("lost", "s", ("p", 1)),
        Flaw("twice", "s", ("p", 2)),
        Flaw("strange", "s", ("p", 3)),
        Flaw("strange", "s", ("x", 7)),
    ]
    assert list(flaws(events[:1], {"s": [wants(0, 5)]}, {}, due=[])) == []


def test_a_network_is_incomplete_until_everybody_concerned_has_heard() -> None:
    row = Row("abc", lambda n, g: Advertised(g[n]), rules=named.ADDRESSED)
    routers = {name: row[name].router for name in "abc"}
    row["a"].publishers.open("p", [wants(0, 9)])
    row["c"].subscribers.open("s", [wants(2, 6)])
    assert {(one.broker, one.advert) for one in incompleteness(routers)} == {("a", False), ("c", True)}
    row.run(2.5)
    assert {(one.broker, one.advert) for one in incompleteness(routers)} == {("a", False)}
    row.rest()
    assert incompleteness(routers) == []
