"""Streams: once and in order over any channel, through crashes with and without a disk; and what bounds do."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import count

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.protocols.broker.messages import Place
from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken, decode, encode
from godwit.protocols.broker.streams.sender import StreamOptions
from godwit.protocols.host import LocalError, NodeId, RemoteError
from godwit.sim.fabrics.channel import BadMedium, Log, StreamEnd, on_disk
from godwit.sim.world import World

QUICK = StreamOptions(retry_s=0.2, retry_max_s=1.0)


class Pair:
    """Ends a, b, c ... over one channel."""

    def __init__(
        self, *names: NodeId, seed: int = 0, options: StreamOptions = QUICK, loss: float = 0.0, duplication: float = 0.0
    ) -> None:
        self.world = World(seed, partial(BadMedium, loss=loss, duplication=duplication))
        self.log = Log()
        self.marks = count(1).__next__
        for name in names or ("a", "b"):
            self.world.add(name, lambda node: StreamEnd(node, self.log, options))

    @property
    def chaos(self) -> BadMedium:
        assert isinstance(self.world.medium, BadMedium)
        return self.world.medium

    def end(self, name: NodeId) -> StreamEnd:
        core = self.world.nodes[name].core
        assert isinstance(core, StreamEnd)
        return core

    def run(self, for_s: float = 5.0) -> None:
        self.world.run(self.world.engine.now + for_s)

    def send(self, to: str, *, sender: NodeId = "a", durable: bool = True) -> int:
        mark = self.marks()
        self.end(sender).send(list(to), mark, durable=durable)
        return mark

    def given(self, to: NodeId = "b", origin: NodeId = "a") -> list[int]:
        return self.log.given[to, origin]

    def restart(self, name: NodeId, *, keep_disk: bool = True) -> None:
        self.world.nodes[name].restart(keep_disk=keep_disk)

    def unconfirmed(self) -> dict[NodeId, dict[NodeId, int]]:
        return {name: kept for name in self.world.nodes if (kept := self.end(name).streams.unconfirmed)}

    def outbox(self, name: NodeId) -> set[tuple[str, int]]:
        """Contents in the store that somebody has not confirmed."""
        return {(owner, number) for owner, number, _ in self.end(name).store.load("outbox") if not owner}


def test_what_is_sent_arrives_in_order_at_everybody_it_is_for() -> None:
    pair = Pair("a", "b", "c")
    for to in ("b", "c", "bc", "b", "bc", "c"):
        pair.send(to)
        pair.send(to, durable=False)
    pair.run()
    assert pair.given("b") == [1, 2, 5, 6, 7, 8, 9, 10]
    assert pair.given("c") == [3, 4, 5, 6, 9, 10, 11, 12]
    assert pair.unconfirmed() == {}
    assert pair.outbox("a") == set()


def test_what_many_want_is_on_the_disk_once() -> None:
    pair = Pair("a", "b", "c", "d", loss=1.0)
    pair.run(0.1)
    pair.send("bcd")
    pair.run(0.1)
    assert len(pair.outbox("a")) == 1


def test_a_durable_content_leaves_only_when_it_is_on_the_disk() -> None:
    pair = Pair()
    pair.send("b")
    pair.run()
    pair.send("b")
    pair.run(0.004)
    pair.restart("a")
    pair.run()
    assert pair.given() == [1]


def test_what_waits_for_the_disk_leaves_in_its_place_and_is_gone_after_a_crash() -> None:
    pair = Pair()
    pair.send("b")
    pair.run()
    streams = pair.end("a").streams
    streams.send("b", Place("x", 2), durable=False, settled=True)
    streams.send("b", Place("x", 3))
    pair.run()
    assert pair.given() == [1, 2, 3]
    streams.send("b", Place("x", 4), durable=False, settled=True)
    pair.run(0.004)
    assert pair.given() == [1, 2, 3], "it has not left yet"
    pair.restart("a")
    pair.run()
    assert pair.given() == [1, 2, 3]
    assert pair.outbox("a") == set()


def test_what_was_on_the_disk_is_sent_after_a_crash_and_numbers_are_not_used_again() -> None:
    pair = Pair(loss=1.0)
    for _ in range(3):
        pair.send("b")
        pair.send("b", durable=False)
    pair.run(0.1)
    before = pair.end("a").streams.sender.numbers.last
    pair.restart("a")
    pair.chaos.loss = 0.0
    pair.send("b")
    pair.run()
    assert pair.given() == [1, 3, 5, 7]
    assert pair.end("a").streams.sender.numbers.last > before


def test_a_receiver_that_lost_its_disk_goes_on_with_the_oldest_that_is_kept() -> None:
    pair = Pair()
    pair.send("b")
    pair.run()
    pair.chaos.loss = 1.0
    pair.send("b")
    pair.restart("b", keep_disk=False)
    pair.send("b")
    pair.chaos.loss = 0.0
    pair.run()
    assert pair.given() == [1, 2, 3]
    assert pair.unconfirmed() == {}


def test_a_sender_that_lost_its_disk_begins_a_new_stream() -> None:
    pair = Pair()
    for _ in range(5):
        pair.send("b")
    pair.run()
    pair.restart("a", keep_disk=False)
    pair.send("b")
    pair.run()
    assert pair.given() == [1, 2, 3, 4, 5, 6]
    assert pair.unconfirmed() == {}


def test_a_late_frame_of_a_lost_disk_does_not_bring_its_stream_back() -> None:
    pair = Pair()
    for _ in range(3):
        pair.send("b")
    pair.run()
    receiver = pair.end("b").streams.receiver
    late = Parcels("a", receiver.sources["a"].stream, (run_of("b", receiver.life, 0, 1),))
    pair.restart("a", keep_disk=False)
    pair.send("b")
    pair.run()
    pair.end("b").receive("a", late)
    pair.send("b")
    pair.run()
    assert pair.given() == [1, 2, 3, 4, 5]


def test_what_is_not_durable_never_comes_twice_though_the_receiver_crashes() -> None:
    pair = Pair()
    pair.send("b")
    pair.run()
    pair.send("b", durable=False)
    pair.run(0.021)
    assert pair.given() == [1, 2]
    pair.restart("b")
    pair.run()
    pair.send("b", durable=False)
    pair.run()
    assert pair.given() == [1, 2, 3]
    assert pair.unconfirmed() == {}


def test_a_full_outbox_drops_the_oldest_counts_it_and_goes_on() -> None:
    options = msgspec.structs.replace(QUICK, outbox_bytes_max=100)
    pair = Pair(options=options)
    pair.send("b")
    pair.run()
    pair.chaos.loss = 1.0
    for _ in range(50):
        pair.send("b")
    pair.run(1)
    kept = pair.end("a").streams.unconfirmed["b"]
    assert pair.end("a").streams.counts.dropped_full == 50 - kept
    pair.chaos.loss = 0.0
    pair.run()
    assert pair.given() == [1, *range(52 - kept, 52)]
    assert pair.outbox("a") == set()


def test_what_is_too_old_is_dropped_and_counted_and_what_follows_arrives() -> None:
    options = msgspec.structs.replace(QUICK, outbox_age_max_s=3.0)
    pair = Pair("a", "b", "c", options=options)
    pair.send("bc")
    pair.run()
    pair.world.nodes["b"].crash()
    for _ in range(4):
        pair.send("bc")
    pair.run(4)
    pair.restart("b")
    pair.send("bc")
    pair.run()
    assert pair.end("a").streams.counts.dropped_old == 4
    assert pair.given("b") == [1, 6]
    assert pair.given("c") == [1, 2, 3, 4, 5, 6]


def test_what_was_dropped_does_not_come_back_from_the_disk() -> None:
    pair = Pair("a", "b", "c", options=msgspec.structs.replace(QUICK, outbox_age_max_s=3.0))
    pair.world.nodes["b"].crash()
    pair.world.nodes["c"].crash()
    pair.send("b")
    pair.run(2)
    pair.send("bc")
    pair.run(2)
    pair.send("c")
    pair.run(0.1)
    pair.restart("a")
    pair.restart("b")
    pair.run()
    assert pair.given("b") == [2]


def test_a_receiver_that_is_given_up_leaves_nothing_behind() -> None:
    pair = Pair("a", "b", "c")
    pair.run()
    pair.world.nodes["b"].crash()
    pair.send("bc")
    pair.send("b")
    pair.run()
    pair.end("a").streams.forget("b")
    pair.run()
    assert pair.end("a").streams.counts.dropped_gone == 2
    assert pair.outbox("a") == set()
    pair.restart("b")
    pair.send("b")
    pair.run()
    assert pair.given("b") == [3]


def test_a_dead_receiver_gets_no_more_than_its_window_and_then_only_questions() -> None:
    pair = Pair(options=msgspec.structs.replace(QUICK, window=10))
    pair.send("b")
    pair.run()
    pair.world.nodes["b"].crash()
    for _ in range(100):
        pair.send("b")
    pair.run(30)
    assert pair.end("a").streams.counts.sent == 11
    assert pair.end("a").streams.counts.repeated == 0
    assert pair.chaos.sent["a", "Ask"] < 50
    pair.restart("b")
    pair.run()
    assert pair.given() == list(range(1, 102))


def test_what_leaves_a_gap_is_kept_back_within_a_bound_and_comes_again_beyond_it() -> None:
    pair = Pair(options=msgspec.structs.replace(QUICK, held_max=5, frame_b=1))
    pair.send("b")
    pair.run()
    pair.chaos.loss = 1.0
    pair.send("b", durable=False)
    pair.run(0.01)
    pair.chaos.loss = 0.0
    for _ in range(20):
        pair.send("b", durable=False)
    pair.run()
    assert pair.given() == list(range(1, 23))
    assert pair.end("b").streams.counts.overflowed > 0


@pytest.mark.parametrize("away_s", [6.0, 20.0, 50.0])
def test_whoever_has_been_away_gets_what_waits_soon_after_it_is_back(away_s: float) -> None:
    """As brokers are deployed: clients wait at others for sessions that it has. Asked ever more seldom it was back for
    half a minute before anybody noticed."""
    pair = Pair(options=StreamOptions(), loss=1.0)
    pair.run(0.1)
    pair.send("b")
    pair.run(away_s)
    assert pair.given() == []
    pair.chaos.loss = 0.0
    pair.run(5.5)
    assert pair.given() == [1]


def test_a_question_that_was_lost_is_asked_again_though_the_receiver_goes_on_reporting_a_gap() -> None:
    """As when a broker on the way is killed: with it go a parcel, and the question after it or its answer."""
    pair = Pair()
    pair.send("b")
    pair.run()
    pair.chaos.loss = 1.0
    pair.send("b", durable=False)
    pair.run(0.01)
    pair.end("a").streams.again("b")
    pair.run(0.01)
    pair.chaos.loss = 0.0
    for _ in range(100):
        pair.send("b", durable=False)
        pair.run(QUICK.retry_s / 10)
    assert pair.given()[:90] == list(range(1, 91))


def test_many_contents_travel_in_few_frames_and_are_confirmed_in_fewer() -> None:
    pair = Pair(options=StreamOptions(frame_b=10_000))
    pair.send("b")
    pair.run()
    before = pair.chaos.sent.copy()
    for _ in range(1000):
        pair.send("b", durable=False)
    pair.run()
    assert pair.given() == list(range(1, 1002))
    assert pair.chaos.sent["a", "Parcels"] - before["a", "Parcels"] <= 3
    assert pair.chaos.sent["b", "Taken"] - before["b", "Taken"] <= 5


def test_a_broker_can_neither_send_to_itself_nor_take_what_has_not_come() -> None:
    pair = Pair()
    with pytest.raises(LocalError, match="itself"):
        pair.end("a").streams.send(["a"], Place("x", 1), durable=True)
    with pytest.raises(LocalError, match="has not come"):
        pair.end("a").streams.taken("b", 1)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from("ab"), st.booleans()),
        st.tuples(st.just("crash"), st.sampled_from("ab"), st.booleans()),
        st.tuples(st.just("run"), st.floats(0.001, 0.5), st.none()),
    ),
    max_size=60,
)


def play(pair: Pair, actions: list[tuple[str, str | float, bool | None]], *, disks_survive: bool) -> None:
    other = {"a": "b", "b": "a"}
    for kind, what, how in actions:
        match kind, what:
            case "send", str():
                pair.send(other[what], sender=what, durable=bool(how))
            case "crash", str():
                pair.restart(what, keep_disk=disks_survive or bool(how))
            case _, float():
                pair.run(what)
    pair.chaos.loss = pair.chaos.duplication = 0.0
    pair.run(20)


@settings(max_examples=150, deadline=None)
@given(ACTIONS, st.integers(0, 2**16), st.floats(0, 0.6), st.floats(0, 0.5))
def test_everything_durable_arrives_exactly_once_and_the_rest_at_most_once_in_order(
    actions: list[tuple[str, str | float, bool | None]], seed: int, loss: float, duplication: float
) -> None:
    pair = Pair(seed=seed, loss=loss, duplication=duplication)
    play(pair, actions, disks_survive=True)
    for to, origin in (("a", "b"), ("b", "a")):
        sent = pair.log.sent[to, origin]
        acknowledged = [mark for mark, durable in sent if durable and mark in pair.log.safe[origin]]
        durable = {mark for mark, durable in sent if durable}
        assert [mark for mark in on_disk(pair.world.nodes[to], origin) if mark in durable] == acknowledged
        volatile = [mark for mark in pair.given(to, origin) if mark not in durable]
        assert volatile == sorted(set(volatile))
    assert pair.unconfirmed() == {}


@settings(max_examples=100, deadline=None)
@given(ACTIONS, st.integers(0, 2**16), st.floats(0, 0.6), st.floats(0, 0.5))
def test_though_disks_are_lost_streams_go_on_and_nothing_that_is_not_durable_comes_twice(
    actions: list[tuple[str, str | float, bool | None]], seed: int, loss: float, duplication: float
) -> None:
    pair = Pair(seed=seed, loss=loss, duplication=duplication)
    play(pair, actions, disks_survive=False)
    assert pair.unconfirmed() == {}
    last = [pair.send("b"), pair.send("a", sender="b")]
    pair.run()
    assert [pair.given("b")[-1], pair.given("a", "b")[-1]] == last
    for to, origin in (("a", "b"), ("b", "a")):
        durable = {mark for mark, durable in pair.log.sent[to, origin] if durable}
        volatile = [mark for mark in pair.given(to, origin) if mark not in durable]
        assert volatile == sorted(set(volatile))


def run_of(to: NodeId, life: int, previous: int, *numbers: int) -> Run:
    items = [(number, True, Place("x", 1000 + number)) for number in numbers]
    return Run((Leg(to, life, previous),), msgspec.Raw(encode(items)))


def test_a_peer_that_lies_is_refused_and_changes_nothing() -> None:
    pair = Pair()
    pair.send("b")
    pair.run()
    end = pair.end("b")
    life, stream = end.streams.receiver.life, end.streams.receiver.sources["a"].stream
    last = end.streams.receiver.sources["a"].given
    lies = [
        Parcels("a", stream, (run_of("b", life, last, last + 1), run_of("b", life, last + 9, last + 9))),
        Parcels("a", stream, (run_of("b", life, last, last + 2, last + 1),)),
        Parcels("a", stream, (run_of("b", life, last, last + 1), Run((Leg("b", life, last),), msgspec.Raw(b"\xc1")))),
        Parcels("a", stream, (Run((Leg("b", life, last),), msgspec.Raw(encode([(last + 1, True, ["unheard of"])]))),)),
    ]
    for lie in lies:
        with pytest.raises(RemoteError):
            end.receive("a", lie)
    source = pair.end("a").streams.sender
    for given_, number in ((source.numbers.last + 1, 1), (1, 2), (last + 1, last + 1)):
        with pytest.raises(RemoteError):
            pair.end("a").receive("b", Taken("b", life, "a", stream, number, given_))
    pair.send("b")
    pair.run()
    assert pair.given() == [1, 2]


@pytest.mark.parametrize("data", [b"", b"\xc1", encode({"type": "Parcels"}), encode({"type": "Nobody"}), encode([1])])
def test_garbage_is_no_frame(data: bytes) -> None:
    with pytest.raises(RemoteError, match="no frame"):
        decode(data)


@given(st.binary(max_size=200))
def test_whatever_bytes_come_are_a_frame_or_refused(data: bytes) -> None:
    with suppress(RemoteError):
        decode(data)


def test_frames_survive_the_wire() -> None:
    for frame in (
        Parcels("a", 1, (run_of("b", 7, 2, 3, 4),)),
        Ask("a", 1, "b", 5),
        Taken("b", 7, "a", 1, 3, 4, 5, gap=True),
    ):
        assert encode(decode(encode(frame))) == encode(frame)
