"""What a front counts, and what of it is told."""

from __future__ import annotations

import logging

import pytest

from godwit.net.mqtt.options import Counts


def test_drops_are_all_counted_and_told_each_time_there_are_ten_times_as_many(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    with caplog.at_level(logging.WARNING, "godwit.mqtt"):
        for _ in range(120):
            counts.drop("client does not read")
    assert counts.dropped == {"client does not read": 120}
    assert [record.getMessage() for record in caplog.records] == [
        f"dropped {number} so far: client does not read" for number in (1, 10, 100)
    ]
