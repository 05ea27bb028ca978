"""The convergence table: what is counted, beside what was published, and resumed after an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.lab import convergencetable, pages
from godwit.lab.convergence import MIXES, PROTOCOLS
from godwit.lab.convergencetable import SEEDS_AT_ONCE, Batch, batches, page


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
    text = pages.markdown(page(400, dict.fromkeys(batches(400), 1)))
    rows = [line for line in text.splitlines() if line.startswith(("| settled", "| concurrent"))]
    assert len(rows) == 10
    assert rows[0] == "| settled, broker moves | 8 (0) | 8 (45) | 8 | 8 (0) | 8 |"
    assert rows[9] == "| concurrent, everything | 8 (232) | 8 (89) | 8 | 8 (18) | 8 |"
    assert "| the worst row after one H6 refresh per subscriber | - | 8 | 8 | 8 | 8 |" in text


def test_an_interrupted_table_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Batch] = []
    interruptions = [3, 5]

    def count(batch: Batch) -> int:
        if interruptions and len(tried) == interruptions[0]:
            raise KeyboardInterrupt
        tried.append(batch)
        return 0

    monkeypatch.setattr(convergencetable, "count", count)
    path = tmp_path / "trials.jsonl"
    while interruptions:
        with pytest.raises(KeyboardInterrupt):
            convergencetable.run(1, path, lambda done, total: None, processes=1)
        path.write_bytes(path.read_bytes() + b'{"batch": {"proto')
        interruptions.pop(0)
    told: list[tuple[int, int]] = []
    convergencetable.run(1, path, lambda done, total: told.append((done, total)), processes=1)
    assert sorted(tried, key=repr) == sorted(batches(1), key=repr)
    assert told[-1] == (len(batches(1)), len(batches(1)))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_text("time,place\n")
    with pytest.raises(ValueError, match="not a file of counted trials"):
        convergencetable.run(1, path, lambda done, total: None, processes=1)


@pytest.mark.feature("mft-pubsub F24")
def test_a_batch_counts_the_trials_that_fail() -> None:
    published, mix = PROTOCOLS[1].name, MIXES[1].name
    assert 0 < convergencetable.count(Batch(published, mix, True, False, 0, 10)) <= 10
    assert convergencetable.count(Batch(PROTOCOLS[-1].name, mix, True, False, 0, 10)) == 0
