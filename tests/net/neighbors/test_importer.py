"""What a broker is given to know of where clients go, at its start and while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.net.servers import parts, server, serving
from tests.net.stations import played, until

from godwit.commands import neighbors as commands
from godwit.net.config import ConfigError, load
from godwit.net.neighbors import importer
from godwit.net.neighbors.files import IMPORT, Way, leave, read
from godwit.net.ops import services
from godwit.net.server import ServeError, Server, check

FILE = "from,to,count,last_used\nnorth,south,3,1211958000\nnorth,east,1,1211958000\nsouth,north,7,1211958000\n"


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "LOOK_S", 0.02)


def known(one: Server) -> list[tuple[str, float]]:
    return [(neighbor.peer, neighbor.share) for neighbor in parts(one).neighbors.known()]


def test_a_broker_begins_with_what_its_file_says_and_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "neighbors.csv"
    path.write_text(FILE)

    async def scene() -> None:
        told = {"extras": services.ALL, "copies__neighbors": path}
        async with serving(tmp_path, "north", **told) as north:
            assert known(north) == [("south", 0.75), ("east", 0.25)]
            for _ in range(20):
                parts(north).neighbors.went("west", ())
        async with serving(tmp_path, "north", **told) as north:
            assert known(north)[0][0] == "west"

    played(scene)


def test_a_running_broker_takes_what_is_left_in_its_folder(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL) as north:
            parts(north).neighbors.went("west", ())
            path = leave(tmp_path / "north", [Way("north", "south", 3, 3.0)])
            await until(lambda: not path.exists())
            assert known(north) == [("south", 1.0)]

    played(scene)


def test_what_cannot_be_taken_changes_nothing_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL) as north:
            parts(north).neighbors.went("west", ())
            path = tmp_path / "north" / IMPORT
            for wrong in ("nonsense", '[{"from": "elsewhere", "to": "south", "count": 3}]'):
                path.write_text(wrong)
                await until(lambda: not path.exists())
            assert known(north) == [("west", 1.0)]

    played(scene)
    assert "neighbors stay as they were" in caplog.text
    assert "nothing of 'north' in column from, but of elsewhere" in caplog.text


def test_a_broker_does_not_start_with_a_file_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "neighbors.csv"
    path.write_text(FILE.replace("3", "three", 1))

    async def scene() -> None:
        with pytest.raises(ServeError, match=r"copies\.neighbors: .*neighbors\.csv, row 1, column count: 'three'"):
            await server(tmp_path, "north", extras=services.ALL, copies__neighbors=path).start()

    played(scene)


def test_paths_are_shown_and_taken_along_by_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"north.{kind}" for kind in ("csv", "json", "parquet")]

    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL) as north:
            for _ in range(30):
                parts(north).neighbors.went("east", (), "west")
                parts(north).neighbors.went("west", (), "east")
                parts(north).neighbors.went("south", ())
        for file in files:
            commands.export(commands.ExportOptions(broker=str(tmp_path / "north"), out=file))
        commands.show(commands.ShowOptions(broker=str(tmp_path / "north")))

    played(scene)
    shown = capsys.readouterr().out
    assert [line.split()[:3] for line in sorted(shown.splitlines()[-3:])] == [
        ["east", "33.3%", "west"],
        ["nowhere", "33.3%", "south"],
        ["west", "33.3%", "east"],
    ]
    for file in files:
        found = {way.to: way.before for way in read(file)}
        assert {to: list(before) for to, before in found.items()} == {
            "east": ["west"],
            "west": ["east"],
            "south": ["north"],
        }
        assert found["east"]["west"] == pytest.approx(30, rel=1e-3)


def test_near_brokers_are_likely_where_places_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "places.csv"
    path.write_text("broker,lat,lon\nnorth,37.80,-122.42\neast,37.79,-122.42\nsouth,36.0,-122.42\n")

    async def scene() -> None:
        async with serving(tmp_path, "north", copies__places=path) as north:
            near = parts(north).neighbors.graph.options.closeness
            assert near["east"] > 0.4 > 1e-9 > near["south"]
        async with serving(tmp_path, "west", copies__places=path) as west:
            assert parts(west).neighbors.graph.options.closeness == {}

    played(scene)
    assert "does not say where west stands" in caplog.text


def test_places_that_are_wrong_are_named_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text("broker,lat,lon\nnorth,137.80,-122.42\n")
    with pytest.raises(ConfigError, match=r"copies\.places: .*row 1, column lat: '137\.80'"):
        check(load(None, {"copies.places": path, "data": tmp_path}, {}))
