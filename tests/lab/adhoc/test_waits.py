"""Along gossip's wait: where each claim holds, which part is closest, and what verdict comes of it."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.lab.adhoc.made import PLAN, evidence
from tests.lab.adhoc.test_verdicts import FALSE

from godwit.lab.adhoc.evidence import Evidence
from godwit.lab.adhoc.figures import SWEPT, swept
from godwit.lab.adhoc.readings import NO_SLOTS, PUBLISHED, SLOTS, TEXTS, WAITS, over, runs
from godwit.lab.adhoc.verdicts import JUDGES, judge
from godwit.lab.adhoc.waits import WITH_GOSSIP, WITHOUT_GOSSIP, published, table
from godwit.lab.claims import Verdict
from godwit.lab.results import Row

pytestmark = pytest.mark.feature("manet-cbr F23")

ONE = structs.replace(PLAN, seeds=1)
NOTHING = Evidence(PLAN, [])


@pytest.mark.parametrize("name", WITH_GOSSIP)
def test_a_claim_that_holds_up_to_some_wait_depends_on_it_with_the_threshold(name: str) -> None:
    held = ["0 ms", "0.02 ms"]
    found = over(name, {at: [evidence() if at.removeprefix(SLOTS) in held else evidence(FALSE[name])] for at in WAITS})
    assert found.told == "depends on how long gossip waits: holds up to 0.02 ms"
    assert found.depends is not None
    assert [point.holds for point in found.depends.curve] == [True, True, False, False]
    assert all(point.margins for point in found.depends.curve)


def test_a_wait_at_which_a_claim_is_open_is_on_the_curve_and_decides_nothing() -> None:
    every = [evidence(), evidence(plan=ONE), evidence(FALSE["E2b"]), NOTHING]
    found = over("E2b", {at: [own] for at, own in zip(WAITS, every, strict=True)})
    assert found.told == "depends on how long gossip waits: holds up to 0 ms"
    assert found.depends is not None
    assert [point.holds for point in found.depends.curve] == [True, None, False], "what was not run is not there"
    assert over("E2b", {at: [own] for at, own in zip(WAITS, every[:2], strict=False)}).verdict is Verdict.REPRODUCED


@pytest.mark.parametrize("other", [evidence(), evidence(FALSE["E2b"])], ids=["holds", "fails"])
def test_where_the_text_s_own_reading_is_open_so_is_the_claim(other: Evidence) -> None:
    known = {TEXTS: [evidence(plan=ONE)], SLOTS + "0.1 ms": [other], NO_SLOTS: [other]}
    assert over("E2b", known).verdict is Verdict.NOT_DECIDABLE


def test_a_reading_that_was_not_run_is_taken_from_the_smaller_size_which_is_named() -> None:
    known = {TEXTS: [evidence()], SLOTS + "0.1 ms": [NOTHING, evidence(FALSE["E3c"])]}
    found = over("E3c", known)
    assert found.depends is not None
    assert [point.numbers.startswith("size short: ") for point in found.depends.curve] == [False, True]
    row = next(row for row in table(known).rows if row[0] == "E3c")
    assert row[2].startswith("holds: ")
    assert row[2].endswith("4 worlds")
    assert row[3].startswith("fails: ")
    assert row[3].endswith("4 worlds of size short")


def test_a_larger_size_that_is_open_is_not_overruled_by_a_smaller_one() -> None:
    known = {TEXTS: [evidence()], SLOTS + "0.1 ms": [evidence(plan=ONE), evidence(FALSE["E3c"])]}
    assert over("E3c", known).verdict is Verdict.REPRODUCED


def test_every_claim_is_in_the_table_or_has_no_gossip_in_it() -> None:
    assert {*WITH_GOSSIP, *WITHOUT_GOSSIP} == set(JUDGES)
    assert [row[0] for row in table({at: [evidence()] for at in WAITS}).rows] == list(WITH_GOSSIP)
    rows = [
        Row(structs.replace(setting, seed=seed), result)
        for setting in PLAN.cells()
        if setting.protocol == "proximity"
        for seed, result in evidence().by_seed(setting).items()
    ]
    bare = Evidence(PLAN, rows)
    decided = [name for name in JUDGES if judge(name, bare).verdict is Verdict.REPRODUCED]
    assert decided == list(WITHOUT_GOSSIP)


def test_the_part_of_the_table_is_the_one_that_is_closest_at_any_wait() -> None:
    row = next(
        row for row in table({TEXTS: [evidence()], SLOTS + "0.1 ms": [evidence(FALSE["E2b"])]}).rows if row[0] == "E2b"
    )
    assert row[1] == "times as many as the other at equal delivery, beyond 2"
    assert row[3].startswith("fails: -")


def test_the_sweep_has_a_figure_of_every_claim_with_gossip_that_it_can_turn() -> None:
    assert {name for own in SWEPT.values() for name in own} == set(WITH_GOSSIP) - {"E1b", "E6", "E7c"}
    figures = swept({at: [evidence()] for at in WAITS})
    assert all(png.startswith(b"\x89PNG") for png in figures.values())
    assert len(figures) == len(SWEPT) + 1
    assert len(swept({TEXTS: [evidence()]})) == 1, "one wait is no sweep"


def test_the_sweep_comes_right_after_the_text_s_own_reading_and_has_as_many_worlds() -> None:
    every = [run for run in runs(PUBLISHED) if run.protocol == "gossip" and run.radio == "slots"]
    waiting = [run for run in every if run.gossip_jitter_s > 0 and run.measure_s == PUBLISHED.measure_s]
    curve = waiting[: 3 * 8 * 40]
    assert {run.gossip_jitter_s for run in curve} == {2e-5, 5e-5, 1e-4}
    assert {run.seed for run in curve} == set(range(301, 341))
    assert {run.probability for run in curve} == set(PUBLISHED.probabilities)
    assert every.index(curve[-1]) < min(i for i, run in enumerate(every) if run.seed > 310 and run.nodes == 300)


def test_what_the_text_has_in_numbers_stands_beside_ours_in_each_reading() -> None:
    rows = {row[0]: row[1:] for row in published({TEXTS: [evidence()], SLOTS + "0.1 ms": [NOTHING, evidence()]}).rows}
    assert rows["its packets per delivery"][:2] == ("2.5", "2.49 ± 0.0073, 4 worlds")
    assert rows["gossip's delivery at 2.5 packets per delivery"][0] == "0.30"
    assert {cells[2] for cells in rows.values()} == {"not run"}
    assert all(cells[4].endswith("4 worlds of size short") for cells in rows.values())
