"""Packet identifiers and both handshakes of one session, against a client that does anything it may."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from godwit.protocols.broker.publication import Publication
from godwit.protocols.broker.session.queue import next_number
from godwit.protocols.broker.session.state import NUMBER_MAX, Item, Session
from godwit.sim.brokers.client import Client
from godwit.sim.brokers.world import World


class OneSession(RuleBasedStateMachine):
    """A subscriber that connects, acknowledges late, vanishes; a broker that crashes; a publisher that goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(disk_s=0.02)
        self.window = 3
        self.client = Client(self.world, "s").connect("b1", inflight_max=self.window).subscribe("a", qos=2)
        self.publisher = Client(self.world, "p").connect("b1")
        self.world.run(1)
        self.published: list[tuple[bytes, int]] = []

    @rule(qos=st.sampled_from((1, 2)))
    @precondition(lambda self: self.publisher.inside)
    def publish(self, qos: int) -> None:
        payload = b"%d" % len(self.published)
        self.publisher.publish("a", payload, qos)
        self.published.append((payload, qos))

    @rule(wait_s=st.sampled_from((0.0, 0.01, 1.0)))
    def time_passes(self, wait_s: float) -> None:
        self.world.run(wait_s)

    @rule()
    def acknowledge_late(self) -> None:
        self.client.holding = not self.client.holding

    @rule(window=st.integers(1, 4))
    def connect_again(self, window: int) -> None:
        self.client.drop()
        self.client.holding = False
        self.window = window
        self.client.connect("b1", inflight_max=window)

    @rule()
    def vanish(self) -> None:
        self.client.drop()

    @rule()
    def crash(self) -> None:
        site = self.world.sites["b1"]
        site.crash()
        site.start()
        self.client.drop(notice_s=None)
        self.publisher.drop(notice_s=None).connect("b1")
        self.world.run(0.0)

    @invariant()
    def no_more_than_the_window_is_under_way(self) -> None:
        session = self.world.sites["b1"].broker.sessions["s"]
        assert 0 <= session.queue.window <= max(self.window, 0)
        assert session.queue.window == sum(item.out for item in session.queue.flying.values())
        assert all(number == item.number for number, item in session.queue.flying.items())

    def teardown(self) -> None:
        self.client.drop(notice_s=None)
        self.client.holding = False
        self.client.connect("b1")
        self.publisher.drop(notice_s=None).connect("b1")
        self.world.run(60)
        got = self.client.payloads
        once = [payload for payload, qos in self.published if qos == 2]
        assert [payload for payload in got if payload in set(once)] == once
        assert set(got) == {payload for payload, _ in self.published}
        session = self.world.sites["b1"].broker.sessions["s"]
        assert not session.queue.flying
        assert not session.queue.waiting
        assert not self.client.incoming
        assert not self.publisher.outgoing


OneSession.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestOneSession = OneSession.TestCase


def test_numbers_run_in_a_circle_and_skip_those_under_way() -> None:
    session = Session("s", 1)
    one = Publication("p", 1, "a")
    session.queue.flying = {number: Item(one, 1, number=number) for number in (1, 2, NUMBER_MAX)}
    session.queue.number = NUMBER_MAX - 1
    assert next_number(session.queue) == 3
    assert next_number(session.queue) == 4
