"""Publishers that move: nobody who wants what they publish is left behind."""

from __future__ import annotations

import pytest
from tests.protocols.routing.covering.lines import Row, event

from godwit.lab.relocation.networks import wants
from godwit.protocols.host import LocalError
from godwit.protocols.relocation import rules as named
from godwit.protocols.routing.covering.scopes import Advertised

A = wants(0, 9)


def publishing(names: str = "abcd") -> Row:
    row = Row(names, lambda name, graph: Advertised(graph[name]), rules=named.ADDRESSED)
    row["a"].publishers.open("p", [A])
    row.rest()
    return row


@pytest.mark.feature("content-routing F36")
def test_the_acknowledgement_comes_behind_the_subscriptions_that_the_advert_draws() -> None:
    row = publishing("abc")
    row["a"].subscribers.open("s", [wants(2, 6)])
    row["c"].publishers.come("p", 1, [A], "a")
    row["c"].publishers.publish("p", 1, event(1, 3))
    assert row.rest() == [
        "c>b +adv 0-9 <advert p#1 to a>",
        "b>a +adv 0-9 <advert p#1 to a>",
        "a>b +sub 2-6",
        "a>b <ack p#1 to c>",
        "a>b -adv 0-9",
        "b>c +sub 2-6",
        "b>c <ack p#1 to c>",
        "b>c -adv 0-9",
        "c>b pub 1",
        "b>a pub 1",
    ]
    assert row.got == [("s", 1)]


@pytest.mark.feature("content-routing F36")
def test_who_moves_on_before_the_acknowledgement_leaves_nothing_unpublished() -> None:
    row = publishing("abcd")
    row["a"].subscribers.open("s", [wants(2, 6)])
    row["c"].publishers.come("p", 1, [A], "a")
    row["c"].publishers.publish("p", 1, event(1, 3))
    row["d"].publishers.come("p", 2, [A], "c")
    row["d"].publishers.publish("p", 2, event(2, 3))
    row.rest()
    assert row.got == [("s", 1), ("s", 2)]


@pytest.mark.feature("content-routing F36", "content-routing F38")
@pytest.mark.parametrize("one_direction", [False, True])
def test_made_before_broken_a_publisher_never_waits_longer_than_its_announcement(one_direction: bool) -> None:
    row = publishing("abcd")
    row["a"].subscribers.open("s", [wants(2, 6)])
    row.rest()
    row["a"].publishers.move_out("p", 0, "d", one_direction=one_direction)
    if not one_direction:
        row["a"].publishers.publish("p", 0, event(0, 3))
        row.rest()
    assert row.ready == [("p", "d")]
    row["d"].publishers.come("p", 1, [A], "a", announced=True)
    row["d"].publishers.publish("p", 1, event(1, 3))
    row.rest()
    assert ("s", 1) in row.got
    assert list(row["a"].publishers.desks) == []


def test_nobody_publishes_where_it_is_not() -> None:
    row = publishing()
    with pytest.raises(LocalError, match="p has no stay 3 at b"):
        row["b"].publishers.publish("p", 3, event(1, 1))
    with pytest.raises(LocalError, match="its stay 4 is not here any more"):
        row["b"].publishers.come("p", 5, [A], "b")
