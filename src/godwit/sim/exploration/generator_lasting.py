"""Worlds of what lasts: every plan has things, questions, clients that want the past, and some that want each topic now
and then. All of it has dice of its own: the rest of a plan is what its seed means without."""

from __future__ import annotations

import msgspec

from godwit.protocols.host import NodeId
from godwit.sim.exploration import plan as p
from godwit.sim.streams import Streams

THINGS = ("t/1", "t/2", "t/3", "u/1")
PLACES = 8
"""Things are at one of so many places in a row."""
EVER_S = 1e9
"""All of the past."""


def enriched(plan: p.Plan) -> p.Plan:
    return _Lasting(plan).plan()


class _Lasting:
    def __init__(self, plan: p.Plan) -> None:
        self.before = plan
        self.dice = Streams(plan.seed).stream("lasting worlds", plan.fabric)
        self.end_s = max([1.0, *(step.at_s for step in plan.steps)])
        self.publishers = [card.name for card in plan.clients if not (card.wishes or card.asks)]

    def plan(self) -> p.Plan:
        dice, before = self.dice, self.before
        asking = tuple(self._asking(card) for card in before.clients)
        wanting = [*self._recalling(), *self._paced()]
        steps: list[p.AnyStep] = [step for step in before.steps if not isinstance(step, p.Put)]
        steps += [self._put() for _ in range(dice.randint(15, 60))]
        for card in wanting:
            steps += self._life(card)
        return msgspec.structs.replace(
            before,
            clients=(*asking, *wanting),
            steps=tuple(sorted(steps, key=lambda step: step.at_s)),
            replay_per_s=dice.choice((5.0, 20.0, 2_000.0)),
        )

    def _asking(self, card: p.Card) -> p.Card:
        if not card.wishes or card.group:
            return card
        return msgspec.structs.replace(card, asks=tuple(self._ask() for _ in range(self.dice.randint(1, 3))))

    def _ask(self) -> p.Ask:
        dice = self.dice
        kind = dice.choice(("all", "warm", "range", "range", "cover", "near"))
        low = dice.randrange(PLACES - 1)
        return p.Ask(
            topic=dice.choice("ttu"),
            warm=kind == "warm" or dice.random() < 0.2,
            qos=dice.choice((0, 1, 2, 2)),
            interval_s=dice.choice((0.0, 0.0, 0.0, 0.5, 3.0)),
            low=low if kind in ("range", "cover") else None,
            high=low + dice.randint(1, PLACES - 2),
            cover=kind == "cover",
            near=dice.choice(THINGS) if kind == "near" else "",
            reach=dice.randint(0, 2),
            quiet=dice.random() < 0.3,
        )

    def _recalling(self) -> list[p.Card]:
        """Who wants the past. Where calendars are wrong nobody can say what was before a moment: all of it, then."""
        dice = self.dice
        astray = any(isinstance(step, p.Jump | p.Skew) for step in self.before.steps)
        found = []
        for number in range(1, dice.randint(1, 2) + 1):
            since_s = dice.choice((EVER_S, 1.0, 5.0, 20.0))
            wish = p.Wish(
                topic=dice.choice("ab"),
                warm=dice.random() < 0.4,
                qos=dice.choice((1, 2, 2, 2)),
                since_s=EVER_S if astray else since_s,
            )
            found.append(self._card(f"r{number}", wish))
        return found

    def _paced(self) -> list[p.Card]:
        dice = self.dice
        found = []
        for number in range(1, dice.randint(0, 2) + 1):
            wish = p.Wish(
                topic=dice.choice("ab"),
                warm=dice.random() < 0.4,
                qos=dice.choice((1, 2, 2)),
                interval_s=dice.choice((0.5, 2.0, 10.0)),
            )
            found.append(self._card(f"k{number}", wish))
        return found

    def _card(self, name: str, wish: p.Wish) -> p.Card:
        present = [broker for broker in self.before.brokers if broker not in self.before.late]
        delay_s = self.dice.choice((0.001, 0.02, 0.1))
        return p.Card(name=name, home=self.dice.choice(present), wishes=(wish,), delay_s=delay_s)

    def _put(self) -> p.Put:
        dice = self.dice
        x = dice.randrange(PLACES) if dice.random() < 0.9 else None
        return p.Put(
            at_s=self._moment(),
            client=dice.choice(self.publishers),
            topic=dice.choice(THINGS),
            warm=dice.random() < 0.5,
            clear=dice.random() < 0.15,
            qos=dice.choice((1, 1, 2)),
            expiry_s=dice.choice((None, None, 1.0, 5.0)),
            x=x,
            width=dice.choice((0, 0, 0, 1, 3)) if x is not None else 0,
        )

    def _moment(self) -> float:
        return round(self.dice.uniform(0, self.end_s), 3)

    def _life(self, card: p.Card) -> list[p.AnyStep]:
        """It asks for the past at some time, and roams, most of all just after that."""
        dice, asked_s = self.dice, round(self.dice.uniform(0.2, 0.8) * self.end_s, 3)
        steps: list[p.AnyStep] = [p.Recall(at_s=asked_s, client=card.name)] if card.recalls else []
        for _ in range(dice.randint(1, 6)):
            soon_s = round(asked_s + dice.choice((0.0, 0.02, 0.1, 0.5, 2.0)), 3)
            at_s = soon_s if dice.random() < 0.5 else self._moment()
            to, notice_s = dice.choice(self._near(card)), dice.choice((0.0, 0.2, None))
            if dice.random() < 0.5:
                steps.append(p.Come(at_s=at_s, client=card.name, to=to, notice_s=notice_s))
            else:
                steps.append(p.Vanish(at_s=at_s, client=card.name, notice_s=notice_s))
                back_s = round(at_s + dice.choice((0.3, 1.0, 5.0)), 3)
                steps.append(p.Come(at_s=back_s, client=card.name, to=to))
        return steps

    def _near(self, card: p.Card) -> tuple[NodeId, ...]:
        """Nobody leaves its site: other sites are not asked for the past."""
        return next((site for site in self.before.sites if card.home in site), self.before.brokers)
