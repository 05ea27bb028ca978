"""Verdicts on handoff: every judge says reproduced, not reproduced and not decidable, each where it should."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from godwit.lab.claims import Verdict
from godwit.lab.handoff.claims import CLAIMS
from godwit.lab.handoff.evidence import Evidence
from godwit.lab.handoff.grid import OURS_READING, STORED, TEXT_READING, Grid
from godwit.lab.handoff.grid import PUBLISHED_SCHEMES as SCHEMES
from godwit.lab.handoff.report import published_tables
from godwit.lab.handoff.results import Row
from godwit.lab.handoff.runs import Configuration, Result
from godwit.lab.handoff.verdicts import DIGITS, JUDGES, findings, hotelling_room, judge, over_readings
from godwit.lab.models import published

pytestmark = pytest.mark.feature("proactive-handoff F36")

BROKERS = [f"B{i}" for i in range(1, 7)]
COUNTS = (
    *("published", "due", "lost", "received", "unique", "redelivered", "disordered"),
    *("handoffs", "hits", "misses", "evicted"),
)
RATES = (
    *("throughput_per_s", "loss", "duplication", "delay_s", "latency_s", "latency_q60_s"),
    *("transfer_share", "copies_per_handoff", "peer_mb"),
)
BLANK = Result(
    **dict.fromkeys(COUNTS, 1),
    **dict.fromkeys(RATES, 0),
    false_negatives_first=1.0,
    false_negatives_last=0.0,
    broker_throughput_per_s=dict.fromkeys(BROKERS, 100.0),
    broker_processing_s=dict.fromkeys(BROKERS, 0.02),
    population=dict.fromkeys(BROKERS, 10.0),
    dummies=dict.fromkeys(BROKERS, 1.0),
    control={},
    latency_deciles_s={str(q): 0.1 for q in range(1, 10)},
)
GRID = Grid(schemes=SCHEMES, subscribers=(10, 100, 200), seeds=3, walks=12)
RND = dict.fromkeys(BROKERS, 29.54)
NBR = dict(zip(BROKERS, (21.98, 32.97, 43.96, 21.98, 10.99, 43.96), strict=True))


def scattered(places: dict[str, float], seed: int) -> dict[str, float]:
    dice = Random(seed)
    return {name: count + dice.gauss(0.0, 1.0) for name, count in places.items()}


def as_published(configuration: Configuration) -> Result:
    """What the testbed is said to have measured in this cell."""
    size, column = configuration.subscribers, SCHEMES.index(configuration.scheme)
    six = 2 * column + (configuration.pattern == "NBR")
    loss = published.LOSS[size][six] / 100 * (3 if configuration.disconnect_s > 12 else 1)
    loss *= 0.5 if configuration.bandwidth_mbps == 1 else 1.2 if configuration.connect_s > 60 else 1
    return msgspec.structs.replace(
        BLANK,
        throughput_per_s=published.THROUGHPUT[size][six],
        loss=loss,
        duplication=published.DUPLICATES[size][six] / 100 * configuration.queue_mb,
        latency_s=published.HANDOFF_S[size][column],
        latency_q60_s=(0.05, 1.2, 0.35)[column],
        transfer_share=(0.0, 0.4, 0.02)[column],
        broker_processing_s={n: 0.03 - 0.01 * (configuration.pattern == "NBR") - 0.001 * (n == "B5") for n in BROKERS},
        broker_throughput_per_s={n: 200.0 + 50 * (n in ("B3", "B6")) for n in BROKERS},
        population=scattered(RND if configuration.pattern == "RND" else NBR, configuration.seed),
    )


Change = Callable[[Configuration], dict[str, Any]]


def evidence_of(change: Change = lambda cell: {}, grid: Grid = GRID, *, quick: bool = False) -> Evidence:
    rows = [
        Row(cell, msgspec.structs.replace(as_published(cell), **change(cell)))
        for cell in grid.cells()
        if cell.scheme in SCHEMES
    ]
    return Evidence(rows, base=200, quick=quick)


def of(scheme: str, **figures: Any) -> Change:
    return lambda cell: figures if cell.scheme == scheme else {}


def at(condition: Callable[[Configuration], bool], **figures: Any) -> Change:
    return lambda cell: figures if condition(cell) else {}


SLOW = dict.fromkeys(BROKERS, 0.05)
FALSE: dict[str, Change] = {
    "Q1": of("proactive", loss=0.2),
    "Q2": of("proactive", duplication=0.01),
    "Q3": of("proactive", latency_s=9.0),
    "Q4": of("durable", latency_s=9.0),
    "Q5": of("reactive", latency_q60_s=0.01),
    "Q6": of("reactive", transfer_share=0.08),
    "Q7": of("reactive", throughput_per_s=100.0),
    "Q8": of("proactive", throughput_per_s=1000.0),
    "Q9": of("reactive", loss=0.05),
    "Q10": at(lambda cell: cell.disconnect_s > 12, loss=0.9),
    "Q11": at(lambda cell: cell.connect_s > 60, throughput_per_s=3000.0),
    "Q12": of("durable", duplication=0.1),
    "Q13": at(lambda cell: cell.bandwidth_mbps == 1, loss=0.5),
    "Q14": at(lambda cell: cell.pattern == "NBR", broker_processing_s=SLOW),
    "Q15": of("proactive", broker_throughput_per_s={n: 100.0 + 9 * (n == "B1") for n in BROKERS}),
    "Q16": lambda cell: {"population": scattered(dict.fromkeys(BROKERS, 20.0), cell.seed)},
    "Q22": of("proactive", false_negatives_last=0.3),
}


def test_the_published_numbers_reproduce_every_claim_but_the_one_that_contradicts_its_own_table() -> None:
    found = {finding.claim.name: finding for finding in findings(evidence_of())}
    assert list(found) == list(CLAIMS)
    otherwise = {name: one.verdict for name, one in found.items() if one.verdict is not Verdict.REPRODUCED}
    arithmetic = dict.fromkeys(("Q17", "Q18", "Q19", "Q20a", "Q21"), Verdict.ARITHMETIC)
    assert otherwise == {**arithmetic, "Q20b": Verdict.NOT_REPRODUCED}


def test_every_judge_is_tried_in_a_world_that_contradicts_it() -> None:
    assert list(FALSE) == list(JUDGES)


@pytest.mark.parametrize("name", FALSE)
def test_a_claim_falls_where_the_world_is_otherwise_and_a_quick_grid_does_not_say_so(name: str) -> None:
    fallen = judge(name, evidence_of(FALSE[name]))
    assert fallen.verdict is Verdict.NOT_REPRODUCED, fallen.numbers
    assert judge(name, evidence_of(FALSE[name], quick=True)).verdict is Verdict.NOT_DECIDABLE


@pytest.mark.parametrize("name", FALSE)
def test_one_seed_decides_nothing(name: str) -> None:
    alone = judge(name, evidence_of(grid=msgspec.structs.replace(GRID, seeds=1, walks=1)))
    assert alone.verdict is Verdict.NOT_DECIDABLE
    assert alone.missing is not None
    assert "min of a core" in alone.missing.cost


OTHER_DIGITS: dict[str, tuple[str, Any]] = {
    "Q17": ("curve.PUBLISHED", lambda population: 219.0),
    "Q18": ("published.MEASURED_RND", {200: 1000.0}),
    "Q19": ("costs.r1", lambda *given: 0.8),
    "Q20a": ("costs.MATCHING_BEST_S", 3.29),
    "Q20b": ("costs.REACTIVE_S", 7.5),
    "Q21": ("published.AWAY_S", (1.0, 2.0, 3.0, 4.0, 5.0)),
}


@pytest.mark.parametrize("name", OTHER_DIGITS)
def test_other_constants_turn_the_verdict_on_digits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = judge(name, Evidence([], base=200)).verdict
    where, value = OTHER_DIGITS[name]
    monkeypatch.setattr(f"godwit.lab.models.{where}", value)
    turned = {Verdict.ARITHMETIC: Verdict.NOT_REPRODUCED, Verdict.NOT_REPRODUCED: Verdict.ARITHMETIC}
    assert judge(name, Evidence([], base=200)).verdict is turned[usual]


def test_every_judge_of_digits_is_tried_with_other_constants() -> None:
    assert list(OTHER_DIGITS) == list(DIGITS)


def test_without_runs_only_digits_are_judged() -> None:
    found = {finding.claim.name: finding.verdict for finding in findings(Evidence([], base=200))}
    assert {name for name, verdict in found.items() if verdict is not Verdict.NOT_DECIDABLE} == set(DIGITS)


def test_a_single_run_with_a_duplicate_does_not_refute_a_mean_that_is_printed_as_nothing() -> None:
    once = at(lambda cell: cell.scheme == "proactive" and cell.seed == 1 and cell.subscribers == 10, duplication=0.0004)
    assert judge("Q2", evidence_of(once)).verdict is Verdict.REPRODUCED


def test_where_everybody_is_is_held_against_the_scatter_of_walks_and_not_of_an_instant() -> None:
    near = [scattered(dict.fromkeys(BROKERS, 29.6), seed) for seed in range(20)]
    far = [scattered(dict.fromkeys(BROKERS, 32.0), seed) for seed in range(20)]
    for found, holds in ((near, True), (far, False)):
        room = hotelling_room(RND, found)
        assert room is not None
        assert (room.mean > 0) is holds
    assert 29.54 - 9 < 32.0 < 29.54 + 9.9, "within the band of an instant, which would have let it pass"
    assert hotelling_room(RND, near[:6]) is None, "six runs say nothing of how six brokers vary together"


def test_walks_with_hardly_an_event_are_no_row_of_what_a_pause_of_the_publisher_does() -> None:
    table = next(one for one in published_tables(evidence_of()) if one.title.startswith("X4"))
    assert {row[0] for row in table.rows} == {"0", "0.5", "1", "1.5", "2"}


@pytest.mark.parametrize("name", JUDGES)
def test_a_claim_that_holds_in_one_reading_and_fails_in_another_depends_on_it(name: str) -> None:
    known = {TEXT_READING: evidence_of(), OURS_READING: evidence_of(FALSE[name])}
    found = {finding.claim.name: finding for finding in over_readings(known)}
    assert found[name].told == f"depends on the channel and the size of a message: holds with {TEXT_READING}"
    assert found["Q21"].verdict is Verdict.ARITHMETIC


@pytest.mark.parametrize("name", JUDGES)
def test_a_claim_that_turns_with_what_is_stored_has_its_threshold_told(name: str) -> None:
    at_1, at_4 = STORED
    known = {TEXT_READING: evidence_of(FALSE[name]), at_1: evidence_of(FALSE[name]), at_4: evidence_of()}
    found = next(one for one in over_readings(known) if one.claim.name == name)
    assert found.told == "depends on what a stored event occupies in durable's queue: holds from 4 times its size on"
    assert found.depends is not None
    assert [point.at for point in found.depends.curve] == [f"{n} times its size" for n in ("1", "2.5", "4")]


@pytest.mark.parametrize("name", JUDGES)
def test_a_claim_that_only_a_reading_against_the_text_decides_stays_open(name: str) -> None:
    known = {TEXT_READING: Evidence([], base=200), OURS_READING: evidence_of()}
    found = next(one for one in over_readings(known) if one.claim.name == name)
    assert found.verdict is Verdict.NOT_DECIDABLE


def test_sizes_between_the_published_ones_do_not_refute_the_first_claim() -> None:
    lossy = evidence_of(of("proactive", loss=0.9)).rows
    between = [
        msgspec.structs.replace(row, configuration=msgspec.structs.replace(row.configuration, subscribers=50))
        for row in lossy
        if row.configuration.subscribers == 100
    ]
    assert judge("Q1", Evidence([*evidence_of().rows, *between], base=200)).verdict is Verdict.REPRODUCED


def hardly(scheme: str, figure: str, middle: float, by: float) -> Change:
    """A figure that differs from seed to seed, and from that of another scheme by nothing."""
    return lambda cell: {figure: middle + by * (cell.seed - 2)} if cell.scheme == scheme else {}


NIL: dict[str, Change] = {
    "Q5": hardly("reactive", "latency_q60_s", 0.35, 0.001),
    "Q7": hardly("reactive", "throughput_per_s", 1172.77, 1.0),
    "Q15": of("proactive", broker_throughput_per_s=dict.fromkeys(BROKERS, 200.0)),
}


@pytest.mark.parametrize("name", NIL)
def test_an_effect_that_nobody_would_have_written_about_refutes(name: str) -> None:
    assert judge(name, evidence_of(NIL[name])).verdict is Verdict.NOT_REPRODUCED
