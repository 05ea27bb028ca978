"""What came from the air is remembered over a restart, for as long as somebody may carry it."""

from __future__ import annotations

from godwit.protocols.broker.fabric.adhoc import TABLE, AirMemory
from godwit.protocols.broker.store import Disk, MemoryStore


def remembered(disk: Disk, now: float) -> tuple[AirMemory, MemoryStore]:
    store = MemoryStore(disk, lambda call: call())
    return AirMemory(store, 60.0, lambda: now), store


def test_it_outlives_a_restart_in_its_order_and_goes_with_its_time() -> None:
    disk: Disk = {}
    for now, passage in ((100.0, ("b/1", 9)), (110.0, ("a/1", 5)), (120.0, ("a/1", 6))):
        remembered(disk, now)[0].add(passage)
    assert list(remembered(disk, 130.0)[0]) == [("b/1", 9), ("a/1", 5), ("a/1", 6)]
    assert list(remembered(disk, 165.0)[0]) == [("a/1", 5), ("a/1", 6)]
    assert len(disk[TABLE]) == 2


def test_a_clock_that_was_far_ahead_does_not_keep_it_for_ever() -> None:
    disk: Disk = {}
    remembered(disk, 1e9)[0].add(("a/1", 1))
    assert list(remembered(disk, 100.0)[0]) == []
