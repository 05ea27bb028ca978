"""One seed of `godwit explore` as a run of a grid, for sweeps over a cluster: `experiment = "explore"`."""

from __future__ import annotations

import msgspec

from godwit.sim.exploration.generator import drawn
from godwit.sim.exploration.plan import FAULTS, MOVES
from godwit.sim.exploration.trial import Trial


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    fabric: str = "tree"


class Result(msgspec.Struct, kw_only=True):
    failed: int
    published: int
    delivered: int
    simulated_s: float
    happened: dict[str, int]
    """How often each kind of fault and move really happened."""
    found: dict[str, int]
    """Findings by kind; any of them is a broken promise."""


def run(configuration: Configuration) -> Result:
    verdict = Trial(drawn(configuration.seed, configuration.fabric)).run()
    found: dict[str, int] = {}
    for finding in verdict.findings:
        found[finding.kind] = found.get(finding.kind, 0) + 1
    return Result(
        failed=int(verdict.failed),
        published=verdict.published,
        delivered=verdict.delivered,
        simulated_s=verdict.simulated_s,
        happened={kind: verdict.done[kind] for kind in (*FAULTS, *MOVES) if verdict.done.get(kind)},
        found=found,
    )
