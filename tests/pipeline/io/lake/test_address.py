"""Addresses of tables as people type them."""

from __future__ import annotations

import pytest

from godwit.pipeline.errors import PipelineError
from godwit.pipeline.io.lake.address import TableAddress, parsed


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("table:fleet.events", TableAddress("table", "fleet.events")),
        ("iceberg:lake.fleet.events", TableAddress("iceberg", "lake.fleet.events")),
        ("iceberg:lake.fleet.events@4711", TableAddress("iceberg", "lake.fleet.events", version=4711)),
        ("delta:/data/events", TableAddress("delta", "/data/events")),
        ("delta:s3://bucket/events@7", TableAddress("delta", "s3://bucket/events", version=7)),
        ("delta:/d@1970-01-01T00:00:01Z", TableAddress("delta", "/d", time_ms=1000)),
        ("delta:/d@1970-01-01T00:00:01", TableAddress("delta", "/d", time_ms=1000)),
        ("events.parquet", None),
        ("s3a://bucket/events", None),
        ("godwit://north:9884", None),
    ],
)
def test_an_address_says_format_place_and_perhaps_when(text: str, address: TableAddress | None) -> None:
    assert parsed(text) == address


def test_what_is_neither_a_version_nor_a_time_is_refused() -> None:
    with pytest.raises(PipelineError, match="'yesterday'; right would be a version"):
        parsed("delta:/d@yesterday")
