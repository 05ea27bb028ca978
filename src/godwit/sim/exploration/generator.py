"""Plans from seeds: how many brokers and clients, who wants what, what is said, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

import msgspec

from godwit.protocols.host import NodeId
from godwit.sim.brokers.roamer import Token
from godwit.sim.exploration import plan as p
from godwit.sim.exploration.generator_apart import estranged
from godwit.sim.exploration.generator_lasting import THINGS, enriched
from godwit.sim.streams import Streams

BROKERS = (2, 5)
STEPS = (30, 110)
TOPICS = ("a/x", "a/y", "b/x", "b/y")
SHARED, GROUP = "c", "g"
"""What a group of clients shares, where there is one."""
NOTICES_S = (0.0, 0.0, 0.3, 2.0)
LEFT_NOTICES_S = (0.0, 0.2, None)
PAUSES_S = (0.0, 0.01, 0.1, 0.5, 1.5)
WAITS_S = (0.3, 1.0, 4.0, 10.0)


WORLDS = ("any", "lasting", "apart")
"""By the name that `--worlds` takes: `lasting` has things, questions, the past and bounded rates in every world;
`apart` has one client that goes to and fro between brokers that are cut off."""


def drawn(seed: int, fabric: str = "tree", worlds: str = "any") -> p.Plan:
    """The plan of a seed; adding a kind of fault changes the plans of all seeds, which is why they are saved whole."""
    plan = _Draft(seed, fabric).plan()
    if worlds == "apart":
        return estranged(plan)
    return enriched(plan) if worlds == "lasting" else plan


class _Draft:
    def __init__(self, seed: int, fabric: str) -> None:
        self.seed = seed
        self.fabric = fabric
        self.dice = Streams(seed).stream("plan", fabric)
        dice = self.dice
        self.sites = sites(dice) if fabric.startswith("sites") else ()
        if self.sites:
            self.brokers = tuple(sorted(broker for site in self.sites for broker in site))
        else:
            self.brokers = tuple(f"b{at}" for at in range(1, dice.randint(*BROKERS) + 1))
        self.present, self.late = self.brokers, tuple[NodeId, ...]()
        if self.sites:
            self.links = tuple(
                site_links(self.sites, dice, meshed=fabric == "sites-dht", twofold=fabric == "sites-two")
            )
        elif fabric == "dht":
            self.links = tuple(combinations(self.brokers, 2))
            self.present = self.brokers[: dice.randint(1, len(self.brokers))]
            self.late = self.brokers[len(self.present) :]
        else:
            self.links = tuple(links(self.brokers, dice))
        self.wills = dice.random() < 0.3
        self.subscribers = [self._subscriber(f"s{n}") for n in range(1, dice.randint(1, 4) + 1)]
        # Where two gateways act for a site, each deals what it brings to one member of a group: see docs/sites.md.
        self.members = self._group() if dice.random() < 0.25 and fabric != "sites-two" else []
        self.publishers = [self._publisher(f"p{n}") for n in range(1, dice.randint(1, 2) + 1)]
        self.faults = [kind for kind in p.FAULTS if dice.random() < (0.06 if kind == "wipe" else 0.35)]
        self.retains = dice.random() < 0.35
        self.cleans = dice.random() < 0.25
        self.publishers_roam = dice.random() < 0.3
        self.haste = dice.choice((0.3, 0.8))
        """How often a client that leaves is elsewhere at once; copies are made when it is not."""
        self.tokens: tuple[Token, ...] = dice.choice((("own",), ("own",), ("none",), ("own", "none"), ("own", "old")))
        self.at_s = 0.0
        self.crossing = False
        if self.sites:
            self._let_cross()

    def _let_cross(self) -> None:
        """In half of the worlds of sites clients go from one to another. That has dice of its own, so that the rest is
        as it would be without."""
        if Streams(self.seed).stream("crossing", self.fabric).random() < 0.5:
            # Who shows nothing has a session in each site, and who starts clean leaves one in another. A lost disk
            # takes along where sessions went.
            self.crossing, self.cleans, self.tokens = True, False, ("own",)
            self.faults = [kind for kind in self.faults if kind != "wipe"]

    def _subscriber(self, name: str) -> p.Card:
        dice = self.dice
        qos = dice.choice((1, 2, 2))
        wishes = [p.Wish(topic=dice.choice("ab"), warm=dice.random() < 0.4, qos=qos)]
        if dice.random() < 0.3:
            wishes = [p.Wish(topic="a", qos=qos), p.Wish(topic="b", warm=True, qos=qos)]
        home, delay_s = dice.choice(self.present), dice.choice((0.001, 0.02, 0.1))
        return p.Card(
            name=name,
            home=home,
            wishes=tuple(wishes),
            delay_s=delay_s,
            extra_qos=dice.choice((0, 1, 2)),
            **self._will(),
        )

    def _publisher(self, name: str) -> p.Card:
        home, delay_s = self.dice.choice(self.present), self.dice.choice((0.001, 0.02, 0.1))
        return p.Card(name=name, home=home, delay_s=delay_s, **self._will())

    def _will(self) -> dict[str, Any]:
        if not self.wills or self.dice.random() < 0.5:
            return {}
        return {"will_qos": self.dice.choice((1, 2)), "will_delay_s": self.dice.choice((0.0, 0.0, 2.0))}

    def _group(self) -> list[p.Card]:
        """Members of a group are at one broker, and come back there; but see `_let_members_roam`."""
        home, qos = self.dice.choice(self.present), self.dice.choice((1, 2))
        wishes = (p.Wish(topic=SHARED, qos=qos, group=GROUP),)
        return [p.Card(name=f"g{n}", home=home, wishes=wishes) for n in range(1, self.dice.randint(2, 3) + 1)]

    def plan(self) -> p.Plan:
        dice = self.dice
        steps: list[p.AnyStep] = []
        deeds = (self._say, self._say, self._say, self._move, self._fail)
        for _ in range(dice.randint(*STEPS)):
            steps += dice.choice(deeds)()
            self.at_s = round(self.at_s + dice.choice(PAUSES_S), 3)
        if self.late:
            last_s = max((step.at_s for step in steps), default=0.0)
            steps += [p.Join(at_s=round(dice.uniform(0.0, last_s), 3), broker=name) for name in self.late]
            steps.sort(key=lambda step: step.at_s)
        self._let_last(steps)
        self._let_leave(steps)
        self._let_members_roam(steps)
        return p.Plan(
            seed=self.seed,
            fabric=self.fabric,
            handoff=dice.choice(("proactive", "proactive", "reactive")),
            foresight=dice.choice(("everybody", "everybody", "habits")),
            session_wait_s=dice.choice(WAITS_S),
            write_s=dice.choice((0.001, 0.005, 0.03)),
            latency_s=dice.choice((0.002, 0.01, 0.05)),
            brokers=self.brokers,
            late=self.late,
            links=self.links,
            sites=self.sites,
            clients=(*self.subscribers, *self.members, *self.publishers),
            steps=tuple(steps),
        )

    def _let_leave(self, steps: list[p.AnyStep]) -> None:
        """In a third of the worlds of rings a broker leaves in order. That has dice of its own."""
        dice = Streams(self.seed).stream("leaving", self.fabric)
        if self.fabric == "dht" and len(self.brokers) > 2 and dice.random() < 0.35:
            at_s = round(dice.uniform(0.0, max(self.at_s, 1.0)), 3)
            steps.append(p.Leave(at_s=at_s, broker=dice.choice(self.brokers)))
            steps.sort(key=lambda one: one.at_s)

    def _let_members_roam(self, steps: list[p.AnyStep]) -> None:
        """In most worlds with a group its members are at several brokers, and move among them. In the air each broker
        deals out its own, and so does each site. That has dice of its own."""
        dice = Streams(self.seed).stream("members", self.fabric)
        if not self.members or self.fabric == "adhoc" or dice.random() < 0.3:
            return
        near = self.present if not self.sites else next(one for one in self.sites if self.members[0].home in one)
        self.members = [msgspec.structs.replace(card, home=dice.choice(near)) for card in self.members]
        homes = {card.name: card.home for card in self.members}
        steps[:] = [
            msgspec.structs.replace(one, to=homes[one.client])
            if isinstance(one, p.Come) and one.client in homes
            else one
            for one in steps
        ]
        for _ in range(dice.randint(0, 8)):
            at_s, client = round(dice.uniform(0, max(self.at_s, 1.0)), 3), dice.choice(self.members).name
            notice_s = dice.choice(LEFT_NOTICES_S)
            if dice.random() < 0.5:
                steps.append(p.Come(at_s=at_s, client=client, to=dice.choice(near), notice_s=notice_s))
            else:
                back_s = round(at_s + dice.choice((0.3, 1.0, 3.0)), 3)
                steps.append(p.Vanish(at_s=at_s, client=client, notice_s=notice_s))
                steps.append(p.Come(at_s=back_s, client=client, to=dice.choice(near)))
        steps.sort(key=lambda one: one.at_s)

    def _let_last(self, steps: list[p.AnyStep]) -> None:
        """In half of the worlds there are things, and questions that last. They have dice of their own, so that the
        rest is as it would be without them."""
        dice = Streams(self.seed).stream("lasting", self.fabric)
        if dice.random() < 0.5:
            return
        self.subscribers = [msgspec.structs.replace(card, asks=_asks(dice)) for card in self.subscribers]
        for _ in range(dice.randint(10, 60)):
            step = p.Put(
                at_s=round(dice.uniform(0, max(self.at_s, 1.0)), 3),
                client=dice.choice(self.publishers).name,
                topic=dice.choice(THINGS),
                warm=dice.random() < 0.5,
                clear=dice.random() < 0.15,
                qos=dice.choice((1, 1, 2)),
                expiry_s=dice.choice((None, None, 1.0, 5.0)),
            )
            steps.append(step)
        steps.sort(key=lambda one: one.at_s)

    def _say(self) -> list[p.AnyStep]:
        client = self.dice.choice(self.publishers).name
        topics = (*TOPICS, f"{SHARED}/x", f"{SHARED}/x") if self.members else TOPICS
        return [
            p.Publish(
                at_s=self.at_s,
                client=client,
                topic=self.dice.choice(topics),
                warm=self.dice.random() < 0.5,
                qos=self.dice.choice((0, 1, 2, 2, 2)),
                retain=self.retains and self.dice.random() < 0.3,
            )
            for _ in range(self.dice.randint(1, 4))
        ]

    def _move(self) -> list[p.AnyStep]:
        dice, cards = self.dice, [*self.subscribers, *(self.publishers if self.publishers_roam else ())]
        card = dice.choice(cards)
        client, at_s, near = card.name, self.at_s, self._near(card)
        notice_s = dice.choice(LEFT_NOTICES_S)
        if self.members and dice.random() < 0.15:
            member = dice.choice(self.members)
            back_s = round(at_s + dice.choice((0.3, 1.0, 3.0)), 3)
            return [
                p.Vanish(at_s=at_s, client=member.name, notice_s=notice_s),
                p.Come(at_s=back_s, client=member.name, to=member.home),
            ]
        fate = dice.random()
        if fate < 0.12:
            return [p.Change(at_s=at_s, client=client)]
        if fate < 0.2:
            first, to = dice.choice(near), dice.choice(near)
            return [p.Twice(at_s=at_s, client=client, first=first, to=to)]
        to, token = dice.choice(near), dice.choice(self.tokens)
        clean = self.cleans and dice.random() < 0.15
        if dice.random() < self.haste:
            return [p.Come(at_s=at_s, client=client, to=to, notice_s=notice_s, token=token, clean=clean)]
        back_s = round(at_s + dice.choice((0.3, 1.0, 3.0)), 3)
        return [
            p.Vanish(at_s=at_s, client=client, notice_s=notice_s, goodbye=dice.random() < 0.2),
            p.Come(at_s=back_s, client=client, to=to, token=token, clean=clean),
        ]

    def _near(self, card: p.Card) -> tuple[NodeId, ...]:
        """Where a client may go."""
        if self.crossing:
            return self.brokers
        return next((site for site in self.sites if card.home in site), self.brokers)

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


def sites(dice: Random) -> tuple[tuple[NodeId, ...], ...]:
    """Two or three, of one to three brokers each."""
    found: list[tuple[NodeId, ...]] = []
    for _ in range(dice.choice((2, 2, 3))):
        begun = sum(map(len, found))
        found.append(tuple(f"b{begun + at}" for at in range(1, dice.choice((1, 2, 2, 3)) + 1)))
    return tuple(found)


def site_links(
    places: tuple[tuple[NodeId, ...], ...], dice: Random, *, meshed: bool = False, twofold: bool = False
) -> list[tuple[NodeId, NodeId]]:
    """Links inside each site, and uplinks that make a tree of the sites: at one gateway of a site, or at several.
    Twofold: a second uplink beside each, at other gateways where a site has more than one broker."""
    found = [pair for site in places for pair in (combinations(site, 2) if meshed else links(site, dice))]
    spread = dice.random() < 0.4
    for at, site in enumerate(places[1:], 1):
        other = places[dice.randrange(at)]
        ends = (dice.choice(other) if spread else other[0], dice.choice(site) if spread else site[0])
        found.append(ends)
        if twofold:
            found.append((_another(other, ends[0], dice), _another(site, ends[1], dice)))
    return sorted(set(found))


def _another(site: tuple[NodeId, ...], but: NodeId, dice: Random) -> NodeId:
    return dice.choice([one for one in site if one != but] or [but])


def _asks(dice: Random) -> tuple[p.Ask, ...]:
    """One question, or two."""
    qos = dice.choice((1, 2))
    wishes = [p.Ask(topic=dice.choice("tu"), warm=dice.random() < 0.6, qos=qos)]
    if dice.random() < 0.3:
        wishes = [p.Ask(topic="t", qos=qos), p.Ask(topic="t", warm=True, qos=qos)]
    return tuple(wishes)


def links(brokers: tuple[NodeId, ...], dice: Random) -> list[tuple[NodeId, NodeId]]:
    """A connected graph: a random tree, and of the other links none, some or all."""
    order = dice.sample(brokers, len(brokers))
    tree = [(one, dice.choice(order[:at])) for at, one in enumerate(order[1:], 1)]
    found = {(min(pair), max(pair)) for pair in tree}
    share = dice.choice((0.0, 0.4, 1.0))
    for at, a in enumerate(brokers):
        found |= {(a, b) for b in brokers[at + 1 :] if dice.random() < share}
    return sorted(found)
