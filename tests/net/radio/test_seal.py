"""Frames of the air: only those of nodes that know the key and are alive, each once and soon."""

from __future__ import annotations

from collections import deque
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.radio.seal import HELD_MAX, LATE_US, NAME_B_MAX, STRANGERS_MAX, Kind, Opened, Seals, key_of

KEY = b"0123456789abcdef"


class Node:
    """One node on an air that remembers everything; its clock may be wrong, and run fast or slow."""

    dice = Random(7)

    def __init__(self, air: Air, name: str, key: bytes = KEY) -> None:
        self.air = air
        self.name = name
        self.offset_s, self.rate = self.dice.uniform(0, 1e6), 1.0
        self.got: list[tuple[str, bytes]] = []
        self.seals = Seals(key, name, lambda: self.offset_s + self.rate * air.now_s, lambda: self.dice.getrandbits(64))
        self.seals.on_frame = self._on_frame
        self.seals.on_answer = lambda: air.waiting.append(self)

    def _on_frame(self, opened: Opened) -> None:
        self.got.append((opened.sender, opened.body))

    def say(self, body: bytes) -> bytes:
        frame = self.seals.seal(Kind.WHOLE, body)
        self.air.carry(self, frame)
        return frame


class Air:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.nodes: list[Node] = []
        self.waiting: deque[Node] = deque()
        self.recorded: list[bytes] = []

    def node(self, name: str, key: bytes = KEY) -> Node:
        self.nodes.append(Node(self, name, key))
        return self.nodes[-1]

    def carry(self, sender: Node, frame: bytes) -> None:
        """To all others, and answers until nobody has any."""
        self.recorded.append(frame)
        for node in self.nodes:
            if node is not sender:
                node.seals.open(frame)
        while self.waiting:
            other = self.waiting.popleft()
            answer = other.seals.greeting()
            if answer is not None:
                self.carry(other, answer)

    def wait(self, for_s: float) -> None:
        self.now_s += for_s


def pair() -> tuple[Air, Node, Node]:
    """Two that have met."""
    air = Air()
    a, b = air.node("a"), air.node("b")
    a.say(b"hello")
    b.say(b"hello")
    a.got.clear()
    b.got.clear()
    return air, a, b


def test_strangers_prove_themselves_at_the_first_word_and_nothing_of_it_is_lost() -> None:
    air = Air()
    a, b = air.node("a"), air.node("b")
    a.say(b"first")
    a.say(b"second")
    b.say(b"third")
    assert b.got == [("a", b"first"), ("a", b"second")]
    assert a.got == [("b", b"third")]
    assert not a.seals.dropped
    assert not b.seals.dropped


def test_after_that_nobody_greets_any_more() -> None:
    air, a, b = pair()
    before = len(air.recorded)
    for _ in range(200):
        a.say(b"x")
        b.say(b"x")
        air.wait(1.0)
    assert len(air.recorded) - before == 400
    assert len(a.got) == len(b.got) == 200


def test_a_frame_made_with_another_key_is_forged() -> None:
    air, _, b = pair()
    forger = air.node("a", b"another key 01234")
    forger.say(b"lies")
    assert b.got == []
    assert b.seals.dropped == {"forged": 1}


@given(st.data())
def test_a_frame_with_any_bit_changed_is_dropped(data: st.DataObject) -> None:
    _, a, b = pair()
    frame = bytearray(a.seals.seal(Kind.WHOLE, b"some body"))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    b.seals.open(bytes(frame))
    assert b.got == []
    assert sum(b.seals.dropped.values()) == 1


@given(st.binary(max_size=200))
def test_noise_is_malformed(noise: bytes) -> None:
    _, _, b = pair()
    b.seals.open(noise)
    b.seals.open(noise[:2].replace(noise[:2], b"gA") + noise[2:])
    assert b.got == []
    assert b.seals.dropped["malformed"] + b.seals.dropped["forged"] == 2


