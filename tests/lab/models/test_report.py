from __future__ import annotations

import pytest
from typer.testing import CliRunner

from godwit.cli import app
from godwit.lab.models import report


@pytest.mark.feature("proactive-handoff F45")
def test_no_printed_number_differs_from_the_computed_one() -> None:
    assert not [cell for table in report.page().tables for row in table.rows for cell in row if "[" in cell]


def test_the_command_prints_the_page() -> None:
    result = CliRunner().invoke(app, ["lab", "models"])
    assert result.exit_code == 0
    assert "## R1" in result.stdout
    assert "218.983" in result.stdout
