"""The smallest plan that still fails: delta debugging over steps, then over brokers' and clients' circumstances.

Smaller is fewer steps. A candidate fails where a judge finds something of the same kind, so that one fault is not
traded for another; every candidate is a whole trial of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from godwit.sim.exploration.plan import AnyStep, Change, Come, Plan, Publish, Twice, Vanish
from godwit.sim.exploration.trial import Trial

TRIES_MAX = 300


def kinds_found(plan: Plan) -> frozenset[str]:
    return frozenset(finding.kind for finding in Trial(plan).run().findings)


def reduced(
    plan: Plan, kinds: frozenset[str], judge: Callable[[Plan], frozenset[str]] = kinds_found, tries: int = TRIES_MAX
) -> Plan:
    """A plan with as few steps as can be found that still shows one of these kinds of findings."""
    search = _Search(kinds, judge, tries)
    plan = search.fewer_steps(plan)
    plan = search.without_clients(plan)
    plan = search.fewer_steps(plan)
    return search.together(plan)


class _Search:
    def __init__(self, kinds: frozenset[str], judge: Callable[[Plan], frozenset[str]], tries: int) -> None:
        self.kinds = kinds
        self.judge = judge
        self.left = tries

    def fails(self, plan: Plan) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        return bool(self.judge(plan) & self.kinds)

    def fewer_steps(self, plan: Plan) -> Plan:
        """ddmin: leave out ever smaller pieces, until no single step can be left out."""
        steps: Sequence[AnyStep] = plan.steps
        size = max(1, len(steps) // 2)
        while steps and self.left > 0:
            for rest in _without_pieces(steps, size):
                candidate = msgspec.structs.replace(plan, steps=tuple(rest))
                if self.fails(candidate):
                    steps, plan = rest, candidate
                    break
            else:
                if size == 1:
                    break
                size = max(1, size // 2)
        return plan

    def without_clients(self, plan: Plan) -> Plan:
        """Clients that do nothing are in nobody's way, but a picture is better without them."""
        acting = (Publish, Come, Twice, Vanish, Change)
        for card in plan.clients:
            clients = tuple(one for one in plan.clients if one.name != card.name)
            steps = tuple(step for step in plan.steps if not (isinstance(step, acting) and step.client == card.name))
            candidate = msgspec.structs.replace(plan, clients=clients, steps=steps)
            if clients and self.fails(candidate):
                plan = candidate
        return plan

    def together(self, plan: Plan) -> Plan:
        """Nothing happens before the first step that matters."""
        if not plan.steps:
            return plan
        first_s = plan.steps[0].at_s
        steps = tuple(msgspec.structs.replace(step, at_s=round(step.at_s - first_s, 3)) for step in plan.steps)
        candidate = msgspec.structs.replace(plan, steps=steps)
        return candidate if self.fails(candidate) else plan


def _without_pieces(steps: Sequence[AnyStep], size: int) -> Iterator[list[AnyStep]]:
    """The later ones first: what comes after the fault is seldom needed."""
    for at in range(max(0, (len(steps) - 1) // size * size), -1, -size):
        yield [*steps[:at], *steps[at + size :]]
