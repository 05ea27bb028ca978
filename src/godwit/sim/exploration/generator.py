"""Plans from seeds: how many brokers and clients, who wants what, what is said, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from godwit.protocols.host import NodeId
from godwit.sim.brokers.roamer import Token
from godwit.sim.exploration import plan as p
from godwit.sim.streams import Streams

BROKERS = (2, 5)
STEPS = (30, 110)
TOPICS = ("a/x", "a/y", "b/x", "b/y")
NOTICES_S = (0.0, 0.0, 0.3, 2.0)
LEFT_NOTICES_S = (0.0, 0.2, None)
PAUSES_S = (0.0, 0.01, 0.1, 0.5, 1.5)
WAITS_S = (0.3, 1.0, 4.0, 10.0)


def drawn(seed: int, fabric: str = "tree") -> p.Plan:
    """The plan of a seed; adding a kind of fault changes the plans of all seeds, which is why they are saved whole."""
    return _Draft(seed, fabric).plan()


class _Draft:
    def __init__(self, seed: int, fabric: str) -> None:
        self.seed = seed
        self.fabric = fabric
        self.dice = Streams(seed).stream("plan", fabric)
        dice = self.dice
        self.brokers = tuple(f"b{at}" for at in range(1, dice.randint(*BROKERS) + 1))
        self.links = tuple(links(self.brokers, dice))
        self.subscribers = [self._subscriber(f"s{n}") for n in range(1, dice.randint(1, 3) + 1)]
        self.publishers = [self._publisher(f"p{n}") for n in range(1, dice.randint(1, 2) + 1)]
        self.faults = [kind for kind in p.FAULTS if dice.random() < (0.06 if kind == "wipe" else 0.35)]
        self.publishers_roam = dice.random() < 0.3
        self.haste = dice.choice((0.3, 0.8))
        """How often a client that leaves is elsewhere at once; copies are made when it is not."""
        self.tokens: tuple[Token, ...] = dice.choice((("own",), ("own",), ("none",), ("own", "none"), ("own", "old")))
        self.at_s = 0.0

    def _subscriber(self, name: str) -> p.Card:
        dice = self.dice
        qos = dice.choice((1, 2, 2))
        wishes = [p.Wish(topic=dice.choice("ab"), warm=dice.random() < 0.4, qos=qos)]
        if dice.random() < 0.3:
            wishes = [p.Wish(topic="a", qos=qos), p.Wish(topic="b", warm=True, qos=qos)]
        home, delay_s = dice.choice(self.brokers), dice.choice((0.001, 0.02, 0.1))
        return p.Card(name=name, home=home, wishes=tuple(wishes), delay_s=delay_s, extra_qos=dice.choice((0, 1, 2)))

    def _publisher(self, name: str) -> p.Card:
        return p.Card(name=name, home=self.dice.choice(self.brokers), delay_s=self.dice.choice((0.001, 0.02, 0.1)))

    def plan(self) -> p.Plan:
        dice = self.dice
        steps: list[p.AnyStep] = []
        deeds = (self._say, self._say, self._say, self._move, self._fail)
        for _ in range(dice.randint(*STEPS)):
            steps += dice.choice(deeds)()
            self.at_s = round(self.at_s + dice.choice(PAUSES_S), 3)
        return p.Plan(
            seed=self.seed,
            fabric=self.fabric,
            handoff=dice.choice(("proactive", "proactive", "reactive")),
            foresight=dice.choice(("everybody", "everybody", "habits")),
            session_wait_s=dice.choice(WAITS_S),
            write_s=dice.choice((0.001, 0.005, 0.03)),
            latency_s=dice.choice((0.002, 0.01, 0.05)),
            brokers=self.brokers,
            links=self.links,
            clients=(*self.subscribers, *self.publishers),
            steps=tuple(steps),
        )

    def _say(self) -> list[p.AnyStep]:
        client = self.dice.choice(self.publishers).name
        return [
            p.Publish(
                at_s=self.at_s,
                client=client,
                topic=self.dice.choice(TOPICS),
                warm=self.dice.random() < 0.5,
                qos=self.dice.choice((0, 1, 2, 2, 2)),
            )
            for _ in range(self.dice.randint(1, 4))
        ]

    def _move(self) -> list[p.AnyStep]:
        dice, cards = self.dice, [*self.subscribers, *(self.publishers if self.publishers_roam else ())]
        client, at_s = dice.choice(cards).name, self.at_s
        notice_s = dice.choice(LEFT_NOTICES_S)
        fate = dice.random()
        if fate < 0.12:
            return [p.Change(at_s=at_s, client=client)]
        if fate < 0.2:
            first, to = dice.choice(self.brokers), dice.choice(self.brokers)
            return [p.Twice(at_s=at_s, client=client, first=first, to=to)]
        to, token = dice.choice(self.brokers), dice.choice(self.tokens)
        if dice.random() < self.haste:
            return [p.Come(at_s=at_s, client=client, to=to, notice_s=notice_s, token=token)]
        back_s = round(at_s + dice.choice((0.3, 1.0, 3.0)), 3)
        return [
            p.Vanish(at_s=at_s, client=client, notice_s=notice_s),
            p.Come(at_s=back_s, client=client, to=to, token=token),
        ]

    def _fail(self) -> list[p.AnyStep]:
        if not self.faults:
            return []
        makers: dict[str, Callable[[], p.AnyStep | None]] = {
            "crash": lambda: p.Crash(**self._of_broker(), down_s=self._long(), notice_s=self._notice()),
            "strike": self._strike,
            "wipe": lambda: p.Wipe(**self._of_broker(), down_s=self._long()),
            "slow": lambda: p.Slow(**self._of_broker(), write_s=self.dice.choice((0.1, 0.5)), for_s=self._long()),
            "full": lambda: p.Full(**self._of_broker(), for_s=self._long()),
            "cut": self._cut,
            "stall": self._stall,
            "partition": self._partition,
            "skew": lambda: p.Skew(**self._of_broker(), rate=self.dice.choice((0.5, 0.9, 1.1, 2.0)), for_s=5.0),
            "jump": lambda: p.Jump(**self._of_broker(), by_s=self.dice.choice((-600.0, -2.0, 2.0, 600.0))),
        }
        made = makers[self.dice.choice(self.faults)]()
        return [] if made is None else [made]

    def _of_broker(self) -> dict[str, Any]:
        return {"at_s": self.at_s, "broker": self.dice.choice(self.brokers)}

    def _long(self) -> float:
        return self.dice.choice((0.2, 1.0, 3.0, 8.0))

    def _notice(self) -> float:
        return self.dice.choice(NOTICES_S)

    def _strike(self) -> p.Strike:
        writes, after = self.dice.randint(1, 12), self.dice.random() < 0.5
        return p.Strike(**self._of_broker(), writes=writes, after=after, down_s=self._long(), notice_s=self._notice())

    def _cut(self) -> p.Cut:
        a, b = self.dice.choice(self.links)
        return p.Cut(at_s=self.at_s, a=a, b=b, for_s=self._long(), notice_s=self._notice())

    def _stall(self) -> p.Stall:
        a, b = self.dice.choice(self.links)
        return p.Stall(at_s=self.at_s, a=a, b=b, for_s=self.dice.choice((0.1, 0.5, 2.0)))

    def _partition(self) -> p.Partition:
        side = self.dice.sample(self.brokers, self.dice.randint(1, len(self.brokers) - 1))
        return p.Partition(at_s=self.at_s, side=tuple(sorted(side)), for_s=self._long(), notice_s=self._notice())


def links(brokers: tuple[NodeId, ...], dice: Random) -> list[tuple[NodeId, NodeId]]:
    """A connected graph: a random tree, and of the other links none, some or all."""
    order = dice.sample(brokers, len(brokers))
    tree = [(one, dice.choice(order[:at])) for at, one in enumerate(order[1:], 1)]
    found = {(min(pair), max(pair)) for pair in tree}
    share = dice.choice((0.0, 0.4, 1.0))
    for at, a in enumerate(brokers):
        found |= {(a, b) for b in brokers[at + 1 :] if dice.random() < share}
    return sorted(found)
