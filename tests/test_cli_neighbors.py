"""`godwit neighbors`, against brokers that run and brokers that do not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers import FREE, Process, running
from typer.testing import CliRunner, Result

from godwit.cli import app


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Path]]:
    folder = tmp_path_factory.mktemp("broker")
    process = Process(folder, "north", *FREE, "--status", "127.0.0.1:0")
    with running(process):
        yield process, folder / "north"


def called(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["neighbors", *map(str, arguments)])


def status(process: Process) -> str:
    return process.at("status").removeprefix("http://")


def graph(folder: Path, **counts: int) -> Path:
    path = folder / "graph.json"
    path.write_text(json.dumps([{"from": "north", "to": peer, "count": count} for peer, count in counts.items()]))
    return path


def test_a_running_broker_takes_a_file_and_shows_it(broker: tuple[Process, Path], tmp_path: Path) -> None:
    process, folder = broker
    result = called("import", graph(tmp_path, south=3, east=1), folder)
    assert result.output == "north knows 2 neighbors now\n"
    for where in (status(process), folder):
        lines = called("show", where).output.splitlines()
        assert lines[0].strip() == "from north"
        assert [line.split()[:3] for line in lines[2:]] == [["south", "75.0%", "3"], ["east", "25.0%", "1"]]


def test_what_is_exported_can_be_imported(broker: tuple[Process, Path], tmp_path: Path) -> None:
    process, folder = broker
    called("import", graph(tmp_path, west=2), folder)
    for name in ("out.json", "out.csv", "out.parquet"):
        assert called("export", status(process), "--out", tmp_path / name).exit_code == 0
        assert called("import", tmp_path / name, folder).exit_code == 0
    printed = called("export", folder).output.splitlines()
    assert printed[0] == "from,to,count,weight,last_used,before"
    assert printed[1].startswith("north,west,2,2,")


def test_sites_are_named_as_the_brokers_that_stand_there(broker: tuple[Process, Path], tmp_path: Path) -> None:
    process, folder = broker
    path = tmp_path / "sites.csv"
    path.write_text("from,to,count\n17,4,5\n17,9,1\n")
    names = tmp_path / "names.csv"
    names.write_text("site,broker\n17,north\n4,south\n")
    assert called("import", path, folder, "--sites", names).exit_code == 0
    assert "south" in called("show", status(process)).output
    assert "100.0%" in called("show", status(process)).output


def test_a_broker_that_does_not_run_takes_it_when_it_starts(tmp_path: Path) -> None:
    with running(Process(tmp_path, "north", *FREE)):
        pass
    folder = tmp_path / "north"
    assert "knows no neighbors yet" in called("show", folder).output
    result = called("import", graph(tmp_path, south=1), folder)
    assert result.output == "north does not run: it takes 1 neighbors when it starts\n"
    again = Process(tmp_path, "north", *FREE, "--status", "127.0.0.1:0")
    with running(again):
        while "south" not in called("show", status(again)).output:
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("show", "127.0.0.1:1"), "is a broker with `--status` listening there?"),
        (("show", "{tmp}"), "name the data directory of a broker"),
        (
            ("export", "{folder}", "--out", "{tmp}/x.txt"),
            "x.txt: right would be a name that ends in .json, .csv or .parquet",
        ),
        (("import", "{tmp}/none.csv", "{folder}"), "none.csv: No such file"),
        (("import", "{tmp}/other.csv", "{folder}"), "nothing of 'north' in column from, but of elsewhere"),
        (("import", "{tmp}/bad.csv", "{folder}"), "bad.csv, row 1, column count: 'x'"),
        (("import", "{tmp}/other.csv", "{tmp}"), "name the data directory of a broker"),
    ],
)
def test_what_is_wrong_is_named(
    broker: tuple[Process, Path], tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "other.csv").write_text("from,to,count\nelsewhere,south,1\n")
    (tmp_path / "bad.csv").write_text("from,to,count\nnorth,south,x\n")
    result = called(*(argument.format(tmp=tmp_path, folder=broker[1]) for argument in arguments))
    assert result.exit_code == 2
    assert complaint in result.output
