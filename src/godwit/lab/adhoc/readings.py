"""How neighbors share the air, which the text does not say, and what each claim becomes under each reading.

The published simulator had "a full 802.11 stack", in which sensing takes a slot and neighbors can collide; whether
gossip waited a random time before it sent an event on is not said. The same plan is run on the radio without slots and
on the one with slots, there with several longest waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from godwit.lab.adhoc.claims import CLAIMS
from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.plan import PERIODS_S, SUBSCRIBER_CREDITS, Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.verdicts import judge
from godwit.lab.claims import Finding, along
from godwit.lab.results import Row

PUBLISHED = Plan(seeds=10, first_seed=301, heavy=3000.0, heavy_seeds=10)
"""Settings with so many receptions a second are measured for a minute only: gossip with certainty among 300 nodes takes
a hundred times what the default scenario takes."""
SHORT = Plan(seeds=5, first_seed=301, warm_s=60.0, measure_s=100.0, heavy=1500.0, heavy_s=40.0)
"""About fifteen minutes of a core."""

FURTHER_SEEDS = range(311, 341)

JITTERS_S: Mapping[str, float] = {"0 ms": 0.0, "0.02 ms": 2e-5, "0.05 ms": 5e-5, "0.1 ms": 1e-4}
DEFAULT_NODES = 100
SLOTS = "802.11 slots, gossip waits up to "
NO_SLOTS = "no slots, gossip waits up to 10 ms"


def plans(base: Plan) -> dict[str, Plan]:
    """By reading; the text's own first. Where only the wait differs, only gossip over its probability is run again."""
    bare = msgspec.structs.replace(base, claims_only=True)
    found = {
        SLOTS + name: msgspec.structs.replace(bare, radio="slots", gossip_jitter_s=jitter_s, gossip_only=jitter_s > 0)
        for name, jitter_s in JITTERS_S.items()
    }
    return {**found, NO_SLOTS: bare}


def runs(base: Plan) -> list[Configuration]:
    """The text's own reading first and whole, what shorter plans left open before all else; then the others.

    Most claims are decided by the first; an interrupted run of the others still says something about each.
    """
    text, *others = plans(base).values()
    ranks = {setting: rank for rank, own in reversed(list(enumerate(left_open(text)))) for setting in own}

    def urgency(run: Configuration) -> tuple[int, bool, int]:
        setting = msgspec.structs.replace(run, seed=0)
        return ranks.get(setting, len(ranks)), run.nodes > DEFAULT_NODES, run.seed

    every = sorted((run for plan in others for run in plan.runs()), key=lambda run: run.seed)
    further = _further(text) if base.seeds >= PUBLISHED.seeds else []
    return list(dict.fromkeys([*sorted(text.runs(), key=urgency), *further, *every]))


def _further(plan: Plan) -> list[Configuration]:
    """More worlds for claims that ten could not decide, the cheapest claim first."""
    return [
        msgspec.structs.replace(setting, seed=seed)
        for own in too_close(plan)
        for seed in FURTHER_SEEDS
        for setting in own
    ]


def too_close(plan: Plan) -> list[list[Configuration]]:
    """The settings of claims whose intervals over ten worlds held zero."""
    two, _, _, subscribers, rates, sizes, densities = left_open(plan)
    return [rates, sizes, two, densities, subscribers]  # E4b; E6; E2b and E2c; E7b; E3b


def left_open(plan: Plan) -> list[list[Configuration]]:
    """The settings of claims that three seeds of 100 s did not decide, claim by claim, the cheapest first."""
    gossip = {"protocol": "gossip", "probability": 0.5}
    slow, fast = plan.speeds_mps[0], plan.speeds_mps[-1]
    return [
        [plan.cell(), *(plan.gossip(p) for p in plan.probabilities)],  # E2a, E2b, E2c
        [plan.at_speed(v, period_s=t) for v in (slow, fast) for t in (PERIODS_S[0], PERIODS_S[-1])],  # E5
        [plan.cell(rate_per_s=rate) for rate in plan.rates_per_s],  # E4a
        [plan.cell(subscribers=n, credits=c) for n in plan.subscribers for c in SUBSCRIBER_CREDITS],  # E3b
        [plan.gossip(p, rate_per_s=r) for r in (plan.rates_per_s[0], plan.rates_per_s[-1]) for p in (0.3, 1.0)],  # E4b
        [plan.grown(n, **own) for n in (plan.sizes[0], plan.sizes[-1]) for own in ({}, gossip)],  # E6
        [plan.denser(n, protocol="gossip", probability=1.0) for n in plan.densities],  # E7b
    ]


def findings(base: Plan, rows: Sequence[Row[Configuration, Result]]) -> list[Finding]:
    """Each claim over the readings in which it could be decided."""
    known = {name: Evidence(plan, rows) for name, plan in plans(base).items()}
    return [over(name, known) for name in CLAIMS]


def over(name: str, known: Mapping[str, Evidence]) -> Finding:
    found = {reading: judge(name, evidence) for reading, evidence in known.items()}
    first = next(iter(found.values()))
    if name == "A1":
        return first
    points = [one.at(reading) for reading, one in found.items()]
    decided = [point for point in points if point.holds is not None]
    if not decided:
        return first
    numbers = "; ".join(f"{point.at}: {point.numbers}" for point in decided[:1])
    return along(CLAIMS[name], "how neighbors share the air", decided, numbers, ordered=False)
