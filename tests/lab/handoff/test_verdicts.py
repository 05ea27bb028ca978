from __future__ import annotations

import msgspec
import pytest

from godwit.lab.claims import Verdict
from godwit.lab.handoff.evidence import Evidence
from godwit.lab.handoff.grid import Grid
from godwit.lab.handoff.results import Row
from godwit.lab.handoff.runs import Configuration, Result
from godwit.lab.handoff.verdicts import CLAIMS, findings
from godwit.lab.models import published

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
SCHEMES = ("durable", "reactive", "proactive")


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
        population=dict.fromkeys(BROKERS, 29.5)
        if configuration.pattern == "RND"
        else dict(zip(BROKERS, (22.0, 33.0, 44.0, 22.0, 11.0, 44.0), strict=True)),
    )


def evidence_of(cells: list[Configuration]) -> Evidence:
    return Evidence([Row(cell, as_published(cell)) for cell in cells], base=200)


@pytest.mark.feature("proactive-handoff F36")
def test_the_published_numbers_reproduce_every_claim_but_the_one_that_contradicts_its_own_table() -> None:
    grid = Grid(schemes=SCHEMES, subscribers=(10, 100, 200), seeds=2)
    found = {finding.claim.name: finding for finding in findings(evidence_of(grid.cells()))}
    assert list(found) == list(CLAIMS) == [f"Q{i}" for i in range(1, 23)]
    assert [name for name, finding in found.items() if finding.verdict is not Verdict.REPRODUCED] == ["Q20"]


@pytest.mark.feature("proactive-handoff F36")
def test_without_runs_only_the_models_are_judged() -> None:
    found = {finding.claim.name: finding.verdict for finding in findings(Evidence([], base=200))}
    decided = {name for name, verdict in found.items() if verdict is not Verdict.NOT_DECIDABLE}
    assert decided == {"Q17", "Q18", "Q19", "Q20", "Q21"}


def test_a_claim_that_the_runs_contradict_is_not_reproduced() -> None:
    grid = Grid(schemes=SCHEMES, subscribers=(200,), seeds=1, experiments=("X10",))
    rows = []
    for cell in grid.cells():
        other = {"durable": "proactive", "proactive": "durable"}.get(cell.scheme, cell.scheme)
        rows.append(Row(cell, as_published(msgspec.structs.replace(cell, scheme=other))))
    found = {finding.claim.name: finding.verdict for finding in findings(Evidence(rows, base=200))}
    for name in ("Q1", "Q2", "Q4", "Q7"):
        assert found[name] is Verdict.NOT_REPRODUCED
