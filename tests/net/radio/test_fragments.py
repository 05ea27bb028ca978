"""Messages in parts: whole again whatever the order, and never more memory than agreed."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.radio.fragments import HEAD, WAIT_S, Assembly, cut


@given(st.binary(min_size=1, max_size=5_000), st.integers(30, 200), st.randoms(use_true_random=False))
def test_parts_fit_and_make_the_message_in_any_order_with_any_repeated(message: bytes, room: int, dice: Random) -> None:
    parts = cut(message, 7, room)
    assert all(len(part) <= room for part in parts)
    assembly = Assembly(100_000, Counter())
    again = dice.choices(parts, k=3)
    for part in again:
        assembly.add("b", part, 0.0)
    dice.shuffle(parts)
    made = [whole for part in parts if (whole := assembly.add("a", part, 0.0)) is not None]
    assert made == [message]


def test_a_message_of_too_many_parts_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit into 255 parts"):
        cut(bytes(10_000), 1, 30)


def test_senders_and_messages_are_told_apart() -> None:
    assembly = Assembly(100_000, Counter())
    one, other = cut(b"a" * 100, 1, 60), cut(b"b" * 100, 1, 60)
    assert assembly.add("x", one[0], 0.0) is None
    assert assembly.add("y", other[0], 0.0) is None
    assert assembly.add("y", other[1], 0.0) == b"b" * 100
    assert assembly.add("x", one[1], 0.0) == b"a" * 100
    assert assembly.bytes == len(assembly) == 0


def test_what_is_incomplete_goes_after_a_while_and_when_there_is_too_much_of_it() -> None:
    dropped: Counter[str] = Counter()
    assembly = Assembly(1_000, dropped)
    for number in range(20):
        assembly.add("x", cut(bytes(300), number, 200)[0], 0.0)
    assert assembly.bytes <= 1_000
    assert dropped["incomplete"] == 20 - len(assembly)
    assembly.add("x", cut(bytes(300), 99, 200)[0], WAIT_S + 1)
    assert len(assembly) == 1


def test_parts_that_contradict_each_other_are_malformed() -> None:
    dropped: Counter[str] = Counter()
    assembly = Assembly(1_000, dropped)
    assembly.add("x", HEAD.pack(1, 0, 3) + b"a", 0.0)
    assembly.add("x", HEAD.pack(1, 1, 2) + b"b", 0.0)
    assembly.add("x", HEAD.pack(2, 5, 3) + b"c", 0.0)
    assembly.add("x", b"short", 0.0)
    assert dropped["malformed"] == 3
    assert assembly.bytes == 0
