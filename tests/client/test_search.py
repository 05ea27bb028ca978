"""The search for a broker: what is told of it, how often, and when it ends."""

from __future__ import annotations

import errno
import socket

import pytest

from godwit.client.errors import UnreachableError
from godwit.client.search import AGAIN_S, Search
from godwit.net.address import Address

A, B = Address("a", 1883), Address("b", 1883)
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "")
NOBODY = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_round_is_over_when_every_broker_has_failed() -> None:
    search = Search(5.0, first=True)
    search.failed(A, REFUSED)
    assert not search.is_round([A, B])
    search.failed(B, REFUSED)
    assert search.is_round([A, B])
    assert not search.is_round([A, B])


def test_the_same_failure_is_told_once_in_a_while_and_another_at_once() -> None:
    search = Search(5.0, first=True)
    search.failed(A, REFUSED)
    assert str(search.tell([A], 0.0)) == "a:1883: connection refused"
    assert search.tell([A], AGAIN_S - 1) is None
    assert search.tell([A], AGAIN_S) is not None
    search.failed(A, TimeoutError())
    assert str(search.tell([A], AGAIN_S + 1)) == "a:1883: no answer within 5 s"


def test_names_of_nobody_end_the_first_search_when_no_broker_is_left() -> None:
    search = Search(5.0, first=True)
    search.failed(A, NOBODY)
    search.failed(B, REFUSED)
    assert search.is_round([A, B])
    search.failed(A, NOBODY)
    search.failed(B, NOBODY)
    with pytest.raises(UnreachableError, match="a:1883: the name cannot be resolved"):
        search.is_round([A, B])


def test_whoever_was_in_once_goes_on_searching() -> None:
    search = Search(5.0, first=False)
    search.failed(A, NOBODY)
    assert search.is_round([A])
