from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from godwit.lab.pages import markdown
from godwit.lab.recorded.moves import RecordedError, habits, read_sites, read_stays, span_s
from godwit.lab.recorded.report import page, plan
from godwit.lab.recorded.runs import SCHEMES, Configuration, run
from godwit.lab.results import Results

RING = 6
STAY_S = 30.0


def a_ring(folder: Path, walkers: int = 6, hours: float = 1.0) -> Path:
    """Sites on a ring; half of the walkers go round one way, half the other, thirty seconds at each site."""
    rows = []
    for walker in range(walkers):
        step = 1 if walker % 2 else -1
        at, now = walker % RING, 3.0 * walker
        while now < hours * 3600:
            rows.append((f"w{walker}", f"r{at}", now, now + STAY_S - 10.0, "handoff"))
            at, now = (at + step) % RING, now + STAY_S
    write(folder / "visits", ("subscriber", "site", "entered_s", "last_fix_s", "ended"), rows)
    places = [(f"r{at}", 37.7 + 0.01 * (at % 3), -122.4 + 0.01 * (at // 3)) for at in range(RING)]
    write(folder / "sites", ("site", "lat", "lon"), places)
    return folder


def write(folder: Path, names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> None:
    folder.mkdir(parents=True)
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    pq.write_table(pa.table(columns), folder / "part-0.parquet")


def configured(recording: Path, **others: object) -> Configuration:
    base = Configuration(
        recording=str(recording), learn_from_s=0.0, begin_s=1800.0, measure_s=600.0, scheme="foreseen", size_b=100
    )
    return msgspec.structs.replace(base, **others)


def test_habits_are_what_each_site_saw_of_those_who_left_it(tmp_path: Path) -> None:
    learned = habits(read_stays(a_ring(tmp_path), 0.0, 1800.0))
    at = learned["r2"]
    assert set(at.uses) == {"r1", "r3"}
    assert set(at.moves["r1"]) == {"r3"}
    assert set(at.moves["r3"]) == {"r1"}


def test_a_recording_knows_its_sites_and_its_time(tmp_path: Path) -> None:
    folder = a_ring(tmp_path)
    assert set(read_sites(folder)) == {f"r{at}" for at in range(RING)}
    first, last = span_s(folder)
    assert first == 0.0
    assert 3500 < last < 3600


@pytest.mark.parametrize("scheme", [one for one in SCHEMES if one != "durable"])
def test_nothing_is_lost_twice_or_out_of_order_on_the_ring(scheme: str, tmp_path: Path) -> None:
    result = run(configured(a_ring(tmp_path), scheme=scheme, disk=True))
    assert result.due > 500
    assert result.handoffs > 90
    assert (result.lost, result.disordered) == (0, 0)
    assert result.twice == 0 or scheme == "reactive"


@pytest.mark.feature("proactive-handoff F28")
def test_durable_subscriptions_at_each_broker_repeat_and_disorder(tmp_path: Path) -> None:
    result = run(configured(a_ring(tmp_path), scheme="durable", disk=True))
    assert result.twice > 0
    assert result.disordered > 0


@pytest.mark.feature("proactive-handoff F11")
def test_foresight_needs_half_the_stand_ins_at_the_same_hit_rate(tmp_path: Path) -> None:
    ring = a_ring(tmp_path)
    everywhere = run(configured(ring, scheme="neighbors"))
    foreseen = run(configured(ring, scheme="foreseen", mass=0.9))
    assert everywhere.copies / everywhere.handoffs == pytest.approx(2.0, rel=0.1)
    assert foreseen.copies / foreseen.handoffs == pytest.approx(1.0, rel=0.1)
    assert foreseen.hits / foreseen.handoffs >= everywhere.hits / everywhere.handoffs - 0.02
    assert foreseen.latency_median_s == 0.0


def test_the_same_configuration_gives_the_same_result(tmp_path: Path) -> None:
    one = configured(a_ring(tmp_path), disk=True)
    assert run(one) == run(one)


def test_the_page_compares_all_schemes_with_all_neighbors(tmp_path: Path) -> None:
    ring = a_ring(tmp_path / "ring")
    results = Results(tmp_path / "results.parquet", Configuration, type(run(configured(ring))))
    wanted = [one for one in plan(configured(ring)) if one.scheme in ("neighbors", "reactive")]
    for one in wanted:
        results.add(one, run(one))
    text = markdown(page(results.of(wanted), "godwit lab recorded"))
    assert "| neighbors |" in text
    assert "| reactive | - | - |" in text


def test_a_folder_without_visits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match="visits"):
        run(configured(tmp_path))


def test_a_table_without_a_column_is_refused_by_name(tmp_path: Path) -> None:
    write(tmp_path / "visits", ("subscriber", "site"), [("a", "b")])
    with pytest.raises(RecordedError, match="entered_s"):
        span_s(tmp_path)


def test_a_time_in_which_nobody_moves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordedError, match="nobody"):
        run(configured(a_ring(tmp_path), begin_s=90_000.0))
