"""Tables keep their names: the page of all schemas is as the code has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.pipeline_schemas import FORBIDDEN, INPUTS, OUTPUTS, Table, page

from godwit.pipeline import schemas

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pipeline" / "schemas.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "renew it: python -m tools.pipeline_schemas > docs/pipeline/schemas.md"


@pytest.mark.parametrize("table", [*INPUTS, *OUTPUTS], ids=lambda table: f"{table.job}/{table.name}")
def test_no_column_has_a_word_of_sql_or_a_second_name_for_a_time(table: Table) -> None:
    assert FORBIDDEN & set(table.schema.names) == set()


def test_only_files_of_brokers_call_a_time_otherwise() -> None:
    """Their column `time` is a timestamp, and is `time_s` wherever the pipeline has read it."""
    assert [name for name, one in vars(schemas).items() if "time" in getattr(one, "names", ())] == ["ARCHIVE_FILES"]
