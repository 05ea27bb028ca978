"""Worlds apart: one client that always shows its token goes to and fro between brokers that are cut off one by one. So
several of its sessions come about and meet later. Brokers and links are those that a seed has anyway."""

from __future__ import annotations

import msgspec

from godwit.sim.exploration import plan as p
from godwit.sim.streams import Streams

ROAMER = "s1"
LENGTHS_S = (15.0, 25.0, 40.0)
OUTAGES_S = (1.0, 3.0, 8.0, 20.0, 40.0)
DOWN_MAX_S = 8.0
"""A broker that is down, or slow, is so for less long than one that is cut off."""
WAITS_S = (1.0, 2.0, 4.0)


def estranged(plan: p.Plan) -> p.Plan:
    return _Apart(plan).plan()


class _Apart:
    def __init__(self, plan: p.Plan) -> None:
        self.before = plan
        self.dice = Streams(plan.seed).stream("worlds apart", plan.fabric)
        present = tuple(broker for broker in plan.brokers if broker not in plan.late)
        self.home = self.dice.choice(present)
        self.near = next((site for site in plan.sites if self.home in site), plan.brokers)
        """Where it goes: nobody leaves its site here."""
        self.publishers = [f"p{number}" for number in range(1, min(3, len(present)) + 1)]
        self.homes = dict(zip(self.publishers, present, strict=False))
        self.wait_s = self.dice.choice(WAITS_S)
        self.end_s = self.dice.choice(LENGTHS_S)

    def plan(self) -> p.Plan:
        dice = self.dice
        roamer = p.Card(
            name=ROAMER, home=self.home, wishes=(p.Wish(topic="a"),), delay_s=dice.choice((0.001, 0.02, 0.1))
        )
        others = (p.Card(name=name, home=home, delay_s=0.001) for name, home in self.homes.items())
        steps: list[p.AnyStep] = [step for step in self.before.steps if isinstance(step, p.Join | p.Leave)]
        steps += [self._fault() for _ in range(dice.randint(2, 7))]
        steps += self._way()
        steps += [self._publication() for _ in range(dice.randint(5, 25))]
        return msgspec.structs.replace(
            self.before,
            handoff=dice.choice(("proactive", "proactive", "reactive")),
            session_wait_s=self.wait_s,
            clients=(roamer, *others),
            steps=tuple(sorted(steps, key=lambda step: step.at_s)),
        )

    def _fault(self) -> p.AnyStep:
        dice, broker = self.dice, self.dice.choice(self.before.brokers)
        at_s, for_s = round(dice.uniform(0, 0.8 * self.end_s), 3), dice.choice(OUTAGES_S)
        kind = dice.choices(("partition", "crash", "slow"), (14, 3, 3))[0]
        if kind == "crash":
            return p.Crash(at_s=at_s, broker=broker, down_s=min(for_s, DOWN_MAX_S))
        if kind == "slow":
            return p.Slow(at_s=at_s, broker=broker, write_s=0.3, for_s=min(for_s, DOWN_MAX_S))
        return p.Partition(at_s=at_s, side=(broker,), for_s=for_s, notice_s=dice.choice((0.0, 0.3)))

    def _way(self) -> list[p.AnyStep]:
        """It hardly ever stays until it has been let in, and its brokers often do not notice that it has gone."""
        dice, at_s, steps = self.dice, 0.0, list[p.AnyStep]()
        while at_s < self.end_s:
            at_s = round(at_s + dice.choice((0.02, 0.1, 0.5, 1.0, 1.0, 2.0, self.wait_s + 0.1, 1.5 * self.wait_s)), 3)
            notice_s, to = dice.choice((0.0, 0.2, None, None)), dice.choice(self.near)
            kind = dice.choices(("come", "vanish", "twice"), (12, 3, 5))[0]
            if kind == "come":
                steps.append(p.Come(at_s=at_s, client=ROAMER, to=to, notice_s=notice_s))
            elif kind == "vanish":
                steps.append(p.Vanish(at_s=at_s, client=ROAMER, notice_s=notice_s))
            else:
                steps.append(p.Twice(at_s=at_s, client=ROAMER, first=dice.choice(self.near), to=to))
        return steps

    def _publication(self) -> p.Publish:
        dice = self.dice
        return p.Publish(
            at_s=round(dice.uniform(0, self.end_s), 3),
            client=dice.choice(self.publishers),
            topic="a/x",
            warm=True,
            qos=dice.choice((1, 2, 2, 2)),
        )
