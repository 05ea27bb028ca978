"""Compiled code as numba makes it."""

from __future__ import annotations

import numba

from godwit.tables.compiled.doors import Announcer


def test_compilation_is_announced_once_and_never_for_what_is_compiled_already() -> None:
    told: list[str] = []
    one, other = numba.njit(lambda a: a + 1), numba.njit(lambda a: a + 2)
    one(1)
    with Announcer(lambda: told.append("compiling")).listening():
        one(2)
        assert told == []
        other(1)
        other(1.5)
    assert told == ["compiling"]
