"""Clients that come, go and move: nothing lost, nothing for ever in flight, and no client subscribes again."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from tests.protocols.gathering.golden import Tape
from tests.protocols.gathering.worlds import QUIET, Facts, world

from godwit.protocols.gathering.areas import Disc
from godwit.protocols.gathering.clients import Presence, home_keys
from godwit.protocols.gathering.messages import (
    Associate,
    ClientId,
    Handover,
    Item,
    LookupAnswer,
    Notice,
    Register,
    Update,
)
from godwit.protocols.gathering.phone import Phone
from godwit.protocols.gathering.rules import Rules
from godwit.protocols.host import Message, NodeId
from godwit.sim.ring.gathering import Gathering
from godwit.sim.ring.underlay import kind_of

EVERYWHERE = Disc((50.0, 50.0), 200.0)


class Scene:
    """A phone that wants everything, and a sensor in another corner."""

    def __init__(self, rules: Rules = QUIET, brokers: int = 16) -> None:
        self.gathering, self.facts = world(brokers, 11, rules)
        self.phone = self.gathering.phone("ada")
        self.go("b03")
        self.phone.subscribe("t", EVERYWHERE)
        self.sensor = self.gathering.phone("sensor")
        self.gathering.attach("sensor", "b12")
        self.gathering.run_for(5.0)
        self.published = 0

    def go(self, broker: NodeId) -> None:
        self.gathering.detach("ada")
        self.gathering.attach("ada", broker)
        self.gathering.run_for(5.0)

    def leave(self) -> None:
        self.gathering.detach("ada")

    def publish(self, count: int = 1) -> None:
        for _ in range(count):
            self.sensor.publish("t", (88.0, 12.0))
            self.published += 1
            self.gathering.run_for(1.0)
        self.gathering.run_for(5.0)

    def received(self) -> int:
        return len(self.phone.history())

    def broker(self, name: NodeId) -> object:
        return self.gathering.brokers[name]

    def profiles(self) -> list[NodeId]:
        return sorted(name for name, broker in self.gathering.brokers.items() if broker.profiles.has("ada"))

    def sources(self) -> set[bytes]:
        return {one.source for broker in self.gathering.brokers.values() for one in broker.store.by_client("ada")}


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.feature("data-gathering F24")
def test_an_absent_client_is_noticed_after_three_sends_and_everything_is_kept(scene: Scene) -> None:
    scene.publish(2)
    scene.leave()
    scene.publish(5)
    profile = scene.gathering.brokers["b03"].profiles.get("ada")
    assert profile is not None
    assert profile.presence is Presence.ABSENT
    assert scene.facts.nodes("absent") == ["b03"]
    assert (scene.received(), len(profile.buffer)) == (2, 5)
    assert scene.gathering.brokers["b03"].profiles.count_attached() == 0
    assert scene.gathering.brokers["b03"].profiles.buffered_total() == 5


@pytest.mark.feature("data-gathering F24")
def test_what_was_sent_and_not_confirmed_is_kept_too(scene: Scene) -> None:
    scene.sensor.publish("t", (88.0, 12.0))
    scene.leave()
    scene.gathering.run_for(20.0)
    scene.go("b03")
    assert scene.received() == 1


@pytest.mark.feature("data-gathering F24")
def test_a_bounded_buffer_drops_its_oldest_and_counts_it() -> None:
    scene = Scene(msgspec.structs.replace(QUIET, buffer_max=3))
    scene.leave()
    scene.publish(5)
    profile = scene.gathering.brokers["b03"].profiles.get("ada")
    assert profile is not None
    assert profile.dropped == 2
    scene.go("b03")
    assert [item.item[1] for item in scene.phone.history()] == [3, 4, 5]


@pytest.mark.feature("data-gathering F25")
def test_a_client_back_at_the_same_broker_gets_everything_at_once_without_a_handover(scene: Scene) -> None:
    scene.leave()
    scene.publish(4)
    tape = Tape(scene.gathering)
    scene.gathering.attach("ada", "b03")
    scene.gathering.run_for(0.01)
    assert scene.received() == 4
    scene.gathering.run_for(5.0)
    assert tape.of("Handover") == []


@pytest.mark.feature("data-gathering F26")
@pytest.mark.feature("data-gathering F28")
@pytest.mark.feature("data-gathering F31")
def test_a_relocation_runs_through_the_published_messages_in_their_order(scene: Scene) -> None:
    scene.leave()
    scene.publish(3)
    tape = Tape(scene.gathering)
    subscribed = scene.gathering.underlay.sent["Subscribe"]
    scene.go("b09")
    scene.gathering.run_for(5.0)
    kinds = list(dict.fromkeys(kind for kind, _, _ in tape.rows))
    order = ["Register", "Registered", "Handover", "HandoverAnswer"]
    assert [kind for kind in kinds if kind in order] == order
    assert kinds.index("Handover") < kinds.index("Forward")
    assert kinds.index("Handover") < kinds.index("Update") < kinds.index("UpdateAnswer")
    assert scene.received() == 3
    assert scene.profiles() == ["b09"]
    pointer = scene.gathering.brokers["b03"].pointers.get("ada")
    assert pointer is not None
    assert pointer.broker == scene.gathering.brokers["b09"].key
    assert scene.gathering.underlay.sent["Subscribe"] == subscribed
    scene.publish(2)
    assert scene.received() == 5
    assert tape.of("Forward")[-1][1] == "b09"


@pytest.mark.feature("data-gathering F28")
def test_a_matching_broker_that_was_not_updated_is_told_when_it_sends_to_the_old_place(scene: Scene) -> None:
    scene.go("b09")
    matcher = next(b for b in scene.gathering.brokers.values() if b.cell.owns_all((88.0, 12.0)))
    assert {one.source for one in matcher.store.by_client("ada")} == {scene.gathering.brokers["b03"].key}
    tape = Tape(scene.gathering)
    scene.publish()
    assert tape.of("Forward")
    assert tape.of("Update")
    assert {one.source for one in matcher.store.by_client("ada")} == {scene.gathering.brokers["b09"].key}
    tape.rows.clear()
    scene.publish()
    assert scene.received() == 2
    assert tape.of("Forward") == tape.of("Update") == []


@pytest.mark.feature("data-gathering F27")
@pytest.mark.feature("data-gathering F29")
def test_where_the_pointer_gave_way_to_others_the_homes_are_asked() -> None:
    scene = Scene(msgspec.structs.replace(QUIET, pointers_max=1))
    scene.go("b09")
    old = scene.gathering.brokers["b03"]
    assert old.pointers.has("ada")
    old.pointers.put("somebody", b"x" * 16, 1)
    assert old.pointers.evictions == 1
    tape = Tape(scene.gathering)
    scene.publish()
    assert tape.of("Lookup")
    assert scene.received() == 1


@pytest.mark.feature("data-gathering F27")
def test_a_client_that_comes_back_removes_the_pointer_after_it(scene: Scene) -> None:
    scene.go("b09")
    scene.go("b03")
    assert not scene.gathering.brokers["b03"].pointers.has("ada")
    scene.publish(2)
    assert scene.received() == 2


@pytest.mark.feature("data-gathering F21")
@pytest.mark.feature("data-gathering F22")
def test_the_nodes_in_charge_of_the_hashes_know_where_a_client_is(scene: Scene) -> None:
    for key in home_keys("ada", 3):
        homes = [broker for broker in scene.gathering.brokers.values() if broker.ring.next_hop(key) is None]
        assert len(homes) == 1
        found = homes[0].care_of.get("ada")
        assert found is not None
        assert found.broker == scene.gathering.brokers["b03"].key


@pytest.mark.feature("data-gathering F22")
def test_a_handover_waits_for_the_homes_but_not_for_ever() -> None:
    scene = Scene()
    scene.leave()
    scene.publish(2)
    scene.gathering.underlay.lose = lambda sender, to, message: _is(message, "Registered")
    begun = scene.gathering.world.engine.now
    scene.gathering.attach("ada", "b09")
    scene.gathering.run_for(60.0)
    assert scene.received() == 2
    handed = [time for time, _, record in scene.facts.rows if record.kind == "handed over"]
    assert handed[-1] - begun > QUIET.register_s * QUIET.registers_max


def _is(message: Message, name: str) -> bool:
    return kind_of(message) == name


@pytest.mark.feature("data-gathering F23")
def test_the_first_usable_answer_ends_a_look_up_and_late_ones_change_nothing(scene: Scene) -> None:
    scene.go("b09")
    asker = scene.gathering.brokers["b05"]
    here = scene.gathering.brokers["b09"].key
    asker.mobility.found(LookupAnswer("ada", here, 99))
    assert not asker.pointers.has("ada")


@pytest.mark.feature("data-gathering F23")
def test_a_look_up_that_nobody_can_answer_is_repeated_with_growing_pauses(scene: Scene) -> None:
    tape = Tape(scene.gathering)
    scene.gathering.brokers["b05"].mobility.deliver("nobody", _notice(scene.gathering))
    scene.gathering.run_for(100.0)
    asked = [time for time, row in zip(tape.times, tape.rows, strict=True) if row[0] == "Lookup" and row[1] == "b05"]
    rounds = [time for at, time in enumerate(asked) if not at or time - asked[at - 1] > 1.0]
    pauses = [b - a for a, b in pairwise(rounds)]
    assert len(pauses) >= 3
    assert pauses == sorted(pauses)
    scene.gathering.phone("nobody")
    scene.gathering.attach("nobody", "b10")
    scene.gathering.run_for(100.0)
    assert len(scene.gathering.phones["nobody"].history()) == 1


def _notice(gathering: Gathering) -> Notice:
    return Notice(Item(("p", 1), "t", (1.0, 1.0), 0.0), gathering.brokers["b00"].key)


@pytest.mark.feature("data-gathering F30")
def test_a_handover_of_an_earlier_move_leaves_the_client_where_it_is(scene: Scene) -> None:
    scene.go("b09")
    scene.go("b03")
    old = scene.gathering.brokers["b03"]
    old.mobility.hand_over(Handover("ada", scene.gathering.brokers["b09"].key, 2))
    scene.gathering.run_for(5.0)
    assert scene.profiles() == ["b03"]
    scene.publish()
    assert scene.received() == 1


@pytest.mark.feature("data-gathering F30")
def test_late_registrations_updates_and_associations_do_no_harm(scene: Scene) -> None:
    scene.go("b09")
    scene.go("b03")
    scene.publish()
    there = scene.gathering.brokers["b09"]
    for broker in scene.gathering.brokers.values():
        broker.mobility.update(Update("ada", there.key, 2, there.key))
        broker.care_of.put("ada", there.key, 2)
    there.mobility.register(Register("ada", there.key, 1))
    there.mobility.associate("ada", Associate("ada", 2, b"", ()))
    scene.gathering.run_for(5.0)
    assert scene.profiles() == ["b03"]
    scene.publish(2)
    assert scene.received() == 3


@pytest.mark.feature("data-gathering F30")
def test_an_absent_clients_broker_asks_for_it_and_hands_over_without_being_told() -> None:
    scene = Scene(msgspec.structs.replace(QUIET, recheck_s=10.0, handover=False))
    scene.leave()
    scene.publish(3)
    scene.gathering.attach("ada", "b09")
    scene.gathering.run_for(1.0)
    assert scene.received() == 0
    scene.gathering.run_for(30.0)
    assert scene.received() == 3


@pytest.mark.feature("data-gathering F32")
def test_a_client_is_found_while_one_home_of_three_is_alive() -> None:
    rules = msgspec.structs.replace(QUIET, ack_s=0.3, tries=2)
    scene = Scene(rules, brokers=30)
    scene.go("b09")
    homes = {name for name, broker in scene.gathering.brokers.items() if broker.care_of.get("ada") is not None}
    assert len(homes) == 3
    spared = {"b03", "b09", "b12"} | {
        name for name, b in scene.gathering.brokers.items() if b.cell.owns_all((88.0, 12.0))
    }
    victims = sorted(homes - spared)[:2]
    assert len(victims) == 2
    for victim in victims:
        scene.gathering.crash(victim)
    scene.gathering.brokers["b03"].pointers.remove("ada")
    scene.publish()
    scene.gathering.run_for(60.0)
    assert scene.received() == 1


@pytest.mark.feature("data-gathering F30")
def test_a_notice_that_is_redirected_too_often_is_given_up_and_counted(scene: Scene) -> None:
    broker = scene.gathering.brokers["b05"]
    broker.pointers.put("cleo", scene.gathering.brokers["b06"].key, 1)
    notice = msgspec.structs.replace(_notice(scene.gathering), chain=QUIET.chain_max)
    broker.mobility.deliver("cleo", notice)
    assert broker.counts["dead letters"] == 1


@pytest.mark.feature("data-gathering F34")
def test_a_client_that_never_returns_loses_its_profile_in_the_end() -> None:
    scene = Scene(msgspec.structs.replace(QUIET, recheck_s=10.0, profile_ttl_s=60.0))
    scene.leave()
    scene.publish(3)
    scene.gathering.run_for(120.0)
    broker = scene.gathering.brokers["b03"]
    assert scene.profiles() == []
    assert (broker.counts["profiles expired"], broker.counts["dead letters"]) == (1, 3)


def test_the_client_repeats_an_association_that_is_not_answered_with_the_same_epoch(scene: Scene) -> None:
    epochs: list[int] = []

    def lose(sender: NodeId, to: NodeId, message: object) -> bool:
        if isinstance(message, Associate):
            epochs.append(message.epoch)
            return len(epochs) < 4
        return False

    scene.gathering.underlay.lose = lose
    scene.go("b09")
    assert epochs == [2, 2, 2, 2]
    assert scene.phone.attached


def clients(facts: Facts, kind: str) -> list[ClientId]:
    return [record.client for _, _, record in facts.rows if record.kind == kind]


def test_a_phone_drops_what_it_has_and_sorts_what_comes_late() -> None:
    scene = Scene()
    scene.leave()
    scene.publish(3)
    scene.go("b09")
    times = [item.time_s for item in scene.phone.history()]
    assert times == sorted(times)
    assert isinstance(scene.phone, Phone)
    assert clients(scene.facts, "delivered") == ["ada"] * 3
