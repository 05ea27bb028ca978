"""Rows of a world in which everything is as published."""

from __future__ import annotations

from godwit.lab.relocation.plan import TABLE, Plan
from godwit.lab.relocation.runs import Configuration, Result
from godwit.lab.relocation.verdicts import PUBLISHED_MS
from godwit.lab.results import Row

PLAN = Plan(seeds=3, subscribers=(10, 20, 50), publishers=(1, 10), trials=1, trees=1)
COSTS = dict(zip(TABLE, (230.0, 60.0, 50.0, 16.0, 40.0, 5.0), strict=True))


def made_up(one: Configuration) -> Result:
    """A world in which everything is as published."""
    if one.variant:
        unsafe = any(word in one.variant for word in ("out of band", "direct", "one direction"))
        return Result(trials=50, bad=int(unsafe))
    cost_of = COSTS.get(one.protocol, 8.0)
    if one.protocol == "incomplete acyclic":
        cost_of += (one.subscribers - 50) * 0.5 + one.publishers
    if one.protocol == "complete acyclic":
        cost_of += 5.0 * (one.subscribers == 20) + 0.2 * one.publishers
    told = PUBLISHED_MS.get(one.protocol.removesuffix(", joined"), (40, 1))
    border = one.mobility == "border"
    return Result(
        moved=20,
        signalling=cost_of + 3 * border + 0.01 * one.seed,
        latency_s=told[0] / 1000,
        path=6.0 + border,
        direct=0.5 + 0.1 * border + 0.001 * one.seed,
        longest=18,
    )


def rows(plan: Plan = PLAN) -> list[Row[Configuration, Result]]:
    return [Row(one, made_up(one)) for one in plan.runs()]
