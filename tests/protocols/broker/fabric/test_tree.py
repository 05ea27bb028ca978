"""The tree fabric on lines, stars, rings and meshes: everybody knows what everybody wants, and streams arrive."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import msgspec
import pytest
from tests.protocols.overlay import topic
from tests.seeds import few

from godwit.events import Event
from godwit.protocols.broker.fabric.tree import TreeOptions
from godwit.protocols.broker.messages import Place
from godwit.protocols.broker.streams.frames import Ask, Leg, Parcels, Run, Taken, encode
from godwit.protocols.host import Message, NodeId, RemoteError
from godwit.protocols.routing.courier import Bundle, Numbered
from godwit.protocols.routing.messages import Ack, Bsub, Pub, Sub
from godwit.protocols.routing.process import Enclosed
from godwit.sim.brokers.world import OPTIONS
from godwit.sim.fabrics.web import Web

SEVEN = list("abcdefg")
SHAPES: dict[str, list[tuple[NodeId, NodeId]]] = {
    "two": [("a", "b")],
    "three in a line": [("a", "b"), ("b", "c")],
    "line with its leader inside": [("c", "a"), ("a", "b")],
    "star": [("d", other) for other in SEVEN if other != "d"],
    "line": list(pairwise(SEVEN)),
    "ring": [*pairwise(SEVEN), ("g", "a")],
    "mesh": list(combinations(SEVEN, 2)),
    "names of any kind": [("Übersee 1", "b2"), ("b2", "s")],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_everybody_learns_what_everybody_wants_and_everything_arrives(shape: str) -> None:
    web = Web(SHAPES[shape])
    web.run(5)
    assert web.disagreements() == []
    assert {web.fabric(name).leader for name in web.names} == {min(web.names)}
    for _ in range(3):
        for sender in web.names:
            web.send(sender, [name for name in web.names if name != sender])
            web.send(sender, [name for name in web.names if name != sender], durable=False)
    web.run(5)
    for sender in web.names:
        for to in web.names:
            if sender != to:
                assert web.given(to, sender) == [mark for mark, _ in web.log.sent[to, sender]]
    assert web.unconfirmed() == {}


@pytest.mark.parametrize("shape", SHAPES)
def test_in_a_settled_tree_each_content_crosses_each_link_once_and_no_more_links_than_the_tree_has(shape: str) -> None:
    web = Web(SHAPES[shape])
    web.run(10)
    sender, *others = web.names
    for _ in range(20):
        web.send(sender, others)
        web.run(0.5)
    assert set(web.cables.crossed.values()) == {1}
    assert len(web.cables.crossed) == 20 * len(others)
    assert web.fabric(sender).counts.repeated == 0


def test_a_broker_that_wants_nothing_is_known_and_reached() -> None:
    web = Web(SHAPES["three in a line"])
    web.want("c")
    web.run(5)
    assert web.fabric("a").interests["c"] == ()
    mark = web.send("a", ["c"])
    web.run(1)
    assert web.given("c", "a") == [mark]


def test_whoever_has_heard_a_statement_of_that_number_knows_at_least_that_interest() -> None:
    web = Web(SHAPES["line"])
    web.run(5)
    before, changes = web.fabric("a").heard("g"), web.site("a").changes
    number = web.want("g", "new")
    assert number > before
    web.run(1)
    assert web.fabric("a").heard("g") >= number
    assert web.fabric("a").interests["g"] == (topic("new"),)
    assert web.site("a").changes > changes


def test_many_statements_in_one_turn_are_said_once() -> None:
    web = Web(SHAPES["two"])
    web.run(5)
    before = web.cables.sent["a", "Enclosed"]
    for n in range(100):
        web.want("a", f"t{n}")
    web.run(0.4)
    assert web.fabric("b").interests["a"] == (topic("t99"),)
    assert web.cables.sent["a", "Enclosed"] - before < 5


def test_a_broker_that_restarts_knows_at_once_who_wanted_what_and_keeps_it_for_them() -> None:
    web = Web(SHAPES["two"])
    web.run(5)
    first = web.send("a", ["b"])
    web.run(5)
    web.crash("b")
    web.restart("a")
    assert web.fabric("a").interests == {"b": (topic("b"),)}
    second = web.send("a", web.fabric("a").brokers)
    web.run(5)
    web.restart("b")
    web.run(5)
    assert web.given("b", "a") == [first, second]


def test_a_link_that_breaks_is_left_at_once_where_there_is_another_way() -> None:
    web = Web(SHAPES["ring"])
    web.run(10)
    web.cut("a", "b")
    web.run(1.5)
    mark = web.send("a", ["b"])
    web.run(1.5)
    assert web.given("b", "a") == [mark]


def test_a_direct_link_is_used_while_the_tree_has_no_way() -> None:
    web = Web(SHAPES["two"])
    web.run(5)
    tree = web.fabric("a")._tree
    assert tree is not None
    tree.tables.routes.drop("sb")
    assert web.fabric("a").way("b") == "b"


def test_a_silent_broker_is_given_up_with_all_that_is_kept_for_it_and_welcome_when_it_is_back() -> None:
    web = Web(SHAPES["three in a line"], options=msgspec.structs.replace(OPTIONS, refresh_s=5.0, forget_s=30.0))
    web.run(10)
    web.crash("c")
    web.send("a", ["b", "c"])
    web.send("a", ["c"], durable=False)
    web.run(25)
    assert web.fabric("a").brokers == {"b", "c"}
    web.run(20)
    assert web.fabric("a").brokers == {"b"}
    assert set(web.fabric("a").interests) == {"b"}
    assert web.fabric("a").unconfirmed == {}
    assert web.fabric("a").counts.dropped_gone == 2
    web.restart("c")
    web.run(10)
    mark = web.send("a", ["c"])
    web.run(5)
    assert web.given("c", "a") == [mark]


def test_a_broker_cannot_be_forgotten_between_two_of_its_statements() -> None:
    with pytest.raises(ValueError, match="at least twice"):
        TreeOptions(refresh_s=60, forget_s=100)


LIES: dict[str, Message] = {
    "in the name of another": Enclosed("bc", Ack(1), "bb"),
    "to the subscriber": Enclosed("ba", Ack(1), "sb"),
    "beyond all numbers": Enclosed("ba", Bsub("sb", (), 2**63, 1)),
    "events of clients": Enclosed("ba", Pub(Event("p", 1))),
    "a subscription of a client": Enclosed("ba", Numbered(1, Bundle((Sub(topic("x"), "sx", 1),)))),
    "no frame at all": Ack(1),
    "garbage of its own": Parcels("a", 1, (Run((Leg("b", 1, 0),), msgspec.Raw(b"\xc1")),)),
    "a number behind itself": Parcels(
        "a", 1, (Run((Leg("b", 1, 5),), msgspec.Raw(encode([(5, True, Place("x", 1))]))),)
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_peer_that_lies_is_refused_and_changes_nothing(lie: str) -> None:
    web = Web(SHAPES["three in a line"])
    web.run(5)
    sent = web.cables.sent.total()
    with pytest.raises(RemoteError):
        web.fabric("b").receive("a", LIES[lie])
    assert web.cables.sent.total() == sent
    mark = web.send("a", ["b", "c"])
    web.run(2)
    assert web.given("b", "a") == web.given("c", "a") == [mark]


HEARSAY: dict[str, Message] = {
    "garbage of another": Parcels("c", 1, (Run((Leg("b", 1, 0),), msgspec.Raw(b"\xc1")),)),
    "my own stream": Parcels("b", 1, (Run((Leg("b", 1, 0),), msgspec.Raw(encode([]))),)),
    "my own question": Ask("b", 1, "b"),
    "my own confirmation": Taken("b", 1, "b", 1, 1, 1),
    "a stranger's confirmation": Taken("x", 1, "b", 1, 1, 1),
    "going in circles": Ask("a", 1, "c", hops=10_000),
}


@pytest.mark.parametrize("rumour", HEARSAY)
def test_a_peer_is_not_blamed_for_what_it_passes_on_and_nothing_comes_of_it(rumour: str) -> None:
    web = Web(SHAPES["three in a line"])
    web.run(5)
    sent = web.cables.sent.total()
    web.fabric("b").receive("a", HEARSAY[rumour])
    assert web.cables.sent.total() == sent
    mark = web.send("a", ["b", "c"])
    web.run(2)
    assert web.given("b", "a") == web.given("c", "a") == [mark]


def test_streams_of_brokers_that_nobody_has_heard_of_are_not_followed() -> None:
    web = Web(SHAPES["two"])
    web.run(5)
    life = web.fabric("b").streams.receiver.life
    run = Run((Leg("b", life, 0),), msgspec.Raw(encode([(1, True, Place("x", 1))])))
    web.fabric("b").receive("a", Parcels("nobody", 7, (run,)))
    web.fabric("b").receive("a", Ask("nobody", 7, "b", 1))
    web.run(2)
    assert web.given("b", "nobody") == []
    assert web.fabric("b").brokers == {"a"}


class Storm:
    """Forty seconds in which cables break, some unnoticed, and lose a part of what they carry, and brokers crash; then
    calm. Brokers send all the while, and change what they want."""

    def __init__(self, seed: int, *, crashes: bool = True, disks_survive: bool = True, loss: float = 0.1) -> None:
        self.dice = Random(seed)
        self.crashes = crashes
        self.disks_survive = disks_survive
        self.web = Web(self._graph(), seed=seed)
        self.web.run(self.dice.choice([0.0, 5.0]))
        for a, b in self.web.edges:
            self.web.faults.lose(a, b, loss=loss, duplication=loss)
        for _ in range(80):
            self._strike()
            self._speak()
            self.web.run(self.dice.uniform(0.1, 0.9))
        self.web.calm()
        self.web.run(60)

    def _graph(self) -> list[tuple[NodeId, NodeId]]:
        names = SEVEN[: self.dice.randint(2, 7)]
        edges = {(names[self.dice.randrange(i)], names[i]) for i in range(1, len(names))}
        for _ in range(self.dice.randrange(len(names))):
            a, b = sorted(self.dice.sample(names, 2))
            edges.add((a, b))
        return sorted(edges)

    def _strike(self) -> None:
        a, b = self.dice.choice(self.web.edges)
        match self.dice.randrange(8):
            case 0 | 1:
                self.web.cut(a, b, silently=self.dice.random() < 0.3)
            case 2 | 3 | 4:
                self.web.heal(a, b)
            case 5 if self.crashes and len(self.web.alive) > 1:
                self.web.crash(self.dice.choice(self.web.alive))
            case 6:
                for name in self.web.names:
                    if not self.web.world.nodes[name].alive:
                        self.web.restart(name, keep_disk=self.disks_survive or self.dice.random() < 0.5)

    def _speak(self) -> None:
        for _ in range(self.dice.randrange(5)):
            sender = self.dice.choice(self.web.alive)
            others = [name for name in self.web.names if name != sender]
            to = self.dice.sample(others, self.dice.randint(1, len(others)))
            self.web.send(sender, to, durable=self.dice.random() < 0.5)
        if self.dice.random() < 0.2:
            self.web.want(self.dice.choice(self.web.alive), *self.dice.sample("tuvwxyz", self.dice.randrange(4)))


@pytest.mark.parametrize("seed", few(12, range(40)))
def test_in_any_storm_what_is_durable_arrives_once_and_in_order_and_in_the_end_all_agree(seed: int) -> None:
    web = Storm(seed).web
    assert web.misdelivered() == []
    assert web.disagreements() == []
    assert web.unconfirmed() == {}


@pytest.mark.parametrize("seed", few(8, range(20)))
def test_though_disks_are_lost_all_agree_in_the_end_and_streams_go_on(seed: int) -> None:
    web = Storm(seed, disks_survive=False).web
    assert web.disagreements() == []
    assert web.unconfirmed() == {}
    last = {(sender, to): web.send(sender, [to]) for sender in web.names for to in web.names if sender != to}
    web.run(10)
    assert {(sender, to): web.given(to, sender)[-1] for sender, to in last} == last


@pytest.mark.parametrize("seed", range(10))
def test_where_only_cables_break_what_is_not_durable_arrives_too(seed: int) -> None:
    web = Storm(seed, crashes=False).web
    assert {pair: given for pair, given in web.log.given.items() if given} == {
        pair: [mark for mark, _ in sent] for pair, sent in web.log.sent.items()
    }


def test_both_sides_of_a_partition_go_on_and_exchange_everything_when_it_ends() -> None:
    web = Web(SHAPES["mesh"])
    web.run(5)
    between = [edge for edge in web.edges if (edge[0] in "abc") != (edge[1] in "abc")]
    for edge in between:
        web.cut(*edge)
    web.run(10)
    assert {name: web.fabric(name).leader for name in SEVEN} == dict.fromkeys("abc", "a") | dict.fromkeys("defg", "d")
    for sender in SEVEN:
        web.send(sender, [name for name in SEVEN if name != sender])
    web.want("g", "changed")
    web.run(10)
    assert web.given("b", "a") == [1]
    assert web.given("g", "d") == [4]
    assert web.given("d", "a") == []
    assert web.fabric("a").interests["g"] == (topic("g"),)
    for edge in between:
        web.heal(*edge)
    web.run(5)
    assert web.misdelivered() == []
    assert web.unconfirmed() == {}
    assert web.disagreements() == []


def test_what_waits_for_a_broker_behind_a_broken_link_is_bounded_and_counted_and_the_rest_arrives() -> None:
    streams = msgspec.structs.replace(OPTIONS.streams, outbox_bytes_max=200)
    web = Web(SHAPES["three in a line"], options=msgspec.structs.replace(OPTIONS, streams=streams))
    web.run(5)
    web.cut("b", "c")
    for _ in range(100):
        web.send("a", ["b", "c"])
        web.run(0.1)
    kept = web.fabric("a").unconfirmed["c"]
    assert web.fabric("a").counts.dropped_full == 100 - kept > 0
    web.heal("b", "c")
    web.run(5)
    assert web.given("b", "a") == list(range(1, 101))
    assert web.given("c", "a") == list(range(101 - kept, 101))
    assert web.unconfirmed() == {}
