from __future__ import annotations

from math import inf

import msgspec
import pytest
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Stage, joined

from godwit.protocols.handoff_schemes.messages import Recall
from godwit.protocols.handoff_schemes.proactive.pooled import keeper
from godwit.protocols.handoff_schemes.rules import HARDENED, OURS

ROOM = 4
"""Events that fit into one broker's memory."""


def away(*, pool: bool, events: int, rules: object = HARDENED) -> Stage:
    """Three brokers with little memory, and a client that is away while so many events come."""
    options = msgspec.structs.replace(UNBOUNDED, buffer_b=ROOM, pool=pool, pool_wait_s=inf, rules=rules)
    stage = joined("ABC", "AB", "AC", "BC", options=options)
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    for _ in range(events):
        stage.publish(to="ABC")
    return stage


@pytest.mark.feature("proactive-handoff F4")
@pytest.mark.parametrize("place", ["A", "B", "C"])
@pytest.mark.parametrize("rules", [HARDENED, OURS], ids=["hardened", "ours"])
def test_three_small_memories_hold_three_times_as_much(place: str, rules: object) -> None:
    alone, together = away(pool=False, events=2 * ROOM, rules=rules), away(pool=True, events=2 * ROOM, rules=rules)
    for stage in (alone, together):
        stage.clients["s"].connect(place)
        stage.settle()
        stage.publish(to="ABC")
        stage.settle()
    assert together.got["s"] == list(range(2 * ROOM + 1))
    assert alone.got["s"] == list(range(ROOM, 2 * ROOM + 1))


@pytest.mark.feature("proactive-handoff F4")
def test_nobody_throws_away_what_is_being_called_in() -> None:
    stage = away(pool=True, events=2 * ROOM)
    stage.clients["s"].connect("B")
    assert stage.got["s"] == []
    assert "Moved" not in stage.waiting("B", "A")
    stage.carry_all("B", "A")
    stage.carry_all("A", "B")
    assert "Recall" in stage.waiting("B", "C")
    assert stage.waiting("A", "C") == []
    stage.settle()
    assert stage.got["s"] == list(range(2 * ROOM))


@pytest.mark.feature("proactive-handoff F4")
def test_who_does_not_answer_is_not_waited_for_for_ever() -> None:
    stage = away(pool=True, events=2 * ROOM)
    for broker in stage.brokers.values():
        broker.options = msgspec.structs.replace(broker.options, pool_wait_s=1.0)
    stage.clients["s"].connect("B")
    stage.mail["B", "C"].clear()
    stage.settle()
    assert stage.got["s"] == []
    stage.pass_time(1.0)
    assert stage.got["s"] == sorted(stage.got["s"])
    assert len(stage.got["s"]) > ROOM


def test_everybody_agrees_who_keeps_what_and_a_stranger_s_question_is_answered() -> None:
    holders = ("A", "B", "C")
    assert [keeper(holders, ("P", i)) for i in range(4)] == ["A", "B", "C", "A"]
    assert keeper((), ("P", 1)) == ""
    stage = Stage("A")
    stage.brokers["A"].receive("x", Recall("nobody", 3, (("P", 1),)))
    assert stage.waiting("A", "x") == ["Recalled"]
