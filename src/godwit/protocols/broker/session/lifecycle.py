"""The life of a session at one broker: every legal step, as a table.

A broker may have several objects for one client at the same time: its session, a copy of it, shadows of earlier stays.
Each has a life of its own. What a session waits for from other brokers (`Gate`, `Upstream`) is no part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NoReturn

from godwit.protocols.broker import messages
from godwit.protocols.host import LocalError


class State(Enum):
    """What this broker may do with the session. The values are what is on the disk."""

    START = "start"
    """Not there yet."""
    ATTACHED = "attached"
    """The client's, and the client is connected here."""
    RESTING = "resting"
    """The client's, without a connection: what comes waits, and others may hold copies."""
    RESERVED = "reserved"
    """Resting, and the holder of a copy may have let the client in: ask there before anybody gets the session."""
    STANDBY = "standby"
    """A copy of a session that rests elsewhere, in memory only. It may be dropped at any moment."""
    COMMITTED = "committed"
    """A copy whose client is here: it is on the disk, and its source has been asked for the session."""
    SHADOW = "shadow"
    """The session went to another broker. What still comes for it is passed on to there."""
    ENDED = "ended"
    """Nothing of it is left."""


class Cause(Enum):
    OPENED = "a client begins it here"
    ARRIVED = "another broker has sent it"
    COPIED = "another broker has sent a copy of it"
    ADMITTED = "its client is let in"
    LEFT = "the connection has ended"
    RESERVED = "the holder of a copy asks that nobody else gets it"
    FREED = "that holder has not taken it"
    ASKED = "its client is here, and the source of the copy is asked for the session"
    TAKEN_UP = "the copy is the session from now on"
    MOVED = "it goes to another broker"
    OVER = "nobody needs it any longer"


TRANSITIONS: Mapping[State, Mapping[Cause, State]] = {
    State.START: {
        Cause.OPENED: State.RESTING,
        Cause.ARRIVED: State.RESTING,
        Cause.COPIED: State.STANDBY,
    },
    State.ATTACHED: {
        Cause.LEFT: State.RESTING,
    },
    State.RESTING: {
        Cause.ADMITTED: State.ATTACHED,
        Cause.RESERVED: State.RESERVED,
        Cause.MOVED: State.SHADOW,
        Cause.OVER: State.ENDED,
    },
    State.RESERVED: {
        Cause.ADMITTED: State.ATTACHED,
        Cause.RESERVED: State.RESERVED,
        Cause.FREED: State.RESTING,
        Cause.MOVED: State.SHADOW,
        Cause.OVER: State.ENDED,
    },
    State.STANDBY: {
        Cause.ASKED: State.COMMITTED,
        Cause.OVER: State.ENDED,
    },
    State.COMMITTED: {
        Cause.TAKEN_UP: State.RESTING,
        Cause.OVER: State.ENDED,
    },
    State.SHADOW: {
        Cause.OVER: State.ENDED,
    },
    State.ENDED: {},
}

OURS = (State.ATTACHED, State.RESTING, State.RESERVED)
"""Those of the client's session itself, where no other broker has it."""

CAUSED_BY: Mapping[type[messages.Content], tuple[Cause, ...]] = {
    messages.Session: (Cause.ARRIVED, Cause.ADMITTED, Cause.MOVED, Cause.OVER),
    messages.Copy: (Cause.COPIED, Cause.OVER),
    messages.Fetch: (Cause.LEFT, Cause.MOVED, Cause.OVER),
    messages.Place: (Cause.LEFT, Cause.ASKED, Cause.MOVED, Cause.OVER),
    messages.Placed: (Cause.LEFT, Cause.ASKED, Cause.MOVED, Cause.OVER),
    messages.Given: (Cause.TAKEN_UP, Cause.ADMITTED, Cause.LEFT, Cause.MOVED, Cause.OVER),
    messages.Nothing: (Cause.FREED, Cause.ADMITTED, Cause.ASKED, Cause.LEFT, Cause.MOVED, Cause.TAKEN_UP, Cause.OVER),
    messages.Reserve: (Cause.RESERVED,),
    messages.Reserved: (Cause.TAKEN_UP, Cause.ADMITTED),
    messages.Drop: (Cause.OVER,),
    messages.Turn: (Cause.OVER,),
    messages.Turned: (Cause.OVER,),
    messages.Through: (Cause.OVER,),
    messages.Heard: (Cause.OVER,),
}
"""What each message may bring about, perhaps one after the other. All others change no state, and neither does any of
these where the table has no such step. Streams deliver late what was true when it was said: a message about a place or
a copy that is no longer there is legal, and is ignored."""


def refused(state: State, cause: Cause) -> NoReturn:
    """A step that the table does not have is a bug of the caller, and nothing has changed."""
    raise LocalError(f"a session that is {state.value} cannot be told that {cause.value}")
