"""What a broker is given to know of where clients go, at its start and while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.net.servers import parts, server, serving
from tests.net.stations import played, until

from godwit.net import learning, services
from godwit.net.neighbors import IMPORT, Way, leave
from godwit.net.server import ServeError, Server

FILE = "from,to,count,last_used\nnorth,south,3,1211958000\nnorth,east,1,1211958000\nsouth,north,7,1211958000\n"


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "LOOK_S", 0.02)


def known(one: Server) -> list[tuple[str, float]]:
    return [(neighbour.peer, neighbour.share) for neighbour in parts(one).neighbours.known()]


def test_a_broker_begins_with_what_its_file_says_and_goes_on_from_there(tmp_path: Path) -> None:
    path = tmp_path / "neighbors.csv"
    path.write_text(FILE)

    async def scene() -> None:
        told = {"extras": services.ALL, "copies__neighbors": path}
        async with serving(tmp_path, "north", **told) as north:
            assert known(north) == [("south", 0.75), ("east", 0.25)]
            for _ in range(20):
                parts(north).neighbours.went("west", ())
        async with serving(tmp_path, "north", **told) as north:
            assert known(north)[0][0] == "west"

    played(scene)


def test_a_running_broker_takes_what_is_left_in_its_folder(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL) as north:
            parts(north).neighbours.went("west", ())
            path = leave(tmp_path / "north", [Way("north", "south", 3, 3.0)])
            await until(lambda: not path.exists())
            assert known(north) == [("south", 1.0)]

    played(scene)


def test_what_cannot_be_taken_changes_nothing_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with serving(tmp_path, "north", extras=services.ALL) as north:
            parts(north).neighbours.went("west", ())
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
