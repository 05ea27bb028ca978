from __future__ import annotations

from itertools import product

import pytest

from godwit.protocols.handoff_schemes.lifecycle import TRANSITIONS, Life, Step, after
from godwit.protocols.host import LocalError

IN_TABLE = [(life, step) for life, steps in TRANSITIONS.items() for step in steps]
NOT_IN_TABLE = [pair for pair in product(Life, Step) if pair not in IN_TABLE]


@pytest.mark.feature("proactive-handoff F47")
@pytest.mark.parametrize(("life", "step"), NOT_IN_TABLE, ids=lambda x: x.name)
def test_a_step_that_is_not_in_the_table_is_refused(life: Life, step: Step) -> None:
    with pytest.raises(LocalError, match=f"state {life.name} cannot {step.name}"):
        after(life, step)


def test_the_table_is_the_spec_s() -> None:
    assert {(life.name, step.name, TRANSITIONS[life][step].name) for life, step in IN_TABLE} == {
        ("START", "CONNECT", "CONNECTED"),
        ("START", "ARRIVE", "MOVE_IN"),
        ("CONNECTED", "NO_REPLY", "DISCONNECTED"),
        ("CONNECTED", "UNSUBSCRIBE", "UNSUBSCRIBED"),
        ("DISCONNECTED", "RETURN", "CONNECTED"),
        ("DISCONNECTED", "MOVED", "MOVE_OUT"),
        ("DISCONNECTED", "TIMEOUT", "UNSUBSCRIBED"),
        ("MOVE_OUT", "ARRIVE", "MOVE_IN"),
        ("MOVE_IN", "READY", "CONNECTED"),
    }
    assert set(TRANSITIONS) == set(Life)
