from __future__ import annotations

import msgspec
import pytest
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Stage, between, joined

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.messages import Activate, CtxResponse, FwdMsgs, NbrList, Ping, Publish
from godwit.protocols.handoff_schemes.proactive.scheme import summary
from godwit.protocols.handoff_schemes.records import Kind, Mode
from godwit.protocols.handoff_schemes.rules import HARDENED, LITERAL, OURS, SPARING, Rules
from godwit.protocols.host import RemoteError


def with_rules(**changes: bool) -> HandoffOptions:
    return msgspec.structs.replace(UNBOUNDED, rules=msgspec.structs.replace(HARDENED, **changes))


def copy(stage: Stage, broker: str, subscriber: str = "s") -> tuple[Kind, Mode] | None:
    record = stage.brokers[broker].records.get(subscriber)
    return record and (record.kind, record.mode)


ASLEEP, AWAKE, OWN = (Kind.DUMMY, Mode.PASSIVE), (Kind.DUMMY, Mode.ACTIVE), (Kind.REAL, Mode.ACTIVE)


@pytest.mark.feature("proactive-handoff F12")
def test_a_new_subscription_sleeps_at_every_neighbor_and_nowhere_else() -> None:
    stage = joined("ABCD", "AB", "AC", "CD")
    stage.client("s", "A")
    stage.settle()
    assert [copy(stage, name) for name in "ABCD"] == [OWN, ASLEEP, ASLEEP, None]
    stage.publish(to="ABCD")
    assert len(stage.brokers["B"].buffer) == 0


@pytest.mark.feature("proactive-handoff F13")
def test_a_lost_client_wakes_its_stand_ins_from_its_last_event_on() -> None:
    stage = joined("ABC", "AB", "AC")
    stage.client("s", "A")
    stage.settle()
    stage.publish(to="ABC")
    stage.vanish("s")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, AWAKE, AWAKE]
    assert stage.brokers["B"].records["s"].marks == {"P": 0}
    stage.publish(to="ABC")
    assert [len(stage.brokers[name].buffer) for name in "ABC"] == [1, 1, 1]


@pytest.mark.feature("proactive-handoff F14")
def test_what_fell_between_the_waking_and_its_confirmation_is_sent_after() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.publish(to="AB")
    stage.carry_all("A", "B")
    assert len(stage.brokers["B"].buffer) == 1


@pytest.mark.feature("proactive-handoff F14")
@pytest.mark.parametrize(("high_water", "got"), [(True, [0]), (False, [])])
def test_an_event_that_the_neighbor_saw_asleep_and_the_old_broker_late_needs_the_high_water_mark(
    high_water: bool, got: list[int]
) -> None:
    stage = joined("AB", "AB", options=with_rules(ack_high_water=high_water))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.publish(to="B")
    stage.carry_all("A", "B")
    stage.carry_all("B", "A")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.settle()
    assert stage.notes("attached") == ["hit"]
    assert stage.got["s"] == got


@pytest.mark.feature("proactive-handoff F14")
@pytest.mark.parametrize(("gap_safe", "got"), [(True, [0, 1, 2]), (False, [1, 2])])
def test_an_early_arrival_waits_for_the_end_of_the_catch_up(gap_safe: bool, got: list[int]) -> None:
    stage = joined("AB", "AB", options=with_rules(gap_safe=gap_safe))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.publish(to="AB")
    stage.carry("A", "B")
    stage.publish(to="AB")
    stage.clients["s"].connect("B")
    stage.publish(to="AB")
    assert stage.got["s"] == ([] if gap_safe else [1, 2])
    stage.settle()
    assert stage.got["s"] == got


@pytest.mark.feature("proactive-handoff F14")
def test_the_guard_gives_up_waiting_for_a_catch_up_that_never_ends() -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(UNBOUNDED, guard_s=0.2))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.carry("A", "B")
    stage.clients["s"].connect("B")
    stage.publish(to="B")
    assert stage.got["s"] == []
    stage.pass_time(0.2)
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F15")
def test_a_client_back_at_its_broker_gets_what_waited_and_the_stand_ins_sleep_again() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.publish(to="AB")
    stage.clients["s"].connect("A")
    assert stage.got["s"] == [0]
    stage.publish(to="AB")
    stage.settle()
    assert stage.got["s"] == [0, 1]
    assert copy(stage, "B") == ASLEEP
    assert len(stage.brokers["B"].buffer) == 0


