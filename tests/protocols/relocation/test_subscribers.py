"""Subscribers that move, message for message; and what a hurried client finds."""

from __future__ import annotations

import pytest
from tests.protocols.routing.covering.lines import Row, event

from godwit.lab.relocation.networks import wants
from godwit.protocols.host import LocalError, RemoteError
from godwit.protocols.relocation import rules as named
from godwit.protocols.relocation.rules import Covering, Rules
from godwit.protocols.routing.covering.messages import Marker, Stated
from godwit.protocols.routing.covering.scopes import Advertised

S = wants(2, 6)


def moving(names: str = "abcd", rules: Rules = named.ADDRESSED, *, publisher: str = "", **options: object) -> Row:
    """A row; the publisher stands at the far end unless told otherwise, the client c at a."""
    row = Row(names, lambda name, graph: Advertised(graph[name]), rules=rules, **options)  # type: ignore[arg-type]
    row[publisher or names[-1]].publishers.open("p", [wants(0, 9)])
    row.rest()
    row["a"].subscribers.open("c", [S])
    row.rest()
    return row


@pytest.mark.feature("content-routing F33", "content-routing F35")
def test_what_is_missed_is_kept_handed_over_and_given_once_in_order() -> None:
    row = moving("abcd", publisher="b")
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row.rest()
    row["d"].subscribers.come("c", 1, [S], "a")
    row["b"].publishers.publish("p", 0, event(2, 4))
    assert "c>b +sub 2-6 <update c#1 to a>" in row.run(2.5)
    row["b"].publishers.publish("p", 0, event(3, 5))
    assert "a>d transfer c#1 [1, 2]" in row.rest()
    assert row.got == [("c", 1), ("c", 2), ("c", 3)]


@pytest.mark.feature("content-routing F35")
def test_the_update_is_coupled_with_the_subscription_and_goes_on_alone_where_that_is_known() -> None:
    """Case 2 of proposition 5.5: the publisher stands between, so that M is where its way to the source branches."""
    row = Row("abmp", lambda name, graph: Advertised(graph[name]), rules=named.ADDRESSED, edges=["am", "bm", "mp"])
    row["p"].publishers.open("p", [wants(0, 9)])
    row.rest()
    row["a"].subscribers.open("c", [S])
    row.rest()
    row["a"].subscribers.leave("c", 0)
    row["b"].subscribers.come("c", 1, [S], "a")
    assert row.rest() == [
        "b>m +sub 2-6 <update c#1 to a>",
        "m>a <update c#1 to a>",
        "a>b transfer c#1 []",
        "a>m -sub 2-6",
    ]


@pytest.mark.feature("content-routing F35")
def test_covered_at_the_destination_the_published_protocol_asks_directly_and_costs_no_link_anything() -> None:
    row = moving("abc", named.COMPLETE_ADDRESSED)
    row["b"].subscribers.open("other", [wants(0, 9)])
    row.rest()
    row["a"].subscribers.leave("c", 0)
    row["b"].subscribers.come("c", 1, [S], "a")
    assert row.rest()[:1] == ["b>a request c#0"]


@pytest.mark.feature("content-routing F35")
def test_asked_directly_the_source_lets_go_too_early_and_an_event_in_flight_is_lost() -> None:
    """The event has passed b before the client came there, and is on its way to a when the request overtakes it."""
    lost = {}
    for covering in Covering:
        rules = Rules(covering=covering, linger_s=20.0)
        row = moving("abcd", rules, direct_s=0.1, publisher="d")
        row["b"].subscribers.open("other", [wants(0, 9)])
        row.rest()
        row["a"].subscribers.leave("c", 0)
        row["d"].publishers.publish("p", 0, event(1, 3))
        row.run(2.5)
        row["b"].subscribers.come("c", 1, [S], "a")
        row.rest()
        lost[covering] = ("c", 1) not in row.got
    assert lost == {Covering.IGNORED: False, Covering.OUT_OF_BAND: True, Covering.LINGERING: False}


@pytest.mark.feature("content-routing F35")
def test_without_addresses_an_update_is_flooded_towards_adverts_and_back_to_subscribers() -> None:
    row = Row(
        "abmxp", lambda name, graph: Advertised(graph[name]), rules=named.INCOMPLETE, edges=["am", "bm", "mp", "xp"]
    )
    row["p"].publishers.open("p", [wants(0, 9)])
    row.rest()
    row["a"].subscribers.open("c", [S])
    row["x"].subscribers.open("other", [wants(0, 9)])
    row.rest()
    row["a"].subscribers.leave("c", 0)
    row["b"].subscribers.come("c", 1, [S], "a")
    said = row.rest()
    assert said[:3] == ["b>m +sub 2-6 <search c#1 to a>", "m>a <back c#1 to a>", "m>p <search c#1 to a>"]
    assert "p>x <back c#1 to a>" in said
    assert "a>b transfer c#1 []" in said


