"""How neighbors share the air, which the text does not say, and what each claim becomes under each reading.

The published simulator had "a full 802.11 stack", in which sensing takes a slot and neighbors can collide; whether
gossip waited a random time before it sent an event on is not said. The same plan is run on the radio without slots and
on the one with slots, there with several longest waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from godwit.lab.adhoc.claims import CLAIMS
from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.plan import CREDITS, PERIODS_S, SUBSCRIBER_CREDITS, Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.verdicts import judge
from godwit.lab.claims import Finding, Verdict, along
from godwit.lab.results import Row

PUBLISHED = Plan(seeds=10, first_seed=301, heavy=3000.0, heavy_seeds=10)
"""Settings with so many receptions a second are measured for a minute only: gossip with certainty among 300 nodes takes
a hundred times what the default scenario takes."""
SHORT = Plan(seeds=5, first_seed=301, warm_s=60.0, measure_s=100.0, heavy=1500.0, heavy_s=40.0)
"""About fifteen minutes of a core."""

FIRST_SEEDS = range(301, 311)
FURTHER_SEEDS = range(311, 341)
SURE_SEEDS = range(301, 306)
"""Of settings whose claims hold by many times their interval where gossip does not wait: five worlds are enough."""

JITTERS_S: Mapping[str, float] = {"0 ms": 0.0, "0.02 ms": 2e-5, "0.05 ms": 5e-5, "0.1 ms": 1e-4}
DEFAULT_NODES = 100
SLOTS = "802.11 slots, gossip waits up to "
NO_SLOTS = "no slots, gossip waits up to 10 ms"
WAITS: Mapping[str, float] = {SLOTS + name: jitter_s for name, jitter_s in JITTERS_S.items()}
TEXTS = SLOTS + "0 ms"
WAIT, AIR = "how long gossip waits", "how neighbors share the air"

Known = Mapping[str, Sequence[Evidence]]
"""By reading, what each size has shown; the largest first."""


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
    more = [*_swept(base), *_further(text), *_swept_last(base)] if _is_whole(base) else []
    beside = [run for plan in _besides(base).values() for run in plan.runs()]
    return list(dict.fromkeys([*sorted(text.runs(), key=urgency), *more, *every, *beside]))


def _is_whole(base: Plan) -> bool:
    return base.seeds >= PUBLISHED.seeds


def _besides(base: Plan) -> dict[str, Plan]:
    """What the size *short* has of readings that the published one has in part."""
    return {name: plan for name, plan in plans(SHORT).items() if name != TEXTS} if _is_whole(base) else {}


def _swept(base: Plan) -> list[Configuration]:
    """Along gossip's wait, the cheapest that decides something first: E1 and E2, then E3c and E7a."""
    air = plans(base)[NO_SLOTS]
    curves = [plan.gossip(p) for plan in _waiting(base) for p in plan.probabilities]
    bare = [*(air.gossip(p) for p in air.probabilities), *(air.cell(credits=c) for c in CREDITS)]
    sure = [setting for plan in _waiting(base) for setting in _sure(plan)]
    return [
        *_in_worlds(curves, [*FIRST_SEEDS, *FURTHER_SEEDS]),
        *_in_worlds(bare, FIRST_SEEDS),
        *_in_worlds(sure, SURE_SEEDS),
    ]


def _swept_last(base: Plan) -> list[Configuration]:
    """The rest along gossip's wait: E4b and E7b, which are open where it does not wait, and the other five worlds."""
    sure = [setting for plan in _waiting(base) for setting in _sure(plan)]
    close = [s for plan in _waiting(base) for own in (left_open(plan)[4], left_open(plan)[6]) for s in own]
    return [*_in_worlds(sure, FIRST_SEEDS), *_in_worlds(close, FIRST_SEEDS)]


def _waiting(base: Plan) -> list[Plan]:
    return [plan for name, plan in plans(base).items() if WAITS.get(name)]


def _sure(plan: Plan) -> list[Configuration]:
    ends = (plan.densities[0], plan.densities[-1])
    return [
        *(plan.gossip(p, subscribers=n) for n in plan.subscribers for p in (0.5, 1.0)),  # E3c
        *(plan.denser(n, protocol="gossip", probability=0.3) for n in ends),  # E7a
    ]


def _in_worlds(settings: Sequence[Configuration], seeds: Iterable[int]) -> list[Configuration]:
    return [msgspec.structs.replace(setting, seed=seed) for seed in seeds for setting in settings]


def _further(plan: Plan) -> list[Configuration]:
    """More worlds for claims that ten could not decide, the cheapest claim first."""
    return [run for own in too_close(plan) for run in _in_worlds(own, FURTHER_SEEDS)]


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


def known(base: Plan, rows: Sequence[Row[Configuration, Result]]) -> Known:
    """What there is of each reading; where the published size has not been run, the size *short*."""
    besides = _besides(base)
    return {
        name: [Evidence(own, rows) for own in (plan, besides.get(name)) if own is not None]
        for name, plan in plans(base).items()
    }


def findings(base: Plan, rows: Sequence[Row[Configuration, Result]]) -> list[Finding]:
    """Each claim over the readings in which it could be decided."""
    found = known(base, rows)
    return [over(name, found) for name in CLAIMS]


def at(name: str, sizes: Sequence[Evidence]) -> tuple[Finding, Evidence]:
    """A claim in one reading, by the largest size in which all that it hangs on was run; it may be open there."""
    every = [(judge(name, own), own) for own in sizes]
    finding, evidence = next((both for both in every if is_run(both[0])), every[0])
    if evidence is not sizes[0]:
        finding = msgspec.structs.replace(finding, numbers=f"size short: {finding.numbers}")
    return finding, evidence


def is_run(finding: Finding) -> bool:
    return finding.verdict is not Verdict.NOT_DECIDABLE or bool(finding.margins)


def over(name: str, found: Known) -> Finding:
    """It depends on gossip's wait where it changes along it, and on the air where it holds on one radio only.

    Else it is what the text's own reading says, in which gossip does not wait: where that is open, so is the claim.
    """
    each = {reading: at(name, sizes)[0] for reading, sizes in found.items()}
    text = each[TEXTS]
    if name == "A1":
        return text
    numbers = f"{TEXTS}: {text.numbers}"
    waits = [one.at(reading.removeprefix(SLOTS)) for reading, one in each.items() if reading in WAITS and is_run(one)]
    along_waits = along(CLAIMS[name], WAIT, waits, numbers)
    if along_waits.verdict is Verdict.DEPENDS:
        return along_waits
    if text.verdict is Verdict.NOT_DECIDABLE:
        return text
    air = [text.at("802.11 slots"), each[NO_SLOTS].at(NO_SLOTS)] if NO_SLOTS in each else [text.at(TEXTS)]
    return along(CLAIMS[name], AIR, air, numbers, ordered=False)
