"""Why a client did not get an event, from what brokers know."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.console.why import answered


def known(broker: str, **more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "broker": broker,
        "traced_since": 1.0,
        "event": None,
        "trace": [],
        "state": "",
        "moved_to": "",
        "waiting": False,
        "subscriptions": [],
        "permitted": True,
        "wanted_by": {},
    }
    return {**base, **more}


def sub(fits: bool, because: str = "", topic_fits: bool = True) -> dict[str, Any]:
    return {"key": "air/#", "condition": "pm25 > 150", "topic_fits": topic_fits, "fits": fits, "because": because}


EVENT = {"event": "hub:1", "topic": "air/x", "values": {}}
PUBLISHED = {"kind": "published", "client": "hub", "time": 1.0, "note": "", "peer": ""}


def record(kind: str, note: str = "") -> dict[str, Any]:
    return {"kind": kind, "client": "van", "time": 2.0, "note": note, "peer": ""}


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([known("a", event=EVENT)], "No broker that answers has a session of van."),
        (
            [known("a", event=EVENT), known("b", state="connected")],
            "van has subscribed to nothing.",
        ),
        (
            [known("a", event=EVENT), known("b", state="connected", subscriptions=[sub(False, "fails at pm25 > 150")])],
            "Its subscription does not want it: ‘pm25 > 150’ fails at pm25 > 150.",
        ),
        (
            [known("a", event=EVENT), known("b", state="connected", subscriptions=[sub(True)], permitted=False)],
            "The user of van may not see it: no grant matches.",
        ),
        (
            [known("a", event=EVENT, wanted_by={"b": False}), known("b", state="connected", subscriptions=[sub(True)])],
            "a did not send it to b: it thinks that it does not want it.",
        ),
        (
            [known("a", event=EVENT, state="away", subscriptions=[sub(True)], trace=[record("dropped", "queue")])],
            "It was dropped at a: more waited for the client than [backlog] allows.",
        ),
        (
            [known("a", event=EVENT, state="connected", subscriptions=[sub(True)], trace=[record("delivered")])],
            "van did get it.",
        ),
        (
            [known("a", event=EVENT, state="away", subscriptions=[sub(True)], waiting=True)],
            "It waits at a until van takes it.",
        ),
        (
            [known("a", trace=[PUBLISHED]), known("b", moved_to="c", state="moved")],
            "No broker that answers has a session of van; b last sent it to c, which does not answer.",
        ),
    ],
)
def test_the_first_thing_that_is_not_so_is_the_answer(told: list[dict[str, Any]], sentence: str) -> None:
    assert answered("van", told, thought_of=False).sentence == sentence


def test_an_event_that_is_only_thought_of_would_be_got() -> None:
    told = [known("a", state="connected", subscriptions=[sub(True)])]
    assert answered("van", told, thought_of=True).sentence == "van would get it."


def test_nobody_who_recorded_nothing_claims_to_know() -> None:
    told = [known("a", state="connected", subscriptions=[sub(False, "the event is not known", False)])]
    assert "No broker has recorded this event" in answered("van", told, thought_of=False).sentence
