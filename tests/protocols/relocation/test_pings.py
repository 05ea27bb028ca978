"""Generic mobility: nothing but publish and subscribe, and nothing of it left behind."""

from __future__ import annotations

import pytest
from tests.protocols.routing.covering.lines import MakeScope, Row, event

from godwit.lab.relocation.networks import wants
from godwit.protocols.relocation.rules import Rules
from godwit.protocols.routing.covering.scopes import Advertised, Everywhere

S = wants(2, 6)


def subscriptions(name: str, graph: object) -> Everywhere:
    return Everywhere(graph[name])  # type: ignore[index]


def adverts(name: str, graph: object) -> Advertised:
    return Advertised(graph[name])  # type: ignore[index]


@pytest.mark.feature("content-routing F34")
@pytest.mark.parametrize("scope", [subscriptions, adverts])
def test_ping_and_pong_move_a_subscriber_without_loss_and_leave_nothing(scope: MakeScope) -> None:
    row = Row("abcd", scope, rules=Rules(pings=True, ping_s=10.0))
    row["b"].publishers.open("p", [wants(0, 9)])
    row["a"].subscribers.open("c", [S])
    row.rest()
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row.run(5.0)
    row["d"].subscribers.come("c", 1, [S], "a")
    row["b"].publishers.publish("p", 0, event(2, 3))
    row.run(60.0)
    row["b"].publishers.publish("p", 0, event(3, 3))
    row.rest()
    assert row.got == [("c", 1), ("c", 2), ("c", 3)]
    left = {
        one.type
        for name in "abcd"
        for book in (row[name].router.wanted, row[name].router.offered)
        for one in book.table
    }
    assert left == {"t"}


@pytest.mark.feature("content-routing F34")
def test_with_adverts_the_first_ping_finds_no_way_and_the_second_does() -> None:
    said = {}
    for scope in (subscriptions, adverts):
        row = Row("abcd", scope, rules=Rules(pings=True, ping_s=10.0))
        row["a"].subscribers.open("c", [S])
        row["a"].subscribers.leave("c", 0)
        row.run(5.0)
        row["d"].subscribers.come("c", 1, [S], "a")
        row.run(9.0)
        said[scope] = row["d"].subscribers.is_served("c", 1)
        row.run(20.0)
        assert row["d"].subscribers.is_served("c", 1)
    assert said == {subscriptions: True, adverts: False}
