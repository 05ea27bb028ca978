"""Proximity-driven routing: the spec's worked examples, and each of its rules by itself (spec manet-cbr 2.5 to 2.7)."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from tests.protocols.adhoc.fields import AIR_S, BLACK, GREY, STILL, Ground, black, line

from godwit.events import Event
from godwit.protocols.adhoc.aodv import Hello
from godwit.protocols.adhoc.messages import Beacon, Data, Frame
from godwit.protocols.adhoc.options import Adaptive, Carry, Delay, Options
from godwit.protocols.adhoc.proximity import ProximityBroker
from godwit.protocols.host import LocalError, RemoteError

QUIET = msgspec.structs.replace(STILL, period_s=1000.0)
"""No beacon falls into the test; proximities are set by hand."""


@pytest.mark.feature("manet-cbr F22", "manet-cbr F14", "manet-cbr F12")
def test_t1_the_closer_broker_silences_the_farther() -> None:
    edges = [("b0", "b1"), ("b0", "b2"), ("b1", "b2"), ("b1", "b3"), ("b1", "b4")]
    net = Ground(edges, QUIET)
    net["b4"].subscribe(BLACK, "app")
    net.meet("b1", {"b4": 0})
    net.meet("b2", {"b4": 5})
    net.meet("b3", {"b4": 0})
    net["b0"].publish(black())
    net.run(2)
    assert [(sender, dict(data.destinations)) for sender, data in net.sent()] == [("b0", {}), ("b1", {"b4": 0})]
    assert net.delivered() == ["b4"]


@pytest.mark.feature("manet-cbr F22", "manet-cbr F11", "manet-cbr F12", "manet-cbr F13")
def test_t2_the_list_of_destinations_grows_on_the_way() -> None:
    edges = [("S", "A"), ("A", "B"), ("A", "C"), ("B", "D"), ("C", "E"), ("E", "F"), ("E", "G")]
    net = Ground(edges, QUIET)
    for subscriber in "DFG":
        net[subscriber].subscribe(BLACK, "app")
    met = {"S": {"D": 9}, "A": {"D": 5, "G": 6}, "B": {"D": 0}, "C": {"F": 5, "G": 4}, "E": {"F": 0, "G": 0}}
    for broker, others in met.items():
        net.meet(broker, others)
    net["S"].publish(black())
    net.run(2)
    sent = {sender: dict(data.destinations) for sender, data in net.sent()}
    assert sent == {
        "S": {"D": 90},
        "A": {"D": 50, "G": 60},
        "B": {"D": 0, "G": 60},
        "C": {"D": 50, "G": 40, "F": 50},
        "E": {"D": 50, "G": 0, "F": 0},
    }
    assert len(net.sent()) == 5
    assert sorted(net.delivered()) == ["D", "F", "G"]
    at = net.times()
    assert at["A"] == pytest.approx(AIR_S + 0.5 * 0.3)
    assert at["B"] == pytest.approx(at["A"] + AIR_S)
    assert at["C"] == pytest.approx(at["A"] + AIR_S + 0.4 * 0.3)
    assert at["E"] == pytest.approx(at["C"] + AIR_S)


@pytest.mark.feature("manet-cbr F22", "manet-cbr F15")
def test_t3_each_forced_hop_costs_a_credit_and_the_longest_wait() -> None:
    net = line("S1234", msgspec.structs.replace(QUIET, credits=2))
    net["S"].publish(black())
    net.run(5)
    assert [(sender, data.credit) for sender, data in net.sent()] == [("S", 2), ("1", 1), ("2", 0)]
    assert net.times()["2"] == pytest.approx(2 * (AIR_S + 0.3))


@pytest.mark.feature("manet-cbr F15")
def test_credit_is_not_spent_where_somebody_is_closer() -> None:
    net = line("S12", msgspec.structs.replace(QUIET, credits=2))
    net.meet("1", {"x": 3})
    net["S"].publish(black())
    net.run(5)
    assert [(sender, data.credit) for sender, data in net.sent()] == [("S", 2), ("1", 2), ("2", 1)]


@pytest.mark.feature("manet-cbr F12")
@pytest.mark.parametrize(("listed", "own", "forwards"), [(4, 3, True), (4, 4, False), (4, 5, False), (0, 0, False)])
def test_only_who_is_strictly_closer_sends_on(listed: int, own: int, forwards: bool) -> None:
    net = line("S1", QUIET)
    net.meet("S", {"x": listed})
    net.meet("1", {"x": own})
    net["S"].publish(black())
    net.run(1)
    assert net.senders() == (["S", "1"] if forwards else ["S"])


@pytest.mark.feature("manet-cbr F12")
def test_wanting_it_oneself_is_no_reason_to_send_on_but_is_told_to_others() -> None:
    net = line("S12", QUIET)
    net["1"].subscribe(BLACK, "app")
    net.meet("1", {"x": 0}, GREY)
    net["S"].publish(black())
    net.run(1)
    assert net.senders() == ["S"]
    net.meet("1", {"y": 0})
    net["S"].publish(black(sequence=2))
    net.run(1)
    assert net.sent()[-1][1].destinations == {"1": 0, "y": 0}


@pytest.mark.feature("manet-cbr F13")
def test_the_wait_is_that_of_the_closest_among_those_that_counted() -> None:
    net = line("S1", QUIET)
    net.meet("S", {"near": 1})
    net.meet("1", {"near": 2, "new": 7})
    net["S"].publish(black())
    net.run(1)
    assert net.times()["1"] == pytest.approx(AIR_S + 0.7 * 0.3)


@pytest.mark.feature("manet-cbr F13")
def test_longest_wait_and_jitter_can_be_set() -> None:
    net = line("S1", msgspec.structs.replace(QUIET, delay_max_s=1.0, jitter=0.1))
    net.meet("1", {"x": 5})
    net["S"].publish(black())
    net.run(2)
    assert 0.5 < net.times()["1"] - AIR_S < 0.6


@pytest.mark.feature("manet-cbr F24")
def test_a_random_wait_can_take_the_place_of_proximity_for_comparison() -> None:
    net = line("S1", msgspec.structs.replace(QUIET, delay=Delay.RANDOM))
    net.meet("1", {"x": 0})
    for sequence in range(8):
        net["S"].publish(black(sequence=sequence))
        net.run(2)
    sent = [at for at, sender, _ in net.air.log if sender == "1"]
    waits = {round(at - 2 * number - AIR_S, 6) for number, at in enumerate(sent)}
    assert len(waits) == 8
    assert all(0 <= wait <= 0.3 for wait in waits)


@pytest.mark.feature("manet-cbr F24")
def test_without_suppression_both_send() -> None:
    net = Ground([("S", "1"), ("S", "2"), ("1", "2")], msgspec.structs.replace(QUIET, suppress=False))
    net.meet("1", {"x": 0})
    net.meet("2", {"x": 5})
    net["S"].publish(black())
    net.run(1)
    assert net.senders() == ["S", "1", "2"]


@pytest.mark.feature("manet-cbr F11")
def test_an_event_goes_out_once_even_where_its_source_knows_nobody() -> None:
    net = line("S1", QUIET)
    net["S"].publish(black())
    net.run(1)
    assert [(sender, data.destinations) for sender, data in net.sent()] == [("S", {})]
    silent = line("S1", msgspec.structs.replace(QUIET, publish_to_nobody=False))
    silent["S"].publish(black())
    silent.run(1)
    assert silent.sent() == []


@pytest.mark.feature("manet-cbr F11", "manet-cbr F1")
def test_a_publisher_that_subscribes_gets_its_own_and_says_so() -> None:
    net = line("S1", QUIET)
    net["S"].subscribe(BLACK, "app")
    net["S"].publish(black())
    assert net.told == [("S", "app", black())]
    assert net.sent()[0][1].destinations == {"S": 0}


@pytest.mark.feature("manet-cbr F1")
def test_each_client_is_told_what_it_wants_and_nothing_else() -> None:
    net = line("S1", QUIET)
    net["1"].subscribe(BLACK, "one")
    net["1"].subscribe(BLACK, "two")
    net["1"].subscribe(GREY, "three")
    net["S"].publish(black())
    net.run(1)
    assert [client for _, client, _ in net.told] == ["one", "two"]
    net["1"].unsubscribe(BLACK, "one")
    net["S"].publish(black(sequence=2))
    net.run(1)
    assert [client for _, client, _ in net.told] == ["one", "two", "two"]
    with pytest.raises(LocalError, match="one has not subscribed"):
        net["1"].unsubscribe(BLACK, "one")


@pytest.mark.feature("manet-cbr F10")
def test_an_event_is_taken_and_sent_once_however_often_it_comes() -> None:
    net = Ground([("S", "1"), ("S", "2"), ("1", "3"), ("2", "3")], QUIET)
    net["3"].subscribe(BLACK, "app")
    net.meet("1", {"3": 0})
    net.meet("2", {"3": 0})
    net["S"].publish(black())
    net.run(1)
    assert sorted(net.senders()) == ["1", "2", "S"]
    assert net.delivered() == ["3"]


@pytest.mark.feature("manet-cbr F10")
def test_a_name_cannot_be_used_twice() -> None:
    net = line("S1", QUIET)
    net["S"].publish(black())
    with pytest.raises(LocalError, match="published before"):
        net["S"].publish(black())


@pytest.mark.feature("manet-cbr F6", "manet-cbr F7")
def test_only_who_wants_something_beacons_once_a_period_from_a_random_start() -> None:
    net = line("abc")
    net["a"].subscribe(BLACK, "app")
    net.run(50)
    assert {sender for _, sender, _ in net.beacons()} == {"a"}
    times = [at for at, _, _ in net.beacons()]
    assert 0 <= times[0] < 5
    assert [b - a for a, b in itertools.pairwise(times)] == pytest.approx([5.0] * (len(times) - 1))
    assert net["b"].table.proximity("a", net.world.engine.now) == 0
    assert net["c"].table.proximity("a", net.world.engine.now) is None


@pytest.mark.feature("manet-cbr F6")
def test_everybody_beacons_where_the_text_is_taken_at_its_word() -> None:
    net = line("abc", msgspec.structs.replace(STILL, beacon_when_empty=True))
    net.run(20)
    assert {sender for _, sender, _ in net.beacons()} == set("abc")


@pytest.mark.feature("manet-cbr F6", "manet-cbr F1")
def test_the_last_subscription_leaves_with_one_empty_beacon() -> None:
    net = line("ab")
    net["a"].subscribe(BLACK, "app")
    net.run(7)
    net["a"].unsubscribe(BLACK, "app")
    net.run(20)
    told = [beacon.wanted.filters for _, _, beacon in net.beacons()]
    assert told[-1] == ()
    assert told.count(()) == 1
    assert list(net["b"].table.matching(black().values(), net.world.engine.now)) == []


@pytest.mark.feature("manet-cbr F8", "manet-cbr F22")
def test_t4_who_falls_silent_is_forgotten_at_the_first_look_after_ten_periods() -> None:
    net = line("ab")
    net["a"].subscribe(BLACK, "app")
    net.run(7)
    heard = net["b"].table.entries["a"].time_s
    net.air.cut("a", "b")
    net.world.run(heard + 49.9)
    assert net["b"].table.proximity("a", heard + 49.9) == 90
    net.world.run(heard + 55.1)
    assert net["b"].table.proximity("a", heard + 55.1) is None


@pytest.mark.feature("manet-cbr F14")
def test_a_copy_in_the_queue_of_the_radio_is_taken_back() -> None:
    net = line("S1", QUIET)
    taken: list[object] = []
    broker = net.world.nodes["1"].core = ProximityBroker(net.world.nodes["1"], QUIET, withdraw=taken.append)
    broker.table.heard("x", BLACK, 0.0)
    net["S"].publish(black())
    net.run(0.1)
    assert net.senders() == ["S", "1"]
    broker.receive("2", Data(black()))
    assert taken == [net.sent()[-1][1]]
    broker.receive("3", Data(black()))
    assert len(taken) == 1


def test_a_stranger_is_refused_and_changes_nothing() -> None:
    net = line("S1", QUIET)
    with pytest.raises(RemoteError, match="Hello is no message"):
        net["S"].receive("1", Hello(1))
    net["S"].receive("S", Beacon(BLACK))
    assert net["S"].table.entries == {}


@pytest.mark.feature("manet-cbr F5")
def test_what_is_said_survives_the_wire_and_nonsense_is_refused() -> None:
    decoder = msgspec.msgpack.Decoder(Frame)
    net = line(
        "ab", msgspec.structs.replace(STILL, carry=Carry(), adaptive=Adaptive(), hints_max=4, hints_in_data=True)
    )
    net["a"].subscribe(BLACK, "app")
    net["b"].publish(black("b"))
    net.run(20)
    net["b"].publish(black("b", 2))
    for _, _, message in net.air.log:
        assert decoder.decode(msgspec.msgpack.encode(message)) == message
    far = msgspec.msgpack.encode({"type": "Data", "event": Event("p", 1), "destinations": {"x": 101}})
    with pytest.raises(msgspec.ValidationError, match="<= 100"):
        decoder.decode(far)
    poor = msgspec.msgpack.encode({"type": "Data", "event": Event("p", 1), "credit": -1})
    with pytest.raises(msgspec.ValidationError, match=">= 0"):
        decoder.decode(poor)


@pytest.mark.feature("manet-cbr F24")
def test_an_adaptive_period_follows_how_long_brokers_stay() -> None:
    net = line("ab", msgspec.structs.replace(STILL, adaptive=Adaptive()))
    for name in "ab":
        net[name].subscribe(BLACK, "app")

    def stay(for_s: float, times: int) -> float:
        for _ in range(times):
            net.air.connect("a", "b", AIR_S)
            net.run(for_s)
            net.air.cut("a", "b")
            net.run(200 - for_s)
        return net["a"].period_s

    slow, hasty, slow_again = stay(100, 3), stay(5, 60), stay(100, 6)
    assert hasty < 0.6 * slow
    assert slow_again > 1.5 * hasty
    assert all(1.0 <= beacon.period_s <= 15.0 for _, _, beacon in net.beacons() if beacon.period_s is not None)
    assert {beacon.period_s for _, _, beacon in net.beacons()} > {hasty}


@pytest.mark.feature("manet-cbr F24")
def test_a_hint_makes_known_who_is_two_hops_away() -> None:
    net = line("abc", msgspec.structs.replace(STILL, hints_max=4))
    net["a"].subscribe(BLACK, "app")
    net["b"].subscribe(GREY, "app")
    net.run(30)
    now = net.world.engine.now
    assert net["c"].table.proximity("a", now) in (10, 20, 30)
    assert [name for name, _ in net["c"].table.matching(black().values(), now)] == ["a"]


@pytest.mark.feature("manet-cbr F24")
def test_a_carrier_gives_an_event_to_whoever_comes_later_and_once() -> None:
    options = msgspec.structs.replace(STILL, carry=Carry())
    net = Ground([("S", "1"), ("2", "3")], options)
    net["3"].subscribe(BLACK, "app")
    net["S"].publish(black())
    net.run(10)
    assert net.delivered() == []
    net.air.connect("1", "3", AIR_S)
    net.run(30)
    assert net.delivered() == ["3"]
    assert net.senders().count("1") == 1


@pytest.mark.feature("manet-cbr F24")
def test_what_is_too_old_is_carried_no_further() -> None:
    net = Ground([("S", "1"), ("2", "3")], msgspec.structs.replace(STILL, carry=Carry(age_max_s=20.0)))
    net["3"].subscribe(BLACK, "app")
    net["S"].publish(black())
    net.run(30)
    net.air.connect("1", "3", AIR_S)
    net.run(30)
    assert net.delivered() == []


@pytest.mark.feature("manet-cbr F24")
def test_of_several_carriers_one_speaks() -> None:
    net = Ground([("S", "1"), ("S", "2"), ("1", "2"), ("3", "4")], msgspec.structs.replace(STILL, carry=Carry()))
    net["4"].subscribe(BLACK, "app")
    net["S"].publish(black())
    net.run(10)
    for carrier in ("1", "2"):
        net.air.connect(carrier, "4", AIR_S)
    net.run(15)
    assert net.delivered() == ["4"]
    assert len(net.sent()) == 2


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"period_s": 0}, "period_s 0: must be more than 0"),
        ({"credits": 256}, "credits 256: from 0 to 255"),
        ({"period_jitter": 1.0}, "period_jitter 1"),
        ({"carry": Carry(age_max_s=90)}, "less than seen_s"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Options(**wrong)  # type: ignore[arg-type]
