"""Verdicts follow the numbers: every judge says reproduced, not reproduced and not decidable, each where it should."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.mft.made import Figures, Make, noisy, rows

from godwit.lab.claims import Finding, Verdict
from godwit.lab.mft.claims import CLAIMS
from godwit.lab.mft.grid import Grid
from godwit.lab.mft.runs import Configuration
from godwit.lab.mft.verdicts import JUDGES, TRACES, Evidence, findings

pytestmark = pytest.mark.feature("mft-pubsub F34")

GRID = Grid(seeds=4)


def as_published(run: Configuration) -> Figures:
    """A world in which every claim holds."""
    mft = run.protocol != "aodv"
    loss = {2: 0, 4: 5, 8: 10, 16: 15, 32: 20}[run.size]
    if mft:
        delivered = {2: 900, 4: 850, 8: 800, 16: 750, 32: 300}[run.size] + 100 - 20 * abs(run.speed_mps - 6)
        rate = 900 - 10 * loss + 5 * run.speed_mps
    else:
        delivered = {2: 800, 4: 700, 8: 600, 16: 500, 32: 450}[run.size]
        rate = 800 - 15 * loss - 5 * run.speed_mps
    if run.side_m:
        delivered = 50
    return {
        "routed": 1000,
        "delivered_routed": noisy(GRID, run, rate),
        "wanted": 1000,
        "delivered": noisy(GRID, run, delivered),
        "replayed": noisy(GRID, run, 50 * run.speed_mps),
        "delay_mean_s": 0.3 if mft else 0.2 + (run.size == 4),
        "hops_mean": 2.0 + (not mft and run.size == 4),
        "messages_per_node": 40.0 + run.seed if mft else 10.0 * run.size + run.seed,
        "messages_per_node_without_beacons": 20.0 if mft else 9.0 * run.size,
    }


def changed(change: Callable[[Configuration, Figures], Figures]) -> Make:
    return lambda run: {**as_published(run), **change(run, as_published(run))}


def found(make: Make, grid: Grid = GRID, *, quick: bool = False) -> dict[str, Finding]:
    evidence = Evidence(rows(grid.cells(), make), rows(grid.sparse(), make), grid.reference_mps, quick=quick)
    return {finding.claim.name: finding for finding in findings(evidence)}


FALSE: dict[str, Make] = {
    "E3": changed(lambda run, made: {"delivered_routed": 700 - 10 * run.speed_mps if run.protocol == "mft" else 600}),
    "E4": changed(lambda run, made: {"delivered_routed": 800}),
    "E5": changed(lambda run, made: {"delivered_routed": 900 if run.protocol == "aodv" else 500}),
    "E6": changed(lambda run, made: {"delivered": 900 if run.protocol == "mft" else 500}),
    "E7": changed(lambda run, made: {"delivered": 950} if run.protocol == "aodv" and run.speed_mps == 4 else {}),
    "E8": changed(lambda run, made: {"delivered": 500 + 20 * run.speed_mps}),
    "E9": changed(lambda run, made: {"replayed": 500 - 20 * run.speed_mps}),
    "E10": changed(lambda run, made: {"delay_mean_s": 9.0} if run.protocol == "mft" and run.size == 32 else {}),
    "E11": changed(lambda run, made: {"hops_mean": 2.0 + run.size}),
    "E12": changed(lambda run, made: {"messages_per_node": 90.0 + run.seed} if run.protocol == "aodv" else {}),
    "E13": changed(lambda run, made: {"messages_per_node": 30.0 + run.seed}),
    "E14": changed(lambda run, made: {"messages_by_role": {"broker": 15.0, "subscriber": 10.0, "publisher": 9.0}}),
    "E15": changed(lambda run, made: {"messages_per_node": float(run.size) ** 2} if run.protocol == "mft" else {}),
    "E17": changed(lambda run, made: {"delivered": 900} if run.side_m else {}),
}


def test_where_everything_is_as_published_every_claim_is_reproduced() -> None:
    assert {name: one.verdict for name, one in found(as_published).items()} == dict.fromkeys(CLAIMS, Verdict.REPRODUCED)


def test_every_judge_is_tried_in_a_world_that_contradicts_it() -> None:
    assert list(FALSE) == list(JUDGES)


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_falls_where_the_world_is_otherwise_and_a_quick_grid_does_not_say_so(name: str) -> None:
    fallen = found(FALSE[name])[name]
    assert fallen.verdict is Verdict.NOT_REPRODUCED, fallen.numbers
    assert found(FALSE[name], quick=True)[name].verdict is Verdict.NOT_DECIDABLE


@pytest.mark.parametrize("name", FALSE)
def test_one_seed_decides_nothing_and_says_what_is_missing(name: str) -> None:
    alone = found(as_published, Grid(seeds=1))[name]
    assert alone.verdict is Verdict.NOT_DECIDABLE
    assert alone.missing is not None
    assert alone.missing.cost


def test_without_the_cells_a_claim_is_about_nothing_is_decided() -> None:
    few = found(as_published, Grid(sizes=(4,), speeds_mps=(8.0,), seeds=4))
    undecided = {name for name, one in few.items() if one.verdict is Verdict.NOT_DECIDABLE}
    assert undecided == set(JUDGES) - {"E10"}
    assert "not run" in few["E6"].told


def test_differences_within_the_error_decide_nothing() -> None:
    def alike(run: Configuration) -> Figures:
        swing = run.seed % 2 if run.protocol == "mft" else (run.seed + 1) % 2
        return {"delivered": 50 + 10 * swing, "delivered_routed": 50 + 10 * swing}

    close = found(alike)
    assert {close[name].verdict for name in ("E5", "E6", "E7")} == {Verdict.NOT_DECIDABLE}


def test_many_runs_refute_an_effect_that_is_nil() -> None:
    def nil(run: Configuration) -> Figures:
        return {**as_published(run), "wanted": 10_000, "delivered": 5000 + run.seed % 3}

    assert found(nil)["E6"].verdict is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("name", TRACES)
def test_a_migration_that_costs_another_number_of_messages_is_not_reproduced(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, published = TRACES[name]
    monkeypatch.setitem(TRACES, name, (lambda: (published[0], published[1] + 1), published))
    assert found(as_published)[name].verdict is Verdict.NOT_REPRODUCED
