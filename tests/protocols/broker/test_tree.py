"""The tree fabric on lines, stars, rings and meshes: everybody knows what everybody wants, and streams arrive."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import pytest
from tests.protocols.broker.web import Web

from godwit.protocols.host import NodeId

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


@pytest.mark.parametrize("seed", range(40))
def test_in_any_storm_what_is_durable_arrives_once_and_in_order_and_in_the_end_all_agree(seed: int) -> None:
    web = Storm(seed).web
    assert web.misdelivered() == []
    assert web.disagreements() == []
    assert web.unconfirmed() == {}


@pytest.mark.parametrize("seed", range(20))
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
