"""Which failures are final, and how they are told."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from godwit.client.errors import BusyError, ClientError, TakenOverError, UnreachableError, is_final, why
from godwit.errors import GodwitError
from godwit.events import EventError
from godwit.filters.errors import FilterError
from godwit.net.address import AddressError

NOBODY = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
NO_NETWORK = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


@pytest.mark.parametrize("kind", [ClientError, UnreachableError, TakenOverError, FilterError, EventError, AddressError])
def test_all_errors_are_of_one_family(kind: type[Exception]) -> None:
    assert issubclass(kind, GodwitError)


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (NOBODY, True),
        (NO_NETWORK, False),
        (ssl.SSLError("bad certificate"), True),
        (UnicodeError("label empty or too long"), True),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), False),
        (TimeoutError(), False),
        (BusyError("too many clients"), False),
    ],
)
def test_names_of_nobody_and_tls_that_is_not_trusted_are_final_and_nothing_else(error: Exception, final: bool) -> None:
    assert is_final(error) is final


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TimeoutError(), "no answer within 5 s"),
        (NOBODY, "the name cannot be resolved: Name or service not known"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "connection refused"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] again"), "connection refused"),
        (BusyError("too many clients"), "too many clients"),
        (ConnectionResetError("the connection has ended"), "the connection has ended"),
    ],
)
def test_a_failure_is_told_in_words(error: Exception, words: str) -> None:
    assert why(error, 5.0) == words
