"""What `examples/` promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from godwit.cli import app

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_the_files_and_the_script_deliver_the_same() -> None:
    files = [str(EXAMPLES / name) for name in ("events.jsonl", "subscriptions.jsonl")]
    result = CliRunner().invoke(app, ["match", *files, "--out", "-"])
    assert result.exit_code == 0
    pairs = {(one["event_id"], one["subscription"]) for one in map(json.loads, result.stdout.splitlines())}
    assert ("e4", "night shift") in pairs
    assert ("e5", "night shift") not in pairs

    script = subprocess.run([sys.executable, EXAMPLES / "matching.py"], capture_output=True, text=True, check=True)
    told = [line.split(" -> ") for line in script.stdout.splitlines() if " -> " in line]
    assert {(event, name) for event, names in told for name in names.split(", ")} == pairs


@pytest.mark.feature("content-routing F43", "content-routing F44")
@pytest.mark.parametrize(
    ("scene", "lines"),
    [
        (
            "photo_library.py",
            [
                "bob has gig.jpg and encore.jpg",
                "east, where bob is, is killed with kill -9",
                "a camera of another make has taken park.jpg at south",
                "bob has park.jpg, at south",
                "it is gone from bob's folder",
                "the display was told of 3 that came and 1 that went, each once",
                "bob has the better print of encore.jpg",
                "done",
            ],
        ),
        (
            "smart_office.py",
            [
                "ann reads the news on her phone: sun",
                "ann is in: the fence around the office has noticed it",
                "ann's desktop starts with mail, plan",
                "what was said between phone and desktop is there, once: up",
                "hall, where the secretary is, is killed with kill -9",
                "the secretary, at office by now, has told ann and bob of the meeting",
                "ann is in the meeting, with the session on her phone again",
                "both have ann's eleven and bob's six: the calendars are merged",
                "near ann is bob, and carol is not",
                "bob is asked to lunch",
                "ann has left: the display shows bob alone",
                "done",
            ],
        ),
    ],
)
def test_the_scenes_of_the_specification_come_true_on_three_brokers_of_which_one_is_killed(
    scene: str, lines: list[str]
) -> None:
    """Each line is printed when it has come true; the program fails where one does not."""
    pytest.importorskip("paho.mqtt")
    script = subprocess.run(
        [sys.executable, EXAMPLES / scene], capture_output=True, text=True, timeout=600, check=False
    )
    assert script.returncode == 0, script.stdout + script.stderr
    told = [line.partition(" s  ")[2] for line in script.stdout.splitlines()]
    assert [line for line in told if line in lines] == lines
