"""The neighbor graph as a file: what goes out comes in, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.net.neighbors.files import NeighborsError, Way, learned, mapped, read, read_names, text, write
from godwit.protocols.broker.handoff.prediction import RETURN_WEIGHT

NORTH = [
    Way("north", "south", 3, 2.5, 1_700_000_000.0, {"west": 1.5, "north": 0.25, 'a "b", c': 0.5}),
    Way("north", "east", 1, 1.0, None),
]


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_what_is_written_can_be_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"north.{kind}"
    write(NORTH, path)
    assert read(path) == NORTH


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for name in ("n.csv", "n.json", "n.parquet"):
        with pytest.raises(NeighborsError, match=f"nowhere/{name}: No such file"):
            write(NORTH, tmp_path / "nowhere" / name)


names = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\x00", exclude_categories=("Cc", "Zl", "Zp")), min_size=1
)


@given(
    st.dictionaries(st.tuples(names, names).filter(lambda pair: pair[0] != pair[1]), st.integers(1, 10**9), min_size=1)
)
def test_any_names_survive_both_kinds(
    tmp_path_factory: pytest.TempPathFactory, counts: dict[tuple[str, str], int]
) -> None:
    ways = [Way(*pair, count, float(count)) for pair, count in counts.items()]
    folder = tmp_path_factory.mktemp("ways")
    for kind in ("json", "csv"):
        path = folder / f"graph.{kind}"
        path.write_text(text(ways, kind))
        assert [(way.origin, way.to, way.count) for way in read(path)] == [
            (way.origin, way.to, way.count) for way in ways
        ]


def test_a_count_alone_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("from,to,count\nnorth,south,4\n")
    assert read(path) == [Way("north", "south", 4, 4.0)]


def test_a_file_of_before_there_were_paths_says_nothing_of_them(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("from,to,count,weight,last_used\nnorth,south,4,3.5,1700000000.000\n")
    assert read(path) == [Way("north", "south", 4, 3.5, 1_700_000_000.0)]


def test_rows_of_one_way_add_up_with_where_clients_had_come_from(tmp_path: Path) -> None:
    path = tmp_path / "twice.json"
    way = {"from": "n", "to": "s", "count": 9e14}
    path.write_bytes(msgspec.json.encode([{**way, "before": {"w": 1}}, {**way, "before": {"w": 2, "e": 3}}]))
    assert read(path) == [Way("n", "s", 10**15, 1.8e15, None, {"w": 3.0, "e": 3.0})]


def pipeline_rows() -> pa.Table:
    return pa.table(
        {
            "broker": ["17", "17", "4"],
            "peer": ["4", "9", "17"],
            "uses": [10, 2, 10],
            "last_used_s": [1_211_958_000.0, 1_211_950_000.0, 1_211_958_000.0],
            "handoffs_out": [8, 2, 2],
            "ping_pongs_out": [1, 0, 0],
            "probability": [0.78, 0.22, 1.0],
            "before": pa.array([[("17", 5), ("9", 3)], [("4", 2)], [("9", 2)]], pa.map_(pa.string(), pa.int64())),
        }
    )


def test_the_pipelines_table_is_read_as_spark_writes_it(tmp_path: Path) -> None:
    folder = tmp_path / "neighbors"
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    pq.write_table(pipeline_rows(), folder / "part-00000.snappy.parquet")
    ways = read(folder)
    assert [(way.origin, way.to, way.count) for way in ways] == [("17", "4", 10), ("17", "9", 2), ("4", "17", 10)]
    assert ways[0].weight == 8 + 2 * RETURN_WEIGHT
    assert ways[0].last_used == 1_211_958_000.0
    assert ways[0].before == {"17": 5.0, "9": 3.0}


def test_sites_become_the_brokers_that_stand_there(tmp_path: Path) -> None:
    path = tmp_path / "sites.parquet"
    pq.write_table(pipeline_rows(), path)
    names = tmp_path / "names.csv"
    names.write_text("site,broker\n17,north\n4,south\n")
    assert [(way.origin, way.to, way.before) for way in mapped(read(path), read_names(names))] == [
        ("north", "south", {"north": 5.0}),
        ("south", "north", {}),
    ]


def test_two_sites_of_one_broker_are_one_place(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text('{"17": "north", "4": "south", "9": "south"}')
    sites = tmp_path / "sites.parquet"
    pq.write_table(pipeline_rows(), sites)
    (out, _) = mapped(read(sites), read_names(path))
    assert (out.origin, out.to, out.count, out.before) == ("north", "south", 12, {"north": 5.0, "south": 5.0})
    assert mapped(read(sites), dict.fromkeys(("17", "4", "9"), "alone")) == []


def test_a_broker_takes_what_is_its_own() -> None:
    ways = [*NORTH, Way("south", "north", 5, 5.0)]
    assert [edge.peer for edge in learned(ways, "north")] == ["south", "east"]
    assert [edge.peer for edge in learned(ways, "nowhere")] == []


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", "from,to,count\nnorth,south,1\nnorth,east,many\n", "row 2, column count: 'many'"),
        ("a.csv", "from,to,count\nnorth,,1\n", "row 1, column to: ''; right would be the name of a broker"),
        ("a.csv", "from,count\nnorth,1\n", "row 1, column to: None"),
        ("a.csv", "from,to,count\nnorth,south\n", "row 1: right would be 3 columns"),
        ("a.csv", "from,to\nnorth,south\n", "row 1: neither count nor weight"),
        ("a.csv", "from,to,count\nnorth,south,-3\n", "column count: '-3'; right would be a number from 0 to 1e+15"),
        ("a.csv", "from,to,count\nnorth,south,1e300\n", "column count: '1e300'; right would be a number"),
        (
            "a.csv",
            "from,to,count,before\nnorth,south,3,west\n",
            "column before: 'west'; right would be {\"west\": 60.5}",
        ),
        ("a.json", '[{"from": "a", "to": "b", "count": 1, "before": {"w": -1}}]', "column before, column w: -1"),
        ("a.json", '[{"from": "a", "to": "b", "count": 1, "before": {"w": 1e99}}]', "right would be a number from 0"),
        ("a.json", '[{"from": "a", "to": "b", "count": 1, "before": {"": 1}}]', "right would be names of brokers"),
        ("a.json", '[{"from": "a", "to": "b", "count": 1, "before": [1]}]', "column before: [1]"),
        ("a.json", '[{"from": "a", "to": "b", "count": 1, "before": 7}]', "column before: 7"),
        ("a.csv", "from,to,count,last_used\nnorth,south,3,nan\n", "column last_used: 'nan'"),
        ("a.csv", "from,to,count\n", "no rows"),
        ("a.json", "{}", "a.json: Expected `array`"),
        ("a.json", "[1]", "right would be a list of objects"),
        ("a.json", '[{"from": 1, "to": "b", "count": 1}]', "row 1, column from: 1"),
        ("a.json", '[{"from": "a", "to": "b", "count": true}]', "column count: True"),
        ("a.parquet", "PAR1", "a.parquet"),
        ("a.txt", "north south", "right would be a .json, .csv or .parquet file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(NeighborsError) as caught:
        read(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet", "none"):
        with pytest.raises(NeighborsError, match=f"{name}: No such file"):
            read(tmp_path / name)
    with pytest.raises(NeighborsError, match=r"no \.parquet file in it"):
        read(tmp_path)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NeighborsError, match="not a text file"):
        read(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("name", "content"), [("n.json", "[]"), ("n.csv", "site,broker\n17,\n"), ("n.csv", "a,b\n1,2\n")]
)
def test_a_wrong_map_of_sites_is_named(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(NeighborsError, match=name):
        read_names(tmp_path / name)
