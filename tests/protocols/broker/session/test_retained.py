"""Which of two retained publications is the last, where one broker matches what others took."""

from __future__ import annotations

import msgspec
import pytest

from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.retained import CLEARED_S, Retained
from godwit.protocols.broker.store import MemoryStore

SECOND = Publication("p", 2, "b/y", b"second", 1, retain=True, time=20.0, said_under=(300, True))
FIRST = Publication("p", 1, "b/y", b"first", 1, retain=True, time=30.0, said_under=(200, False))
NOW_S = 1000.0


def retained(known: Publication = SECOND) -> Retained:
    one = Retained(MemoryStore({}, lambda call: call()))
    one.keep(known, "b1", NOW_S)
    return one


def is_last(late: Publication, known: Publication = SECOND, now: float = NOW_S) -> bool:
    one = retained(known)
    return one.is_news(one.ordered(late, now))


def test_what_a_publisher_has_replaced_without_waiting_for_it_comes_too_late() -> None:
    assert not is_last(FIRST)


@pytest.mark.parametrize("time", [10.0, 20.0, 30.0])
def test_whatever_calendars_say(time: float) -> None:
    assert not is_last(msgspec.structs.replace(FIRST, time=time))
    assert is_last(msgspec.structs.replace(FIRST, time=time, said_under=(400, False)))


@pytest.mark.parametrize(
    "late",
    [
        msgspec.structs.replace(FIRST, publisher="another"),
        msgspec.structs.replace(FIRST, said_under=None),
        msgspec.structs.replace(FIRST, said_under=SECOND.said_under),
    ],
)
def test_otherwise_what_is_matched_later_is_the_last(late: Publication) -> None:
    assert is_last(late)


@pytest.mark.parametrize(
    "known",
    [
        msgspec.structs.replace(SECOND, said_under=(300, False)),
        msgspec.structs.replace(SECOND, said_under=None),
        msgspec.structs.replace(SECOND, passage=("site/b1/1", 1)),
    ],
)
def test_so_it_is_where_its_publisher_had_waited_or_shows_nothing(known: Publication) -> None:
    assert is_last(FIRST, known)


def test_after_a_day_nothing_is_taken_for_late() -> None:
    assert not is_last(FIRST, now=NOW_S + CLEARED_S)
    assert is_last(FIRST, now=NOW_S + CLEARED_S + 1.0)
