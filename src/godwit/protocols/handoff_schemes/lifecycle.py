"""The life of a mobile subscriber at one broker: every legal step, as the table of spec proactive-handoff 2.8.

Cases that the table leaves open are sequences of its steps: who is asked for elsewhere while believed connected goes
through DISCONNECTED; who leaves while its context is still under way stays MOVE_IN until it has come.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from godwit.protocols.host import LocalError


class Life(Enum):
    START = auto()
    CONNECTED = auto()
    DISCONNECTED = auto()
    MOVE_OUT = auto()
    MOVE_IN = auto()
    UNSUBSCRIBED = auto()


class Step(Enum):
    CONNECT = auto()
    NO_REPLY = auto()
    RETURN = auto()
    MOVED = auto()
    ARRIVE = auto()
    READY = auto()
    UNSUBSCRIBE = auto()
    TIMEOUT = auto()


TRANSITIONS: Mapping[Life, Mapping[Step, Life]] = {
    Life.START: {Step.CONNECT: Life.CONNECTED, Step.ARRIVE: Life.MOVE_IN},
    Life.CONNECTED: {Step.NO_REPLY: Life.DISCONNECTED, Step.UNSUBSCRIBE: Life.UNSUBSCRIBED},
    Life.DISCONNECTED: {
        Step.RETURN: Life.CONNECTED,
        Step.MOVED: Life.MOVE_OUT,
        Step.TIMEOUT: Life.UNSUBSCRIBED,
    },
    Life.MOVE_OUT: {Step.ARRIVE: Life.MOVE_IN},
    Life.MOVE_IN: {Step.READY: Life.CONNECTED},
    Life.UNSUBSCRIBED: {},
}


def after(life: Life, step: Step) -> Life:
    """The next state; a step that the table does not have is a bug of the caller, and nothing has changed."""
    try:
        return TRANSITIONS[life][step]
    except KeyError:
        raise LocalError(f"a subscriber in state {life.name} cannot {step.name}") from None
