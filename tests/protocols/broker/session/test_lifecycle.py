"""The life of a session: whatever is not in its table is refused and changes nothing, message or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from tests.protocols.broker.resting import copies, resting_world

from godwit.protocols.broker.messages import (
    Agreed,
    Amended,
    Astray,
    Awake,
    Barred,
    Carried,
    Ceded,
    Content,
    Copy,
    Crossed,
    Dealt,
    Divided,
    Dividing,
    Drop,
    Enter,
    Fetch,
    Forwarded,
    Found,
    Given,
    Heard,
    Hello,
    Kept,
    Marker,
    Noted,
    Nothing,
    Offered,
    Outlook,
    Owned,
    Pass,
    Passed,
    Place,
    Placed,
    Recall,
    Recalled,
    Replica,
    Reserve,
    Reserved,
    Retained,
    Routed,
    Said,
    Seated,
    Seek,
    Share,
    Sought,
    Standin,
    Summon,
    Through,
    Turn,
    Turned,
    Unclear,
    Uncopied,
    Undivided,
    Unfit,
    Wanted,
    Watched,
)
from godwit.protocols.broker.messages import Session as SessionMessage
from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.lifecycle import CAUSED_BY, OURS, TRANSITIONS, Cause, State
from godwit.protocols.broker.session.state import Session
from godwit.protocols.host import LocalError
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import Even, World

ABSENT = [(state, cause) for state in State for cause in Cause if cause not in TRANSITIONS[state]]
OLD = 1
"""An epoch before all others."""


def looks(session: Session) -> dict[str, object]:
    return {name: repr(getattr(session, name)) for name in Session.__slots__}


@pytest.mark.parametrize(("state", "cause"), ABSENT, ids=lambda one: one.name)
def test_a_step_that_the_table_does_not_have_is_refused_and_changes_nothing(state: State, cause: Cause) -> None:
    session = Session("s", 1)
    session.standing.state = state
    before = looks(session)
    with pytest.raises(LocalError):
        session.become(cause)
    assert looks(session) == before


def test_every_state_has_its_steps_and_can_be_reached_from_the_start() -> None:
    assert set(TRANSITIONS) == set(State)
    reached, left = {State.START}, [State.START]
    while left:
        new = set(TRANSITIONS[left.pop()].values()) - reached
        reached |= new
        left += new
    assert reached == set(State)


def test_from_every_state_a_session_can_end() -> None:
    for state in set(State) - {State.ENDED}:
        ahead, seen = {state}, set[State]()
        while ahead - seen:
            seen |= ahead
            ahead = {after for one in seen for after in TRANSITIONS[one].values()}
        assert State.ENDED in seen, state


def test_a_session_that_was_taken_up_is_ours_and_a_shadow_is_not() -> None:
    assert TRANSITIONS[State.COMMITTED][Cause.TAKEN_UP] in OURS
    assert TRANSITIONS[State.RESTING][Cause.MOVED] not in OURS


def _attached() -> tuple[World, str, Session]:
    world = Even(3, handoff="proactive")
    Client(world, "s").connect("b1").subscribe("a/#", qos=2)
    world.run()
    return world, "b1", world.sites["b1"].broker.sessions["s"]


def _resting() -> tuple[World, str, Session]:
    world, _, _ = resting_world()
    return world, "b1", world.sites["b1"].broker.sessions["s"]


def _reserved() -> tuple[World, str, Session]:
    world, _, _ = resting_world()
    session = world.sites["b1"].broker.sessions["s"]
    tell(world, "b1", "b3", Reserve("s", session.standing.copied))
    return world, "b1", session


def _standby() -> tuple[World, str, Session]:
    world, _, _ = resting_world()
    return world, "b3", copies(world)["b3"].session


def _committed() -> tuple[World, str, Session]:
    world, subscriber, _ = resting_world()
    copy = copies(world)["b3"]
    world.sites["b1"].crash()
    subscriber.connect("b3")
    world.run(1)
    return world, "b3", copy.session


def _shadow() -> tuple[World, str, Session]:
    world, subscriber, _ = resting_world(handoff="reactive")
    world.sites["b2"].crash()
    subscriber.connect("b3")
    world.run()
    (shadow,) = world.sites["b1"].broker.shadows["s"].values()
    return world, "b1", shadow


WORLDS: dict[State, Callable[[], tuple[World, str, Session]]] = {
    State.ATTACHED: _attached,
    State.RESTING: _resting,
    State.RESERVED: _reserved,
    State.STANDBY: _standby,
    State.COMMITTED: _committed,
    State.SHADOW: _shadow,
}

PUBLICATION = Publication("p", 1, "z/x", b"1", 1)
LATE: tuple[Content, ...] = (
    PUBLICATION,
    Place("s", OLD),
    Place("s", OLD, gone=True),
    Place("s", OLD, clean=True),
    Fetch("s", OLD),
    Fetch("s", OLD, OLD, held=True),
    SessionMessage("s", OLD, Carried(60.0), (), (), (), ("b1", "b2", "b3")),
    Nothing("s", OLD),
    Nothing("s", OLD, "b2", OLD),
    Forwarded("s", OLD, Kept(PUBLICATION, 1)),
    Turn("s", OLD, "b2", 0),
    Turned("s", OLD),
    Through("s", OLD, "b2"),
    Said("s", OLD, "b2"),
    Heard("s", OLD, "b2"),
    Hello(),
    Retained(PUBLICATION),
    Copy("s", OLD, Carried(60.0), (), (), (), ("b1", "b2", "b3")),
    Drop("s", OLD),
    Uncopied("s", OLD),
    Given("s", OLD, OLD, ()),
    Reserve("s", OLD),
    Reserved("s", OLD),
    Sought("s", 1),
    Found("s", 1, OLD, "b3"),
    Placed("b3", Place("s", OLD)),
    Recall("s", "a/#", 1, 0.0, ("", 0), "a/#", "", 0),
    Recalled("s", "a/#", 1, ((1, PUBLICATION),), ("f", 1), 0.0, live=True),
    Dealt(PUBLICATION, Share(("g", "z/#", ""))),
)


RING = (Routed, Wanted, Noted, Seek, Owned, Enter, Barred, Dividing, Agreed, Undivided, Divided, Ceded, Pass, Passed)
STANDINS = (Standin, Replica, Amended, Unfit, Watched, Awake)
"""What is for the fabric alone, and never comes to a session."""

SITES = (Outlook, Unclear, Seated, Offered, Summon, Marker, Crossed, Astray)
"""What gateways of sites say to brokers and to one another. Of sessions it speaks only over uplinks (`abroad`)."""


def tell(world: World, name: str, origin: str, content: Content) -> None:
    world.sites[name].fabric.on_content(origin, world.next_number(), content)


def test_every_message_is_tried() -> None:
    assert {type(one) for one in LATE} == set(get_args(Content)) - {*RING, *STANDINS, *SITES}


@pytest.mark.parametrize("content", LATE, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("state", WORLDS, ids=lambda one: one.name)
def test_a_message_that_comes_late_does_only_what_the_table_says(state: State, content: Content) -> None:
    world, name, session = WORLDS[state]()
    assert session.state is state
    before = looks(session)
    tell(world, name, "b2", content)
    causes, allowed = CAUSED_BY.get(type(content), ()), {state}
    for _ in causes:
        allowed |= {TRANSITIONS[one][cause] for one in allowed for cause in causes if cause in TRANSITIONS[one]}
    assert session.state in allowed
    if allowed == {state} and not isinstance(content, SessionMessage):  # what another session kept is added to this one
        assert looks(session) == before