@pytest.mark.feature("proactive-handoff F16", "proactive-handoff F17")
def test_a_move_touches_only_what_differs_between_the_two_neighborhoods() -> None:
    stage = joined("ABCDE", "AB", "AC", "BC", "AD", "BE")
    stage.client("s", "A")
    stage.settle()
    assert [copy(stage, name) for name in "ABCDE"] == [OWN, ASLEEP, ASLEEP, ASLEEP, None]
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    assert stage.waiting("B", "C") == []
    assert stage.waiting("B", "E") == ["StoreSub"]
    stage.carry_all("B", "A")
    assert stage.waiting("A", "C") == ["Deactivate"]
    assert stage.waiting("A", "D") == ["Delete"]
    stage.settle()
    assert [copy(stage, name) for name in "ABCDE"] == [ASLEEP, OWN, ASLEEP, None, ASLEEP]


@pytest.mark.feature("proactive-handoff F17")
def test_a_client_that_arrives_takes_over_in_order_and_live_events_follow() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    for _ in range(3):
        stage.publish(to="AB")
    stage.clients["s"].connect("B")
    stage.publish(to="BA")
    assert stage.got["s"] == [0, 1, 2, 3]
    assert stage.notes("attached") == ["hit"]


@pytest.mark.feature("proactive-handoff F18", "proactive-handoff F20")
def test_without_a_stand_in_the_old_broker_is_asked_and_both_backlogs_are_merged() -> None:
    stage = Stage("AB")
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="AB")
    stage.clients["s"].connect("B")
    stage.publish(to="AB")
    assert stage.got["s"] == []
    stage.settle()
    assert stage.notes("attached") == ["miss"]
    assert stage.got["s"] == [0, 1]


@pytest.mark.feature("proactive-handoff F18")
def test_a_stand_in_that_still_sleeps_is_no_hit() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.move("s", "B", noticed=False)
    stage.publish(to="AB")
    stage.settle()
    assert stage.notes("attached") == ["miss"]
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F19")
def test_an_unsubscription_outranks_everything_under_way() -> None:
    stage = joined("ABC", "AB", "AC", "BC")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.clients["s"].unsubscribe()
    stage.carry_all("B", "C")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [None, None, None]


@pytest.mark.feature("proactive-handoff F20")
def test_nothing_arrives_that_is_not_subscribed() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A", between(10, 29))
    stage.settle()
    stage.vanish("s")
    stage.settle()
    for value in (5, 15, 40, 29):
        stage.publish(value, to="AB")
    stage.clients["s"].connect("B")
    stage.settle()
    assert stage.got["s"] == [1, 3]


@pytest.mark.feature("proactive-handoff F21")
def test_those_who_never_return_are_given_up_everywhere() -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(UNBOUNDED, timeout_s=60))
    stage.client("s", "A")
    stage.settle()
    stage.publish(to="AB")
    stage.vanish("s")
    stage.settle()
    stage.publish(to="AB")
    stage.pass_time(59)
    assert copy(stage, "B") == AWAKE
    stage.pass_time(1)
    stage.settle()
    assert [copy(stage, name) for name in "AB"] == [None, None]
    assert [len(stage.brokers[name].buffer) for name in "AB"] == [0, 0]
    stage.clients["s"].connect("A")
    stage.publish(to="AB")
    assert stage.got["s"] == [0, 2]
    assert stage.notes("attached") == []


