"""Any order of moves, events and deliveries: nothing lost, nothing twice, nothing left behind (spec F47)."""

from __future__ import annotations

from math import inf

import msgspec
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from tests.protocols.handoff_schemes.stages import UNBOUNDED, Stage

from godwit.protocols.handoff_schemes.broker import HandoffOptions
from godwit.protocols.handoff_schemes.lifecycle import Life
from godwit.protocols.handoff_schemes.rules import HARDENED, LITERAL, OURS, Rules
from godwit.protocols.neighbors.graph import GraphOptions

BROKERS = "ABCD"
SUBSCRIBERS = ("s", "t")
brokers, subscribers = st.sampled_from(BROKERS), st.sampled_from(SUBSCRIBERS)


class Storm(RuleBasedStateMachine):
    """Links keep their order and lose nothing; everything else may happen at any time, in any number: clients jump
    before anybody notices, vanish before they hear that they were let in, edges age while copies are woken."""

    under: HandoffOptions = msgspec.structs.replace(UNBOUNDED, graph=GraphOptions(edge_timeout_s=5))

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(BROKERS, self.under)
        self.unnoticed: list[tuple[str, str, int]] = []
        for i, name in enumerate(SUBSCRIBERS):
            self.stage.client(name, BROKERS[i])

    @rule(publisher=st.sampled_from("PQ"))
    def publish(self, publisher: str) -> None:
        self.stage.publish(publisher=publisher)

    @rule(data=st.data(), count=st.integers(1, 4))
    def carry(self, data: st.DataObject, count: int) -> None:
        routes = sorted(route for route, queue in self.stage.mail.items() if queue)
        if routes:
            route = data.draw(st.sampled_from(routes))
            self.stage.carry(*route, min(count, len(self.stage.mail[route])))

    @rule(name=subscribers)
    def vanish(self, name: str) -> None:
        client = self.stage.clients[name]
        if client.broker:
            self.unnoticed.append((name, client.broker, client.number))
            client.vanish()

    @rule()
    def notice(self) -> None:
        if self.unnoticed:
            name, broker, number = self.unnoticed.pop(0)
            client = self.stage.clients[name]
            if not (client.broker == broker and client.number > number):
                self.stage.brokers[broker].lost(name)

    @rule(name=subscribers, place=brokers)
    def appear(self, name: str, place: str) -> None:
        if not self.stage.clients[name].broker:
            self.stage.clients[name].connect(place)

    @rule(name=subscribers, place=brokers)
    def jump(self, name: str, place: str) -> None:
        self.vanish(name)
        self.stage.clients[name].connect(place)

    @rule(name=subscribers, place=brokers)
    def slip(self, name: str, place: str) -> None:
        """Let in, and gone before it hears of it."""
        self.vanish(name)
        self.stage.deaf.add(name)
        self.stage.clients[name].connect(place)
        self.vanish(name)
        self.stage.deaf.discard(name)

    @rule(seconds=st.integers(1, 3))
    def age(self, seconds: int) -> None:
        self.stage.pass_time(seconds)
        for broker in self.stage.brokers.values():
            broker.sweep()

    def teardown(self) -> None:
        while self.unnoticed:
            self.notice()
        for i, name in enumerate(SUBSCRIBERS):
            self.appear(name, BROKERS[-1 - i])
        gone = SUBSCRIBERS[1]
        self.stage.clients[gone].unsubscribe()
        self.stage.settle()
        self.judge(SUBSCRIBERS[0])
        assert all(gone not in broker.records for broker in self.stage.brokers.values())

    def judge(self, name: str) -> None:
        got = self.stage.got[name]
        assert sorted(got) == list(range(self.stage.published))
        for publisher in "PQ":
            own = [sequence for sequence in got if self.stage.publishers[sequence] == publisher]
            assert own == sorted(own)
        place = self.stage.clients[name].broker
        record = self.stage.brokers[place].records[name]
        assert (record.is_real, record.life, record.whole) == (True, Life.CONNECTED, True)
        for other in BROKERS:
            record = self.stage.brokers[other].records.get(name)
            assert other == place or record is None or not (record.is_real or record.is_active)


def ruled(rules: Rules, **others: object) -> HandoffOptions:
    return msgspec.structs.replace(Storm.under, rules=rules, **others)


class LiteralStorm(Storm):
    under = ruled(LITERAL)


class OurStorm(Storm):
    """With a memory of three events, so that it often reaches back far enough and often does not."""

    under = ruled(OURS, latest_b=3, pool=True, pool_wait_s=inf)


class NearStorm(Storm):
    under = ruled(HARDENED, nearest_holder=True)


