"""What a client may be told, once, when it is made."""

from __future__ import annotations

import ssl
from collections.abc import Callable

import msgspec

from godwit.client.errors import ClientError

KEEP_S, KEEP_UNNAMED_S = 3600.0, 60.0
"""How long brokers keep a session by default: of a client with a name, and of one that nobody can name again."""

Trouble = Callable[[ClientError], None]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    client: str = ""
    named: bool = True
    """False where the name was made up: nobody can come back under it, so `close` ends the session."""
    user: str | None = None
    password: str | None = None
    tls: ssl.SSLContext | None = None
    keep_s: float = KEEP_S
    """How long brokers keep the session of a client that is away."""
    wait_s: float | None = None
    """How long to try when no broker can be reached; None: for ever."""
    on_trouble: Trouble | None = None
    """Called with a `ClientError` each time something is told that is no end yet: nobody can be reached, or another
    program has taken the session over. Whatever it raises ends the client."""
    keep_alive_s: int = 20
    connect_s: float = 5.0
    """How long one broker is given to answer; and beside it the time for which brokers wait for a session, where this
    client has one and they have said so."""
    retry_s: float = 0.1
    retry_max_s: float = 5.0
    taken_over_s: float = 1.0
    """How long to stay away after another program has taken the session over; twice as long each time."""
    inflight_max: int = 1000
    """How many events come, or go, without being acknowledged."""
