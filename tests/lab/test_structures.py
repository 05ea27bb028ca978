"""The structure experiments: what is fed, what is checked, what is counted, what is concluded, and what a user sees."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.commands.lab import structures
from godwit.filters.filters import Filter
from godwit.filters.language import FILTERS
from godwit.lab.claims import Verdict
from godwit.lab.structures import experiments, routing, sanity, study
from godwit.lab.structures.claims.base import CHECKS, Judged, judge
from godwit.lab.structures.judging import short
from godwit.lab.structures.rows import Measures, Row, Store, StoreError
from godwit.lab.structures.settings import EXPERIMENTS, FULL, QUICK, RANGES, Setting, Sweep, planned
from godwit.lab.structures.sources import Source, phases, wishes
from godwit.lab.structures.subjects import Counts, HierarchicalForest, Subject, for_clients
from godwit.lab.structures.truth import Truth, ViolationError, forwards
from godwit.lab.workloads import Event, Workload, draw
from godwit.sim.streams import Streams
from godwit.tables.forests.forest import LOCAL, Forest
from godwit.tables.forests.forwards import RoutingPoset
from godwit.tables.matching.naive import Naive
from godwit.tables.merging.merging import minimal_cover

pytestmark = pytest.mark.feature("content-routing F45")

SLICE = (
    Sweep(experiment="E1", schemas=RANGES, filters=(20, 40), replications=1),
    Sweep(experiment="E2", schemas=("2D",), filters=(40,), interfaces=(1, 5, 40), replications=1),
    Sweep(experiment="E3", schemas=("2D", "3D"), filters=(40,), interfaces=(3, 6), replications=1),
    Sweep(experiment="E4", schemas=("2D",), filters=(40,), interfaces=(3, 6), clients=(0, 1), replications=1),
    Sweep(experiment="E5", schemas=("2D",), filters=(40,), interfaces=(4,), clients=(1, 20), replications=1),
    Sweep(experiment="E12", schemas=("1-3 mixed",), filters=(20, 40), interfaces=(3,), replications=1),
    Sweep(experiment="E12", schemas=("1-3 mixed",), filters=(40,), interfaces=(10,), replications=1),
    Sweep(experiment="E12", schemas=("2 mixed",), filters=(40,), interfaces=(3,), replications=1),
    Sweep(experiment="E13", schemas=("1-3 mixed", "2 mixed", "3 mixed"), filters=(20, 40), replications=1),
)


def setting(experiment: str, schema: str = "2D", filters: int = 30, interfaces: int = 0, clients: int = 0) -> Setting:
    return Setting(experiment=experiment, schema=schema, filters=filters, interfaces=interfaces, clients=clients)


def pool(count: int, seed: int) -> list[Filter]:
    workload = Workload(filters=count, attributes_min=1, attributes_max=2, names=2, value_max=6)
    return [one.wanted for one in draw(workload, Streams(seed)).subscriptions]


@given(st.integers(0, 10**6))
def test_what_a_reduced_source_says_keeps_a_pruning_table_at_its_minimal_cover(seed: int) -> None:
    dice = Random(seed)
    source = Source("i", reduced=True)
    receiver: Naive[Filter, Event] = Naive(pruned=True)
    wanted: list[Filter] = []
    for one in pool(12, seed) * 3:
        if wanted and dice.random() < 0.4:
            change = source.remove(wanted.pop(dice.randrange(len(wanted))))
        else:
            wanted.append(one)
            change = source.add(one)
        if change is not None:
            for gone in change.removed:
                assert receiver.remove(gone, "i")
            for new in (*change.uncovered, *change.added):
                assert receiver.add(new, "i")
        assert set(receiver) == set(source.told()) == set(minimal_cover(FILTERS, wanted))


def test_a_plain_source_says_everything_once() -> None:
    one, other = pool(2, 1)
    source = Source("i", reduced=False)
    said = [source.add(one), source.add(one), source.add(other), source.remove(one), source.remove(one)]
    assert [change and (change.removed, change.added) for change in said] == [
        ((), (one,)),
        None,
        ((), (other,)),
        None,
        ((one,), ()),
    ]
    assert source.told() == [other]


@pytest.mark.parametrize("reduced", [False, True])
def test_after_the_replacements_sources_want_what_the_script_ends_with(reduced: bool) -> None:
    script = setting("E3", filters=60, interfaces=4).script(events=0)
    for phase, wanted in zip(phases(script, reduced=reduced), wishes(script), strict=True):
        mine = [one.wanted for one in wanted if one.interface == "i2"]
        right = minimal_cover(FILTERS, mine) if reduced else mine
        assert {one.wanted for one in phase.held if one.interface == "i2"} == set(right)


@given(st.integers(0, 10**6), st.booleans())
def test_the_naive_forwards_sets_are_those_of_the_closed_form(seed: int, clients: bool) -> None:
    dice = Random(seed)
    interfaces = ["a", "b", "c"] + ["local"] * clients
    # Filters that differ in form differ in meaning here, so that no tie has to be broken by age.
    table: Naive[Filter, Event] = Naive(neighbors="abc")
    users: dict[Filter, set[str]] = {}
    for one in pool(14, seed):
        interface = dice.choice(interfaces)
        table.add(one, interface)
        users.setdefault(one, set()).add(interface)
    for one in users:
        assert forwards(one, users, users, table.neighbors) == table.forwards(one)


class Broken(Forest[Filter, Event]):
    """A forest that does not do what it should, once."""

    def __init__(self, fault: str) -> None:
        super().__init__(rules=LOCAL)
        self.fault = fault

    def remove(self, wanted: Filter, interface: str, /) -> bool:
        return self.fault != "forgets to forget" and super().remove(wanted, interface)

    def match(self, event: Event, /, expired: object = None) -> set[str]:
        found = super().match(event)
        return found - {"i3"} if self.fault == "misses an interface" else found

    def roots(self) -> list[Filter]:
        return super().roots()[self.fault == "misses a root" :]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("forgets to forget", "entries: 1 too many, 0 missing"),
        ("misses an interface", "interfaces for {'type': 'schema0'"),
        ("misses a root", "root set: 0 too many, 1 missing"),
    ],
)
def test_a_structure_that_is_wrong_ends_the_run_with_experiment_and_seed(fault: str, told: str) -> None:
    one = setting("E1")
    script = one.script(events=40)
    table = Broken(fault)
    for subscription in script.subscriptions:
        table.add(*subscription)
    table.remove(*script.subscriptions[0])
    left = script.subscriptions[1:]
    with pytest.raises(ViolationError) as caught:
        Truth(one, left, script.events).check("PF", table, left)
    assert str(caught.value).startswith("E1 with 30 filters 2D on 30 interfaces, replication 0, seed 1: PF: ")
    assert told in str(caught.value)


def test_wrong_forwards_sets_and_mergers_are_found_too() -> None:
    one = setting("E4", interfaces=3)
    script = one.script(events=20)
    truth = Truth(one, script.subscriptions, script.events)
    table: RoutingPoset[Filter, Event] = RoutingPoset(neighbors=["i0", "i1"])
    for change in phases(script, reduced=True)[0].changes:
        table.add(change.added[0], change.interface)
    with pytest.raises(ViolationError, match="forwards set of"):
        truth.check_forwards("FP", table)
    with pytest.raises(ViolationError, match="nothing that is propagated covers the root"):
        truth.check_propagated("perfect", list(truth.roots)[1:], perfect=True)
    with pytest.raises(ViolationError, match="what is propagated is wrong about"):
        truth.check_propagated("perfect", [Filter()], perfect=True)


STRUCTURES = {
    "E1": ["PF", "BF", "NRF", "FP"],
    "E2": ["PF", "BF", "NRF", "FP", "naive", "counting"],
    "E3": ["NRF", "FP"],
    "E4": ["FP", "NRF exact", "NRF approximate"],
    "E5": ["FP", "NRF exact", "NRF approximate"],
    "E12": ["unmerged", "perfect", "imperfect"],
    "E13": ["unmerged", "perfect", "imperfect"],
}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_every_experiment_has_a_row_for_each_structure_and_the_seed_decides_it(experiment: str) -> None:
    one = planned(SLICE, seed=3, replications=1, only=[experiment])[-1]
    rows = experiments.run(one)
    assert [row.structure for row in rows] == STRUCTURES[experiment]
    assert all(row.setting == one for row in rows)
    assert experiments.run(one) == rows


def test_published_parameters_are_all_there() -> None:
    settings = planned(FULL, seed=1, replications=None, only=())
    replications = {
        name: 1 + max(one.replication for one in settings if one.experiment == name) for name in EXPERIMENTS
    }
    assert replications == {"E1": 10, "E2": 10, "E3": 10, "E4": 10, "E5": 10, "E12": 60, "E13": 20}
    assert {one.filters for one in settings if one.experiment in ("E3", "E4", "E5")} == {1000}
    assert {one.interfaces for one in settings if one.experiment == "E4"} == {3, 6, 9, 12, 15}
    assert len({one.experiment for one in planned(QUICK, seed=1, replications=1, only=())}) == len(EXPERIMENTS)


def test_points_of_a_curve_share_their_filters() -> None:
    few, many = (setting("E2", filters=20, interfaces=count).script(events=5) for count in (2, 9))
    assert [one.wanted for one in few.subscriptions] == [one.wanted for one in many.subscriptions]
    assert (few.replacements, few.events) == (many.replacements, many.events)


@pytest.mark.parametrize(("schema", "roots", "add"), [("2D", 59, 23_600), ("3D", 212, 93_100)])
def test_a_forest_counts_what_the_spec_counted(schema: str, roots: int, add: int) -> None:
    built = [build("PF", Setting(experiment="E1", schema=schema, filters=500, replication=n)) for n in range(5)]
    assert sum(len(one.table.roots()) for one in built) / 5 == pytest.approx(roots, rel=0.2)
    assert sum(one.covers for one in built) / 5 == pytest.approx(add, rel=0.2)


def test_a_poset_counts_what_the_spec_counted() -> None:
    built = [build("FP", Setting(experiment="E1", schema="2D", filters=500, replication=n)) for n in range(2)]
    assert sum(one.covers for one in built) / 2 == pytest.approx(222_000, rel=0.25)


def build(structure: str, one: Setting) -> Subject:
    subject = for_clients()[structure](Counts())
    for wanted, interface in one.script(events=0, steps=0).subscriptions:
        subject.add(wanted, interface)
    return subject


def test_elimination_is_a_part_of_add_in_the_non_redundant_forest() -> None:
    one = setting("E3", filters=60, interfaces=3)
    forest, poset = experiments.run(one)
    assert 0 < (forest.measures.eliminate_covers or 0) < (forest.measures.add_covers or 0)
    assert poset.measures.eliminate_covers is None
    assert isinstance(routing.makers(one)["NRF"](Counts()), HierarchicalForest)


def test_tests_for_events_count_filters_and_the_constraints_looked_at() -> None:
    counts = Counts()
    both = setting("E1", filters=1).script(events=0).subscriptions[0].wanted
    assert not counts.matches(both, {"type": "schema0", "a0": -1, "a1": -1})
    assert counts.count["matches"] == 1
    assert counts.count["predicates"] == 1


def local_rows(costs: dict[str, tuple[int, int]], replication: int = 0, filters: int = 500) -> list[Row]:
    """E1 at one point, each structure with the costs given for add and for add/remove."""
    one = Setting(experiment="E1", schema="2D", filters=filters, replication=replication)
    return [
        Row(one, name, Measures(size=100, roots=10, add_covers=add, remove_covers=1, insert_covers=replace - 1))
        for name, (add, replace) in costs.items()
    ]


def again(rows: list[Row]) -> list[Row]:
    """The same in a second replication: one alone decides nothing."""
    second = [msgspec.structs.replace(row.setting, replication=1) for row in rows]
    return rows + [msgspec.structs.replace(row, setting=one) for row, one in zip(rows, second, strict=True)]


def verdicts(judgements: list[Judged]) -> dict[str, Verdict]:
    """The first statement of each claim."""
    return {one.check.claim.name: one.finding.verdict for one in reversed(judgements)}


FOREST = {"PF": (10, 20), "BF": (10, 20), "NRF": (10, 21)}


def test_a_claim_is_reproduced_when_its_order_holds_in_every_phase() -> None:
    found = verdicts(judge(again(local_rows(FOREST | {"FP": (90, 200)}))))
    assert found == {
        "C1": Verdict.REPRODUCED,
        "C2": Verdict.REPRODUCED,
        "C3": Verdict.NOT_DECIDABLE,
        "C4": Verdict.REPRODUCED,
    }


@pytest.mark.parametrize("poset", [(9, 200), (90, 19)])
def test_a_claim_is_not_reproduced_when_one_phase_contradicts(poset: tuple[int, int]) -> None:
    assert verdicts(judge(again(local_rows(FOREST | {"FP": poset}))))["C1"] is Verdict.NOT_REPRODUCED


def test_fewer_filters_than_the_text_has_decide_nothing_about_the_poset() -> None:
    found = verdicts(judge(local_rows(FOREST | {"FP": (90, 200)}, filters=100)))
    assert found["C1"] is Verdict.NOT_DECIDABLE


def shared_rows(costs: dict[int, dict[str, int]], counting: int, predicates: dict[str, int]) -> list[Row]:
    """E2: by the number of interfaces what each structure costs, and at last what matching looks at."""
    found = []
    for interfaces, own in costs.items():
        one = Setting(experiment="E2", schema="2D", filters=500, interfaces=interfaces)
        for name, cost in own.items():
            measures = Measures(
                size=500, roots=10, add_covers=cost, remove_covers=1, insert_covers=cost, events=10,
                match_tests=interfaces * 10, match_predicates=10 * predicates.get(name, 0),
            )  # fmt: skip
            found.append(Row(one, name, measures))
        measures = Measures(events=10, match_tests=10, match_predicates=10 * counting)
        found += [Row(one, name, measures) for name in ("counting", "naive")]
    return found


def test_a_claim_that_holds_from_some_number_on_depends_on_it() -> None:
    flat = {1: 10, 5: 100, 50: 110, 500: 120}
    costs = {n: {"PF": 100, "BF": 100, "NRF": cost, "FP": 10 * n} for n, cost in flat.items()}
    rows = shared_rows(costs, 344, {"PF": 320, "BF": 320, "NRF": 320, "FP": 520})
    found = [one.finding for one in judge(again(rows)) if one.check.experiment == "E2"]
    assert "depends on where the curve begins: holds from 5 interfaces on" in {finding.told for finding in found}
    assert "depends on the structure: holds with FP" in {finding.told for finding in found}


def test_replications_that_disagree_decide_nothing() -> None:
    rows = local_rows(FOREST | {"FP": (90, 200)}) + local_rows(FOREST | {"FP": (9, 200)}, replication=1)
    assert verdicts(judge(rows))["C1"] is Verdict.NOT_DECIDABLE


def test_overhead_beyond_the_tolerance_is_seen() -> None:
    rows = local_rows(FOREST | {"FP": (90, 200), "NRF": (12, 21)})
    (finding,) = [one.finding for one in judge(again(rows)) if one.check.claim.name == "C4"]
    assert finding.verdict is Verdict.NOT_REPRODUCED
    assert "NRF 1.05 to 1.20 x PF" in finding.numbers


def test_only_claims_on_experiments_that_were_run_are_judged() -> None:
    assert {one.check.experiment for one in judge(local_rows(FOREST | {"FP": (90, 200)}))} == {"E1"}
    assert judge([]) == []


def test_nothing_is_decided_before_every_point_was_run() -> None:
    rows = local_rows(FOREST | {"FP": (90, 200)})
    meant = [row.setting for row in rows] + [setting("E1", "3D", 100)]
    assert {one.finding.numbers for one in judge(rows, meant)} == {"1 of 2 points were not run"}
    assert {one.finding.verdict for one in judge(rows, meant)} == {Verdict.NOT_DECIDABLE}


def test_clear_claims_come_out_of_a_small_run() -> None:
    settings = planned(QUICK, seed=2, replications=3, only=["E1", "E13"])
    small = [one for one in settings if one.filters <= 200 and one.schema in ("2D", "1-3D", "3 mixed")]
    found = verdicts(judge(row for one in small for row in experiments.run(one)))
    clear = ("C2", "C29")
    assert {name: found[name] for name in clear} == dict.fromkeys(clear, Verdict.REPRODUCED)


@pytest.mark.parametrize(
    ("value", "told"), [(9, "9"), (15.5, "15.5"), (1234, "1.23k"), (222_000, "222k"), (2_710_000, "2.71M")]
)
def test_counts_are_told_with_three_digits(value: float, told: str) -> None:
    assert short(value) == told


def test_every_claim_of_the_checklist_has_a_check() -> None:
    assert {check.claim.name for check in CHECKS} == {f"C{n}" for n in (*range(1, 12), *range(24, 30))}


def test_rows_survive_the_file_whole(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "structures.parquet")
    first, second = setting("E1", filters=20), setting("E13", "2 mixed", filters=20)
    for one in (first, second):
        store.add(one, experiments.run(one))
    again = Store(store.path)
    assert again.missing([first, setting("E1", filters=21), second]) == [setting("E1", filters=21)]
    assert again.of([first, second]) == store.of([first, second])
    assert [row.measures for row in again.of([second])] == [row.measures for row in experiments.run(second)]
    assert [path.name for path in store.path.parent.iterdir()] == ["structures.parquet"]


def test_a_file_that_cannot_be_continued_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "structures.parquet"
    path.write_text("nothing of the kind")
    with pytest.raises(StoreError, match="not a Parquet file"):
        Store(path)
    one = setting("E1", filters=10)
    path.unlink()
    Store(path).add(one, experiments.run(one))
    pq.write_table(pq.read_table(path).drop_columns(["size"]), path)
    with pytest.raises(StoreError, match="another version"):
        Store(path)


@pytest.fixture
def slice_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structures, "QUICK", SLICE)


def called(out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["lab", "structures", "--quick", "--no-spark", "--out", str(out), *arguments])


@pytest.mark.usefixtures("slice_only")
def test_the_command_shows_a_verdict_on_every_claim_and_writes_page_rows_and_figures(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    shown = called(tmp_path, "--seed", "7")
    assert shown.exit_code == 0
    page = (tmp_path / "structures.md").read_text()
    assert "`godwit lab structures --quick --seed 7`" in page
    for check in CHECKS:
        assert f"| {check.claim.name} {check.claim.text} | {check.expected} | " in page
        assert f"{check.claim.name} " in shown.stdout
    assert f"{len(CHECKS)} statements: " in shown.stdout
    assert "two uniform whole numbers in 0..100" in page
    rows = pq.read_table(tmp_path / "structures.parquet")
    assert rows.num_rows == sum(len(STRUCTURES[one.experiment]) for one in planned(SLICE, 7, None, ()))
    figures = {"E1", "E2", "E3", "E4-costs", "E4-forwarded", "E5", "E12", "E13"}
    assert {path.stem for path in tmp_path.glob("*.png")} == figures
    assert all(f"![{name}]({name}.png)" in page for name in figures)


@pytest.mark.usefixtures("slice_only")
def test_called_again_it_runs_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(tmp_path, "--only", "E13").exit_code == 0
    ran: list[Setting] = []
    monkeypatch.setattr(experiments, "run", noting(ran, experiments.run))
    assert called(tmp_path, "--only", "E13", "--only", "E5").exit_code == 0
    assert {one.experiment for one in ran} == {"E5"}
    assert "C10" in (tmp_path / "structures.md").read_text()
    assert "C27" in (tmp_path / "structures.md").read_text()


def noting(ran: list[Setting], run: Callable[[Setting], list[Row]]) -> Callable[[Setting], list[Row]]:
    def noted(one: Setting) -> list[Row]:
        ran.append(one)
        return run(one)

    return noted


@pytest.mark.usefixtures("slice_only")
@pytest.mark.parametrize(
    ("end", "status", "told"),
    [(KeyboardInterrupt, 130, "interrupted"), (MemoryError, 1, "runs failed for good")],
)
def test_what_had_finished_before_an_early_end_is_kept_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: type[BaseException], status: int, told: str
) -> None:
    run = experiments.run

    def ended(one: Setting) -> list[Row]:
        if one.experiment != "E1":
            raise end
        return run(one)

    monkeypatch.setattr(experiments, "run", ended)
    shown = called(tmp_path)
    assert shown.exit_code == status
    assert told in shown.stderr
    assert "C1 " in shown.stdout
    assert set(pq.read_table(tmp_path / "structures.parquet")["experiment"].to_pylist()) == {"E1"}


@pytest.mark.usefixtures("slice_only")
def test_a_wrong_structure_is_told_with_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Truth, "check", lambda self, name, table, held: self.fail(name, "wrong"))
    shown = called(tmp_path, "--only", "E3", "--seed", "9")
    assert shown.exit_code == 1
    assert "ViolationError: E3 with 40 filters 2D on 3 interfaces, replication 0, seed 9: NRF: wrong" in shown.stderr


@pytest.mark.usefixtures("slice_only")
def test_without_matplotlib_there_are_no_figures_and_the_user_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = called(tmp_path, "--only", "E13")
    assert shown.exit_code == 0
    assert "no figures: they need matplotlib, which comes with godwit[lab]" in shown.stderr
    assert not list(tmp_path.glob("*.png"))
    assert "![" not in (tmp_path / "structures.md").read_text()


def test_a_directory_that_cannot_be_used_is_told_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "structures.parquet").write_text("")
    shown = called(tmp_path)
    assert shown.exit_code == 2
    assert "not a Parquet file" in shown.stderr


def test_two_runs_do_not_share_a_directory(tmp_path: Path) -> None:
    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        shown = called(tmp_path)
    assert shown.exit_code == 2
    assert "another run is at work there" in shown.stderr


def test_an_unknown_experiment_is_refused_with_those_there_are() -> None:
    result = CliRunner().invoke(app, ["lab", "structures", "--only", "E6"])
    assert result.exit_code == 2
    assert "there is no E6; there are E1, E2, E3, E4, E5, E12, E13" in " ".join(result.stderr.split())


def test_help_says_what_can_be_asked_for() -> None:
    result = CliRunner().invoke(app, ["lab", "structures", "--help"])
    assert result.exit_code == 0
    assert "lab structures [OPTIONS]" in result.stdout
    assert "godwit lab structures --quick" in result.stdout


def test_the_spec_s_own_numbers_are_compared_where_there_are_500_filters() -> None:
    assert sanity.compare(local_rows(FOREST | {"FP": (90, 200)}, filters=100)) == []
    one = Setting(experiment="E1", schema="3D", filters=500)
    rows = [Row(one, name, Measures(roots=106, add_covers=93_100, remove_covers=1, insert_covers=1)) for name in FOREST]
    rows.append(Row(one, "FP", Measures(add_covers=1, remove_covers=1, insert_covers=1)))
    found = {compared.column: compared.ratio for compared in sanity.compare(rows)}
    assert (found["roots"], found["PF add"]) == (0.5, 1.0)


def test_local_interfaces_come_after_the_neighbors() -> None:
    one = setting("E4", filters=8, interfaces=3, clients=1)
    assert one.neighbors == {"i0", "i1", "i2"}
    assert {sent.interface for sent in one.script(events=0).subscriptions} == {*one.neighbors, "i3"}


def test_what_leaves_a_claim_open_has_further_replications_and_comes_first() -> None:
    planned_runs = study.runs("published")
    assert len(set(planned_runs)) == len(planned_runs)
    first = planned_runs[:400]
    assert {(one.experiment, one.schema) for one in first} == {("E13", "2 mixed")}
    assert {one.replication for one in first} == set(range(80))
    assert {one.replication for one in planned_runs if one.schema == "3 mixed" and one.experiment == "E13"} == set(
        range(20)
    )