@pytest.mark.feature("proactive-handoff F21")
def test_a_context_that_is_gone_is_begun_again_at_the_new_broker() -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(UNBOUNDED, timeout_s=60))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.pass_time(60)
    stage.settle()
    stage.clients["s"].connect("B")
    stage.settle()
    stage.publish(to="AB")
    assert [record.kind for _, record in stage.facts if record.kind == "unknown"] == ["unknown"]
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
@pytest.mark.parametrize("rules", [SPARING, HARDENED])
def test_c1_a_late_deactivate_does_not_put_a_newly_woken_copy_to_sleep(rules: Rules) -> None:
    stage = joined("ABC", "AB", "AC", "BC", options=msgspec.structs.replace(UNBOUNDED, rules=rules))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.carry_all("B", "A")
    assert stage.waiting("A", "C") == ["Deactivate"]
    stage.vanish("s")
    stage.carry_all("B", "C")
    stage.carry_all("A", "C")
    assert copy(stage, "C") == AWAKE


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F23", "proactive-handoff F47")
@pytest.mark.parametrize("delete_first", [True, False])
def test_c2_a_copy_deleted_by_the_old_broker_is_woken_all_the_same(delete_first: bool) -> None:
    stage = joined("ABC", "AB", "AC")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.carry_all("B", "A")
    assert stage.waiting("A", "C") == ["Delete"]
    stage.brokers["B"].graph.touch("C", 0.0)
    stage.vanish("s")
    first, second = ("A", "B") if delete_first else ("B", "A")
    stage.carry_all(first, "C")
    stage.carry_all(second, "C")
    stage.settle()
    assert copy(stage, "C") == AWAKE


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
def test_c3_an_unsubscription_is_not_refused_for_a_late_deactivate() -> None:
    stage = joined("ABC", "AB", "AC", "BC")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.carry_all("B", "A")
    stage.clients["s"].unsubscribe()
    stage.carry_all("B", "C")
    assert copy(stage, "C") is None
    stage.carry_all("A", "C")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [None, None, None]


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
def test_c4_a_broker_that_never_heard_of_the_move_cannot_delete_what_another_has_woken() -> None:
    stage = joined("ABC", "AB", "AC", "BC", options=msgspec.structs.replace(UNBOUNDED, timeout_s=60))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.vanish("s")
    stage.carry_all("B", "C")
    stage.pass_time(60)
    assert "Delete" in stage.waiting("A", "C")
    stage.mail["B", "C"].clear()
    stage.carry_all("A", "C")
    assert copy(stage, "C") == AWAKE


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
def test_a_late_activate_cannot_take_control_back() -> None:
    stage = joined("ABC", "AB", "AC", "BC")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    late = stage.mail["A", "C"].popleft()
    assert isinstance(late, Activate)
    stage.settle()
    stage.clients["s"].connect("B")
    stage.settle()
    stage.publish(to="ABC")
    stage.vanish("s")
    stage.settle()
    stage.brokers["C"].receive("A", late)
    record = stage.brokers["C"].records["s"]
    assert (record.controller, record.marks) == ("B", {"P": 0})
    assert stage.waiting("C", "A") == ["ActivateAck"]


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
@pytest.mark.parametrize(("rules", "survives"), [(HARDENED, True), (LITERAL, False)])
def test_a_fast_return_is_not_undone_by_the_late_news_of_the_move(rules: Rules, survives: bool) -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(UNBOUNDED, rules=rules))
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.clients["s"].connect("B")
    stage.move("s", "A")
    stage.settle()
    stage.publish(to="AB")
    assert (stage.got["s"] == [0]) is survives


@pytest.mark.feature("proactive-handoff F22", "proactive-handoff F47")
def test_a_copy_stored_late_does_not_come_back_after_its_deletion() -> None:
    stage = joined("ABCD", "AB", "AC", "BC", "BD")
    stage.client("s", "A")
    late = stage.mail["A", "C"].popleft()
    for place in "BD":
        stage.move("s", place, noticed=False)
        stage.settle()
    stage.brokers["C"].receive("A", late)
    assert copy(stage, "C") is None


@pytest.mark.feature("proactive-handoff F23", "proactive-handoff F47")
def test_a_missing_copy_is_not_replaced_once_its_edge_has_aged_away() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.brokers["B"].forget("s")
    stage.vanish("s")
    stage.carry_all("A", "B")
    assert stage.waiting("B", "A") == ["ActivateMiss"]
    stage.brokers["A"].graph.drop("B", 0.0)
    stage.brokers["A"].edge_gone("B")
    stage.settle()
    assert copy(stage, "B") is None


@pytest.mark.feature("proactive-handoff F18", "proactive-handoff F47")
def test_fetches_chain_through_brokers_that_were_left_before_their_context_came() -> None:
    stage = Stage("ABCD")
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="ABCD")
    for place in "BCD":
        stage.clients["s"].connect(place)
        stage.publish(to="ABCD")
        if place != "D":
            stage.vanish("s")
    stage.settle()
    assert stage.got["s"] == [0, 1, 2, 3]
    assert [copy(stage, name) for name in "ABC"].count(OWN) == 0


