"""What a broker may rely on whoever speaks to it: strangers and nonsense change nothing (spec mft-pubsub 2, D5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.protocols.overlay import Broker, Overlay, chain, event, mft, recursive, topic

from godwit.protocols.adhoc.aodv import Hello
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.courier import Carried, Numbered
from godwit.protocols.routing.messages import (
    Ack,
    Bask,
    Bmig,
    Bquery,
    Bsub,
    Btab,
    Claim,
    Doubt,
    Filters,
    Fmig,
    Mig,
    Pub,
    Rbmig,
    Rep,
    Row,
    Sub,
    Uns,
)
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules
from godwit.protocols.topology.election import Heartbeat
from godwit.protocols.topology.tree import StaticTree
from godwit.sim.wired import Wired
from godwit.sim.world import World

ROUTERS = {
    "recursive": recursive(THESIS, acknowledge=True),
    "thesis": mft(THESIS, acknowledge=True),
    "hardened": mft(HARDENED, acknowledge=True),
}
EVERY_ROUTER = pytest.mark.parametrize("broker", ROUTERS.values(), ids=ROUTERS)

people = st.sampled_from(["s1", "s2", "s3"])
brokers = st.sampled_from(["b1", "b2", "b3", "b9"])
small = st.integers(0, 6)
filters = st.sampled_from([topic("f"), topic("g")])
some_filters = st.lists(filters, max_size=2, unique=True).map(tuple)
claims = st.lists(st.builds(Claim, people, small, small), max_size=3, unique_by=lambda c: c.subscriber).map(tuple)
events = st.builds(event, st.sampled_from(["f", "g"]), small)

carried: dict[type[Message], st.SearchStrategy[Any]] = {
    Sub: st.builds(Sub, filters, people, small, small),
    Uns: st.builds(Uns, filters, people, small, small),
    Mig: st.builds(Mig, people, brokers | st.none(), small, small),
    Pub: st.builds(Pub, events, small),
    Rep: st.builds(Rep, st.lists(events, min_size=1, max_size=2).map(tuple), people, small),
    Filters: st.builds(Filters, some_filters),
    Rbmig: st.builds(Rbmig, st.lists(people, max_size=2, unique=True).map(tuple), brokers),
    Btab: st.builds(Btab, st.lists(st.builds(Row, filters, brokers, people), max_size=3).map(tuple)),
    Fmig: st.just(Fmig()),
    Bmig: st.builds(Bmig, claims, claims, small),
    Bquery: st.builds(Bquery, people, small, small),
    Bsub: st.builds(Bsub, people, some_filters, small, small, small, brokers, small),
    Bask: st.builds(Bask, st.lists(st.builds(Doubt, people, small), max_size=2).map(tuple)),
}
plain = st.one_of(*carried.values())
spoken = plain | st.builds(Numbered, small, plain) | st.builds(Ack, small)


def test_every_message_that_travels_is_tried_here() -> None:
    assert set(carried) == set(Carried.__args__)


def makes_a_link(sender: NodeId, message: Message, broker: Broker) -> bool:
    """The attachment rules of 2.4: a client's own words, and the first word of a broker that migrates here."""
    inner = message.message if isinstance(message, Numbered) else message
    recursive_approach = broker is ROUTERS["recursive"]
    match inner:
        case Sub(_, subscriber) | Uns(_, subscriber) | Mig(subscriber):
            return subscriber == sender
        case Bsub(subscriber):
            return subscriber == sender and not recursive_approach
        case Pub():
            return not sender.startswith("b")
        case Bmig(_, _, 0):
            return sender.startswith("b") and not recursive_approach
        case Rbmig(_, moved):
            return sender.startswith("b") and moved == sender and recursive_approach
    return False


def snapshot(overlay: Overlay, name: NodeId) -> tuple[object, ...]:
    router = overlay.router(name)
    return (
        sorted((row.subscriber, row.hop, str(row.wanted)) for row in router.routes),
        sorted(getattr(router, "known", {}).items()),
        sorted(getattr(router, "doubted", {}).items()),
        {subscriber: list(queue) for subscriber, queue in router.queues.items()},
        sorted(router.attached),
        sorted(overlay.trees[name].neighbors),
    )


def peopled(broker: Broker) -> Overlay:
    overlay = Overlay(broker, chain("b1", "b2", "b3"))
    overlay.place("s1", "b1", "f")
    overlay.place("s2", "b3", "f", "g")
    return overlay


@pytest.mark.feature("mft-pubsub F18")
@EVERY_ROUTER
@settings(max_examples=40)
@given(words=st.lists(st.tuples(st.sampled_from(["b3", "b9", "s2", "s9", "p9"]), spoken), max_size=10))
def test_a_stranger_is_ignored_and_not_acknowledged(broker: Broker, words: list[tuple[NodeId, Message]]) -> None:
    """b3 and s2 are strangers to b1 too, though it knows of them."""
    overlay = peopled(broker)
    before = snapshot(overlay, "b1")
    overlay.medium.log.clear()
    sent: list[Message] = []
    send = overlay.medium.send
    overlay.medium.send = lambda a, b, m, /: sent.append(m) if a == "b1" else send(a, b, m)  # type: ignore[method-assign]
    for sender, message in words:
        if not makes_a_link(sender, message, broker):
            overlay.router("b1").receive(sender, message)
    assert snapshot(overlay, "b1") == before
    assert sent == []


