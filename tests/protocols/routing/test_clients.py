"""Subscribers and publishers: whom they follow, what they say, and that each event comes once (spec mft-pubsub 2.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocols.fleet import wired, wires
from tests.protocols.overlay import Client, event, topic

from godwit.filters.filters import Filter
from godwit.protocols.host import Message, NodeId
from godwit.protocols.routing.clients import ClientOptions, Publisher, Subscriber
from godwit.protocols.routing.courier import Numbered
from godwit.protocols.routing.messages import Ack, Bquery, Bsub, Filters, Mig, Pub, Rep, Sub, Uns
from godwit.protocols.routing.rules import HARDENED, THESIS, Rules
from godwit.protocols.topology.election import Heartbeat
from godwit.sim.recorder import Trace
from godwit.sim.wired import Wired
from godwit.sim.world import World

attaches = pytest.mark.feature("mft-pubsub F19")
BOTH = pytest.mark.parametrize("rules", [THESIS, HARDENED], ids=["thesis", "hardened"])


class Lonely:
    """One client and three brokers that only listen. `beat` is a heartbeat of a round, through a broker."""

    def __init__(self, start: Callable[[Any], Any]) -> None:
        self.trace = Trace()
        self.world = World(0, Wired, self.trace)
        assert isinstance(self.world.medium, Wired)
        for broker in ("b1", "b2", "b3"):
            self.world.add(broker, Client)
            self.world.medium.connect("s", broker)
        self.world.add("s", start)

    @property
    def core(self) -> Any:
        return self.world.nodes["s"].core

    @property
    def broker(self) -> NodeId | None:
        found: NodeId | None = self.core.attachment.broker
        return found

    def beat(self, sender: NodeId, round_: int, leader: NodeId = "b1", incarnation: int = 0) -> None:
        self.core.receive(sender, Heartbeat(leader, incarnation, round_, 0))

    def run(self, for_s: float) -> None:
        self.world.run(self.world.engine.now + for_s)

    def heard(self, broker: NodeId) -> list[Message]:
        """What the client has said to a broker since the last look."""
        self.run(0.01)
        core = self.world.nodes[broker].core
        assert isinstance(core, Client)
        said = list(core.messages)
        core.messages.clear()
        return said


def subscriber(*wanted: str, home: NodeId | None = None, **options: Any) -> Lonely:
    filters = [topic(name) for name in wanted]
    return Lonely(lambda host: Subscriber(host, filters, ClientOptions(**options), disk=host.disk, home=home))


@attaches
def test_the_first_copy_of_a_round_names_the_broker() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 1)
    lonely.beat("b1", 1)
    assert lonely.broker == "b2"
    assert lonely.heard("b2") == [Mig("s", None, 1)]
    assert lonely.heard("b1") == []


@attaches
def test_a_round_that_comes_first_through_another_broker_is_a_migration() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 1)
    lonely.beat("b3", 2)
    assert lonely.heard("b3") == [Mig("s", "b2", 2)]


@attaches
def test_an_old_round_and_a_worse_leader_change_nothing() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 5)
    lonely.beat("b3", 4)
    lonely.beat("b3", 99, leader="b9")
    assert lonely.broker == "b2"


@attaches
def test_a_better_leader_is_followed_at_once() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 5, leader="b5")
    lonely.beat("b3", 1, leader="b1")
    assert lonely.broker == "b3"


@attaches
def test_a_silent_broker_is_lost_and_anybody_heard_next_will_do() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 5)
    lonely.run(3.1)
    assert lonely.broker is None
    lonely.heard("b2")
    lonely.beat("b3", 1, leader="b9")
    assert lonely.heard("b3") == [Mig("s", "b2", 2)], "an old round of a worse leader, but somebody"


@attaches
def test_a_dead_leader_is_forgotten_while_the_broker_lives() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 5, leader="b1")
    for second in range(5):
        lonely.run(1)
        lonely.beat("b2", second, leader="b2")
    lonely.beat("b3", 90, leader="b2")
    assert lonely.broker == "b3", "rounds of the lesser leader count again"


@attaches
def test_after_a_loss_the_last_broker_is_still_named() -> None:
    lonely = subscriber("f")
    lonely.beat("b2", 1)
    lonely.run(3.1)
    lonely.heard("b2")
    lonely.beat("b2", 9)
    assert lonely.heard("b2") == [Mig("s", "b2", 2)]


@pytest.mark.feature("mft-pubsub F37")
def test_a_sticky_client_keeps_a_broker_that_is_heard_in_time() -> None:
    lonely = subscriber("f", sticky_s=0.05)
    lonely.beat("b2", 1)
    lonely.beat("b3", 2)
    lonely.run(0.02)
    lonely.beat("b2", 2)
    lonely.run(1)
    assert lonely.broker == "b2"
    lonely.beat("b3", 3)
    lonely.run(0.1)
    assert lonely.broker == "b3"


@pytest.mark.feature("mft-pubsub F37")
def test_a_sticky_client_that_lost_its_broker_does_not_go_where_it_once_meant_to() -> None:
    lonely = subscriber("f", sticky_s=10.0, timeout_s=3.0)
    lonely.beat("b2", 1)
    lonely.beat("b3", 2)
    lonely.run(3.1)
    assert lonely.broker is None
    lonely.beat("b1", 9)
    lonely.run(2)
    for second in range(8):
        lonely.beat("b1", 10 + second)
        lonely.run(1)
    assert lonely.broker == "b1"


@pytest.mark.feature("mft-pubsub F37")
def test_a_patient_client_keeps_a_broker_heard_lately() -> None:
    lonely = subscriber("f", patience_s=2.5)
    lonely.beat("b2", 1)
    lonely.run(1)
    lonely.beat("b3", 2)
    assert lonely.broker == "b2"
    lonely.run(2)
    lonely.beat("b3", 3)
    assert lonely.broker == "b3"


@pytest.mark.feature("mft-pubsub F2")
def test_a_client_on_the_device_of_a_broker_stays_with_it_whatever_it_hears() -> None:
    lonely = subscriber("f", home="b2")
    lonely.run(0.1)
    lonely.beat("b1", 1)
    lonely.run(30)
    assert lonely.broker == "b2"
    assert lonely.heard("b2") == [Mig("s", None, 1)]
    assert lonely.heard("b1") == []


@pytest.mark.feature("mft-pubsub F12")
def test_filters_that_the_brokers_do_not_know_or_should_not_are_repaired() -> None:
    lonely = subscriber("f", "g")
    lonely.beat("b1", 1)
    lonely.heard("b1")
    lonely.core.receive("b1", Filters((topic("g"), topic("old"))))
    assert lonely.heard("b1") == [Sub(topic("f"), "s", 2), Uns(topic("old"), "s", 3)]


@pytest.mark.feature("mft-pubsub F12")
@given(st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcde")))
def test_reconciliation_ends_with_exactly_what_is_wanted(wanted: set[str], believed: set[str]) -> None:
    lonely = subscriber(*sorted(wanted))
    lonely.beat("b1", 1)
    lonely.heard("b1")
    lonely.core.receive("b1", Filters(tuple(topic(name) for name in sorted(believed))))
    table: set[Filter] = {topic(name) for name in believed}
    for message in lonely.heard("b1"):
        assert isinstance(message, Sub | Uns)
        (table.add if isinstance(message, Sub) else table.discard)(message.wanted)
    assert table == {topic(name) for name in wanted}


@pytest.mark.feature("mft-pubsub F12")
def test_every_message_has_a_higher_number_than_the_one_before_across_restarts() -> None:
    lonely = subscriber("f")
    lonely.beat("b1", 1)
    lonely.core.subscribe(topic("g"))
    lonely.core.unsubscribe(topic("f"))
    before = [m.t for m in lonely.heard("b1") if isinstance(m, Mig | Sub | Uns)]
    lonely.world.nodes["s"].crash()
    lonely.world.nodes["s"].restart()
    lonely.beat("b2", 1)
    lonely.core.subscribe(topic("h"))
    after = [m.t for m in lonely.heard("b2") if isinstance(m, Mig | Sub | Uns)]
    assert (before, after) == ([1, 2, 3], [4, 5])


@pytest.mark.feature("mft-pubsub F12")
def test_what_is_subscribed_without_a_broker_is_told_to_the_next() -> None:
    lonely = subscriber()
    lonely.core.subscribe(topic("f"))
    assert lonely.core.disk.get("t", 0) == 0, "nothing was said, so nothing is numbered"
    lonely.beat("b1", 1)
    lonely.core.receive("b1", Filters(()))
    assert lonely.heard("b1") == [Mig("s", None, 1), Sub(topic("f"), "s", 2)]


@pytest.mark.feature("mft-pubsub F12", "mft-pubsub F22")
def test_h6_a_subscriber_repeats_all_it_wants_regularly_and_when_it_attaches() -> None:
    lonely = subscriber("f", "g", refresh_s=10.0, timeout_s=1e6)
    lonely.beat("b1", 1)
    both = (topic("f"), topic("g"))
    assert lonely.heard("b1") == [Bsub("s", both, 1, 0)]
    lonely.run(40)
    said = lonely.heard("b1")
    assert [(m.filters, m.t) for m in said if isinstance(m, Bsub)] == [(both, t) for t in (2, 3, 4, 5)]


@pytest.mark.feature("mft-pubsub F22")
def test_h10_a_subscriber_that_is_asked_answers_under_a_new_number() -> None:
    lonely = subscriber("f")
    lonely.beat("b1", 1)
    lonely.heard("b1")
    lonely.core.receive("b1", Bquery("s", 1, 1))
    lonely.core.receive("b1", Bquery("s", 50, 1))
    assert [m.t for m in lonely.heard("b1") if isinstance(m, Bsub)] == [2, 51]


@pytest.mark.feature("mft-pubsub F14")
@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=30))
def test_each_event_is_delivered_once_however_often_and_by_whatever_way_it_comes(
    copies: list[tuple[int, bool]],
) -> None:
    got: list[int] = []
    lonely = Lonely(lambda host: Subscriber(host, [topic("f")], deliver=lambda e: got.append(e.sequence)))
    for n, replayed in copies:
        lonely.core.receive("b1", Rep((event("f", n),), "s") if replayed else Pub(event("f", n)))
    assert got == list(dict.fromkeys(n for n, _ in copies))


@pytest.mark.feature("mft-pubsub F14")
def test_every_copy_of_an_event_is_acknowledged() -> None:
    lonely = subscriber("f")
    for serial in (7, 7, 8):
        lonely.core.receive("b1", Numbered(serial, Pub(event("f"))))
    assert lonely.heard("b1") == [Ack(7), Ack(7), Ack(8)]
    assert lonely.trace.counts["delivered"] == 1


@pytest.mark.feature("mft-pubsub F14", "mft-pubsub F26")
def test_no_more_ids_are_kept_than_agreed() -> None:
    got: list[int] = []
    options = ClientOptions(remembered=2)
    lonely = Lonely(lambda host: Subscriber(host, [], options, deliver=lambda e: got.append(e.sequence)))
    for n in (1, 2, 3, 3, 1):
        lonely.core.receive("b1", Pub(event("f", n)))
    assert got == [1, 2, 3, 1]


@pytest.mark.feature("mft-pubsub F14")
def test_what_an_acknowledged_client_says_is_repeated_while_the_broker_is_its_broker() -> None:
    lonely = subscriber("f", acknowledge=True, timeout_s=1e6)
    lonely.beat("b1", 1)
    lonely.run(10)
    said = lonely.heard("b1")
    assert len(said) > 3
    assert len({m.serial for m in said if isinstance(m, Numbered)}) == 1
    lonely.beat("b2", 2)
    lonely.run(10)
    lonely.heard("b1")
    lonely.run(10)
    assert lonely.heard("b1") == []


@pytest.mark.feature("mft-pubsub F6")
def test_phoenix_a_migration_names_the_newest_stamp_of_the_broker_that_was_left() -> None:
    lonely = subscriber("f")
    lonely.beat("b1", 1)
    lonely.core.receive("b1", Pub(event("f", 1), 1, stamp=10.0))
    lonely.core.receive("b1", Rep((event("f", 2),), "s", stamp=11.0))
    lonely.core.receive("b3", Pub(event("f", 3), 1, stamp=99.0))
    lonely.beat("b2", 2)
    (said,) = lonely.heard("b2")
    assert said == Mig("s", "b1", 2, last=11.0)
    lonely.beat("b3", 3)
    (said,) = lonely.heard("b3")
    assert said == Mig("s", "b2", 3), "nothing came from b2"


@pytest.mark.feature("mft-pubsub F15")
def test_a_publisher_changes_its_broker_without_a_word() -> None:
    lonely = Lonely(lambda host: Publisher(host))
    lonely.beat("b1", 1)
    lonely.beat("b2", 2)
    assert lonely.broker == "b2"
    assert lonely.heard("b1") + lonely.heard("b2") == []
    assert lonely.core.publish(event("f"))
    assert lonely.heard("b2") == [Pub(event("f"), 1)]


@pytest.mark.feature("mft-pubsub F15")
def test_an_event_without_a_broker_is_lost_and_noted() -> None:
    lonely = Lonely(lambda host: Publisher(host))
    assert not lonely.core.publish(event("f"))
    assert [row[10] for row in lonely.trace.of("dropped")] == ["no broker"]


def publisher(**options: Any) -> Lonely:
    return Lonely(lambda host: Publisher(host, ClientOptions(acknowledge=True, **options)))


def offered(said: list[Message]) -> set[int]:
    parts = [part for message in said if isinstance(message, Numbered) for part in message.parts]
    return {part.event.sequence for part in parts if isinstance(part, Pub)}


@pytest.mark.feature("mft-pubsub F14", "mft-pubsub F15")
def test_an_acknowledged_publisher_keeps_an_event_until_some_broker_has_it() -> None:
    lonely = publisher()
    assert not lonely.core.publish(event("f", 1))
    lonely.beat("b1", 1)
    assert offered(lonely.heard("b1")) == {1}
    lonely.core.publish(event("f", 2))
    lonely.run(4)
    lonely.beat("b2", 9)
    lonely.run(1)
    first = next(message for message in lonely.heard("b2") if isinstance(message, Numbered))
    assert offered([first]) == {1}
    lonely.core.receive("b2", Ack(first.serial))
    assert list(lonely.core.unsent) == [("p1", 2)]
    assert offered(lonely.heard("b2")) == {2}


@pytest.mark.feature("mft-pubsub F26")
def test_a_publisher_keeps_no_more_than_agreed() -> None:
    lonely = publisher(unsent_max=2)
    for n in range(5):
        lonely.core.publish(event("f", n))
    assert list(lonely.core.unsent) == [("p1", 3), ("p1", 4)]
    assert [row[4] for row in lonely.trace.of("dropped")] == [0, 1, 2]


@attaches
@BOTH
@pytest.mark.feature("mft-pubsub F13")
def test_a_subscriber_that_changes_brokers_gets_every_event_once(rules: Rules) -> None:
    fleet = wired([("b1", "b2"), ("b1", "b3"), ("b2", "s"), ("b3", "s"), ("b1", "p")], rules=rules)
    wires(fleet).cut("b3", "s")
    fleet.run(8)
    fleet.publish("p", "s", 1)
    fleet.run(1)
    wires(fleet).cut("b2", "s")
    fleet.publish("p", "s", 2)
    fleet.run(10)
    fleet.publish("p", "s", 3)
    wires(fleet).heal("b3", "s")
    fleet.run(10)
    fleet.publish("p", "s", 4)
    fleet.run(5)
    assert fleet.at("s") == "b3"
    assert sorted(fleet.got("s")) == [1, 2, 3, 4]


@BOTH
@pytest.mark.feature("mft-pubsub F15", "mft-pubsub F25")
def test_p20_a_publisher_roams_while_no_control_message_is_sent_for_it(rules: Rules) -> None:
    fleet = wired([("b1", "b2"), ("b1", "b3"), ("b2", "p"), ("b3", "p"), ("b1", "s")], rules=rules)
    fleet.run(8)
    before = {name: dict(broker.known) for name, broker in fleet.brokers().items()}
    for n in range(6):
        here, there = ("b2", "b3") if n % 2 else ("b3", "b2")
        wires(fleet).cut(here, "p")
        wires(fleet).heal(there, "p")
        fleet.run(5)
        fleet.publish("p", "s", n)
        fleet.run(1)
    assert fleet.got("s") == list(range(6))
    assert all("p" not in broker.known for broker in fleet.brokers().values())
    assert {name: set(known) for name, known in before.items()} == {"b1": {"s"}, "b2": {"s"}, "b3": {"s"}}