@pytest.mark.feature("proactive-handoff F24")
@pytest.mark.parametrize(("filtered", "got"), [(True, [0]), (False, [0, 0])])
def test_a_lost_acknowledgement_costs_a_repetition_unless_the_client_filters(filtered: bool, got: list[int]) -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A", drop_seen=filtered)
    stage.settle()
    stage.lossy.add("s")
    stage.publish(to="AB")
    stage.vanish("s")
    stage.settle()
    stage.lossy.clear()
    stage.clients["s"].connect("B")
    stage.settle()
    assert stage.got["s"] == got


@pytest.mark.feature("proactive-handoff F24")
def test_marks_are_kept_publisher_by_publisher() -> None:
    stage = joined("AB", "AB")
    stage.client("s", "A")
    stage.settle()
    stage.publish(to="A", publisher="P")
    stage.publish(to="AB", publisher="Q")
    stage.vanish("s")
    stage.settle()
    stage.publish(to="AB", publisher="P")
    stage.clients["s"].connect("B")
    stage.settle()
    assert stage.got["s"] == [0, 1, 2]
    assert stage.brokers["B"].records["s"].marks == {"P": 2, "Q": 1}


def test_an_event_that_comes_twice_is_seen_once() -> None:
    stage = Stage("A")
    stage.client("s", "A")
    event = stage.publish(to="A")
    stage.brokers["A"].receive("elsewhere", Publish(event))
    assert stage.got["s"] == [0]


def test_what_a_broker_does_not_know_is_the_peer_s_fault_and_changes_nothing() -> None:
    stage = Stage("A")
    stage.client("s", "A")
    with pytest.raises(RemoteError, match="x sends Ping, which ProActive does not know"):
        stage.brokers["A"].receive("x", Ping("s"))
    stage.brokers["A"].receive("x", CtxResponse("nobody", 7))
    stage.brokers["A"].receive("x", NbrList(frozenset("A")))
    stage.publish(to="A")
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F30")
def test_an_announced_move_wakes_only_the_next_broker() -> None:
    stage = joined("ABC", "AB", "AC")
    stage.client("s", "A")
    stage.settle()
    stage.clients["s"].leave("C")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, ASLEEP, AWAKE]
    stage.publish(to="ABC")
    stage.clients["s"].connect("C")
    stage.settle()
    assert stage.notes("attached") == ["hit"]
    assert stage.got["s"] == [0]
    assert AWAKE not in [copy(stage, name) for name in "ABC"]


@pytest.mark.feature("proactive-handoff F30")
def test_prefetching_places_nothing_before_the_client_has_gone_and_leaves_nothing_behind() -> None:
    stage = joined("ABC", "AB", "AC", options=msgspec.structs.replace(UNBOUNDED, prefetch=True))
    stage.client("s", "A")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, None, None]
    stage.vanish("s")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, AWAKE, AWAKE]
    stage.publish(to="ABC")
    stage.clients["s"].connect("B")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [None, OWN, None]
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F6", "proactive-handoff F18")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("then", ["C", "A", "D"])
def test_a_client_that_left_before_it_heard_that_it_was_let_in_is_found_all_the_same(then: str, late: bool) -> None:
    stage = joined("ABCD", "AB", "AC", "BC")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.publish(to="ABCD")
    stage.deaf.add("s")
    stage.clients["s"].connect("B")
    if not late:
        stage.settle()
    stage.vanish("s")
    stage.deaf.clear()
    assert stage.clients["s"].log.previous == "A"
    stage.publish(to="ABCD")
    stage.clients["s"].connect(then)
    stage.settle()
    stage.publish(to="ABCD")
    assert stage.got["s"] == [0, 1, 2]
    own = [name for name in "ABCD" if copy(stage, name) == OWN]
    assert own == [then]
    assert AWAKE not in [copy(stage, name) for name in "ABCD"]


COVERING = msgspec.structs.replace(UNBOUNDED, covering=True)


@pytest.mark.feature("proactive-handoff F25")
def test_an_included_subscription_needs_no_copies_and_is_found_awake_all_the_same() -> None:
    stage = joined("AB", "AB", options=COVERING)
    stage.client("wide", "A", between(0, 50))
    stage.client("narrow", "A", between(10, 20))
    stage.client("beside", "A", between(40, 60))
    stage.settle()
    assert [copy(stage, "B", name) for name in ("wide", "narrow", "beside")] == [ASLEEP, None, ASLEEP]
    stage.publish(15, to="AB")
    stage.vanish("narrow")
    stage.settle()
    assert stage.brokers["B"].records["narrow"].marks == {"P": 0}
    stage.publish(15, to="AB")
    stage.publish(30, to="AB")
    stage.clients["narrow"].connect("B")
    stage.settle()
    assert stage.notes("attached") == ["hit"]
    assert stage.got["narrow"] == [0, 1]


