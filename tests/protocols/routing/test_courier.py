"""A message is the neighbor's, or its sender still has it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.overlay import topic

from godwit.protocols.host import Host, Message, NodeId
from godwit.protocols.routing.courier import Carried, Courier, Numbered
from godwit.protocols.routing.messages import Ack, Bmig, Bsub, Claim, Fmig, Mig, Sub, Uns
from godwit.sim.wired import Wired
from godwit.sim.world import World

pytestmark = pytest.mark.feature("mft-pubsub F14")


class End:
    """Keeps what it is handed, and notes what became of what it hands over."""

    def __init__(self, host: Host) -> None:
        self.courier = Courier(host)
        self.got: list[Message] = []
        self.fate: list[str] = []

    def hand(self, to: NodeId, keep_on: Callable[[], bool] = lambda: False) -> None:
        self.courier.hand(
            to,
            Fmig(),
            lambda: self.fate.append("failed"),
            keep_on=keep_on,
            arrived=lambda: self.fate.append("arrived"),
        )

    def receive(self, sender: NodeId, message: Message, /) -> None:
        match message:
            case Ack():
                self.courier.acknowledged(sender, message)
            case Numbered():
                self.got.extend(self.courier.open(sender, message))


class Pair:
    def __init__(self, seed: int = 0) -> None:
        self.world = World(seed, Wired)
        assert isinstance(self.world.medium, Wired)
        self.wire = self.world.medium
        self.wire.connect("a", "b")
        self.world.add("a", End)
        self.world.add("b", End)

    def end(self, name: NodeId) -> End:
        core = self.world.nodes[name].core
        assert isinstance(core, End)
        return core

    def lose(self, sender: NodeId, to: NodeId, share: float) -> None:
        self.wire.links[sender][to].loss = share


def test_what_arrives_is_acknowledged_and_kept_once() -> None:
    pair = Pair()
    pair.end("a").hand("b")
    pair.world.run(10)
    assert pair.end("a").fate == ["arrived"]
    assert pair.end("b").got == [Fmig()]


def test_silence_is_a_failure_after_three_tries() -> None:
    pair = Pair()
    pair.lose("a", "b", 1.0)
    pair.end("a").hand("b")
    pair.world.run(0.6)
    assert pair.end("a").fate == []
    pair.world.run(1.0)
    assert pair.end("a").fate == ["failed"]


def test_a_lost_acknowledgement_brings_a_copy_that_is_recognised() -> None:
    pair = Pair()
    pair.lose("b", "a", 1.0)
    pair.end("a").hand("b")
    pair.world.run(10)
    assert pair.end("a").fate == ["failed"]
    assert pair.end("b").got == [Fmig()]


@given(st.integers(0, 10_000), st.floats(0.1, 0.9), st.integers(1, 20))
def test_whoever_insists_gets_everything_through_and_nothing_twice(seed: int, loss: float, count: int) -> None:
    pair = Pair(seed)
    pair.lose("a", "b", loss)
    pair.lose("b", "a", loss)
    for _ in range(count):
        pair.end("a").hand("b", keep_on=lambda: True)
    pair.world.run(10_000)
    assert pair.end("a").fate == ["arrived"] * count
    assert len(pair.end("b").got) == count


def test_insistence_ends_with_its_reason() -> None:
    pair = Pair()
    pair.lose("a", "b", 1.0)
    pair.end("a").hand("b", keep_on=lambda: pair.world.engine.now < 5)
    pair.world.run(5)
    assert pair.end("a").fate == []
    pair.world.run(15)
    assert pair.end("a").fate == ["failed"]


def test_repetitions_come_at_growing_distances() -> None:
    pair = Pair()
    sent: list[float] = []
    pair.lose("a", "b", 1.0)
    send = pair.wire.send

    def timed(sender: NodeId, to: NodeId, message: Message, /) -> None:
        sent.append(pair.world.engine.now)
        send(sender, to, message)

    pair.wire.send = timed  # type: ignore[method-assign]
    pair.end("a").hand("b", keep_on=lambda: True)
    pair.world.run(60)
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert all(later > earlier for earlier, later in pairwise(gaps[:5]))
    assert max(gaps) <= 4.0


def told(pair: Pair, *messages: Carried, keep_on: bool = True) -> list[Carried]:
    """Tell b all of these at once; returns what fails."""
    failed: list[Carried] = []
    for message in messages:
        pair.end("a").courier.tell("b", message, failed.append, keep_on=lambda: keep_on)
    return failed


@pytest.mark.feature("mft-pubsub F1")
@given(st.integers(0, 10_000), st.floats(0.0, 0.8), st.integers(1, 40))
def test_what_is_told_arrives_in_order_and_once_whatever_is_lost(seed: int, loss: float, count: int) -> None:
    pair = Pair(seed)
    pair.lose("a", "b", loss)
    pair.lose("b", "a", loss)
    words = [Sub(topic("f"), f"s{n}", n + 1) for n in range(count)]
    assert told(pair, *words) == []
    pair.world.run(10_000)
    assert pair.end("b").got == words


def test_what_comes_up_meanwhile_travels_together_as_far_as_a_frame_holds() -> None:
    pair = Pair()
    frames: list[Message] = []
    send = pair.wire.send

    def noted(sender: NodeId, to: NodeId, message: Message, /) -> None:
        frames.extend([message] if sender == "a" else [])
        send(sender, to, message)

    pair.wire.send = noted  # type: ignore[method-assign]
    told(pair, *(Sub(topic("f"), f"s{n}", 1) for n in range(20)), Bmig(tuple(Claim(f"s{n}", 1, 1) for n in range(32))))
    pair.world.run(10)
    assert [len(frame.parts) for frame in frames if isinstance(frame, Numbered)] == [1, 8, 8, 3, 1]
    assert [frame.size_b for frame in frames] == [12, 96, 96, 36, 228], "a large message goes alone"


def test_a_whole_statement_takes_the_place_of_older_words_that_still_wait() -> None:
    pair = Pair()
    first, other, newest = Fmig(), Sub(topic("g"), "s2", 1), Bsub("s", (topic("f"),), 9, 0)
    told(pair, first, Sub(topic("f"), "s", 7), other, Mig("s", None, 8), newest, Uns(topic("f"), "s", 10))
    pair.world.run(10)
    assert pair.end("b").got == [first, other, newest, Uns(topic("f"), "s", 10)]


def test_where_nothing_gets_through_all_that_waits_fails_and_the_next_word_begins_anew() -> None:
    pair = Pair()
    pair.lose("a", "b", 1.0)
    words = [Sub(topic("f"), f"s{n}", 1) for n in range(20)]
    failed = told(pair, *words, keep_on=False)
    pair.world.run(5)
    assert failed == words
    pair.lose("a", "b", 0.0)
    told(pair, Fmig())
    pair.world.run(10)
    assert pair.end("b").got == [Fmig()]


@pytest.mark.feature("mft-pubsub F21")
def test_a_sender_that_restarts_is_not_taken_for_its_former_self() -> None:
    pair = Pair()
    for _ in range(5):
        pair.end("a").hand("b")
    pair.world.run(1)
    pair.world.nodes["a"].restart()
    for _ in range(5):
        pair.end("a").hand("b")
    pair.world.run(2)
    assert len(pair.end("b").got) == 10


def test_an_acknowledgement_of_nothing_changes_nothing() -> None:
    pair = Pair()
    pair.end("a").receive("b", Ack(17))
    assert pair.end("a").fate == []


def test_a_number_costs_nothing_on_top_of_the_published_sizes() -> None:
    assert Numbered(1, Fmig()).size_b == Fmig().size_b
