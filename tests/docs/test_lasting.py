"""docs/lasting.md as a stranger does it, command by command, beside a broker on ports of its own."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.brokers import FREE, Process, running
from tests.pages import blocks, page

PAGE = page("docs/lasting.md")
COMMANDS = [text for text in blocks(PAGE, r"\w*") if text.startswith("godwit ")]
WAIT_S = 60.0


class Terminal:
    """Runs lines of the page; what stays prints into a file."""

    def __init__(self, folder: Path, broker: Process) -> None:
        self.folder = folder
        self.broker = broker
        self.staying: list[subprocess.Popen[bytes]] = []

    def words(self, line: str) -> list[str]:
        line = line.replace("127.0.0.1:9885", self.broker.at("http").removeprefix("http://"))
        command, *rest = shlex.split(line)
        if command != "godwit":
            return [command, "-s", *rest]
        at = self.broker.at("http") if rest[0] == "get" else self.broker.at("mqtt")
        return [sys.executable, "-m", "godwit", *rest, "--broker", at]

    def run(self, line: str) -> str:
        done = subprocess.run(self.words(line), capture_output=True, text=True, timeout=WAIT_S)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout

    def stay(self, line: str, name: str) -> None:
        with (self.folder / name).open("wb") as out:
            self.staying.append(subprocess.Popen(self.words(line), stdout=out))

    def said(self, name: str) -> list[str]:
        return (self.folder / name).read_text().splitlines()

    def end(self) -> None:
        for process in self.staying:
            process.kill()
            process.wait()


def until(happened: Callable[[], object]) -> None:
    end_s = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def lines(number: int) -> list[str]:
    return [line for line in COMMANDS[number].splitlines() if line.startswith(("godwit", "curl"))]


@pytest.mark.feature("content-routing F41")
def test_the_five_minutes_print_what_the_page_says(tmp_path: Path) -> None:
    broker = Process(tmp_path, "here", *FREE)
    with running(broker):
        made = Terminal(tmp_path, broker)
        try:
            _, *publish = lines(0)
            for line in publish:
                made.run(line)
            once, stay = lines(1)
            first = re.search(r"Both print `(.*?)`", PAGE)
            assert first is not None
            assert made.run(once).split() == first[1].split()
            made.stay(stay.removesuffix("&"), "question")
            until(lambda: made.said("question"))
            for line in lines(2):
                made.run(line)
            until(lambda: len(made.said("question")) == 4)
            shown = [line.split("\t") for line in made.said("question")]
            assert [(number, sign, topic) for number, sign, topic, _ in shown] == [
                ("1", "+", "vans/1"),
                ("2", "+", "vans/2"),
                ("3", "-", "vans/1"),
                ("4", "-", "vans/2"),
            ]
            assert [line[3] for line in shown[2:]] == ["(left)", "(expired)"]
            near, room, asked = lines(3)
            assert made.run(near) == ""
            made.run(room)
            assert made.run(asked).split("\t")[:3] == ["1", "+", "rooms/7"]
            get, fetch, post = lines(4)
            assert made.run(get).startswith("vans/1\t")
            assert [one["topic"] for one in json.loads(made.run(fetch))] == ["vans/1"]
            assert json.loads(made.run(post)) == {"taken": True}
            assert [one["topic"] for one in json.loads(made.run(fetch))] == ["vans/1", "vans/3"]
        finally:
            made.end()


def test_what_was_published_before_comes_first(tmp_path: Path) -> None:
    broker = Process(tmp_path, "here", *FREE, "--archive", str(tmp_path / "archive"))
    with running(broker):
        made = Terminal(tmp_path, broker)
        try:
            for number, speed in enumerate((60, 40, 70)):
                made.run(f"godwit pub vans/{number} '{{\"speed\": {speed}}}'")
            (since,) = lines(5)
            made.stay(since, "past")
            until(lambda: len(made.said("past")) == 2)
            made.run("godwit pub vans/3 '{\"speed\": 80}'")
            until(lambda: len(made.said("past")) == 3)
            assert [line.split("\t")[0] for line in made.said("past")] == ["vans/0", "vans/2", "vans/3"]
        finally:
            made.end()
