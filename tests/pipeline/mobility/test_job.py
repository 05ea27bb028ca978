"""The mobility job on two days of ten taxis, beside a count in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import cos, hypot, radians
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from godwit.net.neighbors import files
from godwit.pipeline.errors import PipelineError
from godwit.pipeline.mobility.job import MobilityOptions, run
from godwit.pipeline.mobility.movement import Rules

DATA = Path(__file__).resolve().parents[2] / "data"
SELECT = "cab AS subscriber, t AS time_s, lat_e5 / 1e5 AS lat, lon_e5 / 1e5 AS lon"


def handoffs_counted(latitude: float) -> tuple[int, int]:
    """How many there are, and how many fixes are outside of the box, found without Spark and kd-trees."""
    sites = [(row["site"], row["lat"], row["lon"]) for row in pyarrow.csv.read_csv(DATA / "sites.csv").to_pylist()]
    lats, lons = [lat for _, lat, _ in sites], [lon for _, _, lon in sites]
    rows = [
        (r["cab"], r["t"], r["lat_e5"] / 1e5, r["lon_e5"] / 1e5)
        for r in pq.read_table(DATA / "taxis.parquet").to_pylist()
    ]
    inside = [row for row in rows if min(lats) <= row[2] <= max(lats) and min(lons) <= row[3] <= max(lons)]
    tall, wide = 110_540, 111_320 * cos(radians(latitude))
    near = [
        (cab, t, min(sites, key=lambda site: hypot((site[1] - lat) * tall, (site[2] - lon) * wide))[0])
        for cab, t, lat, lon in sorted(inside)
    ]
    moves = sum(a[0] == b[0] and b[1] - a[1] < 300 and a[2] != b[2] for a, b in pairwise(near))
    return moves, len(rows) - len(inside)


def moved(out: Path) -> list[dict[str, str | None]]:
    rows: list[dict[str, str | None]] = pq.read_table(out / "handoffs").to_pylist()
    return rows


def test_two_days_of_taxis_give_the_handoffs_that_plain_counting_gives(spark: SparkSession, tmp_path: Path) -> None:
    options = MobilityOptions(
        positions=str(DATA / "taxis.parquet"),
        sites=str(DATA / "sites.csv"),
        out=str(tmp_path / "out"),
        positions_select=SELECT,
        rules=Rules(plane_latitude=37.7, utc_offset_h=-7),
    )
    summary = run(spark, options)
    moves, outside = handoffs_counted(latitude=37.7)
    assert summary.rows_out["handoffs"] == moves
    assert (summary.rows_in, summary.quarantined) == (16_927, outside)
    graph = pq.read_table(tmp_path / "out" / "neighbors").to_pylist()
    assert sum(edge["handoffs_out"] for edge in graph) == summary.rows_out["handoffs"]
    assert {(edge["broker"], edge["peer"]) for edge in graph} == {(edge["peer"], edge["broker"]) for edge in graph}
    assert all(sum(dict(edge["before"] or ()).values()) == edge["handoffs_out"] for edge in graph)
    ways = files.read(tmp_path / "out" / "neighbors")
    paths = Counter((r["previous_site"] or r["site"], r["site"], r["next_site"]) for r in moved(tmp_path / "out"))
    assert {(b, way.origin, way.to): count for way in ways for b, count in way.before.items()} == paths
    assert {(way.origin, way.to, way.count) for way in ways} == {(e["broker"], e["peer"], e["uses"]) for e in graph}
    scores = {row["model"]: row["likeliest"] for row in pq.read_table(tmp_path / "out" / "forecasts").to_pylist()}
    assert scores["graph"] > scores["busiest"]
    steady = Counter(row["day"] for row in moved(tmp_path / "out") if not row["ping_pong"])
    *before, last = sorted(map(str, steady))
    learned = sum(steady[day] for day in before)
    told = [note for note in summary.notes if note.startswith(f"forecast of {last}, ")]
    assert len(told) == 3
    assert all(note.endswith(f"of {steady[last]:,} handoffs after {learned:,}") for note in told)


def test_a_day_without_handoffs_cannot_be_foretold(spark: SparkSession, tmp_path: Path) -> None:
    rows = "subscriber,time_s,lat,lon\nc,0,0,0\nc,60,1,1\n"
    (tmp_path / "positions.csv").write_text(rows)
    (tmp_path / "sites.csv").write_text("site,lat,lon\na,0,0\nb,1,1\n")
    options = MobilityOptions(
        positions=str(tmp_path / "positions.csv"),
        sites=str(tmp_path / "sites.csv"),
        out=str(tmp_path / "out"),
        test_day="1970-01-09",
    )
    with pytest.raises(PipelineError, match="no forecast for 1970-01-09: the days with handoffs are 1970-01-01"):
        run(spark, options)
    assert not (tmp_path / "out").exists()