def test_a_frame_is_taken_once() -> None:
    _, a, b = pair()
    frames = [a.say(b"%d" % number) for number in range(50)]
    for frame in frames * 3:
        b.seals.open(frame)
    assert len(b.got) == 50
    assert b.seals.dropped == {"replayed": 150}


def test_frames_may_overtake_each_other() -> None:
    _, a, b = pair()
    frames = [a.seals.seal(Kind.WHOLE, b"%d" % number) for number in range(20)]
    Random(3).shuffle(frames)
    for frame in frames:
        b.seals.open(frame)
    assert len(b.got) == 20


def test_a_frame_that_was_kept_from_its_hearer_is_no_good_later() -> None:
    air, a, b = pair()
    kept = a.seals.seal(Kind.WHOLE, b"attack at dawn")
    air.wait(LATE_US / 1e6 + 1)
    b.seals.open(kept)
    a.say(b"next")
    b.seals.open(kept)
    assert b.got == [("a", b"next")]


def test_a_fresh_node_does_not_believe_a_recording() -> None:
    air, a, b = pair()
    for number in range(20):
        a.say(b"%d" % number)
        b.say(b"%d" % number)
        air.wait(3.0)
    fresh, air.nodes = Node(air, "c"), []
    for _ in range(3):
        for frame in air.recorded[:]:
            fresh.seals.open(frame)
        air.wait(100.0)
    assert fresh.got == []


def test_a_node_that_restarts_does_not_believe_what_it_heard_before_and_is_believed_at_once() -> None:
    air, a, b = pair()
    a.say(b"before")
    recorded = air.recorded[:]
    air.nodes.remove(b)
    air.wait(5.0)
    again = air.node("b")
    again.say(b"here again")
    assert a.got[-1] == ("b", b"here again")
    for frame in recorded:
        again.seals.open(frame)
    assert again.got == []
    a.say(b"after")
    assert again.got == [("a", b"after")]


def test_frames_of_a_senders_former_life_do_not_pass_for_its_present_one() -> None:
    air, a, b = pair()
    old = [a.say(b"old %d" % number) for number in range(5)]
    air.nodes.remove(a)
    air.wait(20.0)
    a = air.node("a")
    a.say(b"new")
    for frame in old:
        b.seals.open(frame)
    assert b.got[5:] == [("a", b"new")]


@pytest.mark.parametrize("rate", [0.999, 1.001])
def test_clocks_that_run_apart_are_challenged_again_and_nothing_is_lost(rate: float) -> None:
    air, a, b = pair()
    a.rate = rate
    air.wait(1e5)
    for _ in range(50):
        a.say(b"x")
        b.say(b"x")
        air.wait(5_000.0)
    assert len(a.got) == len(b.got) == 50


def test_two_nodes_of_one_name_are_noticed() -> None:
    air, _, b = pair()
    air.node("b").say(b"I am b")
    assert set(b.seals.dropped) == {"namesake"}


def test_a_node_does_not_hear_itself() -> None:
    _, a, _ = pair()
    a.seals.open(a.seals.seal(Kind.WHOLE, b"echo"))
    assert a.got == []
    assert not a.seals.dropped


def test_what_strangers_may_cost_is_bounded() -> None:
    air, a, b = pair()
    b.seals.on_answer = lambda: None
    for number in count():
        stranger = Node(air, f"s{number}")
        for _ in range(HELD_MAX + 4):
            b.seals.open(stranger.seals.seal(Kind.WHOLE, b"x"))
        if number > 2 * STRANGERS_MAX:
            break
    assert b.got == []
    assert b.seals.dropped["unproven"] >= STRANGERS_MAX * HELD_MAX
    a.say(b"friend")
    assert b.got == [("a", b"friend")]


def test_a_name_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 64 bytes"):
        Seals(KEY, "x" * (NAME_B_MAX + 1), lambda: 0.0, lambda: 1)
    assert key_of(b"") != key_of(KEY)
