"""Verdicts follow the numbers: reproduced, not reproduced, or not decidable where runs are missing or too close."""

from __future__ import annotations

import pytest
from tests.lab.mft.made import Figures, Make, noisy, rows

from godwit.lab.claims import Verdict
from godwit.lab.mft.grid import Grid
from godwit.lab.mft.runs import Configuration
from godwit.lab.mft.verdicts import CLAIMS, Evidence, findings

GRID = Grid(seeds=4)


def as_published(run: Configuration) -> Figures:
    """A world in which every claim holds."""
    mft = run.protocol != "aodv"
    loss = {2: 0, 4: 5, 8: 10, 16: 15, 32: 20}[run.size]
    if mft:
        delivered = {2: 90, 4: 85, 8: 80, 16: 75, 32: 30}[run.size] + 10 - 2 * abs(run.speed_mps - 6)
        rate = 900 - 10 * loss + 5 * run.speed_mps
    else:
        delivered = {2: 80, 4: 70, 8: 60, 16: 50, 32: 45}[run.size]
        rate = 800 - 15 * loss - 5 * run.speed_mps
    if run.side_m:
        delivered = 5
    return {
        "routed": 1000,
        "delivered_routed": noisy(GRID, run, rate),
        "wanted": 100,
        "delivered": noisy(GRID, run, delivered),
        "replayed": noisy(GRID, run, 5 * run.speed_mps),
        "delay_mean_s": 0.3 if mft else 0.2 + (run.size == 4),
        "hops_mean": 2.0 + (not mft and run.size == 4),
        "messages_per_node": 40.0 + run.seed if mft else 10.0 * run.size + run.seed,
        "messages_per_node_without_beacons": 20.0 if mft else 9.0 * run.size,
        "cpu_s": 1.0 if mft else 100.0,
    }


def verdicts(make: Make, grid: Grid = GRID) -> dict[str, Verdict]:
    evidence = Evidence(rows(grid.cells(), make), rows(grid.sparse(), make), grid.reference_mps)
    return {finding.claim.name: finding.verdict for finding in findings(evidence)}


@pytest.mark.feature("mft-pubsub F34")
def test_where_everything_is_as_published_every_claim_is_reproduced() -> None:
    assert verdicts(as_published) == dict.fromkeys(CLAIMS, Verdict.REPRODUCED)


@pytest.mark.feature("mft-pubsub F34")
def test_where_the_protocols_change_places_the_orderings_are_not_reproduced() -> None:
    def swapped(run: Configuration) -> Figures:
        other = {"mft": "aodv", "aodv": "mft", "hardened": "hardened"}[run.protocol]
        return as_published(Configuration(size=run.size, speed_mps=run.speed_mps, seed=run.seed, protocol=other))

    found = verdicts(swapped)
    for name in ("E3", "E5", "E6", "E7", "E11", "E12", "E13", "E15", "E16", "E17"):
        assert found[name] is Verdict.NOT_REPRODUCED, name
    assert found["E1"] is found["E2"] is Verdict.REPRODUCED


@pytest.mark.feature("mft-pubsub F34")
def test_without_the_cells_a_claim_is_about_nothing_is_decided() -> None:
    found = verdicts(as_published, Grid(sizes=(4,), speeds_mps=(8.0,), seeds=2))
    undecided = {name for name, verdict in found.items() if verdict is Verdict.NOT_DECIDABLE}
    assert undecided >= {"E3", "E4", "E5", "E6", "E7", "E8", "E9", "E11", "E12", "E13", "E15", "E16", "E17"}


@pytest.mark.feature("mft-pubsub F34")
def test_differences_within_the_error_decide_nothing() -> None:
    def alike(run: Configuration) -> Figures:
        swing = run.seed % 2 if run.protocol == "mft" else (run.seed + 1) % 2
        return {"delivered": 50 + 10 * swing, "delivered_routed": 50 + 10 * swing}

    found = verdicts(alike)
    assert {found[name] for name in ("E5", "E6", "E7")} == {Verdict.NOT_DECIDABLE}


@pytest.mark.feature("mft-pubsub F34")
def test_one_run_alone_decides_no_ordering() -> None:
    found = verdicts(as_published, Grid(seeds=1))
    assert found["E6"] is found["E7"] is Verdict.NOT_DECIDABLE
