"""The published claims on structures (spec content-routing 4.3: C1 to C11, C24 to C29), judged by what was counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from godwit.lab.claims import Finding, along, judged
from godwit.lab.structures.claims import clients as claims_clients
from godwit.lab.structures.claims import mergers as claims_mergers
from godwit.lab.structures.claims import routers as claims_routers
from godwit.lab.structures.evidence import Evidence, Point, point_of
from godwit.lab.structures.judging import Check
from godwit.lab.structures.rows import Row
from godwit.lab.structures.settings import Setting

CHECKS = (*claims_clients.CHECKS, *claims_routers.CHECKS, *claims_mergers.CHECKS)


class Judged(NamedTuple):
    check: Check
    finding: Finding


def judge(rows: Iterable[Row], settings: Iterable[Setting] = ()) -> list[Judged]:
    """All claims on the experiments that have rows, in the order of their numbers.

    `settings` are those that were meant to be run; nothing is decided where one of their points has no row at all.
    """
    rows = list(rows)
    found = {experiment: Evidence(rows, experiment) for experiment in {row.setting.experiment for row in rows}}
    meant: dict[str, set[Point]] = {}
    for one in settings:
        meant.setdefault(one.experiment, set()).add(point_of(one))
    checks = sorted((check for check in CHECKS if check.experiment in found), key=_number)
    return [_judged(check, found[check.experiment], meant.get(check.experiment, set())) for check in checks]


def _judged(check: Check, found: Evidence, meant: set[Point]) -> Judged:
    missing = meant.difference(found.points())
    if missing:
        return Judged(check, judged(check.claim, None, f"{len(missing)} of {len(meant)} points were not run", COST))
    holds, numbers = check.judge(found)
    if check.curve is None or holds:
        return Judged(check, judged(check.claim, holds, numbers, COST))
    points = check.curve(found)
    if not any(point.holds is False for point in points):
        return Judged(check, judged(check.claim, holds, numbers, COST))
    is_ordered = check.on.startswith(("how many", "where"))
    return Judged(check, along(check.claim, check.on, points, numbers, COST, ordered=is_ordered))


COST = "up to half a minute of a core a replication of an experiment"


def _number(check: Check) -> int:
    return int(check.claim.name[1:])
