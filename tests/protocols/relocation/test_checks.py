"""Rendezvous points: handovers by way of them, and whether a subscription is complete up to there."""

from __future__ import annotations

import pytest
from tests.protocols.routing.covering.lines import Row, event

from godwit.filters.filters import EVERYTHING
from godwit.lab.relocation.networks import wants
from godwit.protocols.host import LocalError
from godwit.protocols.relocation import rules as named
from godwit.protocols.relocation.rules import Rules
from godwit.protocols.routing.covering.scopes import Advertised, Rendezvous
from godwit.protocols.topology.graphs import adjacent, next_hops

S = wants(2, 6)
EDGES = ["ar", "br", "pr"]
TOWARD = next_hops(adjacent("abpr", [(edge[0], edge[1]) for edge in EDGES]))


class At(Rendezvous):
    def place(self, kind: str) -> str:
        return "r"


def star(rules: Rules = named.RENDEZVOUS) -> Row:
    """The point r in the middle, source a, destination b, publisher p."""
    row = Row("abpr", lambda n, g: At(n, g[n], "abpr", TOWARD[n]), rules=rules, edges=EDGES, direct_s=0.1)
    row["p"].publishers.open("p", [wants(0, 9)])
    row["a"].subscribers.open("c", [S])
    row.rest()
    return row


@pytest.mark.feature("content-routing F37")
def test_the_point_sends_the_update_on_over_the_links() -> None:
    row = star()
    row["a"].subscribers.leave("c", 0)
    row["b"].subscribers.come("c", 1, [S], "a")
    assert row.rest() == [
        "b>r +sub 2-6 <update c#1 to a>",
        "r>a <update c#1 to a>",
        "a>b transfer c#1 []",
        "a>r -sub 2-6",
    ]


@pytest.mark.feature("content-routing F37")
@pytest.mark.parametrize(("rules", "lost"), [(named.RENDEZVOUS, False), (named.RENDEZVOUS_DIRECT, True)])
def test_a_direct_notice_overtakes_what_is_on_its_way_to_the_source(rules: Rules, lost: bool) -> None:
    row = star(rules)
    row["a"].subscribers.leave("c", 0)
    row["p"].publishers.publish("p", 0, event(1, 3))
    row.run(0.5)
    row["b"].subscribers.come("c", 1, [S], "a")
    row.rest()
    assert (("c", 1) not in row.got) is lost


@pytest.mark.feature("content-routing F37")
def test_the_point_itself_answers_a_publisher_that_moves() -> None:
    row = star()
    row["b"].publishers.come("p", 1, [wants(0, 9)], "p")
    row["b"].publishers.publish("p", 1, event(1, 3))
    said = row.rest()
    assert said[:4] == [
        "b>r +adv 0-9 <advert p#1 to p>",
        "r>b +sub 2-6 <ack p#1 to b>",
        "r>p <advert p#1 to p>",
        "b>r pub 1",
    ]
    assert row.got == [("c", 1)]


@pytest.mark.feature("content-routing F37")
def test_a_check_travels_behind_the_subscription_and_the_answer_is_remembered_on_the_way() -> None:
    hops = next_hops(adjacent("abcr", [("a", "b"), ("b", "r"), ("c", "b")]))
    row = Row("abcr", lambda n, g: At(n, g[n], "abcr", hops[n]), rules=named.RENDEZVOUS, edges=["ab", "br", "cb"])
    row["a"].subscribers.open("s", [wants(0, 9)])
    done: list[str] = []
    row["a"].checks.ask(wants(0, 9), lambda: done.append("a"))
    assert row.rest() == [
        "a>b +sub 0-9",
        "a>b <check #0 to r>",
        "b>r +sub 0-9",
        "b>r <check #0 to r>",
        "r>b <checked #0 to a>",
        "b>a <checked #0 to a>",
    ]
    row["c"].subscribers.open("t", [S])
    row["c"].checks.ask(S, lambda: done.append("c"))
    assert row.rest() == ["c>b +sub 2-6", "c>b <check #0 to r>", "b>c <checked #0 to c>"]
    assert done == ["a", "c"]
    row["a"].subscribers.leave("s", 0)
    row["a"].unsubscribe("s#0", wants(0, 9))
    row.rest()
    assert not row["b"].checks.knows(wants(0, 9))


def test_rules_with_points_need_a_network_with_points() -> None:
    row = Row("ab", lambda n, g: Advertised(g[n]), rules=named.RENDEZVOUS)
    with pytest.raises(LocalError, match="goes without"):
        row["b"].subscribers.come("c", 1, [S], "a")


def test_a_filter_that_meets_nowhere_is_refused_and_nothing_is_kept() -> None:
    row = star()
    with pytest.raises(LocalError, match="names no event type"):
        row["b"].subscribers.come("d", 1, [EVERYTHING], "a")
    with pytest.raises(LocalError, match="names no event type"):
        row["b"].publishers.open("q", [EVERYTHING])
    with pytest.raises(LocalError, match="names no event type"):
        row["b"].subscribe("s", EVERYTHING)
    assert row["b"].subscribers.sessions == {}
    assert row["b"].publishers.desks == {}
    assert row.rest() == []
    row["b"].subscribe("s", wants(0, 3))
    assert row.rest()[:1] == ["b>r +sub 0-3"]
