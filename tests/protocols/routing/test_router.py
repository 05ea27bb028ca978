"""Undelivered events: when they are stored, and every way in which they leave again (spec mft-pubsub 2.7)."""

from __future__ import annotations

from functools import partial

import pytest
from tests.protocols.overlay import Broker, Overlay, chain, event, mft, recursive, topic

from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Ack, Mig, Pub, Rep, Sub
from godwit.protocols.routing.mft import MftBroker
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules

stores = pytest.mark.feature("mft-pubsub F13")
EVERY_ROUTER = pytest.mark.parametrize(
    "broker",
    [
        recursive(THESIS, acknowledge=True),
        mft(THESIS, acknowledge=True),
        mft(HARDENED, acknowledge=True),
    ],
    ids=["recursive", "thesis", "hardened"],
)


def line(broker: Broker, *names: str) -> Overlay:
    """A subscriber of `f` at the last of these brokers."""
    overlay = Overlay(broker, chain(*names))
    overlay.place("s", names[-1], "f")
    return overlay


def stored(overlay: Overlay, broker: str) -> list[tuple[str, int]]:
    return list(overlay.router(broker).queues.get("s", ()))


def leave(overlay: Overlay, broker: str) -> None:
    """The subscriber walks away without a word."""
    overlay.medium.cut("s", broker)


