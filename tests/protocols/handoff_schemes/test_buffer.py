from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.events import Event
from godwit.protocols.handoff_schemes.buffer import SharedBuffer


def event(sequence: int, size_b: int = 10) -> Event:
    return Event("P", sequence, payload=bytes(size_b))


@pytest.mark.feature("proactive-handoff F4")
def test_one_copy_serves_everybody_and_goes_with_the_last() -> None:
    buffer = SharedBuffer(100)
    buffer.put(event(1), ["a"])
    buffer.put(event(1), ["b"])
    assert (len(buffer), buffer.used_b) == (1, 10)
    assert [e.sequence for e in buffer.take("a", {})] == [1]
    assert buffer.used_b == 10
    buffer.purge("b")
    assert (len(buffer), buffer.used_b) == (0, 0)


@pytest.mark.feature("proactive-handoff F4")
def test_the_oldest_gives_way_and_is_counted_for_all_who_wanted_it() -> None:
    told: list[tuple[str, int]] = []
    buffer = SharedBuffer(25, lambda key, gone: told.append((key, gone.sequence)))
    for sequence in (5, 1, 9):
        buffer.put(event(sequence), ["a", "b"])
    assert buffer.lost == Counter(a=1, b=1)
    assert sorted(told) == [("a", 5), ("b", 5)]
    assert [e.sequence for e in buffer.peek("a", {})] == [1, 9]
    buffer.put(event(10, size_b=26), ["a"])
    assert buffer.lost["a"] == 2
    assert [e.sequence for e in buffer.peek("a", {})] == [1, 9]


@pytest.mark.feature("proactive-handoff F4")
def test_marks_say_what_is_still_of_interest() -> None:
    buffer = SharedBuffer()
    for sequence in range(5):
        buffer.put(event(sequence), ["a"])
    assert [e.sequence for e in buffer.peek("a", {"P": 2})] == [3, 4]
    buffer.drop("a", {"P": 3})
    assert [e.sequence for e in buffer.peek("a", {})] == [4]
    assert buffer.take("nobody", {}) == []


@pytest.mark.feature("proactive-handoff F4")
def test_with_a_disk_below_what_gives_way_is_still_there() -> None:
    buffer = SharedBuffer(25, disk=True)
    for sequence in range(5):
        buffer.put(event(sequence), ["a", "b"])
    buffer.put(event(5, size_b=99), ["a"])
    assert buffer.used_b <= 99
    assert buffer.lost == Counter()
    assert [e.sequence for e in buffer.take("a", {})] == [0, 1, 2, 3, 4, 5]
    buffer.drop("b", {"P": 4})
    assert (len(buffer), buffer.used_b) == (0, 0)


puts = st.tuples(st.just("put"), st.integers(0, 12), st.sampled_from("abc"))
takes = st.tuples(st.sampled_from(["take", "purge"]), st.integers(-1, 12), st.sampled_from("abc"))


@pytest.mark.feature("proactive-handoff F4")
@given(st.lists(puts | takes), st.integers(0, 60))
def test_never_more_than_the_capacity_and_always_what_a_plain_list_would_hold(
    steps: list[tuple[str, int, str]], capacity_b: int
) -> None:
    buffer = SharedBuffer(capacity_b)
    plain: list[tuple[int, set[str]]] = []
    for verb, number, key in steps:
        if verb == "put":
            known = [keys for sequence, keys in plain if sequence == number]
            if known:
                known[0].add(key)
            elif capacity_b >= 10:
                plain = [*plain[max(0, len(plain) - capacity_b // 10 + 1) :], (number, {key})]
            buffer.put(event(number), [key])
        else:
            expected = sorted(sequence for sequence, keys in plain if key in keys and sequence > number)
            assert verb == "purge" or [e.sequence for e in buffer.take(key, {"P": number})] == expected
            buffer.purge(key)
            plain = [(sequence, keys - {key}) for sequence, keys in plain if keys - {key}]
        assert buffer.used_b == 10 * len(plain) <= max(capacity_b, 0)


@pytest.mark.feature("proactive-handoff F4")
def test_the_latest_are_remembered_for_nobody_in_particular_and_said_where_they_do_not_reach() -> None:
    buffer = SharedBuffer(100, latest_b=30)
    assert buffer.recall({}) == []
    for sequence in range(3, 8):
        buffer.remember(event(sequence))
    assert [e.sequence for e in buffer.recall({"P": 4}) or ()] == [5, 6, 7]
    assert [e.sequence for e in buffer.recall({"P": 6}) or ()] == [7]
    assert buffer.recall({"P": 3}) is None
    assert (len(buffer), buffer.used_b, buffer.lost) == (3, 30, Counter())


@pytest.mark.feature("proactive-handoff F4")
def test_what_others_keep_gives_way_first() -> None:
    buffer = SharedBuffer(30, keeps=lambda key, one: one.sequence % 2 == 0)
    for sequence in range(5):
        buffer.put(event(sequence), ["a"])
    assert [e.sequence for e in buffer.peek("a", {})] == [0, 2, 4]
    assert list(buffer.missing["a"]) == [("P", 1), ("P", 3)]
    assert [e.sequence for e in buffer.found([("P", 1), ("P", 2)])] == [2]
    buffer.purge("a")
    assert buffer.missing == {}
    assert (len(buffer), buffer.used_b) == (0, 0)
