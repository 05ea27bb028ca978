"""Whose a condition is stays known whatever is added and removed, and who has none left is forgotten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.broker.api import Limits, Subscription
from godwit.protocols.broker.interest.owners import NOBODY, Owners
from godwit.protocols.broker.interest.subscribers import Group
from godwit.protocols.broker.session.parse import understood
from godwit.protocols.broker.session.state import Session, Sub

SESSIONS = [Session(f"c{number}", 1) for number in range(4)]
GROUP = Group(("g", "#", ""))


def sub(session: Session, number: int, identifier: int = 0) -> Sub:
    wanted = Subscription(str(number), "#", "x > 1", identifier=identifier)
    return Sub(session, wanted, understood(wanted, Limits()), 1)


steps = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.booleans()), max_size=40)


@given(steps)
def test_owners_are_who_asked_whatever_was_added_and_removed_before(steps: list[tuple[int, int, bool]]) -> None:
    owners, asked, number = Owners(), dict[int, Session | Sub | Group](), 0
    for who, skipped, removes in steps:
        if removes and asked:
            gone = sorted(asked)[who % len(asked)]
            owners.remove(gone)
            del asked[gone]
        number += skipped
        if who < len(SESSIONS):
            owners.add(number, sub(SESSIONS[who], number))
            asked[number] = SESSIONS[who]
        else:  # what is told of the subscription too, or is a group's, is nobody else's
            one = GROUP if who == len(SESSIONS) else sub(SESSIONS[0], number, identifier=number)
            owners.add(number, one)
            asked[number] = one
    assert {at: owners[owner] for at, owner in enumerate(owners.of) if owner != NOBODY} == asked
    assert len(owners) == len(set(asked.values()))


def test_numbers_of_owners_are_used_again() -> None:
    owners = Owners()
    for number in range(100):
        owners.add(number, sub(Session(f"s{number}", 1), number))
        owners.remove(number)
    assert max(owners.of, default=NOBODY) == NOBODY
    owners.add(100, sub(SESSIONS[0], 100))
    assert owners.of[100] == 0
