"""The life of one session at one broker: every legal step.

A session is a stay of a client, named by the client and the number of its hop: a client may be back at a broker where
an earlier stay of it is still open (spec 2.11.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from godwit.protocols.host import LocalError


class Stay(Enum):
    START = auto()
    CONNECTED = auto()
    BUFFERING = auto()
    """The client is away, and what comes for it is kept."""
    MOVING_IN = auto()
    """The client is here; what it missed is still on its way from the broker before."""
    WAITING = auto()
    """The client has left again before that came."""
    DRAINING = auto()
    """As WAITING, and the next broker has already asked: it gets everything as soon as it is here."""
    PREPARING = auto()
    """The client is still at the broker before, which has asked for a place here."""
    PREPARED = auto()
    """All that it missed is here, and only the client is missing."""
    LINGERING = auto()
    """Handed over; what still comes late is sent after it."""
    ENDED = auto()


class Step(Enum):
    OPEN = auto()
    ARRIVE = auto()
    PREPARE = auto()
    LEAVE = auto()
    RETURN = auto()
    FILL = auto()
    """What the client missed elsewhere has come."""
    YIELD = auto()
    """The next broker has asked, and what it asks for can be had."""
    LINGER = auto()
    """The same, but something may still be on its way here."""
    END = auto()


TRANSITIONS: Mapping[Stay, Mapping[Step, Stay]] = {
    Stay.START: {Step.OPEN: Stay.CONNECTED, Step.ARRIVE: Stay.MOVING_IN, Step.PREPARE: Stay.PREPARING},
    Stay.CONNECTED: {Step.LEAVE: Stay.BUFFERING, Step.YIELD: Stay.ENDED},
    Stay.BUFFERING: {Step.RETURN: Stay.CONNECTED, Step.YIELD: Stay.ENDED, Step.LINGER: Stay.LINGERING},
    Stay.MOVING_IN: {Step.FILL: Stay.CONNECTED, Step.LEAVE: Stay.WAITING},
    Stay.WAITING: {Step.FILL: Stay.BUFFERING, Step.RETURN: Stay.MOVING_IN, Step.YIELD: Stay.DRAINING},
    Stay.DRAINING: {Step.FILL: Stay.ENDED},
    Stay.PREPARING: {Step.ARRIVE: Stay.MOVING_IN, Step.FILL: Stay.PREPARED},
    Stay.PREPARED: {Step.ARRIVE: Stay.CONNECTED},
    Stay.LINGERING: {Step.END: Stay.ENDED},
    Stay.ENDED: {},
}


def after(stay: Stay, step: Step) -> Stay:
    """The next state; a step that the table does not have is a bug of the caller, and nothing has changed."""
    try:
        return TRANSITIONS[stay][step]
    except KeyError:
        raise LocalError(f"a session that is {stay.name} cannot {step.name}") from None
