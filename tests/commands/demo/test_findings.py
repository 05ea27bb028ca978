"""Where something is missing, it is told who misses what and what the brokers say."""

from __future__ import annotations

from godwit.commands.demo.findings import busy, disordered, missing, renewed, repeated, slow, told_of
from godwit.commands.demo.ledger import Ledger
from godwit.filters.text import parse
from godwit.net.ops.report import ClientRow, Report


def test_who_misses_what_is_told() -> None:
    kept = Ledger()
    for sequence, x in enumerate((1, 7, 9)):
        kept.published(0.1 * sequence, "p", sequence, {"x": x})
    kept.delivered(1.0, "ann", "p", 1)
    for sequence in range(3):
        kept.delivered(1.0, "bob", "p", sequence)
    wishes = {"ann": parse("x > 5"), "bob": parse("x > 0")}
    assert missing(kept.facts, kept.contents, wishes) == {"ann": [("p", 2)]}


def test_a_broker_says_what_waits_there_or_that_it_does_not_answer() -> None:
    report = Report(
        name="market",
        version="0",
        uptime_s=1.0,
        troubles=["store: full"],
        clients=[ClientRow(client="ann", connected=False, waiting=3, under_way=1)],
        counts={"dropped": {"queue": 2}},
    )
    said = "broker market: 4 deliveries wait there, 2 were dropped; in trouble: store: full"
    assert told_of("market", report) == said
    assert told_of("market", None) == "broker market does not answer"


def test_a_busy_machine_is_told_and_a_quick_one_is_not() -> None:
    assert "4.2 s late" in next(busy(4.2))
    assert list(busy(0.1)) == []


def test_slow_handoffs_are_explained_by_who_was_killed_by_a_busy_machine_or_not_at_all() -> None:
    handoffs = [(1.0, 1.1), (9.0, 13.0), (11.5, 13.5), (20.0, 22.5), (30.0, 31.5)]
    assert list(slow(handoffs, ("market", (10.0, 12.5)), {21: 0.8})) == [
        "4 of them took longer than 1 s, 4.0 s at most:",
        "  2 while market was down, for 2.5 s: it had their sessions, or led there",
        "  1 while this machine was so busy that taxis' reports left up to 0.8 s late",
        "  1 for no reason that was seen here",
    ]
    assert list(slow(handoffs[:1], ("market", (0.0, 12.5)), {1: 9.0})) == []


def test_what_came_behind_something_newer_is_told_with_where_its_subscriber_had_been() -> None:
    kept = Ledger()
    for time_s, broker in ((1.0, "127.0.0.1:1"), (2.0, "127.0.0.1:2"), (3.0, "127.0.0.1:3"), (4.0, "127.0.0.1:1")):
        kept.arrived(time_s, "ann", broker)
    for sequence in (1, 5, 3, 4):
        kept.delivered(5.0, "ann", "p", sequence)
    kept.delivered(5.0, "bob", "p", 2)
    named = {"127.0.0.1:1": "harbour", "127.0.0.1:2": "market", "127.0.0.1:3": "station"}
    assert disordered(kept.facts, named) == [
        "ann got 2 of p behind newer ones, first at 5.0 s, after market to station to harbour"
    ]
    assert disordered(kept.facts[:6], named) == []


def test_what_came_once_more_is_told_with_where_its_subscriber_had_been() -> None:
    kept = Ledger()
    for time_s, place in ((0.0, "h:1"), (2.0, "h:2")):
        kept.arrived(time_s, "ann", place)
        kept.delivered(time_s + 1.0, "ann", "p", 7)
        kept.delivered(time_s + 1.0, "bob", "p", 7 + int(time_s))
    assert repeated(kept.facts, {"h:1": "harbour", "h:2": "market"}) == [
        "ann got 1 of p once more, first at 3.0 s, after harbour to market"
    ]
    assert repeated(kept.facts[:3], {}) == []


def test_who_was_given_a_new_session_is_named() -> None:
    assert renewed([]) == []
    assert renewed(["ann", "bob"]) == ["2 could not have their session in time, and were given a new one: ann, bob"]
    assert renewed([*"abcdefg"])[0].endswith(": a, b, c, d, e, ...")
