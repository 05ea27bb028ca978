"""Rows of other code count only where a sample of them, run again, comes out equal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from godwit.lab import site, vouchers
from godwit.lab.claims import Claim, judged
from godwit.lab.provenance import Provenance
from godwit.lab.results import Results
from godwit.lab.structures.rows import Measures, Row, Store
from godwit.lab.structures.settings import Setting
from godwit.lab.studies import Outcome, Study


class Throw(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    sides: int = 6
    loaded: bool = False


class Fallen(msgspec.Struct, kw_only=True):
    number: int
    ratio: float = float("nan")
    cpu_s: float = 0.0


RUNS = [
    Throw(seed=seed, sides=sides, loaded=loaded)
    for seed in range(5)
    for sides, loaded in ((6, False), (20, False), (6, True))
]


def throw(one: Throw) -> Fallen:
    return Fallen(number=one.sides if one.loaded else one.seed % one.sides, cpu_s=1.0)


def otherwise_when_loaded(one: Throw) -> Fallen:
    return Fallen(number=99) if one.loaded else throw(one)


def kept(folder: Path, code: str) -> Results[Throw, Fallen]:
    return Results(folder / "results.parquet", Throw, Fallen, Provenance(code=code, commit="c", machine="m"))


def outcome(rows: object, size: str) -> Outcome:
    claim = Claim("E1", "It falls.", "dice 1", "none")
    return Outcome(lead="", findings=[judged(claim, True, "1")], tables=[], parameters=[], seeds="1")


STUDY = Study(
    name="dice",
    title="Dice",
    spec="dice",
    runs=lambda size: RUNS,
    work=throw,
    cost_s=lambda one: float(one.sides + one.loaded),
    kept=lambda path: kept(path.parent, "new"),
    outcome=outcome,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    old = kept(tmp_path, "old")
    for one in RUNS[:-3]:
        old.add(one, msgspec.structs.replace(throw(one), cpu_s=7.0))
    old.settle()
    return tmp_path


def test_the_sample_has_every_value_of_every_setting_in_the_cheapest_runs() -> None:
    chosen = vouchers.sample(RUNS, STUDY.cost_s)
    assert len(chosen) == 3
    assert {(one.sides, one.loaded) for one in chosen} == {(6, False), (6, True), (20, False)}
    assert vouchers.sample([], STUDY.cost_s) == []


def test_where_all_come_out_equal_the_other_rows_count_and_what_nobody_ran_is_missing(folder: Path) -> None:
    newer = kept(folder, "new")
    assert newer.missing(RUNS) == RUNS
    (voucher,) = vouchers.vouch(STUDY, newer, RUNS)
    assert voucher == vouchers.Voucher(code="old", by="new", runs=12, again=3, differing=0)
    assert newer.missing(RUNS) == RUNS[-3:]
    assert len(newer.of(RUNS)) == 12


def test_one_that_comes_out_otherwise_keeps_them_all_out(folder: Path) -> None:
    newer = kept(folder, "new")
    changed = msgspec.structs.replace(STUDY, work=otherwise_when_loaded)
    (voucher,) = vouchers.vouch(changed, newer, RUNS)
    assert (voucher.differing, voucher.is_good) == (1, False)
    assert newer.missing(RUNS) == RUNS
    assert str(voucher) == "1 of 3 runs of code old come out otherwise in code new."


def test_a_strand_that_comes_out_otherwise_keeps_out_its_own_rows_and_no_others(folder: Path) -> None:
    changed = msgspec.structs.replace(STUDY, work=otherwise_when_loaded, strand=lambda one: "luck" * one.loaded)
    newer = changed.kept_at(folder / "results.parquet")
    honest, lucky = vouchers.vouch(changed, newer, RUNS)
    assert (honest.strand, honest.runs, honest.again, honest.is_good) == ("", 8, 2, True)
    assert str(lucky) == "1 of 1 runs of luck of code old come out otherwise in code new."
    assert newer.missing(RUNS) == [one for one in RUNS if one.loaded or one in RUNS[-3:]]
    later = changed.kept_at(folder / "results.parquet")
    vouchers.admit(later, vouchers.read(folder))
    assert later.missing(RUNS) == newer.missing(RUNS)


def test_a_later_session_of_the_same_code_finds_the_voucher_and_other_code_does_not(folder: Path) -> None:
    vouchers.vouch(STUDY, kept(folder, "new"), RUNS)
    for code, missing in (("new", 3), ("newer still", 15)):
        later = kept(folder, code)
        vouchers.admit(later, vouchers.read(folder))
        assert len(later.missing(RUNS)) == missing


def test_rows_of_each_code_need_a_voucher_of_their_own(folder: Path) -> None:
    second = kept(folder, "second")
    for one in RUNS[-3:]:
        second.add(one, otherwise_when_loaded(one))
    second.settle()
    newer = kept(folder, "new")
    found = {one.code: one.is_good for one in vouchers.vouch(STUDY, newer, RUNS)}
    assert found == {"old": True, "second": False}
    assert newer.missing(RUNS) == RUNS[-3:]


def test_nothing_that_was_run_again_vouches_for_nothing(tmp_path: Path) -> None:
    assert vouchers.vouch(STUDY, kept(tmp_path, "new"), RUNS) == []
    assert not vouchers.Voucher(code="old", by="new", runs=0, again=0, differing=0).is_good


def test_the_page_names_the_voucher(folder: Path) -> None:
    newer = kept(folder, "new")
    vouchers.vouch(STUDY, newer, RUNS)
    told = site.told(STUDY, newer, "quick")
    assert told is not None
    said = "Code new has run 3 of the 12 runs of code old again, every value of every setting among them: all are equal"
    assert said in site.documents([told])["dice.md"]
    assert said in site.page(told)


def test_rows_of_structures_are_compared_structure_by_structure(tmp_path: Path) -> None:
    settings = [Setting(experiment="E1", schema="2D", filters=filters) for filters in (100, 200)]

    def rows(setting: Setting, cost: int = 5) -> list[Row]:
        return [Row(setting, name, Measures(add_covers=cost)) for name in ("PF", "FP")]

    path = tmp_path / "results.parquet"
    for setting in settings:
        Store(path, Provenance(code="old")).add(setting, rows(setting))
    study = msgspec.structs.replace(STUDY, work=rows, cost_s=lambda one: 1.0)
    newer = Store(path, Provenance(code="new"))
    assert newer.missing(settings) == settings
    assert [one.is_good for one in vouchers.vouch(study, newer, settings)] == [True]
    assert newer.missing(settings) == []
    other = Store(path, Provenance(code="other"))
    dearer = msgspec.structs.replace(study, work=lambda one: rows(one, 6))
    assert [one.differing for one in vouchers.vouch(dearer, other, settings)] == [2]
    assert other.missing(settings) == settings
