"""Where brokers stand, as a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from godwit.net.neighbors.files import NeighborsError, read_sites
from godwit.protocols.neighbors.nearness import Site, closeness


def test_brokers_are_where_the_file_says_and_the_nearer_are_closer(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("broker,lat,lon\nnorth,37.80,-122.42\nmiddle,37.79,-122.42\nsouth,37.70,-122.42\n")
    near = closeness("north", read_sites(path))
    assert 0 < near["south"] < near["middle"] < 1
    assert closeness("elsewhere", read_sites(path)) == {}


def test_the_pipelines_sites_are_read_as_spark_writes_them(tmp_path: Path) -> None:
    folder = tmp_path / "sites"
    folder.mkdir()
    pq.write_table(pa.table({"site": ["17"], "lat": [37.8], "lon": [-122.4]}), folder / "part-00000.parquet")
    assert read_sites(folder) == {"17": Site(37.8, -122.4)}


def test_rows_of_one_name_are_one_place(tmp_path: Path) -> None:
    path = tmp_path / "places.json"
    path.write_text('[{"broker": "b", "lat": 1, "lon": 10}, {"broker": "b", "lat": 3, "lon": 20}]')
    assert read_sites(path) == {"b": Site(2.0, 15.0)}


def test_two_sides_of_the_date_line_are_near_each_other() -> None:
    sites = {"here": Site(0.0, 179.99), "there": Site(0.0, -179.99), "far": Site(0.0, 179.0)}
    near = closeness("here", sites)
    assert near["there"] > 0.1 > near["far"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("north,91,0", "row 1, column lat: '91'; right would be a number from -90 to 90"),
        ("north,0,nan", "row 1, column lon: 'nan'"),
        ("north,0,", "row 1: no place; right would be degrees in each of the columns lat and lon"),
        (",0,0", "row 1, column broker: ''; right would be the name of a broker"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, row: str, complaint: str) -> None:
    path = tmp_path / "places.csv"
    path.write_text(f"broker,lat,lon\n{row}\n")
    with pytest.raises(NeighborsError) as caught:
        read_sites(path)
    assert complaint in str(caught.value)