@pytest.mark.feature("proactive-handoff F25")
@pytest.mark.parametrize("how", ["unsubscribes", "moves"])
def test_when_the_including_one_goes_the_included_get_their_own_copies(how: str) -> None:
    stage = joined("ABC", "AB", "AC", options=COVERING)
    stage.client("wide", "A", between(0, 50))
    stage.client("narrow", "A", between(10, 20))
    stage.client("inner", "A", between(12, 15))
    stage.settle()
    if how == "unsubscribes":
        stage.clients["wide"].unsubscribe()
    else:
        stage.move("wide", "B")
    stage.settle()
    assert [copy(stage, "C", name) for name in ("wide", "narrow", "inner")] == [None, ASLEEP, None]


@pytest.mark.feature("proactive-handoff F19", "proactive-handoff F47")
def test_an_unsubscription_that_overtakes_the_news_of_a_move_reaches_the_copies_of_the_broker_left_behind() -> None:
    stage = Stage("ABCD")
    stage.client("s", "B")
    for place in "DAC":
        stage.move("s", place, noticed=False)
    stage.carry_all("D", "B")
    stage.brokers["C"].graph.touch("D", 0.0)
    stage.clients["s"].unsubscribe()
    stage.carry_all("C", "D")
    stage.settle()
    assert [copy(stage, name) for name in "ABCD"] == [None, None, None, None]


def remembering(events: int) -> HandoffOptions:
    return msgspec.structs.replace(UNBOUNDED, rules=OURS, latest_b=events)


@pytest.mark.feature("proactive-handoff F13", "proactive-handoff F14")
@pytest.mark.parametrize(("memory", "chunk", "sent_after"), [(5, 50, []), (1, 50, [2]), (1, 1, [1, 1])])
def test_a_stand_in_that_remembers_the_latest_events_needs_nobody_to_send_them_after(
    memory: int, chunk: int, sent_after: list[int]
) -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(remembering(memory), chunk=chunk))
    stage.client("s", "A")
    stage.settle()
    stage.lossy.add("s")
    stage.publish(to="AB")
    stage.publish(to="AB")
    stage.vanish("s")
    stage.carry_all("A", "B")
    stage.carry_all("B", "A")
    on_the_way = [message for message in stage.mail["A", "B"] if isinstance(message, FwdMsgs)]
    assert [len(message.events) for message in on_the_way] == sent_after
    stage.settle()
    assert len(stage.brokers["B"].buffer.peek("s", {})) == 2


@pytest.mark.feature("proactive-handoff F18")
@pytest.mark.parametrize(("memory", "how"), [(5, "hit"), (1, "miss")])
@pytest.mark.parametrize("place", ["B", "C"])
def test_a_client_gone_so_shortly_that_nobody_was_woken_is_served_from_memory(
    memory: int, how: str, place: str
) -> None:
    stage = joined("ABC", "AB", options=remembering(memory))
    stage.client("s", "A")
    stage.settle()
    stage.publish(to="ABC")
    stage.clients["s"].vanish()
    stage.publish(to="BCA")
    stage.publish(to="BCA")
    stage.clients["s"].connect(place)
    if how == "hit":
        assert stage.got["s"] == [0, 1, 2]
    stage.settle()
    stage.publish(to="ABC")
    assert stage.got["s"] == [0, 1, 2, 3]
    assert stage.notes("attached") == [how]
    assert [name for name in "ABC" if copy(stage, name) == OWN] == [place]


@pytest.mark.feature("proactive-handoff F24")
def test_a_client_that_says_what_it_has_seen_gets_nothing_twice_though_acknowledgements_are_lost() -> None:
    stage = joined("AB", "AB", options=remembering(1))
    stage.client("s", "A")
    stage.settle()
    stage.lossy.add("s")
    stage.publish(to="AB")
    stage.publish(to="AB")
    for place in "BA":
        stage.move("s", place)
        stage.settle()
    stage.publish(to="AB")
    assert stage.got["s"] == [0, 1, 2]