class Unheard(Message, frozen=True):
    """A message of some later version."""

    what: int = 0


@pytest.mark.feature("mft-pubsub F18")
@EVERY_ROUTER
@pytest.mark.parametrize("sender", ["b2", "s1"])
@pytest.mark.parametrize(
    "message",
    [Unheard(), Hello(1), Heartbeat("b0", 1, 1, 0), Filters((topic("f"),)), Ack(5)],
    ids=lambda message: type(message).__name__,
)
def test_what_no_broker_understands_changes_nothing(broker: Broker, sender: NodeId, message: Message) -> None:
    overlay = peopled(broker)
    before = snapshot(overlay, "b1")
    overlay.medium.log.clear()
    overlay.router("b1").receive(sender, message)
    assert snapshot(overlay, "b1") == before
    assert overlay.medium.log == []


@pytest.mark.feature("mft-pubsub F18")
@pytest.mark.parametrize("rules", [THESIS, HARDENED], ids=["thesis", "hardened"])
@pytest.mark.parametrize("message", [Rbmig(("s2",), "b2"), Btab((Row(topic("h"), "b9", "s2"),)), Fmig()])
def test_mft_takes_no_word_of_the_first_approach(rules: Rules, message: Message) -> None:
    overlay = peopled(mft(rules))
    before = snapshot(overlay, "b1")
    overlay.router("b1").receive("b2", message)
    assert snapshot(overlay, "b1") == before


@pytest.mark.feature("mft-pubsub F1")
@pytest.mark.parametrize(
    "broken",
    [
        {"type": "Bsub", "subscriber": "s", "filters": [], "t": -1, "hs": 0},
        {"type": "Bsub", "subscriber": "s", "filters": [], "t": 1},
        {"type": "Sub", "wanted": "everything", "subscriber": "s"},
        {"type": "Rep", "events": [{"publisher": "", "sequence": 1}], "subscriber": "s"},
        {"type": "Bmig", "below": [["s", 1]]},
        {"type": "Nonsense"},
    ],
)
def test_decoding_is_validation(broken: dict[str, Any]) -> None:
    encoded = msgspec.msgpack.encode({"type": "Numbered", "serial": 1, "message": broken})
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(encoded, type=Numbered)


class OneBroker(RuleBasedStateMachine):
    """One broker among neighbors and clients that say anything, while links come and go."""

    rules_in_force = HARDENED

    @initialize()
    def start(self) -> None:
        self.world = World(0, Wired)
        self.tree = StaticTree(["b1", "b2"], "b1")
        self.world.add("b0", lambda host: MftBroker(host, self.tree, self.rules_in_force, acknowledge=True))
        self.newest: dict[NodeId, int] = {}
        self.interfaces: set[NodeId] = {"b0", "b1", "b2"}

    @property
    def broker(self) -> MftBroker:
        core = self.world.nodes["b0"].core
        assert isinstance(core, MftBroker)
        return core

    @rule(sender=brokers, message=spoken)
    def a_broker_speaks(self, sender: NodeId, message: Message) -> None:
        if makes_a_link(sender, message, ROUTERS["hardened"]):
            self.interfaces.add(sender)
        self.broker.receive(sender, message)

    @rule(sender=people, message=spoken)
    def a_client_speaks(self, sender: NodeId, message: Message) -> None:
        if makes_a_link(sender, message, ROUTERS["hardened"]):
            self.interfaces.add(sender)
        self.broker.receive(sender, message)

    @rule(parent=brokers)
    def it_migrates(self, parent: NodeId) -> None:
        self.interfaces.add(parent)
        self.tree.move(parent)

    @rule(neighbor=brokers)
    def a_link_breaks(self, neighbor: NodeId) -> None:
        self.tree.drop(neighbor)

    @rule()
    def time_passes(self) -> None:
        self.world.run(self.world.engine.now + 2)

    @invariant()
    def numbers_never_decrease(self) -> None:
        for subscriber, (t, h) in self.broker.known.items():
            assert t >= self.newest.get(subscriber, 0)
            assert h >= 1
            self.newest[subscriber] = t

    @invariant()
    def nobody_is_reached_through_a_stranger(self) -> None:
        assert {row.hop for row in self.broker.routes} <= self.interfaces

    @invariant()
    def whoever_has_a_row_has_a_number(self) -> None:
        assert set(self.broker.routes.subscribers) <= set(self.broker.known)

    @invariant()
    def all_rows_of_one_subscriber_point_one_way(self) -> None:
        if self.rules_in_force.one_hop_for_all:
            hops = {(row.subscriber, row.hop) for row in self.broker.routes}
            assert len(hops) == len(self.broker.routes.subscribers)

    @invariant()
    def a_queue_holds_each_event_once_and_is_never_empty(self) -> None:
        for queue in self.broker.queues.values():
            assert queue
            assert all(name == event.id for name, event in queue.items())


class OnePublishedBroker(OneBroker):
    rules_in_force = THESIS


OneBroker.TestCase.settings = OnePublishedBroker.TestCase.settings = settings(max_examples=30, stateful_step_count=30)
TestOneBroker = pytest.mark.feature("mft-pubsub F18", "mft-pubsub F22")(OneBroker.TestCase)
TestOnePublishedBroker = pytest.mark.feature("mft-pubsub F18")(OnePublishedBroker.TestCase)
