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
from godwit.lab.adhoc.plan import Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.adhoc.verdicts import judge
from godwit.lab.claims import Finding, Point, Verdict, along
from godwit.lab.results import Row

PUBLISHED = Plan(seeds=10, first_seed=301, heavy=3000.0, heavy_seeds=10)
"""Settings with so many receptions a second are measured for a minute only: gossip with certainty among 300 nodes takes
a hundred times what the default scenario takes."""
SHORT = Plan(seeds=5, first_seed=301, warm_s=60.0, measure_s=100.0, heavy=1500.0, heavy_s=40.0)
"""About fifteen minutes of a core."""

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
    """The text's own reading first and whole, small networks before large ones; then the others, seed by seed.

    Most claims are decided by the first; an interrupted run of the others still says something about each.
    """
    text, *others = (plan.runs() for plan in plans(base).values())
    every = [run for own in others for run in own]
    by_size = sorted(text, key=lambda run: (run.nodes > DEFAULT_NODES, run.seed))
    return list(dict.fromkeys([*by_size, *sorted(every, key=lambda run: run.seed)]))


def findings(base: Plan, rows: Sequence[Row[Configuration, Result]]) -> list[Finding]:
    """Each claim over the readings in which it could be decided."""
    known = {name: Evidence(plan, rows) for name, plan in plans(base).items()}
    return [_over(name, known) for name in CLAIMS]


def _over(name: str, known: Mapping[str, Evidence]) -> Finding:
    found = {reading: judge(name, evidence) for reading, evidence in known.items()}
    first = next(iter(found.values()))
    if name == "A1":
        return first
    points = [Point(reading, _holds(one), one.numbers) for reading, one in found.items()]
    decided = [point for point in points if point.holds is not None]
    if not decided:
        return first
    numbers = "; ".join(f"{point.at}: {point.numbers}" for point in decided[:1])
    return along(CLAIMS[name], "how neighbors share the air", decided, numbers, ordered=False)


def _holds(finding: Finding) -> bool | None:
    return {Verdict.REPRODUCED: True, Verdict.NOT_REPRODUCED: False}.get(finding.verdict)