def test_a_restarted_client_is_not_taken_at_its_word() -> None:
    stage = joined("AB", "AB", options=remembering(5))
    stage.client("s", "A")
    stage.settle()
    stage.publish(to="AB")
    stage.vanish("s")
    stage.client("s", "B")
    stage.settle()
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F18")
@pytest.mark.parametrize(("nearest", "asked"), [(True, "B"), (False, "A")])
def test_on_a_miss_a_common_neighbor_may_be_asked_instead_of_the_old_broker(nearest: bool, asked: str) -> None:
    options = msgspec.structs.replace(UNBOUNDED, nearest_holder=nearest)
    stage = joined("ABC", "AB", "BC", options=options)
    stage.brokers["C"].graph.lists["A"] = frozenset("B")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.settle()
    stage.publish(to="ABC")
    stage.clients["s"].connect("C")
    assert "CtxRequest" in stage.waiting("C", asked)
    stage.settle()
    stage.publish(to="ABC")
    assert stage.got["s"] == [0, 1]
    assert [name for name in "ABC" if copy(stage, name) == OWN] == ["C"]


@pytest.mark.feature("proactive-handoff F18")
def test_a_common_neighbor_that_lacks_something_passes_and_the_old_broker_is_asked() -> None:
    stage = joined("ABC", "AB", "BC", options=msgspec.structs.replace(UNBOUNDED, nearest_holder=True))
    stage.brokers["C"].graph.lists["A"] = frozenset("B")
    stage.client("s", "A")
    stage.settle()
    stage.vanish("s")
    stage.publish(to="ABC")
    stage.clients["s"].connect("C")
    stage.carry_all("C", "B")
    stage.settle()
    assert stage.got["s"] == [0]


@pytest.mark.feature("proactive-handoff F11")
def test_perfect_prediction_wakes_one_broker_and_places_nothing_before() -> None:
    stage = joined("ABC", "AB", "AC")
    for broker in stage.brokers.values():
        broker.oracle = {"s": "C"}.__getitem__
    stage.client("s", "A")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, None, None]
    stage.vanish("s")
    stage.settle()
    assert [copy(stage, name) for name in "ABC"] == [OWN, None, AWAKE]
    stage.publish(to="ABC")
    stage.clients["s"].connect("C")
    assert stage.got["s"] == [0]
    assert stage.notes("attached") == ["hit"]


@pytest.mark.feature("proactive-handoff F26")
def test_a_summary_sleeps_for_many_wishes_and_the_client_gets_only_what_it_wants() -> None:
    stage = joined("AB", "AB", options=msgspec.structs.replace(UNBOUNDED, summaries=True))
    client = stage.client("s")
    client.wishes = {"low": between(0, 9), "middle": between(5, 20), "high": between(40, 50)}
    client.connect("A")
    stage.settle()
    assert len(stage.brokers["B"].records["s"].wishes) == 1
    stage.vanish("s")
    stage.settle()
    for value in (7, 30, 45, 60):
        stage.publish(value, to="AB")
    stage.clients["s"].connect("B")
    stage.publish(30, to="AB")
    stage.publish(8, to="AB")
    stage.settle()
    assert stage.notes("attached") == ["hit"]
    assert stage.got["s"] == [0, 2, 5]


@pytest.mark.feature("proactive-handoff F26")
def test_a_summary_covers_everything_that_it_stands_for() -> None:
    wishes = {"a": between(0, 9), "b": between(20, 30), "c": between(5, 22)}
    found = summary(wishes)
    assert len(found) == 1
    assert all(any(one.covers(wish) for one in found.values()) for wish in wishes.values())
    assert summary({}) == {}


@pytest.mark.feature("proactive-handoff F6", "proactive-handoff F18")
@pytest.mark.parametrize("heard_of", [True, False])
def test_a_client_that_slips_through_three_brokers_in_a_row_is_found_at_the_fourth(heard_of: bool) -> None:
    stage = Stage("ABCDE")
    stage.client("s", "A")
    stage.vanish("s")
    stage.publish(to="ABCDE")
    for place in "BCD":
        stage.deaf.add("s")
        stage.clients["s"].connect(place)
        if heard_of:
            stage.settle()
        stage.vanish("s", noticed=heard_of)
        stage.publish(to="ABCDE")
    stage.deaf.clear()
    assert stage.clients["s"].log.previous == "A"
    assert stage.clients["s"].log.tried == ("D", "C", "B")
    stage.clients["s"].connect("E")
    stage.settle()
    assert stage.got["s"] == [0, 1, 2, 3]
    assert [name for name in "ABCDE" if copy(stage, name) == OWN] == ["E"]
