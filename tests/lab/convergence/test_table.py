"""The convergence table: what is counted, beside what was published."""

from __future__ import annotations

import pytest

from godwit.lab import pages
from godwit.lab.convergence import table
from godwit.lab.convergence.table import SEEDS_AT_ONCE, Batch, Counted, batches, page
from godwit.lab.convergence.trials import MIXES, PROTOCOLS


@pytest.mark.feature("mft-pubsub F24")
def test_every_seed_of_every_row_and_column_is_tried_once() -> None:
    seeds = SEEDS_AT_ONCE + 7
    counted: dict[tuple[str, str, bool, bool], list[int]] = {}
    for b in batches(seeds):
        counted.setdefault((b.protocol, b.mix, b.settled, b.refresh), []).extend(range(b.first, b.last))
    assert all(tried == list(range(seeds)) for tried in counted.values())
    assert len(counted) == 10 * len(PROTOCOLS) + 10 * sum(protocol.numbered for protocol in PROTOCOLS)


@pytest.mark.feature("mft-pubsub F24")
def test_published_figures_stand_beside_the_counted_ones() -> None:
    text = pages.markdown(page(400, dict.fromkeys(batches(400), Counted(1))))
    rows = [line for line in text.splitlines() if line.startswith(("| settled", "| concurrent"))]
    assert len(rows) == 10
    assert rows[0] == "| settled, broker moves | 8 (0) | 8 (45) | 8 | 8 (0) | 8 |"
    assert rows[9] == "| concurrent, everything | 8 (232) | 8 (89) | 8 | 8 (18) | 8 |"
    assert "| the worst row after one H6 refresh per subscriber | - | 8 | 8 | 8 | 8 |" in text


@pytest.mark.feature("mft-pubsub F24")
def test_a_batch_counts_the_trials_that_fail() -> None:
    published, mix = PROTOCOLS[1].name, MIXES[1].name
    assert 0 < table.count(Batch(published, mix, True, False, 0, 10)).failures <= 10
    assert table.count(Batch(PROTOCOLS[-1].name, mix, True, False, 0, 10)).failures == 0