@pytest.mark.feature("content-routing F38")
def test_an_update_that_finds_no_way_ends_by_its_limit() -> None:
    """Nobody offers what the client wants, so that content routing cannot find the source."""
    row = Row("abc", lambda name, graph: Advertised(graph[name]), rules=Rules(addressed=False, limit_s=30.0))
    row["a"].subscribers.open("c", [S])
    row["a"].subscribers.leave("c", 0)
    row["c"].subscribers.come("c", 1, [S], "a")
    assert row.run(29.0) == []
    assert row.rest() == ["c>a request c#0", "a>c transfer c#1 []"]
    assert row["c"].subscribers.is_served("c", 1)


@pytest.mark.feature("content-routing F38")
@pytest.mark.parametrize("rules", [named.ADDRESSED, Rules(addressed=False, limit_s=60.0)])
def test_an_advert_withdrawn_on_the_way_leaves_nobody_waiting(rules: Rules) -> None:
    row = moving("abcd", rules, publisher="b")
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row["d"].subscribers.come("c", 1, [S], "a")
    row.run(0.5)
    row["b"].unadvertise(row["b"].publishers.desks["p", 0].interface, wants(0, 9))
    row.rest()
    assert row["d"].subscribers.is_served("c", 1)
    assert row.got == [("c", 1)]


@pytest.mark.feature("content-routing F38")
def test_who_moves_on_before_its_session_came_gets_all_of_it_at_the_end_of_the_chain() -> None:
    row = moving("abcde", publisher="b")
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row["d"].subscribers.come("c", 1, [S], "a")
    row["d"].subscribers.leave("c", 1)
    row["e"].subscribers.come("c", 2, [S], "d")
    row["b"].publishers.publish("p", 0, event(2, 4))
    said = row.rest()
    assert [one for one in said if "transfer" in one] == ["a>d transfer c#1 [1, 2]", "d>e transfer c#2 [1, 2]"]
    assert row.got == [("c", 1), ("c", 2)]


@pytest.mark.feature("content-routing F38")
def test_who_comes_back_to_where_it_just_was_goes_on_there() -> None:
    row = moving("ab")
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row.rest()
    row["a"].subscribers.come("c", 1, [S], "a")
    assert row.got == [("c", 1)]
    assert row.rest() == []


@pytest.mark.feature("content-routing F38")
def test_who_comes_back_while_its_session_is_on_its_way_here_still_gets_it() -> None:
    row = moving("abc", publisher="b")
    row["a"].subscribers.leave("c", 0)
    row["b"].publishers.publish("p", 0, event(1, 3))
    row["c"].subscribers.come("c", 1, [S], "a")
    row["c"].subscribers.leave("c", 1)
    row["c"].subscribers.come("c", 2, [S], "c")
    row.rest()
    assert row.got == [("c", 1)]
    with pytest.raises(LocalError, match="its stay 7 is not here any more"):
        row["c"].subscribers.come("c", 8, [S], "c")


@pytest.mark.feature("content-routing F35", "content-routing F38")
@pytest.mark.parametrize("one_direction", [False, True])
def test_make_before_break_serves_the_client_at_the_source_until_it_may_go(one_direction: bool) -> None:
    row = moving("abcd", publisher="b")
    row["a"].subscribers.move_out("c", 0, "d", one_direction=one_direction)
    for number in range(1, 9):
        row["b"].publishers.publish("p", 0, event(number, 3))
        row.run(1.0)
    assert row.ready == [("c", "d")]
    row["a"].subscribers.leave("c", 0)
    row["d"].subscribers.come("c", 1, [S], "a")
    row.rest()
    assert sorted(row.got) == [("c", number) for number in range(1, 9)]


def test_a_client_that_names_no_broker_is_refused_and_nothing_is_subscribed() -> None:
    row = moving("ab")
    with pytest.raises(LocalError, match="'nowhere' is no broker of this network"):
        row["b"].subscribers.come("c", 1, [S], "nowhere")
    assert row.rest() == []
    assert row["b"].subscribers.sessions == {}


def test_a_neighbor_that_sends_a_marker_to_nobody_is_refused() -> None:
    row = moving("ab")
    with pytest.raises(RemoteError, match="asked for the way to 'nowhere'"):
        row["b"].receive("a", Stated(markers=(Marker("update", "c", 1, "nowhere", "a"),)))
