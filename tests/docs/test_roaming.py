"""What docs/roaming.md says can be typed, typed: the same commands, at ports that are free."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers import Process, own_ports, running
from tests.pages import ROOT, blocks, page

from godwit.commands.top import fetched
from godwit.net.config import load
from godwit.net.neighbors.files import read, read_sites
from godwit.protocols.neighbors.nearness import closeness

PAGE = page("docs/roaming.md")
BROKERS, WALK, NEIGHBORS, PIPELINE = blocks(PAGE, "sh")
ANSWER_S = 60


class Lab:
    """Both brokers of the page, and how its commands are run beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: dict[str, str] = {}
        self.brokers: list[Process] = []

    def there(self, text: str) -> str:
        """With this machine's ports."""
        return re.sub(r"\b(1883|1884|7001|7002|9883)\b", lambda found: self.ports[found[0]], text)

    def start(self, line: str) -> None:
        words = shlex.split(self.there(line))
        assert words[:2] == ["godwit", "serve"]
        options = dict(zip(words[2::2], words[3::2], strict=True))
        name = options.pop("--name")
        assert options.pop("--data") == name
        self.brokers.append(Process(self.folder, name, *(word for pair in options.items() for word in pair)))

    def run(self, command: str) -> str:
        command = self.there(command.partition("  #")[0])
        words = shlex.split(command)
        if words[0] == "godwit":
            words = [sys.executable, "-m", *words]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=ANSWER_S)
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(tmp_path_factory.mktemp("roaming"))
    said = ("1883", "1884", "7001", "7002", "9883")
    with own_ports(len(said)) as ports:
        lab.ports = dict(zip(said, map(str, ports), strict=True))
        for line in BROKERS.splitlines():
            lab.start(line)
        yield from started(lab)


def started(lab: Lab) -> Iterator[Lab]:
    with running(*lab.brokers):
        while len(fetched(f"http://127.0.0.1:{lab.ports['9883']}/status").peers) != 1:
            time.sleep(0.1)
        yield lab


@pytest.mark.skipif(not shutil.which("mosquitto_sub"), reason="mosquitto's clients are not here")
def test_a_walker_with_mosquittos_clients_gets_what_waited(lab: Lab) -> None:
    assert [lab.run(line) for line in WALK.splitlines()][-1] == "while you were away\n"


def test_the_python_example_prints_what_it_says(lab: Lab) -> None:
    (example,) = blocks(PAGE, "python")
    path = lab.folder / "example.py"
    path.write_text(lab.there(example))
    # Again and again: what one run was given last must not come to the next one.
    for _ in range(3):
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=ANSWER_S, check=True)
        assert (done.stdout, done.stderr) == ("[163.5, 171.0]\n", "")


def test_neighbors_can_be_shown_taken_along_and_given_back(lab: Lab) -> None:
    (lab.folder / "first.csv").write_text(blocks(PAGE, "csv")[1])
    assert lab.run("godwit neighbors import first.csv north") == "north knows 2 neighbors now\n"
    shown, exported, imported = (lab.run(line) for line in NEIGHBORS.splitlines())
    assert [line.split()[0] for line in shown.splitlines()[2:4]] == ["south", "east"]
    assert [line.split()[0] for line in shown.splitlines()[6:]] == ["west", "nowhere"]
    assert all(heading in PAGE for heading in (shown.splitlines()[4].strip(), "came from   share   goes on to"))
    assert exported == ""
    assert imported == "north knows 2 neighbors now\n"
    assert [way.to for way in read(lab.folder / "north.csv")] == ["south", "east"]


def test_what_is_said_of_top_is_what_top_says(lab: Lab) -> None:
    said = " ".join(lab.run("godwit top 127.0.0.1:9883 --once").split())
    shown = re.search(r"^```\n(handoff: .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    for words in (
        "handoff: proactive; last hour: ",
        "ways not known",
        "ways unused",
        "copies: ",
        "held",
        "made",
        "used",
    ):
        assert words in said
        assert words in shown[1]


def test_both_configurations_can_be_loaded(tmp_path: Path) -> None:
    for text in blocks(PAGE, "toml"):
        path = tmp_path / "broker.toml"
        path.write_text(text)
        config = load(path, {}, {})
        assert config.handoff == "proactive"
    assert config.balance.drain_s == 30


def test_places_can_be_told_as_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "places.csv"
    path.write_text(blocks(PAGE, "csv")[0])
    near = closeness("north", read_sites(path))
    assert 0 < near["south"] < 1


def test_what_is_said_of_the_defaults_is_so(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    path.write_text(blocks(PAGE, "toml")[0])
    told, default = load(path, {}, {}), load(None, {}, {})
    assert (told.backlog, told.copies, told.handoff_wait_s) == (default.backlog, default.copies, default.handoff_wait_s)


def test_the_picture_is_there_and_whole() -> None:
    assert "(handoff.svg)" in PAGE
    picture = ET.parse(ROOT / "docs" / "handoff.svg").getroot()
    assert picture.tag.endswith("svg")
    words = " ".join("".join(one.itertext()) for one in picture.iter() if one.tag.endswith("text"))
    for said in ("Copy", "Turned", "Through", "Fetch", "Given", "Place"):
        assert said in words