@stores
@EVERY_ROUTER
def test_an_event_for_a_lost_link_is_stored_before_it(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2", "b3")
    overlay.cut("b2", "b3")
    overlay.publish("b1", event("f"))
    overlay.settle(0.5)
    assert stored(overlay, "b2") == [("p1", 1)]
    assert overlay.got("s") == []


@stores
@EVERY_ROUTER
@pytest.mark.feature("mft-pubsub F14")
def test_an_event_that_no_neighbor_acknowledges_is_stored_and_the_neighbor_stays(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2")
    overlay.medium.cut("b1", "b2")
    overlay.publish("b1", event("f"))
    overlay.settle(0.9)
    assert stored(overlay, "b1") == [("p1", 1)]
    assert "b2" in overlay.trees["b1"].neighbors


@stores
@EVERY_ROUTER
@pytest.mark.feature("mft-pubsub F14")
def test_a_client_that_does_not_acknowledge_is_detached_and_its_events_stored(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2")
    leave(overlay, "b2")
    overlay.publish("b1", event("f"))
    overlay.settle(0.95)
    assert stored(overlay, "b2") == [("p1", 1)]
    assert "s" not in overlay.router("b2").attached
    assert overlay.router("b2").routes.hop("s") == "s"


@stores
@EVERY_ROUTER
def test_a_link_that_heals_without_a_migration_gets_what_waited(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2")
    overlay.medium.cut("b1", "b2")
    overlay.publish("b1", event("f"))
    overlay.settle(1.5)
    overlay.medium.heal("b1", "b2")
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]
    assert not overlay.router("b1").queues


@stores
@EVERY_ROUTER
def test_a_silent_client_is_probed_and_its_first_answer_brings_the_rest(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2")
    leave(overlay, "b2")
    overlay.publish("b1", *(event("f", n) for n in range(5)))
    overlay.settle(5)
    waiting = stored(overlay, "b2")
    assert sorted(waiting) == [("p1", n) for n in range(5)]
    overlay.medium.heal("s", "b2")
    overlay.settle(3)
    assert overlay.got("s") == waiting
    assert "s" in overlay.router("b2").attached
    assert not overlay.router("b2").queues


@stores
@EVERY_ROUTER
def test_a_client_that_attaches_elsewhere_gets_what_waited_as_it_was_stored(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2", "b3")
    leave(overlay, "b3")
    overlay.publish("b1", *(event("f", n) for n in range(5)))
    overlay.settle(3)
    waiting = stored(overlay, "b3")
    assert sorted(waiting) == [("p1", n) for n in range(5)]
    overlay.attach("s", "b1")
    overlay.settle()
    assert overlay.got("s") == waiting


@stores
@EVERY_ROUTER
def test_a_broker_that_comes_back_by_another_way_gets_what_waited(broker: Broker) -> None:
    overlay = Overlay(broker, [("b1", "b2"), ("b1", "b3"), ("b2", "b4")])
    overlay.place("s", "b4", "f")
    overlay.cut("b2", "b4")
    overlay.publish("b1", event("f"))
    overlay.settle(0.5)
    assert stored(overlay, "b2") == [("p1", 1)]
    overlay.move("b4", "b3")
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]


@stores
@EVERY_ROUTER
def test_what_a_migrating_broker_stored_for_those_outside_goes_through_its_new_link(broker: Broker) -> None:
    overlay = Overlay(broker, [("b1", "b2"), ("b1", "b3")])
    overlay.place("s", "b1", "f")
    overlay.cut("b1", "b3")
    overlay.publish("b3", event("f"))
    overlay.settle(0.5)
    assert stored(overlay, "b3") == [("p1", 1)]
    overlay.move("b3", "b2")
    overlay.settle()
    assert overlay.got("s") == [("p1", 1)]


@stores
@EVERY_ROUTER
@pytest.mark.feature("mft-pubsub F22")
def test_h9_a_replay_whose_way_leads_back_is_stored_not_bounced(broker: Broker) -> None:
    overlay = line(broker, "b1", "b2")
    overlay.router("b2").detach("s")
    overlay.router("b2").routes.point("s", "b1")
    overlay.world.nodes["b1"].send("b2", Rep((event("f"),), "s"))
    overlay.settle(0.5)
    assert stored(overlay, "b2") == [("p1", 1)]


@stores
@pytest.mark.feature("mft-pubsub F22")
def test_h7_a_replay_that_has_gone_too_far_is_stored() -> None:
    overlay = line(mft(Rules(loops_end=True)), "b1", "b2")
    overlay.world.nodes["b1"].send("b2", Rep((event("f"),), "s", 64))
    overlay.settle(0.5)
    assert stored(overlay, "b2") == [("p1", 1)]


@stores
@pytest.mark.feature("mft-pubsub F14")
def test_copies_of_an_event_do_not_pile_up_where_they_meet() -> None:
    overlay = line(mft(THESIS, acknowledge=True), "b1", "b2")
    leave(overlay, "b2")
    for _ in range(3):
        overlay.publish("b2", event("f"))
    overlay.settle(3)
    assert stored(overlay, "b2") == [("p1", 1)]


@stores
@pytest.mark.feature("mft-pubsub F14")
def test_a_broker_that_never_hears_an_acknowledgement_does_not_multiply_events() -> None:
    overlay = line(mft(THESIS, acknowledge=True), "b1", "b2", "b3")
    overlay.medium.links["b2"]["b1"].loss = 1.0
    overlay.medium.links["b3"]["b2"].loss = 1.0
    overlay.publish("b1", event("f"))
    copies = []
    for _ in range(3):
        before = overlay.trace.counts["duplicate"]
        overlay.settle(60)
        copies.append(overlay.trace.counts["duplicate"] - before)
    assert overlay.got("s") == [("p1", 1)]
    assert copies[2] <= copies[1] + 5 < 200


@stores
def test_replays_of_one_subscriber_travel_together() -> None:
    overlay = line(partial(MftBroker, rules=THESIS, acknowledge=True, replay_batch=4), "b1", "b2")
    leave(overlay, "b2")
    overlay.publish("b2", *(event("f", n) for n in range(10)))
    overlay.settle(3)
    overlay.attach("s", "b1")
    batches = [len(message.events) for a, b, message in overlay.settle() if isinstance(message, Rep) and a == "b2"]
    assert batches == [4, 4, 2]
    assert sorted(overlay.got("s")) == [("p1", n) for n in range(10)]


@stores
def test_each_event_is_stored_once_for_each_subscriber_behind_the_link() -> None:
    overlay = line(mft(THESIS, acknowledge=True), "b1", "b2")
    overlay.place("s2", "b2", "f")
    overlay.place("s3", "b2", "g")
    overlay.cut("b1", "b2")
    overlay.publish("b1", event("f"))
    overlay.settle(0.5)
    assert {name: list(queue) for name, queue in overlay.router("b1").queues.items()} == {
        "s": [("p1", 1)],
        "s2": [("p1", 1)],
    }


@pytest.mark.feature("mft-pubsub F26")
def test_a_full_queue_gives_up_its_oldest_event() -> None:
    overlay = line(partial(MftBroker, rules=THESIS, acknowledge=True, queue_max=3), "b1", "b2")
    leave(overlay, "b2")
    for n in range(10):
        overlay.publish("b2", event("f", n))
        overlay.settle(1)
    assert stored(overlay, "b2") == [("p1", 7), ("p1", 8), ("p1", 9)]
    assert overlay.trace.counts["dropped"] == 7


@pytest.mark.feature("mft-pubsub F32")
def test_hops_count_transmissions_and_begin_again_at_a_replay() -> None:
    overlay = line(mft(THESIS, acknowledge=True), "b1", "b2", "b3")
    overlay.publish("b1", event("f", 1))
    overlay.settle(1)
    leave(overlay, "b3")
    overlay.publish("b1", event("f", 2))
    overlay.settle(3)
    overlay.attach("s", "b2")
    overlay.settle()
    assert [(row[4], row[9], row[10]) for row in overlay.trace.of("delivered")] == [
        (1, 4, "direct"),
        (2, 2, "replayed"),
    ]


@pytest.mark.feature("mft-pubsub F14")
def test_what_is_ignored_is_not_acknowledged() -> None:
    overlay = line(mft(HARDENED, acknowledge=True), "b1", "b2")
    stranger = overlay.client("b9")
    overlay.say("b9", "b1", Numbered(1, Rep((event("f"),), "s")), Numbered(2, Sub(topic("f"), "s", 99, 3)))
    overlay.settle()
    assert stranger.messages == []


@pytest.mark.feature("mft-pubsub F14", "mft-pubsub F18")
def test_what_makes_a_link_is_acknowledged_at_once() -> None:
    overlay = line(mft(HARDENED, acknowledge=True), "b1", "b2")
    client = overlay.client("s9")
    overlay.say("s9", "b1", Numbered(1, Mig("s9", None, 1)), Numbered(2, Pub(event("f"), 1)))
    overlay.settle()
    assert [message.serial for message in client.messages if isinstance(message, Ack)] == [1, 2]
    assert overlay.got("s") == [("p1", 1)]
