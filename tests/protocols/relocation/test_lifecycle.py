"""The table of a session's life: what is in it happens, what is not is refused and changes nothing."""

from __future__ import annotations

from itertools import product

import pytest

from godwit.protocols.host import LocalError
from godwit.protocols.relocation.lifecycle import TRANSITIONS, Stay, Step, after
from godwit.protocols.relocation.sessions import Session

pytestmark = pytest.mark.feature("content-routing F33")


@pytest.mark.parametrize(("stay", "step"), list(product(Stay, Step)))
def test_every_pair_is_in_the_table_or_refused(stay: Stay, step: Step) -> None:
    session = Session("c", 0, ())
    session.stay = stay
    if step in TRANSITIONS[stay]:
        assert session.step(step) is TRANSITIONS[stay][step]
    else:
        with pytest.raises(LocalError, match=f"{stay.name} cannot {step.name}"):
            session.step(step)
        assert session.stay is stay


def test_every_state_can_be_reached_and_left_but_the_last() -> None:
    reached = {Stay.START} | {to for steps in TRANSITIONS.values() for to in steps.values()}
    assert reached == set(Stay)
    assert [stay for stay in Stay if not TRANSITIONS[stay]] == [Stay.ENDED]
    assert after(Stay.START, Step.OPEN) is Stay.CONNECTED
