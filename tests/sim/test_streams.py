"""Dice by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.sim.streams import Streams

SEEDS = st.integers(0, 2**64)
NAMES = st.lists(st.text("abc123", min_size=1, max_size=3), min_size=1, max_size=3).map(tuple)


@given(SEEDS, NAMES, NAMES)
def test_a_stream_is_a_function_of_seed_and_name_whoever_else_draws(
    seed: int, name: tuple[str, ...], other: tuple[str, ...]
) -> None:
    alone, streams = Streams(seed).stream(*name), Streams(seed)
    another, among = streams.stream(*other), streams.stream(*name)
    for _ in range(3):
        another.random()
        assert alone.random() == among.random()
    if name != other:
        assert alone.getrandbits(64) != Streams(seed).stream(*other).getrandbits(64)


@given(SEEDS)
def test_other_seeds_and_children_have_other_dice(seed: int) -> None:
    streams = Streams(seed)
    drawn = [
        streams.stream("x").getrandbits(64),
        Streams(seed + 1).stream("x").getrandbits(64),
        streams.child("x").stream("x").getrandbits(64),
        streams.stream("x", "x").getrandbits(64),
        streams.stream("xx").getrandbits(64),
    ]
    assert len(set(drawn)) == len(drawn)


def test_the_streams_are_the_same_on_every_machine() -> None:
    assert Streams(7).stream("mobility", "b3").getrandbits(32) == 4260499364
    assert Streams(7).generator("mobility", "b3").integers(0, 2**32) == 1183516458
