"""Results made up for verdicts and reports."""

from __future__ import annotations

import msgspec

from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.plan import Plan
from godwit.lab.adhoc.runs import Configuration, Result
from godwit.lab.results import Row

PLAN = Plan(seeds=4)


def result(delivery: float, overhead: float, beacon_share: float = 0.3) -> Result:
    delivered = round(1000 * delivery)
    beacons = round(beacon_share * delivered)
    return Result(
        published=100,
        wanted=1000,
        delivered=delivered,
        delivered_1s=delivered,
        duplicates=0,
        data_sent=round(overhead * delivered) - beacons,
        beacons_sent=beacons,
        sent_b=delivered * 1000,
        delay_mean_s=0.1,
        delay_p95_s=0.5,
        period_mean_s=5.0,
        wall_s=1.0,
        cpu_s=1.0,
        digest="",
    )


GOSSIP = {
    0.1: (0.02, 5.0),
    0.2: (0.18, 2.2),
    0.3: (0.38, 2.8),
    0.4: (0.48, 4.6),
    0.5: (0.69, 5.3),
    0.6: (0.88, 5.6),
    0.75: (0.95, 7.5),
    1.0: (0.96, 10.0),
}
"""Delivery and packets per delivery by probability."""


def as_published(setting: Configuration) -> Result:
    """A world in which every claim holds."""
    if setting.protocol == "gossip":
        return _gossip(setting)
    few = max(0.0, 0.3 - 0.03 * setting.subscribers)
    delivery = 0.88 if setting.credits else 0.70 - few
    if setting.speed_max_mps < 10:
        delivery += 0.02 * (setting.period_s - 5)
    elif setting.speed_max_mps > 30:
        delivery -= 0.02 * (setting.period_s - 5)
    if setting.side_m != 1000.0:
        delivery += setting.nodes * 1e-4
    beacons = 0.15 / setting.rate_per_s
    cost = 2.2 + beacons if setting.nodes != 100 else (22 / setting.subscribers) + beacons
    return result(delivery, cost + 0.1 * setting.credits, beacons)


def _gossip(setting: Configuration) -> Result:
    delivery, cost = GOSSIP[setting.probability]
    delivery -= 0.03 * setting.probability**2 * setting.rate_per_s - 0.015 * setting.probability**2
    cost *= 10 / setting.subscribers if setting.nodes == 100 else 1
    if setting.side_m != 1000.0:
        delivery -= setting.nodes * 1e-4
    elif setting.nodes != 100:
        delivery += (setting.nodes - 100) * (4e-4 if setting.probability < 0.5 else -2e-4)
    return result(delivery, cost, 0.0)


def evidence(made: dict[Configuration, Result] | None = None, plan: Plan = PLAN) -> Evidence:
    """Four seeds of each setting, a thousandth apart."""
    rows = []
    for setting in plan.cells():
        for seed in range(1, plan.seeds + 1):
            configuration = msgspec.structs.replace(setting, seed=seed)
            found = (made or {}).get(setting) or as_published(setting)
            rows.append(Row(configuration, msgspec.structs.replace(found, delivered=found.delivered + seed)))
    return Evidence(plan, rows)
