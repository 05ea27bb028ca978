"""Visits in one pass, beside a loop that looks at one fix after another and remembers all."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from hypothesis import given
from hypothesis import strategies as st

from godwit.pipeline.mobility.visits import COLUMNS, Visiting
from godwit.pipeline.schemas import VISITS

GAP_S, PING_PONG_S = 30.0, 12.0

Fix = tuple[str, float, str]


@dataclass
class Stay:
    subscriber: str
    site: str
    times: list[float] = field(default_factory=list)

    @property
    def entered_s(self) -> float:
        return self.times[0]

    @property
    def last_fix_s(self) -> float:
        return self.times[-1]


def stays_of(fixes: list[Fix]) -> list[Stay]:
    found: list[Stay] = []
    for subscriber, time_s, site in fixes:
        last = found[-1] if found and found[-1].subscriber == subscriber else None
        heard = {stay.site for stay in found if stay.subscriber == subscriber and time_s in stay.times}
        if site in heard:
            continue
        if last is None or site != last.site or time_s - last.last_fix_s >= GAP_S:
            found.append(Stay(subscriber, site))
        found[-1].times.append(time_s)
    return found


def moved(stay: Stay | None, following: Stay | None) -> bool:
    return (
        stay is not None
        and following is not None
        and stay.subscriber == following.subscriber
        and following.entered_s - stay.last_fix_s < GAP_S
    )


def visits_counted(fixes: list[Fix]) -> list[dict[str, object]]:
    stays = stays_of(fixes)

    def at(number: int) -> Stay | None:
        return stays[number] if 0 <= number < len(stays) else None

    def returns(number: int) -> bool:
        """Whether the handoff that ends this stay goes back, after a short stay, to where it came from."""
        before, stay, after = at(number - 1), at(number), at(number + 1)
        return (
            moved(before, stay)
            and moved(stay, after)
            and before is not None
            and stay is not None
            and after is not None
            and before.site == after.site
            and after.entered_s - stay.entered_s < PING_PONG_S
        )

    told = []
    for number, stay in enumerate(stays):
        before, after = at(number - 1), at(number + 1)
        before = before if before is not None and before.subscriber == stay.subscriber else None
        after = after if after is not None and after.subscriber == stay.subscriber else None
        goes = moved(stay, after)
        told.append(
            {
                "subscriber": stay.subscriber,
                "site": stay.site,
                "entered_s": stay.entered_s,
                "last_fix_s": stay.last_fix_s,
                "left_s": after.entered_s if goes and after is not None else stay.last_fix_s,
                "fixes": len(stay.times),
                "began": "handoff" if moved(before, stay) else "gap" if before is not None else "begin",
                "ended": "handoff" if goes else "gap" if after is not None else "end",
                "ping_pong": returns(number) or (goes and returns(number + 1)),
                "next_site": after.site if after is not None else None,
                "next_s": after.entered_s if after is not None else None,
                "previous_site": before.site if before is not None else None,
            }
        )
    return told


def batches(fixes: list[Fix], cuts: list[int]) -> list[pa.RecordBatch]:
    edges = sorted({0, len(fixes), *(cut % (len(fixes) + 1) for cut in cuts)})
    names = ["subscriber", "time_s", "log_row", "site"]
    kinds = [pa.string(), pa.float64(), pa.int64(), pa.string()]
    columns = [[one[0] for one in fixes], [one[1] for one in fixes], range(len(fixes)), [one[2] for one in fixes]]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    whole = pa.RecordBatch.from_arrays(arrays, names=names)
    return [whole.slice(begin, end - begin) for begin, end in pairwise(edges)]


fixes = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 120).map(float), st.sampled_from("XYZ")), max_size=40
).map(lambda rows: sorted(rows, key=lambda row: row[:2]))


@given(fixes, st.lists(st.integers(0, 40), max_size=8))
def test_visits_are_those_of_a_plain_loop_wherever_batches_are_cut(rows: list[Fix], cuts: list[int]) -> None:
    found = Visiting(GAP_S, PING_PONG_S).visits(batches(rows, cuts))
    assert [row for batch in found for row in batch.to_pylist()] == visits_counted(rows)


def test_a_subscriber_that_stays_for_many_batches_has_one_visit() -> None:
    rows = [("c", float(second), "A") for second in range(1_000)]
    (visit,) = [
        row
        for batch in Visiting(GAP_S, PING_PONG_S).visits(batches(rows, list(range(0, 1_000, 7))))
        for row in batch.to_pylist()
    ]
    assert (visit["fixes"], visit["entered_s"], visit["left_s"], visit["ended"]) == (1_000, 0.0, 999.0, "end")


def test_the_columns_are_those_of_the_table() -> None:
    assert tuple(VISITS.names) == COLUMNS


def test_rows_that_share_a_second_keep_the_order_of_the_log() -> None:
    """By name or distance, X would come first, and the way back to it would be missing."""
    rows = [("c", 0.0, "X"), ("c", 60.0, "Y"), ("c", 60.0, "X"), ("c", 60.0, "Y"), ("c", 61.0, "X")]
    found = [row["site"] for batch in Visiting(90.0, 0.0).visits(batches(rows, [2, 3])) for row in batch.to_pylist()]
    assert found == ["X", "Y", "X"], "Y after X at 60 s is a repetition, and X from then on one stay"
