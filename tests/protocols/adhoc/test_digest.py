"""A digest says exactly what went into it, and admits what it does not know."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.protocols.adhoc.digest import SPAN_MAX, Digest, digest_of

ids = st.tuples(st.sampled_from("abcd"), st.integers(0, 300))


@pytest.mark.feature("manet-cbr F24")
@given(st.lists(ids), ids)
def test_a_digest_is_the_set_it_was_made_of(events: list[tuple[str, int]], other: tuple[str, int]) -> None:
    digest = digest_of(events, 10)
    assert digest.complete
    assert all(event in digest for event in events)
    assert (other in digest) == (other in set(events))
    assert digest.lacks(other) == (other not in digest)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(digest), type=Digest) == digest


@given(st.lists(ids), ids, st.integers(1, 3))
def test_what_was_left_out_is_never_said_to_be_lacking(
    events: list[tuple[str, int]], other: tuple[str, int], publishers_max: int
) -> None:
    digest = digest_of(events, publishers_max)
    assert len(digest.runs) <= publishers_max
    assert not any(digest.lacks(event) for event in events)
    assert not (digest.lacks(other) and other in set(events))


def test_two_hundred_events_take_some_thirty_bytes() -> None:
    assert len(msgspec.msgpack.encode(digest_of([("p", i) for i in range(200)], 1))) < 40


def test_a_jump_in_numbers_does_not_blow_it_up() -> None:
    digest = digest_of([("p", 0), ("p", 10**12)], 1)
    assert ("p", 10**12) in digest
    assert not digest.lacks(("p", 0))
    assert len(digest.runs["p"].bits) <= SPAN_MAX // 8
