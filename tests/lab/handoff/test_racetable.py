from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from godwit.cli import app
from godwit.lab.handoff import racetable
from godwit.lab.handoff.races import Outcome


def test_the_table_is_written_and_what_was_counted_is_not_counted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[racetable.Batch] = []

    def count(batch: racetable.Batch) -> Outcome:
        ran.append(batch)
        return Outcome(due=100, lost=7, handoffs=10, hits=4)

    monkeypatch.setattr(racetable, "count", count)
    command = ["lab", "races", "--seeds", "6", "--no-spark", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "14/0/0/0 [767/185/1/0]" in (tmp_path / "races.md").read_text()
    assert len(ran) == 2 * 8 * 4
    assert len(pq.read_table(tmp_path / "results.parquet")) == len(ran)
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 0, again.output
    assert len(ran) == 2 * 8 * 4


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.parquet").write_text("{}\n")
    result = CliRunner().invoke(app, ["lab", "races", "--seeds", "1", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "not a Parquet file" in result.output
