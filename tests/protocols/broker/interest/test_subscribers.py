"""Whoever wants a publication is found, and nobody else: by topic, by content, and by both."""

from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.api import Limits, Subscription
from godwit.protocols.broker.interest.subscribers import BEYOND, Audiences
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import Cause
from godwit.protocols.broker.session.parse import understood
from godwit.protocols.broker.session.state import Session, Sub
from godwit.protocols.broker.topics import matches

TOPIC_FILTERS = ["#", "a/#", "a/+", "a/b", "+/b", "b/#", "a/b/#"]
TOPICS = ["a", "a/b", "a/c", "b/b", "a/b/c", "$a/b"]
CONDITIONS = [
    "",
    "x > 1",
    "x = 1 OR y = 'u'",
    "topic_1 = 'a' AND x > 0",
    "topic LIKE 'a/b%'",
    "y IS NULL",
    "x < 0 OR x >= 0",
]
PAYLOADS = [b"", b'{"x": 1}', b'{"x": 2, "y": "u"}', b'{"y": "v"}', b"not json"]

wishes = st.lists(st.tuples(st.sampled_from(TOPIC_FILTERS), st.sampled_from(CONDITIONS)), max_size=12)
told = st.lists(st.tuples(st.sampled_from(TOPICS), st.sampled_from(PAYLOADS)), min_size=1, max_size=6)


def subscribed(audiences: Audiences, number: int, topics: str, condition: str) -> Sub:
    wanted = Subscription(str(number), topics, condition)
    sub = Sub(Session(f"c{number}", 1), wanted, understood(wanted, Limits()), 1)
    audiences.add(sub)
    return sub


def wants(sub: Sub, publication: Publication) -> bool:
    wanted = sub.wanted
    right_topic = matches(wanted.topics, publication.topic)
    return right_topic and (sub.condition is None or sub.condition.matches(publication.values()))


def found(audiences: Audiences, publications: list[Publication]) -> list[set[Sub]]:
    return [
        {*audiences.audience(one.topic).subs, *looked.subs}
        for one, looked in zip(publications, audiences.look_into(publications), strict=True)
    ]


@given(wishes, told, st.data())
def test_what_is_found_is_what_asking_everybody_gives(
    wished: list[tuple[str, str]], said: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    audiences = Audiences()
    subs = [subscribed(audiences, number, *wish) for number, wish in enumerate(wished)]
    publications = [Publication("p", number, *one) for number, one in enumerate(said)]
    assert found(audiences, publications) == [{sub for sub in subs if wants(sub, one)} for one in publications]
    left = data.draw(st.sets(st.sampled_from(subs))) if subs else set()
    for sub in left:
        audiences.remove(sub)
    stayed = [sub for sub in subs if sub not in left]
    assert found(audiences, publications) == [{sub for sub in stayed if wants(sub, one)} for one in publications]


def test_content_is_looked_at_only_where_somebody_of_that_topic_asks_for_it() -> None:
    audiences = Audiences()
    subscribed(audiences, 1, "a/#", "x > 1")
    subscribed(audiences, 2, "b/#", "")
    assert audiences.audience("a/b").contingent
    assert not audiences.audience("b/b").contingent


def test_who_wants_long_topics_is_not_remembered() -> None:
    """One user without any right could else make a broker remember a gigabyte of them."""
    tracemalloc.start()
    audiences = Audiences()
    for number in range(300):
        audiences.audience(f"{number}/" + "x" * 60_000)
    held_b, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held_b < 1_000_000


def test_events_of_a_turn_are_parted_by_who_takes_them_as_they_are() -> None:
    """A batch that the index matches is told by outlet; where somebody needs more than the packet, by event."""
    audiences, outlets = Audiences(), list[Any](Outlet() for _ in range(3))
    sessions = [Session(f"c{number}", 1) for number in range(4)]
    for session, outlet in zip(sessions, outlets, strict=False):  # the last is away
        session.become(Cause.OPENED)
        session.become(Cause.ADMITTED)
        session.outlet = outlet
    for number in range(80):
        asked(audiences, sessions[number % 4], f"x >= {number} AND x < {number + 4}")
    (conditions,) = audiences.audience("a").asking
    events = [{"x": at} for at in range(40)]
    parted = audiences.outlets([conditions], events, outlets)
    assert isinstance(parted, dict)
    assert parted == {
        outlet: [at for at in range(40) if any(low % 4 == number and low >= 0 for low in range(at - 3, at + 1))]
        for number, outlet in enumerate(outlets)
    }
    asked(audiences, sessions[0], "x >= 10 AND x < 11", identifier=7)
    by_event = audiences.outlets([conditions], events, outlets)
    assert isinstance(by_event, list)
    assert [at for at, wanting in enumerate(by_event) if BEYOND in wanting] == [10]
    assert by_event[20] == {*outlets, None}


steps = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "leave", "come", "tell"]), st.integers(0, 99)), max_size=12
)


@given(steps)
def test_who_takes_a_batch_is_found_whatever_changed_between_two(steps: list[tuple[str, int]]) -> None:
    """Clients come, go, subscribe and unsubscribe; what is kept of one batch for the next is never out of date."""
    audiences, outlets = Audiences(), list[Any](Outlet() for _ in range(4))
    sessions = [Session(f"c{number}", 1) for number in range(4)]
    for session in sessions:
        session.become(Cause.OPENED)
        session.become(Cause.ADMITTED)
    lows = {asked(audiences, sessions[number % 4], between(number)): number for number in range(70)}
    number = len(lows)
    for what, which in [("tell", 0), *steps, ("tell", 0)]:
        session = sessions[which % 4]
        if what == "add":
            lows[asked(audiences, session, between(number))] = number
            number += 1
        elif what == "remove" and lows:
            gone = list(lows)[which % len(lows)]
            audiences.remove(gone)
            del lows[gone]
        elif what in ("leave", "come"):
            session.outlet = outlets[which % 4] if what == "come" else None
            audiences.changed()
        elif what == "tell" and audiences.audience("a").asking:
            events = [{"x": at % 90} for at in range(which, which + 40)]
            told = audiences.outlets(audiences.audience("a").asking, events, outlets)
            assert isinstance(told, dict)
            wanted: dict[Any, dict[int, None]] = {}
            for at, event in enumerate(events):
                for sub, low in lows.items():
                    if sub.session.outlet is not None and low <= event["x"] < low + 4:
                        wanted.setdefault(sub.session.outlet, {})[at] = None
            assert told == {outlet: list(found) for outlet, found in wanted.items()}


def between(low: int) -> str:
    return f"x >= {low} AND x < {low + 4}"


class Outlet:
    """Stands for a client's connection."""


def asked(audiences: Audiences, session: Session, condition: str, **more: Any) -> Sub:
    wanted = Subscription(condition, "#", condition, **more)
    sub = Sub(session, wanted, understood(wanted, Limits()), 1)
    audiences.add(sub)
    return sub
