"""The published claims on structures (spec content-routing 4.3: C1 to C11, C24 to C29), judged by what was counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from godwit.lab.claims import Finding, judged
from godwit.lab.structures import claims_clients, claims_mergers, claims_routers
from godwit.lab.structures.evidence import Evidence
from godwit.lab.structures.judging import Check
from godwit.lab.structures.rows import Row

CHECKS = (*claims_clients.CHECKS, *claims_routers.CHECKS, *claims_mergers.CHECKS)


class Judged(NamedTuple):
    check: Check
    finding: Finding


def judge(rows: Iterable[Row]) -> list[Judged]:
    """All claims on the experiments that have rows, in the order of their numbers."""
    rows = list(rows)
    found = {experiment: Evidence(rows, experiment) for experiment in {row.setting.experiment for row in rows}}
    checks = sorted((check for check in CHECKS if check.experiment in found), key=_number)
    return [Judged(check, judged(check.claim, *check.judge(found[check.experiment]))) for check in checks]


def _number(check: Check) -> int:
    return int(check.claim.name[1:])