class WeighedStorm(Storm):
    """Copies for the likeliest neighbor only, summaries instead of wishes."""

    under = ruled(OURS, latest_b=1, summaries=True, graph=GraphOptions(edge_timeout_s=5, degree_max=1))


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24", "proactive-handoff F22")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
def test_whatever_happens_everything_arrives_once_in_order_and_nothing_is_left_behind(storm: type[Storm]) -> None:
    run_state_machine_as_test(storm, settings=settings(stateful_step_count=50, max_examples=60))


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
def test_a_broker_keeps_a_context_that_the_attachment_after_it_has_not_asked_for_yet(storm: type[Storm]) -> None:
    """C, where s was twice without knowing, told A of its second visit before D had asked A for s's context: A let it
    go, D began from nothing and delivered again what s had."""
    play = storm()
    play.jump("t", "C")
    play.publish("P")
    play.jump("t", "A")
    play.stage.carry("P", "A")
    play.slip("s", "C")
    play.appear("s", "A")
    play.jump("s", "D")
    play.slip("s", "C")
    play.teardown()


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
def test_who_returns_before_its_context_has_come_keeps_that_context_where_it_is(storm: type[Storm]) -> None:
    """s came back to A while A was waiting for D, and D for B. A return asks nobody: A thought that it lacked nothing,
    and told B that s had moved on. B let s's context go before D had it."""
    play = storm()
    play.publish("Q")
    play.jump("s", "B")
    play.slip("t", "B")
    play.publish("P")
    play.stage.carry("P", "A")
    play.appear("t", "A")
    play.stage.carry("P", "D")
    play.jump("s", "D")
    play.jump("s", "A")
    play.slip("s", "A")
    play.teardown()


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
def test_a_context_that_was_taken_away_meanwhile_is_fetched_from_who_took_it(storm: type[Storm]) -> None:
    """D waited for B's context when s called A, which had its own and told B so. Then s came back to D: B had nothing
    any more, and nobody asked A."""
    play = storm()
    play.publish("P")
    play.publish("Q")
    play.vanish("t")
    play.notice()
    play.jump("s", "B")
    play.stage.carry("B", "A", 2)
    play.stage.carry("Q", "D")
    play.slip("s", "D")
    play.slip("s", "A")
    play.teardown()


def replayed(storm: type[Storm], steps: str) -> None:
    """A storm that once failed, step by step; `B>A 4` carries up to four messages from B to A."""
    play = storm()
    for step in steps.split(", "):
        what, *more = step.split()
        if what == "carry":
            a, b = more[0].split(">")
            play.stage.carry(a, b, min(int(more[1]), len(play.stage.mail.get((a, b), ()))))
        elif what == "age":
            play.age(int(more[0]))
        else:
            getattr(play, what)(*more)
    play.teardown()


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
@pytest.mark.parametrize(
    "steps",
    [
        "slip t A, jump t D, jump s B, slip t A, jump t D, jump s C, jump t C, slip t B, age 3, age 3, jump s B,"
        " vanish s",
        "slip s B, carry B>A 4, slip t D, appear t D, slip t C, appear t B, vanish t, publish Q, age 3, age 2,"
        " appear t B, carry Q>A 2, slip t A",
    ],
)
def test_who_has_heard_that_a_subscriber_has_gone_on_says_where_it_is_and_not_that_it_is_here(
    storm: type[Storm], steps: str
) -> None:
    """B knew that t had gone on to C when what it had waited for came, and told D that t was at B. D kept a copy on
    behalf of B, which had taken leave of its copies already: when t unsubscribed, nobody told D."""
    replayed(storm, steps)


@pytest.mark.feature("proactive-handoff F47", "proactive-handoff F24")
@pytest.mark.parametrize("storm", [Storm, OurStorm, NearStorm, WeighedStorm])
def test_a_record_of_before_the_last_broker_that_let_the_client_in_is_history(storm: type[Storm]) -> None:
    """s came back to D from C, where it had been let in and had got an event. D had not heard of that, took its own
    old record for the newest, and delivered the event again."""
    steps = (
        "jump s C, jump t D, carry C>A 2, jump s D, carry A>C 2, carry A>C 2, slip s B, carry D>C 3, appear s C,"
        " publish Q, carry C>D 4, carry Q>C 1, slip s C"
    )
    replayed(storm, steps)


@pytest.mark.feature("proactive-handoff F47")
def test_the_text_alone_does_not_hold() -> None:
    with pytest.raises((AssertionError, KeyError)):
        run_state_machine_as_test(
            LiteralStorm, settings=settings(stateful_step_count=60, max_examples=200, phases=[Phase.generate])
        )
